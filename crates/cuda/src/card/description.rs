//! What a call computes: its description, and the lengths that it needs.

use kernels::bilinear::Bilinear;
use kernels::device::Term;

/// Describes a map, for errors.
pub fn of(map: &Bilinear) -> String {
    let matrices = |batch: usize, m: usize, k: usize, n: usize| {
        format!("the {} of {batch} × {m}×{k} by {k}×{n}", map.name())
    };
    match *map {
        Bilinear::Elementwise { n } => format!("{} of {n}", map.name()),
        Bilinear::Matrix { batch, m, k, n } | Bilinear::ByTransposed { batch, m, k, n } => {
            matrices(batch, m, k, n)
        }
        Bilinear::Convolution(shape) => format!(
            "the {} of {} × {}×{}×{} by {}×{}×{}×{}",
            map.name(),
            shape.batch,
            shape.in_channels,
            shape.input[0],
            shape.input[1],
            shape.out_channels,
            shape.in_channels / shape.groups,
            shape.kernel[0],
            shape.kernel[1],
        ),
    }
}

/// Checks the lengths of slices.
///
/// # Panics
/// If one differs from what the map says.
pub fn check(map: &Bilinear, out: &[u64], terms: &[Term]) {
    if let Bilinear::Convolution(shape) = map {
        if let Err(error) = shape.validate() {
            panic!("{error}");
        }
    }
    let (left, right, result) = map.lengths();
    assert_eq!(out.len(), result, "words of a {}", map.name());
    for term in terms {
        assert_eq!(term.x.len(), left, "words of a left operand");
        assert_eq!(term.y.len(), right, "words of a right operand");
    }
}
