//! The places where the two sides of a branch meet again: its immediate post-dominator, the first
//! instruction that is on every path from the branch to the end of the function.
//!
//! The result only decides where to look for the end of a side. Whether both sides have reached the
//! same place, in the same call, is checked when they are executed.

use super::code::Code;
use crate::isa::instruction::Instruction;
use crate::isa::operation::Operation;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The maximum number of instructions that are examined for one branch.
const MOST: usize = 1 << 15;

/// The registers that hold return addresses of calls (`ra` and `t0`).
const LINKS: [u8; 2] = [1, 5];

/// The place where both sides of a branch meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// The instruction at this address.
    At(u64),
    /// The return of the function.
    Return,
}

/// The effect of an instruction on the call depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// The depth stays.
    Stays,
    /// The instruction is a call.
    Calls,
    /// The instruction is a return.
    Returns,
}

/// The known joins of a program's branches.
pub struct Joins {
    /// The addresses after the last instruction of each function.
    ends: BTreeSet<u64>,
    known: HashMap<u64, Option<Join>>,
    /// Whether functions return, by their address.
    returning: HashMap<u64, bool>,
}

/// The control-flow graph of the instructions that are reachable from one of them. A node is a
/// number; node 0 is the return.
struct Ways {
    numbers: HashMap<u64, usize>,
    addresses: Vec<u64>,
    next: Vec<Vec<usize>>,
}

const RETURN: usize = 0;

/// Returns an instruction's effect on the call depth, by the registers that the ISA manual names as
/// hints for return-address stacks (section 2.5.1).
#[must_use]
pub fn flow(instruction: &Instruction) -> Flow {
    let operands = instruction.operands;
    match instruction.operation {
        Operation::Jump | Operation::JumpRegister if LINKS.contains(&operands.rd) => Flow::Calls,
        Operation::JumpRegister if LINKS.contains(&operands.rs1) => Flow::Returns,
        _ => Flow::Stays,
    }
}

impl Joins {
    /// Creates an empty table for a program whose functions end at `ends`.
    #[must_use]
    pub fn new(ends: BTreeSet<u64>) -> Self {
        Self {
            ends,
            known: HashMap::new(),
            returning: HashMap::new(),
        }
    }

    /// Returns where the sides of a branch meet; `None` if that cannot be determined.
    pub fn of(&mut self, code: &mut Code, branch: u64) -> Option<Join> {
        if let Some(&known) = self.known.get(&branch) {
            return known;
        }
        let ways = self.ways(code, branch, true);
        let join = ways.and_then(|ways| ways.join());
        self.known.insert(branch, join);
        join
    }

    /// Returns whether a function can return. A function with too many instructions to examine is
    /// assumed to return.
    fn returns(&mut self, code: &mut Code, function: u64) -> bool {
        if let Some(&known) = self.returning.get(&function) {
            return known;
        }
        let ways = self.ways(code, function, false);
        let returns = ways.is_none_or(|ways| ways.next.iter().flatten().any(|&to| to == RETURN));
        self.returning.insert(function, returns);
        returns
    }

    /// Builds the control-flow graph from an instruction; `None` if it is too large.
    fn ways(&mut self, code: &mut Code, from: u64, looks_into_calls: bool) -> Option<Ways> {
        let mut ways = Ways::new();
        ways.number(from);
        let mut at = RETURN + 1;
        while at < ways.addresses.len() {
            if at > MOST {
                return None;
            }
            let address = ways.addresses[at];
            // An invalid instruction has no successor.
            if let Ok(instruction) = code.at(address) {
                let next = address.wrapping_add(instruction.length.into());
                let jump = address.wrapping_add_signed(instruction.operands.immediate.into());
                // After a function's last instruction another function begins, so a call at its end
                // does not return.
                let follows = (!self.ends.contains(&next)).then_some(next);
                let calls = flow(&instruction) == Flow::Calls;
                match instruction.operation {
                    Operation::Branch(_) => ways.lead(at, [Some(jump), follows]),
                    Operation::Jump if !calls => ways.lead(at, [Some(jump), None]),
                    // A computed jump is treated as a tail call, which returns for this function.
                    Operation::JumpRegister if !calls => ways.next[at].push(RETURN),
                    Operation::Breakpoint => {}
                    Operation::Jump if looks_into_calls && !self.returns(code, jump) => {}
                    _ => ways.lead(at, [follows, None]),
                }
            }
            at += 1;
        }
        Some(ways)
    }
}

impl Ways {
    fn new() -> Self {
        Self {
            numbers: HashMap::new(),
            addresses: vec![0],
            next: vec![Vec::new()],
        }
    }

    fn number(&mut self, address: u64) -> usize {
        *self.numbers.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            self.next.push(Vec::new());
            self.next.len() - 1
        })
    }

    fn lead(&mut self, at: usize, to: [Option<u64>; 2]) {
        for address in to.into_iter().flatten() {
            let number = self.number(address);
            self.next[at].push(number);
        }
    }

    /// Returns the first node after the beginning that all paths to the return pass. It follows one
    /// path, and explores from each of its nodes all paths that leave it. A node of the path that
    /// no explored path has passed lies on all paths.
    fn join(&self) -> Option<Join> {
        let path = self.path()?;
        let places: HashMap<usize, usize> = path.iter().copied().zip(0..).collect();
        let mut seen = vec![false; self.next.len()];
        let mut farthest = 0;
        for (place, &on_path) in path.iter().enumerate() {
            if place > 0 && farthest == place {
                return Some(match on_path {
                    RETURN => Join::Return,
                    number => Join::At(self.addresses[number]),
                });
            }
            let mut left = vec![on_path];
            while let Some(at) = left.pop() {
                for &to in &self.next[at] {
                    match places.get(&to) {
                        Some(&reached) => farthest = farthest.max(reached),
                        None if !seen[to] => {
                            seen[to] = true;
                            left.push(to);
                        }
                        None => {}
                    }
                }
            }
        }
        None
    }

    /// Returns a shortest path from the beginning to the return.
    fn path(&self) -> Option<Vec<usize>> {
        let mut before: HashMap<usize, usize> = HashMap::new();
        let mut left = VecDeque::from([RETURN + 1]);
        while let Some(at) = left.pop_front() {
            if at == RETURN {
                let mut path = vec![at];
                while let Some(&at) = before.get(path.last()?) {
                    path.push(at);
                }
                path.reverse();
                return Some(path);
            }
            for &to in &self.next[at] {
                if to != RETURN + 1 && !before.contains_key(&to) {
                    before.insert(to, at);
                    left.push_back(to);
                }
            }
        }
        None
    }
}
