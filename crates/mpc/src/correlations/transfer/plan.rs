//! Bilinear maps as products of a matrix of scalars, in rows of k, with matrices of values, k×n.

use crate::Bilinear;
use crate::group::Group;
use kernels::convolution::{Convolution, unfold};
use kernels::matrix::transposed;
use std::borrow::Cow;
use std::ops::Range;

/// Layout of an operand's words as matrices of scalars. Two layouts are equal exactly if they
/// turn equal words into equal scalars, in one order and in equal blocks. Then what was sent for a
/// kept mask in one layout serves the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Rows of one matrix of scalars.
    rows: usize,
    /// Scalars of a row.
    k: usize,
    /// Whether the words lie transposed, each matrix k×rows.
    transposed: bool,
}

/// Product of a matrix of scalars with a matrix of values, as part of a map.
pub(super) struct Piece<'a> {
    /// Rows within all scalars, beginning where the previous piece ends.
    pub rows: Range<usize>,
    values: Values<'a>,
}

/// This party's values, k×n, in the operand. They are laid out block by block, as they are
/// multiplied: unfolded images of a whole batch take many times the memory of the batch.
enum Values<'a> {
    /// Matrix as it is, with rows of this length.
    Rows(&'a [u64], usize),
    /// Matrix to be transposed, with rows of this length.
    Transposed(&'a [u64], usize),
    /// Images of a group by kernel position: a row for each channel and position in the kernel, a
    /// column for each image and position in the output.
    Images(&'a [u64], Convolution, usize),
}

impl Piece<'_> {
    /// Returns the given rows and columns of the values, row-major.
    pub fn block(&self, rows: Range<usize>, columns: Range<usize>) -> Cow<'_, [u64]> {
        let mut out = Vec::new();
        match self.values {
            Values::Rows(words, n) if columns == (0..n) => {
                return Cow::Borrowed(&words[rows.start * n..rows.end * n]);
            }
            Values::Rows(words, n) => {
                out.reserve_exact(rows.len() * columns.len());
                for row in words[rows.start * n..rows.end * n].chunks_exact(n) {
                    out.extend_from_slice(&row[columns.clone()]);
                }
            }
            Values::Transposed(words, k) => {
                out.resize(rows.len() * columns.len(), 0);
                for (at, column) in columns.clone().enumerate() {
                    let words = &words[column * k..][rows.clone()];
                    for (row, word) in words.iter().enumerate() {
                        out[row * columns.len() + at] = *word;
                    }
                }
            }
            Values::Images(images, shape, group) => {
                out.resize(rows.len() * columns.len(), 0);
                unfold(&shape, images, group, rows, columns, &mut out);
            }
        }
        Cow::Owned(out)
    }
}

/// Map as pieces: which operand gives the scalars, and how results are put together.
pub(super) struct Plan<'a> {
    /// Whether the left operand gives the scalars.
    pub scalars_are_left: bool,
    pub layout: Layout,
    /// Scalars, row-major, k to a row.
    pub scalars: Cow<'a, [u64]>,
    pub k: usize,
    pub n: usize,
    pub pieces: Vec<Piece<'a>>,
}

impl<'a> Plan<'a> {
    /// Plans a map. The scalars are the operand that is kept, or else the one with fewer elements.
    /// For a convolution, they are the weights.
    pub fn new(map: &Bilinear, x: &'a [u64], y: &'a [u64], [keep_x, keep_y]: [bool; 2]) -> Self {
        match *map {
            Bilinear::Matrix { batch, m, k, n } | Bilinear::ByTransposed { batch, m, k, n } => {
                let scalars_are_left = keep_x && !keep_y || keep_x == keep_y && m <= n;
                let is_transposed = matches!(map, Bilinear::ByTransposed { .. });
                Self::of_matrices([x, y], [batch, m, k, n], scalars_are_left, is_transposed)
            }
            Bilinear::Convolution(shape) => {
                let out = shape.out_channels / shape.groups;
                let k = shape.weight_len() / shape.out_channels;
                Self {
                    scalars_are_left: false,
                    layout: Layout {
                        rows: out,
                        k,
                        transposed: false,
                    },
                    scalars: Cow::Borrowed(y),
                    k,
                    n: shape.output_len() / shape.out_channels,
                    pieces: (0..shape.groups)
                        .map(|group| Piece {
                            rows: group * out..(group + 1) * out,
                            values: Values::Images(x, shape, group),
                        })
                        .collect(),
                }
            }
            Bilinear::Elementwise { .. } => unreachable!("handled without a plan"),
        }
    }

