//! The chain from a key that signs reports to AMD's root.

use super::certificate::Certificate;
use super::collateral::Collateral;
use super::report::{Signer, Unverified};
use super::roots::Root;
use crate::error::{Error, Result};
use crate::versions::Generation;

/// Numbers of the extensions that have the versions of a report's eight bytes, one after another.
pub const EARLIER: [u32; 8] = [1, 2, 4, 5, 6, 7, 3, 8];
pub const TURIN: [u32; 8] = [9, 1, 2, 3, 5, 6, 7, 8];

/// Bytes of the number of a chip of Turin; the rest of a report's field is zero.
const TURIN_CHIP: usize = 8;

/// Three certificates, each signed by the key of the one before.
pub struct Chain<'a> {
    /// AMD's root, "ARK".
    root: &'a Certificate,
    /// The key for a generation of processors, "ASK" or "ASVK".
    middle: &'a Certificate,
    /// The key that signs reports, "VCEK" or "VLEK".
    leaf: &'a Certificate,
    /// Generation that the root is of.
    pub generation: Generation,
}

impl<'a> Chain<'a> {
    /// Finds the chain of a key's certificate in collateral, and verifies its signatures.
    ///
    /// # Errors
    /// `Chain` without one that leads to an accepted root.
    pub fn of(leaf: &'a Certificate, collateral: &'a Collateral, roots: &[Root]) -> Result<Self> {
        let signer_of = |signed: &Certificate| {
            let mut certificates = collateral.certificates.iter();
            let found = certificates.find(|signer| signed.is_signed_by(signer));
            found.ok_or_else(|| {
                Error::Chain(format!(
                    "the collateral has no certificate of {} that signs that of {}",
                    signed.issuer(),
                    signed.subject()
                ))
            })
        };
        let middle = signer_of(leaf)?;
        let root = signer_of(middle)?;
        // A root has signed itself, but signs no keys of reports.
        if middle.fingerprint() == root.fingerprint() {
            return Err(Error::Chain(format!(
                "the certificate of {} is signed by the root, and not by a key that it certifies",
                leaf.subject()
            )));
        }
        let known = roots
            .iter()
            .find(|known| known.fingerprint == *root.fingerprint());
        let known = known
            .ok_or_else(|| Error::Chain(format!("{} is not a root of AMD's", root.subject())))?;
        Ok(Self {
            root,
            middle,
            leaf,
            generation: known.generation,
        })
    }

    /// Checks the dates of all certificates, and that a list of the root's is there, holds, and
    /// names none of them.
    ///
    /// # Errors
    /// `Chain` if something does not hold at that moment.
    pub fn check(&self, collateral: &Collateral, now: u64) -> Result<()> {
        let certificates = [self.root, self.middle, self.leaf];
        for certificate in certificates {
            certificate.check_dates(now)?;
        }
        let mut lists = 0;
        for list in &collateral.lists {
            if list.issuer() != self.root.subject() {
                continue;
            }
            list.check(self.root, now)?;
            if let Some(revoked) = certificates.iter().find(|one| list.names(one)) {
                let subject = revoked.subject();
                return Err(Error::Chain(format!(
                    "the certificate of {subject} is revoked"
                )));
            }
            lists += 1;
        }
        match lists {
            0 => Err(Error::Chain(format!(
                "the collateral has no revocation list of {}",
                self.root.subject()
            ))),
            _ => Ok(()),
        }
    }

    /// Returns whether the key is of the kind, the chip and the versions that a report names, and
    /// certified by AMD's key for that kind.
    pub fn is_of(&self, report: &Unverified<'_>) -> Result<bool> {
        let for_providers = self.middle.common_name().and_then(is_for_providers);
        Ok(for_providers == Some(report.signer()? == Signer::Vlek)
            && names(self.leaf, report, self.generation)?)
    }

    /// Returns the key that signs reports, which the chain is of.
    ///
    /// # Errors
    /// `Chain` if it is not of P-384.
    pub fn key(&self) -> Result<&[u8]> {
        let key = self.leaf.point();
        key.ok_or_else(|| Error::Chain("the key of the report is not one of P-384".to_owned()))
    }
}

/// Returns whether a certificate says that its key signs the report, if that is of a generation.
pub fn names(leaf: &Certificate, report: &Unverified<'_>, generation: Generation) -> Result<bool> {
    let numbers = match generation {
        Generation::Milan | Generation::Genoa => EARLIER,
        Generation::Turin => TURIN,
    };
    let (name, is_of_signer) = match report.signer()? {
        Signer::Vlek => ("SEV-VLEK", leaf.is_of_provider()),
        Signer::Vcek => ("SEV-VCEK", is_of_chip(leaf, &report.chip(), generation)),
    };
    let versions = leaf.versions(numbers);
    Ok(leaf.common_name() == Some(name) && is_of_signer && versions == Some(report.reported()))
}

fn is_of_chip(leaf: &Certificate, chip: &[u8; 64], generation: Generation) -> bool {
    let (number, rest) = match generation {
        Generation::Milan | Generation::Genoa => chip.split_at(chip.len()),
        Generation::Turin => chip.split_at(TURIN_CHIP),
    };
    let is_hidden = number.iter().all(|byte| *byte == 0);
    !is_hidden && rest.iter().all(|byte| *byte == 0) && leaf.chip() == Some(number)
}

/// Returns whether the key of that name certifies keys of clouds' providers, and not of chips;
/// `None` if it certifies neither.
fn is_for_providers(name: &str) -> Option<bool> {
    let kind = name.strip_prefix("SEV-")?;
    Some(kind.starts_with("VLEK-"))
}
