//! Revocation lists, which AMD's roots sign.

use super::certificate::Certificate;
use super::signed::Signed;
use crate::error::{Error, Result};
use x509_cert::crl::TbsCertList;
use x509_cert::der::Decode;
use x509_cert::ext::Extensions;
use x509_cert::name::Name;

/// A list that could be read. Its signature has not been verified.
pub struct RevocationList {
    signed: Signed,
    content: TbsCertList,
}

impl RevocationList {
    /// Reads a list in DER.
    ///
    /// # Errors
    /// `Chain` if it is none, or has a critical extension: it would not be a list of everything.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        let signed = Signed::of(bytes, "a revocation list")?;
        let wrong = |why: &str| Error::Chain(format!("a revocation list cannot be read: {why}"));
        let content =
            TbsCertList::from_der(&signed.content).map_err(|_| wrong("it is not X.509"))?;
        if content.signature != signed.algorithm {
            return Err(wrong("it names two algorithms"));
        }
        let entries = content.revoked_certificates.iter().flatten();
        let mut extensions = entries.filter_map(|entry| entry.crl_entry_extensions.as_ref());
        let of_list = content.crl_extensions.as_ref();
        if of_list.is_some_and(is_critical) || extensions.any(is_critical) {
            return Err(wrong("it has a critical extension that is unknown"));
        }
        Ok(Self { signed, content })
    }

    /// Returns who has signed the list.
    pub fn issuer(&self) -> &Name {
        &self.content.issuer
    }

    /// Checks the list's signature, by the certificate of its issuer, and its dates.
    ///
    /// # Errors
    /// `Chain` if it does not hold at that moment.
    pub fn check(&self, issuer: &Certificate, now: u64) -> Result<()> {
        let key = issuer.rsa_key().unwrap_or_default();
        if !self.signed.is_signed_by(key) {
            return Err(Error::Chain(
                "the signature of the revocation list is wrong".to_owned(),
            ));
        }
        let begin = self.content.this_update.to_unix_duration().as_secs();
        let next = self.content.next_update.as_ref();
        let end = next.map_or(0, |next| next.to_unix_duration().as_secs());
        if !(begin..=end).contains(&now) {
            return Err(Error::Chain(
                "the revocation list is not valid at this time: get a new one".to_owned(),
            ));
        }
        Ok(())
    }

    /// Returns whether the list names a certificate.
    pub fn names(&self, certificate: &Certificate) -> bool {
        let revoked = self.content.revoked_certificates.iter().flatten();
        revoked
            .into_iter()
            .any(|entry| entry.serial_number.as_bytes() == certificate.serial())
    }
}

fn is_critical(extensions: &Extensions) -> bool {
    extensions.iter().any(|extension| extension.critical)
}
