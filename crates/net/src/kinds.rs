//! Certificates that links use: each is its own trust anchor, of a kind that the verifier accepts,
//! and not issued by an authority.

use crate::error::{CertificateFault, Error, Name, SetupFault};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use webpki::{EndEntityCert, KeyUsage};

/// Remedy for a certificate that is always refused.
pub(crate) const KINDS: &str =
    "have one made by `tacit certificates`: ECDSA P-256, not from a CA, for servers and clients";

/// Period of validity of a certificate, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// Begin of the period.
    pub not_before: u64,
    /// End of the period.
    pub not_after: u64,
}

impl Period {
    /// Formats the beginning of the period for people, to the minute.
    #[must_use]
    pub fn begins(&self) -> String {
        date(self.not_before)
    }

    /// Formats the end of the period for people, to the minute.
    #[must_use]
    pub fn ends(&self) -> String {
        date(self.not_after)
    }
}

/// Formats a time for people, to the minute.
pub(crate) fn date(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_or_else(
        |_| "an unknown time".to_owned(),
        |at| {
            let (date, hour, minute) = (at.date(), at.hour(), at.minute());
            format!("{date} {hour:02}:{minute:02} UTC")
        },
    )
}

/// Checks that a certificate is its own anchor and valid at `now`.
pub(crate) fn check(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), webpki::Error> {
    let anchors = [webpki::anchor_from_trusted_cert(certificate)?];
    let entity = EndEntityCert::try_from(certificate)?;
    let algorithms = rustls::crypto::ring::default_provider()
        .signature_verification_algorithms
        .all;
    let usage = KeyUsage::server_auth();
    let verified = entity.verify_for_usage(algorithms, &anchors, &[], now, usage, None, None);
    verified.map(drop)
}

/// Returns when a certificate is valid, or `None` for one that is always refused. The verifier
/// reveals the dates in its errors for a time before and a time after; a check in between shows
/// whether the certificate is always refused.
pub(crate) fn period(certificate: &CertificateDer<'_>) -> Option<Period> {
    let period = dates(certificate)?;
    let begin = std::time::Duration::from_secs(period.not_before);
    let right = check(certificate, UnixTime::since_unix_epoch(begin));
    right.is_ok().then_some(period)
}

fn dates(certificate: &CertificateDer<'_>) -> Option<Period> {
    let at = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let not_before = match check(certificate, at(0)) {
        Ok(()) => 0,
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
        Err(_) => return None,
    };
    match check(certificate, at(LATEST)) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(Period {
            not_before,
            not_after: not_after.as_secs(),
        }),
        Ok(()) => Some(Period {
            not_before,
            not_after: LATEST,
        }),
        Err(_) => None,
    }
}

/// The end of the year 9999, the last that a certificate can name.
const LATEST: u64 = 253_402_300_799;

/// Reads the certificate in a PEM text.
pub(crate) fn certificate(pem: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok()
}

/// Reads a certificate of a kind that links use, whatever its dates are.
pub(crate) fn usable(pem: &str) -> Result<CertificateDer<'static>, CertificateFault> {
    let found = certificate(pem).ok_or(CertificateFault::NoPem)?;
    match period(&found) {
        Some(_) => Ok(found),
        None => Err(CertificateFault::Unusable),
    }
}

/// Reads the certificate of `of`, as [`usable`] does.
pub(crate) fn usable_of(of: Name, pem: &str) -> crate::Result<CertificateDer<'static>> {
    usable(pem).map_err(|fault| Error::setup(SetupFault::Certificate { of, fault }))
}

/// Returns whether the certificate's key is of the kind that signs statements.
pub(crate) fn can_sign(certificate: &CertificateDer<'_>) -> bool {
    let entity = webpki::EndEntityCert::try_from(certificate);
    let tried = entity.map(|it| it.verify_signature(webpki::ring::ECDSA_P256_SHA256, &[], &[]));
    // The empty signature is never valid. For a key of another kind the verifier reports that
    // first.
    matches!(tried, Ok(Err(webpki::Error::InvalidSignatureForPublicKey)))
}
