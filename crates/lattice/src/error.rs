//! Errors from a peer's messages.

/// The reason why a step stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A message from the peer is too short or too long.
    #[error(transparent)]
    Length(#[from] kernels::message::WrongLength),
    /// A number from the peer is not a residue.
    #[error("number {index} of {what} from the peer is not below its modulus")]
    Residue {
        /// The name of the message.
        what: &'static str,
        /// The index of the number in the message.
        index: usize,
    },
    /// The operating system provided no randomness.
    #[error(transparent)]
    Entropy(#[from] kernels::stream::EntropyError),
}
