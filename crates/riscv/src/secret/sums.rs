//! Sums in the form in which they are computed: their products in one operation, as inner products,
//! and with a single truncation if they are sums of fixed-point numbers. `sum += x[i] * y[i]` in a
//! loop is a chain of sums, each with one product.
//!
//! As in [`super::trees`], a sum that only the next sum uses is not computed on its own, nor is a
//! product that only a sum uses.

use super::node::{Form, Native, Node, Origin, Word};
use super::trees;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A term of a sum: whether it is subtracted, and the word.
pub type Summand = (bool, Word);

/// The terms of a sum.
#[derive(Default)]
pub struct Terms {
    /// The products that are added, and those that are subtracted.
    pub products: [Vec<[Word; 2]>; 2],
    /// The other terms.
    pub others: Vec<Summand>,
}

/// A sum, and inner sums that are truncated by a number of bits.
#[derive(Default)]
pub struct Sum {
    /// The terms that are not truncated.
    pub whole: Terms,
    /// The terms that are truncated together, by the number of dropped bits.
    pub cut: BTreeMap<u32, Terms>,
}

impl Sum {
    /// Returns all words that the sum depends on.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        let all = self.cut.values().chain([&self.whole]);
        all.flat_map(|terms| {
            let products = terms.products.iter().flatten().flatten();
            products.chain(terms.others.iter().map(|(_, word)| word))
        })
    }
}

/// A word to be examined.
struct Open {
    summand: Summand,
    /// The number of bits by which it is truncated, if it is.
    cut: Option<u32>,
}

/// Returns the sum that a word is, if it has more than two terms or sums up products.
pub fn sum(root: &Rc<Node>) -> Option<Sum> {
    let is_rounded = root.with_origin(|origin| match origin {
        Some(Origin::Sum(..) | Origin::Difference(..)) => Some(false),
        Some(Origin::Truncate(.., true)) => Some(true),
        _ => None,
    })?;
    if root.native != Native::One(Form::Arithmetic) {
        return None;
    }
    let (mut sum, mut terms) = (Sum::default(), 0);
    let mut left = inside(&(false, Word::Secret(root.clone())), None)?;
    while let Some(open) = left.pop() {
        // The references are this one and the word that uses it. Terms of a checked sum are
        // checked.
        let is_inside = matches!(&open.summand.1, Word::Secret(node)
            if Rc::strong_count(node) == 2 && (node.claim == 0) == (root.claim == 0));
        if let Some(more) = is_inside.then(|| inside(&open.summand, open.cut)).flatten() {
            left.extend(more);
            continue;
        }
        terms += 1;
        let (negative, word) = open.summand;
        let at = match open.cut {
            Some(bits) => sum.cut.entry(bits).or_default(),
            None => &mut sum.whole,
        };
        match factors(&word).filter(|_| is_inside) {
            Some(factors) => at.products[usize::from(negative)].push(factors),
            None => at.others.push((negative, word)),
        }
    }
    for terms in sum.cut.values_mut().chain([&mut sum.whole]) {
        // The order is that of the program.
        terms.products.iter_mut().for_each(|all| all.reverse());
        terms.others.reverse();
    }
    let products = |terms: &Terms| terms.products[0].len() + terms.products[1].len();
    let all = products(&sum.whole) + sum.cut.values().map(products).sum::<usize>();
    let is_cut_once = !is_rounded && sum.cut.len() == 1 && sum.whole.others.is_empty();
    (terms > 2 || all > 1 || is_cut_once).then_some(sum)
}

/// Returns the terms of a sum, or the operand of a truncation.
fn inside((negative, word): &Summand, cut: Option<u32>) -> Option<Vec<Open>> {
    let open = |negative, word: &Word, cut| Open {
        summand: (negative, word.clone()),
        cut,
    };
    let Word::Secret(node) = word else {
        return None;
    };
    node.with_origin(|origin| match (origin?, cut) {
        (Origin::Sum(x, y), _) => Some(vec![open(*negative, x, cut), open(*negative, y, cut)]),
        (Origin::Difference(x, y), _) => {
            Some(vec![open(*negative, x, cut), open(!*negative, y, cut)])
        }
        (Origin::Truncate(x, bits, true), None) => Some(vec![open(*negative, x, Some(*bits))]),
        // A truncation whose result nothing else uses.
        (Origin::ShiftLeft(Word::Secret(rounded), places), Some(cut))
            if Rc::strong_count(rounded) == 1 && *places == cut =>
        {
            rounded.with_origin(|origin| match origin? {
                Origin::Truncate(x, bits, true) if *bits == cut => {
                    Some(vec![open(*negative, x, Some(cut))])
                }
                _ => None,
            })
        }
        _ => None,
    })
}

/// Returns the factors of a product that is not part of a chain of products.
fn factors(word: &Word) -> Option<[Word; 2]> {
    let Word::Secret(node) = word else {
        return None;
    };
    if trees::chain(node, Form::Arithmetic).is_some() {
        return None;
    }
    node.with_origin(|origin| match origin {
        Some(Origin::Product(x @ Word::Secret(_), y @ Word::Secret(_))) => {
            Some([x.clone(), y.clone()])
        }
        _ => None,
    })
}
