//! Words that leave nothing behind.
//!
//! Whatever holds a secret, an error, a mask, or something that tells one of them together with
//! what is sent, is of this type. Its length is known when it is made: a vector that grows leaves
//! its words where it was before.

use zeroize::Zeroizing;

/// Words that are wiped when they are dropped.
pub(crate) type Wiped = Zeroizing<Vec<u64>>;

/// So many zeros.
pub(crate) fn wiped(n: usize) -> Wiped {
    Zeroizing::new(vec![0; n])
}
