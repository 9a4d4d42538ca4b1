//! Examination of a configuration for Python.

use crate::errors::members;
use ::session::doctor::{self, Who};
use ::session::options::seconds;
use pyo3::prelude::*;
use std::path::Path;

/// Returns the checks of `session::doctor`, each as a tuple: check, whether it passed, detail and
/// remedy. With `dealer` the dealer examines; without a party, no member does. With `servers` the
/// members are a federation's servers.
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
