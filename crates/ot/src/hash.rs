//! The hash that turns correlated rows into independent pads.
//!
//! H(x, i) = π(π(x) ⊕ i) ⊕ π(x) is tweakable circular correlation robust in the ideal-cipher model
//! (Guo, Katz, Wang, Yu: Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers,
//! S&P 2020, section 7.4). The tweak is the transfer's number in the session and the number of the
//! pad, if a form needs more than one 128-bit pad of a transfer. Pads of one transfer share π(x).
//!
//! π is AES-128 under a public key that changes every [`SEGMENT`] transfers, so that an adversary's
//! precomputation meets few inputs (Guo, Katz, Wang, Weng, Yu, CRYPTO 2020, on the cost of a single
//! key). The key of a segment is AES of its number under a key that BLAKE3 derives from the session
//! and the direction.

use crate::binding::{Binding, finish};
use kernels::aes::Aes128;

/// The number of transfers hashed under one key.
pub(crate) const SEGMENT: usize = 512;

/// The purpose of a public permutation.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// The hash of a segment.
    Hash = 0,
    /// The key of a subfamily.
    Family = 1,
    /// A block of the streams of scalars' keys.
    Stream = 2,
    /// A level of trees.
    Tree = 3,
    /// A tree of silent transfers.
    CorrelatedTree = 4,
    /// The columns of a code of silent transfers.
    Code = 5,
}

/// A part that a test leaves out of the hash, to show that it would notice.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mutation {
    None,
    /// H(x, i) = π(π(x)) ⊕ π(x), under one key.
    NoIndex,
    /// H(x, i) = x.
    NoHash,
    /// Rows of a table are added without powers of x.
    NoPowers,
}

/// A family of public permutations, bound to a session and a direction.
pub(crate) struct Family {
    keys: Aes128,
    #[cfg(test)]
    pub(crate) mutation: Mutation,
}

impl Family {
    pub(crate) fn new(binding: &Binding, purpose: &str) -> Self {
        Self::of(cipher(finish(&mut binding.hasher(purpose))))
    }

    fn of(keys: Aes128) -> Self {
        Self {
            keys,
            #[cfg(test)]
            mutation: Mutation::None,
        }
    }

    /// Returns the permutation for a purpose and two numbers. The second number is less than 2^32.
    pub(crate) fn permutation(&self, purpose: Purpose, number: u64, part: usize) -> Permutation {
        let part = u32::try_from(part).expect("a message has fewer than 2^32 blocks");
        let number = (purpose as u128) << 96 | u128::from(part) << 64 | u128::from(number);
        let mut block = [number];
        self.keys.encrypt(&mut block);
        cipher(block[0])
    }

    /// Returns a separate family for the forms made of transfers `first..`.
    pub(crate) fn subfamily(&self, first: u64) -> Self {
        Self::of(self.permutation(Purpose::Family, first, 0))
    }

    /// Returns the hash for transfers `first..`, up to the next multiple of [`SEGMENT`].
    pub(crate) fn hash(&self, first: u64) -> Hash {
        Hash {
            permutation: self.permutation(Purpose::Hash, first / SEGMENT as u64, 0),
            first,
            #[cfg(test)]
            mutation: self.mutation,
        }
    }
}

pub(crate) fn cipher(key: u128) -> Aes128 {
    Aes128::new(&key.to_le_bytes())
}

/// AES-128 under a public key.
pub(crate) type Permutation = Aes128;

/// H for transfers of one segment.
pub(crate) struct Hash {
    permutation: Permutation,
    first: u64,
    #[cfg(test)]
    mutation: Mutation,
}

impl Hash {
    /// Computes π(x), from which [`Hash::pads`] makes pads, for x = row ⊕ `offset`.
    pub(crate) fn open(&self, rows: &[u128], offset: u128, opened: &mut [u128]) {
        #[cfg(test)]
        if self.mutation == Mutation::NoHash {
            return (0..rows.len()).for_each(|i| opened[i] = rows[i] ^ offset);
        }
        let opened = &mut opened[..rows.len()];
        self.permutation.permute(rows, offset, opened);
    }

