//! One private comparison between two parties: whether both have the same digest, and nothing else.
//!
//! **Papers.** Bellovin, Merritt: "Encrypted key exchange" (S&P 1992): a guessable secret is
//! compared so that every guess costs a run. Jablon: "Strong password-only authenticated key
//! exchange" (CCR 1996): the secret determines the generator. Abdalla, Haase, Hesse: "Security
//! analysis of CPace" (ASIACRYPT 2021) and draft-irtf-cfrg-cpace: the balanced form used here.
//! Bernstein and others, RFC 9496: ristretto255.
//!
//! **Computes.** With G = map(H(digest, pair, number of the exchange)), a party draws x and sends X
//! = xG. From the other party's Y it computes K = xY. From H(pair, number, X, Y, K) it derives two
//! tags, one for each direction. It sends one and expects the other. The digests are equal exactly
//! if the tags are (except for collisions of H).
//!
//! **Adversary:** the other party, which may deviate in the exchange. **Rests on** computational
//! Diffie–Hellman in ristretto255, and BLAKE3 as a random oracle.
//!
//! **Argument.** X is a uniform element other than the identity, whatever the digest, so X reveals
//! nothing to anyone. The tags are values of the random oracle at K. A party that wants to compare
//! a tag with its own value for a guess g must compute K = xY for the X that it saw. If it made Y =
//! yG(g), it can do that if the digest is g, since then K = yX. For another digest d, it would have
//! to find xY from X = xG(d). As G(g) and G(d) are unrelated values of the random oracle, this is
//! the Diffie–Hellman problem (X, Y to the base G(d)). So only the one guess that went into Y is
//! answered. No further guess can be tried afterwards, however much is computed (the theorem of the
//! CPace paper). A failed exchange ends the session. A party that only listens, or that follows the
//! protocol with its own digest, learns whether the digests are equal.
//!
//! **Deviations** from the draft: there is no prior session identifier; both elements are fresh,
//! and the tags cover them. The pair and the number of the exchange replace it, so no message fits
//! another exchange.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of an encoded element.
pub(super) const ELEMENT: usize = 32;

/// Bytes of a tag.
pub(super) const TAG: usize = 16;

/// The value that is compared.
pub(super) type Digest = Zeroizing<[u8; 32]>;

/// The two parties and the number of the exchange, to which all hashes are bound.
#[derive(Clone, Copy)]
pub(super) struct Binding {
    pub party: usize,
    pub peer: usize,
    pub number: u64,
}

impl Binding {
    /// Returns BLAKE3 for `purpose`, bound to both parties and the exchange. All later inputs have
    /// fixed lengths.
    pub fn hasher(self, purpose: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        for part in [self.party.min(self.peer), self.party.max(self.peer)] {
            hasher.update(&(part as u64).to_le_bytes());
        }
        hasher.update(&self.number.to_le_bytes());
        hasher
    }

    /// Returns the generator that stands for a digest.
    pub fn generator(self, digest: &Digest) -> RistrettoPoint {
        let mut hasher = self.hasher("tacit agreement generator, version 1");
        hasher.update(&digest[..]);
        let mut uniform = Zeroizing::new([0; 64]);
        hasher.finalize_xof().fill(&mut uniform[..]);
        hasher.zeroize();
        RistrettoPoint::from_uniform_bytes(&uniform)
    }
}

/// One party's side of an exchange, from its element on.
pub(super) struct Side {
    binding: Binding,
    secret: Zeroizing<Scalar>,
    element: [u8; ELEMENT],
}

/// The tag that this party sends, and the tag that it expects.
pub(super) struct Tags {
    pub mine: [u8; TAG],
    theirs: [u8; TAG],
}

impl Side {
    /// Starts an exchange. `secret` is drawn for this exchange alone.
    pub fn new(binding: Binding, digest: &Digest, secret: Zeroizing<Scalar>) -> Self {
        let element = (*secret * binding.generator(digest)).compress().to_bytes();
        Self {
            binding,
            secret,
            element,
        }
    }

    /// Returns X, to be sent to the other party.
    pub fn element(&self) -> [u8; ELEMENT] {
        self.element
    }

    /// Derives the tags from what the other party sent; `None` if that is no element, or the
    /// identity.
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
        // The first tag is sent by the party with the lower number.
        let [mine, theirs] = if first { both } else { [both[1], both[0]] };
        Some(Tags { mine, theirs })
    }
}

impl Tags {
    /// Returns whether the digests are equal, in constant time.
    pub fn fit(&self, theirs: &[u8; TAG]) -> bool {
        let differing = self
            .theirs
            .iter()
            .zip(theirs)
            .fold(0, |d, (a, b)| d | (a ^ b));
        differing == 0
    }
}
