//! Checks, in secret, that operations on shares gave the same results as on integers.
//!
//! **What is checked.** Words stand for integers from −2^63 to 2^63, modulo 2^64. If the integer
//! result of a product does not fit a word, or has too many bits for its truncation, the computed
//! word is wrong without any sign of it. Two things are checked:
//! - *products*, and sums of products, truncated or not: Σ map(x, y) + addend·2^f = 2^f·z + d over
//!   the integers, where z is the result and d the part that the truncation dropped; and
//! - *holds*: that numbers have few enough bits for the operations on them, such as sums, shifts,
//!   products by public numbers, and comparisons of fewer bits.
//!
//! **Idea.** Both sides of the equation are known to be equal modulo 2^64. So they are equal if
//! their difference is less than 2^64. The checks also compare them modulo the prime p = 2^31 − 1
//! ([`crate::residues`]), where a difference of 2^64·m shows unless p divides m.
//! - The integer that a sharing stands for can be found modulo p at the cost of one message
//!   ([`super::checking`]). Among more than two parties, products give the residues of what they
//!   open ([`crate::checking::Factors`]), and only the other tensors need this message. Let s and t
//!   be two summands of x + 2^62 − 1, known to different parties, with highest bits A and B. Then x
//!   = s + t − (A + B − AB)·2^64 − 2^62 + 1, as in truncations, and only AB needs interaction.
//! - A truncation of two summands drops s mod 2^f + t mod 2^f + 1 − 2^f, and each party keeps its
//!   own summand of that ([`crate::checking::Kept::rest`]). Truncations by a dealer's masks give the
//!   residues of the dropped bits and of the result ([`crate::checking::Kept::residues`]).
//! - One random combination of all elements of a result is checked, with coefficients s_i·r_j
//!   modulo p. For a product of matrices it is (sᵀX)(Yr) (Freivalds 1977). So the vectors that are
//!   multiplied have the length of the inner dimension, and the work is linear in the operands.
//!   Convolutions are products of matrices, with s for the filters and r for the places.
//!   Elementwise products have one coefficient per element.
//! - Each product has two combinations, in as many summands as there are parties
//!   ([`crate::checking::Summands`]). The check asks whether the summands add up to zero modulo p,
//!   that is, to 0, p, 2p, ... as integers. The answer is a secret bit, found by
//!   [`Protocol::equal_zero`].
//!
//! **Soundness.** A combination of values that are not all zero modulo p is zero with probability
//! at most 2/p, so both combinations are zero with probability at most 2^−58. A difference below
//! 2^94 is 2^64·m with |m| < p, so it is missed with no more than that probability. A larger
//! difference is missed if p divides m: for numbers that are not chosen for it, one in 2^31.
//!
//! **Which numbers are refused.** Operands of products from 2^60 on, and whatever a hold excludes.
//! Nothing is refused because terms of a sum cancel.
//!
//! **Numbers from 2^62 on** may be lifted to integers that differ from them by 2^64. No check
//! passes because of that, if operands, addends, and results without a truncation are claimed to be
//! below 2^62: by holds of the same group, or by others that the same opening depends on. Results
//! of truncations need no claim. A truncation takes whatever it truncates for an integer from
//! −3·2^62 to below 3·2^62, so its result is below 2^62 if it drops two bits or more. If it drops
//! one, the result is compared with the bound, as an exact hold.
//!
//! **Coins** are tossed after all values that they judge are fixed ([`Protocol::toss`]), so no
//! party can foresee them.
//!
//! **Simulation.** Lifting, multiplying and inspecting are operations of the protocol, each with
//! its own simulation argument; nothing is opened here. A group's bit becomes a flag
//! ([`crate::guards`]). The receiver of a result learns whether the flag holds: an output that the
//! functionality gives.
//!
//! **Weights** are lifted once ([`Residues`]). A caller that keeps a tensor keeps its residues with
//! it until the tensor is written to. Every check takes combinations of the residues by fresh
//! coins.
//!
//! **Rounds:** 1 to toss coins, 1 to lift, 1 to multiply, and those of the zero test and of holds.
//! They are spent once for everything that is checked together. **Bits** with replicated sharing:
//! 31 for an element of an operand or a result; 93 for each operand of an elementwise product, per
//! element, or per element of an inner dimension. If messages are proven, tossing takes 3 rounds and
//! lifting 2, an operand or a result 162 bits and 31 more if it was truncated, and a product 93.

mod holds;

