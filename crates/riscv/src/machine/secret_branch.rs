//! A branch on a secret: both sides are executed, one after the other and each from the same state.
//! Where they meet again, each register and each place in memory that the sides left with different
//! words becomes a select by the branch's condition. The merge itself only extends the graph; it
//! computes and sends nothing.
//!
//! Which instructions are executed depends only on the program and on public values: a side's
//! control flow depends on its own public words, and both sides are executed whatever the
//! condition. A side that would reveal which one is taken is refused. Such a side makes a system
//! call other than a hint (see `hints`), opens something, or does not reach the join. A side that
//! meets a fault is refused too, since the program would meet it for one value of the secret.
//!
//! **Loops with a secret exit.** The branch that leaves a loop, by `break`, `return` or its
//! condition, meets its other side after the loop. So the side that stays executes all further
//! trips, in each of which the branch is opened again inside itself, until a public number ends the
//! loop: an end of an array, an induction variable, or the program's statement of the most trips
//! (`TACIT_BOUND`). At that statement the side that would go on is given up: the program promises
//! that its condition is false, and the other side's words are taken as they are. Checked mode
//! claims that promise for what follows from the branch around it (see `give_up`). The
//! number of trips that are executed is public, and the same for all values of the secret.
//!
//! Open branches lie on a stack of the machine, not on the processor's, so nesting is bounded by
//! [`NESTED`] alone.

use super::post_dominators::{Flow, Join, flow};
use super::{Hart, Interruption, Machine, hints, register};
use crate::fault::{Fault, Result};
use crate::floats::fixed;
use crate::isa::operation::Operation;
use crate::memory::Changes;
use crate::numbers::words::Words;
use std::mem;
use std::ops::Range;

/// The maximum nesting depth of branches on secrets. Each trip of a loop with a secret exit opens
/// at least one.
pub const NESTED: usize = 1 << 11;

/// The maximum number of trips of a loop with a secret exit.
pub const TRIPS: usize = 1 << 10;

/// The maximum number of branches on secrets within the sides of one, where a loop opens one again.
/// Sides that part on each trip, and meet only after the loop, double each time.
const WITHIN: u64 = 1 << 12;

/// A branch on a secret whose sides are being executed.
pub(super) struct Open<Word> {
    branch: u64,
    condition: Word,
    /// The beginning of the other side.
    next: u64,
    join: Join,
    /// The call depth, relative to the outermost open branch.
    calls: i64,
    label: Option<u32>,
    bounds: hints::Bounds,
    /// The number of open branches that are this one, in the same call: the trips of a loop.
    trips: usize,
    /// The state before the branch; once the first side has ended, what that side has left.
    state: Box<Hart<Word>>,
    first: Option<Left<Word>>,
}

/// What the first side has left, beside the registers.
struct Left<Word> {
    /// The address where the side has ended, unless it was given up.
    end: Option<u64>,
    memory: Changes<Word>,
    vectors: Changes<Word>,
    label: Option<u32>,
    bounds: hints::Bounds,
    promised: Option<Word>,
}

impl<W: Words> Machine<W> {
    /// Executes both sides of the branch at pc. Returns the address where they meet; within an open
    /// branch, the beginning of the first side, since that branch's sides are being executed.
    pub(super) fn both_sides(
        &mut self,
        condition: &W::Word,
        taken: u64,
        next: u64,
    ) -> std::result::Result<u64, Interruption> {
        if let Err(fault) = self.open_sides(condition, next) {
            return self.one_side(fault, taken, next);
        }
        self.begin();
        if self.sides.len() > 1 {
            return Ok(taken);
        }
        self.pc = taken;
        while let Some(open) = self.sides.last() {
            let has_returned = self.calls < open.calls;
            let branch = open.branch;
            if self.is_given_up
                || open.join == Join::At(self.pc) && self.calls == open.calls
                || open.join == Join::Return && has_returned
            {
                self.end_side()?;
            } else if has_returned {
                self.pc = branch;
                return Err(Fault::SecretBranch.into());
            } else {
                self.step_of_side().map_err(|fault| fault.on_side(branch))?;
            }
        }
        self.calls = 0;
        // The program promised that it comes to neither side.
        if mem::take(&mut self.is_given_up) {
            return Err(Fault::BeyondBound.into());
        }
        Ok(self.pc)
    }

    /// Begins a journal of writes, for later undo.
    fn begin(&mut self) {
        self.memory.begin();
        self.vectors.begin();
    }

    /// Checks that the sides of the branch at pc may be executed, and opens it.
    fn open_sides(&mut self, condition: &W::Word, next: u64) -> Result<()> {
        let (branch, calls) = (self.pc, self.calls);
        let again = |open: &&Open<W::Word>| open.branch == branch && open.calls == calls;
        let trips = self.sides.iter().rev().find(again);
        let trips = trips.map_or(0, |open| open.trips) + 1;
        if trips > TRIPS {
            return Err(Fault::SecretLoop(TRIPS));
        }
        self.within = match self.sides.len() {
            0 => 0,
            _ => self.within + 1,
        };
        if trips > 1 && self.within > WITHIN {
            return Err(Fault::Parting(WITHIN));
        }
        if self.sides.len() == NESTED {
            return Err(Fault::Nested(NESTED));
        }
        let join = self.joins.of(&mut self.code, branch);
        self.sides.push(Open {
            branch,
            condition: condition.clone(),
            next,
            join: join.ok_or(Fault::SecretBranch)?,
            calls,
            label: self.label,
            bounds: self.bounds.clone(),
            trips,
            state: Box::new(self.hart.clone()),
            first: None,
        });
        Ok(())
    }