    /// Computes pad `number` of each transfer.
    pub(crate) fn pads(&self, number: u64, opened: &[u128], pads: &mut [u128]) {
        let pads = &mut pads[..opened.len()];
        #[cfg(test)]
        match self.mutation {
            Mutation::None | Mutation::NoPowers => {}
            Mutation::NoHash => return pads.copy_from_slice(opened),
            Mutation::NoIndex => return self.permutation.feed_forward(opened, 0, pads),
        }
        self.permutation
            .feed_forward_counted(opened, number, self.first, pads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::Direction;

    fn family(context: &[u8], direction: Direction) -> Family {
        Family::new(&Binding::new(context, direction), "test")
    }

    fn pad(family: &Family, index: u64, number: u64, row: u128) -> u128 {
        let (hash, mut opened, mut pads) = (family.hash(index), [0], [0]);
        hash.open(&[row], 0, &mut opened);
        hash.pads(number, &opened, &mut pads);
        pads[0]
    }

    #[test]
    fn every_input_of_the_hash_counts() {
        let base = family(b"session", Direction::FromFirst);
        let mut pads = vec![
            pad(&base, 7, 0, 1),
            pad(&base, 8, 0, 1),
            pad(&base, 7 + SEGMENT as u64, 0, 1),
            pad(&base, 7, 1, 1),
            pad(&base, 7, 0, 2),
            pad(&family(b"session", Direction::FromSecond), 7, 0, 1),
            pad(&family(b"sessio", Direction::FromFirst), 7, 0, 1),
            pad(
                &Family::new(&Binding::new(b"session", Direction::FromFirst), "tes"),
                7,
                0,
                1,
            ),
        ];
        pads.sort_unstable();
        pads.dedup();
        assert_eq!(pads.len(), 8);
    }

    /// Values from OpenSSL's AES-128, by definition.
    #[test]
    fn known_answers() {
        let family = Family::of(cipher(u128::from_le_bytes(std::array::from_fn(|i| {
            i as u8
        }))));
        let cases: [(u64, u64, u128, u128); 3] = [
            (0, 0, 0, 0x6f32_5fee_1a0e_9268_26eb_4d74_c2bb_f81e),
            (
                1000,
                3,
                0x0123_4567_89ab_cdef_0011_2233_4455_6677,
                0x15af_6e8c_100a_227a_b3f9_22fc_8870_799c,
            ),
            (
                (1 << 40) + 511,
                0,
                u128::MAX,
                0x622f_6e67_54ed_1a62_a82e_0dcf_179a_3871,
            ),
        ];
        for (index, number, row, expected) in cases {
            assert_eq!(
                pad(&family, index, number, row),
                expected,
                "{index}, {number}"
            );
        }
        let key = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128;
        let permutation = family.permutation(Purpose::Stream, 5, 7);
        let stream = [0, 1].map(|counter| {
            let mut stream = [0];
            permutation.feed_forward(&[key], counter, &mut stream);
            stream[0]
        });
        assert_eq!(
            stream,
            [
                0x2f8e_de4f_6f14_509c_b7bc_2276_1d46_5bcc,
                0x9022_be27_9347_9f2a_59b2_ce9e_07e4_cd55
            ]
        );
    }

    #[test]
    fn batches_equal_single_calls() {
        let family = family(b"", Direction::FromSecond);
        let rows: Vec<u128> = (0..100).map(|i| ((i * i) << 70) | i).collect();
        let (hash, mut opened, mut pads) = (family.hash(1024), [0; 100], [0; 100]);
        hash.open(&rows, 5, &mut opened);
        hash.pads(3, &opened, &mut pads);
        for (i, row) in rows.iter().enumerate() {
            assert_eq!(pads[i], pad(&family, 1024 + i as u64, 3, row ^ 5));
        }
    }
}
