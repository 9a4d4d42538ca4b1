//! The examination of a configuration for Python.

use crate::errors::members;
use ::session::doctor::{self, Who};
use ::session::options::seconds;
use pyo3::prelude::*;
use std::path::Path;

/// What `session::doctor` finds, a tuple of check, whether it is well, detail and remedy for each
/// thing; the dealer examines where `dealer` is set, and nobody where there is no party either.
/// They are a federation's servers where `servers` is set.
#[pyfunction]
#[pyo3(signature = (config_path, party, dealer, timeout, servers=false))]
pub fn examine(
    py: Python<'_>,
    config_path: &str,
    party: Option<usize>,
    dealer: bool,
    timeout: f64,
    servers: bool,
) -> PyResult<Vec<(String, bool, String, String)>> {
    let (words, raise) = members(servers);
    let most = seconds(timeout).map_err(raise)?;
    let who = match party {
        Some(party) => Who::Party(party),
        None if dealer => Who::Dealer,
        None => Who::Nobody,
    };
    let checks = py.detach(|| doctor::examine(Path::new(config_path), who, most, words));
    let told = checks
        .into_iter()
        .map(|check| (check.check, check.ok, check.detail, check.remedy));
    Ok(told.collect())
}
