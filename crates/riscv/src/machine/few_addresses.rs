//! Loads and stores at secret addresses of few possible values, such as `c ? &x : &y`. A load reads
//! at each of them and selects; a store writes to each under a condition. No mark is needed.
//!
//! The addresses follow from selects, known bits and stated ranges ([`Words::choices`]), which are
//! public, and all of them are accessed whatever the secret is. Each counts as an instruction, and
//! there are at most [`VALUES`]. An address that is not mapped, such as a null pointer that the
//! program has just compared with, is skipped: the program promises that it does not come there. A
//! load then gives what is at another of the addresses, and a store does nothing. If none is
//! mapped, the access is refused.

use super::{Machine, in_stack};
use crate::fault::{Fault, Result};
use crate::floats::fixed;
use crate::isa::operation::{Load, Precision};
use crate::numbers::choices::{Choice, Choices, VALUES};
use crate::numbers::words::Words;
use std::collections::BTreeMap;

/// The accesses of an instruction at secret addresses of few values.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Few {
    /// The number of accesses.
    pub accesses: u64,
    /// The number of addresses that were accessed for them.
    pub addresses: u64,
}

impl<W: Words> Machine<W> {
    /// Loads an integer at the address in a register plus an offset.
    pub(super) fn load_of_few(&mut self, load: Load, rs1: usize, offset: i64) -> Result<W::Word> {
        let address = self.few_addresses(rs1, offset)?;
        let found = self.selected(&address, load.bytes, |words, bit, x, y| {
            words.select(bit, x, y)
        })?;
        Ok(self.extended(load, found))
    }

    /// Loads a float at the address in a register plus an offset.
    pub(super) fn load_float_of_few(
        &mut self,
        of: Precision,
        rs1: usize,
        offset: i64,
    ) -> Result<W::Word> {
        let address = self.few_addresses(rs1, offset)?;
        self.selected(&address, of.bytes(), |words, bit, x, y| {
            fixed::select_registers(words, bit, x, y)
        })
    }

    /// Stores the low bytes of a word at the address in a register plus an offset.
    pub(super) fn store_at_few(
        &mut self,
        bytes: u64,
        rs1: usize,
        offset: i64,
        word: &W::Word,
    ) -> Result<()> {
        let address = self.few_addresses(rs1, offset)?;
        let mut failed = None;
        let mut is_stored = false;
        // Two addresses may overlap. Their conditions exclude each other, so the second store
        // changes nothing where the first one did.
        for (address, condition) in conditions(&mut self.words, &address) {
            let old = match self.memory.may_store(address, bytes) {
                Ok(()) => self.memory.load(&mut self.words, address, bytes)?,
                Err(fault) => {
                    failed.get_or_insert(in_stack(fault, address));
                    continue;
                }
            };
            let new = self.words.select(&condition, word, &old);
            if self.words.is_refused(&new) {
                return Err(Fault::SecretBits);
            }
            self.memory.store(&self.words, address, bytes, &new)?;
            is_stored = true;
        }
        match failed {
            Some(fault) if !is_stored => Err(fault),
            _ => Ok(()),
        }
    }

    /// Returns the loaded bytes of each address, of which one is selected by the bits of the
    /// diagram.
    fn selected(
        &mut self,
        address: &Choices<W::Word>,
        bytes: u8,
        select: impl Fn(&mut W, &W::Word, &W::Word, &W::Word) -> W::Word,
    ) -> Result<W::Word> {
        let mut failed = None;
        let (words, memory) = (std::cell::RefCell::new(&mut self.words), &mut self.memory);
        // A skipped address has no word: the other one is selected.
        let found = address.folded(
            |address| match memory.load(*words.borrow_mut(), address, bytes.into()) {
                Ok(word) => Ok(Some(word)),
                Err(fault) => {
                    failed.get_or_insert(in_stack(fault, address));
                    Ok(None)
                }
            },
            |bit, x: &Option<W::Word>, y| {
                Ok::<_, Fault>(match (x, y) {
                    (Some(x), Some(y)) => Some(select(*words.borrow_mut(), bit, x, y)),
                    (one, other) => one.clone().or_else(|| other.clone()),
                })
            },
        )?;
        let found = found.ok_or_else(|| failed.unwrap_or(Fault::SecretAddress))?;
        if self.words.is_refused(&found) {
            return Err(Fault::SecretBits);
        }
        Ok(found)
    }

    /// Returns the addresses that a register plus an offset may hold. Each counts as one executed
    /// instruction.
    fn few_addresses(&mut self, rs1: usize, offset: i64) -> Result<Choices<W::Word>> {
        self.note_place();
        let offset = self.words.constant(offset as u64);
        let address = self.words.add(&self.hart.registers[rs1], &offset);
        let choices = self.words.choices(&address).ok_or(Fault::SecretAddress)?;
        let count = choices.values().count();
        debug_assert!(count <= VALUES, "a diagram has few values");
        self.carried_out = self.carried_out.saturating_add(count as u64);
        if self.carried_out > self.limit {
            return Err(Fault::Limit(self.limit));
        }
        let few = self.few.entry(self.pc).or_default();
        few.accesses += 1;
        few.addresses += count as u64;
        Ok(choices)
    }

    /// Returns the accesses at secret addresses of few values, by instruction.
    pub fn few(&self) -> &BTreeMap<u64, Few> {
        &self.few
    }
}

/// Returns each value with a bit that is 1 if the word has it. Exactly one of these bits is 1.
fn conditions<W: Words>(words: &mut W, choices: &Choices<W::Word>) -> Vec<(u64, W::Word)> {
    let nodes = choices.nodes();
    let (one, zero) = (words.constant(1), words.constant(0));
    let mut ways = vec![zero; nodes.len()];
    let mut conditions = Vec::new();
    *ways.last_mut().expect("there is a beginning") = one;
    for (at, node) in nodes.iter().enumerate().rev() {
        let way = ways[at].clone();
        match node {
            Choice::Value(value) => conditions.push((*value, way)),
            Choice::Either {
                bit,
                if_one,
                if_zero,
            } => {
                let taken = words.and(&way, bit);
                let other = words.xor(&way, &taken);
                // The ways to a node exclude each other.
                ways[*if_one] = words.xor(&ways[*if_one], &taken);
                ways[*if_zero] = words.xor(&ways[*if_zero], &other);
            }
        }
    }
    conditions
}
