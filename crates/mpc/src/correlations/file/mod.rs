//! Correlations from a file that was made ahead, by any other source, in a session of its own.
//!
//! A program asks for the same jobs whenever it runs on the same shapes. A session can record them
//! ([`super::Demand`]); [`crate::preprocessing`] has a source do them as often as wanted, each time
//! as one *run* of the parties' files ([`crate::sealed`]), and a later session takes a run in place
//! of the source's work. Nobody declares anything by hand, and a program that asks for something
//! else is told so.
//!
//! **Once.** A run of which anything was used is never begun again, as long as one party keeps its
//! own file from being put back to an earlier state. A session
//!
//! 1. compares the files, which must be of one making, and their counts of used runs. All parties
//!    begin the
//!    run at the *greatest* count: one that no party has counted;
//! 2. has each party count it, durably;
//! 3. has each tell the others, and reads the first record once all have told.
//!
//! So when anything of run r is used, every party's file counts it (2 and 3), that of the party
//! which keeps its own for good. All parties take part in every session, therefore its count is
//! among those that are compared, and every later session begins above r (1). A crash or a failed
//! start between 1 and 2 leaves some files behind the others, any number of such starts by any
//! number of runs, and so does a copy that was put back. All that follows is that a party's file
//! skips runs, and a skipped run is not used later either, as a file's own count only grows.
//! Without 3 it would not hold: a party that has counted could send what is masked by run r to one
//! that crashed before it did, and if it then put its file back, r would be begun again.
//!
//! Where all files are put back nobody can tell.
//!
//! **Trust.** What the source that made the file was trusted with; and that nobody reads a party's
//! file together with its private key.

use super::Source;
use super::job::{GUARDED, Job, VERSION};
use crate::sealed::{Reader, Writer};
use crate::{Error, Result};
use net::{Channel, Reading};
use std::path::{Path, PathBuf};

/// Where a party's file lies, and what it is sealed with.
#[derive(Clone)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The party's private key, PEM.
    pub secret: String,
}

/// Appends the columns of a job, a record for each.
pub(crate) fn append(writer: &mut Writer, job: &Job, columns: &[Vec<u64>]) -> Result<()> {
    let append = |(at, column): (usize, &Vec<u64>)| writer.append(&descriptor(job, at), column);
    columns.iter().enumerate().try_for_each(append)
}

/// What a record is of: the job, and which of its columns.
fn descriptor(job: &Job, column: usize) -> Vec<u8> {
    let mut words = job.encode();
    words.push(column as u64);
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// For people: the job that a descriptor names.
fn described(descriptor: &[u8]) -> String {
    let words: Vec<u64> = descriptor
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of eight bytes")))
        .collect();
    let job = words.split_last().map(|(_, job)| Job::decode(job));
    job.and_then(Result::ok)
        .map_or_else(|| "something else".to_owned(), |job| job.describe())
}

/// A run of a file.
pub(crate) struct Stored {
    channel: Channel,
    reader: Reader,
}

impl Stored {
    /// Begins a run that no party has used, with all others.
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
        if !(VERSION..=GUARDED).contains(&content) {
            let reason = format!(
                "its records are of version {content}, where this release reads {VERSION} to {GUARDED}; make new \
                 correlations with `tacit correlations make`"
            );
            return Err(unfit(&place.path, &reason));
        }
        Ok(Self { channel, reader })
    }

    /// The first run that no party has used.
    fn compare(&mut self) -> Result<u32> {
        let (runs, mut most) = (self.reader.header().runs, self.reader.used());
        let mut mine = net::bytes::to_words(&self.reader.header().id);
        mine.push(u64::from(most));
        for (peer, theirs) in self.exchange("compare correlation files", &mine)? {
            if theirs[..2] != mine[..2] {
                let reason = format!(
                    "party {peer} has a file of another making; use the files that were made together"
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
                    "exhausted: party {peer}'s file counts all {runs} runs as used; make new correlations with \
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
                    "begins run {} of its file where run {run} is next",
                    theirs[0]
                );
                return Err(self.channel.accuse(peer, reason));
            }
        }
        Ok(())
    }

    /// Sends words to every other party; theirs, by party.
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

    /// A column of a job, which must be the next record.
    fn column(&mut self, job: &Job, at: usize) -> Result<Vec<u64>> {
        let Some((found, words)) = self.reader.next()? else {
            return Err(Error::misuse(format!(
                "the correlations of this run are exhausted: the program asks for more ({}) than when its \
                 demand was found; make new correlations, with `--program` of a compiled program, or with what \
                 `tacit run --record` records",
                job.describe()
            )));
        };
        if found == descriptor(job, at) {
            return Ok(words);
        }
        Err(Error::misuse(format!(
            "the correlations were made for another program or other shapes: it asked for {}, \
             this one asks for {}; make new correlations, with `--program` of a compiled program, or with what \
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
            let reason = "a record is not as long as what it is; make new correlations";
            Err(unfit(self.reader.path(), reason))
        };
        shapes.map(column).collect()
    }

    fn reading(&self) -> Reading {
        self.channel.meter().totals()
    }

    /// As in the session whose demand it was.
    fn guards(&self) -> bool {
        self.reader.header().content == GUARDED
    }

    fn most_ahead(&self) -> usize {
        // What orders more than it asks for would ask for another record.
        usize::try_from(self.reader.header().ahead).unwrap_or(usize::MAX)
    }
}

fn unfit(path: &Path, reason: &str) -> Error {
    Error::setup(format!("{}: {reason}", path.display()))
}

#[cfg(test)]
mod tests;
