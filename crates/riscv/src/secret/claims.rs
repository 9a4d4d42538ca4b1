//! What is claimed of numbers of fixed point: that they stayed in range. Steps of checked words leave claims as they are
//! planned, so that whatever is never computed is never claimed, and sums are claimed as they are computed. Right before
//! something is opened all are settled together, in secret ([`mpc::checks`]).
//!
//! | step | claim |
//! | --- | --- |
//! | a sum of n | each is less than 2^(61 − log₂ n), unless their sizes say that the sum has a word |
//! | a product, a sum of products | it is the one over the integers, and can be truncated |
//! | a product by a public number, a shift to the left | the factor is small enough for that |
//! | a truncation | what is truncated is less than 2^62 |
//! | a word that is held ([`Held`]) | it is in that range |
//!
//! Integers are not checked: they wrap, as the instruction set says. Nor is what is proved to stay in range, such as the
//! steps of Newton's iteration and what is computed of numbers of a known range ([`crate::fixed::known`]).
//!
//! **Who is told.** A flag is of one line of the program and of those recipients that what was computed there reaches, so
//! that nobody hears of a number that nothing it receives was made of.
//!
//! **Simulation.** Claims follow from the program and from what is public, and so do their sizes, their order and the
//! messages that settle them, each of which is simulated by its own argument. Whether one holds is a secret bit, which
//! [`mpc::guards`] tells those who receive what depends on it: an output that the functionality gives.

use super::columns::{columns, slices};
use super::node::{Components, Form, Held, Node, Origin, Word};
use super::operations::Publics;
use super::order::Wanted;
use super::products::{Placed, Products};
use super::size::{self, Size};
use super::steps::{Joint, Local, Step, Work};
use super::watch::Claim;
use mpc::checks::{Group, Product, Term, settle};
use mpc::{Bilinear, Flag, Parts, Protocol, Result, SharedFlag};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Numbers that are settled together at most, but for those of one operation.
const TOGETHER: usize = 1 << 22;

/// Whose a claim is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// Of which instruction; 0 of none.
    pub claim: Claim,
    /// Which recipients what it is of reaches, a bit each.
    pub among: u64,
}

/// A flag, and which recipients depend on it.
pub type Told = (u64, SharedFlag);

/// Which recipients words reach. Where there is but one, all do.
#[derive(Default)]
pub struct Reached(HashMap<*const Node, u64>);

impl Reached {
    /// By words that recipients receive, of each a bit.
    #[must_use]
    pub fn by(wanted: &[(u64, Wanted)]) -> Self {
        let Some((first, _)) = wanted.first() else {
            return Self::default();
        };
        if wanted.iter().all(|(recipient, _)| recipient == first) {
            return Self::default();
        }
        let mut all: HashMap<*const Node, u64> = HashMap::new();
        for (recipient, (root, _)) in wanted {
            let mut left = vec![root.clone()];
            while let Some(node) = left.pop() {
                let among = all.entry(Rc::as_ptr(&node)).or_default();
                if *among & recipient != 0 {
                    continue;
                }
                *among |= recipient;
                node.with_origin(|origin| {
                    let words = origin.map(Origin::words).into_iter().flatten().flatten();
                    left.extend(words.filter_map(|word| match word {
                        Word::Secret(node) => Some(node.clone()),
                        Word::Public(_) => None,
                    }));
                });
            }
        }
        Self(all)
    }

    /// Which a word reaches, if it was there when that was asked.
    #[must_use]
    pub fn among(&self, node: &Rc<Node>) -> Option<u64> {
        self.0.get(&Rc::as_ptr(node)).copied()
    }
}

/// What is claimed of words that are computed together. Deliberately without `Debug`: they hold shares.
#[derive(Default)]
pub struct Claims {
    /// Numbers, and bits that they are held to.
    holds: Vec<(Owner, Rc<Node>, u32)>,
    /// Where each of them is.
    known: HashMap<(Owner, *const Node), usize>,
    /// Numbers that lie between two.
    between: Vec<(Owner, Rc<Node>, [i64; 2])>,
    /// Sums of products, and their results.
    products: Vec<(Owner, Rc<Node>, Step)>,
}

