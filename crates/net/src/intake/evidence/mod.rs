//! Evidence of a server for its clients, which they verify before they hand in anything. Servers
//! are those of a federation, or the parties of a service.
//!
//! Once for each process, the server makes an Ed25519 key, and evidence whose report binds what
//! [`Vouched`] lists. For each connection, the client sends a nonce; the server answers with the
//! evidence, and signs the connection with that key. The signature covers the nonce, the client's
//! number, everything that is sent with it, and 32 bytes that TLS exports to both ends of the
//! connection alone.
//!
//! **Why one report for many connections.** Hardware makes a report in tens of milliseconds, one
//! after another, and a host may slow it down. Thousands of clients make three connections each,
//! and more where connections break. A report for each nonce would let any client keep a server's
//! processor busy. A signature takes 20 microseconds. It proves as much, as long as the key never
//! leaves the process: it is drawn there, it is written nowhere, and memory is what the hardware
//! protects. A host that can read it reads the clients' vectors too.
//!
//! **What an adversary can do who owns the server's host and network.**
//!
//! - *Show old evidence, or another server's, or that of another federation.* The report names the
//!   server, the federation or service, and the certificate; and without the key nobody signs a
//!   new nonce.
//! - *Relay.* A host may know the private key of the server's certificate, if that lies in a file
//!   that it can read. It then answers clients itself, and asks the attested process for the
//!   signature. But its two connections export different bytes, since each end of TLS 1.3
//!   contributes to the key exchange; so the client refuses the signature. What is encrypted for
//!   the connection can only be read by the process that signed it.
//! - *Answer one client by what another got.* The nonce, the client and the connection differ.
//! - *Keep evidence for later.* A key that was read from a process by an attack would stay good for
//!   as long as its evidence. So evidence carries the time at which it was made, which the report
//!   binds, and clients refuse it after [`LONGEST_AGE`]. The time is that of the guest's clock,
//!   which the host may set ahead: evidence from the future is refused, but its age is known only
//!   as well as that clock is right.
//! - *Take part in the exchange between servers.* That has other domains, and other keys.
//!
//! A host can always refuse service, and see who connects, when, and how much is sent.
//!
//! `net` knows neither kinds of evidence nor policies: it sees them as a [`Voucher`].

use super::statement::Hash;
use crate::error::{Error, Result};
use crate::signing::random;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// Longest evidence, in bytes.
pub const LONGEST: usize = 1 << 16;

/// Bytes of a signature.
pub const SIGNATURE: usize = 64;

/// Age from which clients refuse evidence.
pub const LONGEST_AGE: Duration = Duration::from_secs(24 * 3600);

/// Age from which a client makes a connection anew. So evidence, collateral and revocations are
/// those of now.
pub(super) const CONNECTION_LASTS: Duration = Duration::from_secs(3600);

/// Age from which a server makes new evidence.
const RENEWED: Duration = Duration::from_secs(6 * 3600);

/// Time between two attempts to make new evidence, if one failed.
const RETRY: Duration = Duration::from_secs(60);

/// How far the clock of a server may be ahead of a client's.
const AHEAD: Duration = Duration::from_secs(300);

/// Told to a client whose file has a table `[attestation]`, at a server whose file has none.
pub(super) const NO_EVIDENCE: &str = "this server does not attest: its federation.toml has no \
                                      table [attestation], which is the same for all";

const STATEMENT: &str = "tacit 2026 attested intake: connection";

/// Label of the bytes that TLS exports.
const EXPORTED: &[u8] = b"EXPORTER-tacit-attested-intake";

/// What the evidence of a server for its clients is made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vouched<'a> {
    /// Hash that identifies the federation or the service.
    pub intake: Hash,
    /// Number of the server or party.
    pub server: usize,
    /// The server's TLS certificate, in DER.
    pub certificate: &'a [u8],
    /// The key that signs connections.
    pub key: [u8; 32],
    /// Digest of the policy.
    pub policy: Hash,
    /// Digest of the program that the server says it runs.
    pub program: Hash,
    /// When the evidence was made, in seconds since 1970.
    pub made: u64,
}

