//! Bounds on the memory for making correlations and for bit conversions, whatever the sizes.

use kernels::convolution::Convolution;
use kernels::memory::{Watched, most};
use mpc::{Bilinear, Protocol, Result, functions};
use std::sync::{Mutex, PoisonError};
use testkit::{Shared, run};

#[global_allocator]
static MEMORY: Watched = Watched;

/// Runs one measurement at a time, since memory is counted for the whole process.
fn alone<T>(work: impl FnOnce() -> T) -> (usize, T) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    most(work)
}

/// Returns images that need nearly a thousand times as much memory unfolded: two of them need 0.27
/// GB for 64 × 64 weights.
fn map(side: usize) -> Bilinear {
    Bilinear::Convolution(Convolution {
        batch: 2,
        groups: 1,
        in_channels: 1,
        out_channels: 1,
        input: [2 * side, 2 * side],
        kernel: [side, side],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
    })
}

/// Returns the most bytes that all parties hold at once.
fn held(protocol: &str, side: usize) -> usize {
    let map = map(side);
    let multiply = |p: &mut dyn Protocol| -> Result<()> {
        let (left, right, _) = map.lengths();
        let (x, y) = (Shared::zeros(p, left), Shared::zeros(p, right));
        x.bilinear(p, &map, &y, None)?.open(p).map(drop)
    };
    let (held, _) = alone(|| run(protocol, 2, multiply));
    println!("{protocol}: {} MB held at once", held / 1_000_000);
    held
}

/// Both parties together hold less than their unfolded images would take: 0.55 GB. By transfer,
/// products take so long that smaller images are used: 0.14 GB.
#[test]
fn images_of_a_batch_are_never_unfolded_at_once() {
    let encrypted = held("additive_2_he", 64);
    assert!(encrypted < 400_000_000, "{encrypted} bytes");
    let transferred = held("additive_2_ot", 32);
    assert!(transferred < 130_000_000, "{transferred} bytes");
}

/// Returns the most bytes that one party holds at once, beyond operand and result.
fn held_by_low_bits(n: usize) -> usize {
    let number = |i: u64| i << 31 | i;
    let (held, found) = alone(|| {
        let numbers: Vec<u64> = (0..n as u64).map(number).collect();
        run("plain", 1, |p| {
            let mut out = vec![0; n];
            functions::low_bits(p, &[&numbers], 32, &mut [&mut out])?;
            Ok(out)
        })
    });
    let expected = (0..n as u64).map(|i| number(i) & u64::from(u32::MAX));
    assert!(found[0].iter().copied().eq(expected), "low bits of {n}");
    held - 16 * n
}

/// A word for each bit would take 0.8 GB.
#[test]
fn bits_of_many_numbers_are_not_all_words_at_once() {
    let n = 3_200_001;
    let held = held_by_low_bits(n);
    println!("low bits of {n}: {} MB held at once", held / 1_000_000);
    assert!(held < 250_000_000, "{held} bytes");
}
