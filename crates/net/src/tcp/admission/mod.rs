//! Clients that an authority admits: each has a certificate that the authority signed, which names
//! its number.
//!
//! TLS verifies that the authority signed the certificate and that the caller has its key. Dates
//! and revocation are checked again at every request, and are told to the client in words, which
//! an alert of TLS could not do. Only certificates that the authority itself signed count: a
//! client cannot admit others.

#[cfg(test)]
mod tests;

use crate::error::{CertificateFault, Denial, Error, Fault, Name, Result, SetupFault};
use crate::kinds;
use crate::tcp::pinned::{Pinned, certificate_error, no_tls12};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use std::sync::{Arc, PoisonError, RwLock};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationCheckDepth, RevocationOptionsBuilder, UnknownStatusPolicy,
};

/// The end of a name in a client's certificate, such as `client-7.tacit`.
const DOMAIN: &str = ".tacit";

/// Returns the name of a client in the certificate that an authority signs.
pub(crate) fn name_of(client: usize) -> String {
    format!("client-{client}{DOMAIN}")
}

/// Returns the client that a name is of.
fn client_of(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("client-")?.strip_suffix(DOMAIN)?;
    let client = digits.parse().ok()?;
    // Only one spelling of a number is a name.
    (name_of(client) == name).then_some(client)
}

/// An authority, and the certificates of it that do not count any more.
#[derive(Debug)]
pub(crate) struct Admission {
    authority: CertificateDer<'static>,
    /// Clients are numbered below this.
    most: usize,
    revoked: RwLock<Option<CertRevocationList<'static>>>,
    provider: Arc<CryptoProvider>,
}

impl Admission {
    /// Admits clients below `most` by the authority's certificate in PEM.
    ///
    /// # Errors
    /// `Setup` for a certificate that cannot be an authority's, or is not valid now.
    pub(crate) fn new(authority: &str, most: usize, provider: Arc<CryptoProvider>) -> Result<Self> {
        let unfit = |reason: &str| {
            Error::setup(Fault::new(
                format!("the certificate of the clients' authority {reason}"),
                "make one by `tacit federated authority`",
            ))
        };
        let authority =
            kinds::certificate(authority).ok_or_else(|| unfit("is not a certificate in PEM"))?;
        webpki::anchor_from_trusted_cert(&authority).map_err(|_| unfit("is damaged"))?;
        let admission = Self {
            authority,
            most,
            revoked: RwLock::default(),
            provider,
        };
        match admission.own_fault(UnixTime::now()) {
            None => Ok(admission),
            Some(CertificateFault::Expired { at }) => {
                Err(unfit(&format!("expired at {}", kinds::date(at))))
            }
            Some(CertificateFault::NotYetValid { at }) => {
                Err(unfit(&format!("is valid only from {}", kinds::date(at))))
            }
            Some(_) => Err(unfit("is not one of an authority")),
        }
    }

    /// Returns what is wrong with the authority's own certificate at `now`.
    fn own_fault(&self, now: UnixTime) -> Option<CertificateFault> {
        match self.verify(&self.authority, now, None) {
            // Dates are checked first. Only an authority's certificate cannot be a client's.
            Err(webpki::Error::CaUsedAsEndEntity) => None,
            Err(webpki::Error::CertExpired { not_after, .. }) => {
                let at = not_after.as_secs();
                Some(CertificateFault::Expired { at })
            }
            Err(webpki::Error::CertNotValidYet { not_before, .. }) => {
                let at = not_before.as_secs();
                Some(CertificateFault::NotYetValid { at })
            }
            _ => Some(CertificateFault::Unusable),
        }
    }

    /// Replaces the list of certificates that do not count any more, in PEM.
    ///
    /// # Errors
    /// `Setup` for a text that is no such list, or one of another authority.
    pub(crate) fn revoke(&self, list: Option<&str>) -> Result<()> {
        let list = list.map(|pem| self.list_in(pem)).transpose()?;
        *self.revoked.write().unwrap_or_else(PoisonError::into_inner) = list;
        Ok(())
    }

