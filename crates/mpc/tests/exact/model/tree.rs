//! Trees of ANDs (`tree.rs` of the crate), for any protocol that can multiply bits.

use super::{Shared, add};

/// Products of one bit with each of several others.
pub struct Join<const N: usize> {
    pub left: Shared<N>,
    pub rights: Vec<Shared<N>>,
}

/// A function that multiplies all joins in one round. Returns the products in order.
pub type Multiply<'m, const N: usize> = &'m mut dyn FnMut(&[Join<N>]) -> Vec<Shared<N>>;

/// Computes the carry out of all spans, from the lowest up: g = g_hi ⊕ p_hi g_lo and p = p_hi p_lo
/// for two neighbours, level by level. The lowest span has no propagate bit.
pub fn top_carry<const N: usize>(
    mut generates: Vec<Shared<N>>,
    mut propagates: Vec<Shared<N>>,
    multiply: Multiply<N>,
) -> Shared<N> {
    while generates.len() > 1 {
        let pairs = generates.len() / 2;
        // The propagate bit of span i is at i − 1.
        let joins: Vec<Join<N>> = (0..pairs)
            .map(|pair| {
                let mut rights = vec![generates[2 * pair]];
                rights.extend((pair > 0).then(|| propagates[2 * pair - 1]));
                let left = propagates[2 * pair];
                Join { left, rights }
            })
            .collect();
        let mut products = multiply(&joins).into_iter();
        let (mut upper, mut both) = (Vec::new(), Vec::new());
        for pair in 0..pairs {
            let carried = products.next().expect("a product for each factor");
            upper.push(add(generates[2 * pair + 1], carried));
            both.extend((pair > 0).then(|| products.next().expect("a product for each factor")));
        }
        if generates.len() % 2 == 1 {
            upper.extend(generates.last());
            both.extend(propagates.last());
        }
        (generates, propagates) = (upper, both);
    }
    generates[0]
}

/// Computes the AND of all bits: the first half with the second, with an odd one left over.
pub fn conjunction<const N: usize>(mut bits: Vec<Shared<N>>, multiply: Multiply<N>) -> Shared<N> {
    while bits.len() > 1 {
        let pairs = bits.len() / 2;
        let joins: Vec<Join<N>> = (0..pairs)
            .map(|at| Join {
                left: bits[at],
                rights: vec![bits[pairs + at]],
            })
            .collect();
        let mut products = multiply(&joins);
        products.extend_from_slice(&bits[2 * pairs..]);
        bits = products;
    }
    bits[0]
}

/// Computes all carries of an addition from its generate and propagate bits (Sklansky 1960).
pub fn prefix_carries<const N: usize>(
    mut generates: Vec<Shared<N>>,
    mut propagates: Vec<Shared<N>>,
    multiply: Multiply<N>,
) -> Vec<Shared<N>> {
    let mut distance = 1;
    while distance < generates.len() {
        let upper: Vec<usize> = (0..generates.len())
            .filter(|at| at & distance != 0)
            .collect();
        // The last position of the block of `distance` bits below.
        let lower = |at: usize| at / distance * distance - 1;
        let joins: Vec<Join<N>> = upper
            .iter()
            .map(|at| {
                let mut rights = vec![generates[lower(*at)]];
                rights.extend((*at >= 2 * distance).then(|| propagates[lower(*at)]));
                let left = propagates[*at];
                Join { left, rights }
            })
            .collect();
        let mut products = multiply(&joins).into_iter();
        for at in upper {
            let carried = products.next().expect("a product for each factor");
            generates[at] = add(generates[at], carried);
            if at >= 2 * distance {
                propagates[at] = products.next().expect("a product for each factor");
            }
        }
        distance *= 2;
    }
    generates
}
