use super::*;
use crate::dispatch::backends;

fn values(n: usize) -> Vec<u64> {
    (0..n as u64)
        .map(|i| {
            (i + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(i as u32 % 64)
        })
        .collect()
}

/// Packs by definition, one bit at a time.
fn pack_slowly(values: &[u64], bits: u32) -> Vec<u64> {
    let mut words = vec![0; packed_words(values.len(), bits)];
    for (i, value) in values.iter().enumerate() {
        for bit in 0..bits as usize {
            let position = i * bits as usize + bit;
            words[position / 64] |= (value >> bit & 1) << (position % 64);
        }
    }
    words
}

fn check(backend: Backend, values: &[u64], bits: u32) {
    let n = values.len();
    let mut packed = vec![u64::MAX; packed_words(n, bits)];
    pack_low_with(backend, values, bits, &mut packed);
    assert!(
        packed == pack_slowly(values, bits),
        "{n} values of {bits} bits, {backend}"
    );
    let mut unpacked = vec![u64::MAX; n];
    unpack_low_with(backend, &packed, bits, &mut unpacked);
    assert!(
        unpacked
            .iter()
            .zip(values)
            .all(|(a, b)| *a == b & mask(bits)),
        "{n} values of {bits} bits, {backend}"
    );
}

#[test]
fn every_width_packs_as_defined_and_back() {
    for backend in backends() {
        for bits in 1..=64 {
            for n in [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 130, 257, 1024, 1727, 2112] {
                check(backend, &values(n), bits);
            }
        }
    }
}

#[test]
fn parallel_blocks_join_without_seams() {
    let values = values(2 * BLOCK + 77);
    for backend in backends() {
        for bits in [1, 8, 13, 16, 31, 32, 33, 63, 64] {
            check(backend, &values, bits);
        }
    }
}

#[test]
#[should_panic(expected = "a packed value has 1 to 64 bits, not 65")]
fn a_width_above_64_is_refused() {
    let _ = packed_words(1, 65);
}

#[test]
#[should_panic(expected = "3 values of 5 bits take 1 words")]
fn a_wrong_length_is_refused() {
    pack_low(&[1, 2, 3], 5, &mut [0, 0]);
}
