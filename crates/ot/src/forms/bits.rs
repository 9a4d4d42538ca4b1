//! Correlations of bits: as those over the ring, but in Z_2, with 64 transfers in a word.
//!
//! The sender keeps p_0 and sends m = x ⊕ p_0 ⊕ p_1; the receiver takes p_b ⊕ b m. The message has
//! one bit for each transfer and column, ordered by segment, and by column in a segment.

use super::pads::segments;
use super::{CHOICE_WORDS, Chosen, Offered};
use crate::Error;
use crate::hash::SEGMENT;
use kernels::message::unless_length;
use rayon::prelude::*;

/// The number of bit columns that share a pad.
const BIT_COLUMNS: usize = 128;

impl Offered {
    /// Makes correlations of bits. Columns are packed bits. For every column c, this end's share
    /// and the other's XOR to `choices & columns[c]`. Returns the shares, and the message, which
    /// has as many words as the columns.
    ///
    /// # Panics
    /// If a column does not have one bit for each transfer.
    #[must_use]
    pub fn correlate_bits(self, columns: &[&[u64]]) -> (Vec<Vec<u64>>, Vec<u64>) {
        let words = self.len() / 64;
        assert!(
            columns.iter().all(|column| column.len() == words),
            "{} transfers take columns of {words} words",
            self.len()
        );
        let mut message = vec![0; columns.len() * words];
        let mut mine = vec![vec![0; words]; columns.len()];
        if columns.is_empty() {
            return (mine, message);
        }
        self.rows
            .par_chunks(SEGMENT)
            .zip(message.par_chunks_mut(columns.len() * CHOICE_WORDS))
            .zip(segments(
                &mut mine,
                CHOICE_WORDS,
                words.div_ceil(CHOICE_WORDS),
            ))
            .enumerate()
            .for_each(|(segment, ((rows, message), mut mine))| {
                let mut pads = self.pads(segment, rows);
                let words = rows.len() / 64;
                for (number, mine) in mine.chunks_mut(BIT_COLUMNS).enumerate() {
                    let [zeros, ones] = pads.planes(number, mine.len());
                    for (at, mine) in mine.iter_mut().enumerate() {
                        let (column, plane) = (number * BIT_COLUMNS + at, at * words);
                        let values = &columns[column][segment * CHOICE_WORDS..];
                        let message = &mut message[column * words..][..words];
                        mine.copy_from_slice(&zeros[plane..][..words]);
                        for (i, message) in message.iter_mut().enumerate() {
                            *message = values[i] ^ zeros[plane + i] ^ ones[plane + i];
                        }
                    }
                }
            });
        (mine, message)
    }
}

impl Chosen {
    /// Computes this end's shares of the correlations of [`Offered::correlate_bits`], with the same
    /// number of columns.
    ///
    /// # Errors
    /// If the message does not have as many words as the columns.
    pub fn correlate_bits(self, columns: usize, message: &[u64]) -> Result<Vec<Vec<u64>>, Error> {
        let words = self.choices.len();
        unless_length("a correlation of bits", columns * words, message)?;
        let mut theirs = vec![vec![0; words]; columns];
        if columns == 0 {
            return Ok(theirs);
        }
        self.rows
            .par_chunks(SEGMENT)
            .zip(message.par_chunks(columns * CHOICE_WORDS))
            .zip(segments(
                &mut theirs,
                CHOICE_WORDS,
                words.div_ceil(CHOICE_WORDS),
            ))
            .enumerate()
            .for_each(|(segment, ((rows, message), mut theirs))| {
                let mut pads = self.pads(segment, rows);
                let words = rows.len() / 64;
                let choices = &self.choices[segment * CHOICE_WORDS..][..words];
                for (number, theirs) in theirs.chunks_mut(BIT_COLUMNS).enumerate() {
                    let [planes] = pads.planes(number, theirs.len());
                    for (at, theirs) in theirs.iter_mut().enumerate() {
                        let message = &message[(number * BIT_COLUMNS + at) * words..][..words];
                        let plane = &planes[at * words..][..words];
                        for (i, share) in theirs.iter_mut().enumerate() {
                            *share = plane[i] ^ choices[i] & message[i];
                        }
                    }
                }
            });
        Ok(theirs)
    }
}
