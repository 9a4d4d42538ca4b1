//! Zeros instead of correlations, for runs in which only shapes matter, such as those that record
//! what a program asks of its source. Zeros satisfy the relations of all correlations, so results
//! are right, but they hide nothing.

use super::job::Job;
use super::{Comparisons, Source};
use crate::Result;
use net::Reading;

/// Source that makes zeros, and none ahead.
pub(crate) struct Zeros {
    /// How parties compare with the source that they replace.
    pub comparisons: Comparisons,
}

impl Source for Zeros {
    fn make(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        let (free, derived) = job.columns();
        let columns = free.into_iter().chain(derived);
        Ok(columns.map(|(shape, n)| vec![0; shape.words(n)]).collect())
    }

    fn reading(&self) -> Reading {
        Reading::default()
    }

    fn comparisons(&self) -> Comparisons {
        self.comparisons
    }

    fn most_ahead(&self) -> usize {
        0
    }
}
