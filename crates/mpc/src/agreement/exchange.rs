//! One private comparison between two parties: whether both hold the same digest, and nothing else.
//!
//! **Papers.** Bellovin, Merritt: "Encrypted key exchange" (S&P 1992): a secret that can be guessed
//! is compared so that every guess costs a run. Jablon: "Strong password-only authenticated key
//! exchange" (CCR 1996): the secret gives the generator. Abdalla, Haase, Hesse: "Security analysis
//! of CPace" (ASIACRYPT 2021) and draft-irtf-cfrg-cpace: the balanced form used here. Bernstein and
//! others, RFC 9496: ristretto255.
//!
//! **Computes.** With G = map(H(digest, pair, number of the exchange)), a party draws x and sends X
//! = xG. With the other's Y it computes K = xY, and from H(pair, number, X, Y, K) two tags, one for
//! each direction. It sends one and expects the other. Digests are equal exactly when the tags are
//! (but for collisions of H).
//!
//! **Adversary:** the other party, which may deviate in the exchange. **Rests on** computational
//! Diffie–Hellman in ristretto255, and BLAKE3 as a random oracle.
//!
//! **Argument.** X is a uniform element but for the identity, whatever the digest: it says nothing,
//! to anybody. The tags are values of the random oracle at K. Who wants to compare a tag with its
//! own value for a guess g must compute K = xY for the X it saw. Where it made Y = yG(g), it can if
//! the digest is g, since then K = yX; for another digest d it would have to take the logarithm of
//! X to G(d) over to Y: with G(g) and G(d) unrelated values of the random oracle, that is the
//! Diffie–Hellman problem (X, Y to the base G(d)). So the one guess that went into Y is answered,
//! and no further one can be tried afterwards, however much is computed (the theorem of the CPace
//! paper). An exchange that fails ends the session. Who only listens, or follows the protocol with
//! its own digest, learns whether the digests are equal.
//!
//! **Deviations** from the draft: no session identifier beforehand; both elements are fresh, and
//! the tags cover them. The pair and the number of the exchange stand in its place, so that no
//! message fits another exchange.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of an encoded element.
pub(super) const ELEMENT: usize = 32;

/// Bytes of a tag.
pub(super) const TAG: usize = 16;

/// What is compared.
pub(super) type Digest = Zeroizing<[u8; 32]>;

/// Who compares, and for which time.
#[derive(Clone, Copy)]
pub(super) struct Binding {
    pub party: usize,
    pub peer: usize,
    pub number: u64,
}

impl Binding {
    /// BLAKE3 for `purpose`, bound to both parties and the exchange; what follows has fixed length.
    pub fn hasher(self, purpose: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        for part in [self.party.min(self.peer), self.party.max(self.peer)] {
            hasher.update(&(part as u64).to_le_bytes());
        }
        hasher.update(&self.number.to_le_bytes());
        hasher
    }

    /// The generator that stands for a digest.
    pub fn generator(self, digest: &Digest) -> RistrettoPoint {
        let mut hasher = self.hasher("tacit agreement generator, version 1");
        hasher.update(&digest[..]);
        let mut uniform = Zeroizing::new([0; 64]);
        hasher.finalize_xof().fill(&mut uniform[..]);
        hasher.zeroize();
        RistrettoPoint::from_uniform_bytes(&uniform)
    }
}

/// One party's side, from its element on.
pub(super) struct Side {
    binding: Binding,
    secret: Zeroizing<Scalar>,
    element: [u8; ELEMENT],
}

/// The tag that this party sends, and the one that must come.
pub(super) struct Tags {
    pub mine: [u8; TAG],
    theirs: [u8; TAG],
}

impl Side {
    /// `secret` is drawn for this exchange alone.
    pub fn new(binding: Binding, digest: &Digest, secret: Zeroizing<Scalar>) -> Self {
        let element = (*secret * binding.generator(digest)).compress().to_bytes();
        Self {
            binding,
            secret,
            element,
        }
    }

    /// X, for the other party.
    pub fn element(&self) -> [u8; ELEMENT] {
        self.element
    }

    /// The tags, with what the other party sent; none if that is no element, or the identity.
    pub fn tags(&self, theirs: &[u8; ELEMENT]) -> Option<Tags> {
        let point = CompressedRistretto(*theirs).decompress()?;
        if point.is_identity() {
            return None;
        }
        let first = self.binding.party < self.binding.peer;
        let (low, high) = if first {
            (&self.element, theirs)
        } else {
            (theirs, &self.element)
        };
        let mut hasher = self.binding.hasher("tacit agreement tags, version 1");
        hasher.update(low);
        hasher.update(high);
        let shared = Zeroizing::new((*self.secret * point).compress().to_bytes());
        hasher.update(&shared[..]);
        let mut both = [[0; TAG]; 2];
        let mut bytes = hasher.finalize_xof();
        both.iter_mut().for_each(|tag| bytes.fill(tag));
        hasher.zeroize();
        bytes.zeroize();
        // The first is that of the party with the lower number.
        let [mine, theirs] = if first { both } else { [both[1], both[0]] };
        Some(Tags { mine, theirs })
    }
}

impl Tags {
    /// Whether the digests are equal; in constant time.
    pub fn fit(&self, theirs: &[u8; TAG]) -> bool {
        let differing = self
            .theirs
            .iter()
            .zip(theirs)
            .fold(0, |d, (a, b)| d | (a ^ b));
        differing == 0
    }
}
