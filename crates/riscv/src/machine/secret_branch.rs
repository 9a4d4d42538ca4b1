//! A branch on a secret: both sides are executed, one after the other and each from the same state.
//! Where they meet again, each register and each place in memory that the sides left with different
//! words becomes a select by the branch's condition. The merge itself only extends the graph; it
//! computes and sends nothing.
//!
//! Which instructions are executed depends only on the program and on public values: a side's
//! control flow depends on its own public words, and both sides are executed whatever the
//! condition. A side that would reveal which one is taken is refused. Such a side makes a system
//! call other than a hint (see `hints`), opens something, does not reach the join, or returns to
//! its own branch, as a loop with a secret end does. A side that meets a fault is refused too,
//! since the program would meet it for one value of the secret: all addresses of loads and stores
//! are public on both sides.

use super::post_dominators::{Flow, Join, flow};
use super::{Hart, Interruption, Machine, register};
use crate::fault::{Fault, Result};
use crate::floats::fixed;
use crate::isa::operation::Operation;
use crate::numbers::words::Words;
use std::mem;
use std::ops::Range;

/// The maximum nesting depth of branches on secrets.
pub const NESTED: usize = 64;

/// A branch on a secret whose sides are being executed.
pub(super) struct Open {
    branch: u64,
    /// The call depth, relative to the outermost open branch.
    calls: i64,
}

impl<W: Words> Machine<W> {
    /// Executes both sides of the branch at pc. Returns the address where they meet.
    pub(super) fn both_sides(
        &mut self,
        condition: &W::Word,
        taken: u64,
        next: u64,
    ) -> std::result::Result<u64, Interruption> {
        let branch = self.pc;
        let join = match self.opened_sides(branch) {
            Ok(join) => join,
            Err(fault) => return self.one_side(fault, taken, next),
        };
        let before = self.hart.clone();
        let (calls, label) = (self.calls, self.label);
        self.begin();
        let end_if_taken = self.side(branch, taken, join)?;
        let if_taken = (
            mem::replace(&mut self.hart, before),
            self.memory.take_back(),
            self.vectors.take_back(),
        );
        self.calls = calls;
        let label_if_taken = mem::replace(&mut self.label, label);
        self.begin();
        let end_if_not = self.side(branch, next, join)?;
        let changes = self.memory.take_back();
        let vectors = self.vectors.take_back();
        if end_if_taken != end_if_not {
            self.pc = branch;
            return Err(Fault::SecretBranch.into());
        }
        self.pc = branch;
        // A label that the sides set differently ends where they meet.
        if self.label != label_if_taken {
            self.label = label;
        }
        self.note_place();
        let choice = Choice {
            condition,
            objects: &self.oblivious,
        };
        let words = &mut self.words;
        self.hart.merge(&if_taken.0, |kind, x, y| match kind {
            Kind::Integer => choice.between(words, x, y),
            Kind::Float => choice.between_floats(words, x, y),
        })?;
        self.memory
            .merge(words, (&if_taken.1, &changes), |words, x, y| {
                choice.between(words, x, y)
            })?;
        self.vectors
            .merge(words, (&if_taken.2, &vectors), |words, x, y| {
                choice.between(words, x, y)
            })?;
        self.sides.pop();
        if self.sides.is_empty() {
            self.calls = 0;
        }
        Ok(end_if_taken)
    }

    /// Begins a journal of writes, for later undo.
    fn begin(&mut self) {
        self.memory.begin();
        self.vectors.begin();
    }

    /// Checks that the sides of a branch may be executed, and returns their join.
    fn opened_sides(&mut self, branch: u64) -> Result<Join> {
        let calls = self.calls;
        let again = |open: &Open| open.branch == branch && open.calls == calls;
        if self.sides.iter().any(again) {
            return Err(Fault::SecretLoop);
        }
        if self.sides.len() == NESTED {
            return Err(Fault::Nested(NESTED));
        }
        let join = self.joins.of(&mut self.code, branch);
        let join = join.ok_or(Fault::SecretBranch)?;
        self.sides.push(Open { branch, calls });
        Ok(join)
    }

