//! What making correlations holds at once, whatever the sizes.

use mpc::{Bilinear, Protocol, Result};
use ring::convolution::Convolution;
use ring::memory::{Watched, most};
use testkit::{Shared, run};

#[global_allocator]
static MEMORY: Watched = Watched;

/// Images that take a thousand times as much unfolded.
fn map() -> Bilinear {
    Bilinear::Convolution(Convolution {
        batch: 2,
        groups: 1,
        in_channels: 1,
        out_channels: 1,
        input: [128, 128],
        kernel: [64, 64],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
    })
}

fn multiply(p: &mut dyn Protocol) -> Result<()> {
    let (left, right, _) = map().lengths();
    let (x, y) = (Shared::zeros(p, left), Shared::zeros(p, right));
    x.bilinear(p, &map(), &y, None)?.open(p).map(drop)
}

/// Both parties together hold less than 0.4 GB, though their images take 0.55 GB unfolded.
#[test]
fn images_of_a_batch_are_never_unfolded_at_once() {
    let (held, _) = most(|| run("additive_2_he", 2, multiply));
    println!("{} MB held at once", held / 1_000_000);
    assert!(held < 400_000_000, "{held} bytes");
}
