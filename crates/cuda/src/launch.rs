//! The kernels, their arguments, and the checks that they stay within their regions.
//!
//! The structures are those of `kernels/*.cu`. A runtime turns regions into pointers.

use crate::region::Region;
use kernels::third::Summand;

/// Threads of a block.
pub const THREADS: u32 = 256;

/// The source of all kernels, as NVRTC compiles it.
pub const SOURCE: &str = concat!(
    include_str!("../kernels/device.h"),
    include_str!("../kernels/decompose.cu"),
    include_str!("../kernels/recompose.cu"),
);

/// How elements of a matrix lie among an operand's words. `kernels/decompose.cu` says what the
/// fields mean.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// Words between independent matrices.
    pub item_stride: usize,
    /// Lines and columns of a row's outer index.
    pub row_inner: [usize; 2],
    /// Lines and columns of a place's outer index, along the depth.
    pub depth_inner: [usize; 2],
    /// Words between outer indices of rows.
    pub row_stride: usize,
    /// Words between outer indices along the depth.
    pub depth_stride: usize,
    /// How lines follow from rows' lines, and columns from rows' columns.
    pub step: [usize; 2],
    /// How lines follow from lines along the depth, and columns from columns.
    pub dilation: [usize; 2],
    /// What is subtracted from lines and from columns.
    pub padding: [usize; 2],
    /// Height and width, outside of which words are zero.
    pub size: [usize; 2],
}

impl Gather {
    /// Returns the layout of matrices by their strides alone.
    pub fn matrix(item_stride: usize, row_stride: usize, depth_stride: usize) -> Self {
        Self {
            item_stride,
            row_inner: [1, 1],
            depth_inner: [1, 1],
            row_stride,
            depth_stride,
            step: [0, 0],
            dilation: [0, 0],
            padding: [0, 0],
            size: [1, 1],
        }
    }

    /// Returns the number of words from the first one to the last one that a block of the matrices
    /// may read. Rows and places along the depth are counted from the first ones.
    fn words(&self, items: usize, rows: usize, depth: usize) -> usize {
        let outer = |count: usize, inner: [usize; 2]| (count - 1) / (inner[0] * inner[1]);
        (items - 1) * self.item_stride
            + outer(rows, self.row_inner) * self.row_stride
            + outer(depth, self.depth_inner) * self.depth_stride
            + self.size[0] * self.size[1]
    }
}

/// Writes the digits of words into a panel.
#[derive(Clone, Copy, Debug)]
pub struct Decompose {
    /// The words.
    pub words: Region,
    /// How the matrix lies among them.
    pub gather: Gather,
    /// The panel.
    pub panel: Region,
    /// The number of independent matrices.
    pub items: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of places along the depth.
    pub depth: usize,
    /// The first row.
    pub first_row: usize,
    /// The first place along the depth.
    pub first_depth: usize,
    /// Rows of each matrix in the panel.
    pub panel_rows: usize,
    /// The number of digits of a word: 1 to 8.
    pub digits: usize,
    /// Whether the last digit comes first.
    pub is_reversed: bool,
    /// Bytes of one digit in a row of the panel.
    pub block: usize,
    /// Where these words begin in a block.
    pub start: usize,
}

/// Adds up the diagonals of a product.
#[derive(Clone, Copy, Debug)]
pub struct Recompose {
    /// The diagonals, one after another.
    pub sums: Region,
    /// The words.
    pub out: Region,
    /// The number of independent matrices.
    pub items: usize,
    /// Rows of one of them.
    pub rows: usize,
    /// Columns of one of them.
    pub columns: usize,
    /// The number of diagonals.
    pub diagonals: usize,
    /// The sums that the first diagonal comes in.
    pub runs: usize,
    /// Numbers from one row of the sums to the next. Matrices and diagonals follow without gaps.
    pub sums_row: usize,
    /// How many columns have the same outer index.
    pub columns_inner: usize,
    /// Words of the result between items, rows, and outer indices of columns.
    pub strides: [usize; 3],
    /// What the words are of the product: all of it, or a summand of a third.
    pub summand: Option<Summand>,
    /// By how many bits they are shifted up.
    pub shift: u32,
    /// Whether words are added to those in place.
    pub is_added: bool,
}

/// A kernel with its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Launch {
    /// `decompose.cu`
    Decompose(Decompose),
    /// `recompose.cu`
    Recompose(Recompose),
}

/// Arguments as a kernel takes them: one structure of numbers of 8 bytes.
pub struct Raw {
    words: [u64; Self::MOST],
    len: usize,
}

impl Raw {
    const MOST: usize = 28;

