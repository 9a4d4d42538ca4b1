//! The rings in which proofs compute: one for equations of words, one for those of bits, and one
//! for those of residues modulo p = 2^31 − 1.
//!
//! | | [`Words`] | [`Bits`] | [`Residues`](super::Residues) |
//! | --- | --- | --- | --- |
//! | equations | modulo 2^64 | modulo 2, 64 to a word | modulo p |
//! | ring | GR(2^64, 48) | GF(2^64) | GF(p²) |
//! | exceptional set | polynomials with coefficients 0 and 1 | all elements | all elements |
//! | row | 32 chunks of 8 words | 32 chunks of one word | 32 chunks of 8 words |
//! | lanes | 8 | 64, the bits of a word | 8 |
//! | weight of a lane | random, not 0 | X^p for bit p | random |
//! | most probable member | 2^−48 | 2^−64 | 2^−60 |
//! | maps | [`Product`] | [`InnerProduct`] | none |
//!
//! Bits need no random weights of lanes: the bits of a word are coefficients of an element.

use super::field::{BitBlock, FieldElement};
use super::grid::Map;
use super::inner_product::InnerProduct;
use super::products::Product;
use super::{Equations, Level};
use kernels::galois::words::CHUNKS;
use kernels::galois::{self, Block, DEGREE, Element, blocks, words};
use kernels::stream::Stream;
use kernels::{binary_field, galois::LANES};

/// Equations of one kind, with the weights of their rows.
pub type Weighed<'a> = (&'a Equations<[&'a [u64]; 2]>, &'a [u64]);

/// An element of a ring.
pub trait Value: Copy + PartialEq + Send + Sync {
    /// The element 0.
    const ZERO: Self;
    /// The element 1.
    const ONE: Self;
    /// Returns the sum.
    #[must_use]
    fn add(&self, other: &Self) -> Self;
    /// Returns the difference.
    #[must_use]
    fn sub(&self, other: &Self) -> Self;
    /// Returns the product.
    #[must_use]
    fn mul(&self, other: &Self) -> Self;
}

/// A ring, and sums over rows of values with weights from it.
///
/// A *member* is an element of its exceptional set, given by a word.
pub trait Ring: Sized {
    /// What the equations are about.
    const NAME: &'static str;
    /// The number of words of a row.
    const ROW: usize;
    /// The number of words of an element.
    const WORDS: usize;
    /// The number of lanes of a row.
    const LANES: usize;
    /// Whether the left side's rows take the weights of lanes with their own.
    const WEIGHS_LANES: bool;
    /// Its elements.
    type Element: Value;
    /// An element for each lane.
    type Block: Copy + Send + Sync;
    /// The weights of lanes.
    type Weights: Sync;
    /// A point at which rows are folded.
    type Point: Sync;
    /// Sums of the products of blocks, to which more are added.
    type Sums: BlockSums<Self>;
    /// The bilinear maps that equations may be about.
    type Map: Map<Element = Self::Element, Block = Self::Block, Weights = Self::Weights>;
    /// The block of zeros.
    const ZEROS: Self::Block;

    /// Draws members.
    fn draw(stream: &mut Stream, count: usize) -> Vec<u64>;

    /// Returns a member as an element.
    fn member(member: u64) -> Self::Element;

    /// Draws the weights of lanes.
    fn draw_weights(stream: &mut Stream) -> Self::Weights;

    /// Reads an element.
    fn element(words: &[u64]) -> Self::Element;

    /// Appends an element's words.
    fn write(element: &Self::Element, words: &mut Vec<u64>);

    /// Returns a block of an element for each lane.
    fn block(elements: &[Self::Element]) -> Self::Block;

    /// Returns the elements of a block.
    fn lanes(block: &Self::Block) -> Vec<Self::Element>;

    /// Returns, at each of {0, 1, ∞}^5, the sum of the products of rows of all terms of all kinds,
    /// with weights of rows and lanes. What counts twice is added twice.
    fn vertex_sums(kinds: &[Weighed], lanes: &Self::Weights) -> Vec<Self::Element>;

    /// Returns, for each chunk, the sum of words of all kinds, with weights of lanes and the given
    /// ones of rows.
    fn chunk_sums(kinds: &[(&[u64], &[u64])], lanes: &Self::Weights) -> Vec<Self::Element>;

