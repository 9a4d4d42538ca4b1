//! The model of replicated sharing, by roles: role i holds x_i and x_{i+1}. Names are those of the
//! heads in `src/replicated`, including "step 1" and "step 2".

use super::leaves::{Leaves, Wanted};
use super::tree::{Join, conjunction, prefix_carries, top_carry};
use super::value::joined;
use super::{Extent, Key, Range, Shared, Slot, Value, World, Wrong, add, holders, low};

type Bit = Shared<3>;

/// Returns the holders of component i.
pub fn of_component(i: usize) -> u8 {
    holders([i, (i + 2) % 3])
}

/// Takes a range of k01, of k12 and of k20.
pub(super) fn ranges(w: &mut World, extent: Extent) -> [Range; 3] {
    [(0, 1), (1, 2), (2, 0)].map(|(i, j)| w.range(Key::pair(i, j), extent))
}

/// `inputs.rs`, Sharing: x0 from k20, x1 = x − x0 to role 1, x2 = 0.
pub fn share(w: &mut World, x: Value, slot: impl Fn(usize) -> Slot) -> Shared<3> {
    let k20 = w.range(Key::pair(2, 0), Extent::Whole);
    let x0 = w.coin(k20, slot(0), x.width());
    let mut x1 = [x - x0];
    w.send(0, 1, &mut x1);
    [x0, x1[0], Value::public(0, x.width())]
}

/// `inputs.rs`, Opening: each party sends its first component to the next party, which lacks it.
pub fn reveal(w: &mut World, x: Shared<3>, to: &[usize]) -> Value {
    let mut sent = x;
    for receiver in to {
        let before = (receiver + 2) % 3;
        w.send(before, *receiver, &mut sent[before..=before]);
    }
    sent[0] + sent[1] + sent[2]
}

/// `products.rs`: party i's summand of the product.
fn summand(x: Shared<3>, y: Shared<3>, i: usize) -> Value {
    let j = (i + 1) % 3;
    x[i] * (y[i] + y[j]) + x[j] * y[i]
}

/// `products.rs`, Without truncation; `binary.rs`, AND. All products are in one frame.
pub fn products(
    w: &mut World,
    pairs: &[(Shared<3>, Shared<3>)],
    slot: impl Fn(usize) -> Slot,
) -> Vec<Shared<3>> {
    let parts = pairs
        .iter()
        .map(|(x, y)| [0, 1, 2].map(|i| summand(*x, *y, i)));
    shared(w, parts.collect(), slot)
}

/// Shares the sums of the parties' summands, masked by a sharing of zero.
fn shared(
    w: &mut World,
    mut parts: Vec<Shared<3>>,
    slot: impl Fn(usize) -> Slot,
) -> Vec<Shared<3>> {
    let keys = ranges(w, Extent::Whole);
    for (at, part) in parts.iter_mut().enumerate() {
        let masks = keys.map(|key| w.coin(key, slot(at), part[0].width()));
        *part = [0, 1, 2].map(|i| part[i] + masks[i] - masks[(i + 2) % 3]);
    }
    for i in 0..3 {
        let mut frame: Vec<Value> = parts.iter().map(|part| part[i]).collect();
        w.send(i, (i + 2) % 3, &mut frame);
        parts
            .iter_mut()
            .zip(frame)
            .for_each(|(part, sent)| part[i] = sent);
    }
    parts
}

pub fn product(w: &mut World, x: Shared<3>, y: Shared<3>) -> Shared<3> {
    products(w, &[(x, y)], Slot::word)[0]
}

/// `binary.rs`: all products of the joins.
pub fn join(w: &mut World, joins: &[Join<3>]) -> Vec<Bit> {
    let pairs = joins
        .iter()
        .flat_map(|join| join.rights.iter().map(|right| (join.left, *right)));
    let pairs: Vec<(Bit, Bit)> = pairs.collect();
    products(w, &pairs, Slot::plane)
}

/// `products.rs`, With truncation, fused. Also returns what it reveals: s to role 0, t to the
/// others.
pub fn truncated_product(
    w: &mut World,
    x: Shared<3>,
    y: Shared<3>,
    f: u32,
) -> (Shared<3>, [Value; 2]) {
    let (s, t) = fused_split(w, &[[x, y]], 0);
    (truncate_split(w, s, t, f), [s, t])
}

