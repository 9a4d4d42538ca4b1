//! Rows of 128 bits with one bit each, packed 64 to a word: the choices of transfers.

use crate::dispatch::backend;

/// Rows of a word of bits.
const EACH: usize = 64;

/// Collects the lowest bit of each row. A last word is filled up with zeros.
///
/// # Panics
/// If `out` does not have a word for every 64 rows.
pub fn lowest_bits(rows: &[u128], out: &mut [u64]) {
    assert!(
        out.len() == rows.len().div_ceil(EACH),
        "a word for every 64 rows"
    );
    backend().call(
        #[inline(always)]
        || {
            for (out, rows) in out.iter_mut().zip(rows.chunks(EACH)) {
                let mut word = 0;
                for (i, row) in rows.iter().enumerate() {
                    word |= (*row as u64 & 1) << i;
                }
                *out = word;
            }
        },
    );
}

/// Adds `value` to each row whose bit is set.
///
/// # Panics
/// If `bits` does not have a word for every 64 rows.
pub fn add_where(bits: &[u64], value: u128, rows: &mut [u128]) {
    assert!(
        bits.len() == rows.len().div_ceil(EACH),
        "a word for every 64 rows"
    );
    backend().call(
        #[inline(always)]
        || {
            for (word, rows) in bits.iter().zip(rows.chunks_mut(EACH)) {
                for (i, row) in rows.iter_mut().enumerate() {
                    let mask = (word >> i & 1).wrapping_neg();
                    *row ^= value & (u128::from(mask) << 64 | u128::from(mask));
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_belong_to_rows() {
        for n in [0, 1, 63, 64, 65, 200] {
            let rows: Vec<u128> = (0..n)
                .map(|i: u128| ((i * i * 0x9e37_79b9) << 64) | (i * i / 3))
                .collect();
            let mut bits = vec![0; rows.len().div_ceil(64)];
            lowest_bits(&rows, &mut bits);
            let mut changed = rows.clone();
            add_where(&bits, u128::MAX / 5, &mut changed);
            for (i, row) in rows.iter().enumerate() {
                assert_eq!(u128::from(bits[i / 64] >> (i % 64) & 1), row & 1);
                let difference = if row & 1 == 1 { u128::MAX / 5 } else { 0 };
                assert_eq!(row ^ changed[i], difference);
            }
            let ones = rows.iter().filter(|row| *row & 1 == 1).count();
            assert_eq!(
                bits.iter()
                    .map(|word| word.count_ones() as usize)
                    .sum::<usize>(),
                ones
            );
        }
    }
}