impl Claims {
    /// Those of a checked word's step.
    pub fn add(&mut self, owner: Owner, target: &Rc<Node>, step: &Step) {
        let need = |at: usize| &step.needs[at].0;
        match step.work {
            Work::Local(Local::Add | Local::Subtract) => {
                self.hold_summands(owner, step.needs.iter().map(|(word, _)| word));
            }
            Work::Local(Local::Scale(by)) => self.hold_factor(owner, need(0), by),
            Work::Local(Local::ShiftLeft(places)) => self.hold_factor(owner, need(0), 1 << places),
            Work::Local(Local::Mask(u64::MAX)) => self.hold_as_said(owner, target),
            Work::Joint(Joint::Truncate(_)) => self.hold_truncated(owner, need(0)),
            Work::Joint(Joint::Multiply) => {
                let (left, right) = step.needs.split_at(step.needs.len() / 2);
                let pairs = left.iter().zip(right);
                let size = size::of_products(pairs.map(|((x, _), (y, _))| [x, y]));
                self.add_products(owner, &Word::Secret(target.clone()), step.clone(), size);
            }
            _ => {}
        }
    }

    /// That a sum of products is the one over the integers, and can be truncated.
    pub fn add_products(&mut self, owner: Owner, sum: &Word, step: Step, size: Size) {
        let Word::Secret(node) = sum else {
            return;
        };
        if owner.claim == 0 || size < size::ROOM {
            return;
        }
        for (factor, _) in &step.needs {
            self.hold_truncated(owner, factor);
        }
        self.hold_surely(owner, node, size::WORD);
        self.products.push((owner, node.clone(), step));
    }

    /// That a sum has a word.
    pub fn hold_summands<'w>(&mut self, owner: Owner, words: impl Iterator<Item = &'w Word>) {
        if owner.claim == 0 {
            return;
        }
        let some: Vec<&Word> = words
            .filter(|word| !matches!(word, Word::Public(0)))
            .collect();
        let size: Size = some.iter().map(|word| word.size()).sum();
        if some.len() > 1 && size >= size::ROOM {
            let bits = size::WORD + 1 - some.len().next_power_of_two().ilog2();
            some.iter().for_each(|word| self.hold(owner, word, bits));
        }
    }

    /// That a number can be truncated, multiplied and compared.
    pub fn hold_truncated(&mut self, owner: Owner, word: &Word) {
        if owner.claim != 0 && word.size() >= size::ROOM {
            self.hold(owner, word, size::WORD);
        }
    }

    fn hold_factor(&mut self, owner: Owner, word: &Word, by: u64) {
        if word.size() * size::of_number(by as i64) >= size::ROOM {
            self.hold(owner, word, size::of_factor(by));
        }
    }

    fn hold_as_said(&mut self, owner: Owner, target: &Rc<Node>) {
        let said = target.with_origin(|origin| match origin {
            Some(Origin::Held(word, held)) => Some((word.clone(), *held)),
            _ => None,
        });
        match said {
            Some((word, Held::Below(bits))) => self.hold(owner, &word, bits),
            Some((Word::Secret(node), Held::Between(least, most))) => {
                self.between.push((owner, node, [least, most]));
            }
            _ => {}
        }
    }

    fn hold(&mut self, owner: Owner, word: &Word, bits: u32) {
        match word {
            Word::Secret(node) if word.size() > size::passing(bits) => {
                self.hold_surely(owner, node, bits);
            }
            _ => {}
        }
    }

    /// Also what is small only if this is so.
    fn hold_surely(&mut self, owner: Owner, node: &Rc<Node>, bits: u32) {
        let next = self.holds.len();
        let at = *self
            .known
            .entry((owner, Rc::as_ptr(node)))
            .or_insert_with(|| {
                self.holds.push((owner, node.clone(), bits));
                next
            });
        let held = &mut self.holds[at].2;
        *held = bits.min(*held);
    }

    /// The numbers that are looked at, which are to be there then.
    #[must_use]
    pub fn held(&self) -> Vec<Wanted> {
        let holds = self.holds.iter().map(|(_, node, _)| node);
        let all = holds.chain(self.between.iter().map(|(_, node, _)| node));
        all.map(|node| (node.clone(), Form::Arithmetic)).collect()
    }

    /// Finds out, in secret, which hold: a flag for each line, by its name, and recipients that it reaches, of which there
    /// may be several where there is much.
    ///
    /// # Errors
    /// `Misuse` where the protocol has no checks; what the links meet.
    pub fn settle(
        self,
        protocol: &mut dyn Protocol,
        name: &dyn Fn(Claim) -> String,
    ) -> Result<Vec<Told>> {
        let mut names: HashMap<Claim, String> = HashMap::new();
        let mut line = |owner: Owner| -> Line {
            let label = names
                .entry(owner.claim)
                .or_insert_with(|| name(owner.claim));
            (label.clone(), owner.among)
        };
        let publics = Publics::of(protocol);
        let mut lines: BTreeMap<Line, Checks> = BTreeMap::new();
        for (owner, node, bits) in &self.holds {
            let checks = lines.entry(line(*owner)).or_default();
            let numbers = checks.holds.entry(*bits as usize + 3).or_default();
            numbers.push(number(node));
        }
        for (owner, node, ends) in &self.between {
            let checks = lines.entry(line(*owner)).or_default();
            if let Some((width, moved)) = around(*ends) {
                let numbers = checks.exact.entry(width).or_default();
                let moved = moved.map(|by| publics.components(by, Form::Arithmetic));
                numbers.extend(moved.map(|by| Local::Add.on(&[number(node), by])));
            }
        }
        for (owner, node, step) in &self.products {
            let checks = lines.entry(line(*owner)).or_default();
            checks.products.push((node, step));
        }
        let mut told = Vec::new();
        let mut batch = Batch::default();
        for (line, checks) in lines {
            for piece in checks.pieces(&publics) {
                if batch.numbers > 0 && batch.numbers + piece.numbers() > TOGETHER {
                    told.extend(std::mem::take(&mut batch).settle(protocol)?);
                }
                batch.add(&line, piece);
            }
        }
        told.extend(batch.settle(protocol)?);
        Ok(told)
    }
}

