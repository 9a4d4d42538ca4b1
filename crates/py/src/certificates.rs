//! Certificates and keys for Python.

use crate::errors::raise;
use pyo3::prelude::*;

/// Generates a self-signed certificate and its private key, both in PEM.
#[pyfunction]
#[pyo3(signature = (party, days=365))]
pub fn generate_certificate(party: usize, days: u32) -> PyResult<(String, String)> {
    let generated = net::certificates::generate(party, days).map_err(raise)?;
    Ok((generated.certificate_pem, generated.key_pem))
}

/// Writes NAME.pem and NAME.key for each name, in a directory that has none of them yet.
#[pyfunction]
pub fn write_certificates(names: Vec<String>, directory: &str) -> PyResult<()> {
    net::certificates::write(&names, directory.as_ref()).map_err(raise)
}

/// Refuses a certificate of a kind that links do not use, whatever its dates are. Errors call it
/// `what`.
#[pyfunction]
pub fn check_certificate(pem: &str, what: &str, is_client: bool) -> PyResult<()> {
    net::certificates::check(pem, what, is_client).map_err(raise)
}

/// Reads a private key, which only its owner may be able to read.
#[pyfunction]
pub fn read_private_key(path: &str) -> PyResult<String> {
    net::config::read_key(path.as_ref()).map_err(raise)
}