    /// Returns the point at which the indicators of the chunks have these values.
    fn point(indicators: &[Self::Element]) -> Self::Point;

    /// Adds to the sums, for each row, the value of its chunks' polynomial at the point; times the
    /// row's weight, if there are weights.
    fn add_folded(
        words: &[u64],
        point: &Self::Point,
        rows: Option<&[u64]>,
        sums: &mut [Self::Block],
    );

    /// Adds blocks times an element to the sums.
    fn add_scaled(blocks: &[Self::Block], factor: &Self::Element, sums: &mut [Self::Block]);

    /// Returns, at each of {0, 1, ∞}^n, the sum of the products of blocks, with weights of lanes.
    fn block_sums(
        left: &[Self::Block],
        right: &[Self::Block],
        variables: u32,
        lanes: &Self::Weights,
    ) -> Vec<Self::Element>;

    /// Returns the sums of blocks times the elements of `point`.
    fn fold_blocks(blocks: &[Self::Block], point: &[Self::Element]) -> Vec<Self::Block>;
}

/// What [`Ring::block_sums`] returns, of blocks that are added little by little.
pub trait BlockSums<R: Ring> {
    /// Returns sums of nothing, in this number of variables.
    fn new(variables: u32) -> Self;

    /// Adds the sums of blocks, in this thread.
    fn add(&mut self, left: &[R::Block], right: &[R::Block], lanes: &R::Weights);

    /// Returns the sums.
    fn total(self, lanes: &R::Weights) -> Vec<R::Element>;
}

/// Sums that are kept as elements.
pub struct Added<R: Ring> {
    variables: u32,
    sums: Vec<R::Element>,
}

impl<R: Ring> BlockSums<R> for Added<R> {
    fn new(variables: u32) -> Self {
        Self {
            variables,
            sums: vec![R::Element::ZERO; 3_usize.pow(variables)],
        }
    }

    fn add(&mut self, left: &[R::Block], right: &[R::Block], lanes: &R::Weights) {
        add(
            &mut self.sums,
            &R::block_sums(left, right, self.variables, lanes),
        );
    }

    fn total(self, _: &R::Weights) -> Vec<R::Element> {
        self.sums
    }
}

fn add<E: Value>(sums: &mut [E], others: &[E]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum = sum.add(other);
    }
}

/// Adds up what `sums` returns of the terms of each kind and the weights of their rows.
pub(super) fn vertex_sums_of_all<E: Value>(
    kinds: &[Weighed],
    sums: impl Fn(&[[&[u64]; 2]], &[u64]) -> Vec<E>,
) -> Vec<E> {
    let mut total = vec![E::ZERO; Level::Words.values()];
    for (kind, rows) in kinds {
        let more = sums(&kind.terms, rows);
        for _ in 0..kind.times() {
            add(&mut total, &more);
        }
    }
    total
}

/// Adds up what `sums` returns of the words of each kind and the weights of their rows.
pub(super) fn chunk_sums_of_all<E: Value>(
    kinds: &[(&[u64], &[u64])],
    sums: impl Fn(&[u64], &[u64]) -> Vec<E>,
) -> Vec<E> {
    let mut total = vec![E::ZERO; CHUNKS];
    for (words, rows) in kinds {
        add(&mut total, &sums(words, rows));
    }
    total
}

/// The ring for equations modulo 2^64.
#[derive(Debug)]
pub enum Words {}

impl Value for Element {
    const ZERO: Self = Element::ZERO;
    const ONE: Self = Element::ONE;

    fn add(&self, other: &Self) -> Self {
        self.add(other)
    }

    fn sub(&self, other: &Self) -> Self {
        self.sub(other)
    }

    fn mul(&self, other: &Self) -> Self {
        self.mul(other)
    }
}

impl Ring for Words {
    const NAME: &'static str = "words";
    const ROW: usize = words::ROW;
    const WORDS: usize = DEGREE;
    const LANES: usize = LANES;
    const WEIGHS_LANES: bool = false;
    type Element = Element;
    type Block = Block;
    type Weights = Block;
    type Point = words::Point;
    type Sums = blocks::VertexSums;
    type Map = Product;
    const ZEROS: Block = Block::ZERO;

