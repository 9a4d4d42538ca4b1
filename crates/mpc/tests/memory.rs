//! What making correlations holds at once, whatever the sizes.

use mpc::{Bilinear, Protocol, Result};
use ring::convolution::Convolution;
use ring::memory::{Watched, most};
use testkit::{Shared, run};

#[global_allocator]
static MEMORY: Watched = Watched;

/// Images that take a thousand times as much unfolded, or nearly: of two at once 0.27 GB for 64 × 64 weights.
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

/// Bytes that all parties hold at once at most.
fn held(protocol: &str, side: usize) -> usize {
    let map = map(side);
    let multiply = |p: &mut dyn Protocol| -> Result<()> {
        let (left, right, _) = map.lengths();
        let (x, y) = (Shared::zeros(p, left), Shared::zeros(p, right));
        x.bilinear(p, &map, &y, None)?.open(p).map(drop)
    };
    let (held, _) = most(|| run(protocol, 2, multiply));
    println!("{protocol}: {} MB held at once", held / 1_000_000);
    held
}

/// Both parties together hold less than their images take unfolded: 0.55 GB, and by transfer, where products take so long
/// that images are smaller, 0.14 GB.
#[test]
fn images_of_a_batch_are_never_unfolded_at_once() {
    let encrypted = held("additive_2_he", 64);
    assert!(encrypted < 400_000_000, "{encrypted} bytes");
    let transferred = held("additive_2_ot", 32);
    assert!(transferred < 130_000_000, "{transferred} bytes");
}
