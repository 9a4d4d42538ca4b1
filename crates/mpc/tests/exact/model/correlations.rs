//! Correlations as an ideal source gives them (`correlations/kind.rs`): free columns are uniform at
//! every party, derived ones uniform except for their sum.
//!
//! They are laid out as by a dealer: each party also expands its share of a derived column. For
//! each element, one party is corrected, and gets the missing value instead.

use super::leaves::Leaves;
use super::tables::tables;
use super::{Extent, Key, Range, Shared, Slot, Value, World, holders};

/// One element's share of each plane of a column.
pub type Planes<const N: usize> = Vec<Shared<N>>;

/// Draws a free column of a word, or of its low bits.
fn free<const N: usize>(w: &mut World, width: u32) -> Shared<N> {
    planes(w, &[Slot::word(0)], width)[0]
}

fn free_bit<const N: usize>(w: &mut World, at: usize) -> Shared<N> {
    planes(w, &[Slot::plane(at)], 1)[0]
}

fn planes<const N: usize>(w: &mut World, slots: &[Slot], width: u32) -> Planes<N> {
    let ranges: [Range; N] = ranges(w, extent(slots));
    slots
        .iter()
        .map(|slot| ranges.map(|range| w.coin(range, *slot, width)))
        .collect()
}

/// Takes every party's range of a column.
fn ranges<const N: usize>(w: &mut World, extent: Extent) -> [Range; N] {
    std::array::from_fn(|party| w.range(Key::Dealer(party), extent))
}

fn extent(slots: &[Slot]) -> Extent {
    match slots {
        [Slot::Word { .. }] => Extent::Column { planes: 0 },
        planes => Extent::Column {
            planes: planes.len(),
        },
    }
}

/// Draws a derived column that shares these values of an element.
fn derived<const N: usize>(w: &mut World, values: &[Value], slot: fn(usize) -> Slot) -> Planes<N> {
    shared(w, values, slot, |w, extent, _| w.corrected(N, extent, 0, 1))
}

/// Draws a derived column of one bit that shares these values of several elements. Those of one
/// value lie side by side.
fn derived_bits<const N: usize>(w: &mut World, values: &[Value]) -> Planes<N> {
    let count = values.len();
    shared(w, values, Slot::plane, |w, extent, at| {
        w.corrected(N, extent, at, count)
    })
}

fn shared<const N: usize>(
    w: &mut World,
    values: &[Value],
    slot: fn(usize) -> Slot,
    corrected: impl Fn(&World, Extent, usize) -> usize,
) -> Planes<N> {
    let slots: Vec<Slot> = (0..values.len()).map(slot).collect();
    let ranges = ranges(w, extent(&slots));
    shared_from(w, ranges, values, &slots, corrected)
}

/// Derives shares of these values from ranges of a column.
fn shared_from<const N: usize>(
    w: &mut World,
    ranges: [Range; N],
    values: &[Value],
    slots: &[Slot],
    corrected: impl Fn(&World, Extent, usize) -> usize,
) -> Planes<N> {
    let share = |(at, value): (usize, &Value)| {
        let corrected = corrected(w, ranges[0].extent, at);
        let mut missing = *value;
        let mut shares = [missing; N];
        for party in (0..N).filter(|party| *party != corrected) {
            shares[party] = w.coin(ranges[party], slots[at], value.width());
            missing = missing - shares[party];
        }
        shares[corrected] = w.receive(missing, holders([corrected]));
        shares
    };
    values.iter().enumerate().map(share).collect()
}

fn word<const N: usize>(w: &mut World, value: Value) -> Shared<N> {
    derived(w, &[value], Slot::word)[0]
}

fn sum<const N: usize>(shares: Shared<N>) -> Value {
    shares
        .into_iter()
        .reduce(|a, b| a + b)
        .expect("at least one party")
}

/// Draws a and b, and derives ab.
pub fn triple<const N: usize>(w: &mut World) -> [Shared<N>; 3] {
    let (a, b) = (free(w, w.word), free(w, w.word));
    [a, b, word(w, sum(a) * sum(b))]
}

/// Draws a mask of an operand.
pub fn mask<const N: usize>(w: &mut World) -> Shared<N> {
    free(w, w.word)
}

/// Derives the product of two masks.
pub fn product_of_masks<const N: usize>(w: &mut World, a: Shared<N>, b: Shared<N>) -> Shared<N> {
    word(w, sum(a) * sum(b))
}

/// Draws a, and derives a².
pub fn square<const N: usize>(w: &mut World) -> [Shared<N>; 2] {
    let a = free(w, w.word);
    [a, word(w, sum(a) * sum(a))]
}

/// Bits a, b_1, .. and the product of a with each, for `count` joins with several right factors.
pub struct BitTriples<const N: usize> {
    pub left: Planes<N>,
    pub rights: Vec<Planes<N>>,
    pub products: Vec<Planes<N>>,
}

pub fn bit_triples<const N: usize>(w: &mut World, rights: usize, count: usize) -> BitTriples<N> {
    let slots: Vec<Slot> = (0..count).map(Slot::plane).collect();
    let left: Planes<N> = planes(w, &slots, 1);
    let rights: Vec<Planes<N>> = (0..rights).map(|_| planes(w, &slots, 1)).collect();
    let products = rights.iter().map(|right| {
        let factors = left.iter().zip(right);
        let values: Vec<Value> = factors.map(|(a, b)| sum(*a) * sum(*b)).collect();
        derived_bits(w, &values)
    });
    let products = products.collect();
    BitTriples {
        left,
        rights,
        products,
    }
}