/// A line of the program by its name, and which recipients it reaches.
type Line = (String, u64);

fn number(node: &Rc<Node>) -> Components {
    node.computed(Form::Arithmetic).expect("it was wanted")
}

/// How a number is held between two ends: moved so that each end is one of −2^(width − 2) to below 2^(width − 2). None
/// where that is most of all words, of which nothing follows.
fn around([least, most]: [i64; 2]) -> Option<(usize, [u64; 2])> {
    let beyond = (i128::from(most) - i128::from(least)) as u128;
    let width = (129 - beyond.leading_zeros()).max(4);
    let half = 1_u64 << (width - 2).min(63);
    (width < 64).then(|| {
        let below = (least as u64).wrapping_neg().wrapping_sub(half);
        let above = half.wrapping_sub(most as u64).wrapping_sub(1);
        (width as usize, [below, above])
    })
}

/// What is checked of a line.
#[derive(Default)]
struct Checks<'c> {
    /// By width.
    holds: BTreeMap<usize, Vec<Components>>,
    exact: BTreeMap<usize, Vec<Components>>,
    products: Vec<(&'c Rc<Node>, &'c Step)>,
}

/// One operation's part of that.
enum Piece {
    Hold(usize, Vec<Components>),
    Exact(usize, Vec<Components>),
    Product {
        map: Bilinear,
        x: Vec<Components>,
        /// None where it is x.
        y: Option<Vec<Components>>,
        out: Vec<Components>,
    },
}

impl Piece {
    fn numbers(&self) -> usize {
        match self {
            Self::Hold(_, numbers) | Self::Exact(_, numbers) => numbers.len(),
            Self::Product { x, y, out, .. } => x.len() + y.as_ref().map_or(0, Vec::len) + out.len(),
        }
    }
}

