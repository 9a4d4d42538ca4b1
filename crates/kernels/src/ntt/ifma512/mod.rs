//! Transforms with eight numbers in a register and multiplications of 52-bit digits (AVX-512 IFMA).

mod field;
mod registers;
mod roots;
mod sums;
mod transform;

use super::tables::{Constant, Tables};
use roots::Lanes;

/// The roots of the last three stages, by chunks. A value exists only if the processor has AVX-512
/// F and IFMA.
pub(super) struct Ifma512 {
    roots: Vec<Lanes>,
    inverse_roots: Vec<Lanes>,
}

impl Ifma512 {
    /// Arranges the roots by lanes, if the processor has the instructions.
    pub(super) fn new(tables: &Tables) -> Option<Self> {
        let available =
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
        available.then(|| Self {
            roots: roots::by_lanes(&tables.roots),
            inverse_roots: roots::by_lanes(&tables.inverse_roots),
        })
    }

    pub(super) fn to_evaluations(&self, tables: &Tables, polynomial: &mut [u64], first: usize) {
        // SAFETY: a value of this type exists; so below.
        unsafe { transform::to_evaluations(self, tables, polynomial, first) }
    }

    pub(super) fn to_coefficients(&self, tables: &Tables, polynomial: &mut [u64]) {
        // SAFETY: as in `to_evaluations`.
        unsafe { transform::to_coefficients(self, tables, polynomial) }
    }

    pub(super) fn sum_products(
        &self,
        tables: &Tables,
        out: &mut [u64],
        pairs: &[(&[u64], &[u64])],
        onto: bool,
    ) {
        // SAFETY: as in `to_evaluations`.
        unsafe { sums::sum_products(tables, out, pairs, onto) }
    }

    pub(super) fn multiply_rows(
        &self,
        tables: &Tables,
        out: &mut [u64],
        a: &[u64],
        b: &[u64],
        length: usize,
    ) {
        // SAFETY: as in `to_evaluations`.
        unsafe { sums::multiply_rows(tables, out, a, b, length) }
    }

    pub(super) fn reduce_signed(&self, tables: &Tables, words: &[u64], out: &mut [u64]) {
        // SAFETY: as in `to_evaluations`.
        unsafe { sums::reduce_signed(tables, words, out) }
    }

    pub(super) fn scale(&self, tables: &Tables, words: &mut [u64], constant: Constant) {
        // SAFETY: as in `to_evaluations`.
        unsafe { sums::scale(tables, words, constant) }
    }

    pub(super) fn add(&self, tables: &Tables, a: &mut [u64], b: &[u64]) {
        // SAFETY: as in `to_evaluations`.
        unsafe { sums::add(tables, a, b) }
    }

    pub(super) fn sum_and_difference(&self, tables: &Tables, a: &mut [u64], b: &mut [u64]) {
        // SAFETY: as in `to_evaluations`.
        unsafe { sums::sum_and_difference(tables, a, b) }
    }

    pub(super) fn subtract(&self, tables: &Tables, a: &mut [u64], b: &[u64]) {
        // SAFETY: as in `to_evaluations`.
        unsafe { sums::subtract(tables, a, b) }
    }
}
