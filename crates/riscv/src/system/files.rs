//! Files as a program sees them: public bytes, or secret words.

use crate::fault::Result;
use crate::memory::Memory;
use crate::numbers::words::Words;

/// A file.
pub struct File<Word> {
    /// By which a program opens it.
    pub name: String,
    /// What lies in it, from address 0 on.
    content: Memory<Word>,
    size: u64,
    is_output: bool,
    /// Whether a program has opened it to write.
    pub was_written: bool,
}

/// What a program's file descriptor stands for.
#[derive(Clone)]
pub enum Descriptor {
    /// What is printed.
    Printed,
    /// A file by its place in the table, and where the next byte is.
    File {
        /// In the table of files.
        file: usize,
        /// Of the next byte.
        position: u64,
        /// Whether the program may write.
        writes: bool,
        /// Whether each write goes to the end.
        appends: bool,
    },
}

impl<Word: Clone> File<Word> {
    /// That a program may read: what lies in a memory from address 0 on, so many bytes.
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

    /// That a program may write, and read again.
    ///
    /// # Errors
    /// None that a memory without a byte has.
    pub fn output(name: &str) -> Result<Self> {
        let mut content = Memory::new();
        content.map(0, Vec::new(), true)?;
        let mut file = Self::input(name, content, 0);
        file.is_output = true;
        Ok(file)
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether a program may write it.
    pub fn is_output(&self) -> bool {
        self.is_output
    }

    /// Copies bytes from a position on into a program's memory, as many as there are; how many.
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

    /// Copies bytes of a program's memory to a position; what is skipped is 0.
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

    /// Gives it another size; what is new is 0.
    pub fn resize(&mut self, size: u64) -> Result<()> {
        self.content.resize(0, size)?;
        self.size = size;
        Ok(())
    }

    /// Its elements of so many bytes; what is left is no element.
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
