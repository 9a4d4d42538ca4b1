//! Declared rounds and bits, over all links. The derivations stand in the files of the protocols.

use crate::leaves::{Leaves, Wanted};
use crate::tree::{prefix_levels, top_carry_levels};
use crate::{Cost, Operation, Recipient};

/// The cost of an operation.
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
                bits: (192 + 3 * u64::from(shift.bits())) * n,
            },
        },
        Operation::Truncate { n, shift } => Cost {
            rounds: 2,
            bits: (64 + 3 * u64::from(shift.bits())) * n,
        },
        Operation::And { n, width, rights } => Cost {
            rounds: 1,
            bits: 3 * rights * width * n,
        },
        Operation::Sign { n, width } => {
            let leaves = Leaves::new(Wanted::Carry, as_size(width) - 1);
            of_leaves(&leaves, n) + of_levels(&top_carry_levels(leaves.groups()), n)
        }
        Operation::EqualZero { n, width } => {
            let leaves = Leaves::new(Wanted::Propagate, as_size(width));
            let groups = leaves.groups() as u64;
            let levels = u64::from(groups.next_power_of_two().ilog2());
            of_leaves(&leaves, n)
                + Cost {
                    rounds: levels,
                    bits: 3 * (groups - 1) * n,
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

/// A round for each level of a tree, 3 bits a product.
fn of_levels(levels: &[(u64, u64)], n: u64) -> Cost {
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

fn as_size(width: u64) -> usize {
    usize::try_from(width).expect("a width of at most 64")
}