    fn draw(stream: &mut Stream, count: usize) -> Vec<u64> {
        galois::draw(stream, count)
    }

    fn member(member: u64) -> Element {
        Element::of_bits(member)
    }

    fn draw_weights(stream: &mut Stream) -> Block {
        let mut members = galois::draw(stream, LANES);
        // Maps need invertible weights. The probability of another draw is 2^-45.
        while members.contains(&0) {
            members = galois::draw(stream, LANES);
        }
        let members = members.into_iter().map(Element::of_bits);
        Block::of(&members.collect::<Vec<_>>())
    }

    fn element(words: &[u64]) -> Element {
        Element(words.try_into().expect("as many words as the degree"))
    }

    fn write(element: &Element, words: &mut Vec<u64>) {
        words.extend(element.0);
    }

    fn block(elements: &[Element]) -> Block {
        Block::of(elements)
    }

    fn lanes(block: &Block) -> Vec<Element> {
        block.lanes().to_vec()
    }

    /// The lanes of all kinds are added up once.
    fn vertex_sums(kinds: &[Weighed], lanes: &Block) -> Vec<Element> {
        let mut total = words::Sums::zero(words::VERTICES);
        for (kind, rows) in kinds {
            let sums = words::vertex_sums(&kind.terms, rows);
            for _ in 0..kind.times() {
                total += &sums;
            }
        }
        total.of_lanes(lanes)
    }

    /// As above.
    fn chunk_sums(kinds: &[(&[u64], &[u64])], lanes: &Block) -> Vec<Element> {
        let mut total = words::Sums::zero(CHUNKS);
        for (words, rows) in kinds {
            total += &words::chunk_sums(words, rows);
        }
        total.of_lanes(lanes)
    }

    fn point(indicators: &[Element]) -> words::Point {
        words::Point::of(indicators.try_into().expect("an element for each chunk"))
    }

    fn add_folded(words: &[u64], point: &words::Point, rows: Option<&[u64]>, sums: &mut [Block]) {
        words::add_folded(words, point, rows, sums);
    }

    fn add_scaled(blocks: &[Block], factor: &Element, sums: &mut [Block]) {
        let scaled = blocks::fold(blocks, &[*factor]);
        for (sum, scaled) in sums.iter_mut().zip(&scaled) {
            *sum += scaled;
        }
    }

    fn block_sums(left: &[Block], right: &[Block], variables: u32, lanes: &Block) -> Vec<Element> {
        let sums = blocks::vertex_sums(left, right, variables);
        sums.iter().map(|sums| sums.inner_product(lanes)).collect()
    }

    fn fold_blocks(blocks: &[Block], point: &[Element]) -> Vec<Block> {
        blocks::fold(blocks, point)
    }
}

impl BlockSums<Words> for blocks::VertexSums {
    fn new(variables: u32) -> Self {
        blocks::VertexSums::new(variables)
    }

    fn add(&mut self, left: &[Block], right: &[Block], _: &Block) {
        blocks::VertexSums::add(self, left, right);
    }

    fn total(self, lanes: &Block) -> Vec<Element> {
        self.of_lanes(lanes)
    }
}

/// The field for equations modulo 2.
#[derive(Debug)]
pub enum Bits {}

impl Value for FieldElement {
    const ZERO: Self = FieldElement::ZERO;
    const ONE: Self = FieldElement::ONE;

    fn add(&self, other: &Self) -> Self {
        FieldElement::add(*self, *other)
    }

    fn sub(&self, other: &Self) -> Self {
        FieldElement::add(*self, *other)
    }

    fn mul(&self, other: &Self) -> Self {
        FieldElement::mul(*self, *other)
    }
}

impl Ring for Bits {
    const NAME: &'static str = "bits";
    const ROW: usize = binary_field::CHUNKS;
    const WORDS: usize = 1;
    const LANES: usize = binary_field::LANES;
    const WEIGHS_LANES: bool = true;
    type Element = FieldElement;
    type Block = BitBlock;
    type Weights = ();
    type Point = binary_field::Point;
    type Sums = Added<Self>;
    type Map = InnerProduct;
    const ZEROS: BitBlock = [0; 64];

