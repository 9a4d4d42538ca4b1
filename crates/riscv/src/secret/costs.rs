//! The cost of steps: the declared costs of the operations that they use.

use super::steps::{Joint, Step, Work};
use crate::numbers::words::Signs;
use mpc::integers::{self, Composition};
use mpc::{Bilinear, Cost, Opening, Operation, Protocol, Shift};

/// Returns the number of rounds that a step takes.
#[must_use]
pub fn rounds(protocol: &dyn Protocol, step: &Step) -> u64 {
    let cost = match step.work {
        Work::Local(_) => Cost::default(),
        Work::Joint(Joint::Multiply) => of_products(protocol, &Bilinear::Elementwise { n: 1 }),
        Work::Joint(joint) => of_steps(protocol, &[joint]),
    };
    cost.rounds
}

/// Returns the cost of steps of one kind together, except for products.
///
/// # Panics
/// Panics for products, whose cost is that of their matrices.
#[must_use]
pub fn of_steps(protocol: &dyn Protocol, works: &[Joint]) -> Cost {
    let of = |operation| protocol.cost(operation);
    let composed = |composition| integers::cost(protocol, composition);
    let n = works.len() as u64;
    let width = u64::from(widest(works));
    // A signed number has at least a sign and one more bit.
    let of_value = width.max(2);
    match works[0] {
        Joint::Multiply => unreachable!("products are done apart"),
        Joint::And(..) => of(Operation::And {
            n: bits(works),
            width: 1,
            rights: 1,
        }),
        Joint::Choose => of(Operation::BitMultiply { n }),
        Joint::Sign(_) => of(Operation::Sign { n, width: of_value }),
        Joint::IsZero(_) => of(Operation::EqualZero { n, width: of_value }),
        Joint::NoOnes(_) => composed(Composition::IsZero { n, width: of_value }),
        Joint::Less(_) => composed(Composition::Less { n, width: of_value }),
        Joint::ToBinary(..) => of(Operation::ToBinary { n, width }),
        Joint::ToArithmetic(_) => of(Operation::BitToRing { n: bits(works) }),
        Joint::Truncate(bits) => {
            let shift = Shift::new(bits).expect("1 to 61 bits are dropped");
            of(Operation::Truncate { n, shift })
        }
        Joint::Divide(_, signs) => composed(Composition::Divide {
            n,
            width,
            signed: signs == Signs::Signed,
        }),
        Joint::DivideBy(_, divisor, signs) => composed(Composition::DivideBy {
            n,
            width,
            divisor,
            signed: signs == Signs::Signed,
        }),
    }
}

/// Returns the cost of a bilinear map.
#[must_use]
pub fn of_products(protocol: &dyn Protocol, map: &Bilinear) -> Cost {
    let (left, right, n) = map.lengths();
    protocol.cost(Operation::Bilinear {
        left: Opening::New(left as u64),
        right: Opening::New(right as u64),
        n: n as u64,
        truncate: None,
    })
}

fn widest(works: &[Joint]) -> u32 {
    let widths = works.iter().map(|work| work.width());
    widths.max().unwrap_or(1)
}

/// Returns the number of bits that remain after packing.
fn bits(works: &[Joint]) -> u64 {
    let masks = works.iter().map(|work| match work {
        Joint::And(ones, _) => *ones,
        Joint::ToArithmetic(worth) => worth.mask(),
        _ => unreachable!("all others are whole words"),
    });
    masks.map(|mask| u64::from(mask.count_ones())).sum()
}