use crate::checking::{Checking, Factors, Hold, Summands};
use crate::combinations::Weights;
use crate::residues::{self, PRIME};
use crate::{Bilinear, Bits, Error, Parts, Protocol, Result, Shift};
use holds::{compare, hold};
use kernels::planes::words_of;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The number of random combinations of each product.
const COMBINATIONS: usize = 2;

/// A bilinear map of two tensors, which are given by their places in the list of tensors.
pub struct Term {
    /// The map.
    pub map: Bilinear,
    /// The place of the left operand.
    pub x: usize,
    /// The place of the right operand.
    pub y: usize,
}

/// A tensor that was added to products before they were truncated. Its numbers repeat from the
/// first after the last.
pub struct Addend {
    /// The place of the tensor.
    pub x: usize,
    /// How many consecutive elements of the result take the same number.
    pub run: usize,
}

/// A sum of products, and its result.
pub struct Product<'a> {
    /// The products: at least one, all of the same structure.
    pub terms: Vec<Term>,
    /// The addends, possibly none.
    pub addends: Vec<Addend>,
    /// The place of the result.
    pub out: usize,
    /// The number of dropped bits, if the sum was truncated.
    pub shift: Option<Shift>,
    /// The summands of the dropped part, if any was dropped ([`crate::checking::Kept::rest`]).
    pub rest: &'a [Vec<u64>],
    /// What the products gave ([`crate::checking::Kept::factors`]): nothing, or something for each
    /// term.
    pub factors: &'a [Factors],
}

impl Product<'_> {
    /// Returns the residues of an operand of a term, left or right, if the product gave them.
    fn operand(&self, term: usize, side: usize) -> Option<&Arc<Summands>> {
        self.factors.get(term)?.operands[side].as_ref()
    }

    /// Returns the residues of a term's products, element by element, if the product gave them.
    fn products(&self, term: usize) -> Option<&[Vec<u64>]> {
        self.factors.get(term)?.products.as_deref()
    }
}

/// The operations of one operator, which are checked together.
pub struct Group<'a> {
    /// The products of the operator.
    pub products: Vec<Product<'a>>,
    /// Places of tensors, and the width that each is held to.
    pub holds: Vec<(usize, usize)>,
    /// Holds by comparisons, which cost more and are exact: x passes if and only if −2^(width − 2)
    /// ≤ x < 2^(width − 2).
    pub exact: Vec<(usize, usize)>,
}

/// The residues of a tensor that is multiplied repeatedly, such as a weight. They are lifted once.
#[derive(Default)]
pub struct Residues(OnceLock<Arc<Summands>>);

impl Residues {
    /// Returns residues that are already known.
    #[must_use]
    pub fn of(summands: Summands) -> Self {
        Self(OnceLock::from(Arc::new(summands)))
    }

    /// Returns whether there are no residues, or residues of no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let no_elements = |residues: &Arc<Summands>| residues.iter().all(Vec::is_empty);
        self.0.get().is_none_or(no_elements)
    }
}

/// Computes [`settle_keeping`] without kept residues.
///
/// # Errors
/// As [`settle_keeping`].
pub fn settle<'a>(
    protocol: &mut dyn Protocol,
    tensors: &[Parts<'a>],
    groups: &'a [Group<'a>],
) -> Result<Bits> {
    settle_keeping(protocol, tensors, &HashMap::new(), groups)
}

/// Returns one plane with a bit for each group: whether all its checks hold.
///
/// Residues of the tensors whose places are in `kept` are not computed again. All parties keep the
/// same residues, and drop them when a tensor changes.
///
/// # Errors
/// `Misuse` if the protocol has no checks, or if residues belong to another tensor. Network errors.
pub fn settle_keeping<'a>(
    protocol: &mut dyn Protocol,
    tensors: &[Parts<'a>],
    kept: &HashMap<usize, Arc<Residues>>,
    groups: &'a [Group<'a>],
) -> Result<Bits> {
    if protocol.checking().is_none() {
        return Err(unavailable(protocol));
    }
    protocol.toss()?;
    let holds = groups.iter().map(|group| &group.holds[..]);
    let mut held = hold(protocol, &named(tensors, holds), groups.len())?;
    let mut exact = named(tensors, groups.iter().map(|group| &group.exact[..]));
    for (group, each) in groups.iter().enumerate() {
        let halved = |product: &&Product| product.shift.is_some_and(|shift| shift.bits() == 1);
        exact.extend(each.products.iter().filter(halved).map(|product| Hold {
            x: tensors[product.out],
            width: u64::BITS as usize,
            group,
        }));
    }
    if !exact.is_empty() {
        let just_so = compare(protocol, &exact, groups.len())?;
        held = protocol.and(&held, &just_so)?;
    }
    let checking = checking(protocol)?;
    let products: Vec<(usize, &Product)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, each)| each.products.iter().map(move |product| (group, product)))
        .collect();
    if products.is_empty() {
        return Ok(held);
    }
    let lifted = Lifted::of(
        checking,
        tensors,
        kept,
        products.iter().map(|(_, product)| *product),
    )?;
    let sums = combined(checking, &lifted, &products)?;
    let right = are_zero(protocol, groups.len(), &products, sums)?;
    protocol.and(&held, &right)
}

