//! The one check of every message: that it has as many words as were agreed.

/// A message from a peer is too short or too long.
#[derive(Debug, thiserror::Error)]
#[error("{what} takes {expected} words; the peer sent {found}")]
pub struct WrongLength {
    /// What the message is.
    pub what: &'static str,
    /// Words it must have.
    pub expected: usize,
    /// Words it has.
    pub found: usize,
}

/// Refuses a message of another length than `expected`.
///
/// # Errors
/// If it has another.
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
