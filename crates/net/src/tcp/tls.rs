//! TLS 1.3 with pinned certificates.
//!
//! Each party's certificate is its own and only trust anchor. The peer must present exactly the
//! certificate that the configuration names for it, within its period of validity, and prove that
//! it holds the key. Host names play no part. No session is resumed.

use super::Identity;
use super::admission::{Admission, Callers};
use super::pinned::{AnyPeer, OnePeer, Outdated, Pinned};
use crate::error::{CertificateFault, Error, Fault, Name, Result, SetupFault, cause};
use crate::kinds::{certificate, usable_of};
use crate::roster::Roster;
use crate::wording::Voice;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, OtherError, ServerConfig, ServerConnection,
    StreamOwned,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// A connection that this party sends on.
pub(super) type Outgoing = StreamOwned<ClientConnection, TcpStream>;
/// A connection that this party receives on.
pub(super) type Incoming = StreamOwned<ServerConnection, TcpStream>;

/// TLS configurations of this member's connections.
pub(super) struct Tls {
    pinned: Arc<Pinned>,
    clients: Vec<Arc<ClientConfig>>,
    server: Arc<ServerConfig>,
}

impl Tls {
    pub(super) fn new(party: usize, roster: Roster, identity: &Identity) -> Result<Self> {
        let names: Vec<Name> = (0..roster.members)
            .map(|member| roster.of(member))
            .collect();
        let certificates = identity
            .certificates
            .iter()
            .zip(&names)
            .map(|(pem, name)| usable_of(*name, pem))
            .collect::<Result<Vec<_>>>()?;
        let whose = names[party];
        let pinned = Arc::new(Pinned::new(certificates, names, provider())?);
        let unfit = |_| unfit(whose);
        let clients = (0..roster.members)
            .map(|peer| {
                let own = (pinned.chain(party), key(whose, identity)?);
                client(OnePeer::new(&pinned, peer), Some(own)).map_err(unfit)
            })
            .collect::<Result<Vec<_>>>()?;
        let verifier = Arc::new(AnyPeer::party(&pinned));
        let server = listening(verifier, pinned.chain(party), whose, identity)?;
        Ok(Self {
            pinned,
            clients,
            server,
        })
    }

    /// Runs the handshake as the calling side. The error is `None` if another attempt may succeed.
    pub(super) fn call(
        &self,
        peer: usize,
        socket: TcpStream,
    ) -> std::result::Result<Outgoing, Option<SetupFault>> {
        handshake(&self.clients[peer], socket).map_err(|error| refusal(&error))
    }

    /// Returns the configuration with which this member calls a peer.
    pub(super) fn client(&self, peer: usize) -> Arc<ClientConfig> {
        Arc::clone(&self.clients[peer])
    }

    /// Runs the handshake as the listening side and returns the calling party; `None` for a caller
    /// that presents no certificate.
    pub(super) fn answer(
        &self,
        mut socket: TcpStream,
    ) -> std::result::Result<(Option<usize>, Incoming), SetupFault> {
        let mut connection =
            ServerConnection::new(Arc::clone(&self.server)).map_err(|error| plain(&error))?;
        while connection.is_handshaking() {
            let went = connection.complete_io(&mut socket);
            went.map_err(|error| inner(&error).map_or_else(|| failed(&error), plain))?;
        }
        let presented = connection.peer_certificates().and_then(<[_]>::first);
        let peer = presented.and_then(|certificate| self.pinned.owner(certificate));
        Ok((peer, StreamOwned::new(connection, socket)))
    }
}

/// Returns a configuration for telling a member something without a link. It pins the member's
/// certificate, and presents this member's own certificate if that is usable.
pub(crate) fn notice_config(theirs: &str, own: Option<(&str, &str)>) -> Option<Arc<ClientConfig>> {
    let names = vec![Name::It];
    let pinned = Arc::new(Pinned::new(vec![certificate(theirs)?], names, provider()).ok()?);
    let verifier = || OnePeer::new(&pinned, 0);
    let pair = own.and_then(|(pem, key)| {
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).ok()?;
        client(verifier(), Some((vec![certificate(pem)?], key))).ok()
    });
    pair.or_else(|| client(verifier(), None).ok())
}

