//! What was sent and is not verified yet, as equations that the sender proves ([`crate::proof`]).
//!
//! An operation records its equations when it ends: each party those of its own messages, and what
//! it knows of those of the two others. All parties record in the same order, with the same sizes.
//! What is recorded is copied, since the caller may overwrite its operands.
//!
//! Party i holds the components i and i + 1. So the left verifier of party i is party i − 1, which
//! shares the first of them, and the right verifier is party i + 1, which shares the second.
//!
//! An equation has two terms, or one and zeros.

use super::Pair;
use super::relations::Half;
use crate::proof::{Equations, Known, MOST_ROWS};
use std::ops::Range;

/// The number of terms of an equation.
pub(super) const TERMS: usize = 2;

/// Factors of many equations: one vector for each term.
type Factors = [Vec<u64>; TERMS];

/// The words of one proof: of the equations of products, and of the others.
pub(super) type Part = [Range<usize>; 2];

/// The role of a party in the proof of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Prover,
    LeftVerifier,
    RightVerifier,
}

/// Equations of one ring.
#[derive(Default)]
pub(super) struct Ledger {
    /// Of products in which all three parties do the same.
    products: Products,
    /// Of messages of one role: those of this party's own messages.
    own: [Factors; 2],
    /// Those of the next party, whose left verifier this party is, with this party's constants.
    left: (Factors, Vec<u64>),
    /// Those of the previous party, whose right verifier this party is, with this party's
    /// constants.
    right: (Factors, Vec<u64>),
}

/// The factors of products, z = x·y. Each party sends the same function of what it holds, and so
/// its own factors are also those that it knows as a verifier.
#[derive(Default)]
struct Products {
    x: [Vec<u64>; 2],
    y: [Vec<u64>; 2],
    /// This party's constants as the left and as the right verifier.
    constants: [Vec<u64>; 2],
}

/// All that is not verified yet.
#[derive(Default)]
pub(super) struct Record {
    pub words: Ledger,
    pub bits: Ledger,
    /// The first and the last step that were recorded.
    pub steps: Option<[String; 2]>,
}

impl Record {
    /// Notes that a step was recorded.
    pub fn note(&mut self, step: &str) {
        match &mut self.steps {
            Some([_, last]) => step.clone_into(last),
            none => *none = Some([step.to_owned(), step.to_owned()]),
        }
    }

    /// Returns the memory that it takes, in words.
    pub fn words(&self) -> usize {
        self.words.size() + self.bits.size()
    }
}

impl Ledger {
    fn size(&self) -> usize {
        let Products { x, y, constants } = &self.products;
        let lists = [x, y, constants, &self.own[0], &self.own[1]];
        let lists = lists.into_iter().chain([&self.left.0, &self.right.0]);
        let constants = self.left.1.len() + self.right.1.len();
        lists.flatten().map(Vec::len).sum::<usize>() + constants
    }

    /// Records products: the components of both factors that this party holds, and its constants as
    /// the left and as the right verifier.
    pub fn products(&mut self, x: Pair, y: Pair, constants: Pair) {
        let Products {
            x: all_x,
            y: all_y,
            constants: all_constants,
        } = &mut self.products;
        for (list, more) in [(all_x, x), (all_y, y), (all_constants, constants)] {
            for (all, more) in list.iter_mut().zip(more) {
                all.extend_from_slice(more);
            }
        }
    }

    /// Records equations that this party proves.
    pub fn prove(&mut self, [left, right]: [&Half; 2]) {
        let [own_left, own_right] = &mut self.own;
        for (all, half) in [(own_left, left), (own_right, right)] {
            for (all, more) in all.iter_mut().zip(&half.factors) {
                all.extend_from_slice(more);
            }
        }
    }

    /// Records a half of equations that the next party or the previous one proves.
    pub fn verify(&mut self, role: Role, half: &Half) {
        let (factors, constants) = match role {
            Role::LeftVerifier => &mut self.left,
            Role::RightVerifier => &mut self.right,
            Role::Prover => unreachable!("a verifier"),
        };
        for (all, more) in factors.iter_mut().zip(&half.factors) {
            all.extend_from_slice(more);
        }
        constants.extend_from_slice(&half.constants);
    }

    /// Fills all lists up to whole rows.
    pub fn fill_up(&mut self, row: usize) {
        let Products { x, y, constants } = &mut self.products;
        let [left, right] = &mut self.own;
        let lists = [x, y, constants, left, right, &mut self.left.0, &mut self.right.0];
        let constants = [&mut self.left.1, &mut self.right.1];
        for list in lists.into_iter().flatten().chain(constants) {
            list.resize(list.len().next_multiple_of(row), 0);
        }
    }

    /// Returns the number of words of the equations of products and of the others, of which this
    /// party has the role.
    fn counts(&self, role: Role) -> [usize; 2] {
        let others = match role {
            Role::Prover => &self.own[0][0],
            Role::LeftVerifier => &self.left.1,
            Role::RightVerifier => &self.right.1,
        };
        [self.products.x[0].len(), others.len()]
    }

    /// Splits the equations of a proof's message into parts that one proof has room for, in rows of
    /// `row` words.
    pub fn parts(&self, role: Role, row: usize) -> Vec<Part> {
        let most = MOST_ROWS / TERMS * row;
        let mut rest = self.counts(role).map(|count| 0..count);
        let mut parts = Vec::new();
        while rest.iter().any(|range| !range.is_empty()) {
            let mut room = most;
            let part = rest.each_mut().map(|range| {
                let taken = range.start..range.end.min(range.start + room);
                room -= taken.len();
                range.start = taken.end;
                taken
            });
            parts.push(part);
        }
        parts
    }

    /// Returns what the prover proves of a part.
    pub fn proved(&self, [products, others]: &Part) -> Vec<Equations<[&[u64]; 2]>> {
        let Products { x, y, .. } = &self.products;
        let [left, right] = &self.own;
        let of_products = [[&x[0], &y[1]], [&y[0], &x[1]]];
        let of_others = [[&left[0], &right[0]], [&left[1], &right[1]]];
        let kinds = [(of_products, products), (of_others, others)];
        let kinds = kinds.into_iter().map(|(terms, range)| Equations {
            terms: terms.map(|term| term.map(|factor| &factor[range.clone()])).into(),
            count: range.len(),
        });
        kinds.collect()
    }

    /// Returns what a verifier knows of a part.
    pub fn known(&self, role: Role, [products, others]: &Part) -> Vec<Known<'_>> {
        let Products { x, y, constants } = &self.products;
        let (own, (factors, others_constants)) = match role {
            Role::LeftVerifier => ([&x[1], &y[1]], &self.left),
            Role::RightVerifier => ([&y[0], &x[0]], &self.right),
            Role::Prover => unreachable!("a verifier"),
        };
        let constants = &constants[usize::from(role == Role::RightVerifier)];
        let [first, second] = factors;
        vec![
            known(own, constants, products),
            known([first, second], others_constants, others),
        ]
    }
}

fn known<'r>(
    factors: [&'r Vec<u64>; TERMS],
    constants: &'r [u64],
    range: &Range<usize>,
) -> Known<'r> {
    let terms = factors.iter().map(|factor| &factor[range.clone()]);
    Known {
        factors: Equations {
            terms: terms.collect(),
            count: range.len(),
        },
        constants: &constants[range.clone()],
    }
}

/// Adds n zeros, and returns where they are.
fn grown(list: &mut Vec<u64>, n: usize) -> &mut [u64] {
    let from = list.len();
    list.resize(from + n, 0);
    &mut list[from..]
}
