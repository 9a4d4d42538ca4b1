//! What can be wrong with a peer's message.

/// Why a step stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A message from the peer is too short or too long.
    #[error(transparent)]
    Length(#[from] kernels::message::WrongLength),
    /// Bytes from the peer that encode no element of ristretto255, or the identity.
    #[error("point {index} of the peer's base oblivious transfers is not a valid group element")]
    Point {
        /// Which point of the message.
        index: usize,
    },
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] kernels::stream::EntropyError),
}