    fn list_in(&self, pem: &str) -> Result<CertRevocationList<'static>> {
        let wrong = |reason: &str| {
            Error::setup(Fault::new(
                format!("the list of revoked certificates {reason}"),
                "get the current one from the clients' authority, who makes it by `tacit federated \
                 revoke`",
            ))
        };
        let der = CertificateRevocationListDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|_| wrong("is not one in PEM"))?;
        let list = OwnedCertRevocationList::from_der(&der).map_err(|_| wrong("is damaged"))?;
        let list = CertRevocationList::from(list);
        let anchor = webpki::anchor_from_trusted_cert(&self.authority);
        if anchor.is_ok_and(|anchor| list.issuer() == anchor.subject.as_ref()) {
            return Ok(list);
        }
        Err(wrong("is of another authority"))
    }

    /// Returns the client of a certificate that the authority signed, whatever its dates are.
    pub(crate) fn owner(&self, certificate: &CertificateDer<'_>) -> Option<usize> {
        self.named(certificate).ok()
    }

    /// Returns the client that a certificate of the authority names, whatever its dates are.
    fn named(&self, certificate: &CertificateDer<'_>) -> std::result::Result<usize, Denial> {
        let verified = match self.verify(certificate, UnixTime::now(), None) {
            Err(
                webpki::Error::CertExpired { not_after: at, .. }
                | webpki::Error::CertNotValidYet { not_before: at, .. },
            ) => self.verify(certificate, at, None),
            verified => verified,
        };
        verified.map_err(|_| Denial::OtherIssuer)?;
        let entity = EndEntityCert::try_from(certificate).map_err(|_| Denial::OtherIssuer)?;
        let mut names = entity.valid_dns_names();
        let (Some(name), None) = (names.next(), names.next()) else {
            return Err(Denial::NoNumber);
        };
        let client = client_of(name).ok_or(Denial::NoNumber)?;
        if !kinds::can_sign(certificate) {
            return Err(Denial::CannotSign { client });
        }
        if client >= self.most {
            let most = self.most;
            return Err(Denial::Beyond { client, most });
        }
        Ok(client)
    }

    /// Checks that a certificate counts at `now`: its dates, and that it is not revoked.
    ///
    /// # Errors
    /// The fault of the certificate, or of the list of revoked ones.
    pub(crate) fn check(
        &self,
        certificate: &CertificateDer<'_>,
        now: UnixTime,
    ) -> std::result::Result<(), SetupFault> {
        let client = self.named(certificate).map_err(SetupFault::NotAdmitted)?;
        if self.own_fault(now).is_some() {
            return Err(SetupFault::NotAdmitted(Denial::OldAuthority));
        }
        let revoked = self.revoked.read().unwrap_or_else(PoisonError::into_inner);
        let of = Name::Client(client);
        let dated = |fault| SetupFault::Certificate { of, fault };
        match self.verify(certificate, now, revoked.as_ref()) {
            Ok(()) => Ok(()),
            Err(webpki::Error::CertExpired { not_after, .. }) => {
                let at = not_after.as_secs();
                Err(dated(CertificateFault::Expired { at }))
            }
            Err(webpki::Error::CertNotValidYet { not_before, .. }) => {
                let at = not_before.as_secs();
                Err(dated(CertificateFault::NotYetValid { at }))
            }
            Err(webpki::Error::CertRevoked) => {
                Err(SetupFault::NotAdmitted(Denial::Revoked { client }))
            }
            Err(webpki::Error::CrlExpired { next_update, .. }) => {
                let at = next_update.as_secs();
                Err(SetupFault::NotAdmitted(Denial::OldList { at }))
            }
            // The certificate alone was found right above.
            Err(_) => Err(SetupFault::NotAdmitted(Denial::WrongList)),
        }
    }

    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        now: UnixTime,
        revoked: Option<&CertRevocationList<'_>>,
    ) -> std::result::Result<(), webpki::Error> {
        let anchors = [webpki::anchor_from_trusted_cert(&self.authority)?];
        let entity = EndEntityCert::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let usage = KeyUsage::client_auth();
        let lists: Vec<&CertRevocationList<'_>> = revoked.into_iter().collect();
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
            options
                .with_depth(RevocationCheckDepth::EndEntity)
                .with_status_policy(UnknownStatusPolicy::Deny)
                .with_expiration_policy(ExpirationPolicy::Enforce)
                .build()
        });
        let verified =
            entity.verify_for_usage(algorithms, &anchors, &[], now, usage, revocation, None);
        verified.map(drop)
    }
}

impl ClientCertVerifier for Admission {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> std::result::Result<ClientCertVerified, rustls::Error> {
        let named = self.named(certificate);
        named
            .map(|_| ClientCertVerified::assertion())
            .map_err(|denial| certificate_error(SetupFault::NotAdmitted(denial)))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// The clients that may call a server.
#[derive(Clone)]
pub(crate) enum Callers {
    /// Those whose certificates the server's configuration has.
    Pinned(Arc<Pinned>),
    /// Those that an authority admits.
    Admitted(Arc<Admission>),
}

impl Callers {
    /// Returns the client of a certificate.
    pub(crate) fn owner(&self, certificate: &CertificateDer<'_>) -> Option<usize> {
        match self {
            Self::Pinned(pinned) => pinned.owner(certificate),
            Self::Admitted(admission) => admission.owner(certificate),
        }
    }

    /// Checks that a certificate still counts, which may have changed since the handshake. Pinned
    /// certificates were checked then.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn check(
        &self,
        certificate: &CertificateDer<'_>,
    ) -> std::result::Result<(), SetupFault> {
        match self {
            Self::Pinned(_) => Ok(()),
            Self::Admitted(admission) => admission.check(certificate, UnixTime::now()),
        }
    }
}
