//! The process that keys, counters and links belong to.

use crate::error::{Error, Result};

/// A process, identified by its number.
///
/// A fork duplicates everything: keys, counters, TLS records, locks that other threads held. If
/// both processes continued, they would use the same masks and record numbers. So every object that
/// holds any of these remembers the process that made it, and refuses to work in another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

impl Process {
    /// Returns the current process.
    #[must_use]
    pub fn this() -> Self {
        Self(std::process::id())
    }

    /// Returns whether this is the current process.
    #[must_use]
    pub fn is_this(self) -> bool {
        self == Self::this()
    }

    /// Refuses to continue in any other process; `what` names the object that belongs to this one,
    /// such as "this session".
    ///
    /// # Errors
    /// `Misuse` in another process.
    pub fn check(self, what: &str) -> Result<()> {
        if self.is_this() {
            return Ok(());
        }
        let (owner, here) = (self.0, Self::this().0);
        Err(Error::misuse(format!(
            "{what} belongs to process {owner}; process {here} was forked from it and would use \
             its keys a second \
             time: use it where it was opened, or start processes that open their own \
             (multiprocessing's \"spawn\")"
        )))
    }

    /// Returns a process other than the current one, for tests.
    #[must_use]
    pub fn another() -> Self {
        Self(!std::process::id())
    }
}
