//! Making files of correlations for Python.

use crate::errors::{PARTIES, raise};
use ::session::configured::{self, Making};
use mpc::correlations::Demand;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two reports of progress.
const BETWEEN_REPORTS: Duration = Duration::from_millis(200);

/// Makes this party's file of correlations. Calls `progress(done, all)` from time to time.
#[pyfunction]
#[pyo3(signature = (config_path, party, demand, runs, out, progress, source=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "what is to be made, and where")]
pub fn make_correlations(
    py: Python<'_>,
    config_path: &str,
    party: usize,
    demand: &str,
    runs: u32,
    out: PathBuf,
    progress: Py<PyAny>,
    source: Option<String>,
    threads: Option<usize>,
) -> PyResult<()> {
    ::session::use_threads(threads).map_err(raise)?;
    let mut told = Instant::now();
    let report = |done, all| {
        if done == all || told.elapsed() > BETWEEN_REPORTS {
            told = Instant::now();
            // The work continues even if a report fails.
            Python::attach(|py| drop(progress.call1(py, (done, all))));
        }
    };
    py.detach(|| {
        let demand = Demand::parse(demand)?;
        let work = Making { demand, runs, out };
        configured::make(
            Path::new(config_path),
            party,
            source,
            &work,
            &PARTIES,
            report,
        )
    })
    .map_err(raise)
}
