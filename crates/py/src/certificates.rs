//! Certificates and keys for Python.

use crate::errors::raise;
use pyo3::prelude::*;

/// A fresh self-signed certificate and its private key, both PEM.
#[pyfunction]
#[pyo3(signature = (party, days=365))]
pub fn generate_certificate(party: usize, days: u32) -> PyResult<(String, String)> {
    let generated = net::certificates::generate(party, days).map_err(raise)?;
    Ok((generated.certificate_pem, generated.key_pem))
}

/// NAME.pem and NAME.key for each name, in a directory where none of them is yet.
#[pyfunction]
pub fn write_certificates(names: Vec<String>, directory: &str) -> PyResult<()> {
    net::certificates::write(&names, directory.as_ref()).map_err(raise)
}

/// Refuses a certificate that links are not made with, whatever its dates are; `what` it is, errors
/// say.
#[pyfunction]
pub fn check_certificate(pem: &str, what: &str, is_client: bool) -> PyResult<()> {
    net::certificates::check(pem, what, is_client).map_err(raise)
}

/// A private key, which nobody but its owner may read.
#[pyfunction]
pub fn read_private_key(path: &str) -> PyResult<String> {
    net::config::read_key(path.as_ref()).map_err(raise)
}
