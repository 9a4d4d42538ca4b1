//! This processor as a device.

use super::{Counters, Device, DeviceError, Memory, Operand, Term};
use crate::bilinear::Bilinear;
use crate::dispatch::backend;
use crate::matrix;
use crate::parallel::map_blocks;
use crate::third::{Third, Thirds};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a piece of a sum that is worth handing to another thread.
const PIECE: usize = 1 << 13;

/// The most terms of a map.
const MOST_TERMS: usize = 3;

/// This processor. It reads operands where they lie, so it copies nothing and keeps nothing. It
/// never fails.
#[derive(Default)]
pub struct Cpu {
    products: AtomicU64,
}

impl Device for Cpu {
    fn kind(&self) -> &'static str {
        "cpu"
    }

    fn bilinear(&self, map: &Bilinear, out: &mut [u64], terms: &[Term]) -> Result<(), DeviceError> {
        self.products.fetch_add(1, Ordering::Relaxed);
        // Without an allocation, which would show in small products.
        let mut added: [[Cow<[u64]>; 2]; MOST_TERMS] = Default::default();
        let added = &mut added[..terms.len()];
        for (added, term) in added.iter_mut().zip(terms) {
            *added = [term.x, term.y].map(words);
        }
        let mut slices: [(&[u64], &[u64]); MOST_TERMS] = Default::default();
        for (slices, [x, y]) in slices.iter_mut().zip(&*added) {
            *slices = (x, y);
        }
        map.evaluate(out, &slices[..terms.len()]);
        Ok(())
    }

    fn thirds(&self) -> Thirds {
        matrix::thirds()
    }

    /// Evaluates narrow thirds in any case, for devices that leave small ones to the processor.
    fn third(
        &self,
        third: Third,
        map: &Bilinear,
        out: &mut [u64],
        parts: [Term; 2],
    ) -> Result<(), DeviceError> {
        self.products.fetch_add(1, Ordering::Relaxed);
        let added = parts.map(|part| [part.x, part.y].map(words));
        map.third(
            third,
            out,
            [0, 1].map(|at: usize| (&*added[at][0], &*added[at][1])),
        );
        Ok(())
    }

    fn forget(&self, _operand: u64) {}

    fn memory(&self) -> Result<Option<Memory>, DeviceError> {
        Ok(None)
    }

    fn counters(&self) -> Counters {
        Counters {
            products: self.products.load(Ordering::Relaxed),
            bytes_copied: 0,
        }
    }
}

/// Returns an operand's words where they lie, or their sums.
fn words(operand: Operand) -> Cow<[u64]> {
    match operand.slices() {
        (words, None) => Cow::Borrowed(words),
        (words, Some(plus)) => Cow::Owned(sum(words, plus)),
    }
}

fn sum(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut sum = vec![0; a.len()];
    map_blocks(a.len(), PIECE, [&mut sum], [a, b], |_, [sum], [a, b]| {
        backend().call(
            #[inline(always)]
            || {
                for (i, sum) in sum.iter_mut().enumerate() {
                    *sum = a[i].wrapping_add(b[i]);
                }
            },
        );
    });
    sum
}
