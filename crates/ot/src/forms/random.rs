//! Correlations of random choices with random values, which take no message.
//!
//! Both pads of a transfer are random. So the sender takes p_1 − p_0 as its value and keeps −p_0,
//! and the receiver takes p_b: together b(p_1 − p_0). With the receiver's choices random too, they
//! are half of a multiplication triple (Asharov, Lindell, Schneider, Zohner, CCS 2013, section
//! 5.1).

use super::pads::segments;
use super::{CHOICE_WORDS, Chosen, Offered};
use crate::hash::SEGMENT;
use rayon::prelude::*;

/// Columns of bits, 64 transfers to a word.
type Planes = Vec<Vec<u64>>;

impl Offered {
    /// Makes correlations of random bits. Returns values and shares, `columns` vectors of packed
    /// bits each. For every column, this end's share and the other's XOR to the choices AND the
    /// values.
    ///
    /// # Panics
    /// If there are more than 128 columns.
    #[must_use]
    pub fn random_bits(self, columns: usize) -> (Planes, Planes) {
        let words = self.len() / 64;
        let [mut values, mut shares] = [(); 2].map(|()| vec![vec![0; words]; columns]);
        let count = words.div_ceil(CHOICE_WORDS);
        self.rows
            .par_chunks(SEGMENT)
            .zip(segments(&mut values, CHOICE_WORDS, count))
            .zip(segments(&mut shares, CHOICE_WORDS, count))
            .enumerate()
            .for_each(|(segment, ((rows, values), shares))| {
                let mut pads = self.pads(segment, rows);
                let [zeros, ones] = pads.planes(0, columns);
                let words = rows.len() / 64;
                for (at, (values, share)) in values.into_iter().zip(shares).enumerate() {
                    let [zeros, ones] = [&zeros, &ones].map(|side| &side[at * words..][..words]);
                    share.copy_from_slice(zeros);
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = zeros[i] ^ ones[i];
                    }
                }
            });
        (values, shares)
    }

    /// Makes correlations of random words. Returns a value and a share for each transfer: this
    /// end's share and the other's sum to the choice times the value.
    #[must_use]
    pub fn random_words(self) -> (Vec<u64>, Vec<u64>) {
        let [mut values, mut shares] = [(); 2].map(|()| vec![0; self.len()]);
        self.rows
            .par_chunks(SEGMENT)
            .zip(values.par_chunks_mut(SEGMENT))
            .zip(shares.par_chunks_mut(SEGMENT))
            .enumerate()
            .for_each(|(segment, ((rows, values), shares))| {
                let mut pads = self.pads(segment, rows);
                let [zeros, ones] = pads.number(0);
                for i in 0..rows.len() {
                    let zero = zeros[i] as u64;
                    values[i] = (ones[i] as u64).wrapping_sub(zero);
                    shares[i] = zero.wrapping_neg();
                }
            });
        (values, shares)
    }
}

impl Chosen {
    /// Returns this end's shares of the correlations of [`Offered::random_bits`].
    ///
    /// # Panics
    /// If there are more than 128 columns.
    #[must_use]
    pub fn random_bits(self, columns: usize) -> Planes {
        let words = self.choices.len();
        let mut shares = vec![vec![0; words]; columns];
        self.rows
            .par_chunks(SEGMENT)
            .zip(segments(
                &mut shares,
                CHOICE_WORDS,
                words.div_ceil(CHOICE_WORDS),
            ))
            .enumerate()
            .for_each(|(segment, (rows, shares))| {
                let [planes] = self.pads(segment, rows).planes(0, columns);
                let planes = planes.chunks_exact(rows.len() / 64);
                for (share, plane) in shares.into_iter().zip(planes) {
                    share.copy_from_slice(plane);
                }
            });
        shares
    }

    /// Returns this end's shares of the correlations of [`Offered::random_words`].
    #[must_use]
    pub fn random_words(self) -> Vec<u64> {
        let mut shares = vec![0; self.len()];
        self.rows
            .par_chunks(SEGMENT)
            .zip(shares.par_chunks_mut(SEGMENT))
            .enumerate()
            .for_each(|(segment, (rows, shares))| {
                let mut pads = self.pads(segment, rows);
                let [pads] = pads.number(0);
                for (share, pad) in shares.iter_mut().zip(pads) {
                    *share = *pad as u64;
                }
            });
        shares
    }
}
