//! Kinds and maps as words, as jobs are encoded ([`super::job`]).

use super::kind::Kind;
use crate::Bilinear;
use crate::leaves::Wanted;
use kernels::convolution::Convolution;

/// Largest number of elements of a batch or operand, and of words of an answer: the limit of a
/// message.
pub(super) const MOST: u64 = 1 << 27;

/// Returns the tag and the parameters of a kind.
pub(super) fn encode_kind(kind: Kind) -> (u64, [u64; 2]) {
    match kind {
        Kind::Triples => (0, [0, 0]),
        Kind::Squares => (1, [0, 0]),
        Kind::BitTriples { rights } => (2, [rights as u64, 0]),
        Kind::RingBits => (3, [0, 0]),
        Kind::RingWithBits { width } => (4, [width as u64, 0]),
        Kind::RingWithMonomials { wanted, positions } => {
            (5, [u64::from(wanted == Wanted::Carry), positions as u64])
        }
        Kind::Truncations { bits } => (6, [bits.into(), 0]),
        Kind::CrossBits { bits } => (7, [bits.into(), 0]),
        Kind::Selections => (8, [0, 0]),
        Kind::GuardedSelections { below, reach } => (9, [below.into(), reach.into()]),
        Kind::Lifts => (10, [0, 0]),
        Kind::CrossWords { bits } => (11, [bits.into(), 0]),
        Kind::CrossResidues => (13, [0, 0]),
        Kind::CheckedTruncations { bits } => (14, [bits.into(), 0]),
        Kind::ResidueTriples => (15, [0, 0]),
        Kind::CheckedTriples => (16, [0, 0]),
        Kind::CheckedSquares => (17, [0, 0]),
        Kind::Guards { below, reach } => (12, [below.into(), reach.into()]),
        Kind::LookUps { wanted, positions } => {
            (18, [u64::from(wanted == Wanted::Carry), positions as u64])
        }
        Kind::CrossSelections => (19, [0, 0]),
    }
}

/// Reads a kind from its tag and parameters, which may be malformed.
pub(super) fn decode_kind(words: &[u64]) -> Option<Kind> {
    let (first, second) = (words[1], words[2]);
    let within = |range: std::ops::RangeInclusive<u64>, value: u64| {
        range.contains(&value).then_some(value as usize)
    };
    Some(match words[0] {
        0 => Kind::Triples,
        1 => Kind::Squares,
        2 => Kind::BitTriples {
            rights: within(1..=2, first)?,
        },
        3 => Kind::RingBits,
        4 => Kind::RingWithBits {
            width: within(1..=64, first)?,
        },
        5 => {
            let (wanted, positions) = decode_spans(first, second)?;
            Kind::RingWithMonomials { wanted, positions }
        }
        6 => Kind::Truncations {
            bits: within(1..=61, first)? as u32,
        },
        7 => Kind::CrossBits {
            bits: within(1..=61, first)? as u32,
        },
        8 => Kind::Selections,
        9 => {
            let below = within(2..=62, first)? as u32;
            Kind::GuardedSelections {
                below,
                reach: within(2..=u64::from(64 - below), second)? as u32,
            }
        }
        10 => Kind::Lifts,
        11 => Kind::CrossWords {
            bits: within(1..=63, first)? as u32,
        },
        12 => {
            let below = within(2..=62, first)? as u32;
            Kind::Guards {
                below,
                reach: within(2..=u64::from(64 - below), second)? as u32,
            }
        }
        13 => Kind::CrossResidues,
        14 => Kind::CheckedTruncations {
            bits: within(1..=61, first)? as u32,
        },
        15 => Kind::ResidueTriples,
        16 => Kind::CheckedTriples,
        17 => Kind::CheckedSquares,
        18 => {
            let (wanted, positions) = decode_spans(first, second)?;
            Kind::LookUps { wanted, positions }
        }
        19 => Kind::CrossSelections,
        _ => return None,
    })
}

/// Reads what spans of positions are for, and how many positions they have.
fn decode_spans(wanted: u64, positions: u64) -> Option<(Wanted, usize)> {
    let (wanted, most) = match wanted {
        0 => (Wanted::Propagate, 64),
        1 => (Wanted::Carry, 63),
        _ => return None,
    };
    (1..=most)
        .contains(&positions)
        .then_some((wanted, positions as usize))
}

/// Returns the tag and the sizes of a map.
pub(super) fn encode_map(map: &Bilinear) -> Vec<usize> {
    match *map {
        Bilinear::Elementwise { n } => vec![0, n],
        Bilinear::Matrix { batch, m, k, n } => vec![1, batch, m, k, n],
        Bilinear::ByTransposed { batch, m, k, n } => vec![3, batch, m, k, n],
        Bilinear::Convolution(shape) => {
            let mut words = vec![
                2,
                shape.batch,
                shape.groups,
                shape.in_channels,
                shape.out_channels,
            ];
            for pair in [
                shape.input,
                shape.kernel,
                shape.stride,
                shape.padding,
                shape.dilation,
            ] {
                words.extend(pair);
            }
            words
        }
    }
}

/// Reads a map from its tag and sizes, which may be malformed.
pub(super) fn decode_map(words: &[u64]) -> Option<Bilinear> {
    let sizes: Vec<usize> = words
        .iter()
        .map(|word| {
            usize::try_from(*word)
                .ok()
                .filter(|size| *size as u64 <= MOST)
        })
        .collect::<Option<_>>()?;
    let bounded = |factors: &[usize]| {
        factors
            .iter()
            .try_fold(1_usize, |product, size| product.checked_mul(*size))
            .is_some_and(|product| product as u64 <= MOST)
    };
    Some(match sizes[0] {
        0 => Bilinear::Elementwise { n: sizes[1] },
        kind @ (1 | 3) => {
            let [batch, m, k, n] = [sizes[1], sizes[2], sizes[3], sizes[4]];
            let all = [[batch, m, k], [batch, k, n], [batch, m, n]];
            if !all.iter().all(|factors| bounded(factors)) {
                return None;
            }
            match kind {
                1 => Bilinear::Matrix { batch, m, k, n },
                _ => Bilinear::ByTransposed { batch, m, k, n },
            }
        }
        2 => {
            let pair = |at: usize| [sizes[at], sizes[at + 1]];
            let shape = Convolution {
                batch: sizes[1],
                groups: sizes[2],
                in_channels: sizes[3],
                out_channels: sizes[4],
                input: pair(5),
                kernel: pair(7),
                stride: pair(9),
                padding: pair(11),
                dilation: pair(13),
            };
            shape.validate().ok()?;
            Bilinear::Convolution(shape)
        }
        _ => return None,
    })
}
