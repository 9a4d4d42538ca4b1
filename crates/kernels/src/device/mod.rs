//! What evaluates bilinear maps: this processor, or a card next to it.
//!
//! A party holds one [`Device`] for as long as its session lasts, and no other party uses it. All
//! devices compute the same words, bit for bit, so each party chooses its own. Of this choice other
//! parties learn at most which [thirds](Device::thirds) it evaluates. What a device does not
//! compute faster than the processor, such as small or elementwise products, it may leave to
//! [`Cpu`].
//!
//! **Operands that stay.** An operand may have a [`Name`]. A device may keep its words under that
//! name and read them from its own memory the next time. The caller guarantees that a name stands
//! for the same words until it is [forgotten](Device::forget).
//!
//! **Secrecy.** Operands are shares. No device branches on words or indexes by them, and a device
//! that copies them wipes its copies before it gives their memory back. Whoever controls a device
//! sees the shares that it is given.

mod cpu;

pub use cpu::Cpu;

use crate::bilinear::Bilinear;
use crate::third::{Third, Thirds};

/// Something that evaluates bilinear maps over Z_2^64.
pub trait Device: Send + Sync {
    /// Returns the name by which the device is chosen, such as "cpu".
    fn kind(&self) -> &'static str;

    /// Computes out = Σ map(x, y) over the terms, in the ring. There are one to three terms, or one
    /// or two of an elementwise map.
    ///
    /// # Errors
    /// If the device cannot compute it. `out` is then arbitrary.
    ///
    /// # Panics
    /// If an operand or `out` has another length than the map says.
    fn bilinear(&self, map: &Bilinear, out: &mut [u64], terms: &[Term]) -> Result<(), DeviceError>;

    /// Returns the thirds of products that the device evaluates, and evaluates faster than two
    /// products.
    fn thirds(&self) -> Thirds {
        Thirds::NONE
    }

    /// Computes a party's third ([`crate::third`]) of the map from its two parts of both operands.
    ///
    /// # Errors
    /// As [`Device::bilinear`].
    ///
    /// # Panics
    /// Unless the map [has thirds](Bilinear::has_thirds) and the device [evaluates](Self::thirds)
    /// this one.
    fn third(
        &self,
        third: Third,
        map: &Bilinear,
        _out: &mut [u64],
        _parts: [Term; 2],
    ) -> Result<(), DeviceError> {
        panic!("no {third:?} of a {} by {}", map.name(), self.kind())
    }

    /// Forgets all parts of an operand. Its name may stand for other words from here on. Does
    /// nothing if none is kept under the name, or if the device has failed.
    fn forget(&self, operand: u64);

    /// Returns the memory of the device; `None` if it has none of its own.
    ///
    /// # Errors
    /// If the device has failed.
    fn memory(&self) -> Result<Option<Memory>, DeviceError>;

    /// Returns what the device has done since it was opened.
    fn counters(&self) -> Counters;
}

/// One product of a sum.
#[derive(Clone, Copy)]
pub struct Term<'a> {
    /// The left operand.
    pub x: Operand<'a>,
    /// The right operand.
    pub y: Operand<'a>,
}

/// Words that a map takes: those of one slice, or the sums of those of two.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    words: &'a [u64],
    plus: Option<&'a [u64]>,
    name: Option<Name>,
}

/// The name of words that may stay on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Name {
    /// The operand, as the party's program calls it.
    pub operand: u64,
    /// Which of its parts: components, sums of them, or what a protocol derives from them.
    pub part: u8,
}

/// The memory of a device, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Memory {
    /// All that it has.
    pub total: u64,
    /// What is free, for any process.
    pub free: u64,
    /// What this device's named operands take.
    pub named: u64,
}

/// What a device has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// The calls of [`Device::bilinear`] and [`Device::third`] that it computed itself, and did not
    /// leave to the processor.
    pub products: u64,
    /// The bytes that were copied to it and from it.
    pub bytes_copied: u64,
}

/// Why a device cannot be opened, or cannot compute. Names sizes, and never a value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeviceError {
    /// It cannot be opened, or not be used in this process.
    #[error("{what}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// Its memory does not suffice.
    #[error("{operation} needs {needed} bytes of the card's memory, and {free} are free")]
    Memory {
        /// The operation, with its sizes.
        operation: String,
        /// The bytes that it needs at once.
        needed: u64,
        /// The bytes that are free.
        free: u64,
    },
    /// Memory does not suffice for a call whose needs the driver does not tell.
    #[error("{operation} found too little memory, on the card or on this machine, in {call}")]
    Exhausted {
        /// The operation, with its sizes.
        operation: String,
        /// The driver's or its library's function.
        call: &'static str,
    },
    /// It failed, and will compute nothing more.
    #[error("{operation} failed on the card: {cause}")]
    Failed {
        /// The operation, with its sizes.
        operation: String,
        /// The cause, as the driver reports it.
        cause: String,
    },
}

impl<'a> Term<'a> {
    /// Creates the term of two slices without names.
    #[must_use]
    pub fn of(x: &'a [u64], y: &'a [u64]) -> Self {
        let [x, y] = [x, y].map(Operand::of);
        Self { x, y }
    }
}

impl<'a> Operand<'a> {
    /// Creates an operand of a slice's words.
    #[must_use]
    pub fn of(words: &'a [u64]) -> Self {
        Self {
            words,
            plus: None,
            name: None,
        }
    }

    /// Creates an operand of the sums of two slices' words.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn sum(words: &'a [u64], plus: &'a [u64]) -> Self {
        assert_eq!(words.len(), plus.len(), "words of a sum");
        Self {
            words,
            plus: Some(plus),
            name: None,
        }
    }

    /// Gives the operand a name, if there is one.
    #[must_use]
    pub fn named(self, name: Option<Name>) -> Self {
        Self { name, ..self }
    }

    /// Returns the slice, and the one that is to be added to it, if any.
    #[must_use]
    pub fn slices(self) -> (&'a [u64], Option<&'a [u64]>) {
        (self.words, self.plus)
    }

    /// Returns the name, if the operand has one.
    #[must_use]
    pub fn name(self) -> Option<Name> {
        self.name
    }

    /// Returns the number of words.
    #[must_use]
    pub fn len(self) -> usize {
        self.words.len()
    }

    /// Returns whether there are no words.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.words.is_empty()
    }
}

#[cfg(test)]
mod tests;
