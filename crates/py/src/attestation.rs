//! Evidence of this machine, and its verification, outside of a session.

use crate::errors::{raise, raise_at_client, raise_at_server};
use ::session::attestation;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::Path;

/// Returns the digest of a program from its content, of 32 bytes, as members attest it.
#[pyfunction]
pub fn program_digest<'py>(py: Python<'py>, content: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &attestation::program(content))
}

/// A policy, and the program of this member.
#[pyclass(frozen, module = "tacit._core")]
pub struct Attestation {
    pub(crate) inner: attestation::Attestation,
}

#[pymethods]
impl Attestation {
    /// Returns what the dealer of a trial on one machine attests: a kind, and the digest of the
    /// parties' program that is accepted.
    #[staticmethod]
    fn of_trial_dealer(kind: &str, accepted: [u8; 32]) -> PyResult<Self> {
        let inner = attestation::Attestation::of_trial_dealer(kind, accepted);
        inner.map(|inner| Self { inner }).map_err(raise)
    }

    /// Returns what a party of a trial on one machine attests: a kind, the digest of the program
    /// that is accepted, and that of its own program.
    #[staticmethod]
    fn of_trial(kind: &str, accepted: [u8; 32], program: [u8; 32]) -> PyResult<Self> {
        let inner = attestation::Attestation::of_trial(kind, accepted, program);
        inner.map(|inner| Self { inner }).map_err(raise)
    }

    /// Returns what a server of a federation attests, from the text of its policy, whose paths are
    /// absolute, and the federation's rules.
    #[staticmethod]
    fn of_server(policy: &str, rules: &[u8]) -> PyResult<Self> {
        let inner = attestation::Attestation::of_server(policy, rules);
        inner.map(|inner| Self { inner }).map_err(raise_at_server)
    }

    /// Returns what a party of a service attests, from the text of its policy, whose paths are
    /// absolute, and the service's rules.
    #[staticmethod]
    fn of_service(policy: &str, rules: &[u8]) -> PyResult<Self> {
        let inner = attestation::Attestation::of_service(policy, rules);
        inner.map(|inner| Self { inner }).map_err(raise)
    }

    /// Returns what the dealer of a service attests.
    #[staticmethod]
    fn of_service_dealer(policy: &str) -> PyResult<Self> {
        let inner = attestation::Attestation::of_service_dealer(policy);
        inner.map(|inner| Self { inner }).map_err(raise)
    }

    /// Returns what a client of a federation judges its servers by, or one of a service its
    /// parties.
    #[staticmethod]
    #[pyo3(signature = (policy, service=false))]
    fn of_client(policy: &str, service: bool) -> PyResult<Self> {
        let inner = attestation::Attestation::of_client(policy, service);
        inner.map(|inner| Self { inner }).map_err(raise_at_client)
    }

    /// Makes evidence of this machine and judges it, as the others would. Returns the firmware's
    /// status.
    fn examine(&self, py: Python<'_>) -> PyResult<String> {
        let examined = py.detach(|| self.inner.examine());
        examined.map(|verdict| verdict.tcb).map_err(raise)
    }

    /// Name of the kind of evidence.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }
}

/// Returns the digest of what a federation's servers run, of 32 bytes, from its rules.
#[pyfunction]
pub fn federation_digest<'py>(py: Python<'py>, rules: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &attestation::federation(rules))
}

/// Returns the digest of what a service's parties run, of 32 bytes, from its rules.
#[pyfunction]
pub fn service_digest<'py>(py: Python<'py>, rules: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &attestation::service(rules))
}

/// Returns the measurement in simulated evidence of this release, in hexadecimal.
#[pyfunction]
pub fn simulated_measurement() -> String {
    attestation::simulated_measurement()
}

/// Returns what the threat model says about parties that attest by evidence of a kind.
#[pyfunction]
pub fn attestation_model(kind: &str) -> String {
    attestation::threat_model(kind)
}

/// Makes evidence for a challenge, or for one that is drawn: of this machine, by the kernel's
/// folder of reports, or simulated evidence. Returns the challenge and the evidence.
#[pyfunction]
#[pyo3(signature = (challenge=None, folder=None, simulated=false))]
pub fn make_evidence<'py>(
    py: Python<'py>,
    challenge: Option<String>,
    folder: Option<&str>,
    simulated: bool,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let folder = Path::new(folder.unwrap_or(attestation::FOLDER));
    let make = || {
        let challenge = challenge.map_or_else(attestation::challenge, Ok)?;
        let made = match simulated {
            true => attestation::simulated_evidence(&challenge),
            false => attestation::evidence(folder, &challenge)?,
        };
        Ok((challenge, made))
    };
    let (challenge, made) = py.detach(make).map_err(raise)?;
    Ok((challenge, PyBytes::new(py, &made)))
}

/// Judges evidence against the policy in a file, and its challenge if one is given. Returns the
/// kind, the measurement and the firmware's status.
#[pyfunction]
#[pyo3(signature = (evidence, policy_path, challenge=None))]
pub fn judge_evidence(
    py: Python<'_>,
    evidence: &[u8],
    policy_path: &str,
    challenge: Option<&str>,
) -> PyResult<(&'static str, String, String)> {
    let judge = || attestation::judge(evidence, Path::new(policy_path), challenge);
    let verdict = py.detach(judge).map_err(raise)?;
    Ok((verdict.kind, verdict.measurement, verdict.tcb))
}
