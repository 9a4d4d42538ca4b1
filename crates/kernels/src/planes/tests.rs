use super::*;
use crate::dispatch::backends;

const LENGTHS: [usize; 12] = [
    0,
    1,
    63,
    64,
    65,
    127,
    511,
    512,
    513,
    1000,
    4096,
    2 * BLOCK + 100,
];

fn values(n: usize) -> Vec<u64> {
    (0..n as u64)
        .map(|i| {
            (i + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(i as u32 % 61)
        })
        .collect()
}

fn mask(width: usize) -> u64 {
    if width == 0 {
        0
    } else {
        u64::MAX >> (64 - width)
    }
}

#[test]
fn planes_are_as_defined() {
    for backend in backends() {
        for n in LENGTHS {
            let values = values(n);
            for width in [0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64] {
                let stride = words_of(n);
                let mut planes = vec![u64::MAX; width * stride];
                split_with(backend, &values, 0, width, &mut planes);
                for (i, value) in values.iter().enumerate() {
                    let bits = (0..width).fold(0, |bits, j| {
                        bits | (planes[j * stride + i / 64] >> (i % 64) & 1) << j
                    });
                    assert_eq!(
                        bits,
                        value & mask(width),
                        "{backend}: {n} values of {width} bits, value {i}"
                    );
                }
                if n % 64 > 0 {
                    assert!(
                        (0..width).all(|j| planes[(j + 1) * stride - 1] >> (n % 64) == 0),
                        "unused bits are not zero"
                    );
                }
            }
        }
    }
}

#[test]
fn planes_from_a_bit_on_are_those_of_shifted_values() {
    for backend in backends() {
        for n in LENGTHS {
            let values = values(n);
            for (lowest, width) in [(0, 64), (1, 63), (13, 24), (63, 1), (64, 0)] {
                let shifted: Vec<u64> = values
                    .iter()
                    .map(|value| value.checked_shr(lowest as u32).unwrap_or(0))
                    .collect();
                let mut expected = vec![u64::MAX; width * words_of(n)];
                split_with(backend, &shifted, 0, width, &mut expected);
                let mut planes = vec![u64::MAX; width * words_of(n)];
                split_with(backend, &values, lowest, width, &mut planes);
                assert_eq!(
                    planes, expected,
                    "{backend}: {n} values from bit {lowest} on"
                );
            }
        }
    }
}

#[test]
fn joining_is_the_inverse_and_ignores_unused_bits() {
    for backend in backends() {
        for n in LENGTHS {
            let values = values(n);
            for width in [0, 1, 5, 8, 16, 33, 64] {
                let stride = words_of(n);
                let mut planes = vec![0; width * stride];
                split_with(backend, &values, 0, width, &mut planes);
                if n % 64 > 0 {
                    (0..width).for_each(|j| planes[(j + 1) * stride - 1] |= u64::MAX << (n % 64));
                }
                let mut joined = vec![u64::MAX; n];
                join_with(backend, &planes, width, n, &mut joined);
                assert!(
                    joined
                        .iter()
                        .zip(&values)
                        .all(|(a, b)| *a == b & mask(width)),
                    "{backend}: {n} of {width} bits"
                );
            }
        }
    }
}

#[test]
fn bytes_pack_and_unpack() {
    for backend in backends() {
        for n in LENGTHS.into_iter().chain([64 * parallel::GRAIN + 3]) {
            // All eight bits vary, and only the lowest counts.
            let bytes: Vec<u8> = values(n).iter().map(|value| (value >> 40) as u8).collect();
            let mut words = vec![u64::MAX; words_of(n)];
            bytes::pack_bytes_with(backend, &bytes, &mut words);
            let packed = |i: usize| (words[i / 64] >> (i % 64) & 1) as u8;
            assert!(
                (0..n).all(|i| packed(i) == bytes[i] & 1),
                "{backend}: {n} bytes"
            );
            assert!(n % 64 == 0 || words[n / 64] >> (n % 64) == 0);
            let mut unpacked = vec![9; n];
            bytes::unpack_bytes_with(backend, &words, &mut unpacked);
            assert!(
                (0..n).all(|i| unpacked[i] == bytes[i] & 1),
                "{backend}: {n} bits"
            );
        }
    }
}

#[test]
#[should_panic(expected = "2 planes of 65 elements take 4 words, not 3")]
fn a_wrong_length_is_refused() {
    split(&[0; 65], 2, &mut [0; 3]);
}

#[test]
#[should_panic(expected = "a word has 64 planes, not 65")]
fn too_many_planes_are_refused() {
    join(&[], 65, 0, &mut []);
}

#[test]
fn wide_values_join_as_two_narrow_ones() {
    for backend in backends() {
        for n in LENGTHS {
            let stride = words_of(n);
            let planes = values(128 * stride);
            let mut joined = vec![u128::MAX; n];
            wide::join_wide_with(backend, &planes, &mut joined);
            let [low, high] = [0, 1].map(|half| {
                let mut values = vec![0; n];
                join_with(
                    backend,
                    &planes[64 * stride * half..][..64 * stride],
                    64,
                    n,
                    &mut values,
                );
                values
            });
            for i in 0..n {
                let expected = u128::from(high[i]) << 64 | u128::from(low[i]);
                assert!(joined[i] == expected, "{backend}: value {i} of {n}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "128 planes of 65 elements take 256 words, not 255")]
fn a_wrong_length_of_wide_planes_is_refused() {
    join_wide(&[0; 255], &mut [0; 65]);
}