/// Lists the holds of each group.
fn named<'a>(
    tensors: &[Parts<'a>],
    groups: impl Iterator<Item = &'a [(usize, usize)]>,
) -> Vec<Hold<'a>> {
    let of_group = |(group, holds): (usize, &'a [(usize, usize)])| {
        holds.iter().map(move |(at, width)| (group, *at, *width))
    };
    groups
        .enumerate()
        .flat_map(of_group)
        .map(|(group, at, width)| Hold {
            x: tensors[at],
            width,
            group,
        })
        .collect()
}

/// Returns the error that explains why checks are unavailable.
fn unavailable(protocol: &dyn Protocol) -> Error {
    Error::misuse(format!(
        "protocol \"additive\" among {} parties checks operations with source \"dealer\" only",
        protocol.parties()
    ))
}

fn checking(protocol: &mut dyn Protocol) -> Result<&mut dyn Checking> {
    let parties = protocol.parties();
    protocol
        .checking()
        .ok_or_else(|| Error::misuse(format!("no checked operations among {parties} parties")))
}

/// Residues of the tensors that occur in products.
struct Lifted(HashMap<usize, Arc<Summands>>);

impl Lifted {
    fn of<'p>(
        checking: &mut dyn Checking,
        tensors: &[Parts],
        kept: &HashMap<usize, Arc<Residues>>,
        products: impl Iterator<Item = &'p Product<'p>>,
    ) -> Result<Self> {
        let mut lifted: HashMap<usize, Arc<Summands>> = HashMap::new();
        let mut places = Vec::new();
        for product in products {
            for (at, term) in product.terms.iter().enumerate() {
                if product.products(at).is_some() {
                    continue;
                }
                for (side, place) in [term.x, term.y].into_iter().enumerate() {
                    places.push(place);
                    if let Some(given) = product.operand(at, side) {
                        lifted.entry(place).or_insert_with(|| Arc::clone(given));
                    }
                }
            }
            places.extend(product.addends.iter().map(|addend| addend.x));
            places.push(product.out);
        }
        places.sort_unstable();
        places.dedup();
        let mut missing = Vec::new();
        for at in places {
            let cache = kept.get(&at).map(|residues| &residues.0);
            if let Some(known) = cache.and_then(OnceLock::get) {
                lifted.insert(at, Arc::clone(known));
            } else if let Some(given) = lifted.get(&at) {
                store(cache, given);
            } else {
                missing.push(at);
            }
        }
        let is_other = |(at, residues): (&usize, &Arc<Summands>)| {
            let n = tensors[*at][0].len();
            residues.iter().any(|summands| summands.len() != n)
        };
        if lifted.iter().any(is_other) {
            return Err(Error::misuse("the kept residues belong to another tensor"));
        }
        let some: Vec<Parts> = missing.iter().map(|at| tensors[*at]).collect();
        for (at, residues) in missing.iter().zip(checking.lift(&some)?) {
            let residues = Arc::new(residues);
            store(kept.get(at).map(|residues| &residues.0), &residues);
            lifted.insert(*at, residues);
        }
        Ok(Self(lifted))
    }

    fn at(&self, place: usize) -> &[Vec<u64>] {
        &self.0[&place]
    }
}

/// Stores residues in the cache of a tensor that is multiplied repeatedly.
fn store(cache: Option<&OnceLock<Arc<Summands>>>, residues: &Arc<Summands>) {
    if let Some(cache) = cache {
        // Another thread that lifted the tensor meanwhile has stored the same residues.
        let _ = cache.set(Arc::clone(residues));
    }
}

