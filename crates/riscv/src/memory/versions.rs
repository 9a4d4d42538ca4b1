//! Two versions of memory: writes are undone, and both versions are merged by a secret condition.
//!
//! Where something was written, and how many bytes, is public, so the places that are merged reveal
//! nothing.

use super::Memory;
use super::region::Region;
use crate::fault::Result;
use crate::numbers::words::Words;
use std::collections::BTreeMap;

/// What lay where something was written, by its address; the places do not overlap.
pub type Journal<Word> = BTreeMap<u64, Region<Word>>;

/// What was written and taken back.
pub struct Changes<Word>(Journal<Word>);

impl<Word: Clone> Memory<Word> {
    /// From here on what is written can be taken back, until that is done.
    pub fn begin(&mut self) {
        self.journals.push(Journal::new());
    }

    /// Takes back what was written since the newest beginning.
    ///
    /// # Panics
    /// Where there was none.
    pub fn take_back(&mut self) -> Changes<Word> {
        let journal = self.journals.pop().expect("there was a beginning");
        let mut changes = Journal::new();
        for (start, before) in journal {
            let region = self.mapped(start, before.size());
            changes.insert(start, region.part(start, before.size()));
            region.put(&before);
        }
        Changes(changes)
    }

    /// Writes a choice between what two lists of changes say. Where only one says something, what
    /// lay there is the other's.
    ///
    /// # Errors
    /// None where both were taken back from this memory.
    pub fn merge<W: Words<Word = Word>>(
        &mut self,
        words: &mut W,
        (changes, others): (&Changes<Word>, &Changes<Word>),
        choose: impl Fn(&mut W, &Word, &Word) -> Word,
    ) -> Result<()> {
        for (start, bytes) in places(&changes.0, &others.0) {
            let region = self.mapped(start, bytes);
            let [x, y] = [changes, others].map(|changes| {
                let mut version = region.part(start, bytes);
                changes.apply(&mut version);
                version
            });
            let merged = if x.is_same(words, &y) {
                x
            } else {
                let [one, other] = [&x, &y].map(|version| version.load(words, start, bytes));
                let word = choose(words, &one, &other);
                let mut merged = x;
                merged.store(words, start, bytes, &word);
                merged
            };
            self.writable(start, bytes)?.put(&merged);
        }
        Ok(())
    }

    /// Keeps what lies there for the newest journal, unless it has it.
    #[cold]
    pub(super) fn remember(&mut self, address: u64, bytes: u64) {
        let end = address + bytes;
        let Some(mut journal) = self.journals.pop() else {
            return;
        };
        let reaching = journal.range(..address).next_back();
        let mut at = reaching.map_or(address, |(_, kept)| address.max(kept.end()));
        while at < end {
            let next = journal.range(at..end).next();
            let (until, after) = next.map_or((end, end), |(&start, kept)| (start, kept.end()));
            if until > at {
                let before = self.mapped(at, until - at).part(at, until - at);
                journal.insert(at, before);
            }
            at = after;
        }
        self.journals.push(journal);
    }

    /// A region that something was written to, so that it is there.
    fn mapped(&mut self, address: u64, bytes: u64) -> &mut Region<Word> {
        self.region(address, bytes).expect("it was written to")
    }
}

impl<Word: Clone> Changes<Word> {
    /// Writes them into a version, as far as they are of its place.
    fn apply(&self, version: &mut Region<Word>) {
        for change in overlapping(&self.0, version.start(), version.end()) {
            let start = change.start().max(version.start());
            let end = change.end().min(version.end());
            version.put(&change.part(start, end - start));
        }
    }
}

/// What a journal has between two addresses.
fn overlapping<Word: Clone>(
    journal: &Journal<Word>,
    start: u64,
    end: u64,
) -> impl Iterator<Item = &Region<Word>> {
    let kept = journal.range(..end).rev().map(|(_, kept)| kept);
    kept.take_while(move |kept| kept.end() > start)
}

/// The places where one or both have something, at most eight bytes each: what was written as one
/// word is merged as one.
fn places<Word: Clone>(x: &Journal<Word>, y: &Journal<Word>) -> Vec<(u64, u64)> {
    let extent = |kept: &Region<Word>| (kept.start(), kept.end());
    let mut extents: Vec<(u64, u64)> = x.values().chain(y.values()).map(extent).collect();
    extents.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in extents {
        match joined.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    let words = |(start, end): (u64, u64)| {
        let starts = (start..end).step_by(8);
        starts.map(move |start| (start, (end - start).min(8)))
    };
    joined.into_iter().flat_map(words).collect()
}
