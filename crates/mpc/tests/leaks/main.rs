//! No party learns anything from what it receives; and each mask is needed for that.
//!
//! Whatever randomness the adversary knows is set to zero, so that only what it does not know can
//! hide a secret from it. What it sees must be uniform all the same. Then the ranges of the unknown
//! randomness are zeroed one at a time, and every time the test must see it.

mod additive;
mod operations;
mod replicated;
