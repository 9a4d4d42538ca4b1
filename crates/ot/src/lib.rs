//! Oblivious transfer between two parties: setup, extension and forms, without input or output.
//!
//! In a transfer, the sender has two pads, and the receiver has the one that its bit chose. The
//! sender does not learn the bit, and the receiver does not learn the other pad. Everything here is
//! semi-honest: both parties follow the protocol. Functions take and return messages as words,
//! which the caller sends. Messages from a peer are checked for length and validity before they are
//! used, and nothing in them can cause a panic.
//!
//! - [`Setup`]: base transfers in both directions, once for each pair of parties;
//! - [`Sender`] and [`Receiver`]: any number of transfers from them;
//! - [`Offered`] and [`Chosen`]: transfers to be turned into a form, each once;
//! - [`products`]: products of scalars that one end knows with values that the other knows.
//!
//! ```
//! # fn main() -> Result<(), ot::Error> {
//! // Both ends run the same steps and exchange the messages.
//! let (one, first) = ot::Setup::begin(b"session 7, parties 0 and 1", true)?;
//! let (two, second) = ot::Setup::begin(b"session 7, parties 0 and 1", false)?;
//! let (one, first, two, second) = {
//!     let (one, reply) = one.reply(&second)?;
//!     let (two, other) = two.reply(&first)?;
//!     (one, reply, two, other)
//! };
//! let (one, first, two, second) = {
//!     let (one, corrections) = one.correct(&second)?;
//!     let (two, other) = two.correct(&first)?;
//!     (one, corrections, two, other)
//! };
//! let (mut one, mut two) = (one.finish(&second)?, two.finish(&first)?);
//!
//! let choices = [0b10];
//! let (message, chosen) = one.receiver.extend(&choices);
//! let (zeros, ones) = two.sender.extend(choices.len(), &message)?.random();
//! let pads = chosen.random();
//! assert!(pads[0] == zeros[0] && pads[1] == ones[1]);
//! # Ok(())
//! # }
//! ```

mod base;
mod binding;
mod error;
mod extension;
mod forms;
mod hash;
mod leaves;
pub mod products;
mod rows;
mod setup;
mod silent;
mod tree;

#[cfg(test)]
mod secrecy;
#[cfg(test)]
mod wiping;

pub use error::Error;
pub use extension::{DEPTH, Receiver, Sender};
pub use forms::{Chosen, Offered, correlate_words};
pub use setup::{
    CORRECTION_WORDS, Corrected, FIRST_WORDS, Pair, REPLY_WORDS, Replied, Setup, correction_words,
};
pub use silent::Refill;
