//! Trees of ANDs: carries of an addition, and the AND of all bits, for any protocol that can
//! multiply.
//!
//! A span of positions has a *generate* and a *propagate* bit. Two neighbours join to g = g_hi ⊕
//! p_hi g_lo and p = p_hi p_lo. The two products share a factor, which protocols exploit.

use crate::{Bits, Join, Result};
use std::ops::Range;

/// A function that multiplies all joins in one round. Returns the products in order.
pub(crate) type Multiply<'m> = &'m mut dyn FnMut(&[Join]) -> Result<Vec<Bits>>;

/// The generate bit of joined spans, and their propagate bit if a lower span exists.
struct Span {
    generate: Bits,
    propagate: Option<Bits>,
}

/// Computes the carry out of all spans, from `count` generate planes and the propagate planes of
/// all spans except the lowest. Only the top carry is needed, so this is a tree and not a
/// parallel-prefix adder.
pub(crate) fn top_carry(leaves: &Bits, count: usize, multiply: Multiply) -> Result<Bits> {
    let mut spans: Vec<Span> = (0..count)
        .map(|at| Span {
            generate: leaves.planes(at..at + 1),
            propagate: (at > 0).then(|| leaves.planes(count + at - 1..count + at)),
        })
        .collect();
    while spans.len() > 1 {
        spans = join_neighbours(spans, multiply)?;
    }
    Ok(spans.swap_remove(0).generate)
}

/// Computes one level of the carry tree, from the lowest pair up.
fn join_neighbours(spans: Vec<Span>, multiply: Multiply) -> Result<Vec<Span>> {
    let pairs = spans.chunks_exact(2);
    let joins: Vec<Join> = pairs
        .map(|pair| {
            let propagate = pair[1].propagate.as_ref();
            let rights = [Some(&pair[0].generate), pair[0].propagate.as_ref()];
            Join::new(
                propagate.expect("only the lowest span lacks it"),
                rights.into_iter().flatten().collect(),
            )
        })
        .collect();
    let mut products = multiply(&joins)?.into_iter();
    let mut next = || products.next().expect("a product for each factor");
    let mut joined = Vec::with_capacity(spans.len().div_ceil(2));
    let mut spans = spans.into_iter();
    while let Some(low) = spans.next() {
        let Some(mut high) = spans.next() else {
            joined.push(low);
            break;
        };
        high.generate.xor_assign(&next());
        high.propagate = low.propagate.is_some().then(&mut next);
        joined.push(high);
    }
    Ok(joined)
}

/// Returns, for each level of [`top_carry`], how many joins have one product and how many have two.
pub(crate) fn top_carry_levels(count: usize) -> Vec<(u64, u64)> {
    let (mut spans, mut levels) = (count as u64, Vec::new());
    while spans > 1 {
        levels.push((1, spans / 2 - 1));
        spans = spans.div_ceil(2);
    }
    levels
}

/// Computes the AND of all planes.
pub(crate) fn conjunction(mut bits: Bits, multiply: Multiply) -> Result<Bits> {
    while bits.width() > 1 {
        let (pairs, odd) = (bits.width() / 2, bits.width() % 2);
        let (left, right) = (bits.planes(0..pairs), bits.planes(pairs..2 * pairs));
        let product = multiply(&[Join::new(&left, vec![&right])])?.swap_remove(0);
        bits = if odd == 1 {
            Bits::stack(&[&product, &bits.planes(2 * pairs..2 * pairs + 1)])
        } else {
            product
        };
    }
    Ok(bits)
}

/// Computes the carries out of all bits 0.. of an addition, from its generate and propagate bits
/// (Sklansky 1960): at distance d, every second block of d bits is joined to the last bit of the
/// block below it.
pub(crate) fn prefix_carries(
    generate: &Bits,
    propagate: &Bits,
    multiply: Multiply,
) -> Result<Bits> {
    let width = generate.width();
    let planes_of = |bits: &Bits| {
        (0..width)
            .map(|j| bits.planes(j..j + 1))
            .collect::<Vec<_>>()
    };
    let (mut g, mut p) = (planes_of(generate), planes_of(propagate));
    let mut distance = 1;
    while distance < width {
        let lower = |j: usize| (j & !(distance - 1)) - 1;
        let upper: Vec<usize> = (0..width).filter(|j| j & distance != 0).collect();
        // Blocks that reach bit 0 have no carry in, so their propagate bit is no longer needed.
        let joins: Vec<Join> = upper
            .iter()
            .map(|j| {
                let mut rights = vec![&g[lower(*j)]];
                if *j >= 2 * distance {
                    rights.push(&p[lower(*j)]);
                }
                Join::new(&p[*j], rights)
            })
            .collect();
        let mut products = multiply(&joins)?.into_iter();
        let mut next = || products.next().expect("a product for each factor");
        for j in upper {
            g[j].xor_assign(&next());
            if j >= 2 * distance {
                p[j] = next();
            }
        }
        distance *= 2;
    }
    let all: Vec<&Bits> = g.iter().collect();
    Ok(Bits::stack(&all))
}

/// Computes, for each plane, the AND of it and all planes before it (Sklansky 1960), in
/// ⌈log2(width)⌉ rounds.
pub(crate) fn prefix_conjunctions(bits: &Bits, multiply: Multiply) -> Result<Bits> {
    let width = bits.width();
    let mut all: Vec<Bits> = (0..width).map(|j| bits.planes(j..j + 1)).collect();
    for uppers in upper_halves(width) {
        let joins: Vec<Join> = uppers
            .clone()
            .map(|upper| Join::new(&all[upper.start - 1], all[upper].iter().collect()))
            .collect();
        let products = multiply(&joins)?;
        for (at, product) in uppers.flatten().zip(products) {
            all[at] = product;
        }
    }
    Ok(Bits::stack(&all.iter().collect::<Vec<_>>()))
}

/// Returns, for each level of [`prefix_conjunctions`], the upper half of every block of 2·distance
/// planes. It is joined to the last plane of the lower half.
fn upper_halves(width: usize) -> impl Iterator<Item = impl Iterator<Item = Range<usize>> + Clone> {
    let distances = std::iter::successors(Some(1), |distance| Some(2 * distance));
    let distances = distances.take_while(move |distance| *distance < width);
    distances.map(move |distance| {
        let starts = (distance..width).step_by(2 * distance);
        starts.map(move |start| start..(start + distance).min(width))
    })
}

/// Returns the number of products of each join, for each level of [`prefix_conjunctions`].
pub(crate) fn prefix_conjunction_levels(
    width: usize,
) -> impl Iterator<Item = impl Iterator<Item = u64>> {
    upper_halves(width).map(|uppers| uppers.map(|upper| upper.len() as u64))
}

/// Returns, for each level of [`prefix_carries`], how many joins have one product and how many have
/// two.
pub(crate) fn prefix_levels(width: u64) -> Vec<(u64, u64)> {
    let (mut distance, mut levels) = (1, Vec::new());
    while distance < width {
        let upper = (0..width).filter(|j| j & distance != 0);
        let (two, one): (Vec<u64>, Vec<u64>) = upper.partition(|j| *j >= 2 * distance);
        levels.push((one.len() as u64, two.len() as u64));
        distance *= 2;
    }
    levels
}
