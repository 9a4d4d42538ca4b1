//! What a client signs: which round its submission is for, and every piece of it, without showing
//! any.
//!
//! A vector is handed in as three pieces, each a list of words; which server gets which,
//! [`super::HELD`] says.
//! The statement holds a commitment to each: BLAKE3 of a salt of 256 bits and the words. The salt
//! keeps a server that lacks a piece from trying out what it might be: all else that the vector is
//! made of it may know. All servers get the same statement, signed by the key of the client's
//! certificate. So no server can make up a client, two servers that have the same statement have
//! pieces of the same vector, and a statement counts in no other federation and round.
//!
//! The signature cannot be taken for one of a TLS handshake, whose text begins with 64 blanks.

use crate::error::{Error, Result};
use rustls::SignatureScheme;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::Signer;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// Pieces of a submission.
pub const PIECES: usize = 3;

/// Bytes of a statement.
pub const STATEMENT: usize = 216;

/// Bytes of a signature at most.
pub const LONGEST_SIGNATURE: usize = 80;

const LABEL: &[u8; 32] = b"tacit federated submission, v. 1";

/// Words of a salt.
pub const SALT: usize = 4;

/// What makes a commitment hide what it is to.
pub type Salt = [u64; SALT];

/// One piece as it travels: its salt, then its words.
#[derive(Clone, Default)]
pub struct Piece {
    /// Drawn by the client.
    pub salt: Salt,
    /// A seed, or what the seeds leave.
    pub words: Vec<u64>,
}

/// A commitment under way, over words as they come.
pub struct Committing(blake3::Hasher);

impl Committing {
    /// To words that follow.
    #[must_use]
    pub fn new(salt: &Salt) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tacit federated piece, version 1");
        hasher.update(bytemuck::cast_slice(salt));
        Self(hasher)
    }

    /// The next words.
    pub fn update(&mut self, words: &[u64]) {
        self.0.update(bytemuck::cast_slice(words));
    }

    /// The commitment.
    #[must_use]
    pub fn end(&self) -> Hash {
        *self.0.finalize().as_bytes()
    }
}

impl Piece {
    /// The commitment to it; large ones by all threads.
    #[must_use]
    pub fn commitment(&self) -> Hash {
        let mut committing = Committing::new(&self.salt);
        committing.0.update_rayon(bytemuck::cast_slice(&self.words));
        committing.end()
    }
}

/// What a client signs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Of whom this is a submission to.
    pub federation: Hash,
    /// Rounds count up and never come back.
    pub round: u64,
    /// The client's number.
    pub client: u64,
    /// Words of the vector.
    pub words: u64,
    /// Of the round's terms, as the client was told them.
    pub terms: Hash,
    /// To the pieces, in order.
    pub pieces: [Hash; PIECES],
}

impl Statement {
    /// The bytes that are signed.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; STATEMENT] {
        let mut bytes = Vec::with_capacity(STATEMENT);
        bytes.extend(LABEL);
        bytes.extend(self.federation);
        for number in [self.round, self.client, self.words] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.terms);
        bytes.extend(self.pieces.as_flattened());
        bytes.try_into().expect("a statement has one length")
    }

    /// Reads what [`Statement::to_bytes`] wrote; `None` for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; STATEMENT]) -> Option<Self> {
        let hash = |at: usize| -> Hash { std::array::from_fn(|byte| bytes[at + byte]) };
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let statement = Self {
            federation: hash(32),
            round: number(64),
            client: number(72),
            words: number(80),
            terms: hash(88),
            pieces: [hash(120), hash(152), hash(184)],
        };
        (statement.to_bytes() == *bytes).then_some(statement)
    }

    /// What stands for it where servers compare.
    #[must_use]
    pub fn digest(&self) -> Hash {
        *blake3::hash(&self.to_bytes()).as_bytes()
    }
}

/// Whether the key of that certificate signed these bytes.
pub(super) fn is_signed(
    certificate: &CertificateDer<'_>,
    bytes: &[u8; STATEMENT],
    signature: &[u8],
) -> bool {
    let entity = webpki::EndEntityCert::try_from(certificate);
    entity.is_ok_and(|entity| {
        entity
            .verify_signature(webpki::ring::ECDSA_P256_SHA256, bytes, signature)
            .is_ok()
    })
}

/// What signs by a private key in PEM.
pub(super) fn signer(key: &str) -> Result<Box<dyn Signer>> {
    let unusable = || {
        Error::setup(
            "the private key of this client cannot sign submissions; make one by `tacit federated certificates`",
        )
    };
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| unusable())?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key).map_err(|_| unusable())?;
    key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256])
        .ok_or_else(unusable)
}
