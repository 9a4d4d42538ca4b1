//! Claims on fixed-point numbers: that they stayed in range. A checked word's step leaves its
//! claims when it is planned. A word that is never computed therefore has no claims, and sums are
//! claimed in the form in which they are computed. Right before an opening, all claims are settled
//! together, in secret ([`super::settling`]).
//!
//! | step | claim |
//! | --- | --- |
//! | a sum of n | each term is less than 2^(61 − log₂ n), unless the sum surely fits a word |
//! | a product, a sum of products | it is the exact one over the integers, and can be truncated |
//! | a product by a public number, a shift to the left | the factor is small enough for that |
//! | a truncation | its operand is less than 2^62 |
//! | a range-checked word ([`Held`]) | it lies in its range |
//!
//! Integers are not checked: they wrap, as the instruction set defines. Numbers that are proved to
//! stay in range are not checked either, such as the steps of Newton's iteration and results
//! computed from numbers of a known range ([`crate::floats::fixed::known`]).
//!
//! A stated range is claimed when something is computed from the word. A result that follows from
//! the range alone, such as a comparison with a number outside it, is not computed from the word.
//!
//! **Recipients.** A flag belongs to one line of the program, and to the recipients whose values
//! depend on that line. No party learns about a number that nothing it receives was computed from.
//!
//! **Simulation.** Claims follow from the program and from public values. So do their sizes, their
//! order and the messages that settle them, each of which is simulated by its own argument. Whether
//! a claim holds is a secret bit, which [`mpc::guards`] opens to the recipients of values that
//! depend on it. This bit is an output of the functionality.

use super::node::{Form, Held, Node, Origin, Wanted, Word};
use super::size::{self, Size};
use super::steps::{Joint, Local, Step, Work};
use super::watch::Claim;
use std::collections::HashMap;
use std::rc::Rc;

/// The owner of a claim.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The instruction of the claim; 0 for none.
    pub claim: Claim,
    /// A bit for each recipient whose values depend on the claimed word.
    pub among: u64,
}

/// The recipients that each word reaches. If there is only one recipient, the map is empty.
#[derive(Default)]
pub struct Reached(HashMap<*const Node, u64>);

impl Reached {
    /// Finds the dependencies of the words that recipients receive; each recipient is given by a
    /// bit.
    #[must_use]
    pub fn by(wanted: &[(u64, Wanted)]) -> Self {
        let Some((first, _)) = wanted.first() else {
            return Self::default();
        };
        if wanted.iter().all(|(recipient, _)| recipient == first) {
            return Self::default();
        }
        let mut all: HashMap<*const Node, u64> = HashMap::new();
        for (recipient, (root, _)) in wanted {
            let mut left = vec![root.clone()];
            while let Some(node) = left.pop() {
                let among = all.entry(Rc::as_ptr(&node)).or_default();
                if *among & recipient != 0 {
                    continue;
                }
                *among |= recipient;
                node.with_origin(|origin| {
                    let words = origin.map(Origin::words).into_iter().flatten().flatten();
                    left.extend(words.filter_map(|word| match word {
                        Word::Secret(node) => Some(node.clone()),
                        Word::Public(_) => None,
                    }));
                });
            }
        }
        Self(all)
    }

    /// Returns the recipients that a word reaches, if it was part of the graph.
    #[must_use]
    pub fn among(&self, node: &Rc<Node>) -> Option<u64> {
        self.0.get(&Rc::as_ptr(node)).copied()
    }
}

/// The claims on words that are computed together. Deliberately without `Debug`: they hold shares.
#[derive(Default)]
pub struct Claims {
    /// Numbers, and the bits that they are checked against.
    pub holds: Vec<(Owner, Rc<Node>, u32)>,
    /// The index in `holds` of each of them.
    known: HashMap<(Owner, *const Node), usize>,
    /// Numbers that are checked to lie between two others.
    pub between: Vec<(Owner, Rc<Node>, [i64; 2])>,
    /// Sums of products, with the steps that compute them.
    pub products: Vec<(Owner, Rc<Node>, Step)>,
}

