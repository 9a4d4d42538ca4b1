//! The process that keys, counters and links belong to.

use crate::error::{Error, Result};

/// A process, by its number.
///
/// A fork has everything twice: keys, counters, TLS records, locks that other threads held.
/// Whichever of the two went on would use masks and record numbers that the other uses too. So what
/// holds any of these remembers the process that made it, and refuses to work in another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

impl Process {
    /// The one that runs this.
    #[must_use]
    pub fn this() -> Self {
        Self(std::process::id())
    }

    /// Whether it is the one that runs this.
    #[must_use]
    pub fn is_this(self) -> bool {
        self == Self::this()
    }

    /// Refuses to go on in any other; `what` names what belongs to it, such as "this session".
    ///
    /// # Errors
    /// `Misuse`.
    pub fn check(self, what: &str) -> Result<()> {
        if self.is_this() {
            return Ok(());
        }
        let (owner, here) = (self.0, Self::this().0);
        Err(Error::misuse(format!(
            "{what} belongs to process {owner}; process {here} was forked from it and would use its keys a second \
             time: use it where it was opened, or start processes that open their own (multiprocessing's \"spawn\")"
        )))
    }

    /// A process that does not run this, for tests.
    #[must_use]
    pub fn another() -> Self {
        Self(!std::process::id())
    }
}
