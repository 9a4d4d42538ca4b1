//! Exchange of evidence between the members of a mesh, before anything else.
//!
//! Each member sends all others a nonce, a new Ed25519 key and the digest of its program. They
//! compare what each of them was told. Then each makes evidence for all nonces, its number, the
//! members, its certificate, its key and its program, and sends it to all others. A member that
//! accepts the evidence of all others signs its messages from then on, and takes no message without
//! the signature of its sender. There is no way back: a member that sends no evidence, or evidence
//! that is refused, ends the mesh.
//!
//! `net` knows neither kinds of evidence nor policies. It sees them as an [`Attestor`].

use crate::bytes;
use crate::channel::Channel;
use crate::error::{CertificateFault, Error, Name, PeerFault, Result, SetupFault};
use crate::kinds;
use crate::mesh::Mesh;
use crate::signing::{ATTESTATION, Exchanged, Signing, Verifier, random};
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::CertificateDer;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Most members that attest: a signature has a bit for each.
const MOST_MEMBERS: usize = 64;

/// Longest evidence of one member, in bytes.
const LONGEST: usize = 1 << 16;

const ROSTER: &str = "tacit 2026 attested party: members";
const SESSION: &str = "tacit 2026 attested party: session";

/// What the evidence of one member is made for.
#[derive(Clone, Debug)]
pub struct Attested<'a> {
    /// Nonces of all members, by member.
    pub nonces: &'a [[u8; 32]],
    /// Number of the member.
    pub role: usize,
    /// Whether the member is the dealer.
    pub is_dealer: bool,
    /// Digest of the members: their number, whether the last is a dealer, and their certificates.
    pub roster: [u8; 32],
    /// The member's certificate in DER, which is the same in whatever text members have it.
    pub certificate: &'a [u8],
    /// The key that verifies the member's messages.
    pub key: [u8; 32],
    /// Digest of the program that the member says it runs.
    pub program: [u8; 32],
}

/// Maker and judge of evidence.
pub trait Attestor: Send + Sync {
    /// Returns the name of the kind of evidence.
    fn kind(&self) -> &'static str;

    /// Returns the digest of this member's program.
    fn program(&self) -> [u8; 32];

    /// Returns the digest of the policy, which all members must share.
    fn policy(&self) -> [u8; 32];

    /// Makes the evidence of this member.
    ///
    /// # Errors
    /// `Setup` if this machine cannot.
    fn make(&self, about: &Attested<'_>) -> Result<Vec<u8>>;

    /// Judges the evidence of another member, which is hostile until checked.
    ///
    /// # Errors
    /// Why it is refused.
    fn judge(&self, about: &Attested<'_>, evidence: &[u8]) -> std::result::Result<(), String>;
}

/// What attestation has done in a session so far.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attestation {
    /// Kind of evidence.
    pub kind: &'static str,
    /// Number of members whose evidence this one accepted.
    pub verified: usize,
    /// Number of signatures that this member made.
    pub signatures: u64,
    /// Time that the exchange of evidence, signing and verifying have taken.
    pub took: Duration,
}

impl Mesh {
    /// Exchanges evidence with all other members. All members call it, before any other channel
    /// is opened. `certificates` are those of all members, in PEM.
    ///
    /// # Errors
    /// `Peer` for a member that sends no evidence, or whose evidence is refused; `Setup` if this
    /// machine cannot make any, or a certificate cannot be read. The mesh has ended then.
    pub fn attest(&self, attestor: &dyn Attestor, certificates: &[String]) -> Result<()> {
        let began = Instant::now();
        let mut exchange = Exchange {
            channel: self.channel(ATTESTATION),
            members: self.shared.members(),
            me: self.party(),
        };
        let result = exchange.run(attestor, certificates, self.dealer().is_some());
        let (session, own, keys) = result.inspect_err(|error| self.fail(error.clone()))?;
        let verified = exchange.members - 1;
        let took = began.elapsed();
        let kind = attestor.kind();
        let exchanged = Exchanged {
            kind,
            verified,
            took,
        };
        let signing = Signing::new(exchange.me, session, own, keys, exchanged);
        let first = self.shared.signing.set(signing).is_ok();
        assert!(first, "members attest once");
        Ok(())
    }

