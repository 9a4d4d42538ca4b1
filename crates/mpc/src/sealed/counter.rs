//! Counter of used runs: two equal copies, as the head of the module describes.

use super::blocks::{self, COUNTERS, Fields, Keys};
use std::fs::File;
use std::io;

const LABEL: &[u8] = b"counter";

/// Record of a file's use. Counts are ordered by time: both fields only increase.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Count {
    /// Number of runs used: all runs below this number.
    pub used: u32,
    /// Number of sessions that used a run.
    pub sessions: u32,
}

/// Two copies of the counter in a file.
pub struct Counter {
    count: Count,
    /// Index of the copy to write first: the one that is behind or torn.
    pub behind: usize,
}

impl Counter {
    /// Reads both copies. Returns `None` if neither is valid.
    pub fn read(file: &mut File, keys: &Keys) -> io::Result<Option<Self>> {
        let mut copies = [None; 2];
        for (copy, number) in copies.iter_mut().zip(COUNTERS) {
            let block = blocks::read_block(file, number)?;
            *copy = keys.verify(LABEL, &block).map(|content| {
                let mut fields = Fields(&content);
                Count {
                    used: fields.u32(),
                    sessions: fields.u32(),
                }
            });
        }
        // `None` compares below all counts.
        let behind = usize::from(copies[1] < copies[0]);
        Ok(copies[1 - behind].map(|count| Self { count, behind }))
    }

    /// Returns the later of the two copies.
    pub fn count(&self) -> Count {
        self.count
    }

    /// Records a later count, in both copies, durably.
    pub fn write(&mut self, file: &mut File, keys: &Keys, count: Count) -> io::Result<()> {
        // Set before the first byte is written: whatever fails, this process hands out nothing
        // below it again.
        self.count = count;
        let block = block(keys, count);
        for _ in 0..2 {
            blocks::write_block(file, COUNTERS[self.behind], &block)?;
            file.sync_data()?;
            self.behind = 1 - self.behind;
        }
        Ok(())
    }
}

/// Returns a copy as a block.
pub fn block(keys: &Keys, count: Count) -> [u8; blocks::BLOCK] {
    let content = blocks::content(&[&count.used.to_le_bytes(), &count.sessions.to_le_bytes()]);
    keys.authenticate(LABEL, &content)
}
