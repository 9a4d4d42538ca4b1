//! The model of two parties that compare by tables: party i holds x_i and knows it as a number.
//! Names are those of the heads of `tables.rs`, `selection.rs` and `binary.rs` in `src/additive`,
//! and of `leaves/tables.rs`.

use super::additive::{join, truncate_between_two};
use super::correlations::{self, CrossSelection, LookUp};
use super::leaves::{Leaves, Wanted, add_all};
use super::tree::{Join, conjunction, prefix_carries, top_carry};
use super::value::joined;
use super::{Shared, Value, World, subtract};
use std::ops::Range;

/// The most positions of a span with tables, however many a span of linear forms has.
const DIGIT: u32 = 3;

/// A bit of a span.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Generate,
    Propagate,
}

/// The tables of one span.
pub struct Table {
    pub positions: Range<usize>,
    /// The wanted bits, with their places among the bits of all spans.
    pub outputs: Vec<(Output, usize)>,
    /// The place of its first entry among those of all tables.
    start: usize,
}

impl Table {
    fn entries(&self) -> usize {
        1 << self.positions.len()
    }

    /// Returns the place behind its last entry. Entry 0 is left out.
    pub fn end(&self) -> usize {
        self.start + (self.entries() - 1) * self.outputs.len()
    }

    /// Returns the entry that digits find in tables, of this column. Entry 0 is zero.
    pub fn find(&self, digits: &[Value], entries: &[Value], column: usize) -> Value {
        let digit = joined(&digits[self.positions.clone()]);
        let Some(before) = (digit.bits() as usize).checked_sub(1) else {
            return Value::new(0, 1, digit.known());
        };
        let entry = entries[self.start + before * self.outputs.len() + column];
        Value::new(entry.bits(), 1, digit.known() & entry.known())
    }

    /// Returns a bit of s + t in each entry, where s is the entry's number ⊕ d.
    fn tabulate(&self, output: Output, t: Value, d: Value) -> Vec<Value> {
        let all = self.entries() as u64 - 1;
        let entry = |k: u64| {
            let (s, t_bits) = (k ^ d.bits(), t.bits());
            let holds = match output {
                Output::Generate => s + t_bits > all,
                Output::Propagate => s ^ t_bits == all,
            };
            Value::new(u64::from(holds), 1, t.known() & d.known())
        };
        (0..=all).map(entry).collect()
    }
}

/// Lays out the tables of all spans: span by span, entry by entry, bit by bit.
pub fn tables(leaves: &Leaves) -> Vec<Table> {
    let (spans, mut start) = (leaves.spans.len(), 0);
    let table = |(at, span): (usize, &Range<u32>)| {
        let mut outputs = Vec::new();
        if leaves.wanted == Wanted::Carry {
            outputs.push((Output::Generate, at));
            outputs.extend((at > 0).then(|| (Output::Propagate, spans + at - 1)));
        } else {
            outputs.push((Output::Propagate, at));
        }
        let table = Table {
            positions: span.start as usize..span.end as usize,
            outputs,
            start,
        };
        start = table.end();
        table
    };
    leaves.spans.iter().enumerate().map(table).collect()
}

fn shape(w: &World, wanted: Wanted, positions: u32) -> Leaves {
    Leaves::new(wanted, positions, w.span.min(DIGIT))
}

/// `leaves/tables.rs`: the bits of the spans of x0 + x1.
fn leaves(
    w: &mut World,
    shape: &Leaves,
    x: Shared<2>,
    reader: usize,
    look_up: &LookUp,
) -> Vec<Shared<2>> {
    let writer = 1 - reader;
    let (s, t) = (x[reader], x[writer]);
    let digits = look_up.digits.iter().zip(0..);
    let mut d: Vec<Value> = digits.map(|(r, at)| s.bit(at) + *r).collect();
    w.send(reader, writer, &mut d);
    let tables = tables(shape);
    let mut bits = look_up.found.clone();
    let mut sent = Vec::new();
    for table in &tables {
        let (from, positions) = (table.positions.start as u32, table.positions.clone());
        let t = (t >> from).low(positions.len() as u32);
        let d = joined(&d[positions]);
        let outputs = table.outputs.iter();
        let columns: Vec<Vec<Value>> = outputs
            .map(|(output, _)| table.tabulate(*output, t, d))
            .collect();
        for entry in 1..table.entries() {
            for column in &columns {
                sent.push(column[entry] + column[0] + look_up.entries[sent.len()]);
            }
        }
        for ((_, place), column) in table.outputs.iter().zip(&columns) {
            bits[*place][writer] = bits[*place][writer] + column[0];
        }
    }
    w.send(writer, reader, &mut sent);
    for table in &tables {
        for (column, (_, place)) in table.outputs.iter().enumerate() {
            let found = table.find(&look_up.digits, &sent, column);
            bits[*place][reader] = bits[*place][reader] + found;
        }
    }
    if shape.wanted == Wanted::Carry {
        let highest = &mut bits[shape.spans.len() - 1];
        *highest = super::add(*highest, x.map(|x| x.bit(shape.width() - 1)));
    }
    bits
}

