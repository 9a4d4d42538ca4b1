//! What a kind of evidence is.

use crate::binding::DATA;
use crate::error::Result;
use crate::policy::Policy;
use crate::tsm;
use std::path::Path;

/// What a report says, once its signatures and the platform's status have been checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Measurement of the software.
    pub measurement: Vec<u8>,
    /// Data that the software chose.
    pub data: [u8; DATA],
    /// Whether the host can debug the guest.
    pub debug: bool,
    /// Status or version of the platform's firmware.
    pub tcb: String,
}

/// A kind of evidence.
pub trait Kind: Sync {
    /// Returns the name in policies and on the command line.
    fn name(&self) -> &'static str;

    /// Returns the number in evidence.
    fn number(&self) -> u8;

    /// Returns the bytes of a measurement.
    fn measurement_bytes(&self) -> usize;

    /// Returns the name of the kernel's driver that makes reports of this kind.
    fn provider(&self) -> &'static str;

    /// Makes the body of evidence of this machine.
    ///
    /// # Errors
    /// `Machine` if it cannot.
    fn make(&self, data: &[u8; DATA]) -> Result<Vec<u8>> {
        self.make_in(tsm::FOLDER.as_ref(), data)
    }

    /// Makes the body of evidence of this machine, by reports in that folder.
    ///
    /// # Errors
    /// `Machine` if it cannot.
    fn make_in(&self, folder: &Path, data: &[u8; DATA]) -> Result<Vec<u8>> {
        Ok(tsm::read(folder, self.name(), self.provider(), data)?.report)
    }

    /// Checks all signatures up to the vendor's root, validity at `now` in seconds since 1970,
    /// revocations, and the status of the platform's firmware.
    ///
    /// # Errors
    /// `Malformed`, `Chain`, `Tcb` or `Guest`; `Policy` for a policy that lacks what this kind
    /// needs.
    fn check(&self, evidence: &[u8], policy: &Policy, now: u64) -> Result<Report>;

    /// Checks that a policy has what this kind needs.
    ///
    /// # Errors
    /// `Policy` if it lacks something.
    fn check_policy(&self, policy: &Policy) -> Result<()>;
}
