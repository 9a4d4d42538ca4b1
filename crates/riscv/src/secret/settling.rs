//! Settlement of claims: each line of the program becomes a group of checks with one flag. Products
//! that were computed together are checked as the same matrix product, so the check costs less than
//! the product did.

use super::claims::{Claims, Owner};
use super::columns::{columns, slices};
use super::node::{Components, Form, Node};
use super::operations::Publics;
use super::products::{Placed, Products};
use super::steps::{Local, Step};
use super::watch::Claim;
use mpc::checks::{Group, Product, Term, settle};
use mpc::{Bilinear, Flag, Parts, Protocol, Result, SharedFlag};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The maximum count of numbers settled together, unless a single operation has more.
const TOGETHER: usize = 1 << 22;

/// A flag, and the recipients that depend on it.
pub type SettledFlag = (u64, SharedFlag);

impl Claims {
    /// Determines, in secret, which claims hold. Returns a flag for each pair of a line, by name,
    /// and its recipients; large checks may produce several flags.
    ///
    /// # Errors
    /// `Misuse` if the protocol has no checks. Errors of the network links are passed on.
    pub fn settle(
        self,
        protocol: &mut dyn Protocol,
        name: &dyn Fn(Claim) -> String,
    ) -> Result<Vec<SettledFlag>> {
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
            if let Some((width, moved)) = range_check(*ends) {
                let numbers = checks.exact.entry(width).or_default();
                let moved = moved.map(|by| publics.components(by, Form::Arithmetic));
                numbers.extend(moved.map(|by| Local::Add.on(&[number(node), by])));
            }
        }
        for (owner, node, step) in &self.products {
            let checks = lines.entry(line(*owner)).or_default();
            checks.products.push((node, step));
        }
        let mut settled = Vec::new();
        let mut batch = Batch::default();
        for (line, checks) in lines {
            for piece in checks.pieces(&publics) {
                if batch.numbers > 0 && batch.numbers + piece.numbers() > TOGETHER {
                    settled.extend(std::mem::take(&mut batch).settle(protocol)?);
                }
                batch.add(&line, piece);
            }
        }
        settled.extend(batch.settle(protocol)?);
        Ok(settled)
    }
}

/// A line of the program by its name, and the recipients that it reaches.
type Line = (String, u64);

fn number(node: &Rc<Node>) -> Components {
    node.computed(Form::Arithmetic).expect("it was wanted")
}

/// Returns how a number is checked against two ends: a width, and an offset for each end that maps
/// it to a limit of the range from −2^(width − 2) to below 2^(width − 2). Returns `None` if the
/// ends are 2^63 or more apart: such a range does not even determine a sign, so nothing relies on
/// it.
fn range_check([least, most]: [i64; 2]) -> Option<(usize, [u64; 2])> {
    let beyond = (i128::from(most) - i128::from(least)) as u128;
    let width = (129 - beyond.leading_zeros()).max(4);
    let half = 1_u64 << (width - 2).min(63);
    (width <= 64).then(|| {
        let below = (least as u64).wrapping_neg().wrapping_sub(half);
        let above = half.wrapping_sub(most as u64).wrapping_sub(1);
        (width as usize, [below, above])
    })
}

/// The checks of a line.
#[derive(Default)]
struct Checks<'c> {
    /// Checked numbers by width.
    holds: BTreeMap<usize, Vec<Components>>,
    exact: BTreeMap<usize, Vec<Components>>,
    products: Vec<(&'c Rc<Node>, &'c Step)>,
}

/// The part of a check that is one operation.
enum Piece {
    Hold(usize, Vec<Components>),
    Exact(usize, Vec<Components>),
    Product {
        map: Bilinear,
        x: Vec<Components>,
        /// `None` if y equals x.
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

/// Returns the products as they were multiplied. Single products are summed up where only their
/// sums are known, those of one length together.
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

/// The checks that are settled together.
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
                    factors: &[],
                });
            }
        }
    }

    fn settle(self, protocol: &mut dyn Protocol) -> Result<Vec<SettledFlag>> {
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
        let lines = lines.into_iter().enumerate();
        Ok(lines
            .map(|(at, (name, among))| (among, Flag::of_bit(&name, bits.at(at))))
            .collect())
    }
}
