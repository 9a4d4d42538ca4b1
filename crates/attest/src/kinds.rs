//! The table of kinds.

use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::sev_snp::SevSnp;
use crate::simulated::Simulated;
use crate::tdx::Tdx;
use crate::tsm;
use std::path::Path;

/// All kinds.
pub static KINDS: [&dyn Kind; 3] = [&Tdx, &SevSnp::AMD, &Simulated];

/// Returns a kind by its name.
#[must_use]
pub fn kind_of(name: &str) -> Option<&'static dyn Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name)
}

/// Returns the kind of this machine's reports.
///
/// # Errors
/// `Machine` for a machine without reports, or with reports that this release cannot verify.
pub fn kind_here(folder: &Path) -> Result<&'static dyn Kind> {
    let provider = tsm::provider(folder)?;
    let kind = KINDS.into_iter().find(|kind| kind.provider() == provider);
    kind.ok_or_else(|| {
        Error::Machine(format!(
            "its reports come from \"{}\", which this release cannot verify: use a guest of TDX \
             or SEV-SNP",
            provider.escape_default()
        ))
    })
}
