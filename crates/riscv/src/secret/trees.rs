//! Chains of ANDs, of products, and of minima or maxima, computed as trees. `all = all && x[i] <
//! y[i]` in a loop is a chain as long as the loop, and so is `if (x[i] > best) best = x[i]`. The
//! result does not depend on the order, so n members that are all ready take ⌈log₂ n⌉ times the
//! rounds of one link. Chains of ORs are chains of ANDs of complements (see
//! [`super::bitwise::or`]).
//!
//! A link that only the next link uses has no other use, so it is not computed on its own. A link
//! that the program still holds is computed as it stands.
//!
//! The order of joins depends on the rounds that the members wait for, which is public: always the
//! two that are ready first, so that the last link is ready as early as possible.

use super::bitwise::and;
use super::comparison::{expanded_comparison, expanded_extreme};
use super::node::{End, Facts, Form, Native, Node, Origin, Word};
use super::watch::Claim;
use super::{ARITHMETIC, Secret};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// The operation that joins two members of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// The bitwise AND.
    And,
    /// The product.
    Product,
    /// The minimum or maximum.
    Extreme(End),
}

impl Join {
    /// Joins two words.
    pub fn of(self, [x, y]: [&Word; 2]) -> Word {
        match self {
            Self::And => and(x, y),
            Self::Product => {
                let origin = Origin::Product(x.clone(), y.clone());
                Node::made(origin, Facts::NONE, ARITHMETIC)
            }
            Self::Extreme(end) => {
                let precedes = expanded_comparison(&mut Secret, x, y, end.order);
                expanded_extreme(&mut Secret, [x, y], &precedes, end)
            }
        }
    }

    /// Returns the form of a member that the join needs first.
    pub fn form(self, member: &Word) -> Form {
        match self {
            Self::And => Form::Binary,
            Self::Product => Form::Arithmetic,
            Self::Extreme(_) => member.nearest(),
        }
    }
}

/// Returns the members of a chain of more than two, if the given form of `root` is its last link.
pub fn chain(root: &Rc<Node>, form: Form) -> Option<(Join, Vec<Word>)> {
    let (join, _) = link(root, form)?;
    let mut members = Vec::new();
    let mut left = vec![root.clone()];
    while let Some(node) = left.pop() {
        let (_, words) = link(&node, form)?;
        // The left member comes first, as in the program.
        for (is_inside, word) in words {
            match word {
                Word::Secret(inner) if is_inside => left.push(inner),
                word => members.push(word),
            }
        }
    }
    (members.len() > 2).then_some((join, members))
}

/// Returns the two words that a link joins, and whether each is itself an inner link of the chain.
fn link(node: &Node, form: Form) -> Option<(Join, [(bool, Word); 2])> {
    node.with_origin(|origin| {
        let (join, x, y, holders) = match (form, origin?) {
            (Form::Binary, Origin::And(x @ Word::Secret(_), y @ Word::Secret(_))) => {
                (Join::And, x, y, 1)
            }
            (Form::Arithmetic, Origin::Product(x @ Word::Secret(_), y @ Word::Secret(_))) => {
                (Join::Product, x, y, 1)
            }
            (_, Origin::Extreme(x, y, precedes, end)) if node.native == Native::One(form) => (
                Join::Extreme(*end),
                x,
                y,
                if is_alone(precedes) { 2 } else { 0 },
            ),
            _ => return None,
        };
        let [of_x, of_y] = [x, y].map(|word| is_inside(word, join, holders, node.claim));
        Some((join, [(of_x, x.clone()), (of_y, y.clone())]))
    })
}

/// Returns whether a member is a link of the same kind that only the next link holds, with
/// `holders` references. Links of numbers are created anew with the claim of the last one, so a
/// link is inside only if both are checked, or neither.
fn is_inside(word: &Word, join: Join, holders: usize, claim: Claim) -> bool {
    let Word::Secret(node) = word else {
        return false;
    };
    let is_alike = join == Join::And || (node.claim == 0) == (claim == 0);
    if Rc::strong_count(node) != holders || !is_alike {
        return false;
    }
    node.with_origin(|origin| match (join, origin) {
        (Join::And, Some(Origin::And(x, y))) | (Join::Product, Some(Origin::Product(x, y))) => {
            matches!((x, y), (Word::Secret(_), Word::Secret(_)))
        }
        (Join::Extreme(end), Some(Origin::Extreme(_, _, precedes, of))) => {
            end == *of && is_alone(precedes)
        }
        _ => false,
    })
}

/// Returns whether a comparison is not yet computed, and only the selection by it uses it.
fn is_alone(precedes: &Word) -> bool {
    match precedes {
        Word::Public(_) => false,
        Word::Secret(node) => {
            let is_open = |origin: Option<&Origin>| matches!(origin, Some(Origin::Precedes(..)));
            Rc::strong_count(node) == 1 && node.with_origin(is_open)
        }
    }
}

/// Returns the definition of a word that is expanded only when it is needed.
pub fn expanded(node: &Node, form: Form) -> Option<Word> {
    node.with_origin(|origin| match origin? {
        Origin::Precedes(x, y, order) if form == Form::Binary => {
            Some(expanded_comparison(&mut Secret, x, y, *order))
        }
        Origin::Extreme(x, y, precedes, end) if node.native == Native::One(form) => {
            Some(expanded_extreme(&mut Secret, [x, y], precedes, *end))
        }
        _ => None,
    })
}

/// Joins pairs of members until two are left. Each member comes with the number of rounds after
/// which it is ready. `plan` receives a new link and returns the number of rounds after which it is
/// ready.
pub fn joined(
    join: Join,
    members: Vec<(u64, Word)>,
    mut plan: impl FnMut(&Word) -> u64,
) -> [Word; 2] {
    let mut order = 0;
    let mut next = || {
        order += 1;
        order
    };
    let mut words: Vec<Word> = Vec::with_capacity(2 * members.len());
    let mut left = BinaryHeap::new();
    for (rounds, word) in members {
        left.push(Reverse((rounds, next(), words.len())));
        words.push(word);
    }
    loop {
        let Some((Reverse((_, _, x)), Reverse((_, _, y)))) = left.pop().zip(left.pop()) else {
            unreachable!("there were more than two");
        };
        if left.is_empty() {
            return [x, y].map(|at| words[at].clone());
        }
        let link = join.of([&words[x], &words[y]]);
        left.push(Reverse((plan(&link), next(), words.len())));
        words.push(link);
    }
}
