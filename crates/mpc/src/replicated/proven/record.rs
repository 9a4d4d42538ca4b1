//! What was sent and is not verified yet, as equations that the sender proves ([`crate::proof`]).
//!
//! An operation records equations once it has received the messages that they are about: each party
//! those of its own messages, and what it knows of those of the two others. All parties record in
//! the same order. What is recorded is copied, since the caller may overwrite its operands.
//!
//! Party i holds the components i and i + 1. So the left verifier of party i is party i − 1, which
//! shares the first of them, and the right verifier is party i + 1, which shares the second.

use super::relations::{Half, Role};
use super::spread::Spread;
use crate::proof::{
    Bits, ENOUGH_ROWS, Equations, InnerProduct, Known, KnownMap, MOST_ROWS, MapEquations, MapTerm,
    Place, Product, Ring, Words,
};
use crate::replicated::Pair;
use crate::{Bilinear, Error, Result};
use kernels::binary_field::LANES;
use kernels::matrix::Layout;
use std::iter;
use std::ops::Range;

/// The most terms of an equation.
pub(in crate::replicated) const MOST_TERMS: usize = 3;

/// The terms of an equation of products.
const TERMS: usize = 2;

/// Factors of many equations: one vector for each term.
type Factors = Vec<Vec<u64>>;

/// The kinds of equations: of products, and of 1, 2 and 3 terms.
const KINDS: usize = 1 + MOST_TERMS;

/// What one proof is about: the words of each kind of equations, the rows of spread sums, the maps,
/// and the inner products.
pub(in crate::replicated) struct Part {
    kinds: [Range<usize>; KINDS],
    spread: Range<usize>,
    maps: Range<usize>,
    inner: Range<usize>,
}

/// The elements of an inner product that is best proven.
pub(in crate::replicated) const ENOUGH_ELEMENTS: usize = LANES * ENOUGH_ROWS;

/// The length of the longest inner product that a map has, unless it is a convolution's.
pub(in crate::replicated) const LONGEST: usize = 1 << 16;

/// The words that fill up a list.
const ROOM: usize = {
    let (words, bits) = (Words::ROW, Bits::ROW);
    if words > bits { words } else { bits }
};

/// Equations of one ring.
#[derive(Default)]
pub(in crate::replicated) struct Ledger {
    products: Products,
    /// The others, by their number of terms.
    others: [Others; MOST_TERMS],
    /// Those of sums of products, modulo 2^64: of long ones, and of others.
    spread: Vec<Spread>,
    maps: Vec<Mapped>,
    /// Those of inner products in GF(2^64), beside equations of bits.
    inner: Inner,
    /// See [`Record::size`].
    size: usize,
}

/// Equations of the outputs of a map, z = M(x, y), as of [`Products`].
struct Mapped {
    map: Product,
    products: Products,
}

impl Mapped {
    /// Returns the blocks that it adds to a proof.
    fn blocks(&self) -> usize {
        (TERMS * self.map.elements()).div_ceil(8)
    }
}

/// Equations of products, z = x·y. Each party sends the same function of what it holds, and so its
/// own factors are also those that it knows as a verifier.
#[derive(Default)]
struct Products {
    x: [Vec<u64>; 2],
    y: [Vec<u64>; 2],
    /// This party's constants as the left and as the right verifier.
    constants: [Vec<u64>; 2],
}

/// Equations of messages that are inner products of elements of GF(2^64).
#[derive(Default)]
struct Inner {
    /// The operands of this party's own messages: the left one and the right one.
    own: Vec<[Vec<u64>; 2]>,
    /// What it knows of those of the next party, and of those of the previous one.
    left: Vec<KnownInner>,
    right: Vec<KnownInner>,
}

/// A verifier's operand and constant.
struct KnownInner {
    operand: Vec<u64>,
    constant: [u64; 1],
}

impl Inner {
    fn known(&self, role: Role) -> &[KnownInner] {
        match role {
            Role::LeftVerifier => &self.left,
            Role::RightVerifier => &self.right,
            Role::Prover => unreachable!("a verifier"),
        }
    }

