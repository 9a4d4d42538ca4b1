//! Files as a program sees them: public bytes, or secret words.

use crate::fault::Result;
use crate::memory::Memory;
use crate::numbers::words::Words;

/// A file that a program can open.
pub struct File<Word> {
    /// The name by which the program opens the file.
    pub name: String,
    /// The content, from address 0.
    content: Memory<Word>,
    size: u64,
    is_output: bool,
    /// Whether the program has opened the file for writing.
    pub was_written: bool,
}

/// The target of a program's file descriptor.
#[derive(Clone)]
pub enum Descriptor {
    /// Standard output or standard error.
    Printed,
    /// An open file, with a position.
    File {
        /// The index in the table of files.
        file: usize,
        /// The position of the next byte.
        position: u64,
        /// Whether the program may write to it.
        writes: bool,
        /// Whether every write goes to the end.
        appends: bool,
    },
}

impl<Word: Clone> File<Word> {
    /// Creates a file that a program may read: the first `size` bytes of a memory.
    #[must_use]
    pub fn input(name: &str, content: Memory<Word>, size: u64) -> Self {
        Self {
            name: name.to_owned(),
            content,
            size,
            is_output: false,
            was_written: false,
        }
    }

    /// Creates an empty file that a program may write, and read again.
    ///
    /// # Errors
    /// None in practice: the memory is empty.
    pub fn output(name: &str) -> Result<Self> {
        let mut content = Memory::new();
        content.map(0, Vec::new(), true)?;
        let mut file = Self::input(name, content, 0);
        file.is_output = true;
        Ok(file)
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether a program may write to the file.
    pub fn is_output(&self) -> bool {
        self.is_output
    }

    /// Copies bytes from a position into a program's memory, up to the end of the file. Returns how
    /// many.
    pub fn read(
        &self,
        position: u64,
        memory: &mut Memory<Word>,
        address: u64,
        bytes: u64,
    ) -> Result<u64> {
        let bytes = bytes.min(self.size.saturating_sub(position));
        memory.copy(address, &self.content, position, bytes)?;
        Ok(bytes)
    }

    /// Copies bytes from a program's memory to a position; bytes that are skipped over are 0.
    pub fn write(
        &mut self,
        position: u64,
        memory: &Memory<Word>,
        address: u64,
        bytes: u64,
    ) -> Result<()> {
        let end = position.saturating_add(bytes);
        if bytes > 0 && end > self.size {
            self.resize(end)?;
        }
        self.content.copy(position, memory, address, bytes)
    }

    /// Resizes the file; new bytes are 0.
    pub fn resize(&mut self, size: u64) -> Result<()> {
        self.content.resize(0, size)?;
        self.size = size;
        Ok(())
    }

    /// Returns the elements of the given number of bytes; a shorter rest at the end is ignored.
    pub fn elements<W: Words<Word = Word>>(
        &mut self,
        words: &mut W,
        bytes: u64,
    ) -> Result<Vec<Word>> {
        let count = self.size / bytes;
        let mut element = |at| self.content.load(words, bytes * at, bytes);
        (0..count).map(&mut element).collect()
    }
}
