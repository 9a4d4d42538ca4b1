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

/// Certificates and keys of all parties, for trials on one machine.
#[pyfunction]
pub fn write_certificates(parties: usize, directory: &str) -> PyResult<()> {
    net::certificates::write_directory(parties, directory.as_ref()).map_err(raise)
}