    /// Returns the blocks that each inner product adds to a proof in which this party has the role.
    fn blocks(&self, role: Role) -> Vec<usize> {
        let blocks = |operand: &Vec<u64>| operand.len().div_ceil(LANES);
        match role {
            Role::Prover => self.own.iter().map(|[left, _]| blocks(left)).collect(),
            _ => {
                let known = self.known(role).iter();
                known.map(|known| blocks(&known.operand)).collect()
            }
        }
    }
}

/// Equations of messages of one role, with one number of terms.
#[derive(Default)]
struct Others {
    /// Those of this party's own messages: left and right factors.
    own: [Factors; 2],
    /// Those of the next party, whose left verifier this party is.
    left: Half,
    /// Those of the previous party, whose right verifier this party is.
    right: Half,
}

impl Others {
    fn half(&self, role: Role) -> &Half {
        match role {
            Role::LeftVerifier => &self.left,
            Role::RightVerifier => &self.right,
            Role::Prover => unreachable!("a verifier"),
        }
    }

    /// Returns the number of words of the equations of which this party has the role.
    fn count(&self, role: Role) -> usize {
        match role {
            Role::Prover => self.own[0].first().map_or(0, Vec::len),
            _ => self.half(role).constants.len(),
        }
    }
}

/// All that is not verified yet.
#[derive(Default)]
pub(in crate::replicated) struct Record {
    pub words: Ledger,
    pub bits: Ledger,
    /// Equations modulo p. Every word stands for its residue.
    pub residues: Ledger,
    /// The first and the last step that were recorded.
    pub steps: Option<[String; 2]>,
}

