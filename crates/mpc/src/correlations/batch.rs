//! Correlations of one kind that were made together, taken piece by piece.

use super::kind::{Kind, Shape};
use crate::dense::extract;
use kernels::planes::words_of;

/// Batch of correlations of one kind, or what is left of it.
pub(super) struct Batch {
    kind: Kind,
    pub n: usize,
    /// Number of correlations that are already taken, from the first on.
    gone: usize,
    pub columns: Vec<Vec<u64>>,
}

impl Batch {
    pub fn new(kind: Kind, n: usize, columns: Vec<Vec<u64>>) -> Self {
        Self {
            kind,
            n,
            gone: 0,
            columns,
        }
    }

    pub fn left(&self) -> usize {
        self.n - self.gone
    }

    /// Returns whether the batch has n correlations of which none was taken.
    pub fn is_whole(&self, n: usize) -> bool {
        (self.n, self.gone) == (n, 0)
    }

    /// Takes the next n of the correlations that are left, as a copy. The rest stays in place while
    /// it is at least half of the batch. Less than that is copied too, so that a small rest does
    /// not hold the memory of a large batch.
    pub fn split_off(&mut self, n: usize) -> Self {
        let taken = self.copied(n);
        self.gone += n;
        if self.left() < self.n / 2 {
            *self = self.copied(self.left());
        }
        taken
    }

    /// Copies the next n of the correlations that are left.
    fn copied(&self, n: usize) -> Self {
        let start = self.gone;
        let copied = |(column, shape): (&Vec<u64>, Shape)| match shape {
            Shape::Words(_) | Shape::Residues => column[start..start + n].to_vec(),
            Shape::Packed(bits) => {
                let bits = bits as usize;
                extract(column, start * bits, n * bits).into_owned()
            }
            Shape::Planes(_) => {
                let planes = column.chunks_exact(words_of(self.n));
                let planes: Vec<_> = planes.map(|plane| extract(plane, start, n)).collect();
                planes.concat()
            }
        };
        let columns = self.columns.iter().zip(self.kind.columns());
        Self::new(self.kind, n, columns.map(copied).collect())
    }

    /// Joins batches, one after another.
    pub fn join(mut batches: Vec<Self>) -> Self {
        if batches.len() == 1 {
            return batches.swap_remove(0);
        }
        let (kind, n) = (batches[0].kind, batches.iter().map(|batch| batch.n).sum());
        let batches = batches.into_iter().map(|batch| (batch.n, batch.columns));
        Self::new(kind, n, kind.join(&batches.collect::<Vec<_>>()))
    }
}
