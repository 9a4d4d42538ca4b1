//! Which certificates links are made with: each is its own anchor, of a kind that the verifier
//! takes, and no authority's.

use crate::error::{CertificateFault, Error, Name, SetupFault};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use webpki::{EndEntityCert, KeyUsage};

/// What to do about a certificate that is refused whenever it is shown.
pub(crate) const KINDS: &str =
    "have one made by `tacit certificates`: ECDSA P-256, no CA's, for servers and clients alike";

/// When a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// From then.
    pub not_before: u64,
    /// Until then.
    pub not_after: u64,
}

impl Period {
    /// Its first minute, for people.
    #[must_use]
    pub fn begins(&self) -> String {
        date(self.not_before)
    }

    /// Its last minute, for people.
    #[must_use]
    pub fn ends(&self) -> String {
        date(self.not_after)
    }
}

/// A time for people, to the minute.
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

/// Whether a certificate is its own anchor and valid then.
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

/// When a certificate is valid, which the verifier tells who asks for a time before and after;
/// `None` for one that is refused whenever it is shown, which it tells who asks for a time between.
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

/// The year 9999, the last that a certificate can name.
const LATEST: u64 = 253_402_300_799;

/// The certificate in a PEM text.
pub(crate) fn certificate(pem: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok()
}

/// A certificate of a kind that links are made with, whatever its dates are.
pub(crate) fn usable(pem: &str) -> Result<CertificateDer<'static>, CertificateFault> {
    let found = certificate(pem).ok_or(CertificateFault::NoPem)?;
    match period(&found) {
        Some(_) => Ok(found),
        None => Err(CertificateFault::Unusable),
    }
}

/// Somebody's certificate, as [`usable`].
pub(crate) fn usable_of(of: Name, pem: &str) -> crate::Result<CertificateDer<'static>> {
    usable(pem).map_err(|fault| Error::setup(SetupFault::Certificate { of, fault }))
}

/// Whether the key of that certificate is of the kind that signs statements.
pub(crate) fn can_sign(certificate: &CertificateDer<'_>) -> bool {
    let entity = webpki::EndEntityCert::try_from(certificate);
    let tried = entity.map(|it| it.verify_signature(webpki::ring::ECDSA_P256_SHA256, &[], &[]));
    // No bytes are a signature of anything; of a key of another kind that is said first.
    matches!(tried, Ok(Err(webpki::Error::InvalidSignatureForPublicKey)))
}
