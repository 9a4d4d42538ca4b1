//! Zeros in the place of correlations: what depends on shapes alone is the same with them, such as
//! what a program asks of its source. They are as correlated as any, so results are right, and they
//! hide nothing.

use super::Source;
use super::job::Job;
use crate::Result;
use net::Reading;

/// Makes zeros, and none ahead.
pub(crate) struct Zeros {
    /// Whether the source that they stand for makes what guards take.
    pub guards: bool,
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

    fn guards(&self) -> bool {
        self.guards
    }

    fn most_ahead(&self) -> usize {
        0
    }
}
