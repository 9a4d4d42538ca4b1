//! What can be wrong with a peer's message.

/// Why a step stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A message from the peer is too short or too long.
    #[error("{what} takes {expected} words; the peer sent {found}")]
    Length {
        /// What the message is.
        what: &'static str,
        /// Words it must have.
        expected: usize,
        /// Words it has.
        found: usize,
    },
    /// Bytes from the peer that encode no element of ristretto255, or the identity.
    #[error("point {index} of the peer's base oblivious transfers is not a valid group element")]
    Point {
        /// Which point of the message.
        index: usize,
    },
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] ring::stream::EntropyError),
}

impl Error {
    /// Refuses a message of another length than `expected`.
    pub(crate) fn unless_length(
        what: &'static str,
        expected: usize,
        message: &[u64],
    ) -> Result<(), Self> {
        let found = message.len();
        if found == expected {
            return Ok(());
        }
        Err(Self::Length {
            what,
            expected,
            found,
        })
    }
}