    /// Plans matrix products. Scalars from the right operand are its columns, which lie as rows if
    /// it is transposed.
    fn of_matrices(
        [x, y]: [&'a [u64]; 2],
        [batch, m, k, n]: [usize; 4],
        scalars_are_left: bool,
        is_transposed: bool,
    ) -> Self {
        let rows = if scalars_are_left { m } else { n };
        let to_transpose = !scalars_are_left && !is_transposed;
        let scalars = match [scalars_are_left, to_transpose] {
            [true, _] => Cow::Borrowed(x),
            [_, true] => (y.chunks_exact(k * n).flat_map(|y| transposed(y, k, n))).collect(),
            _ => Cow::Borrowed(y),
        };
        let values = |at: usize| match [scalars_are_left, is_transposed] {
            [true, false] => Values::Rows(&y[at * k * n..][..k * n], n),
            [true, true] => Values::Transposed(&y[at * k * n..][..k * n], k),
            _ => Values::Transposed(&x[at * m * k..][..m * k], k),
        };
        let piece = |at: usize| Piece {
            rows: at * rows..(at + 1) * rows,
            values: values(at),
        };
        Self {
            scalars_are_left,
            layout: Layout {
                rows,
                k,
                transposed: to_transpose,
            },
            scalars,
            k,
            n: m * n / rows,
            pieces: (0..batch).map(piece).collect(),
        }
    }

    /// Returns the number of elements of the results of all pieces, which follow each other as
    /// their rows do.
    pub fn results(&self) -> usize {
        self.scalars.len() / self.k * self.n
    }

    /// Adds the rows of the pieces to the results where they belong.
    pub fn collect(&self, map: &Bilinear, rows: &[u64], out: &mut [u64]) {
        match *map {
            Bilinear::Matrix { .. } | Bilinear::ByTransposed { .. } if self.scalars_are_left => {
                Group::Additive.add(out, rows);
            }
            Bilinear::Matrix { m, n, .. } | Bilinear::ByTransposed { m, n, .. } => {
                for (out, rows) in out.chunks_exact_mut(m * n).zip(rows.chunks_exact(m * n)) {
                    Group::Additive.add(out, &transposed(rows, n, m));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns different words.
    fn words(n: usize) -> Vec<u64> {
        (1..=n as u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect()
    }

    /// Checks blocks against the definition of the matrix of values, given by row and column.
    fn check(piece: &Piece, k: usize, n: usize, value: impl Fn(usize, usize) -> u64) {
        for rows in [0..k, 0..1, k / 2..k, k - 1..k] {
            for columns in [0..n, 0..1, n / 3..n, n / 4..n - n / 4, n - 1..n] {
                let expected: Vec<u64> = (rows.clone())
                    .flat_map(|row| columns.clone().map(move |column| (row, column)))
                    .map(|(row, column)| value(row, column))
                    .collect();
                assert!(*piece.block(rows.clone(), columns) == expected);
            }
        }
    }

    #[test]
    fn blocks_of_matrices_are_those_of_the_definition() {
        let (batch, m, k, n) = (2, 3, 5, 7);
        let map = Bilinear::Matrix { batch, m, k, n };
        let (x, y) = (words(batch * m * k), words(batch * k * n));
        for (at, piece) in Plan::new(&map, &x, &y, [true, false])
            .pieces
            .iter()
            .enumerate()
        {
            check(piece, k, n, |row, column| y[(at * k + row) * n + column]);
        }
        for (at, piece) in Plan::new(&map, &x, &y, [false, true])
            .pieces
            .iter()
            .enumerate()
        {
            check(piece, k, m, |row, column| x[(at * m + column) * k + row]);
        }
        let map = Bilinear::ByTransposed { batch, m, k, n };
        let plan = Plan::new(&map, &x, &y, [true, false]);
        for (at, piece) in plan.pieces.iter().enumerate() {
            check(piece, k, n, |row, column| y[(at * n + column) * k + row]);
        }
        let plan = Plan::new(&map, &x, &y, [false, true]);
        for (at, piece) in plan.pieces.iter().enumerate() {
            check(piece, k, m, |row, column| x[(at * m + column) * k + row]);
        }
        assert!(*plan.scalars == *y, "the rows were reordered");
    }

    #[test]
    fn blocks_of_images_are_those_of_the_definition() {
        let shape = Convolution {
            batch: 3,
            groups: 2,
            in_channels: 4,
            out_channels: 6,
            input: [7, 9],
            kernel: [3, 2],
            stride: [2, 1],
            padding: [1, 2],
            dilation: [1, 3],
        };
        let [height, width] = shape.output();
        let (x, y) = (words(shape.input_len()), words(shape.weight_len()));
        let plan = Plan::new(&Bilinear::Convolution(shape), &x, &y, [false, true]);
        for (group, piece) in plan.pieces.iter().enumerate() {
            check(piece, plan.k, plan.n, |row, column| {
                let (channel, ky, kx) = (row / 6, row / 2 % 3, row % 2);
                let (image, pixel) = (column / (height * width), column % (height * width));
                let at = [pixel / width * 2 + ky, pixel % width + kx * 3];
                let place = (at[0].checked_sub(1).filter(|at| *at < 7))
                    .zip(at[1].checked_sub(2).filter(|at| *at < 9));
                let plane = image * 4 + group * 2 + channel;
                place.map_or(0, |(line, place)| x[(plane * 7 + line) * 9 + place])
            });
        }
    }
}
