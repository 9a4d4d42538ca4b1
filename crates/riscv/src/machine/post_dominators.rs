//! Where the two sides of a branch meet again: at its immediate post-dominator, the first
//! instruction on every path from the branch to the end of the function.
//!
//! The result decides only where to look for the end of a side. Whether both sides have reached one
//! place, in the same call, is checked when they are executed.

use super::code::Code;
use crate::isa::instruction::Instruction;
use crate::isa::operation::Operation;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Instructions that are looked at for one branch.
const MOST: usize = 1 << 15;

/// The registers that calls keep their return address in.
const LINKS: [u8; 2] = [1, 5];

/// Where both sides of a branch come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// That instruction.
    At(u64),
    /// The function's return.
    Return,
}

/// What becomes of the calls that are open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Nothing.
    Stays,
    /// There is one more.
    Calls,
    /// The newest ends.
    Returns,
}

/// Where branches of a program join, as far as was asked.
pub struct Joins {
    /// Behind the last instruction of each function.
    ends: BTreeSet<u64>,
    known: HashMap<u64, Option<Join>>,
    /// Whether functions return, by where they begin.
    returning: HashMap<u64, bool>,
}

/// The ways that instructions go on, from one of them. A place is a number; the first is the
/// return.
struct Ways {
    numbers: HashMap<u64, usize>,
    addresses: Vec<u64>,
    next: Vec<Vec<usize>>,
}

const RETURN: usize = 0;

/// What an instruction does to calls, by the registers that the manual's hints to return-address
/// stacks name (section 2.5.1).
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
    /// Of a program whose functions end there.
    #[must_use]
    pub fn new(ends: BTreeSet<u64>) -> Self {
        Self {
            ends,
            known: HashMap::new(),
            returning: HashMap::new(),
        }
    }

    /// Where the sides of a branch meet; `None` where that is not to be seen.
    pub fn of(&mut self, code: &mut Code, branch: u64) -> Option<Join> {
        if let Some(&known) = self.known.get(&branch) {
            return known;
        }
        let ways = self.ways(code, branch, true);
        let join = ways.and_then(|ways| ways.join());
        self.known.insert(branch, join);
        join
    }

    /// Whether a function comes to a return. One whose ways are too many to look at does.
    fn returns(&mut self, code: &mut Code, function: u64) -> bool {
        if let Some(&known) = self.returning.get(&function) {
            return known;
        }
        let ways = self.ways(code, function, false);
        let returns = ways.is_none_or(|ways| ways.next.iter().flatten().any(|&to| to == RETURN));
        self.returning.insert(function, returns);
        returns
    }

    /// All ways from an instruction on; `None` where they are too many.
    fn ways(&mut self, code: &mut Code, from: u64, looks_into_calls: bool) -> Option<Ways> {
        let mut ways = Ways::new();
        ways.number(from);
        let mut at = RETURN + 1;
        while at < ways.addresses.len() {
            if at > MOST {
                return None;
            }
            let address = ways.addresses[at];
            // What is no instruction leads nowhere.
            if let Ok(instruction) = code.at(address) {
                let next = address.wrapping_add(instruction.length.into());
                let jump = address.wrapping_add_signed(instruction.operands.immediate.into());
                // Behind a function's last instruction is another's first: a call there does not
                // return.
                let follows = (!self.ends.contains(&next)).then_some(next);
                let calls = flow(&instruction) == Flow::Calls;
                match instruction.operation {
                    Operation::Branch(_) => ways.lead(at, [Some(jump), follows]),
                    Operation::Jump if !calls => ways.lead(at, [Some(jump), None]),
                    // A jump to a computed address is taken for a call that returns for this
                    // function.
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

    /// The first place after the beginning that all ways to the return come by. One such way is
    /// gone along, and from each of its places all ways beside it: a place that none of them has
    /// gone beyond is on all.
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

    /// A shortest way from the beginning to the return.
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
