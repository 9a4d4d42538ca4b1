//! Statement that a client signs: the round of its submission, and a commitment to every piece,
//! which hides the piece.
//!
//! A vector is submitted as three pieces, each a list of words. [`super::HELD`] says which server
//! gets which. The statement holds a commitment to each piece: the BLAKE3 hash of a salt of 256
//! bits and the words. The salt prevents a server that lacks a piece from testing guesses of it,
//! even if the server knows everything else about the vector. All servers get the same statement,
//! signed by the key of the client's certificate. So no server can invent a client, two servers
//! that have the same statement have pieces of the same vector, and a statement is valid in one
//! federation and round only.
//!
//! The signature cannot be mistaken for one of a TLS handshake, whose text begins with 64 blanks.

use crate::error::{Error, Result};
use rustls::SignatureScheme;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::Signer;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// Number of pieces of a submission.
pub const PIECES: usize = 3;

/// Length of a statement in bytes.
pub const STATEMENT: usize = 216;

/// Longest signature, in bytes.
pub const LONGEST_SIGNATURE: usize = 80;

const LABEL: &[u8; 32] = b"tacit federated submission, v. 1";

/// Length of a salt in words.
pub const SALT: usize = 4;

/// Randomness that makes a commitment hiding.
pub type Salt = [u64; SALT];

/// One piece as it is sent: its salt, then its words.
#[derive(Clone, Default)]
pub struct Piece {
    /// Salt, drawn by the client.
    pub salt: Salt,
    /// A seed, or the rest.
    pub words: Vec<u64>,
}

/// A commitment that is computed over words as they come.
pub struct Committing(blake3::Hasher);

/// Returns the end of the chunk that begins at word `begin` of a piece of `length` words, if chunks
/// of `chunk` words are hashed at a time, a power of two.
///
/// A chunk and the salt before it are aligned together: BLAKE3 takes three fifths of the time if
/// its next input begins a new subtree.
#[must_use]
pub fn end_of_chunk(begin: usize, chunk: usize, length: usize) -> usize {
    length.min((begin + SALT) / chunk * chunk + chunk - SALT)
}

impl Committing {
    /// Begins a commitment to the words that follow.
    #[must_use]
    pub fn new(salt: &Salt) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tacit federated piece, version 1");
        hasher.update(bytemuck::cast_slice(salt));
        Self(hasher)
    }

    /// Adds the next words.
    pub fn update(&mut self, words: &[u64]) {
        self.0.update(bytemuck::cast_slice(words));
    }

    /// Adds the next words; uses all threads for many.
    pub fn update_many(&mut self, words: &[u64]) {
        self.0.update_rayon(bytemuck::cast_slice(words));
    }

    /// Returns the commitment.
    #[must_use]
    pub fn end(&self) -> Hash {
        *self.0.finalize().as_bytes()
    }
}

impl Piece {
    /// Returns the commitment to the piece; uses all threads for a long piece.
    #[must_use]
    pub fn commitment(&self) -> Hash {
        let mut committing = Committing::new(&self.salt);
        committing.update_many(&self.words);
        committing.end()
    }
}

/// Statement that a client signs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Hash of the federation of this submission.
    pub federation: Hash,
    /// Number of the round. Numbers of rounds increase and never repeat.
    pub round: u64,
    /// Number of the client.
    pub client: u64,
    /// Length of the vector in words.
    pub words: u64,
    /// Hash of the round's terms, as the client received them.
    pub terms: Hash,
    /// Commitments to the pieces, in order.
    pub pieces: [Hash; PIECES],
}

impl Statement {
    /// Returns the bytes that are signed.
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

    /// Returns the hash that stands for the statement when servers compare.
    #[must_use]
    pub fn digest(&self) -> Hash {
        *blake3::hash(&self.to_bytes()).as_bytes()
    }
}

/// Returns whether the key of the certificate signed these bytes.
pub(super) fn is_signed(certificate: &CertificateDer<'_>, bytes: &[u8], signature: &[u8]) -> bool {
    let entity = webpki::EndEntityCert::try_from(certificate);
    entity.is_ok_and(|entity| {
        entity
            .verify_signature(webpki::ring::ECDSA_P256_SHA256, bytes, signature)
            .is_ok()
    })
}

/// Makes a signer from a private key in PEM.
/// `made_by` is the command that makes such keys.
pub(super) fn signer(key: &str, made_by: &str) -> Result<Box<dyn Signer>> {
    let unusable = || {
        Error::setup(format!(
            "the private key of this client cannot sign; make one by `{made_by}`"
        ))
    };
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| unusable())?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key).map_err(|_| unusable())?;
    key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256])
        .ok_or_else(unusable)
}
