//! Evidence of this machine, and its verification, outside of a session.

use crate::errors::raise;
use ::session::attestation;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::Path;

/// Returns the digest of a program from its content, of 32 bytes, as members attest it.
#[pyfunction]
pub fn program_digest<'py>(py: Python<'py>, content: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &attestation::program(content))
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
