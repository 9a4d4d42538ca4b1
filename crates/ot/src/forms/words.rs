//! Correlations over Z_2^bits.
//!
//! For transfer i with choice b and value x, the sender keeps −p_0 and sends m = x + p_0 − p_1. The
//! receiver takes p_b + b m, which is p_0 + b x (Asharov, Lindell, Schneider, Zohner, CCS 2013).
//! The message looks uniform to a receiver that lacks p_{1−b}. It has `bits` bits for each transfer
//! and column, ordered by segment, and by column in a segment.

use super::pads::{COLUMNS, segments, word};
use super::{CHOICE_WORDS, Chosen, Offered, mask};
use crate::Error;
use crate::hash::SEGMENT;
use kernels::message::unless_length;
use kernels::pack::{pack_low, packed_words, unpack_low};
use rayon::prelude::*;

/// Returns the words of the message of [`Offered::correlate`] for n transfers, a multiple of 64.
#[must_use]
pub fn correlate_words(n: usize, columns: usize, bits: u32) -> usize {
    columns * packed_words(n, bits)
}

fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

impl Offered {
    /// Makes correlations over the ring. For every column c and transfer i, this end's share and
    /// the other's sum to `choice_i * columns[c][i]` mod 2^bits. Returns the shares, with zeros
    /// above their `bits` bits, and the message, of [`correlate_words`].
    ///
    /// # Panics
    /// If a column does not have as many values as there are transfers, or if `bits` is not 1
    /// to 64.
    #[must_use]
    pub fn correlate(self, columns: &[&[u64]], bits: u32) -> (Vec<Vec<u64>>, Vec<u64>) {
        let n = self.len();
        assert!(
            columns.iter().all(|column| column.len() == n),
            "{n} transfers take columns of {n} values"
        );
        let mut message = vec![0; correlate_words(n, columns.len(), bits)];
        let mut mine = vec![vec![0; n]; columns.len()];
        if columns.is_empty() {
            return (mine, message);
        }
        let low = low_bits(bits);
        self.rows
            .par_chunks(SEGMENT)
            .zip(message.par_chunks_mut(correlate_words(SEGMENT, columns.len(), bits)))
            .zip(segments(&mut mine, SEGMENT, n.div_ceil(SEGMENT)))
            .enumerate()
            .for_each(|(segment, ((rows, message), mine))| {
                let mut pads = self.pads(segment, rows);
                let mut masked = [0; SEGMENT];
                let masked = &mut masked[..rows.len()];
                let parts = message.chunks_mut(packed_words(rows.len(), bits));
                for (number, (part, mine)) in parts.zip(mine).enumerate() {
                    if number % COLUMNS == 0 {
                        pads.number(number / COLUMNS);
                    }
                    let [zeros, ones] = pads.last();
                    let values = &columns[number][segment * SEGMENT..];
                    for (i, (mine, masked)) in mine.iter_mut().zip(&mut *masked).enumerate() {
                        let zero = word(zeros[i], number);
                        *mine = zero.wrapping_neg() & low;
                        *masked = values[i]
                            .wrapping_add(zero)
                            .wrapping_sub(word(ones[i], number));
                    }
                    pack_low(masked, bits, part);
                }
            });
        (mine, message)
    }
}

impl Chosen {
    /// Computes this end's shares of the correlations of [`Offered::correlate`], with the same
    /// number of columns and bits.
    ///
    /// # Errors
    /// If the message does not have [`correlate_words`] words.
    ///
    /// # Panics
    /// If `bits` is not 1 to 64.
    pub fn correlate(
        self,
        columns: usize,
        bits: u32,
        message: &[u64],
    ) -> Result<Vec<Vec<u64>>, Error> {
        let n = self.len();
        let expected = correlate_words(n, columns, bits);
        unless_length("a correlation over the ring", expected, message)?;
        let mut theirs = vec![vec![0; n]; columns];
        if columns == 0 {
            return Ok(theirs);
        }
        let low = low_bits(bits);
        self.rows
            .par_chunks(SEGMENT)
            .zip(message.par_chunks(correlate_words(SEGMENT, columns, bits)))
            .zip(segments(&mut theirs, SEGMENT, n.div_ceil(SEGMENT)))
            .enumerate()
            .for_each(|(segment, ((rows, message), theirs))| {
                let mut pads = self.pads(segment, rows);
                let choices = &self.choices[segment * CHOICE_WORDS..];
                let parts = message.chunks(packed_words(rows.len(), bits));
                for (number, (part, theirs)) in parts.zip(theirs).enumerate() {
                    if number % COLUMNS == 0 {
                        pads.number(number / COLUMNS);
                    }
                    let [pads] = pads.last();
                    unpack_low(part, bits, theirs);
                    for (i, share) in theirs.iter_mut().enumerate() {
                        let masked = *share & mask(choices, i);
                        *share = word(pads[i], number).wrapping_add(masked) & low;
                    }
                }
            });
        Ok(theirs)
    }
}
