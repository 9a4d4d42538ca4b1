//! Accepted certificates: the pinned certificate of a party, within its period of validity.

use crate::error::{CertificateFault, Name, SetupFault};
use crate::kinds;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, SignatureScheme,
};
use std::sync::Arc;

/// Pinned certificates of all members.
#[derive(Debug)]
pub(crate) struct Pinned {
    certificates: Vec<CertificateDer<'static>>,
    names: Vec<Name>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    /// Pins the certificates, by member, with the names of the members. Each certificate must be
    /// valid now and belong to only one member.
    pub(crate) fn new(
        certificates: Vec<CertificateDer<'static>>,
        names: Vec<Name>,
        provider: Arc<CryptoProvider>,
    ) -> crate::Result<Self> {
        let pinned = Self::distinct(certificates, names, provider)?;
        for of in 0..pinned.certificates.len() {
            pinned
                .check_period(of, UnixTime::now())
                .map_err(crate::Error::setup)?;
        }
        Ok(pinned)
    }

    /// Pins the certificates, by member. Each must belong to only one member. A certificate that is
    /// not valid is refused when it is presented.
    pub(crate) fn distinct(
        certificates: Vec<CertificateDer<'static>>,
        names: Vec<Name>,
        provider: Arc<CryptoProvider>,
    ) -> crate::Result<Self> {
        let pinned = Self {
            certificates,
            names,
            provider,
        };
        for of in 0..pinned.certificates.len() {
            let owner = pinned.owner(&pinned.certificates[of]);
            if let Some(other) = owner.filter(|owner| *owner != of) {
                let (one, other) = (pinned.names[other], pinned.names[of]);
                return Err(crate::Error::setup(SetupFault::SameCertificate {
                    one,
                    other,
                }));
            }
        }
        Ok(pinned)
    }

    pub(crate) fn certificate(&self, member: usize) -> &CertificateDer<'static> {
        &self.certificates[member]
    }

    pub(crate) fn chain(&self, party: usize) -> Vec<CertificateDer<'static>> {
        vec![self.certificates[party].clone()]
    }

    pub(crate) fn owner(&self, certificate: &CertificateDer<'_>) -> Option<usize> {
        self.certificates
            .iter()
            .position(|pinned| pinned == certificate)
    }

    pub(crate) fn check_period(&self, party: usize, now: UnixTime) -> Result<(), SetupFault> {
        let fault = match kinds::check(&self.certificates[party], now) {
            Ok(()) => return Ok(()),
            Err(webpki::Error::CertExpired { not_after, .. }) => CertificateFault::Expired {
                at: not_after.as_secs(),
            },
            Err(webpki::Error::CertNotValidYet { not_before, .. }) => {
                CertificateFault::NotYetValid {
                    at: not_before.as_secs(),
                }
            }
            Err(_) => CertificateFault::Unusable,
        };
        let of = self.names[party];
        Err(SetupFault::Certificate { of, fault })
    }

    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Error for a member's pinned certificate that is not valid now. The caller need not have proved
/// that it has the key.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub(super) struct Outdated {
    pub(super) member: usize,
    pub(super) fault: SetupFault,
}

pub(crate) fn certificate_error(
    reason: impl std::error::Error + Send + Sync + 'static,
) -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::from(Box::<
        dyn std::error::Error + Send + Sync,
    >::from(
        reason
    )))))
}

pub(crate) fn no_tls12() -> rustls::Error {
    rustls::Error::General("TLS 1.2 is not supported".to_owned())
}

/// Verifier that accepts the certificate of one party.
#[derive(Debug)]
pub(crate) struct OnePeer {
    pinned: Arc<Pinned>,
    peer: usize,
}

impl OnePeer {
    pub(crate) fn new(pinned: &Arc<Pinned>, peer: usize) -> Self {
        Self {
            pinned: Arc::clone(pinned),
            peer,
        }
    }
}

impl ServerCertVerifier for OnePeer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let (peer, names) = (self.peer, &self.pinned.names);
        let owner = self.pinned.owner(certificate);
        if owner != Some(peer) {
            return Err(certificate_error(SetupFault::OtherCertificate {
                of: names[peer],
                owner: owner.map(|owner| names[owner]),
            }));
        }
        self.pinned
            .check_period(peer, now)
            .map_err(certificate_error)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.pinned
            .verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.pinned.schemes()
    }
}

/// Verifier that accepts the certificate of every party, or of every client. A party may present
/// none; it then proves nothing.
#[derive(Debug)]
pub(crate) struct AnyPeer {
    pinned: Arc<Pinned>,
    /// Whether the callers are clients, each of which must present a certificate.
    clients: bool,
}

impl AnyPeer {
    pub(crate) fn party(pinned: &Arc<Pinned>) -> Self {
        Self {
            pinned: Arc::clone(pinned),
            clients: false,
        }
    }

    pub(crate) fn client(pinned: &Arc<Pinned>) -> Self {
        Self {
            pinned: Arc::clone(pinned),
            clients: true,
        }
    }
}

impl ClientCertVerifier for AnyPeer {
    fn client_auth_mandatory(&self) -> bool {
        self.clients
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let clients = self.clients;
        let unknown = || certificate_error(SetupFault::UnknownCertificate { clients });
        let owner = self.pinned.owner(certificate).ok_or_else(unknown)?;
        self.pinned
            .check_period(owner, now)
            .map_err(|fault| Outdated {
                member: owner,
                fault,
            })
            .map_err(certificate_error)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.pinned
            .verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.pinned.schemes()
    }
}
