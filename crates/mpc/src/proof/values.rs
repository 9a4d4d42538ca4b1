//! Elements and blocks: their words, their masks, and sums of the values of a polynomial.

use super::ring::{Ring, Value};
use kernels::stream::Stream;

/// Returns the sum of the values at {0, 1}^n of a polynomial that is given by its values at {0, 1,
/// ∞}^n, each times its weight.
pub(super) fn sum_at_corners<E: Value>(vertices: &[E], weight: impl Fn(usize, &E) -> E) -> E {
    let mut sum = E::ZERO;
    let mut corner = 0;
    for (vertex, value) in vertices.iter().enumerate() {
        let mut digits = vertex;
        let mut is_corner = true;
        while digits > 0 {
            is_corner &= digits % 3 < 2;
            digits /= 3;
        }
        if is_corner {
            sum = sum.add(&weight(corner, value));
            corner += 1;
        }
    }
    sum
}

/// Draws elements that are uniform.
pub(super) fn uniform<R: Ring>(stream: &mut Stream, count: usize) -> Vec<R::Element> {
    let mut words = vec![0; R::WORDS * count];
    stream.reserve(words.len()).fill(0, &mut words);
    elements::<R>(&words)
}

/// Draws the block that blinds what is left of one side.
pub(super) fn blinding<R: Ring>(stream: &mut Stream) -> R::Block {
    R::block(&uniform::<R>(stream, R::LANES))
}

/// Reads elements from words.
pub(super) fn elements<R: Ring>(words: &[u64]) -> Vec<R::Element> {
    words.chunks_exact(R::WORDS).map(R::element).collect()
}

/// Writes elements as words.
pub(super) fn words<'a, R: Ring>(elements: impl IntoIterator<Item = &'a R::Element>) -> Vec<u64>
where
    R::Element: 'a,
{
    let mut words = Vec::new();
    for element in elements {
        R::write(element, &mut words);
    }
    words
}
