//! Correlations of one kind that were made together, taken piece by piece.

use super::kind::{Kind, Shape};
use crate::dense::extract;
use kernels::planes::words_of;

/// Correlations of one kind, all or their rest.
pub(super) struct Batch {
    kind: Kind,
    pub n: usize,
    /// How many of the first are gone already.
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

    /// Whether nothing was taken of these n yet.
    pub fn is_whole(&self, n: usize) -> bool {
        (self.n, self.gone) == (n, 0)
    }

    /// The next n of those that are left, copied out of all. The rest stays where it lies while it
    /// is half of all: less than that is copied too, so that a few that are left hold no memory of
    /// many.
    pub fn split_off(&mut self, n: usize) -> Self {
        let taken = self.copied(n);
        self.gone += n;
        if self.left() < self.n / 2 {
            *self = self.copied(self.left());
        }
        taken
    }

    /// The next n of those that are left.
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

    /// Batches one after another.
    pub fn join(mut batches: Vec<Self>) -> Self {
        if batches.len() == 1 {
            return batches.swap_remove(0);
        }
        let (kind, n) = (batches[0].kind, batches.iter().map(|batch| batch.n).sum());
        let batches = batches.into_iter().map(|batch| (batch.n, batch.columns));
        Self::new(kind, n, kind.join(&batches.collect::<Vec<_>>()))
    }
}