/// `products.rs`, for several products and an addend. The addend's components 0 and 1 are added to
/// s, 2 to t. A narrow sum is shifted up by `above` bits.
pub fn truncated_affine(
    w: &mut World,
    terms: &[[Shared<3>; 2]],
    addend: Shared<3>,
    [f, above]: [u32; 2],
) -> (Shared<3>, [Value; 2]) {
    let (s, t) = fused_split(w, terms, above);
    let f = f + above;
    let (s, t) = (s + ((addend[0] + addend[1]) << f), t + (addend[2] << f));
    (truncate_split(w, s, t, f), [s, t])
}

/// Splits the sum of products into s at role 0 and t at roles 1 and 2. z1 is masked by k01, z2 by
/// k20, and both are subtracted from s. A narrow sum is shifted up as a whole.
fn fused_split(w: &mut World, terms: &[[Shared<3>; 2]], above: u32) -> (Value, Value) {
    let (word, sent) = (w.word, w.word - above);
    let [k01, _, k20] = ranges(w, Extent::Runs);
    let [to_2, to_1] = [k01, k20].map(|key| w.coin(key, Slot::word(0), sent));
    let z = |i: usize| {
        let summands = terms.iter().map(|[x, y]| summand(*x, *y, i));
        let sum = summands.reduce(|a, b| a + b).expect("at least one product");
        sum.low(sent)
    };
    let s = z(0) - to_2 - to_1;
    let mut z1 = [z(1) + to_2];
    w.send(1, 2, &mut z1);
    let mut z2 = [z(2) + to_1];
    w.send(2, 1, &mut z2);
    let up = |x: Value| x.widen(word) << above;
    (up(s), up(z1[0] + z2[0]))
}

/// `truncation.rs`: a new split by the public coin κ, which is what it reveals.
pub fn truncate(w: &mut World, x: Shared<3>, f: u32) -> (Shared<3>, Value) {
    let common = w.range(Key::Common, Extent::Whole);
    let coin = w.coin(common, Slot::word(0), w.word);
    let used = if w.is(Wrong::OldSplit) {
        w.public(0)
    } else {
        coin
    };
    let y = truncate_split(w, x[0] + x[1] + used, x[2] - used, f);
    (y, coin)
}

/// `truncation.rs`, Symbols. s comes without its offset.
fn truncate_split(w: &mut World, s: Value, t: Value, f: u32) -> Shared<3> {
    let k = w.word;
    let less = u64::from(!w.is(Wrong::Offset));
    let more = u64::from(!w.is(Wrong::Offset) && !w.is(Wrong::RoundedDown));
    let s = s + w.public((1 << (k - 2)) - less);
    let [k01, _, k20] = ranges(w, Extent::Runs);
    let r0 = w.coin(k20, Slot::word(0), k);
    // Both values come from one word if they fit.
    let second = if f <= 32 {
        Slot::Word {
            field: 1,
            shift: 32,
        }
    } else {
        Slot::word(2)
    };
    let rho = w.coin(k20, Slot::word(1), f);
    let q2 = w.coin(k20, second, f);
    let q1 = w.coin(k01, Slot::word(0), f);
    let high = |x: Value| x.high().widen(k) << (k - f);
    let times_wrap = |x: Value| x.widen(k) << (k - f);
    // Step 1, role 0: m, a.
    let m = (s >> f) - high(s) - w.public(1 << (k - 2 - f)) + w.public(more) - r0;
    let mut opened = [m, s.high().widen(f) - rho];
    w.send(0, 1, &mut opened);
    let [m, a] = opened;
    // Step 1, role 2: c2. Step 2, role 1: c1.
    let b = t.high().widen(f);
    let both = if w.is(Wrong::Wrap) {
        w.public(0).low(f)
    } else {
        b
    };
    let mut c2 = [rho * both + q2];
    w.send(2, 1, &mut c2);
    let mut c1 = [a * both + q1];
    w.send(1, 2, &mut c1);
    let y2 = (t >> f) - high(t) + times_wrap(c1[0] + c2[0]);
    [r0 - times_wrap(q2), m - times_wrap(q1), y2]
}

/// `leaves.rs`: steps 1 and 2, and the result.
fn leaves(w: &mut World, leaves: &Leaves, s: Value, t: Value) -> Vec<Bit> {
    let keys = ranges(w, Extent::Runs);
    leaves_by(w, keys, leaves, s, t)
}