    /// Returns the structure.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

impl Launch {
    /// The kernels' names, in the order of [`Launch::index`].
    pub const NAMES: [&'static str; 2] = ["decompose", "recompose"];

    /// The words of each kernel's structure.
    pub const WORDS: [usize; 2] = [28, 15];

    /// Returns the place of the kernel in [`Launch::NAMES`].
    pub fn index(&self) -> usize {
        match self {
            Self::Decompose(_) => 0,
            Self::Recompose(_) => 1,
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u32 {
        let threads = match self {
            Self::Decompose(p) => p.items * p.rows * p.depth.div_ceil(16),
            Self::Recompose(p) => p.items * p.rows * p.columns,
        };
        let blocks = threads.div_ceil(THREADS as usize);
        u32::try_from(blocks)
            .ok()
            .filter(|blocks| *blocks < 1 << 31)
            .expect("blocks of a launch")
    }

    /// Returns the regions that the kernel reads, and those that it writes.
    pub fn regions(&self) -> [Region; 2] {
        match self {
            Self::Decompose(p) => [p.words, p.panel],
            Self::Recompose(p) => [p.sums, p.out],
        }
    }

    /// Returns the kernel's structure, after checking that it stays within its regions. `pointer`
    /// returns where a region lies.
    ///
    /// # Panics
    /// If it does not.
    pub fn raw(&self, mut pointer: impl FnMut(Region) -> u64) -> Raw {
        let [from, to] = self.regions().map(&mut pointer);
        let of = |sizes: &[usize]| sizes.iter().map(|size| *size as u64).collect::<Vec<_>>();
        let words = match self {
            Self::Decompose(p) => {
                p.check();
                let g = &p.gather;
                let mut words = vec![from];
                words.extend(of(&[g.item_stride]));
                words.extend(of(&g.row_inner));
                words.extend(of(&g.depth_inner));
                words.extend(of(&[g.row_stride, g.depth_stride]));
                for axis in 0..2 {
                    words.extend(of(&[
                        g.step[axis],
                        g.dilation[axis],
                        g.padding[axis],
                        g.size[axis],
                    ]));
                }
                words.push(to);
                let is_row_fastest = usize::from(g.depth_stride != 1);
                words.extend(of(&[p.items, p.rows, p.depth, p.first_row, p.first_depth]));
                words.extend(of(&[p.panel_rows, p.digits, usize::from(p.is_reversed)]));
                words.extend(of(&[p.block, p.start, is_row_fastest]));
                words
            }
            Self::Recompose(p) => {
                p.check();
                let summand = match p.summand {
                    None => 0,
                    Some(Summand::First) => 1,
                    Some(Summand::Second) => 2,
                    Some(Summand::Last) => 3,
                };
                let mut words = vec![from, to];
                words.extend(of(&[p.items, p.rows, p.columns, p.diagonals, p.runs]));
                words.extend(of(&[p.sums_row, p.columns_inner]));
                words.extend(of(&p.strides));
                words.extend([summand, u64::from(p.shift)]);
                words.push(u64::from(p.is_added));
                words
            }
        };
        let mut raw = Raw {
            words: [0; Raw::MOST],
            len: words.len(),
        };
        assert_eq!(
            raw.len,
            Self::WORDS[self.index()],
            "words of a kernel's structure"
        );
        raw.words[..raw.len].copy_from_slice(&words);
        raw
    }
}

impl Decompose {
    fn check(&self) {
        assert!(
            self.items > 0 && self.rows > 0 && self.depth > 0,
            "an empty panel"
        );
        assert!((1..=8).contains(&self.digits), "digits of a word");
        let (rows, depth) = (self.first_row + self.rows, self.first_depth + self.depth);
        let read = self.gather.words(self.items, rows, depth) * size_of::<u64>();
        assert!(read <= self.words.bytes, "an operand of {read} bytes");
        assert!(
            self.block % 16 == 0 && self.start % 16 == 0,
            "padded blocks"
        );
        assert!(
            self.start + self.depth.next_multiple_of(16) <= self.block,
            "words of a block"
        );
        let written = ((self.items - 1) * self.panel_rows + self.rows) * self.digits * self.block;
        assert!(written <= self.panel.bytes, "a panel of {written} bytes");
    }
}

impl Recompose {
    fn check(&self) {
        assert!(
            self.items > 0 && self.rows > 0 && self.columns > 0,
            "an empty product"
        );
        assert!((1..=8).contains(&self.diagonals), "diagonals of a product");
        assert!(self.columns <= self.sums_row, "columns of a row");
        assert!(self.runs > 0 && self.shift < 64, "runs and bits");
        let matrices = (self.diagonals - 1 + self.runs) * self.items;
        let read = matrices * self.rows * self.sums_row * size_of::<i32>();
        assert!(read <= self.sums.bytes, "sums of {read} bytes");
        let [item, row, outer] = self.strides;
        let last = (self.items - 1) * item
            + (self.rows - 1) * row
            + (self.columns - 1) / self.columns_inner * outer
            + self.columns.min(self.columns_inner);
        assert!(
            last * size_of::<u64>() <= self.out.bytes,
            "a result of {last} words"
        );
    }
}
