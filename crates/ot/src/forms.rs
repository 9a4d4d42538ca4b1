//! What transfers are made into: random pads, chosen messages, correlations over the ring and of bits.
//!
//! Every form consumes the transfers, so that no pad serves twice. Symbols: for transfer i with
//! choice b, pads p_0 and p_1 at the sender and p_b at the receiver.
//!
//! - Correlation over Z_2^bits with x: the sender keeps −p_0 and sends m = x + p_0 − p_1; the receiver
//!   takes p_b + b m, which is p_0 + b x (Asharov, Lindell, Schneider, Zohner, CCS 2013, section 5.4).
//!   The message is uniform to a receiver that lacks p_{1−b}.
//! - Correlation of bits: the same in Z_2, 64 transfers at once.

use crate::Error;
use crate::hash::{Family, Hash, SEGMENT};
use rayon::prelude::*;
use ring::pack::{pack_low, packed_words, unpack_low};
use ring::planes;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Transfers made, at the end that has both pads of each.
pub struct Offered {
    pub(crate) family: Arc<Family>,
    pub(crate) delta: Zeroizing<u128>,
    pub(crate) first: u64,
    pub(crate) rows: Vec<u128>,
}

/// Transfers made, at the end that chose.
pub struct Chosen {
    pub(crate) family: Arc<Family>,
    pub(crate) first: u64,
    pub(crate) rows: Vec<u128>,
    pub(crate) choices: Vec<u64>,
}

/// Columns that share a pad: one word each.
const COLUMNS: usize = 2;

/// Words of a segment's choices.
const BITS: usize = SEGMENT / 64;

/// Bit columns that share a pad.
const BIT_COLUMNS: usize = 128;

/// Words of the message of [`Offered::correlate`] for n transfers, a multiple of 64.
#[must_use]
pub fn correlate_words(n: usize, columns: usize, bits: u32) -> usize {
    columns * packed_words(n, bits)
}

/// All ones if transfer i of these choices chose 1.
pub(crate) fn mask(choices: &[u64], i: usize) -> u64 {
    (choices[i / 64] >> (i % 64) & 1).wrapping_neg()
}

/// The pieces of every column, segment by segment.
fn segments(columns: &mut [Vec<u64>], size: usize, count: usize) -> Vec<Vec<&mut [u64]>> {
    let mut segments: Vec<Vec<_>> = (0..count)
        .map(|_| Vec::with_capacity(columns.len()))
        .collect();
    for column in columns {
        for (segment, piece) in segments.iter_mut().zip(column.chunks_mut(size)) {
            segment.push(piece);
        }
    }
    segments
}

fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The word of each pad that belongs to a column.
fn word(pad: u128, column: usize) -> u64 {
    (pad >> (64 * (column % COLUMNS))) as u64
}

/// The pads of one segment: of both choices at the sender (`SIDES` = 2), of the chosen one at the
/// receiver.
struct Pads<const SIDES: usize> {
    hash: Hash,
    len: usize,
    opened: [[u128; SEGMENT]; SIDES],
    pads: [[u128; SEGMENT]; SIDES],
}

impl<const SIDES: usize> Pads<SIDES> {
    fn new(hash: Hash, rows: &[u128], offsets: [u128; SIDES]) -> Self {
        let mut opened = [[0; SEGMENT]; SIDES];
        for (opened, offset) in opened.iter_mut().zip(offsets) {
            hash.open(rows, offset, opened);
        }
        Self {
            hash,
            len: rows.len(),
            opened,
            pads: [[0; SEGMENT]; SIDES],
        }
    }

    /// Pad `number` of every transfer.
    fn number(&mut self, number: usize) -> [&[u128]; SIDES] {
        for (opened, pads) in self.opened.iter().zip(&mut self.pads) {
            self.hash.pads(number as u64, &opened[..self.len], pads);
        }
        self.last()
    }

    /// The pads of the last [`Pads::number`].
    fn last(&self) -> [&[u128]; SIDES] {
        self.pads.each_ref().map(|pads| &pads[..self.len])
    }

