//! Collateral: a text with certificates and revocation lists in PEM, in any order. Others than
//! AMD's do no harm, as everything must lead to one of its roots.

use super::certificate::Certificate;
use super::revocation::RevocationList;
use crate::error::{Error, Result};

/// Most certificates and lists of a file.
const MOST: usize = 256;

/// What a collateral file has. No signature in it has been verified.
pub struct Collateral {
    /// Certificates of roots, of the keys that they certify, and of keys that sign reports.
    pub certificates: Vec<Certificate>,
    /// Lists of what the roots have revoked.
    pub lists: Vec<RevocationList>,
}

impl Collateral {
    /// Reads a file.
    ///
    /// # Errors
    /// `Policy` for another file; `Chain` for a certificate or list that cannot be read.
    pub fn of(file: &[u8]) -> Result<Self> {
        let wrong = |what: &str| Error::Policy(format!("the collateral {what}"));
        let parts = pem::parse_many(file)
            .map_err(|_| wrong("is not that of SEV-SNP: it is not text in PEM"))?;
        if parts.len() > MOST {
            return Err(wrong("has more than 256 certificates and lists"));
        }
        let mut collateral = Self {
            certificates: Vec::new(),
            lists: Vec::new(),
        };
        for part in &parts {
            match part.tag() {
                "CERTIFICATE" => collateral
                    .certificates
                    .push(Certificate::of(part.contents())?),
                "X509 CRL" => collateral.lists.push(RevocationList::of(part.contents())?),
                _ => return Err(wrong("has a part that is no certificate and no list")),
            }
        }
        if collateral.certificates.is_empty() || collateral.lists.is_empty() {
            return Err(wrong(
                "needs AMD's certificates and its revocation list, in PEM",
            ));
        }
        Ok(collateral)
    }
}
