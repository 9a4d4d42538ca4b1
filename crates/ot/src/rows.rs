//! The rows of transfers, in reused memory.
//!
//! A part of a batch has a million rows of 16 bytes. Memory of that size returns to the operating
//! system when it is freed. Getting it again, page by page, takes as long as filling it with rows.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// The most rows that are kept.
const MOST: usize = 1 << 21;

/// Memory of rows that are no longer used, oldest first.
#[derive(Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<Vec<Vec<u128>>>>);

/// Rows whose memory returns to its [`Spare`] when they are dropped.
pub(crate) struct Rows {
    rows: Vec<u128>,
    spare: Spare,
}

impl Spare {
    /// Returns n rows of arbitrary content.
    pub(crate) fn rows(&self, n: usize) -> Rows {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |rows: &Vec<u128>| (n..=2 * n).contains(&rows.len());
        let found = spare.iter().rposition(fits).map(|at| spare.remove(at));
        drop(spare);
        let mut rows = found.unwrap_or_else(|| vec![0; n]);
        rows.truncate(n);
        Rows {
            rows,
            spare: self.clone(),
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        let mut spare = self.spare.0.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(std::mem::take(&mut self.rows));
        let mut kept: usize = spare.iter().map(Vec::len).sum();
        while kept > MOST {
            kept -= spare.remove(0).len();
        }
    }
}

impl Deref for Rows {
    type Target = [u128];

    fn deref(&self) -> &[u128] {
        &self.rows
    }
}

impl DerefMut for Rows {
    fn deref_mut(&mut self) -> &mut [u128] {
        &mut self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_where_it_fits() {
        let spare = Spare::default();
        let first = spare.rows(1000);
        let place = first.as_ptr();
        drop(first);
        for other in [3000, 400] {
            assert!(spare.rows(other).as_ptr() != place);
        }
        let again = spare.rows(900);
        assert!(again.as_ptr() == place && again.len() == 900);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let spare = Spare::default();
        drop([MOST / 2, MOST / 2 + 1, 1].map(|n| spare.rows(n)));
        let kept: Vec<usize> = spare.0.lock().unwrap().iter().map(Vec::len).collect();
        assert_eq!(kept, [MOST / 2 + 1, 1]);
        drop(spare.rows(MOST + 1));
        assert!(spare.0.lock().unwrap().is_empty());
    }
}
