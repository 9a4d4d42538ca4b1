//! A program's memory: public bytes, and pieces of secret words beside them.
//!
//! A piece is some bytes of a word. Storing a word makes one piece. Storing over a part of it
//! leaves pieces of the rest, and computes nothing. Loading joins the pieces that lie there. Pieces
//! of one word in their order, as after a copy by bytes, are that word again.
//!
//! | file | what it holds |
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

/// All of a program's memory at most: with what the machine holds besides, a program takes no more
/// than 256 MiB.
pub const MOST: u64 = (1 << 28) - (1 << 24);

/// Memory with words of that kind.
pub struct Memory<Word> {
    regions: Vec<Region<Word>>,
    /// Where was looked last.
    last: usize,
    /// What lay where something was written since; the newest last.
    journals: Vec<Journal<Word>>,
}

impl<Word: Clone> Memory<Word> {
    /// Memory without a byte.
    #[must_use]
    pub fn new() -> Self {
        Self {
            regions: Vec::new(),
            last: 0,
            journals: Vec::new(),
        }
    }

    /// Adds bytes from an address on.
    ///
    /// # Errors
    /// `TooLarge` where all would be more than [`MOST`]; `NoProgram` where they would overlap.
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
            return Err(Fault::NoProgram(
                "its segments overlap each other or the stack: link it with the default script"
                    .to_owned(),
            ));
        }
        self.regions.push(Region::new(start, bytes, writable));
        Ok(())
    }

    /// The word that so many bytes are, 1 to 8, with zeros before it.
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

    /// Writes the low bytes of a word, 1 to 8.
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

    /// Bytes that everybody knows.
    ///
    /// # Errors
    /// `Unmapped`; `SecretArgument` where one of them is secret.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<&[u8]> {
        let region = self.region(address, bytes)?;
        if region.overlapping(address, bytes) {
            return Err(Fault::SecretArgument);
        }
        Ok(region.bytes(address, bytes))
    }

    /// Writes bytes that everybody knows.
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

    /// Where something is about to be written.
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
