//! The exact check: every protocol over words of 2 to 5 bits, with all randomness enumerated.
//! Nothing is estimated. The joint distribution of the view of corrupt parties and of all outputs
//! is counted. It must equal that of a simulator that knows only what an ideal functionality gives
//! to these parties.
//!
//! The check runs on [`model`]. The model implements the protocols again, one element at a time and
//! for words of any size, step by step as the heads in `src/replicated` and `src/additive` state
//! them. A value of the model records who can compute it, so no party can use a value that it does
//! not have. Four things are tested:
//! - [`check`] finds no difference, for every operation and short chains ([`replicated`],
//!   [`additive`]);
//! - it finds a difference for every mutation: a mask that is dropped, biased or used twice, a bit
//!   that is sent without one, a step of truncation done wrongly ([`mutations`] names the few that
//!   are harmless, and why);
//! - a party that adds to its messages sees nothing more ([`cheating`]);
//! - the model matches the shipped code: with words of 64 bits and the streams that the parties
//!   use, every message and every output is the same, bit for bit ([`shipped`]).
//!
//! If a complete enumeration is too much, the coalition's own shares are drawn at random, combined
//! with all shares of the others. In the largest experiments, its random values are drawn too;
//! [`check`] states what holds then.
//!
//! So the check shows that the masks of the shipped protocols are right if streams are uniform, and
//! correlations those of an ideal source. It shows nothing about the streams, about sources (each
//! has its own tests), or about chains that are not listed.

mod additive;
mod cheating;
mod check;
mod enumeration;
mod ideal;
mod inputs;
mod model;
mod mutations;
mod replicated;
mod shipped;
