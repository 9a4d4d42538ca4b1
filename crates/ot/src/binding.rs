//! The binding of all hashes to a session, and the source of a session's secrets.

use crate::Error;
use curve25519_dalek::scalar::Scalar;
use kernels::stream::{Key, random_key};
use zeroize::{Zeroize, Zeroizing};

/// The end that sends in the transfers that a hash is for. This is the extension's sender, who is
/// the receiver of the base transfers.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    FromFirst = 0,
    FromSecond = 1,
}

impl Direction {
    pub(crate) fn from(sender_is_first: bool) -> Self {
        if sender_is_first {
            Self::FromFirst
        } else {
            Self::FromSecond
        }
    }
}

/// The session and direction of a hash.
#[derive(Clone)]
pub(crate) struct Binding {
    context: Vec<u8>,
    direction: Direction,
}

impl Binding {
    pub(crate) fn new(context: &[u8], direction: Direction) -> Self {
        Self {
            context: context.to_vec(),
            direction,
        }
    }

    /// Returns BLAKE3 for `purpose`, with session and direction absorbed. All later inputs have
    /// fixed lengths.
    pub(crate) fn hasher(&self, purpose: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(&(self.context.len() as u64).to_le_bytes());
        hasher.update(&self.context);
        hasher.update(&[self.direction as u8]);
        hasher
    }
}

/// Returns the first 128 bits of a hash, and wipes the hasher.
pub(crate) fn finish(hasher: &mut blake3::Hasher) -> u128 {
    let mut bytes = Zeroizing::new([0; 16]);
    hasher.finalize_xof().fill(&mut *bytes);
    hasher.zeroize();
    u128::from_le_bytes(*bytes)
}

/// A generator of secret values, wiped when dropped.
pub(crate) struct Secrets(blake3::OutputReader);

impl Secrets {
    /// Creates a generator from 256 bits of the operating system.
    pub(crate) fn random() -> Result<Self, Error> {
        let (low, high) = (random_key()?, random_key()?);
        let mut seed = Zeroizing::new([0; 32]);
        seed[..16].copy_from_slice(low.as_bytes());
        seed[16..].copy_from_slice(high.as_bytes());
        Ok(Self::from_seed(&seed))
    }

    pub(crate) fn from_seed(seed: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tacit ot set-up secrets, version 1");
        hasher.update(seed);
        let secrets = Self(hasher.finalize_xof());
        hasher.zeroize();
        secrets
    }

    pub(crate) fn scalar(&mut self) -> Zeroizing<Scalar> {
        let mut wide = Zeroizing::new([0; 64]);
        self.0.fill(&mut *wide);
        Zeroizing::new(Scalar::from_bytes_mod_order_wide(&wide))
    }

    pub(crate) fn key(&mut self) -> Key {
        Key::from_bytes(self.bits().to_le_bytes())
    }

    pub(crate) fn bits(&mut self) -> Zeroizing<u128> {
        let mut bytes = Zeroizing::new([0; 16]);
        self.0.fill(&mut *bytes);
        Zeroizing::new(u128::from_le_bytes(*bytes))
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
