//! The exact check: every protocol over words of 2 to 5 bits, all randomness enumerated. Nothing is
//! estimated: the joint distribution of what corrupt parties see and of all outputs is counted, and
//! equals that of a simulator who knows what an ideal functionality tells these parties.
//!
//! It is made on [`model`]: the protocols once more, one element at a time and for words of any
//! size, step by step as the heads in `src/replicated` and `src/additive` state them. A value of
//! the model knows who can compute it, so no party of it uses what it does not have. Three things
//! are tested:
//! - [`check`] finds no difference, for every operation and short chains ([`replicated`],
//!   [`additive`]);
//! - it does for every mutation: a mask that is dropped, biased or used twice, a bit that is sent
//!   without one, a step of truncation done wrongly ([`mutations`], which names the few that are
//!   harmless, and why);
//! - the model is what is shipped: with words of 64 bits and the streams that the parties use,
//!   every message and every output is the same, bit for bit ([`shipped`]).
//!
//! Where enumerating everything is too much, the coalition's own shares are drawn at random, with
//! all those of the others, and in the largest experiments its random values too: what holds is
//! said in [`check`].
//!
//! So it says of the shipped protocols that their masks are right if streams are uniform, and
//! correlations those of an ideal source. It says nothing of the streams, of sources (each has its
//! own tests) and of chains that are not listed.

mod additive;
mod check;
mod enumeration;
mod ideal;
mod inputs;
mod model;
mod mutations;
mod replicated;
mod shipped;
