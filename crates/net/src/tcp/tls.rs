//! TLS 1.3 with pinned certificates.
//!
//! Each party's certificate is its own and only trust anchor: the peer must present exactly the
//! certificate that the configuration names for it, inside its period of validity, and prove that it
//! holds the key. Host names play no part. No session is resumed.

use super::Identity;
use super::pinned::{AnyPeer, OnePeer, Pinned};
use crate::error::{Error, Result};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, OtherError, ServerConfig, ServerConnection,
    StreamOwned,
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
        let pinned = Arc::new(Pinned::new(certificates, Arc::clone(&provider))?);
        let clients = (0..identity.certificates.len())
            .map(|peer| {
                let verifier = Arc::new(OnePeer::new(&pinned, peer));
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
            .with_client_cert_verifier(Arc::new(AnyPeer::new(&pinned)))
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
