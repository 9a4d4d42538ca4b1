//! Loads and stores at secret addresses, within objects that are marked for it, by a scan of all
//! their places.
//!
//! An address is the sum of a public number, a secret one and the instruction's offset. The public
//! number selects the object. Inside an object, it selects any object that the secret number can
//! reach, since a compiler may have moved a constant from one to the other. At an object's first
//! byte it selects that object alone, and also the one that ends there if the secret number may be
//! negative, since a program may count backward from the end. If the public number is the upper
//! part of an address, or the global pointer, it selects the object at that number plus the offset.
//! An address outside all marked objects is one of few possible values ([`super::few_addresses`]),
//! or refused: it may be meant for memory that is not marked.
//!
//! The scanned places depend on the objects and on the public part of the address. Beyond the
//! object's end a load returns 0 and a store does nothing.

use super::Machine;
use super::linear_scan::Place;
use crate::fault::{Fault, Result};
use crate::isa::operation::Load;
use crate::numbers::words::{Signs, Words};
use std::ops::Range;

/// The maximum number of places that one load or store scans.
pub const PLACES: u64 = 1 << 16;

/// The places of an object at which the address may lie.
struct Places<Word> {
    first: u64,
    stride: u64,
    count: u64,
    /// The one-hot vector of the actual place.
    at: Place<Word>,
}

/// The alignment of the upper part of an address that is built from an upper and a lower part.
const UPPER: u64 = 1 << 12;

/// The global pointer (`gp`), from which linkers count addresses.
const GLOBAL_POINTER: usize = 3;

/// A secret address: a public number, with the instruction's offset, and a secret one.
struct Address<Word> {
    /// The public number that selects the object.
    pointer: u64,
    base: u64,
    rest: Word,
    /// The least distance in bytes between two values of the secret number.
    stride: u64,
}

impl<W: Words> Machine<W> {
    /// Marks an object as one that may be accessed at secret addresses.
    pub fn mark_oblivious(&mut self, object: Range<u64>) {
        self.oblivious.push(object);
    }

    pub(super) fn scan(&mut self, load: Load, rs1: usize, offset: i64) -> Result<W::Word> {
        self.note_place();
        let bytes = load.bytes.into();
        if !self.is_in_marked_object(rs1, offset) {
            return self.load_of_few(load, rs1, offset);
        }
        let mut found = Vec::new();
        for places in self.places(rs1, offset, bytes)? {
            let mut table = Vec::with_capacity(places.count as usize);
            for place in 0..places.count {
                let address = places.first + places.stride * place;
                table.push(self.memory.load(&mut self.words, address, bytes)?);
            }
            found.push(places.at.value_of(&mut self.words, &table));
        }
        let found = self.words.only(&found);
        if self.words.is_refused(&found) {
            return Err(Fault::SecretBits);
        }
        Ok(self.extended(load, found))
    }

