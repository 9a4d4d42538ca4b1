//! Errors from a peer's messages.

/// The reason why a step stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A message from the peer is too short or too long.
    #[error(transparent)]
    Length(#[from] kernels::message::WrongLength),
    /// Bytes from the peer encode no element of ristretto255, or the identity.
    #[error("point {index} of the peer's base oblivious transfers is not a valid group element")]
    Point {
        /// The index of the point in the message.
        index: usize,
    },
    /// The operating system provided no randomness.
    #[error(transparent)]
    Entropy(#[from] kernels::stream::EntropyError),
}
