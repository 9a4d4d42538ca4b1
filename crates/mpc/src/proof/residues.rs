//! The field for equations modulo p = 2^31 − 1. There are no maps in it.

use super::grid::{Grid, Map, Place};
use super::ring::{Added, Ring, Value, Weighed, chunk_sums_of_all, vertex_sums_of_all};
use kernels::residue_field::blocks::{self, Block};
use kernels::residue_field::{self, CHUNKS, Element, LANES, ROW};
use kernels::stream::Stream;

/// The field for equations modulo p. Every word stands for its residue.
#[derive(Debug)]
pub enum Residues {}

/// There are no maps.
#[derive(Debug)]
pub enum NoMap {}

impl Map for NoMap {
    type Element = Element;
    type Block = Block;
    type Weights = Block;

    fn grid(&self) -> Grid {
        match *self {}
    }

    fn sums(&self, _: Place, _: &[u64], _: &[u64]) -> Vec<Element> {
        match *self {}
    }

    fn inner_product(_: &[Element], _: &[Element]) -> Element {
        unreachable!("an inner product of no map")
    }

    fn outputs(&self, _: &[u64], _: [&[u64]; 2]) -> Element {
        match *self {}
    }

    fn blocks(_: &[Element], _: Option<&Block>) -> Vec<Block> {
        unreachable!("blocks of no map")
    }
}

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

impl Ring for Residues {
    const NAME: &'static str = "residues";
    const ROW: usize = ROW;
    const WORDS: usize = 2;
    const LANES: usize = LANES;
    const WEIGHS_LANES: bool = false;
    type Element = Element;
    type Block = Block;
    type Weights = Block;
    type Point = [Element; CHUNKS];
    type Sums = Added<Self>;
    type Map = NoMap;
    const ZEROS: Block = Block::ZERO;

    fn draw(stream: &mut Stream, count: usize) -> Vec<u64> {
        residue_field::draw(stream, count)
    }

    fn member(member: u64) -> Element {
        Element::of_member(member)
    }

    fn draw_weights(stream: &mut Stream) -> Block {
        let members = residue_field::draw(stream, LANES).into_iter();
        Block::of(&members.map(Element::of_member).collect::<Vec<_>>())
    }

    /// Whatever two words a party sends, they stand for an element. Words that are uniform stand
    /// for one that is uniform up to 2^−61.
    fn element(words: &[u64]) -> Element {
        Element::of_words(words.try_into().expect("two words"))
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

    fn vertex_sums(kinds: &[Weighed], lanes: &Block) -> Vec<Element> {
        vertex_sums_of_all(kinds, |terms, rows| {
            residue_field::vertex_sums(terms, rows, lanes)
        })
    }

    fn chunk_sums(kinds: &[(&[u64], &[u64])], lanes: &Block) -> Vec<Element> {
        chunk_sums_of_all(kinds, |words, rows| {
            residue_field::chunk_sums(words, rows, lanes)
        })
    }

    fn point(indicators: &[Element]) -> [Element; CHUNKS] {
        indicators.try_into().expect("an element for each chunk")
    }

    fn add_folded(
        words: &[u64],
        point: &[Element; CHUNKS],
        rows: Option<&[u64]>,
        sums: &mut [Block],
    ) {
        residue_field::add_folded(words, point, rows, sums);
    }

    fn add_scaled(blocks: &[Block], factor: &Element, sums: &mut [Block]) {
        for (sum, block) in sums.iter_mut().zip(blocks) {
            *sum = sum.add(&block.scaled(factor));
        }
    }

    fn block_sums(left: &[Block], right: &[Block], variables: u32, lanes: &Block) -> Vec<Element> {
        blocks::vertex_sums(left, right, variables, lanes)
    }

    fn fold_blocks(blocks: &[Block], point: &[Element]) -> Vec<Block> {
        blocks::fold(blocks, point)
    }
}
