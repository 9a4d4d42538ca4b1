//! How words are multiplied on units that multiply smaller numbers.
//!
//! [`Digits`] is the seam for other ways: FP8, or remainders by small primes (Ozaki II), for cards
//! whose units for bytes are few.

use crate::error::Result;
use crate::launch::{Decompose, Gather, Launch, Recompose};
use crate::region::Region;
use crate::runtime::{Bytes, Product, Runtime};
use kernels::third::{ABOVE, RUN, Summand};
use std::ops::Range;

/// The side of a product that an operand is on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Its rows are rows of the result.
    Left,
    /// Its rows are columns of the result.
    Right,
}

/// Digits of independent matrices in the card's memory.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Where they lie.
    pub region: Region,
    /// The number of matrices.
    pub items: usize,
    /// Rows of each.
    pub rows: usize,
    /// The depth of all terms together, each of them [padded](padded).
    pub block: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// The side that the matrices are on.
    pub side: Side,
}

impl Panel {
    /// Returns the panel without its first matrices, and without the first rows of each.
    pub fn skip(self, items: usize, rows: usize) -> Self {
        let skipped = (items * self.rows + rows) * self.row_bytes;
        Self {
            region: self.region.from(skipped),
            ..self
        }
    }
}

/// A block of an operand that a panel takes.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The operand's words.
    pub words: Region,
    /// How the matrix lies among them.
    pub gather: &'a Gather,
    /// The rows, of each matrix.
    pub rows: Range<usize>,
    /// The places along the depth.
    pub depth: Range<usize>,
    /// Where they begin in the panel's blocks.
    pub start: usize,
}

/// Where a product's words go.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The words of the result.
    pub region: Region,
    /// Rows and columns.
    pub size: [usize; 2],
    /// How many columns have the same outer index.
    pub columns_inner: usize,
    /// Words between items, rows, and outer indices of columns.
    pub strides: [usize; 3],
    /// Whether words are added to those in place.
    pub is_added: bool,
}

/// A way to multiply words.
pub trait Digits: Copy + Send {
    /// Returns the largest [block](Panel::block) of panels that can be multiplied.
    fn most_block(&self) -> usize;

    /// Returns the bytes of a panel's row.
    fn row_bytes(&self, block: usize) -> usize;

    /// Returns the bytes of the sums of a product of panels with some block.
    fn sums_bytes(&self, items: usize, rows: usize, columns: usize, block: usize) -> usize;

    /// Writes a part of an operand into a panel.
    fn decompose<R: Runtime>(&self, runtime: &mut R, part: &Part, panel: &Panel) -> Result<()>;

    /// Multiplies the first rows of each matrix of a left panel by those of a right one, for as
    /// many matrices as there are.
    fn multiply<R: Runtime>(
        &self,
        runtime: &mut R,
        panels: [&Panel; 2],
        items: usize,
        sums: Region,
        output: &Output,
    ) -> Result<()>;
}

/// Signed digits of 8 bits, with carry: x = Σ d_i·2^(8i) mod 2^(8n), −128 ≤ d_i ≤ 127.
///
/// A product mod 2^(8n) is Σ_s 2^(8s) Σ_{i ≤ s} a_i·b_{s−i} for s < n. The inner sum is *diagonal*
/// s. The layout of panels (`kernels/decompose.cu`) makes each diagonal one product of bytes, whose
/// depth is s + 1 times that of the words: 36 products of digits for 64 bits, 28 for 56.
///
/// **The bound.** A product of digits has magnitude at most 2^14. The last diagonal has depth n·k.
/// Its sums, and all that is added up on the way, stay below 2^31 if n·k ≤ 2^17 − 1. For 8 digits
/// that is k < 2^14. Up to k < 2^15 only diagonals from 4 on could overflow, and of those only the
/// lowest 32 bits count. But that would need products that wrap around, and NVIDIA's libraries may
/// saturate. Longer sums are cut into several products, whose words are added up mod 2^64.
///
/// **Narrow thirds** ([`kernels::third`]) are known from 56 bits of a product. Halves are rounded
/// for each run of the depth, up or down if its sum is odd. Whether it is shows in the lowest
/// digits alone. So the first diagonal is computed run by run, in as many products of digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SignedBytes {
    count: usize,
    third: Option<Summand>,
}

/// The most products of two digits that 32 bits can sum up: 2^17 of (−128)² are one too many.
const MOST_PRODUCTS: usize = (1 << 17) - 1;

impl SignedBytes {
    /// All bits of products.
    pub const WHOLE: Self = Self {
        count: 8,
        third: None,
    };

    /// Narrow thirds.
    pub fn narrow(summand: Summand) -> Self {
        Self {
            count: 7,
            third: Some(summand),
        }
    }

    /// Returns the number of runs that the first diagonal is computed in.
    fn runs(&self, block: usize) -> usize {
        match self.third {
            Some(Summand::First | Summand::Second) => block.div_ceil(RUN),
            Some(Summand::Last) | None => 1,
        }
    }