    /// 64 transfers to a word: bit c of every pad is bit plane c, for `columns` planes from pad
    /// `number`; the planes of each side one after another.
    fn planes(&mut self, number: usize, columns: usize) -> [Vec<u64>; SIDES] {
        self.number(number).map(|pads| {
            let mut values = [0; SEGMENT];
            let mut planes = vec![0; columns * pads.len() / 64];
            for (at, planes) in planes.chunks_mut(pads.len()).enumerate() {
                for (value, pad) in values.iter_mut().zip(pads) {
                    *value = word(*pad, at);
                }
                planes::split(
                    &values[..pads.len()],
                    planes.len() / (pads.len() / 64),
                    planes,
                );
            }
            planes
        })
    }
}

fn low_words(hash: &Hash, rows: &[u128], offset: u128, out: &mut [u64]) {
    let (mut opened, mut pads) = ([0; SEGMENT], [0; SEGMENT]);
    hash.open(rows, offset, &mut opened);
    hash.pads(0, &opened[..rows.len()], &mut pads);
    for (word, pad) in out.iter_mut().zip(pads) {
        *word = pad as u64;
    }
}

impl Offered {
    /// The number of transfers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn hash(&self, segment: usize) -> Hash {
        self.family.hash(self.first + (segment * SEGMENT) as u64)
    }

    /// A family of permutations that belongs to these transfers.
    pub(crate) fn subfamily(&self) -> Family {
        self.family.subfamily(self.first)
    }

    /// Both pads' low words, of transfers of one segment.
    pub(crate) fn low_words(&self, transfers: Range<usize>, zeros: &mut [u64], ones: &mut [u64]) {
        let hash = self.family.hash(self.first + transfers.start as u64);
        let rows = &self.rows[transfers];
        low_words(&hash, rows, 0, zeros);
        low_words(&hash, rows, *self.delta, ones);
    }

    fn pads(&self, segment: usize, rows: &[u128]) -> Pads<2> {
        Pads::new(self.hash(segment), rows, [0, *self.delta])
    }

    /// Both pads of each transfer.
    #[must_use]
    pub fn random(self) -> (Vec<u128>, Vec<u128>) {
        let (mut zeros, mut ones) = (vec![0; self.len()], vec![0; self.len()]);
        self.rows
            .par_chunks(SEGMENT)
            .zip(zeros.par_chunks_mut(SEGMENT))
            .zip(ones.par_chunks_mut(SEGMENT))
            .enumerate()
            .for_each(|(segment, ((rows, zeros), ones))| {
                let hash = self.hash(segment);
                for (pads, offset) in [(zeros, 0), (ones, *self.delta)] {
                    let mut opened = [0; SEGMENT];
                    hash.open(rows, offset, &mut opened);
                    hash.pads(0, &opened[..rows.len()], pads);
                }
            });
        (zeros, ones)
    }

    /// Chosen messages of one word: the receiver gets `zeros[i]` or `ones[i]`. The message to it has
    /// two words for each transfer.
    ///
    /// # Panics
    /// If there are not as many messages as transfers.
    #[must_use]
    pub fn transfer(self, zeros: &[u64], ones: &[u64]) -> Vec<u64> {
        assert!(
            zeros.len() == self.len() && ones.len() == self.len(),
            "{} transfers take as many pairs of messages",
            self.len()
        );
        let mut message = vec![0; 2 * self.len()];
        message
            .par_chunks_mut(2 * SEGMENT)
            .zip(self.rows.par_chunks(SEGMENT))
            .zip(zeros.par_chunks(SEGMENT).zip(ones.par_chunks(SEGMENT)))
            .enumerate()
            .for_each(|(segment, ((message, rows), (zeros, ones)))| {
                let mut pads = self.pads(segment, rows);
                let [zero_pads, one_pads] = pads.number(0);
                let (first, second) = message.split_at_mut(rows.len());
                for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
                    *first = zeros[i] ^ zero_pads[i] as u64;
                    *second = ones[i] ^ one_pads[i] as u64;
                }
            });
        message
    }

    /// Correlations over the ring: for every column c and transfer i, this end's share and the other's
    /// sum to `choice_i * columns[c][i]` mod 2^bits. Gives the shares, with zeros above their `bits`
    /// bits, and the message, of [`correlate_words`].
    ///
    /// # Panics
    /// If a column has not as many values as there are transfers, or `bits` is not 1 to 64.
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

    /// Correlations of bits: columns are packed bits, and for every column c this end's share and the
    /// other's add (by exclusive or) to `choices & columns[c]`. Gives the shares, and the message, as
    /// many words as there are in the columns.
    ///
    /// # Panics
    /// If a column has not one bit for each transfer.
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
            .zip(message.par_chunks_mut(columns.len() * BITS))
            .zip(segments(&mut mine, BITS, words.div_ceil(BITS)))
            .enumerate()
            .for_each(|(segment, ((rows, message), mut mine))| {
                let mut pads = self.pads(segment, rows);
                let words = rows.len() / 64;
                for (number, mine) in mine.chunks_mut(BIT_COLUMNS).enumerate() {
                    let [zeros, ones] = pads.planes(number, mine.len());
                    for (at, mine) in mine.iter_mut().enumerate() {
                        let (column, plane) = (number * BIT_COLUMNS + at, at * words);
                        let values = &columns[column][segment * BITS..];
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
    /// The number of transfers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn hash(&self, segment: usize) -> Hash {
        self.family.hash(self.first + (segment * SEGMENT) as u64)
    }

    /// A family of permutations that belongs to these transfers.
    pub(crate) fn subfamily(&self) -> Family {
        self.family.subfamily(self.first)
    }

    /// The pads' low words, of transfers of one segment.
    pub(crate) fn low_words(&self, transfers: Range<usize>, pads: &mut [u64]) {
        let hash = self.family.hash(self.first + transfers.start as u64);
        low_words(&hash, &self.rows[transfers], 0, pads);
    }

    fn pads(&self, segment: usize, rows: &[u128]) -> Pads<1> {
        Pads::new(self.hash(segment), rows, [0])
    }

    /// The chosen pad of each transfer.
    #[must_use]
    pub fn random(self) -> Vec<u128> {
        let mut pads = vec![0; self.len()];
        self.rows
            .par_chunks(SEGMENT)
            .zip(pads.par_chunks_mut(SEGMENT))
            .enumerate()
            .for_each(|(segment, (rows, pads))| {
                let hash = self.hash(segment);
                let mut opened = [0; SEGMENT];
                hash.open(rows, 0, &mut opened);
                hash.pads(0, &opened[..rows.len()], pads);
            });
        pads
    }

    /// The chosen messages, from the message of [`Offered::transfer`].
    ///
    /// # Errors
    /// If it has not two words for each transfer.
    pub fn receive(self, message: &[u64]) -> Result<Vec<u64>, Error> {
        Error::unless_length("a transfer of messages", 2 * self.len(), message)?;
        let mut received = vec![0; self.len()];
        received
            .par_chunks_mut(SEGMENT)
            .zip(message.par_chunks(2 * SEGMENT))
            .zip(self.rows.par_chunks(SEGMENT))
            .enumerate()
            .for_each(|(segment, ((received, message), rows))| {
                let mut pads = self.pads(segment, rows);
                let [pads] = pads.number(0);
                let choices = &self.choices[segment * BITS..];
                let (zeros, ones) = message.split_at(rows.len());
                for (i, received) in received.iter_mut().enumerate() {
                    let chosen = zeros[i] ^ mask(choices, i) & (zeros[i] ^ ones[i]);
                    *received = chosen ^ pads[i] as u64;
                }
            });
        Ok(received)
    }

    /// This end's shares of the correlations of [`Offered::correlate`], with the same number of
    /// columns and bits.
    ///
    /// # Errors
    /// If the message has another length than [`correlate_words`].
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
        Error::unless_length("a correlation over the ring", expected, message)?;
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
                let choices = &self.choices[segment * BITS..];
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

    /// This end's shares of the correlations of [`Offered::correlate_bits`], with the same number of
    /// columns.
    ///
    /// # Errors
    /// If the message has not as many words as the columns.
    pub fn correlate_bits(self, columns: usize, message: &[u64]) -> Result<Vec<Vec<u64>>, Error> {
        let words = self.choices.len();
        Error::unless_length("a correlation of bits", columns * words, message)?;
        let mut theirs = vec![vec![0; words]; columns];
        if columns == 0 {
            return Ok(theirs);
        }
        self.rows
            .par_chunks(SEGMENT)
            .zip(message.par_chunks(columns * BITS))
            .zip(segments(&mut theirs, BITS, words.div_ceil(BITS)))
            .enumerate()
            .for_each(|(segment, ((rows, message), mut theirs))| {
                let mut pads = self.pads(segment, rows);
                let words = rows.len() / 64;
                let choices = &self.choices[segment * BITS..][..words];
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
