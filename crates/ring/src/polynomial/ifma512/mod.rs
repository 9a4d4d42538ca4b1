//! Eight numbers to a register, with multiplications of 52-bit digits (AVX-512 IFMA).

mod field;
mod sums;
mod transform;

use super::tables::{Constant, Tables};
use super::{CHUNK, DEGREE, ROW};

/// Roots of three stages: one, two and four.
const NODES: usize = 7;

/// A root for each lane.
#[repr(C, align(64))]
struct Lanes {
    values: [u64; ROW],
    quotients: [u64; ROW],
}

/// Roots of the last three stages by chunks. Exists only where the processor has AVX-512 F and IFMA.
pub(super) struct Ifma512 {
    roots: Vec<[Lanes; NODES]>,
    inverse_roots: Vec<[Lanes; NODES]>,
}

impl Ifma512 {
    /// The roots by lanes, if the processor has the instructions.
    pub(super) fn new(tables: &Tables) -> Option<Self> {
        let available =
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
        available.then(|| Self {
            roots: by_lanes(&tables.roots),
            inverse_roots: by_lanes(&tables.inverse_roots),
        })
    }

    pub(super) fn to_evaluations(&self, tables: &Tables, polynomial: &mut [u64]) {
        // SAFETY: a value of this type exists; so below.
        unsafe { transform::to_evaluations(self, tables, polynomial) }
    }

    pub(super) fn to_coefficients(&self, tables: &Tables, polynomial: &mut [u64]) {
        // SAFETY: see the first.
        unsafe { transform::to_coefficients(self, tables, polynomial) }
    }

    pub(super) fn add_products(
        &self,
        tables: &Tables,
        out: &mut [u64],
        pairs: &[(&[u64], &[u64])],
    ) {
        // SAFETY: see the first.
        unsafe { sums::add_products(tables, out, pairs) }
    }

    pub(super) fn reduce_signed(&self, tables: &Tables, words: &[u64], out: &mut [u64]) {
        // SAFETY: see the first.
        unsafe { sums::reduce_signed(tables, words, out) }
    }

    pub(super) fn add(&self, tables: &Tables, a: &mut [u64], b: &[u64]) {
        // SAFETY: see the first.
        unsafe { sums::add(tables, a, b) }
    }

    pub(super) fn subtract(&self, tables: &Tables, a: &mut [u64], b: &[u64]) {
        // SAFETY: see the first.
        unsafe { sums::subtract(tables, a, b) }
    }
}

fn by_lanes(roots: &[Constant]) -> Vec<[Lanes; NODES]> {
    let lanes = |chunk: usize, node: usize| {
        let level = (node + 1).ilog2();
        let of_level = node + 1 - (1 << level);
        // A lane's eight words are a block of the stage of stride 4.
        let root = |lane: usize| {
            let block = DEGREE / ROW + chunk * ROW + lane;
            roots[(block << level) + of_level]
        };
        Lanes {
            values: std::array::from_fn(|lane| root(lane).value),
            quotients: std::array::from_fn(|lane| root(lane).quotient),
        }
    };
    (0..DEGREE / CHUNK)
        .map(|chunk| std::array::from_fn(|node| lanes(chunk, node)))
        .collect()
}