impl Record {
    /// Notes that a step was recorded.
    pub fn note(&mut self, step: &str) {
        match &mut self.steps {
            Some([_, last]) => step.clone_into(last),
            none => *none = Some([step.to_owned(), step.to_owned()]),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Returns its size, which is the same in all parties: the number of words of one factor of all
    /// terms that the three of them prove. A term takes one or two words of memory.
    pub fn size(&self) -> usize {
        self.words.size + self.bits.size + self.residues.size
    }
}

impl Ledger {
    /// Records products: the components of both factors that this party holds, and its constants as
    /// the left and as the right verifier.
    pub fn products(&mut self, x: Pair, y: Pair, constants: Pair) {
        let Products {
            x: all_x,
            y: all_y,
            constants: all_constants,
        } = &mut self.products;
        self.size += 3 * TERMS * constants[0].len();
        for (list, more) in [(all_x, x), (all_y, y), (all_constants, constants)] {
            for (all, more) in list.iter_mut().zip(more) {
                extend(all, more);
            }
        }
    }

    /// Checks that one proof has room for a map.
    ///
    /// # Errors
    /// `Misuse` for a convolution whose sums are too long.
    pub fn check(map: &Bilinear) -> Result<()> {
        let Bilinear::Convolution(shape) = map else {
            return Ok(());
        };
        let (longest, length) = (
            8 * MOST_ROWS / TERMS,
            Product::Convolution(*shape).elements(),
        );
        if length > longest {
            return Err(Error::misuse(format!(
                "a convolution of {length} taps has no proof; at most {longest} have one"
            )));
        }
        Ok(())
    }

    /// Returns whether the constants that [`map`](Self::map) takes still have the map of the left
    /// verifier's own operands.
    pub fn takes_own_away(map: &Bilinear) -> bool {
        !matches!(map, Bilinear::Elementwise { .. }) && !Spread::is_better(map)
    }

    /// Records a map as [`products`](Self::products) records products. A batch is split into products that one
    /// proof has room for.
    pub fn map<'a>(&mut self, map: &Bilinear, x: Pair<'a>, y: Pair<'a>, constants: Pair<'a>) {
        if Spread::is_better(map) {
            let spread = Spread::of(map, x, y, constants);
            self.size += 3 * spread.rows() * spread.terms() * Words::ROW;
            return self.spread.push(spread);
        }
        let (batch, sizes, layout) = match *map {
            Bilinear::Elementwise { .. } => return self.products(x, y, constants),
            Bilinear::Convolution(shape) => {
                return self.push(Product::Convolution(shape), x, y, constants);
            }
            Bilinear::Matrix { batch, m, k, n } => (batch, [m, k, n], Layout::Straight),
            Bilinear::ByTransposed { batch, m, k, n } => (batch, [m, k, n], Layout::Transposed),
        };
        let [m, k, n] = sizes;
        let at_once = (LONGEST / k.max(1)).max(1);
        for from in (0..batch).step_by(at_once) {
            let batch = at_once.min(batch - from);
            let map = Product::Matrices {
                batch,
                sizes,
                layout,
            };
            let of = |pair: Pair<'a>, size: usize| -> Pair<'a> {
                pair.map(|words| &words[from * size..][..batch * size])
            };
            self.push(map, of(x, m * k), of(y, k * n), of(constants, m * n));
        }
    }

    /// Records a map that one proof has room for.
    fn push(&mut self, map: Product, x: Pair, y: Pair, constants: Pair) {
        self.size += 3 * (x[0].len() + y[0].len() + constants[0].len());
        let [x, y, constants] = [x, y, constants].map(|pair| pair.map(<[u64]>::to_vec));
        let products = Products { x, y, constants };
        self.maps.push(Mapped { map, products });
    }

    /// Records equations that this party proves.
    pub fn prove(&mut self, [left, right]: [Half; 2]) {
        self.size += left.factors.len() * left.constants.len();
        let [own_left, own_right] = &mut self.others[left.factors.len() - 1].own;
        append(own_left, left.factors);
        append(own_right, right.factors);
    }

    /// Records a half of equations that the next party or the previous one proves.
    pub fn verify(&mut self, role: Role, half: Half) {
        self.size += half.factors.len() * half.constants.len();
        let others = &mut self.others[half.factors.len() - 1];
        let known = match role {
            Role::LeftVerifier => &mut others.left,
            Role::RightVerifier => &mut others.right,
            Role::Prover => unreachable!("a verifier"),
        };
        append(&mut known.factors, half.factors);
        match known.constants.is_empty() {
            true => known.constants = half.constants,
            false => extend(&mut known.constants, &half.constants),
        }
    }

    /// Records an inner product that this party proves. It has at most [`ENOUGH_ELEMENTS`].
    pub fn prove_inner(&mut self, operands: [Vec<u64>; 2]) {
        self.size += operands[0].len();
        self.inner.own.push(operands);
    }

    /// Records what this party knows of an inner product that another one proves.
    pub fn verify_inner(&mut self, role: Role, operand: Vec<u64>, constant: u64) {
        self.size += operand.len();
        let known = KnownInner {
            operand,
            constant: [constant],
        };
        match role {
            Role::LeftVerifier => self.inner.left.push(known),
            Role::RightVerifier => self.inner.right.push(known),
            Role::Prover => unreachable!("a verifier"),
        }
    }

    /// Fills all lists up to whole rows.
    pub fn fill_up(&mut self, row: usize) {
        let Products { x, y, constants } = &mut self.products;
        let of_others = self.others.iter_mut().flat_map(Others::lists_mut);
        for list in x.iter_mut().chain(y).chain(constants).chain(of_others) {
            list.resize(list.len().next_multiple_of(row), 0);
        }
    }

    /// Splits the equations of which this party has a role into parts that one proof has room for,
    /// in rows of `row` words.
    pub fn parts(&self, role: Role, row: usize) -> Vec<Part> {
        let mut rest: [Range<usize>; KINDS] = std::array::from_fn(|kind| match kind {
            0 => 0..self.products.x[0].len(),
            terms => 0..self.others[terms - 1].count(role),
        });
        let blocks: Vec<usize> = self.maps.iter().map(Mapped::blocks).collect();
        let (mut maps, mut inner) = (Whole::new(blocks), Whole::new(self.inner.blocks(role)));
        let of_sums = |sums: &Spread| iter::repeat_n(sums.terms(), sums.rows());
        let mut spread = Whole::new(self.spread.iter().flat_map(of_sums).collect());
        let mut parts = Vec::new();
        while rest.iter().any(|range| !range.is_empty())
            || [&maps, &inner, &spread]
                .iter()
                .any(|whole| !whole.is_empty())
        {
            let mut room = ENOUGH_ROWS;
            let (maps, inner) = (maps.take(&mut room), inner.take(&mut room));
            let spread = spread.take(&mut room);
            let kinds = std::array::from_fn(|kind| {
                let terms = if kind == 0 { TERMS } else { kind };
                let range = &mut rest[kind];
                let taken = range.start..range.end.min(range.start + room / terms * row);
                room -= taken.len() / row * terms;
                range.start = taken.end;
                taken
            });
            parts.push(Part {
                kinds,
                spread,
                maps,
                inner,
            });
        }
        parts
    }

    /// Returns what this party proves of a part.
    pub fn proved(&self, part: &Part) -> Vec<Equations<[&[u64]; 2]>> {
        let [products, others @ ..] = &part.kinds;
        let Products { x, y, .. } = &self.products;
        let terms = [[&x[0], &y[1]], [&y[0], &x[1]]];
        let of_products = Equations {
            terms: terms
                .map(|term| term.map(|factor| &factor[products.clone()]))
                .into(),
            count: products.len(),
            is_twice: false,
        };
        let of_others = self.others.iter().zip(others).map(|(kind, range)| {
            let [left, right] = &kind.own;
            let terms = left.iter().zip(right);
            Equations {
                terms: terms
                    .map(|(left, right)| [&left[range.clone()], &right[range.clone()]])
                    .collect(),
                count: range.len(),
                is_twice: false,
            }
        });
        let of_others = of_others.filter(|equations| equations.count > 0);
        let of_sums = self.spread_rows(part).map(|(sums, row)| sums.proved(row));
        let all = iter::once(of_products).chain(of_others);
        all.chain(of_sums).collect()
    }

    /// Returns what a verifier knows of a part.
    pub fn known(&self, role: Role, part: &Part) -> Vec<Known<'_>> {
        let [products, others @ ..] = &part.kinds;
        let (own, constants) = self.products.known(role);
        let of_products = known(own, constants, products);
        let of_others = self.others.iter().zip(others).map(|(kind, range)| {
            let half = kind.half(role);
            known(half.factors.iter(), &half.constants, range)
        });
        let of_others = of_others.filter(|known| known.factors.count > 0);
        let of_sums = self.spread_rows(part);
        let of_sums = of_sums.map(|(sums, row)| sums.known(role, row));
        let all = iter::once(of_products).chain(of_others);
        all.chain(of_sums).collect()
    }

