//! Chains of ANDs, and of products of numbers, as trees. `all = all && x[i] < y[i]` in a loop is a chain as long as
//! the loop; the product is the same in any order, and of factors that are all there it takes as many rounds as their
//! number can be halved. Chains of ORs are chains of ANDs of what is not (see [`super::bitwise::or`]).
//!
//! A product inside a chain that nothing but the next one holds is a factor of nothing else, so that it need not be
//! computed for itself. What a program still holds is computed as it stands.
//!
//! Which factors are multiplied first depends on how many rounds they wait for, which is public: the two that are
//! there first, again and again, so that the last product is there as early as it can be.

use super::bitwise::and;
use super::node::{Facts, Form, Native, Node, Origin, Word};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// The factors of a word that is a product of more than two.
pub fn factors(root: &Rc<Node>, form: Form) -> Option<Vec<Word>> {
    let mut factors = Vec::new();
    let mut left = vec![root.clone()];
    while let Some(node) = left.pop() {
        // The left one first, as in the program.
        for (is_inside, word) in pair(&node, form)? {
            match word {
                Word::Secret(inner) if is_inside => left.push(inner),
                word => factors.push(word),
            }
        }
    }
    (factors.len() > 2).then_some(factors)
}

/// The factors of a product, and whether each is inside a chain.
fn pair(node: &Node, form: Form) -> Option<[(bool, Word); 2]> {
    node.with_origin(|origin| match (form, origin?) {
        (Form::Binary, Origin::And(x @ Word::Secret(_), y @ Word::Secret(_)))
        | (Form::Arithmetic, Origin::Product(x @ Word::Secret(_), y @ Word::Secret(_))) => {
            Some([x, y].map(|word| (is_inside(word, form), word.clone())))
        }
        _ => None,
    })
}

/// Whether a factor is a product that nothing holds but the one that it is a factor of.
fn is_inside(word: &Word, form: Form) -> bool {
    let Word::Secret(node) = word else {
        return false;
    };
    Rc::strong_count(node) == 1 && pair(node, form).is_some()
}

/// Products of pairs of factors, each with after how many rounds it is there, until two are left; `plan` is told each
/// pair and its product, and says after how many rounds that one is there.
pub fn joined(
    form: Form,
    factors: Vec<(u64, Word)>,
    mut plan: impl FnMut(&Word, [Word; 2]) -> u64,
) -> [Word; 2] {
    let mut order = 0;
    let mut next = || {
        order += 1;
        order
    };
    let mut words: Vec<Word> = Vec::with_capacity(2 * factors.len());
    let mut left = BinaryHeap::new();
    for (rounds, word) in factors {
        left.push(Reverse((rounds, next(), words.len())));
        words.push(word);
    }
    loop {
        let Some((Reverse((_, _, x)), Reverse((_, _, y)))) = left.pop().zip(left.pop()) else {
            unreachable!("there were more than two");
        };
        let pair = [x, y].map(|at| words[at].clone());
        if left.is_empty() {
            return pair;
        }
        let [x, y] = &pair;
        let product = match form {
            Form::Binary => and(x, y),
            Form::Arithmetic => {
                let origin = Origin::Product(x.clone(), y.clone());
                Node::made(origin, Facts::NONE, Native::One(form))
            }
        };
        let rounds = plan(&product, pair);
        left.push(Reverse((rounds, next(), words.len())));
        words.push(product);
    }
}
