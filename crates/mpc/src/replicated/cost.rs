//! Declared rounds and bits, over all links. Each protocol's file derives them.

use super::guard::PARITIES;
use crate::leaves::{Leaves, Wanted};
use crate::range::SUMS;
use crate::tree::{prefix_levels, top_carry_levels};
use crate::{Compared, Cost, Operation, Recipient};

/// Returns the cost of an operation.
#[must_use]
pub fn of(operation: Operation) -> Cost {
    match operation {
        Operation::Share { n } => Cost {
            rounds: 1,
            bits: 64 * n,
        },
        Operation::Reveal { n, to } => Cost {
            rounds: 1,
            bits: 64 * n * if to == Recipient::All { 3 } else { 1 },
        },
        Operation::ShareBits { n, width } => Cost {
            rounds: 1,
            bits: width * n,
        },
        Operation::RevealBits { n, width, to } => Cost {
            rounds: 1,
            bits: width * n * if to == Recipient::All { 3 } else { 1 },
        },
        Operation::Bilinear { n, truncate, .. } => match truncate {
            None => Cost {
                rounds: 1,
                bits: 192 * n,
            },
            Some(shift) => Cost {
                rounds: 2,
                bits: (192 + 3 * u64::from(shift.bits()) + u64::from(shift.above())) * n,
            },
        },
        Operation::Affine {
            left,
            right,
            n,
            shift,
        } => of(Operation::Bilinear {
            left,
            right,
            n,
            truncate: Some(shift),
        }),
        Operation::RectifiedAffine {
            left,
            right,
            n,
            shift,
            compared,
        } => {
            let (compared, dropped) = compared.of_summands(2, shift.lifted().bits());
            let sum = of(Operation::Affine {
                left,
                right,
                n,
                shift,
            });
            // The product and the truncation run in the same rounds as the leaves.
            let mut sign = of_sign(n, compared, 64 - dropped as usize);
            sign.rounds -= sum.rounds;
            sum + sign + of(Operation::BitMultiply { n })
        }
        Operation::Rectify { n, compared } => {
            let (compared, dropped) = compared.of_summands(2, 0);
            of_sign(n, compared, 64 - dropped as usize) + of(Operation::BitMultiply { n })
        }
        Operation::InRange { n } => {
            let shared = Cost {
                rounds: 1,
                bits: 192 * SUMS as u64 * n,
            };
            shared
                + of(Operation::EqualZero {
                    n: n + 1,
                    width: PARITIES as u64,
                })
        }
        Operation::Truncate { n, shift } => Cost {
            rounds: 2,
            bits: (64 + 3 * u64::from(shift.bits())) * n,
        },
        Operation::And { n, width, rights } => Cost {
            rounds: 1,
            bits: 3 * rights * width * n,
        },
        Operation::Sign { n, width } => of_sign(n, Compared::proved(as_size(width)), 64),
        Operation::EqualZero { n, width } => {
            let leaves = Leaves::new(Wanted::Propagate, as_size(width));
            let spans = leaves.spans() as u64;
            let levels = u64::from(spans.next_power_of_two().ilog2());
            of_leaves(&leaves, n)
                + Cost {
                    rounds: levels,
                    bits: 3 * (spans - 1) * n,
                }
        }
        Operation::BitMultiply { n } => Cost {
            rounds: 2,
            bits: 256 * n,
        },
        Operation::BitToRing { n } => Cost {
            rounds: 2,
            bits: 192 * n,
        },
        Operation::ToBinary { n, width: 1 } => Cost { rounds: 1, bits: n },
        Operation::ToBinary { n, width } => {
            let start = Cost {
                rounds: 2,
                bits: (width + 3 * (width - 1)) * n,
            };
            start + of_levels(&prefix_levels(width - 1), n)
        }
    }
}

/// Cost of a sign in words of `bits` bits, with its guard.
fn of_sign(n: u64, compared: Compared, bits: usize) -> Cost {
    let leaves = Leaves::new(Wanted::Carry, compared.width() - 1);
    let mut sign = of_leaves(&leaves, n) + of_levels(&top_carry_levels(leaves.spans()), n);
    sign.bits += compared
        .reach(bits)
        .map_or(0, |reach| u64::from(reach - 1) * n);
    sign
}

/// Cost of a tree: a round for each level, 3 bits per product.
pub(super) fn of_levels(levels: &[(u64, u64)], n: u64) -> Cost {
    Cost {
        rounds: levels.len() as u64,
        bits: levels
            .iter()
            .map(|(one, two)| 3 * (one + 2 * two) * n)
            .sum(),
    }
}

fn of_leaves(leaves: &Leaves, n: u64) -> Cost {
    Cost {
        rounds: 2,
        bits: (leaves.monomials() + 2 * leaves.outputs()) as u64 * n,
    }
}

pub(super) fn as_size(width: u64) -> usize {
    usize::try_from(width).expect("a width of at most 64")
}
