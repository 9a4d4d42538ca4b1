//! Vectors of words that are wiped when dropped.
//!
//! This type holds every secret, error and mask, and all values that would reveal one of them
//! together with a message. Its length is fixed when it is made, because a vector that grows leaves
//! a copy of its words in its old memory.

use zeroize::Zeroizing;

/// A vector of words that is wiped when it is dropped.
pub(crate) type Wiped = Zeroizing<Vec<u64>>;

/// Returns n zeros.
pub(crate) fn wiped(n: usize) -> Wiped {
    Zeroizing::new(vec![0; n])
}