impl Claims {
    /// Adds the claims of a checked word's step.
    pub fn add(&mut self, owner: Owner, target: &Rc<Node>, step: &Step) {
        let need = |at: usize| &step.needs[at].0;
        match step.work {
            Work::Local(Local::Add | Local::Subtract) => {
                self.hold_summands(owner, step.needs.iter().map(|(word, _)| word));
            }
            Work::Local(Local::Scale(by)) => self.hold_factor(owner, need(0), by),
            Work::Local(Local::ShiftLeft(places)) => self.hold_factor(owner, need(0), 1 << places),
            Work::Local(Local::Mask(u64::MAX)) => self.hold_as_stated(owner, target),
            Work::Joint(Joint::Truncate(_)) => self.hold_truncated(owner, need(0)),
            Work::Joint(Joint::Multiply) => {
                let (left, right) = step.needs.split_at(step.needs.len() / 2);
                let pairs = left.iter().zip(right);
                let size = size::of_products(pairs.map(|((x, _), (y, _))| [x.size(), y.size()]));
                self.add_products(owner, &Word::Secret(target.clone()), step.clone(), size);
            }
            _ => {}
        }
    }

    /// Claims that a sum of products is the exact one over the integers, and can be truncated.
    pub fn add_products(&mut self, owner: Owner, sum: &Word, step: Step, size: Size) {
        let Word::Secret(node) = sum else {
            return;
        };
        if owner.claim == 0 || size < size::ROOM {
            return;
        }
        for (factor, _) in &step.needs {
            self.hold_truncated(owner, factor);
        }
        self.hold_surely(owner, node, size::WORD);
        self.products.push((owner, node.clone(), step));
    }

    /// Claims that a sum fits a word.
    pub fn hold_summands<'w>(&mut self, owner: Owner, words: impl Iterator<Item = &'w Word>) {
        if owner.claim == 0 {
            return;
        }
        let some: Vec<&Word> = words
            .filter(|word| !matches!(word, Word::Public(0)))
            .collect();
        let size: Size = some.iter().map(|word| word.size()).sum();
        if some.len() > 1 && size >= size::ROOM {
            let bits = size::WORD + 1 - some.len().next_power_of_two().ilog2();
            some.iter().for_each(|word| self.hold(owner, word, bits));
        }
    }

    /// Claims that a number can be truncated, multiplied and compared.
    pub fn hold_truncated(&mut self, owner: Owner, word: &Word) {
        if owner.claim != 0 && word.size() >= size::ROOM {
            self.hold(owner, word, size::WORD);
        }
    }

    fn hold_factor(&mut self, owner: Owner, word: &Word, by: u64) {
        if word.size() * size::of_number(by as i64) >= size::ROOM {
            self.hold(owner, word, size::of_factor(by));
        }
    }

    fn hold_as_stated(&mut self, owner: Owner, target: &Rc<Node>) {
        let origin = target.with_origin(|origin| match origin {
            Some(Origin::Held(word, held)) => Some((word.clone(), *held)),
            _ => None,
        });
        match origin {
            Some((word, Held::Below(bits))) => self.hold(owner, &word, bits),
            Some((Word::Secret(node), Held::Between(least, most))) => {
                self.between.push((owner, node, [least, most]));
            }
            _ => {}
        }
    }

    fn hold(&mut self, owner: Owner, word: &Word, bits: u32) {
        match word {
            Word::Secret(node) if word.size() > size::passing(bits) => {
                self.hold_surely(owner, node, bits);
            }
            _ => {}
        }
    }

    /// Claims the bound even if the known size implies it: the size may hold only because of this
    /// claim.
    fn hold_surely(&mut self, owner: Owner, node: &Rc<Node>, bits: u32) {
        let next = self.holds.len();
        let at = *self
            .known
            .entry((owner, Rc::as_ptr(node)))
            .or_insert_with(|| {
                self.holds.push((owner, node.clone(), bits));
                next
            });
        let held = &mut self.holds[at].2;
        *held = bits.min(*held);
    }

    /// Returns the numbers that the checks read, which must be computed before.
    #[must_use]
    pub fn held(&self) -> Vec<Wanted> {
        let holds = self.holds.iter().map(|(_, node, _)| node);
        let all = holds.chain(self.between.iter().map(|(_, node, _)| node));
        all.map(|node| (node.clone(), Form::Arithmetic)).collect()
    }
}