/// Maker and judge of evidence.
pub trait Voucher: Send + Sync {
    /// Returns the digest of the policy, which servers and clients must share.
    fn policy(&self) -> Hash;

    /// Returns the digest of a server's program.
    fn program(&self) -> Hash;

    /// Makes the evidence of this server.
    ///
    /// # Errors
    /// `Setup` if this machine cannot.
    fn make(&self, about: &Vouched<'_>) -> Result<Vec<u8>>;

    /// Judges a server's evidence, which is hostile until checked.
    ///
    /// # Errors
    /// Why it is refused, and what to do.
    fn judge(&self, about: &Vouched<'_>, evidence: &[u8]) -> std::result::Result<(), String>;
}

/// What a server shows a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// When the evidence was made, in seconds since 1970.
    pub made: u64,
    /// The key that signs connections.
    pub key: [u8; 32],
    /// Digest of the server's policy.
    pub policy: Hash,
    /// Digest of the server's program.
    pub program: Hash,
    /// Signature of the connection.
    pub signature: [u8; SIGNATURE],
    /// The evidence.
    pub evidence: Vec<u8>,
}

/// A connection, as either end of it knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Connection {
    pub(super) intake: Hash,
    pub(super) server: usize,
    pub(super) client: usize,
    /// Drawn by the client.
    pub(super) nonce: [u8; 32],
    /// Bytes that TLS exports to the two ends alone.
    pub(super) exported: [u8; 32],
}