    /// Computes the first diagonal of one item, run by run. The last run may be shorter.
    fn runs_of_item<R: Runtime>(
        &self,
        runtime: &mut R,
        product: &Product,
        item: usize,
    ) -> Result<()> {
        let block = product.depth;
        let matrix = product.rows * product.columns * size_of::<i32>();
        let (whole, rest) = (block / RUN, block % RUN);
        for (items, first, depth) in [(whole, 0, RUN), (usize::from(rest > 0), whole, rest)] {
            if items == 0 {
                continue;
            }
            let operand = |bytes: Bytes| Bytes {
                region: bytes.region.from(item * bytes.item + first * RUN),
                item: RUN,
                ..bytes
            };
            let product = Product {
                items,
                depth,
                left: operand(product.left),
                right: operand(product.right),
                sums: product
                    .sums
                    .from((item * self.runs(block) + first) * matrix),
                ..*product
            };
            multiply_all(runtime, &product)?;
        }
        Ok(())
    }
}

impl Digits for SignedBytes {
    fn most_block(&self) -> usize {
        let step = if self.third.is_some() { RUN } else { 16 };
        MOST_PRODUCTS / self.count / step * step
    }

    fn row_bytes(&self, block: usize) -> usize {
        self.count * block
    }

    fn sums_bytes(&self, items: usize, rows: usize, columns: usize, block: usize) -> usize {
        let matrices = (self.runs(block) + self.count - 1) * items;
        matrices * rows * padded(columns) * size_of::<i32>()
    }

    fn decompose<R: Runtime>(&self, runtime: &mut R, part: &Part, panel: &Panel) -> Result<()> {
        runtime.launch(&Launch::Decompose(Decompose {
            words: part.words,
            gather: *part.gather,
            panel: panel.region,
            items: panel.items,
            rows: part.rows.len(),
            depth: part.depth.len(),
            first_row: part.rows.start,
            first_depth: part.depth.start,
            panel_rows: panel.rows,
            digits: self.count,
            is_reversed: panel.side == Side::Right,
            block: panel.block,
            start: part.start,
        }))
    }

    fn multiply<R: Runtime>(
        &self,
        runtime: &mut R,
        [left, right]: [&Panel; 2],
        items: usize,
        sums: Region,
        output: &Output,
    ) -> Result<()> {
        let block = left.block;
        assert_eq!(block, right.block, "panels of one product");
        let [rows, columns] = output.size;
        let padded_columns = padded(columns);
        let bytes = |panel: &Panel, skipped: usize| Bytes {
            region: panel.region.from(skipped * block),
            row: panel.row_bytes,
            item: panel.rows * panel.row_bytes,
        };
        let runs = self.runs(block);
        let matrix = rows * padded_columns * size_of::<i32>();
        for diagonal in 0..self.count {
            let before = if diagonal == 0 {
                0
            } else {
                runs + diagonal - 1
            };
            let product = Product {
                items,
                rows,
                columns: padded_columns,
                depth: (diagonal + 1) * block,
                left: bytes(left, 0),
                right: bytes(right, self.count - 1 - diagonal),
                sums: sums.from(before * items * matrix),
            };
            if diagonal == 0 && runs > 1 {
                for item in 0..items {
                    self.runs_of_item(runtime, &product, item)?;
                }
            } else {
                multiply_all(runtime, &product)?;
            }
        }
        runtime.launch(&Launch::Recompose(Recompose {
            sums,
            out: output.region,
            items,
            rows,
            columns,
            diagonals: self.count,
            runs,
            sums_row: padded_columns,
            columns_inner: output.columns_inner,
            strides: output.strides,
            summand: self.third,
            shift: if self.third.is_some() { ABOVE } else { 0 },
            is_added: output.is_added,
        }))
    }
}

/// Queues a product of any number of items.
fn multiply_all<R: Runtime>(runtime: &mut R, product: &Product) -> Result<()> {
    let matrix = product.rows * product.columns * size_of::<i32>();
    for first in (0..product.items).step_by(Product::MOST_ITEMS) {
        let operand = |bytes: Bytes| Bytes {
            region: bytes.region.from(first * bytes.item),
            ..bytes
        };
        runtime.multiply(&Product {
            items: Product::MOST_ITEMS.min(product.items - first),
            left: operand(product.left),
            right: operand(product.right),
            sums: product.sums.from(first * matrix),
            ..*product
        })?;
    }
    Ok(())
}

/// Returns a number of rows or a depth as products require it.
pub fn padded(size: usize) -> usize {
    size.next_multiple_of(16)
}

/// Cuts the depth into ranges that panels of all terms fit into.
pub fn chunks(digits: &impl Digits, terms: usize, depth: usize) -> Vec<Range<usize>> {
    let most = digits.most_block() / terms / 16 * 16;
    assert!(most > 0, "{terms} terms of a product");
    (0..depth)
        .step_by(most)
        .map(|first| first..depth.min(first + most))
        .collect()
}
