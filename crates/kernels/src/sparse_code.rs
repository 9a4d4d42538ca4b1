//! A linear code over GF(2) whose generator matrix has [`WEIGHT`] random entries in each row.
//!
//! Row i is known to everybody: the words 5i to 5i + 4 of a key stream give ten columns each, one
//! for each half of a word.

use crate::aes::Aes128;

/// The number of entries of a row. An entry that is drawn twice cancels.
pub const WEIGHT: usize = 10;

/// Words of the key stream for a row.
const ROW_WORDS: usize = WEIGHT / 2;

/// The number of rows whose columns are drawn together.
const TOGETHER: usize = 64;

/// A code, by its public key.
pub struct SparseCode {
    columns: Aes128,
    dimension: u32,
}

impl SparseCode {
    /// Creates the code of this dimension from a public key.
    ///
    /// # Panics
    /// If the dimension is 0.
    #[must_use]
    pub fn new(columns: Aes128, dimension: u32) -> Self {
        assert!(dimension > 0, "a code has a dimension");
        Self { columns, dimension }
    }

    /// Adds rows `first..` of the code, applied to `message`, to `out`.
    ///
    /// # Panics
    /// If `first` is odd, or if `message` has another length than the code's dimension.
    pub fn encode(&self, message: &[u128], first: u64, out: &mut [u128]) {
        assert!(
            message.len() == self.dimension as usize,
            "one element for each dimension"
        );
        assert!(first % 2 == 0, "a block of the key stream has no half");
        let mut words = [0; ROW_WORDS * TOGETHER];
        for (piece, out) in (0..).zip(out.chunks_mut(TOGETHER)) {
            let row = first + piece * TOGETHER as u64;
            let words = &mut words[..ROW_WORDS * out.len()];
            self.columns.key_stream(row / 2 * ROW_WORDS as u64, words);
            for (out, words) in out.iter_mut().zip(words.chunks_exact(ROW_WORDS)) {
                let mut sum = *out;
                for word in words {
                    for drawn in [*word as u32, (word >> 32) as u32] {
                        // SAFETY: a column is below the dimension, which is the message's length.
                        // A check of the bound takes as long as all else.
                        sum ^= unsafe { message.get_unchecked(self.column(drawn)) };
                    }
                }
                *out = sum;
            }
        }
    }

    /// Returns a column below the dimension.
    fn column(&self, drawn: u32) -> usize {
        ((u64::from(drawn) * u64::from(self.dimension)) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_key_stream() {
        let key = [9; 16];
        let code = SparseCode::new(Aes128::new(&key), 1000);
        let message: Vec<u128> = (0..1000).map(|i| 1 << (i % 128) ^ i << 20).collect();
        let mut stream = vec![0; 5 * 1600];
        Aes128::new(&key).key_stream(0, &mut stream);
        let row = |i: usize| {
            let columns = stream[5 * i..5 * i + 5].iter().flat_map(|word| {
                [word & 0xffff_ffff, word >> 32].map(|drawn| ((drawn * 1000) >> 32) as usize)
            });
            columns.fold(0, |sum, column| sum ^ message[column])
        };
        for (first, n) in [(0, 1600), (2, 1), (514, 700), (0, 0)] {
            let mut out = vec![77; n];
            code.encode(&message, first as u64, &mut out);
            assert!(
                (0..n).all(|i| out[i] == 77 ^ row(first + i)),
                "{n} rows from {first}"
            );
        }
    }

    #[test]
    fn columns_cover_the_dimension() {
        let code = SparseCode::new(Aes128::new(&[1; 16]), 589_824);
        assert_eq!([code.column(0), code.column(u32::MAX)], [0, 589_823]);
    }
}