    fn draw(stream: &mut Stream, count: usize) -> Vec<u64> {
        let mut members = vec![0; count];
        stream.reserve(count).fill(0, &mut members);
        members
    }

    fn member(member: u64) -> FieldElement {
        FieldElement(member)
    }

    fn draw_weights(_: &mut Stream) {}

    fn element(words: &[u64]) -> FieldElement {
        FieldElement(words[0])
    }

    fn write(element: &FieldElement, words: &mut Vec<u64>) {
        words.push(element.0);
    }

    fn block(elements: &[FieldElement]) -> BitBlock {
        std::array::from_fn(|lane| elements[lane].0)
    }

    fn lanes(block: &BitBlock) -> Vec<FieldElement> {
        block.iter().map(|word| FieldElement(*word)).collect()
    }

    fn vertex_sums(kinds: &[Weighed], (): &()) -> Vec<FieldElement> {
        vertex_sums_of_all(kinds, |terms, rows| {
            let sums = binary_field::vertex_sums(terms, rows);
            sums.into_iter().map(FieldElement).collect()
        })
    }

    fn chunk_sums(kinds: &[(&[u64], &[u64])], (): &()) -> Vec<FieldElement> {
        chunk_sums_of_all(kinds, |words, rows| {
            let sums = binary_field::weighted_sums(words, rows);
            sums.into_iter().map(FieldElement).collect()
        })
    }

    fn point(indicators: &[FieldElement]) -> binary_field::Point {
        binary_field::Point::of(&std::array::from_fn(|chunk| indicators[chunk].0))
    }

    fn add_folded(
        words: &[u64],
        point: &binary_field::Point,
        rows: Option<&[u64]>,
        sums: &mut [BitBlock],
    ) {
        binary_field::add_folded(words, point, rows, sums.as_flattened_mut());
    }

    fn add_scaled(blocks: &[BitBlock], factor: &FieldElement, sums: &mut [BitBlock]) {
        let sums = &mut sums[..blocks.len()];
        binary_field::add_scaled(sums.as_flattened_mut(), blocks.as_flattened(), factor.0);
    }

    /// Left blocks of bits were multiplied by the weights of lanes. Those of maps need no weights.
    fn block_sums(
        left: &[BitBlock],
        right: &[BitBlock],
        variables: u32,
        (): &(),
    ) -> Vec<FieldElement> {
        let stride = left.len().div_ceil(1 << variables);
        let mut sums = vec![0; 3_usize.pow(variables)];
        for at in 0..stride {
            let [left, right] = [left, right].map(|blocks| {
                let chunk = |chunk: usize| blocks.get(chunk * stride + at);
                let chunks = (0..1 << variables).map(|at| *chunk(at).unwrap_or(&[0; 64]));
                extended(chunks.collect(), variables)
            });
            for ((sum, left), right) in sums.iter_mut().zip(&left).zip(&right) {
                *sum ^= binary_field::inner_product(left, right);
            }
        }
        sums.into_iter().map(FieldElement).collect()
    }

    fn fold_blocks(blocks: &[BitBlock], point: &[FieldElement]) -> Vec<BitBlock> {
        let stride = blocks.len().div_ceil(point.len());
        let mut folded = vec![[0; 64]; stride];
        for (chunk, factor) in blocks.chunks(stride.max(1)).zip(point) {
            Self::add_scaled(chunk, factor, &mut folded);
        }
        folded
    }
}

/// Adds the values at ∞ to those of a polynomial at {0, 1}^n, variable by variable.
fn extended(mut values: Vec<BitBlock>, variables: u32) -> Vec<BitBlock> {
    for done in 0..variables {
        let half = 1 << (variables - done - 1);
        let mut more = Vec::with_capacity(values.len() / 2 * 3);
        for group in values.chunks_exact(2 * half) {
            more.extend_from_slice(group);
            let (zero, one) = group.split_at(half);
            let pairs = zero.iter().zip(one);
            more.extend(pairs.map(|(zero, one)| -> BitBlock {
                std::array::from_fn(|lane| zero[lane] ^ one[lane])
            }));
        }
        values = more;
    }
    values
}