/// Computes the combinations of all products. They are zero if the products are right.
///
/// Everything here is linear in the summands, so it is computed for those of each place alike.
fn combined(
    checking: &mut dyn Checking,
    lifted: &Lifted,
    products: &[(usize, &Product)],
) -> Result<Summands> {
    let (mut factors, mut pairs, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    let mut single: HashMap<usize, usize> = HashMap::new();
    let places = products
        .first()
        .map_or(0, |(_, first)| lifted.at(first.out).len());
    let mut sums = vec![vec![0; COMBINATIONS * products.len()]; places];
    let mut weights = Vec::with_capacity(products.len());
    for (at, (_, product)) in products.iter().enumerate() {
        let first = &product.terms.first().ok_or_else(no_terms)?.map;
        let drawn: Vec<Weights> = (0..COMBINATIONS)
            .map(|_| Weights::draw(checking, first))
            .collect();
        let above = above_of(checking, product);
        for (which, term) in product.terms.iter().enumerate() {
            if !drawn[0].fit(&term.map) {
                return Err(Error::misuse(
                    "a sum of products of different structures cannot be checked",
                ));
            }
            if let Some(products) = product.products(which) {
                let inner = term.map.inner_products().unwrap_or(0);
                let n = inner * term.map.lengths().2;
                if products.iter().any(|products| products.len() != n) {
                    return Err(Error::misuse("the kept residues belong to another product"));
                }
                add_to_sums(
                    &mut sums,
                    COMBINATIONS * at,
                    above,
                    products,
                    |number, all| combined_products(&drawn[number], all, inner),
                );
                continue;
            }
            let (x, y) = (lifted.at(term.x), lifted.at(term.y));
            if let Some(inner) = term.map.inner_products() {
                // Each operand is a factor once, for all products with it and for both
                // combinations.
                let pair = [term.x, term.y].map(|place| {
                    *single.entry(place).or_insert_with(|| {
                        factors.push(lifted.at(place).to_vec());
                        factors.len() - 1
                    })
                });
                pairs.push(pair);
                owners.push((at, Requested::Each(inner)));
                continue;
            }
            for (number, weights) in drawn.iter().enumerate() {
                let of_places = x.iter().zip(y);
                let contracted = of_places.map(|(x, y)| weights.contract(&term.map, x, y));
                let (left, right) = contracted.map(|[left, right]| (left, right)).unzip();
                factors.extend([left, right]);
                pairs.push([factors.len() - 2, factors.len() - 1]);
                owners.push((at, Requested::Combined(number)));
            }
        }
        for (number, weights) in drawn.iter().enumerate() {
            let at = COMBINATIONS * at + number;
            for (place, sums) in sums.iter_mut().enumerate() {
                let result = result(checking, weights, lifted, product, place);
                sums[at] = residues::subtract(sums[at], result);
            }
        }
        weights.push(drawn);
    }
    let multiplied = checking.multiply(&factors, &pairs)?;
    for ((at, requested), found) in owners.into_iter().zip(multiplied) {
        let above = above_of(checking, products[at].1);
        let drawn: &[Weights] = &weights[at];
        let first = COMBINATIONS * at;
        match requested {
            Requested::Each(inner) => {
                add_to_sums(&mut sums, first, above, &found, |number, all| {
                    combined_products(&drawn[number], all, inner)
                })
            }
            Requested::Combined(only) => {
                for (sums, found) in sums.iter_mut().zip(&found) {
                    let sum = &mut sums[first + only];
                    *sum = residues::add(*sum, residues::multiply(above, sum_of(found)));
                }
            }
        }
    }
    Ok(sums)
}

/// Adds each combination of a product, times `above`, to the sums from `first` on, at each place.
fn add_to_sums(
    sums: &mut Summands,
    first: usize,
    above: u64,
    products: &[Vec<u64>],
    combined: impl Fn(usize, &[u64]) -> u64,
) {
    for (sums, products) in sums.iter_mut().zip(products) {
        for (number, sum) in sums[first..][..COMBINATIONS].iter_mut().enumerate() {
            let combined = combined(number, products);
            *sum = residues::add(*sum, residues::multiply(above, combined));
        }
    }
}

/// Returns the factor by which products are shifted up before they are truncated.
fn above_of(checking: &dyn Checking, product: &Product) -> u64 {
    let above = product.shift.map_or(0, |shift| checking.above(shift));
    residues::power_of_two(above)
}

/// The factors that are multiplied for a term.
#[derive(Clone, Copy)]
enum Requested {
    /// The operands, element by element. Each result is the sum of this many products.
    Each(usize),
    /// The contracted operands for the combination with this number.
    Combined(usize),
}

/// Combines results, each of which is the sum of `inner` products.
fn combined_products(weights: &Weights, products: &[u64], inner: usize) -> u64 {
    match inner {
        1 => weights.combine(|i| products[i]),
        _ => weights.combine(|i| sum_of(&products[i * inner..][..inner])),
    }
}

fn sum_of(numbers: &[u64]) -> u64 {
    residues::of_word(numbers.iter().map(|x| residues::folded(*x)).sum())
}

fn no_terms() -> Error {
    Error::misuse("a sum without products cannot be checked")
}

/// Combines the results of products, without their addends, from the summands of one place:
/// 2^f·z + d − addend·2^f.
fn result(
    checking: &dyn Checking,
    weights: &Weights,
    lifted: &Lifted,
    product: &Product,
    place: usize,
) -> u64 {
    // A narrow product may be shifted up before it is truncated.
    let dropped = product
        .shift
        .map_or(0, |shift| shift.bits() + checking.above(shift));
    let scale = residues::power_of_two(dropped);
    let out = &lifted.at(product.out)[place];
    let mut whole = weights.combine(|i| out[i]);
    for addend in &product.addends {
        let numbers = &lifted.at(addend.x)[place];
        let added = weights.combine(|i| numbers[i / addend.run % numbers.len()]);
        whole = residues::subtract(whole, added);
    }
    let rest = product
        .rest
        .get(place)
        .map_or(0, |rest| weights.combine(|i| residues::of_signed(rest[i])));
    residues::add(residues::multiply(scale, whole), rest)
}

/// Returns a bit for each group: whether all its combinations are zero.
fn are_zero(
    protocol: &mut dyn Protocol,
    groups: usize,
    products: &[(usize, &Product)],
    sums: Summands,
) -> Result<Bits> {
    // There are as many summands as parties. The sum of n residues, if it is zero modulo p, is one
    // of 0, p, ... (n − 1)·p.
    let parties = protocol.parties() as u64;
    let n = sums[0].len();
    let summed = checking(protocol)?.summed(sums)?;
    let multiples: Vec<u64> = (0..parties)
        .flat_map(|times| vec![(times * PRIME).wrapping_neg(); n])
        .collect();
    let mut shifted = vec![vec![0; multiples.len()]; protocol.parts()];
    let mut slices: Vec<&mut [u64]> = shifted.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.trivial(&multiples, &mut slices);
    for (shifted, summed) in shifted.iter_mut().zip(&summed) {
        for (shifted, sum) in shifted.iter_mut().zip(summed.iter().cycle()) {
            *shifted = shifted.wrapping_add(*sum);
        }
    }
    let shifted: Vec<&[u64]> = shifted.iter().map(Vec::as_slice).collect();
    let bits = residues::BITS + 2 + (u64::BITS - parties.leading_zeros());
    let zero = protocol.equal_zero(&shifted, bits as usize)?;
    // At most one multiple matches. A group's bit is the AND of the bits of its combinations.
    let met = |at: usize| {
        let mut met = zero.at(at);
        for times in 1..parties as usize {
            met.xor_assign(&zero.at(times * n + at));
        }
        met
    };
    let mut of_group: Vec<Vec<Bits>> = (0..groups).map(|_| Vec::new()).collect();
    for (at, (group, _)) in products.iter().enumerate() {
        of_group[*group].extend((0..COMBINATIONS).map(|one| met(COMBINATIONS * at + one)));
    }
    conjunctions(protocol, of_group)
}

/// Computes the AND of each group's bits, all groups in parallel. The AND of no bits is 1.
fn conjunctions(protocol: &mut dyn Protocol, groups: Vec<Vec<Bits>>) -> Result<Bits> {
    let (most, n) = (
        groups.iter().map(Vec::len).max().unwrap_or(0).max(1),
        groups.len(),
    );
    let one = protocol.trivial_bits(&[1], 1, 1);
    let mut planes = Vec::with_capacity(most);
    for at in 0..most {
        let of = groups.iter().map(|group| group.get(at).unwrap_or(&one));
        planes.push(gathered(protocol.parts(), n, of));
    }
    let all = Bits::stack(&planes.iter().collect::<Vec<_>>());
    crate::tree::conjunction(all, &mut |joins| protocol.and_all(joins))
}

/// Gathers single bits into a plane.
fn gathered<'b>(parts: usize, n: usize, bits: impl Iterator<Item = &'b Bits>) -> Bits {
    let mut planes = vec![vec![0; words_of(n)]; parts];
    for (at, bit) in bits.enumerate() {
        for (plane, part) in planes.iter_mut().zip(bit.parts()) {
            plane[at / 64] |= (part[0] & 1) << (at % 64);
        }
    }
    Bits::new(1, n, planes)
}