    /// Returns the rows of spread sums of a part.
    fn spread_rows(&self, part: &Part) -> impl Iterator<Item = (&Spread, usize)> {
        let all = self.spread.iter();
        let all = all.flat_map(|sums| (0..sums.rows()).map(move |row| (sums, row)));
        all.skip(part.spread.start).take(part.spread.len())
    }

    /// Returns the number of words that each prover tells of spread sums.
    pub fn told(&self) -> usize {
        self.spread.iter().map(Spread::told).sum()
    }

    /// Returns what this party tells of them, before it is masked.
    pub fn sums(&self) -> Vec<u64> {
        self.spread.iter().flat_map(Spread::sums).collect()
    }

    /// Takes what this party knows as a verifier of what a prover tells.
    pub fn settle(&mut self, role: Role, mut told: &[u64]) {
        for sums in &mut self.spread {
            let own;
            (own, told) = told.split_at(sums.told());
            sums.settle(role, own);
        }
    }

    /// Returns what this party proves of the maps of a part.
    pub fn proved_maps(&self, part: &Part) -> Vec<MapEquations<Product, [&[u64]; 2]>> {
        let maps = self.maps[part.maps.clone()].iter();
        let proved = maps.map(|Mapped { map, products }| {
            let Products { x, y, .. } = products;
            let factors = [[&x[0][..], &y[1]], [&y[0], &x[1]]];
            equations(*map, factors)
        });
        proved.collect()
    }

