//! Correlations from a file that any other source made ahead, in a session of its own.
//!
//! A program asks for the same jobs whenever it runs on the same shapes. A session can record them
//! ([`super::Demand`]). [`crate::preprocessing`] has a source do them as often as needed, each time
//! as one *run* of the parties' files ([`crate::sealed`]). A later session takes a run instead of
//! the source's work. No declaration by hand is needed, and a program that asks for something else
//! gets an error.
//!
//! **Once.** A run of which anything was used is never begun again, as long as one party's own file
//! is never restored to an earlier state. A session
//!
//! 1. compares the files, which must have been made together, and their counts of used runs. All
//!    parties begin the run at the *greatest* count: one that no party has counted;
//! 2. has each party count that run, durably;
//! 3. has each party tell the others that it has counted, and reads the first record once all have.
//!
//! So when anything of run r is used, every party's file counts it (steps 2 and 3). This includes
//! the file of the party that never restores its own. All parties take part in every session, so
//! that party's count is among those that are compared, and every later session begins above r
//! (step 1). Some files may fall behind the others: by a crash or a failed start between steps 1
//! and 2 (any number of such starts, by any number of runs), or by restoring a copy. The only
//! consequence is that a party's file skips runs. A skipped run is not used later either, as a
//! file's own count only grows. Without step 3 this would not hold: a party that has counted run r
//! could send values masked by run r to a party that crashed before it counted. If the first
//! party's file was then restored, run r would be begun again.
//!
//! If all files are restored, no party can detect it.
//!
//! **Trust.** The source that made the file must be trusted as its own documentation says. In
//! addition, nobody may read a party's file together with its private key.

use super::job::{Job, VERSIONS};
use super::{Comparisons, Source};
use crate::sealed::{Reader, Writer};
use crate::{Error, Result};
use net::{Channel, Reading};
use std::path::{Path, PathBuf};

/// Path of a party's file, and the key that it is sealed with.
#[derive(Clone)]
pub struct Place {
    /// Path of the file.
    pub path: PathBuf,
    /// Private key of the party, PEM.
    pub secret: String,
}

/// Appends the columns of a job, a record for each.
pub(crate) fn append(writer: &mut Writer, job: &Job, columns: &[Vec<u64>]) -> Result<()> {
    let append = |(at, column): (usize, &Vec<u64>)| writer.append(&descriptor(job, at), column);
    columns.iter().enumerate().try_for_each(append)
}

