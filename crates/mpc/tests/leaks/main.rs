//! Tests that no party learns anything from what it receives, and that each mask is needed for
//! that.
//!
//! All randomness that the adversary knows is set to zero, so that only unknown randomness can hide
//! a secret from it. Its view must still be uniform. Then the ranges of the unknown randomness are
//! zeroed one at a time, and every time the test must detect it.

mod additive;
mod operations;
mod replicated;
