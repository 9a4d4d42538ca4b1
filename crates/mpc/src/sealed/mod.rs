//! Files of correlations that were made ahead: sealed at rest, each used once, even across crashes.
//!
//! A file belongs to one party and holds a number of *runs*; a run is a sequence of records, each a
//! descriptor and words, whose meaning is the caller's. The parties' files of one making share
//! their [`Header`], but for the party. [`Writer`] makes a file once and whole; [`Reader`] hands
//! out each
//! run once: a run is recorded as used, durably, before its first record is read.
//!
//! # What it protects against
//! Who has the file and not the party's private key learns the header, the number and length of the
//! records, and how many runs are used; and cannot alter, reorder, cut off or exchange records,
//! runs or files of the same party without an error. A crash at any instant, of the process or of
//! the machine, may waste a run, and never lets one be used twice.
//!
//! What this layer alone cannot notice is a **file put back to an earlier state**, from a copy, a
//! backup or a machine's snapshot: it is exactly what was once right, and its runs would be used a
//! second time. The parties therefore compare [`Reader::used`] at the start of every session and
//! begin at the largest; where all files were put back, nobody can tell.
//!
//! # Layout
//! Integers are little endian. Four blocks of 4096 bytes, then records and index:
//!
//! | block | content |
//! | --- | --- |
//! | 0 | the header, a salt, an unkeyed checksum: it tells damage from a wrong key |
//! | 1, 3 | the counter: runs used, sessions; twice the same |
//! | 2 | where the index lies, its hash, the file's length; zero until the file is finished |
//!
//! The last 32 bytes of each block are a BLAKE3 MAC. Records are ChaCha20-Poly1305 (RFC 8439) in
//! chunks
//! of at most 16 MiB, one after the other: length with the flag "last of its record", ciphertext,
//! tag. The plaintext of a record is the descriptor's length (u16), the descriptor, the number of
//! words (u64), the words. The index has offset and number of records of each run.
//!
//! # Keys
//! The root is BLAKE3's derive_key of the party's secret and the making's identifier. Block 0 is
//! authenticated under the root; all else under keys derived from root and block 0, whose salt is
//! fresh: two files never share a key, even if a making is repeated under one identifier. The nonce
//! of a chunk is run and number of the chunk within the run, so that none repeats under a key. The
//! associated data are the hash of block 0, run, number of the record, and the flag.
//!
//! # The counter
//! Both copies are written, and each made durable before the next is touched, before a run begins.
//! So
//! a run that was begun is in both: whichever single copy a crash tears or a disk loses, the other
//! counts it. Runs only increase, so the larger of two valid copies is the later. The copy that is
//! behind is written first. When neither is valid, the file is refused.

mod blocks;
mod counter;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::Reader;
pub use writer::Writer;

use crate::{Error, Result};
use std::fs::File;
use std::path::Path;

/// Longest note, in bytes.
pub const LONGEST_NOTE: usize = 1024;
/// Longest descriptor, in bytes.
pub const LONGEST_DESCRIPTOR: usize = 4096;
/// Most words in a record.
pub const MOST_WORDS: usize = 1 << 27;
/// Most runs in a file.
pub const MOST_RUNS: u32 = 1 << 20;

/// Most bytes that are sealed at once.
const CHUNK: usize = 1 << 24;
/// Bytes of a seal's tag.
const TAG: usize = 16;
/// Bytes before each chunk: its length and flag.
const CHUNK_HEAD: usize = 4;
/// Flag in a chunk's length: the last of its record.
const LAST: u32 = 1 << 31;

/// What to do about a file that cannot be used any more.
const MAKE_NEW: &str = "make new correlations with `tacit correlations make`";

/// What to do about a file that another process has.
const BUSY: &str = "is in use by another process; wait until it ends, or use another file";

/// What all parties' files of one making share, and whose this one is. Public, and bound into every
/// seal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Identifier of the making: random, the same in all parties' files.
    pub id: [u8; 16],
    /// The party whose file this is.
    pub party: u32,
    /// Number of parties.
    pub parties: u32,
    /// Number of runs in the file, at most [`MOST_RUNS`].
    pub runs: u32,
    /// Version of what descriptors and words mean, the caller's.
    pub content: u32,
    /// Words of a batch that the program ordered ahead at most when its demand was recorded.
    pub ahead: u64,
    /// For people: protocol, source, ... At most [`LONGEST_NOTE`] bytes.
    pub note: String,
}

impl Header {
    /// Why the header cannot be, if so.
    fn mistake(&self) -> Option<String> {
        let (party, parties, runs) = (self.party, self.parties, self.runs);
        if party >= parties {
            Some(format!("there is no party {party} among {parties}"))
        } else if runs == 0 || runs > MOST_RUNS {
            Some(format!("{runs} runs; a file has 1 to {MOST_RUNS}"))
        } else if self.note.len() > LONGEST_NOTE {
            let length = self.note.len();
            Some(format!(
                "a note of {length} bytes; it has at most {LONGEST_NOTE}"
            ))
        } else {
            None
        }
    }
}

fn wrong(path: &Path, reason: &str) -> Error {
    Error::setup(format!("{}: {reason}", path.display()))
}

/// The error of a file whose content is not what was written; `place` is such as "in its index".
fn damaged(path: &Path, place: &str) -> Error {
    wrong(
        path,
        &format!("damaged or tampered with {place}; {MAKE_NEW}"),
    )
}

fn check_secret(secret: &[u8]) -> Result<()> {
    if secret.is_empty() {
        return Err(Error::misuse(
            "correlations are sealed with the party's private key, which is empty here",
        ));
    }
    Ok(())
}

/// Takes the file for this process, until it is closed.
fn lock(file: &File, path: &Path) -> Result<()> {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK {
            wrong(path, BUSY)
        } else {
            wrong(
                path,
                "cannot be locked; put it on a file system that has locks",
            )
        }
    })
}