impl Checks<'_> {
    fn pieces(self, publics: &Publics) -> Vec<Piece> {
        let chunks = |numbers: Vec<Components>| -> Vec<Vec<Components>> {
            numbers.chunks(TOGETHER).map(<[_]>::to_vec).collect()
        };
        let mut pieces = Vec::new();
        for (width, numbers) in self.holds {
            let of = |chunk| Piece::Hold(width, chunk);
            pieces.extend(chunks(numbers).into_iter().map(of));
        }
        for (width, numbers) in self.exact {
            let of = |chunk| Piece::Exact(width, chunk);
            pieces.extend(chunks(numbers).into_iter().map(of));
        }
        for some in self.products.chunks(TOGETHER) {
            let steps = some.iter().map(|(_, step)| *step);
            let placed: Vec<Placed> = steps.enumerate().collect();
            for (done, products) in Products::of(&placed, &|need| publics.operand(need)) {
                let results: Vec<Components> = done.iter().map(|at| number(some[*at].0)).collect();
                pieces.extend(of_products(products, &results));
            }
        }
        pieces
    }
}

/// Products as they were multiplied, but that single ones are summed up where their sums are wanted: those of a length
/// together.
fn of_products(products: Products, results: &[Components]) -> Vec<Piece> {
    let Products {
        map,
        left,
        right,
        is_square,
        sums,
    } = products;
    if sums.is_empty() {
        let (x, y, out) = (left, Some(right), results.to_vec());
        return vec![Piece::Product { map, x, y, out }];
    }
    let mut lengths: BTreeMap<usize, [Vec<Components>; 3]> = BTreeMap::new();
    let mut at = 0;
    for (length, result) in sums.iter().zip(results) {
        let [x, y, out] = lengths.entry(*length).or_default();
        x.extend(&left[at..at + length]);
        y.extend(&right[at..at + length]);
        out.push(*result);
        at += length;
    }
    let of_length = |(k, [x, y, out]): (usize, [Vec<Components>; 3])| {
        let map = match k {
            1 => Bilinear::Elementwise { n: out.len() },
            _ => Bilinear::Matrix {
                batch: out.len(),
                m: 1,
                k,
                n: 1,
            },
        };
        let y = (!is_square).then_some(y);
        Piece::Product { map, x, y, out }
    };
    lengths.into_iter().map(of_length).collect()
}

/// What is settled together.
#[derive(Default)]
struct Batch {
    tensors: Vec<Vec<Components>>,
    groups: Vec<(Line, Group<'static>)>,
    numbers: usize,
}

impl Batch {
    fn add(&mut self, line: &Line, piece: Piece) {
        self.numbers += piece.numbers();
        if self.groups.last().is_none_or(|(last, _)| last != line) {
            let group = Group {
                products: Vec::new(),
                holds: Vec::new(),
                exact: Vec::new(),
            };
            self.groups.push((line.clone(), group));
        }
        let tensors = &mut self.tensors;
        let mut place = |tensor| {
            tensors.push(tensor);
            tensors.len() - 1
        };
        let Some((_, group)) = self.groups.last_mut() else {
            unreachable!("there is one by now");
        };
        match piece {
            Piece::Hold(width, numbers) => group.holds.push((place(numbers), width)),
            Piece::Exact(width, numbers) => group.exact.push((place(numbers), width)),
            Piece::Product { map, x, y, out } => {
                let x = place(x);
                let y = y.map_or(x, &mut place);
                group.products.push(Product {
                    terms: vec![Term { map, x, y }],
                    addends: Vec::new(),
                    out: place(out),
                    shift: None,
                    rest: &[],
                });
            }
        }
    }

    fn settle(self, protocol: &mut dyn Protocol) -> Result<Vec<Told>> {
        if self.groups.is_empty() {
            return Ok(Vec::new());
        }
        let tensors: Vec<Vec<Vec<u64>>> = self
            .tensors
            .iter()
            .map(|tensor| columns(protocol, tensor))
            .collect();
        let tensors: Vec<Vec<&[u64]>> = tensors.iter().map(|tensor| slices(tensor)).collect();
        let tensors: Vec<Parts> = tensors.iter().map(Vec::as_slice).collect();
        let (lines, groups): (Vec<Line>, Vec<Group>) = self.groups.into_iter().unzip();
        let bits = settle(protocol, &tensors, &groups)?;
        let told = lines.into_iter().enumerate();
        Ok(told
            .map(|(at, (name, among))| (among, Flag::of_bit(&name, bits.at(at))))
            .collect())
    }
}