/// Returns the configuration with which a client calls a server: it pins the server's certificate
/// and presents the client's.
pub(crate) fn client_config(
    server: CertificateDer<'static>,
    identity: &Identity,
    (theirs, whose): (Name, Name),
    authority: Option<&Admission>,
) -> Result<Arc<ClientConfig>> {
    let pinned = Arc::new(Pinned::new(vec![server], vec![theirs], provider())?);
    let own = identity.certificates.first().map_or("", String::as_str);
    let own = match authority {
        None => usable_of(whose, own)?,
        Some(authority) => admitted(authority, own, whose)?,
    };
    let pair = Some((vec![own], key(whose, identity)?));
    client(OnePeer::new(&pinned, 0), pair).map_err(|_| unfit(whose))
}

/// Returns what is wrong now with this member's own certificate, if the other side refused it: the
/// alert says only that it did.
pub(crate) fn fault_of_own(error: &io::Error, pem: &str, whose: Name) -> Option<SetupFault> {
    matches!(inner(error), Some(rustls::Error::AlertReceived(_))).then_some(())?;
    let own = vec![certificate(pem)?];
    let pinned = Pinned::distinct(own, vec![whose], provider());
    let fault = pinned.ok()?.check_period(0, UnixTime::now()).err()?;
    // The certificate was checked before it was presented, but one that an authority signed is not
    // of the kind that is pinned.
    let is_of_another_kind = matches!(
        fault,
        SetupFault::Certificate {
            fault: CertificateFault::Unusable,
            ..
        }
    );
    (!is_of_another_kind).then_some(fault)
}

/// Reads a client's own certificate, which an authority signed for it.
pub(crate) fn admitted(
    authority: &Admission,
    pem: &str,
    whose: Name,
) -> Result<CertificateDer<'static>> {
    let faulty = |fault| Error::setup(SetupFault::Certificate { of: whose, fault });
    let own = certificate(pem).ok_or_else(|| faulty(CertificateFault::NoPem))?;
    authority
        .check(&own, UnixTime::now())
        .map_err(Error::setup)?;
    match authority.owner(&own) {
        Some(client) if Name::Client(client) == whose => Ok(own),
        owner => {
            let (owner, whose) = (owner.map(Name::Client), Voice::PARTY.name(whose));
            let owner = owner.map_or_else(String::new, |owner| Voice::PARTY.name(owner));
            Err(Error::setup(Fault::new(
                format!("the certificate of {whose} is one of {owner}"),
                "give each its own",
            )))
        }
    }
}

/// Admits clients below `most` whose certificates an authority signed.
pub(crate) fn admission(authority: &str, most: usize) -> Result<Admission> {
    Admission::new(authority, most, provider())
}

/// Returns the configuration with which a server listens for clients, each of which must present
/// its certificate.
pub(crate) fn intake(
    whose: Name,
    own: CertificateDer<'static>,
    identity: &Identity,
    clients: &Callers,
) -> Result<Arc<ServerConfig>> {
    // The server's own certificate must be valid now, as that of any party.
    Pinned::new(vec![own.clone()], vec![whose], provider())?;
    let verifier: Arc<dyn ClientCertVerifier> = match clients {
        Callers::Pinned(pinned) => Arc::new(AnyPeer::client(pinned)),
        Callers::Admitted(admission) => Arc::clone(admission) as _,
    };
    listening(verifier, vec![own], whose, identity)
}

/// Pins the certificates of clients, by number.
pub(crate) fn clients(
    certificates: Vec<CertificateDer<'static>>,
    names: Vec<Name>,
) -> Result<Arc<Pinned>> {
    Ok(Arc::new(Pinned::distinct(certificates, names, provider())?))
}

