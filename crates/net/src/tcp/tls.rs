//! TLS 1.3 with pinned certificates.
//!
//! Each party's certificate is its own and only trust anchor: the peer must present exactly the
//! certificate that the configuration names for it, inside its period of validity, and prove that it
//! holds the key. Host names play no part. No session is resumed.

use super::Identity;
use crate::error::{Error, Result};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName,
    OtherError, ServerConfig, ServerConnection, SignatureScheme, StreamOwned,
};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

/// A connection that this party sends on.
pub(super) type Outgoing = StreamOwned<ClientConnection, TcpStream>;
/// A connection that this party receives on.
pub(super) type Incoming = StreamOwned<ServerConnection, TcpStream>;

/// What connections are made with.
pub(super) struct Tls {
    pinned: Arc<Pinned>,
    clients: Vec<Arc<ClientConfig>>,
    server: Arc<ServerConfig>,
}

/// The certificates of all parties.
#[derive(Debug)]
struct Pinned {
    certificates: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Tls {
    pub(super) fn new(party: usize, identity: &Identity) -> Result<Self> {
        let certificates = identity
            .certificates
            .iter()
            .enumerate()
            .map(|(of, pem)| {
                CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| {
                    Error::setup(format!(
                        "the certificate of party {of} is not PEM ({error})"
                    ))
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let provider = Arc::new(CryptoProvider {
            cipher_suites: vec![provider::cipher_suite::TLS13_AES_128_GCM_SHA256],
            ..provider::default_provider()
        });
        let pinned = Arc::new(Pinned {
            certificates,
            provider: Arc::clone(&provider),
        });
        for of in 0..pinned.certificates.len() {
            pinned
                .check_period(of, UnixTime::now())
                .map_err(Error::setup)?;
        }
        let clients = (0..pinned.certificates.len())
            .map(|peer| {
                let verifier = Arc::new(OnePeer {
                    pinned: Arc::clone(&pinned),
                    peer,
                });
                let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
                    .with_protocol_versions(&[&rustls::version::TLS13])
                    .map_err(unusable)?
                    .dangerous()
                    .with_custom_certificate_verifier(verifier)
                    .with_client_auth_cert(pinned.chain(party), key(party, identity)?)
                    .map_err(|error| mismatch(party, &error))?;
                config.resumption = Resumption::disabled();
                Ok(Arc::new(config))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(Arc::new(AnyPeer {
                pinned: Arc::clone(&pinned),
            }))
            .with_single_cert(pinned.chain(party), key(party, identity)?)
            .map_err(|error| mismatch(party, &error))?;
        server.send_tls13_tickets = 0;
        Ok(Self {
            pinned,
            clients,
            server: Arc::new(server),
        })
    }

    /// TLS as the calling side. The reason is `None` where another attempt may succeed.
    pub(super) fn call(
        &self,
        peer: usize,
        mut socket: TcpStream,
    ) -> std::result::Result<Outgoing, Option<String>> {
        let name = ServerName::try_from("tacit").map_err(|error| Some(error.to_string()))?;
        let config = Arc::clone(&self.clients[peer]);
        let mut connection =
            ClientConnection::new(config, name).map_err(|error| Some(error.to_string()))?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut socket)
                .map_err(|error| refusal(&error))?;
        }
        Ok(StreamOwned::new(connection, socket))
    }

    /// TLS as the listening side, and which party called.
    pub(super) fn answer(
        &self,
        mut socket: TcpStream,
    ) -> std::result::Result<(usize, Incoming), String> {
        let mut connection =
            ServerConnection::new(Arc::clone(&self.server)).map_err(|error| error.to_string())?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut socket)
                .map_err(|error| plain(&error))?;
        }
        let presented = connection.peer_certificates().and_then(<[_]>::first);
        let peer = presented.and_then(|certificate| self.pinned.owner(certificate));
        match peer {
            Some(peer) => Ok((peer, StreamOwned::new(connection, socket))),
            None => Err("it presented no certificate".to_owned()),
        }
    }
}

/// The reason for which the other side or we refused; `None` for a connection that merely ended.
pub(super) fn refusal(error: &io::Error) -> Option<String> {
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        Some(rustls::Error::AlertReceived(alert)) => Some(format!(
            "it refused this party's certificate ({alert:?}); its configuration must name the certificate in use here, \
             and both clocks must be right"
        )),
        Some(rustls::Error::InvalidMessage(_)) => {
            Some("what listens there does not speak TLS".to_owned())
        }
        Some(_) => Some(plain(error)),
        None if error.kind() == io::ErrorKind::InvalidData => Some(error.to_string()),
        None => None,
    }
}

/// An error's text; of our own verifiers, their own words.
fn plain(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(reason)))) => {
            reason.to_string()
        }
        _ => error.to_string(),
    }
}

fn key(party: usize, identity: &Identity) -> Result<PrivateKeyDer<'static>> {
    // The parser's error could quote the file, so it is not shown.
    PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(|_| {
        Error::setup(format!(
            "the private key of party {party} is not a PEM private key"
        ))
    })
}

fn unusable(error: rustls::Error) -> Error {
    Error::setup(format!("TLS 1.3 is not available ({error})"))
}

fn mismatch(party: usize, error: &rustls::Error) -> Error {
    Error::setup(format!(
        "the private key of party {party} does not fit its certificate ({error})"
    ))
}

impl Pinned {
    fn chain(&self, party: usize) -> Vec<CertificateDer<'static>> {
        vec![self.certificates[party].clone()]
    }

    fn owner(&self, certificate: &CertificateDer<'_>) -> Option<usize> {
        self.certificates
            .iter()
            .position(|pinned| pinned == certificate)
    }

    fn check_period(&self, party: usize, now: UnixTime) -> std::result::Result<(), String> {
        use webpki::{EndEntityCert, KeyUsage};
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

/// Accepts the certificate of one party.
#[derive(Debug)]
struct OnePeer {
    pinned: Arc<Pinned>,
    peer: usize,
}

/// Accepts the certificate of every party.
#[derive(Debug)]
struct AnyPeer {
    pinned: Arc<Pinned>,
}

impl ServerCertVerifier for OnePeer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
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
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General(
            "TLS 1.2 is not spoken here".to_owned(),
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.pinned
            .verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.pinned
            .provider
            .signature_verification_algorithms
            .supported_schemes()
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
    ) -> std::result::Result<ClientCertVerified, rustls::Error> {
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
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General(
            "TLS 1.2 is not spoken here".to_owned(),
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.pinned
            .verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.pinned
            .provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl Pinned {
    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }
}