impl Connection {
    /// Returns what the server signs.
    fn statement(&self, shown: &Shown) -> Hash {
        let mut hasher = blake3::Hasher::new_derive_key(STATEMENT);
        hasher.update(&self.intake);
        for number in [self.server as u64, self.client as u64, shown.made] {
            hasher.update(&number.to_le_bytes());
        }
        for part in [
            &self.nonce,
            &self.exported,
            &shown.key,
            &shown.policy,
            &shown.program,
            blake3::hash(&shown.evidence).as_bytes(),
        ] {
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// Checks what a server shows, before anything is handed in to it. `certificate` is the one
    /// that the server presented on this connection, and `now` is in seconds since 1970.
    ///
    /// # Errors
    /// Why it is refused, and what to do.
    pub(super) fn check(
        &self,
        shown: &Shown,
        certificate: &[u8],
        voucher: &dyn Voucher,
        now: u64,
    ) -> std::result::Result<(), String> {
        if shown.policy != voucher.policy() {
            return Err(
                "its policy is another one than this client's: the table [attestation] is the same \
                 for all"
                    .to_owned(),
            );
        }
        let age = now.saturating_sub(shown.made);
        if age > LONGEST_AGE.as_secs() {
            return Err(format!(
                "its evidence is {} hours old, and must not be older than {}: check both clocks, \
                 and start the server again",
                age / 3600,
                LONGEST_AGE.as_secs() / 3600
            ));
        }
        let ahead = shown.made.saturating_sub(now);
        if ahead > AHEAD.as_secs() {
            return Err(format!(
                "its evidence is {ahead} seconds from the future: set both clocks, for example by \
                 NTP"
            ));
        }
        UnparsedPublicKey::new(&ED25519, &shown.key)
            .verify(&self.statement(shown), &shown.signature)
            .map_err(|_| {
                "the process that its evidence is of is not at the other end of this connection: \
                 what it sent is from elsewhere, and its host or the network may be relaying"
            })?;
        let about = Vouched {
            intake: self.intake,
            server: self.server,
            certificate,
            key: shown.key,
            policy: shown.policy,
            program: shown.program,
            made: shown.made,
        };
        voucher.judge(&about, &shown.evidence)
    }
}

/// A server's key for its clients, and its evidence.
pub(super) struct Vouching {
    voucher: Arc<dyn Voucher>,
    intake: Hash,
    server: usize,
    certificate: Vec<u8>,
    key: Ed25519KeyPair,
    evidence: Mutex<Made>,
}

/// Evidence, and when it was made, in seconds since 1970.
#[derive(Clone)]
struct Made {
    at: u64,
    tried: u64,
    evidence: Arc<[u8]>,
}

impl Vouching {
    /// Makes a key and evidence for it.
    ///
    /// # Errors
    /// `Setup` if this machine cannot.
    pub(super) fn new(
        voucher: Arc<dyn Voucher>,
        intake: Hash,
        server: usize,
        certificate: &[u8],
    ) -> Result<Self> {
        let seed = Zeroizing::new(random()?);
        let key = Ed25519KeyPair::from_seed_unchecked(&*seed);
        let vouching = Self {
            voucher,
            intake,
            server,
            certificate: certificate.to_vec(),
            key: key.map_err(|_| Error::setup("32 bytes are no key; reinstall tacit"))?,
            evidence: Mutex::new(Made {
                at: 0,
                tried: 0,
                evidence: Arc::from([]),
            }),
        };
        let made = vouching.make(now())?;
        *vouching.locked() = made;
        Ok(vouching)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Made> {
        self.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn public_key(&self) -> [u8; 32] {
        std::array::from_fn(|at| self.key.public_key().as_ref()[at])
    }

    fn make(&self, at: u64) -> Result<Made> {
        let evidence = self.voucher.make(&Vouched {
            intake: self.intake,
            server: self.server,
            certificate: &self.certificate,
            key: self.public_key(),
            policy: self.voucher.policy(),
            program: self.voucher.program(),
            made: at,
        })?;
        if evidence.len() > LONGEST {
            return Err(Error::setup(format!(
                "this machine's evidence has {} bytes, more than {LONGEST}; update tacit",
                evidence.len()
            )));
        }
        Ok(Made {
            at,
            tried: at,
            evidence: Arc::from(evidence),
        })
    }

    /// Returns the evidence, which one connection makes anew if it is old. Meanwhile the others get
    /// the evidence that there is, since hardware may be slow or never answer. If it fails, also
    /// returns why: clients get the old evidence until they refuse it.
    fn evidence(&self, now: u64) -> (Made, Option<String>) {
        let old = {
            let mut made = self.locked();
            let is_old = now.abs_diff(made.at) > RENEWED.as_secs();
            if !is_old || now.abs_diff(made.tried) <= RETRY.as_secs() {
                return (made.clone(), None);
            }
            made.tried = now;
            made.clone()
        };
        match self.make(now) {
            Ok(new) => {
                *self.locked() = new.clone();
                (new, None)
            }
            Err(error) => {
                let failure = format!("this server's evidence was not renewed: {error}");
                (old, Some(failure))
            }
        }
    }

    /// Returns what a client gets on a connection, and why evidence that is old was not renewed.
    pub(super) fn show(&self, connection: &Connection) -> (Shown, Option<String>) {
        let (made, failure) = self.evidence(now());
        let mut shown = Shown {
            made: made.at,
            key: self.public_key(),
            policy: self.voucher.policy(),
            program: self.voucher.program(),
            signature: [0; SIGNATURE],
            evidence: made.evidence.to_vec(),
        };
        let signature = self.key.sign(&connection.statement(&shown));
        shown.signature.copy_from_slice(signature.as_ref());
        (shown, failure)
    }
}

/// Returns the bytes that TLS exports to both ends of a connection whose handshake is over.
pub(super) fn exported<Data>(
    connection: &rustls::ConnectionCommon<Data>,
) -> std::result::Result<[u8; 32], rustls::Error> {
    connection.export_keying_material([0; 32], EXPORTED, None)
}

/// Returns this machine's time in seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
pub(super) mod hashed;
#[cfg(test)]
mod tests;
