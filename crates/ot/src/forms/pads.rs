//! The pads of one segment of transfers, and columns cut into segments.

use crate::hash::{Hash, SEGMENT};
use kernels::planes;

/// The number of columns that share a pad: one word each.
pub(super) const COLUMNS: usize = 2;

/// Returns the word of a pad that belongs to a column.
pub(super) fn word(pad: u128, column: usize) -> u64 {
    (pad >> (64 * (column % COLUMNS))) as u64
}

/// Returns the pieces of every column, ordered by segment.
pub(super) fn segments(
    columns: &mut [Vec<u64>],
    size: usize,
    count: usize,
) -> Vec<Vec<&mut [u64]>> {
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

/// The pads of one segment: for both choices at the sender (`SIDES` = 2), for the chosen one at the
/// receiver.
pub(super) struct Pads<const SIDES: usize> {
    hash: Hash,
    len: usize,
    opened: [[u128; SEGMENT]; SIDES],
    pads: [[u128; SEGMENT]; SIDES],
}

impl<const SIDES: usize> Pads<SIDES> {
    pub(super) fn new(hash: Hash, rows: &[u128], offsets: [u128; SIDES]) -> Self {
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

    /// Computes pad `number` of every transfer.
    pub(super) fn number(&mut self, number: usize) -> [&[u128]; SIDES] {
        for (opened, pads) in self.opened.iter().zip(&mut self.pads) {
            self.hash.pads(number as u64, &opened[..self.len], pads);
        }
        self.last()
    }

    /// Returns the pads of the last call of [`Pads::number`].
    pub(super) fn last(&self) -> [&[u128]; SIDES] {
        self.pads.each_ref().map(|pads| &pads[..self.len])
    }

    /// Computes planes with 64 transfers in a word: bit c of every pad is bit plane c, for
    /// `columns` planes from pad `number`. The planes of each side follow one after another.
    pub(super) fn planes(&mut self, number: usize, columns: usize) -> [Vec<u64>; SIDES] {
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
