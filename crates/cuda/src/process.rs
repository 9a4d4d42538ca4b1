//! The process that opened a card. A fork of it has neither the card nor the threads that wait for
//! it.

use crate::error::{Error, Result};

/// The process that opened a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

impl Process {
    /// Returns the one that runs this.
    pub fn this() -> Self {
        Self(std::process::id())
    }

    /// Checks that this process is still the one.
    pub fn check(self) -> Result<()> {
        match self == Self::this() {
            true => Ok(()),
            false => Err(Error::AfterFork),
        }
    }

    /// Returns another process than this one.
    #[cfg(test)]
    pub fn another() -> Self {
        Self(std::process::id() ^ 1)
    }
}
