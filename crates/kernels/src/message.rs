//! The length check of every message from a peer.

/// The error for a message from a peer that is too short or too long.
#[derive(Debug, thiserror::Error)]
#[error("{what} takes {expected} words; the peer sent {found}")]
pub struct WrongLength {
    /// The name of the message.
    pub what: &'static str,
    /// The number of words that the message must have.
    pub expected: usize,
    /// The number of words that the message has.
    pub found: usize,
}

/// Checks that a message has `expected` words.
///
/// # Errors
/// If it has another length.
pub fn unless_length(
    what: &'static str,
    expected: usize,
    message: &[u64],
) -> Result<(), WrongLength> {
    let found = message.len();
    if found == expected {
        return Ok(());
    }
    Err(WrongLength {
        what,
        expected,
        found,
    })
}
