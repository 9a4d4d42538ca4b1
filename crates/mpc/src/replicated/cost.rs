//! Declared rounds and bits, over all links. The derivations stand in the files of the protocols.

use super::leaves::{Kind, Leaves};
use crate::{Cost, Operation, Receiver};

/// The cost of an operation; exact where n is a multiple of 192 (planes and packed words are whole).
#[must_use]
pub fn of(operation: Operation) -> Cost {
    match operation {
        Operation::Share { n } => Cost {
            rounds: 1,
            bits: 64 * n,
        },
        Operation::Reveal { n, to } => Cost {
            rounds: 1,
            bits: 64 * n * if to == Receiver::All { 3 } else { 1 },
        },
        Operation::Bilinear { n, truncate: 0 } => Cost {
            rounds: 1,
            bits: 192 * n,
        },
        Operation::Bilinear { n, truncate } => Cost {
            rounds: 2,
            bits: (192 + 3 * u64::from(truncate)) * n,
        },
        Operation::Truncate { n, bits } => Cost {
            rounds: 2,
            bits: (64 + 3 * u64::from(bits)) * n,
        },
        Operation::And { n, width } => Cost {
            rounds: 1,
            bits: 3 * width * n,
        },
        Operation::Sign { n, width } => {
            let leaves = Leaves::new(Kind::Carry, as_size(width) - 1);
            let mut tree = Cost::default();
            let mut groups = leaves.groups() as u64;
            while groups > 1 {
                // Two ANDs a pair, but one in the lowest pair, whose propagate bit is not wanted.
                tree = tree
                    + Cost {
                        rounds: 1,
                        bits: 3 * (2 * (groups / 2) - 1) * n,
                    };
                groups = groups.div_ceil(2);
            }
            of_leaves(&leaves, n) + tree
        }
        Operation::EqualZero { n, width } => {
            let leaves = Leaves::new(Kind::Propagate, as_size(width));
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
            let mut cost = Cost {
                rounds: 2,
                bits: (width + 3 * (width - 1)) * n,
            };
            let mut distance = 1;
            while distance < width - 1 {
                let upper = (0..width - 1).filter(|j| j & distance != 0).count() as u64;
                let joined = (2 * distance..width - 1)
                    .filter(|j| j & distance != 0)
                    .count() as u64;
                cost = cost
                    + Cost {
                        rounds: 1,
                        bits: 3 * (upper + joined) * n,
                    };
                distance *= 2;
            }
            cost
        }
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
