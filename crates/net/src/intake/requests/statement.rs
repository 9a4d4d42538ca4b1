//! Statement that a client signs: which service, model and request, when it was made, and a
//! commitment to each piece. See [`crate::intake::statement`] for what commitments are for.

use crate::intake::statement::Hash;

/// Number that a client draws for a request.
pub type Number = [u8; 16];

/// Bytes of a statement before the commitments.
const HEAD: usize = 32 + 32 + 8 + 16 + 8 + 32 + 8;

const LABEL: &[u8; 32] = b"tacit request to a service, v. 1";

/// Statement of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Hash of the service.
    pub service: Hash,
    /// Number of the client.
    pub client: u64,
    /// Number of the request, drawn by the client.
    pub number: Number,
    /// When it was made, in seconds since 1970.
    pub made: u64,
    /// Hash of the model's description.
    pub model: Hash,
    /// Length of the vector in words.
    pub words: u64,
    /// Commitments to the pieces, in order.
    pub pieces: Vec<Hash>,
}

/// Returns the length in bytes of a statement with as many pieces.
#[must_use]
pub const fn length(pieces: usize) -> usize {
    HEAD + pieces * size_of::<Hash>()
}

impl Statement {
    /// Returns the bytes that are signed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length(self.pieces.len()));
        bytes.extend(LABEL);
        bytes.extend(self.service);
        bytes.extend(self.client.to_le_bytes());
        bytes.extend(self.number);
        bytes.extend(self.made.to_le_bytes());
        bytes.extend(self.model);
        bytes.extend(self.words.to_le_bytes());
        bytes.extend(self.pieces.as_flattened());
        bytes
    }

    /// Reads what [`Statement::to_bytes`] wrote; `None` for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, pieces) = bytes.split_at_checked(HEAD)?;
        let pieces = pieces.chunks_exact(size_of::<Hash>());
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let hash = |at: usize| -> Hash { std::array::from_fn(|byte| head[at + byte]) };
        let statement = Self {
            service: hash(32),
            client: number(64),
            number: std::array::from_fn(|byte| head[72 + byte]),
            made: number(88),
            model: hash(96),
            words: number(128),
            pieces: pieces
                .map(|hash| hash.try_into().expect("32 bytes"))
                .collect(),
        };
        (statement.to_bytes() == bytes).then_some(statement)
    }

    /// Returns the hash that stands for the statement when parties compare.
    #[must_use]
    pub fn digest(&self) -> Hash {
        *blake3::hash(&self.to_bytes()).as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::{Statement, length};

    #[test]
    fn bytes_are_read_back_and_nothing_else_is() {
        let statement = Statement {
            service: [1; 32],
            client: 2,
            number: [3; 16],
            made: 4,
            model: [5; 32],
            words: 6,
            pieces: vec![[7; 32], [8; 32]],
        };
        let bytes = statement.to_bytes();
        assert_eq!(bytes.len(), length(2));
        assert_eq!(Statement::from_bytes(&bytes).as_ref(), Some(&statement));
        for end in 0..bytes.len() {
            let shorter = Statement::from_bytes(&bytes[..end]);
            // Without its last commitments it is another statement, of fewer pieces.
            assert!(shorter.is_none_or(|shorter| shorter.pieces.len() < 2));
        }
        let mut other = bytes.clone();
        other[0] ^= 1;
        assert_eq!(Statement::from_bytes(&other), None);
    }
}