    pub(super) fn scan_to_store(
        &mut self,
        bytes: u64,
        rs1: usize,
        offset: i64,
        rs2: usize,
    ) -> Result<()> {
        self.note_place();
        if !self.is_in_marked_object(rs1, offset) {
            let word = self.hart.registers[rs2].clone();
            return self.store_at_few(bytes, rs1, offset, &word);
        }
        for places in self.places(rs1, offset, bytes)? {
            // Overlapping places are written in pieces that do not overlap.
            let size = places.stride.min(bytes);
            for piece in 0..bytes / size {
                let amount = self.words.constant(8 * size * piece);
                let word = &self.hart.registers[rs2];
                let part = self.words.shift_right(word, &amount, Signs::Unsigned);
                for place in 0..places.count {
                    let address = places.first + places.stride * place + size * piece;
                    let is = places.at.is(&mut self.words, place as usize);
                    let old = self.memory.load(&mut self.words, address, size)?;
                    let new = self.words.select(&is, &part, &old);
                    self.memory.store(&self.words, address, size, &new)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the places at which the address in a register, plus an offset, may lie. Each counts
    /// as one executed instruction.
    fn places(&mut self, rs1: usize, offset: i64, bytes: u64) -> Result<Vec<Places<W::Word>>> {
        let (rest, pointer) = self.words.summands(&self.hart.registers[rs1]);
        let stride = 1 << self.words.ones(&rest).trailing_zeros().min(63);
        let base = pointer.wrapping_add_signed(offset);
        let address = Address {
            pointer: self.selecting_number(pointer, base),
            base,
            rest,
            stride,
        };
        let mut all = Vec::new();
        for object in self.objects(&address, bytes)? {
            let Some(places) = self.places_of(&address, object, bytes)? else {
                continue;
            };
            self.carried_out = self.carried_out.saturating_add(places.count);
            if self.carried_out > self.limit {
                return Err(Fault::Limit(self.limit));
            }
            all.push(places);
        }
        Ok(all)
    }

    /// Returns whether the public part of an address lies in a marked object.
    fn is_in_marked_object(&self, rs1: usize, offset: i64) -> bool {
        let (_, pointer) = self.words.summands(&self.hart.registers[rs1]);
        let selecting = self.selecting_number(pointer, pointer.wrapping_add_signed(offset));
        self.oblivious
            .iter()
            .any(|object| object.contains(&selecting))
    }

    /// Returns the public number that selects the object: without the offset or with it.
    fn selecting_number(&self, pointer: u64, base: u64) -> u64 {
        let global = self.words.public(&self.hart.registers[GLOBAL_POINTER]);
        let is_part = pointer % UPPER == 0 || global == Some(pointer);
        let is_inside = self
            .oblivious
            .iter()
            .any(|object| object.contains(&pointer));
        if is_part || !is_inside { base } else { pointer }
    }

    /// Returns the objects that an address may be meant for.
    fn objects(&self, address: &Address<W::Word>, bytes: u64) -> Result<Vec<Range<u64>>> {
        let (pointer, base) = (address.pointer, address.base);
        let selected = self
            .oblivious
            .iter()
            .find(|object| object.contains(&pointer));
        let selected = selected.ok_or(Fault::SecretAddress)?;
        let ones = self.words.ones(&address.rest);
        // The address space wraps around after the last address.
        let most = ones.checked_add(bytes);
        let end = most.and_then(|most| base.checked_add(most));
        let reached =
            |object: &Range<u64>| end.is_none_or(|end| object.start < end && base < object.end);
        let is_possible = |object: &&Range<u64>| {
            if selected.start != pointer {
                return reached(object);
            }
            *object == selected || object.end == pointer && ones >> 63 == 1
        };
        let mut objects: Vec<Range<u64>> =
            self.oblivious.iter().filter(is_possible).cloned().collect();
        objects.sort_unstable_by_key(|object| (object.start, object.end));
        objects.dedup();
        Ok(objects)
    }

    /// Returns the places of an object at which an access of the given size may lie; `None` if
    /// there are none.
    fn places_of(
        &mut self,
        address: &Address<W::Word>,
        object: Range<u64>,
        bytes: u64,
    ) -> Result<Option<Places<W::Word>>> {
        let from_start = address.base.wrapping_sub(object.start);
        let first = from_start % address.stride;
        let size = object.end.saturating_sub(object.start);
        let Some(last) = size
            .checked_sub(bytes)
            .and_then(|room| room.checked_sub(first))
        else {
            return Ok(None);
        };
        let count = last / address.stride + 1;
        if count > PLACES {
            return Err(Fault::Places(count, PLACES));
        }
        let before = self.words.constant(from_start);
        let distance = self.words.add(&address.rest, &before);
        let amount = self.words.constant(address.stride.trailing_zeros().into());
        let number = self.words.shift_right(&distance, &amount, Signs::Unsigned);
        Ok(Some(Places {
            first: object.start + first,
            stride: address.stride,
            count,
            at: Place::new(&mut self.words, &number, count),
        }))
    }
}
