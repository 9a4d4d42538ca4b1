//! Hints: environment calls (`ecall`) that the machine itself answers. A program states that a
//! secret lies between two numbers, or names what it does next. Nothing is sent or opened and
//! nothing shows outside, so hints are allowed on a side of a branch on a secret too. A bound given
//! there holds for that side's word alone. It says nothing of the other side, and the select
//! between them lies within both.

use super::{LABELS, Machine, register};
use crate::elf::dwarf_lines::shown;
use crate::fault::{Fault, Result};
use crate::floats::fixed;
use crate::numbers::fixed_point::{Range, Real};
use crate::numbers::words::Words;

/// Says of a word in memory that it is not below one number and not above another, with their
/// signs: its address, and the numbers. Elsewhere there is no such call, and nothing is said.
pub const RANGE: u64 = 0x7ac1;

/// Names what is done from here on, for reports: the address of a text, and its bytes, of which
/// none end it. Elsewhere there is no such call. The machine answers it, on sides of branches too.
pub const LABEL: u64 = 0x7ac2;

/// Says that a word is to be printed in digits, or a text that begins with it: a secret one stops
/// the program there, and not where a loop over its digits ends. Elsewhere there is no such call.
pub const PRINTED: u64 = 0x7ac3;

/// Says of a double in memory that it is not below one number and not above another: its address,
/// and the bits of these as doubles. Elsewhere there is no such call, and nothing is said.
pub const REAL_RANGE: u64 = 0x7ac4;

/// Bytes of a label, and labels of a program.
const LABEL_BYTES: u64 = 64;
const DIFFERENT: usize = 1024;

impl<W: Words> Machine<W> {
    /// Answers what the machine itself can of what the program asks; whether it was that.
    ///
    /// # Errors
    /// `SecretArgument`, `SecretPrinted`, `NotInRange`, `NotBetween`, `SecretBits`, `TooMany`; as
    /// memory has them.
    pub fn answer_hint(&mut self) -> Result<bool> {
        let asked = self.register(register::CALL);
        match self.words.public(asked) {
            Some(RANGE) => {
                let [address, least, most] = self.arguments()?;
                self.bound(address, (least as i64, most as i64))?;
            }
            Some(REAL_RANGE) => {
                let [address, least, most] = self.arguments()?;
                self.bound_float(address, f64::from_bits(least), f64::from_bits(most))?;
            }
            Some(LABEL) => {
                let [address, bytes] = self.arguments()?;
                self.name(address, bytes)?;
            }
            Some(PRINTED) => {
                self.argument(0).map_err(|_| Fault::SecretPrinted)?;
            }
            _ => return Ok(false),
        }
        let done = self.words.constant(0);
        self.set_register(register::ARGUMENT, done);
        Ok(true)
    }

    /// An argument of a call.
    ///
    /// # Errors
    /// `SecretArgument`.
    pub fn argument(&self, place: usize) -> Result<u64> {
        let word = self.register(register::ARGUMENT + place);
        self.words.public(word).ok_or(Fault::SecretArgument)
    }

    fn arguments<const N: usize>(&self) -> Result<[u64; N]> {
        let mut all = [0; N];
        for (place, one) in all.iter_mut().enumerate() {
            *one = self.argument(place)?;
        }
        Ok(all)
    }

    /// A word in memory is known to be no less and no more than that, with signs.
    fn bound(&mut self, address: u64, (least, most): (i64, i64)) -> Result<()> {
        let word = self.memory.load(&mut self.words, address, 8)?;
        let is_inside = |value: u64| (least..=most).contains(&(value as i64));
        let public = self.words.public(&word);
        if least > most || public.is_some_and(|value| !is_inside(value)) {
            return Err(Fault::NotInRange(least, most));
        }
        self.note_call();
        let is_claimed = self.words.claim(true);
        let known = self.words.bounded(&word, least, most);
        self.words.claim(is_claimed);
        self.memory.store(&self.words, address, 8, &known)
    }

    /// What is made now is of the call that was made just before.
    fn note_call(&mut self) {
        let place = self.whereabouts();
        self.words.at(place, self.pc().wrapping_sub(4));
    }

    /// A double in memory is known to be no less and no more than that.
    fn bound_float(&mut self, address: u64, least: f64, most: f64) -> Result<()> {
        let outside = || Fault::not_between(Range { least, most });
        let said = Range::of(least, most).ok_or_else(outside)?;
        let word = self.memory.load(&mut self.words, address, 8)?;
        if let Some(bits) = self.words.public(&word) {
            let is_inside = said.contains(f64::from_bits(bits));
            return if is_inside { Ok(()) } else { Err(outside()) };
        }
        let (fixed, of) = self.words.fixed(&word, 8).ok_or(Fault::SecretBits)?;
        let real = Real {
            bytes: 8,
            fixed: of,
        };
        self.note_call();
        let known = fixed::bounded(&mut self.words, &fixed, real, said)?;
        self.memory.store(&self.words, address, 8, &known)
    }

    /// What the program does from here on is of a label, or of none where that is empty.
    fn name(&mut self, address: u64, bytes: u64) -> Result<()> {
        if bytes > LABEL_BYTES {
            return Err(Fault::TooMany {
                what: "bytes of a label",
                wanted: bytes,
                most: LABEL_BYTES,
            });
        }
        let text = shown(self.memory.read(address, bytes)?);
        if text.is_empty() {
            self.label = None;
            return Ok(());
        }
        let known = self.labels.iter().position(|label| *label == text);
        if known.is_none() && self.labels.len() == DIFFERENT {
            return Err(Fault::TooMany {
                what: "labels",
                wanted: DIFFERENT as u64 + 1,
                most: DIFFERENT as u64,
            });
        }
        let number = known.unwrap_or_else(|| {
            self.labels.push(text);
            self.labels.len() - 1
        });
        self.label = Some(LABELS | number as u32);
        Ok(())
    }

    /// Names that the program has given to what it does.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }
}
