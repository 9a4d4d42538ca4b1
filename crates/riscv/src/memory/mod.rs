//! A program's memory: public bytes, and pieces of secret words among them.
//!
//! A piece is a range of bytes of a word. A store of a word creates one piece. A store over a part
//! of a piece leaves pieces of the rest, and computes nothing. A load joins the pieces at its
//! address. If the pieces of one word lie in their order, as after a byte-wise copy, the load
//! returns that word.
//!
//! | file | contents |
//! | --- | --- |
//! | `copying` | copies of bytes from one memory to another |
//! | [`region`] | consecutive bytes, and the pieces of words among them |
//! | [`versions`] | undoing writes, and merging two versions by a secret condition |

mod copying;
mod region;
mod versions;

pub use versions::Changes;

use crate::fault::{Fault, Result};
use crate::numbers::words::Words;
use region::Region;
use versions::Journal;

/// The maximum size of a program's memory. With the machine's own data a program takes no more than
/// 256 MiB.
pub const MOST: u64 = (1 << 28) - (1 << 24);

/// Memory over words of one kind.
pub struct Memory<Word> {
    regions: Vec<Region<Word>>,
    /// The index of the region of the last access.
    last: usize,
    /// The previous contents of places written since each beginning; the newest journal is last.
    journals: Vec<Journal<Word>>,
}

impl<Word: Clone> Memory<Word> {
    /// Creates memory without any bytes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            regions: Vec::new(),
            last: 0,
            journals: Vec::new(),
        }
    }

    /// Maps bytes at an address.
    ///
    /// # Errors
    /// `TooLarge` if the total would exceed [`MOST`]; `InvalidProgram` if regions would overlap.
    pub fn map(&mut self, start: u64, bytes: Vec<u8>, writable: bool) -> Result<()> {
        let size = bytes.len() as u64;
        let wanted = self.regions.iter().map(Region::size).sum::<u64>() + size;
        if wanted > MOST {
            return Err(Fault::TooLarge { wanted, most: MOST });
        }
        let end = start.checked_add(size);
        let clear = |end: u64| {
            let apart = |region: &Region<Word>| end <= region.start() || start >= region.end();
            self.regions.iter().all(apart)
        };
        if !end.is_some_and(clear) {
            return Err(Fault::InvalidProgram(
                "its segments overlap each other or the stack: link it with the default script"
                    .to_owned(),
            ));
        }
        self.regions.push(Region::new(start, bytes, writable));
        Ok(())
    }

    /// Loads 1 to 8 bytes as a word, extended with zeros.
    ///
    /// # Errors
    /// `Unmapped`.
    #[inline]
    pub fn load<W: Words<Word = Word>>(
        &mut self,
        words: &mut W,
        address: u64,
        bytes: u64,
    ) -> Result<Word> {
        let region = self.region(address, bytes)?;
        Ok(region.load(words, address, bytes))
    }

    /// Stores the low 1 to 8 bytes of a word.
    ///
    /// # Errors
    /// `Unmapped`, `ReadOnly`.
    #[inline]
    pub fn store<W: Words<Word = Word>>(
        &mut self,
        words: &W,
        address: u64,
        bytes: u64,
        word: &Word,
    ) -> Result<()> {
        let region = self.writable(address, bytes)?;
        region.store(words, address, bytes, word);
        Ok(())
    }

    /// Checks that bytes may be written.
    ///
    /// # Errors
    /// `Unmapped`, `ReadOnly`.
    pub fn may_store(&mut self, address: u64, bytes: u64) -> Result<()> {
        if self.region(address, bytes)?.writable() {
            Ok(())
        } else {
            Err(Fault::ReadOnly { address })
        }
    }

    /// Reads public bytes.
    ///
    /// # Errors
    /// `Unmapped`; `SecretArgument` if one of the bytes is secret.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<&[u8]> {
        let region = self.region(address, bytes)?;
        if region.overlapping(address, bytes) {
            return Err(Fault::SecretArgument);
        }
        Ok(region.bytes(address, bytes))
    }

    /// Writes public bytes.
    ///
    /// # Errors
    /// `Unmapped`, `ReadOnly`.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let region = self.writable(address, bytes.len() as u64)?;
        region.write(address, bytes);
        Ok(())
    }

    #[inline]
    fn region(&mut self, address: u64, bytes: u64) -> Result<&mut Region<Word>> {
        if !self
            .regions
            .get(self.last)
            .is_some_and(|region| region.has(address, bytes))
        {
            let found = self
                .regions
                .iter()
                .position(|region| region.has(address, bytes));
            self.last = found.ok_or(Fault::Unmapped { address, bytes })?;
        }
        Ok(&mut self.regions[self.last])
    }

    /// Returns the region for a write, and records its old content in the newest journal.
    #[inline]
    fn writable(&mut self, address: u64, bytes: u64) -> Result<&mut Region<Word>> {
        if !self.region(address, bytes)?.writable() {
            return Err(Fault::ReadOnly { address });
        }
        if !self.journals.is_empty() {
            self.remember(address, bytes);
        }
        Ok(&mut self.regions[self.last])
    }
}

impl<Word: Clone> Default for Memory<Word> {
    fn default() -> Self {
        Self::new()
    }
}