    /// Executes the side that begins at an address, until it reaches the join.
    fn side(&mut self, branch: u64, start: u64, join: Join) -> Result<u64> {
        let calls = self.calls;
        self.pc = start;
        while !(join == Join::At(self.pc) && self.calls == calls) {
            self.step_of_side().map_err(|fault| fault.on_side(branch))?;
            if self.calls < calls {
                if join == Join::Return {
                    break;
                }
                self.pc = branch;
                return Err(Fault::SecretBranch);
            }
        }
        Ok(self.pc)
    }

    fn step_of_side(&mut self) -> Result<()> {
        let instruction = match self.fetch() {
            Ok(instruction) => instruction,
            Err(Interruption::Fault(fault)) => return Err(fault),
            Err(_) => unreachable!("inside a branch, fetching only fails by a fault"),
        };
        let next = self.pc.wrapping_add(instruction.length.into());
        if instruction.operation == Operation::EnvironmentCall {
            if !self.answer_hint()? {
                let refused = self.refuse(self.pc, &Fault::CallOnSide);
                refused.ok_or(Fault::CallOnSide)?;
                let nothing = self.words.constant(0);
                self.set_register(register::ARGUMENT, nothing);
            }
            self.pc = next;
            return Ok(());
        }
        let to = self.carry_out(instruction, next);
        match to.or_else(|interruption| self.behind(interruption, instruction, next)) {
            Ok(to) => self.pc = to,
            Err(Interruption::Fault(fault)) => return Err(fault),
            Err(_) => return Err(Fault::OpeningOnSide),
        }
        match flow(&instruction) {
            Flow::Stays => {}
            Flow::Calls => self.calls += 1,
            Flow::Returns => self.calls -= 1,
        }
        Ok(())
    }
}

/// The kind of a register.
enum Kind {
    Integer,
    Float,
}

/// A select between the words that two sides have left.
struct Choice<'a, Word> {
    condition: &'a Word,
    /// The objects that may be accessed at secret addresses.
    objects: &'a [Range<u64>],
}

impl<Word: Clone> Choice<'_, Word> {
    /// Returns the first word if the condition is 1, and the second if it is 0. For two addresses
    /// in an object that may be accessed at secret addresses, it selects their distances from its
    /// beginning, so that the object remains known.
    fn between<W: Words<Word = Word>>(&self, words: &mut W, x: &Word, y: &Word) -> Word {
        let ((x_rest, x_base), (y_rest, y_base)) = (words.summands(x), words.summands(y));
        let has = |object: &&Range<u64>| {
            let within = |base| object.start <= base && base <= object.end;
            within(x_base) && within(y_base)
        };
        let Some(object) = self.objects.iter().find(has) else {
            return words.select(self.condition, x, y);
        };
        if words.are_one(x, y) || words.public(x).is_some_and(|x| words.public(y) == Some(x)) {
            return x.clone();
        }
        let mut distance = |rest: &Word, base: u64| {
            let more = words.constant(base - object.start);
            words.add(rest, &more)
        };
        let (x, y) = (distance(&x_rest, x_base), distance(&y_rest, y_base));
        let (chosen, start) = (
            words.select(self.condition, &x, &y),
            words.constant(object.start),
        );
        words.add(&chosen, &start)
    }

    /// Returns the select between two float registers. Two public floats become a secret number,
    /// not secret bits.
    fn between_floats<W: Words<Word = Word>>(&self, words: &mut W, x: &Word, y: &Word) -> Word {
        let public = (words.public(x), words.public(y));
        let chosen = match public {
            (Some(x), Some(y)) if x != y => fixed::select_public(words, self.condition, [x, y]),
            _ => None,
        };
        chosen.unwrap_or_else(|| self.between(words, x, y))
    }
}

impl<Word: Clone> Hart<Word> {
    /// Merges the other state into this one, with a select between each pair of registers.
    fn merge(
        &mut self,
        other: &Self,
        mut choose: impl FnMut(Kind, &Word, &Word) -> Word,
    ) -> Result<()> {
        // All fields are named here, so that the compiler rejects a forgotten new one.
        let Self {
            registers,
            floats,
            vectors,
            reserved,
        } = other;
        self.vectors.merge(*vectors);
        for (mine, others) in self.registers.iter_mut().zip(registers) {
            *mine = choose(Kind::Integer, others, mine);
        }
        // A store-conditional may always fail, so a reservation may be dropped.
        if self.reserved != *reserved {
            self.reserved = None;
        }
        self.floats.merge(floats, |x, y| choose(Kind::Float, x, y))
    }
}