/// Returns the descriptor of a record: the job, and the index of its column.
fn descriptor(job: &Job, column: usize) -> Vec<u8> {
    let mut words = job.encode();
    words.push(column as u64);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Describes for people the job that a descriptor names.
fn described(descriptor: &[u8]) -> String {
    let words: Vec<u64> = descriptor
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of eight bytes")))
        .collect();
    let job = words.split_last().map(|(_, job)| Job::decode(job));
    job.and_then(Result::ok)
        .map_or_else(|| "something else".to_owned(), |job| job.describe())
}

/// Run of a file that is being used.
pub(crate) struct Stored {
    channel: Channel,
    reader: Reader,
    /// How the session that recorded the demand compared.
    comparisons: Comparisons,
}

impl Stored {
    /// Begins a run that no party has used, together with all others.
    pub fn new(channel: Channel, place: &Place) -> Result<Self> {
        let mut stored = Self::open(channel, place)?;
        let run = stored.compare()?;
        stored.reader.begin_run(run)?;
        stored.confirm(run)?;
        Ok(stored)
    }

    fn open(channel: Channel, place: &Place) -> Result<Self> {
        let reader = Reader::open(&place.path, place.secret.as_bytes())?;
        reader.check_party(channel.party() as u32, channel.parties() as u32)?;
        let content = reader.header().content;
        let comparisons = Comparisons::of_version(content).ok_or_else(|| {
            let (first, last) = (VERSIONS.start(), VERSIONS.end());
            let reason = format!(
                "its records are of version {content}, but this release reads {first} to {last}; \
                 make new correlations with `tacit correlations make`"
            );
            unfit(&place.path, &reason)
        })?;
        if !comparisons.serve(channel.parties()) {
            let reason = "its records are of a program of two parties; make new correlations with \
                          `tacit correlations make`";
            return Err(unfit(&place.path, reason));
        }
        Ok(Self {
            channel,
            reader,
            comparisons,
        })
    }

    /// Returns the first run that no party has used.
    fn compare(&mut self) -> Result<u32> {
        let (runs, mut most) = (self.reader.header().runs, self.reader.used());
        let mut mine = net::bytes::to_words(&self.reader.header().id);
        mine.push(u64::from(most));
        for (peer, theirs) in self.exchange("compare correlation files", &mine)? {
            if theirs[..2] != mine[..2] {
                let reason = format!(
                    "party {peer}'s file was not made together with this one; use files that were made together"
                );
                return Err(unfit(self.reader.path(), &reason));
            }
            let used = u32::try_from(theirs[2]).ok().filter(|used| *used <= runs);
            let impossible = || {
                let reason = format!("claims {} used runs of a file that has {runs}", theirs[2]);
                self.channel.accuse(peer, reason)
            };
            let used = used.ok_or_else(impossible)?;
            if used == runs && self.reader.used() < runs {
                let reason = format!(
                    "exhausted: party {peer}'s file counts all {runs} runs as used; make new \
                     correlations with \
                     `tacit correlations make`"
                );
                return Err(unfit(self.reader.path(), &reason));
            }
            most = most.max(used);
        }
        Ok(most)
    }

    /// Waits until every party has counted the run.
    fn confirm(&mut self, run: u32) -> Result<()> {
        let counted = [u64::from(run)];
        for (peer, theirs) in self.exchange("count a run as used", &counted)? {
            if theirs != counted {
                let reason = format!(
                    "begins run {} of its file, but run {run} is next",
                    theirs[0]
                );
                return Err(self.channel.accuse(peer, reason));
            }
        }
        Ok(())
    }

    /// Sends words to every other party, and returns theirs, by party.
    fn exchange(&mut self, step: &str, mine: &[u64]) -> Result<Vec<(usize, Vec<u64>)>> {
        let (me, parties) = (self.channel.party(), self.channel.parties());
        let others = || (0..parties).filter(|peer| *peer != me);
        self.channel.begin(step);
        for peer in others() {
            self.channel.send(peer, mine.to_vec())?;
        }
        let mut receive = |peer| Ok((peer, self.channel.receive(peer, mine.len())?));
        others().map(&mut receive).collect()
    }

    /// Reads a column of a job, which must be the next record.
    fn column(&mut self, job: &Job, at: usize) -> Result<Vec<u64>> {
        let Some((found, words)) = self.reader.next()? else {
            return Err(Error::misuse(format!(
                "the correlations of this run are exhausted: the program asks for more ({}) than \
                 when its \
                 demand was found; make new correlations, with `--program` of a compiled program, \
                 or with what \
                 `tacit run --record` records",
                job.describe()
            )));
        };
        if found == descriptor(job, at) {
            return Ok(words);
        }
        Err(Error::misuse(format!(
            "the correlations were made for another program or other shapes: it asked for {}, \
             this one asks for {}; make new correlations, with `--program` of a compiled program, \
             or with what \
             `tacit run --record` records",
            described(&found),
            job.describe()
        )))
    }
}

impl Source for Stored {
    fn make(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        let (free, derived) = job.columns();
        let shapes = free.iter().chain(&derived).enumerate();
        let column = |(at, (shape, n)): (usize, &super::job::SizedColumn)| {
            let words = self.column(job, at)?;
            if words.len() == shape.words(*n) {
                return Ok(words);
            }
            let reason = "a record does not have the length of its column; make new correlations";
            Err(unfit(self.reader.path(), reason))
        };
        shapes.map(column).collect()
    }

    fn reading(&self) -> Reading {
        self.channel.meter().totals()
    }

    fn comparisons(&self) -> Comparisons {
        self.comparisons
    }

    fn most_ahead(&self) -> usize {
        // It must equal that of the recording session: ordering ahead differently would ask for
        // other records.
        usize::try_from(self.reader.header().ahead).unwrap_or(usize::MAX)
    }
}

fn unfit(path: &Path, reason: &str) -> Error {
    Error::setup(format!("{}: {reason}", path.display()))
}

#[cfg(test)]
mod tests;
