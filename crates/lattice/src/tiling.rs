//! How a product of matrices becomes products of polynomials.
//!
//! **Packing** (as in Huang, Lu, Hong, Ding, "Cheetah: lean and fast secure two-party deep neural network
//! inference", USENIX Security 2022, section 3). Blocks of m'×k' scalars and k'×n' values, with m'·k'·n' the
//! degree, stand in polynomials as Σ a_ij X^(i·k'n' + k'−1−j) and Σ b_jl X^(l·k' + j). In their product the
//! coefficient of X^(i·k'n' + l·k' + k'−1) is Σ_j a_ij·b_jl: other pairs land on other remainders modulo k',
//! and so do those that pass X^N. Blocks along the depth are added before anything is sent.

use ring::polynomial::DEGREE;

/// The deepest block: at least 64 coefficients of a product are of use.
const DEEPEST: usize = 128;

/// Errors times values, each of 64 bits, that the noise of a coefficient sums at most: see `answers`.
const MOST_TERMS: usize = 1 << 18;

/// Bytes that a ciphertext takes on the wire, and an answer without its useful coefficients.
const CIPHERTEXT: u64 = 204_800;
const ANSWER: u64 = 102_400;

/// Bytes that a useful coefficient takes, doubled.
const TWO_COEFFICIENTS: u64 = 25;

/// Bytes worth a microsecond of one core: a link of 2 Gbit/s.
const MICROSECOND: u64 = 250;

/// Microseconds of a ciphertext, of an answer, of a block of values, and of ten products; both ends
/// together, on a core with AVX-512.
const TIMES: [u64; 4] = [470, 700, 50, 120];

/// Rows, depth and columns of a block; powers of two whose product is the degree.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tiling {
    rows: usize,
    depth: usize,
    columns: usize,
}

impl Tiling {
    /// The cheapest for products of m×k scalars, newly encrypted, with k×n values.
    #[must_use]
    pub fn new(m: usize, k: usize, n: usize) -> Self {
        Self::all(m, k)
            .min_by_key(|tiling| tiling.cost(m, k, n))
            .expect("a block of one scalar")
    }

    /// All for m rows of k scalars.
    pub(crate) fn all(m: usize, k: usize) -> impl Iterator<Item = Self> {
        let powers = |most: usize| (0..=most.ilog2()).map(|bits| 1_usize << bits);
        powers(k.next_power_of_two().min(DEEPEST)).flat_map(move |depth| {
            powers(m.next_power_of_two().min(DEGREE / depth)).map(move |rows| Self {
                rows,
                depth,
                columns: DEGREE / (rows * depth),
            })
        })
    }

    /// What a product costs, in bytes sent and received by one party and time worth as many.
    #[must_use]
    pub fn cost(&self, m: usize, k: usize, n: usize) -> u64 {
        let rows = m.div_ceil(self.rows) as u64;
        let (depths, columns) = (self.depths(k) as u64, self.column_blocks(n) as u64);
        let useful = (self.rows * self.columns) as u64 * TWO_COEFFICIENTS / 2;
        let times = k.div_ceil(self.deepest()) as u64;
        let (ciphertexts, answers) = (rows * depths, rows * columns * times);
        let [ciphertext, answer, values, products] = TIMES;
        ciphertexts * (CIPHERTEXT + ciphertext * MICROSECOND)
            + answers * (ANSWER + useful + answer * MICROSECOND)
            + columns * depths * values * MICROSECOND
            + ciphertexts * columns * products * MICROSECOND / 10
    }

    /// Rows of a block.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Scalars of a row that are summed up before they are answered at most: more would make more noise
    /// than masks hide.
    #[must_use]
    pub fn deepest(&self) -> usize {
        MOST_TERMS / self.columns
    }

    /// Depth of a block.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Columns of a block.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Blocks along k scalars of a row.
    #[must_use]
    pub fn depths(&self, k: usize) -> usize {
        k.div_ceil(self.depth)
    }

    /// Blocks along n columns.
    #[must_use]
    pub fn column_blocks(&self, n: usize) -> usize {
        n.div_ceil(self.columns)
    }

    /// Where each scalar of a block stands, with its place among rows of k: of the block at this row and
    /// depth.
    pub(crate) fn scalars(&self, m: usize, k: usize, row: usize, depth: usize) -> Places {
        let (i, j) = (row * self.rows, depth * self.depth);
        let rows = self.rows.min(m - i);
        let depths = self.depth.min(k - j);
        (0..rows)
            .flat_map(|at| (0..depths).map(move |of| (at, of)))
            .map(|(at, of)| {
                let place = at * self.depth * self.columns + self.depth - 1 - of;
                (place, (i + at) * k + j + of)
            })
            .collect()
    }

    /// The same of the values, k rows of n.
    pub(crate) fn values(&self, k: usize, n: usize, depth: usize, column: usize) -> Places {
        let (j, l) = (depth * self.depth, column * self.columns);
        let depths = self.depth.min(k - j);
        let columns = self.columns.min(n - l);
        (0..depths)
            .flat_map(|of| (0..columns).map(move |at| (of, at)))
            .map(|(of, at)| (at * self.depth + of, (j + of) * n + l + at))
            .collect()
    }

    /// The same of the useful coefficients of a product, m rows of n.
    pub(crate) fn products(&self, m: usize, n: usize, row: usize, column: usize) -> Places {
        let (i, l) = (row * self.rows, column * self.columns);
        let rows = self.rows.min(m - i);
        let columns = self.columns.min(n - l);
        (0..rows)
            .flat_map(|at| (0..columns).map(move |of| (at, of)))
            .map(|(at, of)| {
                let place = (at * self.columns + of + 1) * self.depth - 1;
                (place, (i + at) * n + l + of)
            })
            .collect()
    }
}

/// Coefficients of a polynomial, each with an element of a matrix.
pub(crate) type Places = Vec<(usize, usize)>;
