//! Certificates and keys for Python.

use crate::errors::{raise, raise_at_client};
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

/// Writes NAME.pem and NAME.key of a new authority, which admits clients.
#[pyfunction]
pub fn write_authority(name: &str, directory: &str) -> PyResult<()> {
    net::issuing::write_authority(name, directory.as_ref()).map_err(raise)
}

/// Writes a client's new key, and a request with its public half.
#[pyfunction]
pub fn write_request(client: usize, directory: &str) -> PyResult<()> {
    net::issuing::write_request(client, directory.as_ref()).map_err(raise)
}

/// Signs a client's request as an authority; returns the certificate.
#[pyfunction]
pub fn admit(
    authority: &str,
    key: &str,
    request: &str,
    client: usize,
    days: u32,
) -> PyResult<String> {
    let authority = net::issuing::Authority::read(authority, key.as_ref()).map_err(raise)?;
    authority.admit(request, client, days).map_err(raise)
}

/// Returns an authority's list of revoked certificates: those of the list so far, and these.
#[pyfunction]
pub fn revoke(
    authority: &str,
    key: &str,
    revoked: Option<&str>,
    certificates: Vec<String>,
    days: u32,
) -> PyResult<String> {
    let authority = net::issuing::Authority::read(authority, key.as_ref()).map_err(raise)?;
    authority
        .revoke(revoked, &certificates, days)
        .map_err(raise)
}

/// Checks an authority's certificate, its list of revoked ones, and the certificate of a client.
#[pyfunction]
#[pyo3(signature = (authority, revoked=None, certificate=None, client=0))]
pub fn check_admission(
    authority: &str,
    revoked: Option<&str>,
    certificate: Option<&str>,
    client: usize,
) -> PyResult<()> {
    let certificate = certificate.map(|pem| (pem, client));
    net::intake::check_admission(authority, revoked, certificate).map_err(raise_at_client)
}

/// Reads a private key, which only its owner may be able to read.
#[pyfunction]
pub fn read_private_key(path: &str) -> PyResult<String> {
    net::config::read_key(path.as_ref()).map_err(raise)
}
