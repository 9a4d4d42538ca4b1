//! Maps of all kinds against this processor.

use crate::card::Card;
use crate::runtime::Tuning;
use crate::simulated::{Settings, Simulated};
use kernels::bilinear::Bilinear;
use kernels::convolution::Convolution;
use kernels::device::{Cpu, Device, Term};

/// A card whose bands, buffers and pieces are small.
fn small(seed: u64, band: usize) -> Card<Simulated> {
    Card::new(Simulated::new(Settings {
        seed,
        staging: 37,
        tuning: Tuning { band, crossover: 0 },
        ..Settings::default()
    }))
}

/// Arbitrary words.
fn words(n: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(seed | 1);
            state ^ state >> 29
        })
        .collect()
}

pub fn agrees(card: &dyn Device, map: &Bilinear, terms: usize, seed: u64) {
    let (left, right, result) = map.lengths();
    let operands: Vec<[Vec<u64>; 2]> = (0..terms as u64)
        .map(|term| {
            [
                words(left, seed + 2 * term),
                words(right, seed + 2 * term + 1),
            ]
        })
        .collect();
    let terms: Vec<Term> = operands.iter().map(|[x, y]| Term::of(x, y)).collect();
    let (mut out, mut expected) = (vec![1; result], vec![2; result]);
    card.bilinear(map, &mut out, &terms)
        .expect("the card computes");
    let cpu = Cpu::default();
    cpu.bilinear(map, &mut expected, &terms)
        .expect("the processor computes");
    assert!(out == expected, "{map:?} of {} terms", terms.len());
}

#[test]
fn matrices() {
    for (seed, band) in [(1, 1 << 12), (2, 1 << 16), (3, 1 << 24)] {
        let card = small(seed, band);
        for (batch, m, k, n) in [
            (1, 1, 1, 1),
            (1, 5, 7, 3),
            (3, 4, 33, 20),
            (1, 65, 130, 17),
            (7, 2, 16, 16),
        ] {
            for terms in 1..=3 {
                agrees(&card, &Bilinear::Matrix { batch, m, k, n }, terms, seed);
                agrees(
                    &card,
                    &Bilinear::ByTransposed { batch, m, k, n },
                    terms,
                    seed,
                );
            }
        }
    }
}

#[test]
fn convolutions() {
    let shape = Convolution {
        batch: 3,
        groups: 2,
        in_channels: 4,
        out_channels: 6,
        input: [9, 11],
        kernel: [3, 2],
        stride: [2, 1],
        padding: [1, 2],
        dilation: [1, 3],
    };
    for (seed, band) in [(1, 1 << 10), (2, 1 << 16), (3, 1 << 24)] {
        let card = small(seed, band);
        for terms in 1..=3 {
            agrees(&card, &Bilinear::Convolution(shape), terms, seed);
        }
    }
}