fn listening(
    verifier: Arc<dyn ClientCertVerifier>,
    chain: Vec<CertificateDer<'static>>,
    whose: Name,
    identity: &Identity,
) -> Result<Arc<ServerConfig>> {
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key(whose, identity)?)
        .map_err(|_| unfit(whose))?;
    server.send_tls13_tickets = 0;
    Ok(Arc::new(server))
}

/// Runs the handshake as the calling side.
pub(crate) fn handshake<S: Read + Write>(
    config: &Arc<ClientConfig>,
    mut socket: S,
) -> io::Result<StreamOwned<ClientConnection, S>> {
    let name = ServerName::try_from("tacit").map_err(io::Error::other)?;
    let mut connection =
        ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(connection, socket))
}

/// Returns the configuration for calling a member, with or without this member's certificate and
/// key.
fn client(
    verifier: OnePeer,
    own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> std::result::Result<Arc<ClientConfig>, rustls::Error> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match own {
        Some((chain, key)) => config.with_client_auth_cert(chain, key)?,
        None => config.with_no_client_auth(),
    };
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256],
        ..ring::default_provider()
    })
}

/// Returns the reason for which either side refused; `None` for a connection that merely ended.
pub(crate) fn refusal(error: &io::Error) -> Option<SetupFault> {
    match inner(error) {
        Some(error) => Some(plain(error)),
        None if error.kind() == io::ErrorKind::InvalidData => {
            let fault = error.get_ref().and_then(|error| error.downcast_ref());
            Some(
                fault
                    .cloned()
                    .unwrap_or_else(|| SetupFault::Failed(error.to_string())),
            )
        }
        None => None,
    }
}

/// Returns why a connection failed.
pub(crate) fn reason(error: &io::Error) -> SetupFault {
    refusal(error).unwrap_or_else(|| failed(error))
}

fn failed(error: &io::Error) -> SetupFault {
    SetupFault::Failed(cause(error))
}

/// Returns the owner of the certificate that was presented, if the connection failed because the
/// certificate is not valid now.
pub(crate) fn outdated(error: &io::Error) -> Option<usize> {
    match inner(error)? {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(reason))) => {
            Some(reason.downcast_ref::<Outdated>()?.member)
        }
        _ => None,
    }
}

fn inner(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Describes a failed handshake with a peer that was called.
fn plain(error: &rustls::Error) -> SetupFault {
    said(error).unwrap_or(match error {
        rustls::Error::InvalidMessage(_) => SetupFault::NoTls,
        _ => SetupFault::OtherTls,
    })
}

/// Describes a failed handshake with a peer that called as a client.
pub(crate) fn callers(error: &io::Error) -> SetupFault {
    match inner(error) {
        Some(rustls::Error::NoCertificatesPresented) => SetupFault::NoClientCertificate,
        Some(other) => said(other).unwrap_or(SetupFault::NoClientTls),
        None => reason(error),
    }
}

/// Describes a complaint of either side about the other's certificate. Complaints of tacit's own
/// verifiers keep their text.
fn said(error: &rustls::Error) -> Option<SetupFault> {
    use rustls::AlertDescription as Alert;
    let fault = match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(reason))) => {
            let outdated = reason
                .downcast_ref()
                .map(|outdated: &Outdated| &outdated.fault);
            let fault = outdated.or_else(|| reason.downcast_ref());
            fault
                .cloned()
                .unwrap_or_else(|| SetupFault::Failed(reason.to_string()))
        }
        rustls::Error::InvalidCertificate(_) => SetupFault::NoProof,
        rustls::Error::AlertReceived(
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::CertificateRequired,
        ) => SetupFault::Refused,
        _ => return None,
    };
    Some(fault)
}

fn key(of: Name, identity: &Identity) -> Result<PrivateKeyDer<'static>> {
    // The parser's error could quote the file, so it is not shown.
    PrivateKeyDer::from_pem_slice(identity.key.as_bytes())
        .map_err(|_| Error::setup(SetupFault::NoKey { of }))
}

fn unusable(_: rustls::Error) -> Error {
    Error::setup(SetupFault::NoTls13)
}

fn unfit(of: Name) -> Error {
    Error::setup(SetupFault::OtherKey { of })
}
