//! Bilinear maps over Z_2^64 on NVIDIA GPUs, bit for bit what the processor computes.
//!
//! - `card`: a card as a [`Device`], for any runtime;
//! - `digits`: words as signed digits of 8 bits, whose products tensor units compute;
//! - `launch`: the kernels (`kernels/*.cu`) and their arguments;
//! - `runtime`: what a card can do;
//! - `simulated`: a stand-in for a card, with the same kernels, for any machine.
//!
//! **What has run on a card: nothing yet.** The kernels run on the simulated card, and NVRTC
//! compiles them.
//!
//! No branch and no address depends on a word of an operand. Buffers on the card are wiped before
//! they are freed. Whoever controls the card, its driver or this machine sees the shares that the
//! card is given.
//!
//! `unsafe` stands in `simulated`, which calls kernels that were built as C, and in `driver`, which
//! calls NVIDIA's libraries.

mod card;
mod digits;
#[cfg(target_os = "linux")]
mod driver;
mod error;
mod launch;
mod opening;
mod places;
mod process;
mod region;
mod runtime;
mod simulated;

pub use error::Error;
pub use kernels::device::{Device, DeviceError};
pub use opening::{Rate, Report, open, probe, rate};
pub use places::Places;

use simulated::{Settings, Simulated};

/// Returns the simulated card.
#[must_use]
pub fn simulated() -> Box<dyn Device> {
    Box::new(card::Card::new(Simulated::new(Settings::default())))
}

#[cfg(test)]
mod tests;
