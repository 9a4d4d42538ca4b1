//! Hints: environment calls (`ecall`) that the machine itself answers. A program states that a
//! secret lies between two numbers, or names its present work. A hint sends and opens nothing and
//! has no outside effect, so hints are also allowed on a side of a branch on a secret. A bound
//! given there holds only for that side's word. It says nothing about the other side, and the
//! select between them lies within the union of both ranges.

use super::{LABELS, Machine, register};
use crate::elf::dwarf_lines::shown;
use crate::fault::{Fault, Result};
use crate::floats::fixed;
use crate::numbers::fixed_point::{Fixed, Range, Real};
use crate::numbers::words::Words;

/// States that a word in memory lies between two signed numbers. Arguments: its address, and the
/// numbers. Other systems do not have this call, and there it has no effect.
pub const RANGE: u64 = 0x7ac1;

/// Names the following work for reports. Arguments: the address of a text, and its length in bytes
/// without a terminator. Other systems do not have this call. The machine also answers it on sides
/// of branches.
pub const LABEL: u64 = 0x7ac2;

/// Announces that a word, or a text that begins with it, is about to be printed in digits. A secret
/// one stops the program here, and not at the end of a loop over its digits. Other systems do not
/// have this call.
pub const PRINTED: u64 = 0x7ac3;

/// States that a double in memory lies between two numbers. Arguments: its address, and the bits of
/// the bounds as doubles. Other systems do not have this call, and there it has no effect.
pub const REAL_RANGE: u64 = 0x7ac4;

/// States the maximum number of trips of a loop with a secret exit. Argument: that number. The call
/// stands in the loop, and counts the trips itself. Other systems do not have this call, and there
/// it has no effect.
pub const TRIPS: u64 = 0x7ac5;

/// Announces that a byte of text is about to be read as a part of a number or a word. A secret one
/// stops the program here, and not at the end of a loop over its digits. Other systems do not have
/// this call.
pub const TEXT: u64 = 0x7ac6;

/// Asks for the form of a secret double, as the runtime's functions of floats do. Argument: the
/// double's address. The answer is the number of its fraction bits, and [`RANGED`] or [`ANY`]; or 0
/// for a double that everybody knows. The form of a secret depends on no secret. Other systems have
/// neither this call nor secrets.
pub const FORM: u64 = 0x7ac7;

/// What the answer of [`FORM`] exceeds the fraction bits by, for a double of known range, and for
/// one without.
const RANGED: i32 = 1024;
const ANY: i32 = 4096;

/// Removes the known range of a secret double in memory: what is computed of it then has the usual
/// fraction bits. Argument: its address. Other systems do not have this call, and there it has no
/// effect.
pub const ANY_RANGE: u64 = 0x7ac8;

/// The loops whose trips are counted: the address of the statement and the call depth, the number
/// of branches that were open on the first trip, and the number of trips.
pub(super) type Bounds = Vec<((u64, i64), usize, u64)>;

/// The maximum number of bytes of a label, and of labels of a program.
const LABEL_BYTES: u64 = 64;
const DIFFERENT: usize = 1024;

impl<W: Words> Machine<W> {
    /// Answers the program's call if it is a hint. Returns whether it was.
    ///
    /// # Errors
    /// `SecretArgument`, `SecretPrinted`, `NotInRange`, `NotBetween`, `SecretBits`, `TooMany`; the
    /// errors of memory accesses.
    pub fn answer_hint(&mut self) -> Result<bool> {
        let asked = self.register(register::CALL);
        let mut answer = 0;
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
            Some(TRIPS) => {
                let [most] = self.arguments()?;
                self.count_trip(most);
            }
            Some(PRINTED) => {
                self.argument(0).map_err(|_| Fault::SecretPrinted)?;
            }
            Some(TEXT) => {
                self.argument(0).map_err(|_| Fault::SecretText)?;
            }
            Some(FORM) => {
                let [address] = self.arguments()?;
                let word = self.memory.load(&mut self.words, address, 8)?;
                self.note_call();
                let format = fixed::form::format(&mut self.words, &word)?;
                let kind = |fixed: &Fixed| if fixed.range.is_some() { RANGED } else { ANY };
                answer = format.map_or(0, |fixed| (kind(&fixed) + fixed.scale) as u64);
            }
            Some(ANY_RANGE) => {
                let [address] = self.arguments()?;
                let word = self.memory.load(&mut self.words, address, 8)?;
                self.note_call();
                let freed = fixed::form::without(&mut self.words, &word)?;
                self.memory.store(&self.words, address, 8, &freed)?;
            }
            _ => return Ok(false),
        }
        let answer = self.words.constant(answer);
        self.set_register(register::ARGUMENT, answer);
        Ok(true)
    }

    /// Returns an argument of a system call.
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

    /// Bounds a word in memory by two signed numbers.
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

    /// Counts a trip of a loop, and gives up the side that is being executed if there are more than
    /// stated. Each trip of a loop with a secret exit has more open branches than the one before. A
    /// trip with as many as the first is the first again.
    fn count_trip(&mut self, most: u64) {
        let open = self.sides.len();
        let place = (self.statement(), self.calls);
        let known = self.bounds.iter().position(|(at, ..)| *at == place);
        let at = known.unwrap_or_else(|| {
            self.bounds.push((place, open, 0));
            self.bounds.len() - 1
        });
        let (_, first, trips) = &mut self.bounds[at];
        if open <= *first {
            (*first, *trips) = (open, 0);
        }
        *trips += 1;
        if *trips > most && open > *first {
            self.give_up();
        }
    }

    /// Returns the address of the call that was just made. Outside branches on secrets, it has
    /// been passed already.
    fn statement(&self) -> u64 {
        match self.sides.len() {
            0 => self.pc.wrapping_sub(4),
            _ => self.pc,
        }
    }

    /// Attributes new words to the call that was just made.
    fn note_call(&mut self) {
        let place = self.whereabouts();
        self.words.at(place, self.statement());
    }

    /// Bounds a double in memory by two numbers.
    fn bound_float(&mut self, address: u64, least: f64, most: f64) -> Result<()> {
        let outside = || Fault::not_between(Range { least, most });
        let stated = Range::of(least, most).ok_or_else(outside)?;
        let word = self.memory.load(&mut self.words, address, 8)?;
        if let Some(bits) = self.words.public(&word) {
            let is_inside = stated.contains(f64::from_bits(bits));
            return if is_inside { Ok(()) } else { Err(outside()) };
        }
        let (fixed, of) = self.words.fixed(&word, 8).ok_or(Fault::SecretBits)?;
        let real = Real {
            bytes: 8,
            fixed: of,
        };
        self.note_call();
        let known = fixed::bounded(&mut self.words, &fixed, real, stated)?;
        self.memory.store(&self.words, address, 8, &known)
    }

    /// Sets the label of the following work; an empty text removes it.
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

    /// Returns the labels that the program has set.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }
}