/// `leaves.rs`, with keys that were taken before.
fn leaves_by(w: &mut World, keys: [Range; 3], leaves: &Leaves, s: Value, t: Value) -> Vec<Bit> {
    let [k01, _, k20] = keys;
    let monomials = leaves.monomials(s);
    let rho: Vec<Value> = (0..monomials.len())
        .map(|at| w.coin(k20, Slot::plane(at), 1))
        .collect();
    let mut masked: Vec<Value> = monomials.iter().zip(&rho).map(|(m, r)| *m + *r).collect();
    w.send(0, 1, &mut masked);
    let after = monomials.len();
    let mut e2 = leaves.evaluate(&rho, t, false);
    let mut q2 = Vec::new();
    for (plane, bit) in e2.iter_mut().enumerate() {
        q2.push(w.coin(k20, Slot::Plane { after, plane }, 1));
        *bit = *bit + q2[plane];
    }
    w.send(2, 1, &mut e2);
    let mut e1 = leaves.evaluate(&masked, t, true);
    let mut q1 = Vec::new();
    for (plane, bit) in e1.iter_mut().enumerate() {
        q1.push(w.coin(k01, Slot::plane(plane), 1));
        *bit = *bit + q1[plane];
    }
    w.send(1, 2, &mut e1);
    (0..e1.len())
        .map(|at| [q2[at], q1[at], e1[at] + e2[at]])
        .collect()
}

/// `sign.rs`, Sign.
pub fn sign(w: &mut World, x: Shared<3>, width: u32) -> Bit {
    sign_without(w, x, width, 0)
}

/// `sign.rs`, Sign, without low bits.
pub fn sign_without(w: &mut World, x: Shared<3>, width: u32, dropped: u32) -> Bit {
    let width = width - dropped;
    let shape = Leaves::new(Wanted::Carry, width - 1, w.span);
    let [s, t] = [x[0] + x[1], x[2]].map(|summand| (summand >> dropped).low(width));
    let bits = leaves(w, &shape, s, t);
    let (generates, propagates) = shape.halves(&bits);
    top_carry(generates, propagates, &mut |joins| join(w, joins))
}

/// `guard.rs`, where s + t is compared. Returns ρ, a − ρ, and each role's summand of h(h + 1)
/// modulo 2^reach.
fn guard(
    w: &mut World,
    keys: [Range; 3],
    [s, t]: [Value; 2],
    width: u32,
    reach: u32,
) -> [Value; 5] {
    let [_, _, k20] = keys;
    let (b, k) = (width - 2, s.width());
    let a = (s >> b).low(reach);
    let c = ((t + Value::public(1 << (b - 1), k)) >> b).low(reach);
    let rho = w.coin(k20, Slot::word(0), reach - 1);
    let mut masked = [a.low(reach - 1) - rho];
    w.send(0, 1, &mut masked);
    let twice = |x: Value| x.widen(reach) << 1;
    let one = Value::public(1, reach);
    let of_1 = c * (c + one) + twice(masked[0]) * c;
    [rho, masked[0], a * (a + one), of_1, twice(rho) * c]
}

/// `sign.rs` and `guard.rs`: the guarded sign, and what the guard reveals.
pub fn guarded_sign(
    w: &mut World,
    x: Shared<3>,
    [width, reach, dropped]: [u32; 3],
) -> (Bit, [Value; 5]) {
    let keys = keys_of_guarded(w);
    let split = [x[0] + x[1], x[2]].map(|summand| summand >> dropped);
    compared(w, keys, split, [width - dropped, reach])
}

/// Takes the keys of the leaves and of the guard.
fn keys_of_guarded(w: &mut World) -> [[Range; 3]; 2] {
    let keys = [(); 2].map(|()| ranges(w, Extent::Runs));
    w.range(Key::Common, Extent::Whole);
    keys
}

fn compared(
    w: &mut World,
    [of_leaves, of_guard]: [[Range; 3]; 2],
    [s, t]: [Value; 2],
    [width, reach]: [u32; 2],
) -> (Bit, [Value; 5]) {
    let (bits, guard) = begun_comparison(w, [of_leaves, of_guard], [s, t], [width, reach]);
    (sign_of_leaves(w, width, &bits), guard)
}

