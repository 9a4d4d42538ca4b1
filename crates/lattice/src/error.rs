//! What can be wrong with a peer's message.

/// Why a step stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A message from the peer is too short or too long.
    #[error(transparent)]
    Length(#[from] kernels::message::WrongLength),
    /// A number from the peer that is no residue.
    #[error("number {index} of {what} from the peer is not below its modulus")]
    Residue {
        /// What the message is.
        what: &'static str,
        /// Which number of it.
        index: usize,
    },
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] kernels::stream::EntropyError),
}
