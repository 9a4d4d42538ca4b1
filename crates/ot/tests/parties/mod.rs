//! Two ends of a setup, and pseudorandom values for tests.

#![allow(dead_code, reason = "no test uses everything")]

use ot::{Pair, Setup};

/// Returns both ends after a setup with trees of this depth, the first end first.
pub fn pairs(depth: usize) -> (Pair, Pair) {
    let context = b"session 1, parties 0 and 1";
    let (one, first) = Setup::with_depth(context, true, depth).unwrap();
    let (two, second) = Setup::with_depth(context, false, depth).unwrap();
    let ((one, for_two), (two, for_one)) =
        (one.reply(&second).unwrap(), two.reply(&first).unwrap());
    let ((one, after), (two, other)) = (
        one.correct(&for_one).unwrap(),
        two.correct(&for_two).unwrap(),
    );
    (one.finish(&other).unwrap(), two.finish(&after).unwrap())
}

/// Returns pseudorandom words.
pub fn words(n: usize, seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..n)
        .map(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ word >> 31
        })
        .collect()
}

/// Returns edge cases alternating with pseudorandom words.
pub fn edges(n: usize, seed: u64) -> Vec<u64> {
    let mut values = words(n, seed);
    for (i, value) in values.iter_mut().enumerate() {
        match i % 7 {
            0 => *value = 0,
            1 => *value = u64::MAX,
            2 => *value = 1,
            3 => *value = 1 << 63,
            _ => {}
        }
    }
    values
}