/// Computes the leaves and the guard.
fn begun_comparison(
    w: &mut World,
    [of_leaves, of_guard]: [[Range; 3]; 2],
    [s, t]: [Value; 2],
    [width, reach]: [u32; 2],
) -> (Vec<Bit>, [Value; 5]) {
    let shape = Leaves::new(Wanted::Carry, width - 1, w.span);
    let bits = leaves_by(w, of_leaves, &shape, s.low(width), t.low(width));
    (bits, guard(w, of_guard, [s, t], width, reach))
}

fn sign_of_leaves(w: &mut World, width: u32, bits: &[Bit]) -> Bit {
    let shape = Leaves::new(Wanted::Carry, width - 1, w.span);
    let (generates, propagates) = shape.halves(bits);
    top_carry(generates, propagates, &mut |joins| join(w, joins))
}

/// `rectify.rs`: x times the complement of its sign.
pub fn rectified(w: &mut World, negative: Bit, x: Shared<3>) -> Shared<3> {
    let one = Value::public(1, 1);
    bit_multiply(w, [negative[0] + one, negative[1], negative[2]], x)
}

/// `guard.rs`, Looking, at summands of sums modulo 2^reach. Returns sharings of the sums, the
/// public coins of all parities, and a bit for each tally, and one for all together.
pub fn tallies_in_range(
    w: &mut World,
    tallies: &[&[Shared<3>]],
    reaches: &[u32],
    parities: usize,
) -> (Vec<Shared<3>>, Vec<Value>, Vec<Bit>) {
    let (summands, each) = (tallies.concat(), tallies[0].len());
    let sums = w.each(summands.len(), |w, at| {
        shared(w, vec![summands[at]], Slot::word)[0]
    });
    let common = w.range(Key::Common, Extent::Whole);
    let coins = w.each(parities * sums.len(), |w, at| {
        w.coin(common, Slot::word(0), reaches[at / parities / each])
    });
    let zero = Value::public(0, 1);
    // Parities of s and of −t, for each tally, and for all.
    let mut rows: Vec<Vec<[Value; 2]>> = Vec::new();
    let mut all = vec![[zero; 2]; parities];
    for ((tally, coins), reach) in sums
        .chunks(each)
        .zip(coins.chunks(parities * each))
        .zip(reaches)
    {
        let mut row = Vec::new();
        for (parity, all) in all.iter_mut().enumerate() {
            let mut odd = [zero; 2];
            for (sum, coins) in tally.iter().zip(coins.chunks(parities)) {
                let whole = sum[0].width();
                let known = [sum[0] + sum[1], Value::public(0, whole) - sum[2]];
                for (odd, known) in odd.iter_mut().zip(known) {
                    let coin = coins[parity];
                    *odd = (0..*reach).fold(*odd, |odd, at| odd + known.bit(at) * coin.bit(at));
                }
            }
            *all = [0, 1].map(|i| all[i] + odd[i]);
            row.push(odd);
        }
        rows.push(row);
    }
    rows.push(all);
    let width = parities as u32;
    let shape = Leaves::new(Wanted::Propagate, width, w.span);
    let bits = w.each(rows.len(), |w, at| {
        let s: Vec<Value> = rows[at].iter().map(|odd| odd[0]).collect();
        // Propagate bits are one where the bits differ.
        let t: Vec<Value> = rows[at]
            .iter()
            .map(|odd| odd[1] + Value::public(1, 1))
            .collect();
        let bits = leaves(w, &shape, joined(&s), joined(&t));
        conjunction(bits, &mut |joins| join(w, joins))
    });
    (sums, coins, bits)
}

/// A rectified product before its last step.
pub struct Begun {
    pub truncated: Shared<3>,
    pub negative: Bit,
    /// What it reveals: s to role 0, t to the others.
    pub split: [Value; 2],
    /// The guard's ρ, known to roles 0 and 2, a − ρ, known to roles 0 and 1, and the summands.
    pub guard: [Value; 5],
}

/// `rectify.rs`, Beside the truncation.
pub fn begun_product(
    w: &mut World,
    x: Shared<3>,
    y: Shared<3>,
    [f, above]: [u32; 2],
    [width, reach, dropped]: [u32; 3],
) -> Begun {
    let keys = keys_of_guarded(w);
    let (s, t) = fused_split(w, &[[x, y]], above);
    let f = f + above;
    let shifted = [s, t].map(|summand| summand >> (f + dropped));
    let (bits, guard) = begun_comparison(w, keys, shifted, [width - dropped, reach]);
    let truncated = truncate_split(w, s, t, f);
    let negative = sign_of_leaves(w, width - dropped, &bits);
    Begun {
        truncated,
        negative,
        split: [s, t],
        guard,
    }
}