    /// Ends the side that was executed: goes over to the other one, or merges both.
    fn end_side(&mut self) -> Result<()> {
        let end = (!mem::take(&mut self.is_given_up)).then_some(self.pc);
        let promised = self.promised.take();
        let (memory, vectors) = (self.memory.take_back(), self.vectors.take_back());
        let open = self.sides.last_mut().expect("a side is being executed");
        if open.first.is_none() {
            mem::swap(&mut self.hart, &mut open.state);
            let label = mem::replace(&mut self.label, open.label);
            let bounds = mem::replace(&mut self.bounds, open.bounds.clone());
            (self.calls, self.pc) = (open.calls, open.next);
            open.first = Some(Left {
                end,
                memory,
                vectors,
                label,
                bounds,
                promised,
            });
            self.begin();
            return Ok(());
        }
        let open = self.sides.pop().expect("a side is being executed");
        self.merge(open, end, (&memory, &vectors), promised)
    }

    /// Merges the state of the second side, which has just ended, with that of the first.
    fn merge(
        &mut self,
        open: Open<W::Word>,
        end: Option<u64>,
        (memory, vectors): (&Changes<W::Word>, &Changes<W::Word>),
        promised: Option<W::Word>,
    ) -> Result<()> {
        let first = open.first.expect("the first side has ended");
        self.pc = open.branch;
        // Where one side has made more trips than the other, the loop has ended.
        let ended = mem::replace(&mut self.bounds, open.bounds);
        self.bounds
            .retain(|counted| ended.contains(counted) && first.bounds.contains(counted));
        let promises = [first.promised, promised].into_iter().flatten();
        let promised = promises.reduce(|one, other| self.words.xor(&one, &other));
        // Both sides end in the call of the branch, or in its caller.
        let mut condition = match (first.end, end) {
            (Some(one), Some(other)) if one == other => open.condition,
            (Some(_), Some(_)) => return Err(Fault::SecretBranch),
            (Some(_), None) => self.words.constant(1),
            (None, Some(_)) => self.words.constant(0),
            (None, None) => {
                self.is_given_up = true;
                self.promised = promised;
                return Ok(());
            }
        };
        // The words around depend on the promise from here on; without a branch around, these do.
        if let Some(promised) = promised {
            let depending = match self.sides.last_mut() {
                Some(around) => &mut around.condition,
                None => &mut condition,
            };
            *depending = self.words.xor(depending, &promised);
        }
        if first.end.is_none() || end.is_none() {
            // The call depth is that of the side that was not given up: at the join.
            self.calls = open.calls - i64::from(open.join == Join::Return);
        }
        // A label that the sides set differently ends where they meet.
        if self.label != first.label {
            self.label = open.label;
        }
        self.note_place();
        let choice = Choice {
            condition: &condition,
            objects: &self.oblivious,
        };
        let words = &mut self.words;
        match words.public(&condition) {
            // The modes and flags of a side that was given up do not count either.
            Some(1) => self.hart = *open.state,
            Some(_) => {}
            None => self.hart.merge(&open.state, |kind, x, y| match kind {
                Kind::Integer => choice.between(words, x, y),
                Kind::Float => choice.between_floats(words, x, y),
            })?,
        }
        self.memory
            .merge(words, (&first.memory, memory), |words, x, y| {
                choice.between(words, x, y)
            })?;
        self.vectors
            .merge(words, (&first.vectors, vectors), |words, x, y| {
                choice.between(words, x, y)
            })?;
        self.pc = first.end.or(end).expect("one side has ended");
        Ok(())
    }

    /// Gives up the side that is being executed. In checked mode, notes whether the program would
    /// have come here, which it promised not to: whether all open branches took this way.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
        self.note_place();
        let is_claimed = self.words.claim(true);
        let mut comes = self.words.constant(1);
        for open in &self.sides {
            let one = self.words.constant(1);
            let way = match open.first {
                None => open.condition.clone(),
                Some(_) => self.words.xor(&open.condition, &one),
            };
            comes = self.words.and(&comes, &way);
        }
        let promised = self.words.limited(&comes, 0, 0);
        self.words.claim(is_claimed);
        // Without checked mode, it is the same word.
        self.promised = (!self.words.are_one(&promised, &comes)).then_some(promised);
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
        // The condition is public if one side was given up.
        if let Some(condition) = words.public(self.condition) {
            return (if condition == 1 { x } else { y }).clone();
        }
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
        match (words.public(x), words.public(y)) {
            (Some(_), Some(_)) if words.public(self.condition).is_none() => {
                fixed::select_registers(words, self.condition, x, y)
            }
            _ => self.between(words, x, y),
        }
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
