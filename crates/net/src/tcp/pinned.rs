//! Which certificates are accepted: the pinned one of a party, in its period of validity.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, SignatureScheme,
};
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage};

/// The certificates of all parties.
#[derive(Debug)]
pub(super) struct Pinned {
    certificates: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    /// The certificates by party, each of which must be valid now.
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> crate::Result<Self> {
        let pinned = Self {
            certificates,
            provider,
        };
        for of in 0..pinned.certificates.len() {
            pinned
                .check_period(of, UnixTime::now())
                .map_err(crate::Error::setup)?;
        }
        Ok(pinned)
    }

    pub(super) fn chain(&self, party: usize) -> Vec<CertificateDer<'static>> {
        vec![self.certificates[party].clone()]
    }

    pub(super) fn owner(&self, certificate: &CertificateDer<'_>) -> Option<usize> {
        self.certificates
            .iter()
            .position(|pinned| pinned == certificate)
    }

    fn check_period(&self, party: usize, now: UnixTime) -> Result<(), String> {
        let certificate = &self.certificates[party];
        let unreadable =
            |error| format!("the certificate of party {party} cannot be used ({error:?})");
        let anchors = [webpki::anchor_from_trusted_cert(certificate).map_err(unreadable)?];
        let entity = EndEntityCert::try_from(certificate).map_err(unreadable)?;
        let verified = entity.verify_for_usage(
            self.provider.signature_verification_algorithms.all,
            &anchors,
            &[],
            now,
            KeyUsage::server_auth(),
            None,
            None,
        );
        match verified {
            Ok(_) => Ok(()),
            Err(webpki::Error::CertExpired { not_after, .. }) => Err(format!(
                "the certificate of party {party} expired at {}; make a new one and give it to all parties",
                date(not_after)
            )),
            Err(webpki::Error::CertNotValidYet { not_before, .. }) => Err(format!(
                "the certificate of party {party} is valid only from {}; check the clock of this machine",
                date(not_before)
            )),
            Err(error) => Err(unreadable(error)),
        }
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

fn date(at: UnixTime) -> String {
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    time::OffsetDateTime::from_unix_timestamp(seconds)
        .map_or_else(|_| "an unknown time".to_owned(), |at| at.to_string())
}

fn certificate_error(reason: String) -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::from(Box::<
        dyn std::error::Error + Send + Sync,
    >::from(
        reason
    )))))
}

fn no_tls12() -> rustls::Error {
    rustls::Error::General("TLS 1.2 is not spoken here".to_owned())
}

/// Accepts the certificate of one party.
#[derive(Debug)]
pub(super) struct OnePeer {
    pinned: Arc<Pinned>,
    peer: usize,
}

impl OnePeer {
    pub(super) fn new(pinned: &Arc<Pinned>, peer: usize) -> Self {
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
        let peer = self.peer;
        match self.pinned.owner(certificate) {
            Some(owner) if owner == peer => {}
            Some(owner) => {
                return Err(certificate_error(format!(
                    "it presents the certificate of party {owner}, not of party {peer}; check the addresses"
                )));
            }
            None => {
                return Err(certificate_error(format!(
                    "it presents a certificate that is not the one configured here for party {peer}; \
                     put party {peer}'s current certificate into this party's configuration"
                )));
            }
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

/// Accepts the certificate of every party.
#[derive(Debug)]
pub(super) struct AnyPeer {
    pinned: Arc<Pinned>,
}

impl AnyPeer {
    pub(super) fn new(pinned: &Arc<Pinned>) -> Self {
        Self {
            pinned: Arc::clone(pinned),
        }
    }
}

impl ClientCertVerifier for AnyPeer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let owner = self.pinned.owner(certificate).ok_or_else(|| {
            certificate_error(
                "it presented a certificate that is no party's; \
                 put each party's current certificate into this party's configuration"
                    .to_owned(),
            )
        })?;
        self.pinned
            .check_period(owner, now)
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