    /// Returns what attestation has done so far, if the members have attested.
    #[must_use]
    pub fn attestation(&self) -> Option<Attestation> {
        let signing = self.shared.signing.get()?;
        Some(Attestation {
            kind: signing.exchanged.kind,
            verified: signing.exchanged.verified,
            signatures: signing.made(),
            took: signing.took(),
        })
    }
}

/// An exchange under way.
struct Exchange {
    channel: Channel,
    members: usize,
    me: usize,
}

impl Exchange {
    /// Returns the session, this member's key pair, and all keys.
    fn run(
        &mut self,
        attestor: &dyn Attestor,
        certificates: &[String],
        dealer: bool,
    ) -> Result<([u8; 32], Ed25519KeyPair, Vec<Verifier>)> {
        if certificates.len() != self.members {
            return Err(Error::misuse(
                "attesting needs the certificate of each member",
            ));
        }
        if self.members > MOST_MEMBERS {
            return Err(Error::misuse(format!(
                "at most {MOST_MEMBERS} members attest, the dealer among them"
            )));
        }
        let seed = Zeroizing::new(random()?);
        let own = Ed25519KeyPair::from_seed_unchecked(&*seed);
        let own = own.map_err(|_| Error::setup("32 bytes are no key; reinstall tacit"))?;
        let key: [u8; 32] = std::array::from_fn(|at| own.public_key().as_ref()[at]);
        let told = self.greet([random()?, key, attestor.program()])?;
        self.compare(&told)?;
        let nonces: Vec<[u8; 32]> = told.iter().map(|[nonce, ..]| *nonce).collect();
        let certificates = read(certificates)?;
        let roster = roster(&certificates, dealer);
        let members = self.members;
        let about = |role: usize| Attested {
            nonces: &nonces,
            role,
            is_dealer: dealer && role + 1 == members,
            roster,
            certificate: &certificates[role],
            key: told[role][1],
            program: told[role][2],
        };
        let evidence = attestor.make(&about(self.me))?;
        for (peer, evidence) in self.swap(&evidence)? {
            if let Err(reason) = attestor.judge(&about(peer), &evidence) {
                return Err(self.channel.accuse(peer, PeerFault::Unattested { reason }));
            }
        }
        let mut hasher = blake3::Hasher::new_derive_key(SESSION);
        hasher.update(&roster);
        hasher.update(&attestor.policy());
        hasher.update(told.as_flattened().as_flattened());
        let keys = told.iter().enumerate().map(|(member, [_, key, _])| {
            let reason = "its key verifies no signatures".to_owned();
            Verifier::of(*key).ok_or_else(|| {
                self.channel
                    .accuse(member, PeerFault::Unattested { reason })
            })
        });
        let keys = keys.collect::<Result<_>>()?;
        Ok((*hasher.finalize().as_bytes(), own, keys))
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.members).filter(move |member| *member != me)
    }

    /// Tells all members this one's nonce, key and program, and returns those of all.
    fn greet(&mut self, own: [[u8; 32]; 3]) -> Result<Vec<[[u8; 32]; 3]>> {
        self.channel.begin("attestation: nonces and keys");
        let words = bytes::to_words(own.as_flattened());
        self.channel.send_equal(self.others(), &words)?;
        let mut told = vec![own; self.members];
        for peer in self.others() {
            let words = self.channel.receive(peer, words.len())?;
            let read = bytes::from_words(&words, 96);
            told[peer].as_flattened_mut().copy_from_slice(&read);
        }
        Ok(told)
    }

    /// Compares what all members were told. One that tells two members different things would
    /// otherwise make them refuse each other.
    fn compare(&mut self, told: &[[[u8; 32]; 3]]) -> Result<()> {
        self.channel.begin("attestation: what was told");
        let digest = blake3::hash(told.as_flattened().as_flattened());
        let words = bytes::to_words(digest.as_bytes());
        self.channel.send_equal(self.others(), &words)?;
        let mut are_equal = true;
        for peer in self.others() {
            are_equal &= self.channel.receive(peer, words.len())? == words;
        }
        match are_equal {
            true => Ok(()),
            false => Err(Error::setup(
                "attestation: a member has told the others different nonces, keys or programs, and \
                 none knows which; check the machines and the network between them",
            )),
        }
    }

    /// Sends this member's evidence to all, and returns that of all others.
    fn swap(&mut self, evidence: &[u8]) -> Result<Vec<(usize, Vec<u8>)>> {
        self.channel.begin("attestation: length of evidence");
        let length = evidence.len() as u64;
        self.channel.send_equal(self.others(), &[length])?;
        let mut lengths = Vec::new();
        for peer in self.others() {
            let length = self.channel.receive(peer, 1)?[0];
            let fits = usize::try_from(length)
                .ok()
                .filter(|length| *length <= LONGEST);
            let reason = || format!("it announces {length} bytes of evidence, more than {LONGEST}");
            let length = fits
                .ok_or_else(reason)
                .map_err(|reason| self.channel.accuse(peer, PeerFault::Unattested { reason }))?;
            lengths.push((peer, length));
        }
        self.channel.begin("attestation: evidence");
        self.channel
            .send_equal(self.others(), &bytes::to_words(evidence))?;
        let received = lengths.into_iter().map(|(peer, length)| {
            let words = self.channel.receive(peer, length.div_ceil(8))?;
            Ok((peer, bytes::from_words(&words, length)))
        });
        received.collect()
    }
}

/// Reads the certificates of all members.
fn read(certificates: &[String]) -> Result<Vec<CertificateDer<'static>>> {
    let read = certificates.iter().enumerate().map(|(member, pem)| {
        kinds::certificate(pem).ok_or_else(|| {
            let (of, fault) = (Name::Member(member), CertificateFault::NoPem);
            Error::setup(SetupFault::Certificate { of, fault })
        })
    });
    read.collect()
}

/// Returns the digest of a mesh's members.
fn roster(certificates: &[CertificateDer<'_>], dealer: bool) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(ROSTER);
    hasher.update(&[u8::from(dealer)]);
    for certificate in certificates {
        hasher.update(&(certificate.len() as u64).to_le_bytes());
        hasher.update(certificate);
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests;
