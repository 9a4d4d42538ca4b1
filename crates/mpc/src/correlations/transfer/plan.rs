//! A bilinear map as products of a matrix of scalars, rows of k, with matrices of values, k×n.

use crate::Bilinear;
use crate::group::Group;
use ring::convolution::Convolution;
use std::ops::Range;

/// How the words of an operand are laid out as matrices of scalars. Two layouts are equal exactly when they make
/// the same scalars of the same words, in the same order and blocks: what was sent for a kept mask in the one
/// serves the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Rows of one matrix of scalars.
    rows: usize,
    /// Scalars of a row.
    k: usize,
    /// Whether the words lie the other way round, each matrix k×rows.
    turned: bool,
}

/// A product of a matrix of scalars with a matrix of values, as part of a map.
pub(super) struct Piece {
    /// Rows of all scalars, from where the piece before ends.
    pub rows: Range<usize>,
    /// This party's values, k×n.
    pub values: Vec<u64>,
}

/// A map as pieces: which operand gives the scalars, and how results are put together.
pub(super) struct Plan {
    /// Whether the left operand gives the scalars.
    pub scalars_are_left: bool,
    pub layout: Layout,
    /// Row-major, k to a row.
    pub scalars: Vec<u64>,
    pub k: usize,
    pub n: usize,
    pub pieces: Vec<Piece>,
}

impl Plan {
    /// The scalars are the operand that is kept, or else the one with fewer elements; of a convolution the
    /// weights.
    pub fn new(map: &Bilinear, x: &[u64], y: &[u64], [keep_x, keep_y]: [bool; 2]) -> Self {
        match *map {
            Bilinear::Matrix { batch, m, k, n }
                if keep_x && !keep_y || keep_x == keep_y && m <= n =>
            {
                Self {
                    scalars_are_left: true,
                    layout: Layout {
                        rows: m,
                        k,
                        turned: false,
                    },
                    scalars: x.to_vec(),
                    k,
                    n,
                    pieces: (0..batch)
                        .map(|at| Piece {
                            rows: at * m..(at + 1) * m,
                            values: y[at * k * n..(at + 1) * k * n].to_vec(),
                        })
                        .collect(),
                }
            }
            Bilinear::Matrix { batch, m, k, n } => Self {
                scalars_are_left: false,
                layout: Layout {
                    rows: n,
                    k,
                    turned: true,
                },
                scalars: y
                    .chunks_exact(k * n)
                    .flat_map(|y| turned(y, k, n))
                    .collect(),
                k,
                n: m,
                pieces: (0..batch)
                    .map(|at| Piece {
                        rows: at * n..(at + 1) * n,
                        values: turned(&x[at * m * k..(at + 1) * m * k], m, k),
                    })
                    .collect(),
            },
            Bilinear::Convolution(shape) => {
                let out = shape.out_channels / shape.groups;
                let k = shape.weight_len() / shape.out_channels;
                Self {
                    scalars_are_left: false,
                    layout: Layout {
                        rows: out,
                        k,
                        turned: false,
                    },
                    scalars: y.to_vec(),
                    k,
                    n: shape.output_len() / shape.out_channels,
                    pieces: (0..shape.groups)
                        .map(|group| Piece {
                            rows: group * out..(group + 1) * out,
                            values: unfolded(&shape, x, group),
                        })
                        .collect(),
                }
            }
            Bilinear::Elementwise { .. } => unreachable!("handled without a plan"),
        }
    }

    /// Elements of the results of all pieces, which follow each other as their rows do.
    pub fn results(&self) -> usize {
        self.scalars.len() / self.k * self.n
    }

    /// Adds the pieces' rows where they belong.
    pub fn collect(&self, map: &Bilinear, rows: &[u64], out: &mut [u64]) {
        match *map {
            Bilinear::Matrix { .. } if self.scalars_are_left => Group::Additive.add(out, rows),
            Bilinear::Matrix { m, n, .. } => {
                for (out, rows) in out.chunks_exact_mut(m * n).zip(rows.chunks_exact(m * n)) {
                    Group::Additive.add(out, &turned(rows, n, m));
                }
            }
            Bilinear::Convolution(shape) => {
                let positions = self.n / shape.batch;
                for (at, row) in rows.chunks_exact(positions).enumerate() {
                    let (channel, image) = (at / shape.batch, at % shape.batch);
                    let place = (image * shape.out_channels + channel) * positions;
                    Group::Additive.add(&mut out[place..][..positions], row);
                }
            }
            Bilinear::Elementwise { .. } => unreachable!("handled without a plan"),
        }
    }
}

/// The transpose of a row-major matrix.
fn turned(matrix: &[u64], rows: usize, columns: usize) -> Vec<u64> {
    let mut out = vec![0; matrix.len()];
    for (row, words) in matrix.chunks_exact(columns).enumerate() {
        for (column, word) in words.iter().enumerate() {
            out[column * rows + row] = *word;
        }
    }
    out
}

/// A group's images by kernel place: a row for each channel and place in the kernel, a column for each
/// image and place in the output.
fn unfolded(shape: &Convolution, x: &[u64], group: usize) -> Vec<u64> {
    let channels = shape.in_channels / shape.groups;
    let ([height, width], [rows, columns]) = (shape.input, shape.output());
    let mut out = Vec::with_capacity(
        channels * shape.kernel[0] * shape.kernel[1] * shape.batch * rows * columns,
    );
    for channel in group * channels..(group + 1) * channels {
        for (ky, kx) in places(shape.kernel) {
            for image in 0..shape.batch {
                let plane =
                    &x[(image * shape.in_channels + channel) * height * width..][..height * width];
                for (row, column) in places([rows, columns]) {
                    let y = row * shape.stride[0] + ky * shape.dilation[0];
                    let x = column * shape.stride[1] + kx * shape.dilation[1];
                    let inside = |at: usize, padding: usize, size: usize| {
                        at.checked_sub(padding).filter(|at| *at < size)
                    };
                    let place =
                        inside(y, shape.padding[0], height).zip(inside(x, shape.padding[1], width));
                    out.push(place.map_or(0, |(y, x)| plane[y * width + x]));
                }
            }
        }
    }
    out
}

fn places(sizes: [usize; 2]) -> impl Iterator<Item = (usize, usize)> {
    (0..sizes[0]).flat_map(move |a| (0..sizes[1]).map(move |b| (a, b)))
}