pub fn rectified_product(
    w: &mut World,
    x: Shared<3>,
    y: Shared<3>,
    shift: [u32; 2],
    compared: [u32; 3],
) -> Shared<3> {
    let begun = begun_product(w, x, y, shift, compared);
    rectified(w, begun.negative, begun.truncated)
}

/// `sign.rs`, Zero.
pub fn equal_zero(w: &mut World, x: Shared<3>, width: u32) -> Bit {
    let x = low(x, width);
    let shape = Leaves::new(Wanted::Propagate, width, w.span);
    let bits = leaves(w, &shape, x[0] + x[1], x[2] - Value::public(1, width));
    conjunction(bits, &mut |joins| join(w, joins))
}

/// `binary.rs`, Additive to binary. Returns the bits from the lowest up.
pub fn to_binary(w: &mut World, x: Shared<3>, width: u32) -> Vec<Bit> {
    let (zero, x) = (Value::public(0, 1), low(x, width));
    let [_, _, k20] = ranges(w, Extent::Runs);
    let masks: Vec<Value> = (0..width)
        .map(|at| w.coin(k20, Slot::plane(at as usize), 1))
        .collect();
    let sum = x[0] + x[1];
    let bits = masks.iter().zip(0..);
    let mut rest: Vec<Value> = bits.map(|(mask, at)| sum.bit(at) + *mask).collect();
    w.send(0, 1, &mut rest);
    let s: Vec<Bit> = masks
        .iter()
        .zip(rest)
        .map(|(mask, rest)| [*mask, rest, zero])
        .collect();
    let t: Vec<Bit> = (0..width).map(|at| [zero, zero, x[2].bit(at)]).collect();
    let mut propagate: Vec<Bit> = s.iter().zip(&t).map(|(s, t)| add(*s, *t)).collect();
    let below = width as usize - 1;
    if below == 0 {
        return propagate;
    }
    let both: Vec<(Bit, Bit)> = s.into_iter().zip(t).take(below).collect();
    let generate = products(w, &both, Slot::plane);
    let carries = prefix_carries(generate, propagate[..below].to_vec(), &mut |joins| {
        join(w, joins)
    });
    super::leaves::add_all(&mut propagate[1..], &carries);
    propagate
}

/// `bit_products.rs`: steps 1 and 2, and the result.
pub fn bit_multiply(w: &mut World, bit: Bit, x: Shared<3>) -> Shared<3> {
    let k = w.word;
    let [k01, _, k20] = ranges(w, Extent::Runs);
    let rho = w.coin(k20, Slot::word(0), k);
    let sigma = w.coin(k20, Slot::word(1), k);
    let q2 = w.coin(k20, Slot::word(2), k);
    let q1 = w.coin(k01, Slot::word(0), k);
    let u = (bit[0] + bit[1]).widen(k);
    let v = bit[2].widen(k);
    let sign = w.public(1) - v - v;
    let mut masked = [u * (x[0] + x[1]) - rho, u - sigma];
    w.send(0, 1, &mut masked);
    let mut e2 = [rho * sign + v * x[0] + sigma * sign * x[2] - q2];
    w.send(2, 1, &mut e2);
    let mut e1 = [masked[0] * sign + v * (x[1] + x[2]) + masked[1] * sign * x[2] - q1];
    w.send(1, 2, &mut e1);
    [q2, q1, e1[0] + e2[0]]
}

/// `bit_products.rs`, For the bit alone: x0 = x1 = 0 and x2 = 1.
pub fn bit_to_ring(w: &mut World, bit: Bit) -> Shared<3> {
    let k = w.word;
    let [k01, _, k20] = ranges(w, Extent::Runs);
    let sigma = w.coin(k20, Slot::word(0), k);
    let q2 = w.coin(k20, Slot::word(1), k);
    let q1 = w.coin(k01, Slot::word(0), k);
    let v = bit[2].widen(k);
    let sign = w.public(1) - v - v;
    let mut masked = [(bit[0] + bit[1]).widen(k) - sigma];
    w.send(0, 1, &mut masked);
    let mut e2 = [sigma * sign - q2];
    w.send(2, 1, &mut e2);
    let mut e1 = [v + masked[0] * sign - q1];
    w.send(1, 2, &mut e1);
    [q2, q1, e1[0] + e2[0]]
}
