//! Digits at their limits: carries, and sums as large as 32 bits hold.

use super::maps::{computed, small};
use crate::card::Card;
use crate::digits::{Digits, SignedBytes, chunks};
use crate::simulated::{Settings, Simulated};
use kernels::bilinear::Bilinear;
use kernels::device::Cpu;
use kernels::third::{RUN, Summand};

/// A word whose digits are all −128, and the sum of many of their products as large as can be.
const LOWEST: u64 = 0x7f7f_7f7f_7f7f_7f80;

/// Words at the limits of digits and of carries.
const SPECIAL: [u64; 16] = [
    0,
    1,
    u64::MAX,
    1 << 63,
    (1 << 63) - 1,
    127,
    128,
    255,
    256,
    0x8080_8080_8080_8080,
    0x7f7f_7f7f_7f7f_7f7f,
    LOWEST,
    0x00ff_ffff_ffff_ff80,
    0xff00_0000_0000_0000,
    0x8000_0000_0000_0080,
    0x0123_4567_89ab_cdef,
];

#[test]
fn each_digit_of_the_lowest_word_is_the_lowest() {
    let mut rest = LOWEST;
    for _ in 0..8 {
        assert_eq!(rest as i8, -128);
        rest = rest.wrapping_add(128) >> 8;
    }
}

#[test]
fn every_pair_of_special_words() {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 16,
        k: 1,
        n: 16,
    };
    let products = computed(&small(1, 1 << 20), &map, &[(&SPECIAL, &SPECIAL)]);
    for (at, product) in products.iter().enumerate() {
        let (a, b) = (SPECIAL[at / 16], SPECIAL[at % 16]);
        assert_eq!(*product, a.wrapping_mul(b), "{a:#x} · {b:#x}");
    }
}

/// The simulated card refuses sums of more than 32 bits, so that this shows the bound too.
#[test]
fn long_sums_of_the_largest_products_do_not_overflow() {
    let most = SignedBytes::WHOLE.most_block();
    let card = Card::new(Simulated::new(Settings::default()));
    for k in [
        most - 1,
        most,
        most + 1,
        (1 << 15) - 1,
        1 << 15,
        (1 << 15) + 1,
        3 * most + 5,
    ] {
        let map = Bilinear::ByTransposed {
            batch: 1,
            m: 2,
            k,
            n: 3,
        };
        let mut x = vec![LOWEST; 2 * k];
        x[k..].fill(u64::MAX);
        let mut y = vec![LOWEST; 3 * k];
        y[k..2 * k].fill(1 << 63);
        y[2 * k..].fill(0x8080_8080_8080_8080);
        for terms in [&[(&x[..], &y[..])][..], &[(&x, &y), (&x, &y), (&x, &y)]] {
            let expected = computed(&Cpu::default(), &map, terms);
            assert!(computed(&card, &map, terms) == expected, "depth {k}");
        }
    }
}

#[test]
fn a_larger_block_could_overflow() {
    let digits = [
        (SignedBytes::WHOLE, 16),
        (SignedBytes::narrow(Summand::First), RUN),
    ];
    for (digits, step) in digits {
        let products = |block: usize| (digits.row_bytes(block) as u64) << 14;
        let most = digits.most_block();
        assert!(most % step == 0 && products(most) < 1 << 31);
        assert!(products(most + step) >= 1 << 31);
    }
}

#[test]
fn chunks_cover_the_depth() {
    let most = SignedBytes::WHOLE.most_block();
    for (terms, depth) in [(1, 1), (1, most), (1, most + 1), (2, most), (3, 100_000)] {
        let chunks = chunks(&SignedBytes::WHOLE, terms, depth);
        let covered = chunks.iter().try_fold(0, |end, chunk| {
            (chunk.start == end && !chunk.is_empty()).then_some(chunk.end)
        });
        assert_eq!(covered, Some(depth));
        let block = |len: usize| terms * len.next_multiple_of(16);
        assert!(chunks.iter().all(|chunk| block(chunk.len()) <= most));
    }
}
