//! Policies: what is accepted.

use crate::error::{Error, Result, hex};
use crate::versions::LeastVersions;

/// Statuses of firmware that a policy may accept. A revoked one is never accepted.
pub const STATUSES: [&str; 8] = [
    "UpToDate",
    "SWHardeningNeeded",
    "ConfigurationNeeded",
    "ConfigurationAndSWHardeningNeeded",
    "OutOfDate",
    "OutOfDateConfigurationNeeded",
    "TDRelaunchAdvised",
    "TDRelaunchAdvisedConfigurationNeeded",
];

const DOMAIN: &str = "tacit 2026 attestation: policy";

/// What a policy demands of a guest of SEV-SNP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuestRules {
    /// Least versions of the firmware.
    pub least: LeastVersions,
    /// Whether its cores may run two threads each.
    pub allow_smt: bool,
    /// Whether the key of a cloud's provider may sign, which is no single machine's.
    pub allow_vlek: bool,
    /// Whether the firmware must have checked that no two addresses are of the same memory.
    pub demand_alias_check: bool,
    /// Privilege level of the software that attests.
    pub vmpl: u32,
}

/// A checked policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    pub(crate) kind: &'static str,
    pub(crate) measurements: Vec<Vec<u8>>,
    pub(crate) programs: Vec<Vec<u8>>,
    pub(crate) statuses: Vec<&'static str>,
    pub(crate) least_evaluation: u32,
    pub(crate) guest: Option<GuestRules>,
    pub(crate) collateral: Option<Vec<u8>>,
}

impl Policy {
    /// Returns the name of the kind that is accepted.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the measurements that are accepted.
    #[must_use]
    pub fn measurements(&self) -> &[Vec<u8>] {
        &self.measurements
    }

    /// Checks that a program is one that the policy names.
    ///
    /// # Errors
    /// `Program` if it is not.
    pub fn check_program(&self, program: &[u8; 32]) -> Result<()> {
        match self.programs.iter().any(|known| known == program) {
            true => Ok(()),
            false => Err(Error::Program(hex(program))),
        }
    }

    /// Returns whether a status of firmware is accepted.
    #[must_use]
    pub fn accepts_status(&self, status: &str) -> bool {
        self.statuses.contains(&status)
    }

    /// Returns the refusal of a status.
    #[must_use]
    pub fn refused_status(&self, status: &str) -> Error {
        Error::Tcb {
            found: status.to_owned(),
            accepted: self.statuses.join(", "),
        }
    }

    /// Returns the least number of the vendor's evaluation.
    #[must_use]
    pub fn least_evaluation(&self) -> u32 {
        self.least_evaluation
    }

    /// Returns what is demanded of a guest of SEV-SNP; `None` for other kinds.
    #[must_use]
    pub fn guest(&self) -> Option<&GuestRules> {
        self.guest.as_ref()
    }

    /// Returns the content of the vendor's collateral.
    #[must_use]
    pub fn collateral(&self) -> Option<&[u8]> {
        self.collateral.as_deref()
    }

    /// Returns a digest of everything that all parties must agree on. The collateral is not part
    /// of it, since a party may have newer collateral than the others.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        let text = format!(
            "{:?}",
            (
                self.kind,
                &self.measurements,
                &self.programs,
                &self.statuses,
                self.least_evaluation,
                self.guest
            )
        );
        hasher.update(text.as_bytes());
        *hasher.finalize().as_bytes()
    }
}
