//! A comparison of Table III of CrypTFlow with the meter.
//!
//! Kumar, Rathee, Chandran, Gupta, Rastogi, Sharma: "CrypTFlow: Secure TensorFlow inference" (S&P
//! 2020), section IV, Table III: bits over all links of Porthos, two parties and a helper, for
//! words of l = 64 bits and log p = 8. Here two parties of additive sharing and a dealer do the
//! same. Counted is everything that the parties send to each other, and everything that the dealer
//! sends. As in the table, the choice of the next job is not counted. There, both parties know the
//! program; here, party 0 names each job to the dealer, in 24 words whatever its size.
//!
//! ShareConvert has no counterpart, as shares need no conversion. Its purpose, and that of
//! ComputeMSB, is a sign, so each is compared with a sign. Porthos' ComputeMSB leaves a ring
//! element, so it is also compared with a sign plus the step from bit to ring element. Porthos
//! truncates by shifting shares, which costs nothing and fails with a probability that grows with
//! the value. The truncation here does not fail, and is measured separately.

use crate::links::{Links, measured};
use kernels::convolution::Convolution;
use mpc::{Bilinear, Compared, Protocol, Result};
use testkit::Shared;

const L: u64 = 64;
const LOG_P: u64 = 8;

/// The number of elements of a row: a whole number of words of bits for either party.
const N: u64 = 1 << 10;

fn n() -> usize {
    N as usize
}

/// The costs of Porthos in the table.
mod table {
    use super::{L, LOG_P};

    /// An image of m by m with i channels, and o filters of f by f.
    pub fn convolution([m, i, f, o]: [u64; 4]) -> u64 {
        let q = m - f + 1;
        (2 * m * m * i + 2 * f * f * o * i + q * q * o) * L
    }

    pub fn share_convert() -> u64 {
        3 * L * LOG_P + 5 * L
    }

    pub fn compute_msb() -> u64 {
        3 * L * LOG_P + 9 * L
    }

    pub fn relu() -> u64 {
        6 * L * LOG_P + 19 * L
    }

    /// The maximum of n values.
    pub fn max_pool(n: u64) -> u64 {
        (6 * L * LOG_P + 24 * L) * (n - 1)
    }
}

/// Returns the bits of a program, which requests `jobs` jobs from the dealer.
fn bits(jobs: u64, program: impl Fn(&mut dyn Protocol) -> Result<()> + Sync) -> u64 {
    let links: Links = measured(2, program);
    assert_eq!(links.asked, 24 * jobs, "jobs have different lengths");
    assert_eq!(
        links.sent[0], links.sent[1],
        "the parties send different amounts"
    );
    assert_eq!(
        links.dealt[0], links.dealt[1],
        "the parties receive different amounts"
    );
    links.bits()
}

/// Rectifies at 64 bits.
fn rectified(p: &mut dyn Protocol, x: &Shared) -> Result<Shared> {
    Shared::made(p, x.0[0].len(), |p, out| {
        p.rectify(&x.slices(), None, Compared::proved(64), out)
            .map(drop)
    })
}

fn difference(x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(x, y)| x.wrapping_sub(*y)).collect()
}

/// Computes the greatest of each row, by halving: max(a, b) = b + max(a − b, 0).
fn greatest(p: &mut dyn Protocol, rows: Vec<Vec<u64>>) -> Result<Vec<u64>> {
    let mut rows = rows;
    while rows.len() > 1 {
        let rest = rows.split_off(rows.len() / 2 * 2);
        let pairs = rows
            .chunks_exact(2)
            .map(|pair| difference(&pair[0], &pair[1]));
        let larger = rectified(p, &Shared(vec![pairs.flatten().collect()]))?;
        let seconds = rows.chunks_exact(2).map(|pair| &pair[1]);
        let sums = larger.0[0].chunks_exact(n()).zip(seconds).map(|(a, b)| {
            let both = a.iter().zip(b);
            both.map(|(a, b)| a.wrapping_add(*b)).collect()
        });
        rows = sums.chain(rest).collect();
    }
    Ok(rows.swap_remove(0))
}

#[test]
fn convolution_with_new_weights_is_as_in_the_table() {
    for [m, i, f, o] in [[8, 4, 3, 6], [14, 1, 5, 4], [12, 2, 1, 8]] {
        let sides = [m, f].map(|side| [side as usize; 2]);
        let map = Bilinear::Convolution(Convolution {
            batch: 1,
            groups: 1,
            in_channels: i as usize,
            out_channels: o as usize,
            input: sides[0],
            kernel: sides[1],
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
        });
        let (left, right, _) = map.lengths();
        let spent = bits(1, |p| {
            let (x, y) = (Shared::zeros(p, left), Shared::zeros(p, right));
            x.bilinear(p, &map, &y, None).map(drop)
        });
        assert_eq!(
            spent,
            table::convolution([m, i, f, o]),
            "{m}, {i}, {f}, {o}"
        );
    }
}

/// Porthos truncates at no cost but is sometimes wrong; here 2 bits are opened and f are dealt.
#[test]
fn truncation_is_apart() {
    for f in [13, 16] {
        let spent = bits(1, |p| Shared::zeros(p, n()).truncated(p, f).map(drop));
        assert_eq!(spent, (2 + u64::from(f)) * N, "truncation by {f} bits");
    }
}

#[test]
fn a_sign_is_below_share_convert_and_compute_msb() {
    let sign = bits(8, |p| {
        let x = Shared::zeros(p, n());
        p.sign(&x.slices(), 64).map(drop)
    });
    assert!(sign <= table::share_convert() * N, "{sign} of {N}");
    assert!(sign <= table::compute_msb() * N, "{sign} of {N}");
    // As a ring element.
    let whole = bits(9, |p| {
        let x = Shared::zeros(p, n());
        let bit = p.sign(&x.slices(), 64)?;
        Shared::made(p, n(), |p, out| p.bit_to_ring(&bit, out)).map(drop)
    });
    assert!(whole <= table::compute_msb() * N, "{whole} of {N}");
}

fn bits_of_relu() -> u64 {
    bits(9, |p| {
        let x = Shared::zeros(p, n());
        rectified(p, &x).map(drop)
    })
}

#[test]
fn a_relu_is_below_the_table() {
    let spent = bits_of_relu();
    assert!(spent <= table::relu() * N, "{spent} of {N}");
}

#[test]
fn max_pool_is_below_the_table() {
    let relu = bits_of_relu();
    for (window, turns) in [(2, 1), (4, 2), (9, 4)] {
        let spent = bits(9 * turns, |p| {
            let rows = (0..window).map(|_| vec![0; n()]).collect();
            greatest(p, rows).map(drop)
        });
        assert!(spent <= table::max_pool(window) * N, "{spent} for {window}");
        assert_eq!(
            spent,
            relu * (window - 1),
            "a maximum of n numbers costs n - 1 ReLUs"
        );
    }
}
