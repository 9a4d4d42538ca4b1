//! Declared rounds and bits over all links, without those of the correlations. Each protocol's file
//! derives them.

use super::parts::parts_of;
use super::sign::leaves_of;
use crate::correlations::Comparisons;
use crate::leaves::Wanted;
use crate::range::SUMS;
use crate::tree::{prefix_levels, top_carry_levels};
use crate::{Cost, Operation, Recipient};

/// Returns the cost of an operation among the given number of parties. Large comparisons take parts
/// of about `part` numbers.
#[must_use]
pub fn of(operation: Operation, parties: u64, comparisons: Comparisons, part: usize) -> Cost {
    // Within other operations nothing is split.
    let whole = |operation| of(operation, parties, comparisons, usize::MAX);
    let in_parts = |cost: Cost, n: u64| Cost {
        rounds: cost.rounds
            + parts_of(as_size(n), part, comparisons).map_or(0, |p| p.len() as u64 - 1),
        ..cost
    };
    let guards = comparisons == Comparisons::Guarded;
    let links = parties * (parties - 1);
    let opened = |bits: u64| Cost {
        rounds: 1,
        bits: bits * links,
    };
    let revealed = |bits: u64, to: Recipient| Cost {
        rounds: 1,
        bits: match to {
            Recipient::All => bits * links,
            Recipient::One(_) => bits * (parties - 1),
        },
    };
    match operation {
        Operation::Share { .. } | Operation::ShareBits { .. } => Cost::default(),
        Operation::Reveal { n, to } => revealed(64 * n, to),
        Operation::RevealBits { n, width, to } => revealed(width * n, to),
        Operation::Bilinear {
            left,
            right,
            n,
            truncate,
        } => {
            let product = match left.elements() + right.elements() {
                0 => Cost::default(),
                elements => opened(64 * elements),
            };
            truncate.map_or(product, |shift| {
                product + whole(Operation::Truncate { n, shift })
            })
        }
        Operation::Affine {
            left,
            right,
            n,
            shift,
        } => {
            let product = Operation::Bilinear {
                left,
                right,
                n,
                truncate: Some(shift),
            };
            whole(product)
        }
        Operation::RectifiedAffine {
            left,
            right,
            n,
            shift,
            compared,
        } => {
            let sum = Operation::Affine {
                left,
                right,
                n,
                shift,
            };
            let sum = whole(sum);
            if parties > 2 {
                return sum + whole(Operation::Rectify { n, compared });
            }
            let (compared, _) = compared.with_guards(guards).of_summands(2, shift.bits());
            let width = compared.width() as u64;
            let mut sign = whole(Operation::Sign { n, width });
            // The sign begins in the round of the truncation.
            sign.rounds -= 1;
            sum + sign + whole(Operation::BitMultiply { n })
        }
        Operation::Rectify { n, compared } => {
            let compared = compared.with_guards(guards);
            let width = compared.of_summands(as_size(parties), 0).0.width() as u64;
            let sign = whole(Operation::Sign { n, width });
            in_parts(sign + whole(Operation::BitMultiply { n }), n)
        }
        Operation::InRange { n } => zeros(comparisons, SUMS as u64, 64, n + 1, links),
        Operation::Truncate { n, .. } => opened(if parties == 2 { n } else { 64 * n }),
        // A correlation has one right factor or two.
        Operation::And { n, width, rights } => opened((rights + rights.div_ceil(2)) * width * n),
        Operation::Sign { n, width } => {
            let (begun, spans) = spans(comparisons, Wanted::Carry, width, n, links);
            in_parts(levels(begun, &top_carry_levels(spans), n, links), n)
        }
        Operation::EqualZero { n, width } => in_parts(zeros(comparisons, 1, width, n, links), n),
        Operation::BitMultiply { n } => opened(65 * n),
        Operation::BitToRing { n } => opened(n),
        Operation::ToBinary { width: 1, .. } if comparisons == Comparisons::LookedUp => {
            Cost::default()
        }
        Operation::ToBinary { n, width } => {
            let begun = match comparisons {
                // An AND of all positions that carry.
                Comparisons::LookedUp => opened(2 * (width - 1) * n),
                Comparisons::Masked | Comparisons::Guarded => opened(width * n),
            };
            levels(begun, &prefix_levels(width - 1), n, links)
        }
    }
}

/// Cost of a tree: one round per level, two bits for a join with one product, three for one with
/// two.
fn levels(start: Cost, levels: &[(u64, u64)], n: u64, links: u64) -> Cost {
    levels.iter().fold(start, |cost, (one, two)| {
        cost + Cost {
            rounds: 1,
            bits: (2 * one + 3 * two) * n * links,
        }
    })
}

/// Cost of testing, for n rows of words, whether all words of a row are zero: the bits of spans, and
/// the AND of all planes.
fn zeros(comparisons: Comparisons, words: u64, width: u64, n: u64, links: u64) -> Cost {
    let (begun, spans) = spans(comparisons, Wanted::Propagate, width, words * n, links);
    let planes = words * spans as u64;
    begun
        + Cost {
            rounds: u64::from(planes.next_power_of_two().ilog2()),
            bits: 2 * (planes - 1) * n * links,
        }
}

/// Cost of the bits of spans of n numbers, and how many spans a number has. Masked numbers are
/// opened. By tables, one party sends digits, and the other entries.
fn spans(
    comparisons: Comparisons,
    wanted: Wanted,
    width: u64,
    n: u64,
    links: u64,
) -> (Cost, usize) {
    let leaves = leaves_of(comparisons, wanted, as_size(width));
    let (rounds, bits) = match comparisons {
        Comparisons::LookedUp => (2, (leaves.positions() + leaves.entries()) as u64 * n),
        Comparisons::Masked | Comparisons::Guarded => (1, width * n * links),
    };
    (Cost { rounds, bits }, leaves.spans())
}

fn as_size(number: u64) -> usize {
    usize::try_from(number).expect("a width of at most 64, or a number of parties")
}