/// `sign.rs`, Sign, without low bits of each share.
pub fn sign(w: &mut World, x: Shared<2>, [width, dropped]: [u32; 2], reader: usize) -> Shared<2> {
    signs(w, &[x], [width, dropped], reader)[0]
}

/// Signs by one look-up. One number is right; of two, each would tell about the other.
pub fn signs(
    w: &mut World,
    all: &[Shared<2>],
    [width, dropped]: [u32; 2],
    reader: usize,
) -> Vec<Shared<2>> {
    let shape = shape(w, Wanted::Carry, width - dropped - 1);
    let look_up = correlations::look_up(w, &shape, reader);
    let sign = |x: &Shared<2>| {
        let bits = leaves(w, &shape, x.map(|x| x >> dropped), reader, &look_up);
        let (generates, propagates) = shape.halves(&bits);
        top_carry(generates, propagates, &mut |joins| join(w, joins))
    };
    all.iter().map(sign).collect()
}

/// `sign.rs`, Zero: of x0 + (x1 − 1), all positions propagate.
pub fn equal_zero(w: &mut World, x: Shared<2>, width: u32, reader: usize) -> Shared<2> {
    let shape = shape(w, Wanted::Propagate, width);
    let look_up = correlations::look_up(w, &shape, reader);
    let less = [x[0], x[1] - w.public(1)];
    let bits = leaves(w, &shape, less, reader, &look_up);
    conjunction(bits, &mut |joins| join(w, joins))
}

/// `binary.rs`, Additive to binary, of two parties. Returns the bits from the lowest up.
pub fn to_binary(w: &mut World, x: Shared<2>, width: u32) -> Vec<Shared<2>> {
    let bits = (0..width).map(|at| x.map(|x| x.bit(at)));
    let mut sum: Vec<Shared<2>> = bits.collect();
    let below = width as usize - 1;
    let zero = Value::public(0, 1);
    let both = sum[..below].iter().map(|bit| Join {
        left: [bit[0], zero],
        rights: vec![[zero, bit[1]]],
    });
    let generate = join(w, &both.collect::<Vec<_>>());
    let carries = prefix_carries(generate, sum[..below].to_vec(), &mut |joins| join(w, joins));
    add_all(&mut sum[1..], &carries);
    sum
}

/// `selection.rs`, Two parties: b·x = Σ b_i·x_i + Σ b_j·y_i.
pub fn bit_multiply(w: &mut World, bit: Shared<2>, x: Shared<2>) -> Shared<2> {
    let selection = correlations::cross_selection(w);
    select(w, &selection, bit, x)
}

/// Multiplies with a correlation, which is for one product.
pub fn select(w: &mut World, by: &CrossSelection, bit: Shared<2>, x: Shared<2>) -> Shared<2> {
    let word = |bit: Value| bit.widen(x[0].width());
    let flip = |bit: Value| Value::public(1, x[0].width()) - word(bit) - word(bit);
    let y = [0, 1].map(|i| x[i] * flip(bit[i]));
    let mut sent = [0, 1].map(|i| [bit[i] + by.bits[i], y[i] - by.words[i]]);
    w.send(0, 1, &mut sent[0]);
    w.send(1, 0, &mut sent[1]);
    [0, 1].map(|me| {
        let other = 1 - me;
        let ([own, _], [theirs, masked]) = (sent[me], sent[other]);
        let by_own = word(by.bits[me]) * masked + by.chosen[me][me];
        let by_other = by.chosen[other][me] * flip(theirs);
        word(bit[me]) * x[me] + word(theirs) * y[me] + by_own * flip(own) + by_other
    })
}

/// `rectify.rs`: x without its negative part.
pub fn rectified(w: &mut World, x: Shared<2>, left_out: Shared<2>) -> Shared<2> {
    let part = bit_multiply(w, left_out, x);
    subtract(x, part)
}

/// `rectify.rs`, In parallel with the truncation, by f bits, of a value that two parties have split
/// uniformly.
pub fn rectified_sum(
    w: &mut World,
    z: Shared<2>,
    f: u32,
    [width, shifted]: [u32; 2],
    reader: usize,
) -> Shared<2> {
    let truncated = truncate_between_two(w, z, f);
    let negative = sign(w, z, [width + shifted, shifted], reader);
    rectified(w, truncated, negative)
}
