//! Files of correlations that were made ahead: sealed at rest, each used once, even across crashes.
//!
//! A file belongs to one party and holds a number of *runs*. A run is a sequence of records. Each
//! record is a descriptor and words, whose meaning is the caller's. The parties' files that were
//! made together share their [`Header`], except for the party. [`Writer`] makes a file once and
//! whole. [`Reader`] hands out each run once: a run is recorded as used, durably, before its first
//! record is read.
//!
//! # What it protects against
//! An attacker who has the file but not the party's private key learns the header, the number and
//! length of the records, and how many runs are used. The attacker cannot alter, reorder, truncate
//! or exchange records, runs or files of the same party without an error. A crash at any instant,
//! of the process or of the machine, may waste a run, but never lets one be used twice.
//!
//! This layer alone cannot detect a **file restored to an earlier state**, from a copy, a backup or
//! a machine's snapshot. Such a file was once right, and its runs would be used a second time. So
//! the parties compare [`Reader::used`] at the start of every session and begin at the largest. If
//! all files were restored, no party can detect it.
//!
//! # Layout
//! Integers are little endian. Four blocks of 4096 bytes, then records and index:
//!
//! | block | content |
//! | --- | --- |
//! | 0 | the header, a salt, and an unkeyed checksum that tells damage from a wrong key |
//! | 1, 3 | the counter: runs used, sessions; two equal copies |
//! | 2 | the position of the index, its hash, the file's length; zero until the file is finished |
//!
//! The last 32 bytes of each block are a BLAKE3 MAC. Records are ChaCha20-Poly1305 (RFC 8439) in
//! chunks of at most 16 MiB, one after the other: length with the flag "last of its record",
//! ciphertext, tag. The plaintext of a record is the descriptor's length (u16), the descriptor, the
//! number of words (u64), and the words. The index has the offset and the number of records of each
//! run.
//!
//! # Keys
//! The root key is BLAKE3's derive_key of the party's secret and the identifier shared by files
//! made together. Block 0 is authenticated under the root key. All else is authenticated or
//! encrypted under keys derived from the root key and block 0, whose salt is fresh. So two files
//! never share a key, even if an identifier is used again. The nonce of a chunk is the run and the
//! number of the chunk within the run, so that no nonce repeats under a key. The associated data
//! are the hash of block 0, the run, the number of the record, and the flag.
//!
//! # The counter
//! Before a run begins, both copies are written, and each is made durable before the next is
//! touched. So both copies count a run that was begun: whichever single copy a crash tears or a
//! disk loses, the other counts it. Runs only increase, so the larger of two valid copies is the
//! later one. The copy that is behind is written first. If neither copy is valid, the file is
//! refused.

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

/// Length limit of a note, in bytes.
pub const LONGEST_NOTE: usize = 1024;
/// Length limit of a descriptor, in bytes.
pub const LONGEST_DESCRIPTOR: usize = 4096;
/// Largest number of words in a record.
pub const MOST_WORDS: usize = 1 << 27;
/// Largest number of runs in a file.
pub const MOST_RUNS: u32 = 1 << 20;

/// Largest number of bytes that are sealed at once.
const CHUNK: usize = 1 << 24;
/// Bytes of a seal's tag.
const TAG: usize = 16;
/// Bytes before each chunk: its length and flag.
const CHUNK_HEAD: usize = 4;
/// Flag in a chunk's length: the chunk is the last of its record.
const LAST: u32 = 1 << 31;

/// Remedy for a file that can no longer be used.
const MAKE_NEW: &str = "make new correlations with `tacit correlations make`";

/// Reason and remedy for a file that another process has open.
const BUSY: &str = "is in use by another process; wait until it ends, or use another file";

/// Header that all parties' files made together share, except for the party. It is public, and
/// bound into every seal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Identifier of files made together: random, the same in all parties' files.
    pub id: [u8; 16],
    /// Party that the file belongs to.
    pub party: u32,
    /// Number of parties.
    pub parties: u32,
    /// Number of runs in the file, at most [`MOST_RUNS`].
    pub runs: u32,
    /// Version of the meaning of descriptors and words, set by the caller.
    pub content: u32,
    /// Largest number of words of a batch that the program ordered ahead when its demand was
    /// recorded.
    pub ahead: u64,
    /// Description for people: protocol, source, ... At most [`LONGEST_NOTE`] bytes.
    pub note: String,
}

impl Header {
    /// Returns why the header is invalid, if it is.
    fn invalid_reason(&self) -> Option<String> {
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

fn error_at(path: &Path, reason: &str) -> Error {
    Error::setup(format!("{}: {reason}", path.display()))
}

/// Returns the error of a file whose content is not what was written. `place` is, for example, "in
/// its index".
fn damaged(path: &Path, place: &str) -> Error {
    error_at(
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

/// Locks the file for this process, until it is closed.
fn lock(file: &File, path: &Path) -> Result<()> {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK {
            error_at(path, BUSY)
        } else {
            error_at(
                path,
                "cannot be locked; put it on a file system that supports locks",
            )
        }
    })
}