    /// Returns what a verifier knows of the maps of a part.
    pub fn known_maps(&self, role: Role, part: &Part) -> Vec<KnownMap<'_, Product>> {
        let maps = self.maps[part.maps.clone()].iter();
        let known = maps.map(|Mapped { map, products }| {
            let (own, constants) = products.known(role);
            KnownMap {
                factors: equations(*map, own.map(Vec::as_slice)),
                constants,
                less_own: role == Role::LeftVerifier,
            }
        });
        known.collect()
    }

    /// Returns what this party proves of the inner products of a part.
    pub fn proved_inner(&self, part: &Part) -> Vec<MapEquations<InnerProduct, [&[u64]; 2]>> {
        let own = self.inner.own[part.inner.clone()].iter();
        let proved = own.map(|[left, right]| inner_product(left.len(), [&left[..], right]));
        proved.collect()
    }

    /// Returns what a verifier knows of the inner products of a part.
    pub fn known_inner(&self, role: Role, part: &Part) -> Vec<KnownMap<'_, InnerProduct>> {
        let known = self.inner.known(role)[part.inner.clone()].iter();
        let known = known.map(|KnownInner { operand, constant }| KnownMap {
            factors: inner_product(operand.len(), &operand[..]),
            constants: constant,
            less_own: false,
        });
        known.collect()
    }
}

/// Equations that are not split between proofs.
struct Whole {
    /// The blocks that each of them adds to a proof.
    blocks: Vec<usize>,
    /// The number of those that have a part.
    taken: usize,
}

impl Whole {
    fn new(blocks: Vec<usize>) -> Self {
        Self { blocks, taken: 0 }
    }

    fn is_empty(&self) -> bool {
        self.taken == self.blocks.len()
    }

    /// Takes those that there is room for. A proof that is empty has room for any.
    fn take(&mut self, room: &mut usize) -> Range<usize> {
        let first = self.taken;
        while let Some(blocks) = self.blocks.get(self.taken) {
            if blocks > room && (self.taken > first || *room < ENOUGH_ROWS) {
                break;
            }
            *room = room.saturating_sub(*blocks);
            self.taken += 1;
        }
        first..self.taken
    }
}

/// Returns equations of a map. Of the prover's first term, its left verifier knows x, and of the
/// second one, y.
fn equations<T>(map: Product, factors: [T; TERMS]) -> MapEquations<Product, T> {
    let [first, second] = factors;
    let terms = [(Place::First, first), (Place::Second, second)];
    let terms = terms.map(|(left, factors)| MapTerm { left, factors });
    MapEquations {
        map,
        terms: terms.into(),
    }
}

/// Returns the equation of an inner product.
fn inner_product<T>(length: usize, factors: T) -> MapEquations<InnerProduct, T> {
    MapEquations {
        map: InnerProduct { length },
        terms: vec![MapTerm {
            left: Place::First,
            factors,
        }],
    }
}

impl Products {
    /// Returns the factors and constants that a verifier knows.
    fn known(&self, role: Role) -> ([&Vec<u64>; TERMS], &Vec<u64>) {
        let Self { x, y, constants } = self;
        match role {
            Role::LeftVerifier => ([&x[1], &y[1]], &constants[0]),
            Role::RightVerifier => ([&y[0], &x[0]], &constants[1]),
            Role::Prover => unreachable!("a verifier"),
        }
    }
}

impl Others {
    fn lists_mut(&mut self) -> Vec<&mut Vec<u64>> {
        let Self {
            own: [a, b],
            left,
            right,
        } = self;
        let factors = [a, b, &mut left.factors, &mut right.factors];
        let constants = [&mut left.constants, &mut right.constants];
        factors.into_iter().flatten().chain(constants).collect()
    }
}

fn known<'r>(
    factors: impl IntoIterator<Item = &'r Vec<u64>>,
    constants: &'r [u64],
    range: &Range<usize>,
) -> Known<'r> {
    let terms = factors.into_iter().map(|factor| &factor[range.clone()]);
    Known {
        factors: Equations {
            terms: terms.collect(),
            count: range.len(),
            is_twice: false,
        },
        constants: &constants[range.clone()],
    }
}

fn append(all: &mut Factors, more: Factors) {
    if all.is_empty() {
        *all = more;
        return;
    }
    for (all, more) in all.iter_mut().zip(more) {
        extend(all, &more);
    }
}

/// Appends words, and leaves room for [`Ledger::fill_up`], which would move all of them otherwise.
fn extend(all: &mut Vec<u64>, more: &[u64]) {
    all.reserve(more.len() + ROOM);
    all.extend_from_slice(more);
}
