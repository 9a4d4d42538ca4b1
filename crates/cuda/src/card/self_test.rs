//! Small products of every kind, compared with the processor's before a card is used.
//!
//! A driver, a compiler or a library of products that is not the one that tacit was tested with may
//! compute something else. Parties would notice only by wrong results.

use super::Card;
use super::description;
use super::plan::Plan;
use crate::runtime::Runtime;
use kernels::bilinear::Bilinear;
use kernels::convolution::Convolution;
use kernels::device::{Device, DeviceError, Term};
use kernels::third::Third;
use std::sync::atomic::Ordering;

/// Maps, each with its number of terms: a single matrix and several of either layout, a depth that
/// takes more than one product of digits, and images in groups, with strides, padding and dilation.
const MAPS: [(Bilinear, usize); 6] = [
    (
        Bilinear::Matrix {
            batch: 1,
            m: 33,
            k: 70,
            n: 18,
        },
        2,
    ),
    (
        Bilinear::Matrix {
            batch: 1,
            m: 2,
            k: 16_500,
            n: 3,
        },
        1,
    ),
    (
        Bilinear::Matrix {
            batch: 3,
            m: 5,
            k: 20,
            n: 7,
        },
        3,
    ),
    (
        Bilinear::ByTransposed {
            batch: 1,
            m: 12,
            k: 300,
            n: 17,
        },
        1,
    ),
    (
        Bilinear::ByTransposed {
            batch: 2,
            m: 9,
            k: 270,
            n: 8,
        },
        1,
    ),
    (
        Bilinear::Convolution(Convolution {
            batch: 2,
            groups: 2,
            in_channels: 64,
            out_channels: 28,
            input: [6, 5],
            kernel: [3, 3],
            stride: [2, 1],
            padding: [1, 2],
            dilation: [1, 2],
        }),
        1,
    ),
];

/// Words whose digits or whose carries are at their limits.
const EDGES: [u64; 6] = [
    u64::MAX,
    1 << 63,
    0x7f7f_7f7f_7f7f_7f7f,
    0x8080_8080_8080_8080,
    0x7fff_ffff_ffff_ff80,
    0,
];

impl<R: Runtime> Card<R> {
    /// Compares products of every kind with the processor's. Returns what the first one is that
    /// differs. Counts nothing, and leaves nothing on the card.
    ///
    /// # Errors
    /// If the card cannot compute them.
    pub fn self_test(&self) -> Result<Option<String>, DeviceError> {
        let found = self.first_difference();
        let mut state = self.state()?;
        if found.is_ok() {
            state.run(|state| state.settle(), || "the self-test".into())?;
        }
        state.copies.bytes = 0;
        self.bytes_copied.store(0, Ordering::Relaxed);
        self.products.store(0, Ordering::Relaxed);
        found
    }

    fn first_difference(&self) -> Result<Option<String>, DeviceError> {
        for (map, terms) in &MAPS {
            let plan = Plan::of(map).expect("a product that a card computes");
            let (left, right, result) = map.lengths();
            let operands: Vec<[Vec<u64>; 2]> = (0..3)
                .map(|part: u64| [words(left, 2 * part), words(right, 2 * part + 1)])
                .collect();
            let all: Vec<Term> = operands.iter().map(|[x, y]| Term::of(x, y)).collect();
            let (mut found, mut expected) = (vec![0; result], vec![1; result]);
            self.sum(map, &plan, &mut found, &all[..*terms])?;
            self.cpu.bilinear(map, &mut expected, &all[..*terms])?;
            if found != expected {
                return Ok(Some(description::of(map)));
            }
            for party in (0..3).filter(|_| map.has_thirds()) {
                let third = Third::of(party).narrow();
                let parts = [all[party], all[(party + 1) % 3]];
                self.narrow_third(third, map, &plan, &mut found, parts)?;
                self.cpu.third(third, map, &mut expected, parts)?;
                if found != expected {
                    let of = description::of(map);
                    return Ok(Some(format!("party {party}'s third of {of}")));
                }
            }
        }
        Ok(None)
    }
}

/// Returns words, some of them at their limits.
fn words(n: usize, seed: u64) -> Vec<u64> {
    let word = |at: u64| match at % 5 {
        0 => EDGES[((at / 5 + seed) % EDGES.len() as u64) as usize],
        _ => (2 * (seed << 40 | at) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    (0..n as u64).map(word).collect()
}