/// Draws a bit, and derives it as a ring element.
pub fn ring_bit<const N: usize>(w: &mut World) -> [Shared<N>; 2] {
    let bit = free_bit(w, 0);
    [bit, word(w, sum(bit).widen(w.word))]
}

/// Draws r, and derives its bits.
pub fn ring_with_bits<const N: usize>(w: &mut World, width: u32) -> (Shared<N>, Planes<N>) {
    let r = free(w, width);
    let bits: Vec<Value> = (0..width).map(|at| sum(r).bit(at)).collect();
    (r, derived(w, &bits, Slot::plane))
}

/// Draws r, and derives the monomials of its bits.
pub fn ring_with_monomials<const N: usize>(
    w: &mut World,
    leaves: &Leaves,
) -> (Shared<N>, Planes<N>) {
    let r = free(w, leaves.width());
    (r, derived(w, &leaves.monomials(sum(r)), Slot::plane))
}

/// Draws r, and derives r >> f and its highest bit mod 2^f.
pub fn truncation<const N: usize>(w: &mut World, f: u32) -> [Shared<N>; 3] {
    let r = free(w, w.word);
    let shifted = word(w, sum(r) >> f);
    [r, shifted, word(w, sum(r).high().widen(f))]
}

/// Draws a bit of party 0 and a bit of party 1, and derives their product mod 2^f.
pub fn cross_bits(w: &mut World, f: u32) -> ([Value; 2], [Value; 2]) {
    let bits: Shared<2> = free_bit(w, 0);
    let product = bits[0].widen(f) * bits[1].widen(f);
    (bits, word(w, product))
}

/// Draws a bit β and a ring element a, and derives β as a ring element and βa.
pub fn selection<const N: usize>(w: &mut World) -> [Shared<N>; 4] {
    let bit = free_bit(w, 0);
    let a = free(w, w.word);
    let beta = sum(bit).widen(w.word);
    let shared = word(w, beta);
    [bit, a, shared, word(w, beta * sum(a))]
}

/// Draws a selection, and derives c = a >> below, of `reach` bits, and c(c + 1).
pub fn guarded_selection<const N: usize>(
    w: &mut World,
    [below, reach]: [u32; 2],
) -> ([Shared<N>; 4], [Shared<N>; 2]) {
    let selection = selection(w);
    let c = (sum(selection[1]) >> below).low(reach);
    let upper = word(w, c);
    (
        selection,
        [upper, word(w, c * (c + Value::public(1, reach)))],
    )
}

/// The part of a look-up in which one party reads: its random digits, random tables of the other,
/// and shares of what the digits find in the tables.
pub struct LookUp {
    /// A bit for each position.
    pub digits: Vec<Value>,
    /// Tables without entry 0, as [`tables`] lays them out.
    pub entries: Vec<Value>,
    /// In the order of the spans' bits.
    pub found: Planes<2>,
}

/// Takes the columns of a look-up, in which both parties read. Draws the part of one of them: the
/// other part is for an element of the other half, and independent.
pub fn look_up(w: &mut World, leaves: &Leaves, reader: usize) -> LookUp {
    let tables = tables(leaves);
    let positions = tables.last().map_or(0, |table| table.positions.end);
    let entries = tables.last().map_or(0, |table| table.end());
    let outputs = tables.iter().map(|table| table.outputs.len()).sum();
    let half = |planes| Extent::Half { planes };
    let [of_digits, of_tables, first, second] = [positions, entries, outputs, outputs]
        .map(|planes| -> [Range; 2] { ranges(w, half(planes)) });
    let mut draw = |range: Range, planes: usize| -> Vec<Value> {
        let coin = |at| w.coin(range, Slot::plane(at), 1);
        (0..planes).map(coin).collect()
    };
    let digits = draw(of_digits[reader], positions);
    let entries = draw(of_tables[1 - reader], entries);
    let mut values = vec![Value::public(0, 1); outputs];
    for table in &tables {
        for (column, (_, place)) in table.outputs.iter().enumerate() {
            values[*place] = table.find(&digits, &entries, column);
        }
    }
    let slots: Vec<Slot> = (0..outputs).map(Slot::plane).collect();
    let found = shared_from(
        w,
        [first, second][reader],
        &values,
        &slots,
        |w, extent, _| w.corrected(2, extent, 0, 1),
    );
    LookUp {
        digits,
        entries,
        found,
    }
}

/// A bit and a word of each of two parties, and shares of the bit of party 0, and of party 1, times
/// the other's word.
pub struct CrossSelection {
    pub bits: Shared<2>,
    pub words: Shared<2>,
    pub chosen: [Shared<2>; 2],
}

pub fn cross_selection(w: &mut World) -> CrossSelection {
    let bits: Shared<2> = free_bit(w, 0);
    let words: Shared<2> = free(w, w.word);
    let chosen = [0, 1].map(|party| {
        let product = bits[party].widen(w.word) * words[1 - party];
        word(w, product)
    });
    CrossSelection {
        bits,
        words,
        chosen,
    }
}
