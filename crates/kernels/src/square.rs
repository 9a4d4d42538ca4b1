//! Transposition of squares of eight rows and eight words, in registers.

/// The number of rows and of words that are transposed together. Eight words are a cache line.
pub(crate) const SQUARE: usize = 8;

/// Consecutive words of a row.
pub(crate) type Line = [u64; SQUARE];

/// Transposes a square: exchanges single words, then pairs, then halves.
#[inline(always)]
pub(crate) fn transpose([a, b, c, d, e, f, g, h]: [Line; SQUARE]) -> [Line; SQUARE] {
    let ([a, b], [c, d], [e, f], [g, h]) = (
        exchange::<1>(a, b),
        exchange::<1>(c, d),
        exchange::<1>(e, f),
        exchange::<1>(g, h),
    );
    let ([a, c], [b, d], [e, g], [f, h]) = (
        exchange::<2>(a, c),
        exchange::<2>(b, d),
        exchange::<2>(e, g),
        exchange::<2>(f, h),
    );
    let ([a, e], [b, f], [c, g], [d, h]) = (
        exchange::<4>(a, e),
        exchange::<4>(b, f),
        exchange::<4>(c, g),
        exchange::<4>(d, h),
    );
    [a, b, c, d, e, f, g, h]
}

/// Exchanges runs of `WIDTH` words: of each two runs, the second one of the first line and the
/// first one of the second line.
#[inline(always)]
fn exchange<const WIDTH: usize>(first: Line, second: Line) -> [Line; 2] {
    let upper = |i: usize| i & WIDTH != 0;
    [
        std::array::from_fn(|i| {
            if upper(i) {
                second[i - WIDTH]
            } else {
                first[i]
            }
        }),
        std::array::from_fn(|i| {
            if upper(i) {
                second[i]
            } else {
                first[i + WIDTH]
            }
        }),
    ]
}
