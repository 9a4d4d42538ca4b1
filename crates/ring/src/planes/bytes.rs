//! Bytes of 0 and 1 as packed bits, and back.

use crate::parallel;
use crate::shared_slice::SharedSlice;

use super::words_of;

/// Packs bytes that are 0 or 1; of other bytes the lowest bit counts.
///
/// # Panics
/// If `out` has not [`words_of`] words.
pub fn pack_bytes(bytes: &[u8], out: &mut [u64]) {
    assert_eq!(
        out.len(),
        words_of(bytes.len()),
        "{} bits take so many words",
        bytes.len()
    );
    parallel::map_blocks::<u64, u64, 1, 0>(
        out.len(),
        parallel::GRAIN,
        [out],
        [],
        |offset, [out], []| {
            let bytes = &bytes[64 * offset..bytes.len().min(64 * (offset + out.len()))];
            for (bytes, word) in bytes.chunks(64).zip(out) {
                *word = bytes
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 1 | u64::from(byte & 1));
            }
        },
    );
}

/// Bits as bytes of 0 and 1.
///
/// # Panics
/// If `words` has not [`words_of`] words for as many bits as `out` has bytes.
pub fn unpack_bytes(words: &[u64], out: &mut [u8]) {
    assert_eq!(
        words.len(),
        words_of(out.len()),
        "{} bits take so many words",
        out.len()
    );
    let n = out.len();
    let shared = SharedSlice::new(out);
    parallel::for_blocks(words.len(), parallel::GRAIN, |range| {
        // SAFETY: bytes of these words alone.
        let out = unsafe { shared.part(64 * range.start..n.min(64 * range.end)) };
        for (bytes, word) in out.chunks_mut(64).zip(&words[range]) {
            for (bit, byte) in bytes.iter_mut().enumerate() {
                *byte = (word >> bit & 1) as u8;
            }
        }
    });
}
