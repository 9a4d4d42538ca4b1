//! Two versions of memory: writes are undone, and both versions are merged under a secret
//! condition.
//!
//! Which bytes were written is public, so the set of merged places reveals nothing.

use super::Memory;
use super::region::Region;
use crate::fault::Result;
use crate::numbers::words::Words;
use std::collections::BTreeMap;

/// The previous contents of written places, by address; the places do not overlap.
pub type Journal<Word> = BTreeMap<u64, Region<Word>>;

/// The content of places that were written and then restored.
pub struct Changes<Word>(Journal<Word>);

impl<Word: Clone> Memory<Word> {
    /// Begins a journal. Later writes can be undone with `take_back`.
    pub fn begin(&mut self) {
        self.journals.push(Journal::new());
    }

    /// Undoes all writes since the newest `begin`, and returns them.
    ///
    /// # Panics
    /// Panics if there was no `begin`.
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

    /// Writes the select between two sets of changes. If only one set contains a place, the
    /// memory's present content stands for the other.
    ///
    /// # Errors
    /// None if both sets were taken back from this memory.
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

    /// Records the content of a place in the newest journal, unless it is already there.
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

    /// Returns a region that was written to, so that it is known to exist.
    fn mapped(&mut self, address: u64, bytes: u64) -> &mut Region<Word> {
        self.region(address, bytes).expect("it was written to")
    }
}

impl<Word: Clone> Changes<Word> {
    /// Applies the changes to a version of a place, as far as they overlap it.
    fn apply(&self, version: &mut Region<Word>) {
        for change in overlapping(&self.0, version.start(), version.end()) {
            let start = change.start().max(version.start());
            let end = change.end().min(version.end());
            version.put(&change.part(start, end - start));
        }
    }
}

/// Returns the entries of a journal that overlap an address range.
fn overlapping<Word: Clone>(
    journal: &Journal<Word>,
    start: u64,
    end: u64,
) -> impl Iterator<Item = &Region<Word>> {
    let kept = journal.range(..end).rev().map(|(_, kept)| kept);
    kept.take_while(move |kept| kept.end() > start)
}

/// Returns the places that occur in one journal or in both, at most eight bytes each, so that a
/// place written as one word is merged as one.
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
