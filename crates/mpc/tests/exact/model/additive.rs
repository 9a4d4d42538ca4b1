//! The model of additive sharing: party i holds x_i. Names are those of the heads in
//! `src/additive`.

use super::correlations::{self, BitTriples};
use super::leaves::{Leaves, Wanted, add_all};
use super::tree::{Join, conjunction, prefix_carries, top_carry};
use super::{Extent, Key, Shared, Slot, Value, World, Wrong, holders, low, subtract};

/// Shares a public value: party 0 holds it.
fn trivial<const N: usize>(value: Value) -> Shared<N> {
    let zero = Value::public(0, value.width());
    std::array::from_fn(|party| if party == 0 { value } else { zero })
}

fn plus<const N: usize>(x: Shared<N>, public: Value) -> Shared<N> {
    super::add(x, trivial(public))
}

fn times<const N: usize>(x: Shared<N>, public: Value) -> Shared<N> {
    x.map(|x| x * public)
}

/// Opens values: every party sends its shares to every other, all in one frame.
fn open<const N: usize>(w: &mut World, shares: &mut [Shared<N>]) -> Vec<Value> {
    for party in 0..N {
        let mut frame: Vec<Value> = shares.iter().map(|share| share[party]).collect();
        for peer in (0..N).filter(|peer| *peer != party) {
            w.send(party, peer, &mut frame);
        }
        shares
            .iter_mut()
            .zip(frame)
            .for_each(|(share, sent)| share[party] = sent);
    }
    let sum = |share: &Shared<N>| share.iter().copied().reduce(|a, b| a + b);
    shares
        .iter()
        .map(|share| sum(share).expect("at least one party"))
        .collect()
}

/// `inputs.rs`, Sharing: party j's share comes from the key of both, and the owner keeps the rest.
pub fn share<const N: usize>(w: &mut World, owner: usize, x: Value, slot: Slot) -> Shared<N> {
    let mut rest = x;
    let mut shares = [x; N];
    for peer in (0..N).filter(|peer| *peer != owner) {
        let pair = w.range(Key::pair(owner, peer), Extent::Whole);
        shares[peer] = w.coin(pair, slot, x.width());
        rest = rest - shares[peer];
    }
    shares[owner] = rest;
    shares
}

/// `inputs.rs`, Revealing: among more than two parties, a sharing of zero from every pair's key is
/// added.
pub fn reveal<const N: usize>(w: &mut World, x: Shared<N>, to: &[usize], slot: Slot) -> Value {
    let mut masked = x;
    for (lower, higher) in (0..N).flat_map(|a| (a + 1..N).map(move |b| (a, b))) {
        if N > 2 {
            let pair = w.range(Key::pair(lower, higher), Extent::Whole);
            let mask = w.coin(pair, slot, x[0].width());
            masked[lower] = masked[lower] + mask;
            masked[higher] = masked[higher] - mask;
        }
    }
    for party in 0..N {
        for receiver in to.iter().filter(|receiver| **receiver != party) {
            w.send(party, *receiver, &mut masked[party..=party]);
        }
    }
    masked
        .into_iter()
        .reduce(|a, b| a + b)
        .expect("at least one party")
}

/// `products.rs`: an operand with its mask, opened. A named operand keeps its mask.
#[derive(Clone, Copy)]
pub struct Masked<const N: usize> {
    pub mask: Shared<N>,
    pub opened: Value,
}

/// `products.rs`, Computes: map(x, D) + map(E, b) + map(a, b).
fn from_masks<const N: usize>(
    x: Shared<N>,
    left: Masked<N>,
    right: Masked<N>,
    product: Shared<N>,
) -> Shared<N> {
    let sum = super::add(times(x, right.opened), times(right.mask, left.opened));
    super::add(sum, product)
}

/// `products.rs`: a product of two operands.
pub fn product<const N: usize>(w: &mut World, x: Shared<N>, y: Shared<N>) -> Shared<N> {
    products(w, &[[x, y]])
}

/// `products.rs`, Sums: all operands are opened together.
fn products<const N: usize>(w: &mut World, terms: &[[Shared<N>; 2]]) -> Shared<N> {
    let triples: Vec<_> = terms.iter().map(|_| correlations::triple(w)).collect();
    let all = terms.iter().zip(&triples);
    let masked = all
        .clone()
        .flat_map(|([x, y], [a, b, _])| [subtract(*x, *a), subtract(*y, *b)]);
    let opened = open(w, &mut masked.collect::<Vec<_>>());
    let products = all
        .zip(opened.chunks(2))
        .map(|(([x, _], [a, b, ab]), opened)| {
            let [left, right] =
                [(*a, opened[0]), (*b, opened[1])].map(|(mask, opened)| Masked { mask, opened });
            from_masks(*x, left, right, *ab)
        });
    products.reduce(super::add).expect("at least one product")
}

/// `products.rs`: the value of an affine map before its truncation.
pub fn summed<const N: usize>(
    w: &mut World,
    terms: &[[Shared<N>; 2]],
    addend: Shared<N>,
    f: u32,
) -> Shared<N> {
    super::add(products(w, terms), addend.map(|addend| addend << f))
}

/// `rectify.rs`, Beside the truncation, by f bits, of a value that two parties have split
/// uniformly. Returns the truncated value, and whether it is negative, from some bits of the
/// shifted shares.
pub fn begun_sum<const N: usize>(
    w: &mut World,
    z: Shared<N>,
    f: u32,
    [width, shifted]: [u32; 2],
) -> [Shared<N>; 2] {
    let truncated = truncate_between_two(w, z, f);
    [truncated, sign_without(w, z, width + shifted, shifted)]
}

/// `products.rs`, Operands that are used again: x is masked unless its mask was kept.
pub fn named_product<const N: usize>(
    w: &mut World,
    x: Shared<N>,
    kept: &mut Option<Masked<N>>,
    y: Shared<N>,
) -> Shared<N> {
    let known = *kept;
    let a = kept.map_or_else(|| correlations::mask(w), |kept| kept.mask);
    let b = correlations::mask(w);
    let ab = correlations::product_of_masks(w, a, b);
    let mut masked = vec![subtract(y, b)];
    if known.is_none() {
        masked.insert(0, subtract(x, a));
    }
    let opened = open(w, &mut masked);
    let left = known.unwrap_or(Masked {
        mask: a,
        opened: opened[0],
    });
    *kept = Some(left);
    let right = Masked {
        mask: b,
        opened: opened[masked.len() - 1],
    };
    from_masks(x, left, right, ab)
}

/// `products.rs`, Squares.
pub fn square<const N: usize>(w: &mut World, x: Shared<N>) -> Shared<N> {
    let [a, c] = correlations::square(w);
    let e = open(w, &mut [subtract(x, a)])[0];
    super::add(times(super::add(x, a), e), c)
}

/// `binary.rs`, AND: joins with one right factor first, then those with two, all in one frame.
pub fn join<const N: usize>(w: &mut World, joins: &[Join<N>]) -> Vec<Shared<N>> {
    let mut masked = Vec::new();
    let mut classes = Vec::new();
    for rights in 1..=2 {
        let members = joins.iter().filter(|join| join.rights.len() == rights);
        let members: Vec<&Join<N>> = members.collect();
        if members.is_empty() {
            continue;
        }
        let masks: BitTriples<N> = correlations::bit_triples(w, rights, members.len());
        let lefts = members.iter().zip(&masks.left);
        masked.extend(lefts.map(|(join, a)| subtract(join.left, *a)));
        for (at, mask) in masks.rights.iter().enumerate() {
            let factors = members.iter().zip(mask);
            masked.extend(factors.map(|(join, b)| subtract(join.rights[at], *b)));
        }
        classes.push((rights, masks));
    }
    let opened = open(w, &mut masked);
    let mut rest = &opened[..];
    let mut done = [Vec::new(), Vec::new()];
    for (rights, masks) in classes {
        let count = masks.left.len();
        let (d, after) = rest.split_at(count);
        let (e, after) = after.split_at(rights * count);
        rest = after;
        for at in 0..count {
            for right in 0..rights {
                let (b, c) = (masks.rights[right][at], masks.products[right][at]);
                let e = e[right * count + at];
                let both = super::add(times(plus(b, e), d[at]), times(masks.left[at], e));
                done[rights - 1].push(super::add(both, c));
            }
        }
    }
    let mut done = done.map(Vec::into_iter);
    let next = |join: &Join<N>| -> Vec<_> {
        let products = &mut done[join.rights.len() - 1];
        products.by_ref().take(join.rights.len()).collect()
    };
    joins.iter().flat_map(next).collect()
}

/// `truncation.rs`, for any split of the value. Also returns what it reveals: κ, or the masked
/// value.
pub fn truncate<const N: usize>(w: &mut World, x: Shared<N>, f: u32) -> (Shared<N>, Value) {
    if N > 2 {
        return truncate_with_pair(w, x, f);
    }
    let pair = w.range(Key::pair(0, 1), Extent::Whole);
    let coin = w.coin(pair, Slot::word(0), w.word);
    let used = if w.is(Wrong::OldSplit) {
        w.public(0)
    } else {
        coin
    };
    let mut rerandomized = x;
    rerandomized[0] = x[0] + used;
    rerandomized[1] = x[1] - used;
    (truncate_between_two(w, rerandomized, f), coin)
}

/// `truncation.rs`, Two parties.
pub fn truncate_between_two<const N: usize>(w: &mut World, x: Shared<N>, f: u32) -> Shared<N> {
    let k = w.word;
    let less = u64::from(!w.is(Wrong::Offset));
    let more = u64::from(!w.is(Wrong::Offset) && !w.is(Wrong::RoundedDown));
    let (secret, product) = correlations::cross_bits(w, f);
    let s = [x[0] + w.public((1 << (k - 2)) - less), x[1]];
    let mut opened = [0, 1].map(|i| s[i].high() + secret[i]);
    w.send(0, 1, &mut opened[..1]);
    w.send(1, 0, &mut opened[1..]);
    // AB = (a' + (1 − 2a')α)(b' + (1 − 2b')β) for the opened a', b'; α is party 0's, β party 1's.
    let one = Value::public(1, f);
    let [a, b] = opened.map(|bit| bit.widen(f));
    let [flip_a, flip_b] = [a, b].map(|bit| one - bit - bit);
    let secret = secret.map(|bit| bit.widen(f));
    let both = [
        flip_a * flip_b * product[0] + b * flip_a * secret[0] + a * b,
        flip_a * flip_b * product[1] + a * flip_b * secret[1],
    ];
    let constant = [w.public(more) - w.public(1 << (k - 2 - f)), w.public(0)];
    let mut out = x;
    for i in 0..2 {
        let both = if w.is(Wrong::Wrap) {
            w.public(0).low(f)
        } else {
            both[i]
        };
        let wrapped = both.widen(k) - s[i].high().widen(k);
        out[i] = (s[i] >> f) + (wrapped << (k - f)) + constant[i];
    }
    out
}

/// `truncation.rs`, More parties. Also returns the masked value, which it reveals.
pub fn truncate_with_pair<const N: usize>(
    w: &mut World,
    x: Shared<N>,
    f: u32,
) -> (Shared<N>, Value) {
    let k = w.word;
    let [r, shifted, top] = correlations::truncation(w, f);
    let masked = super::add(plus(x, w.public(1 << (k - 2))), r);
    let c = open(w, &mut [masked])[0];
    let unwrapped = Value::public(1, f) - c.high().widen(f);
    let wrapped = times(top, unwrapped).map(|top| top.widen(k) << (k - f));
    let constant = if w.is(Wrong::Offset) {
        0
    } else {
        1 << (k - 2 - f)
    };
    let known = (c >> f) - w.public(constant);
    (plus(subtract(wrapped, shifted), known), c)
}

/// `binary.rs`: opens x − r in the bits that r has.
fn open_low<const N: usize>(w: &mut World, x: Shared<N>, r: Shared<N>) -> Value {
    let width = r[0].width();
    if w.is(Wrong::Unreduced) {
        let r = r.map(|r| r.widen(w.word));
        return open(w, &mut [subtract(x, r)])[0].low(width);
    }
    open(w, &mut [subtract(low(x, width), r)])[0]
}

/// `comparison.rs`: opens x − r, and evaluates the spans' bits of r + (c − less).
fn leaves<const N: usize>(
    w: &mut World,
    shape: &Leaves,
    x: Shared<N>,
    less: u64,
) -> Vec<Shared<N>> {
    let (r, monomials) = correlations::ring_with_monomials(w, shape);
    let c = open_low(w, x, r);
    let t = c - Value::public(less, c.width());
    let mut bits: Vec<Shared<N>> = Vec::new();
    for party in 0..N {
        let mine: Vec<Value> = monomials.iter().map(|monomial| monomial[party]).collect();
        let mine = shape.evaluate(&mine, t, party == 0);
        bits.resize(mine.len(), [t; N]);
        bits.iter_mut()
            .zip(mine)
            .for_each(|(bit, mine)| bit[party] = mine);
    }
    bits
}

/// `comparison.rs`, Sign.
pub fn sign<const N: usize>(w: &mut World, x: Shared<N>, width: u32) -> Shared<N> {
    sign_without(w, x, width, 0)
}

/// `comparison.rs`, Sign, without low bits of each share.
pub fn sign_without<const N: usize>(
    w: &mut World,
    x: Shared<N>,
    width: u32,
    dropped: u32,
) -> Shared<N> {
    let (x, width) = (x.map(|share| share >> dropped), width - dropped);
    let shape = Leaves::new(Wanted::Carry, width - 1, w.span);
    let bits = leaves(w, &shape, x, 0);
    let (generates, propagates) = shape.halves(&bits);
    top_carry(generates, propagates, &mut |joins| join(w, joins))
}

/// `comparison.rs`, Zero.
pub fn equal_zero<const N: usize>(w: &mut World, x: Shared<N>, width: u32) -> Shared<N> {
    let shape = Leaves::new(Wanted::Propagate, width, w.span);
    let bits = leaves(w, &shape, x, 1);
    conjunction(bits, &mut |joins| join(w, joins))
}

/// `binary.rs`, Additive to binary. Returns the bits from the lowest up.
pub fn to_binary<const N: usize>(w: &mut World, x: Shared<N>, width: u32) -> Vec<Shared<N>> {
    let (r, bits) = correlations::ring_with_bits(w, width);
    let c = open_low(w, x, r);
    let public = |at: usize| c.bit(at as u32);
    let below = width as usize - 1;
    let generate = (0..below).map(|at| times(bits[at], public(at)));
    let generate: Vec<Shared<N>> = generate.collect();
    let shared = bits.iter().enumerate();
    let mut sum: Vec<Shared<N>> = shared.map(|(at, bit)| plus(*bit, public(at))).collect();
    let carries = prefix_carries(generate, sum[..below].to_vec(), &mut |joins| join(w, joins));
    add_all(&mut sum[1..], &carries);
    sum
}

/// `selection.rs`: b·x = v·x + (1 − 2v)(e·β + βa).
pub fn bit_multiply<const N: usize>(w: &mut World, bit: Shared<N>, x: Shared<N>) -> Shared<N> {
    let selection = correlations::selection(w);
    select(w, selection, bit, x).0
}

/// Returns the product, and e.
fn select<const N: usize>(
    w: &mut World,
    [mask, a, beta, chosen]: [Shared<N>; 4],
    bit: Shared<N>,
    x: Shared<N>,
) -> (Shared<N>, Value) {
    let opened = open(w, &mut [subtract(bit, mask), subtract(x, a)]);
    let (v, e) = (opened[0].widen(w.word), opened[1]);
    let masked = super::add(times(beta, e), chosen);
    let product = super::add(times(x, v), times(masked, w.public(1) - v - v));
    (product, e)
}

/// `guard.rs`: the product, shares of h(h + 1) modulo 2^reach, and e, which is revealed.
pub fn guarded_bit_multiply<const N: usize>(
    w: &mut World,
    bit: Shared<N>,
    x: Shared<N>,
    [below, reach]: [u32; 2],
) -> (Shared<N>, Shared<N>, Value) {
    let (selection, [c, both]) = correlations::guarded_selection(w, [below, reach]);
    let (product, e) = select(w, selection, bit, x);
    let k = ((e + w.public(1 << (below - 1))) >> below).low(reach);
    let known = k * (k + Value::public(1, reach));
    let outside = plus(super::add(times(c, k + k), both), known);
    (product, outside, e)
}

/// `guard.rs`, Looking, at sums modulo a power of two. Returns which sums each public coin adds up;
/// and a bit for each tally, and one for the random sums of all.
pub fn tallies_in_range<const N: usize>(
    w: &mut World,
    tallies: &[&[Shared<N>]],
) -> (Vec<Value>, Vec<Shared<N>>) {
    let (k, count) = (w.word, tallies[0].len());
    let common = w.range(Key::Common, Extent::Whole);
    let factors = w.each(tallies.len() * count, |w, _| {
        w.coin(common, Slot::word(0), count as u32)
    });
    let shifted = |sum: &Shared<N>| sum.map(|sum| sum.widen(k) << (k - sum.width()));
    let mut rows: Vec<Vec<Shared<N>>> = Vec::new();
    let mut all = vec![trivial(w.public(0)); count];
    for (tally, factors) in tallies.iter().zip(factors.chunks(count)) {
        let row: Vec<Shared<N>> = tally.iter().map(shifted).collect();
        for (sum, factor) in row.iter().zip(factors) {
            for (all, at) in all.iter_mut().zip(0..) {
                *all = super::add(*all, times(*sum, factor.bit(at).widen(k)));
            }
        }
        rows.push(row);
    }
    rows.push(all);
    let shape = Leaves::new(Wanted::Propagate, k, w.span);
    let n = rows.len();
    // Word j of every row, for one j after another.
    let spans = w.each(count * n, |w, at| {
        leaves(w, &shape, rows[at % n][at / n], 1)
    });
    let bits = w.each(n, |w, at| {
        let mine: Vec<_> = spans.iter().skip(at).step_by(n).collect();
        let by_span =
            (0..shape.spans.len()).flat_map(|span| mine.iter().map(move |bits| bits[span]));
        conjunction(by_span.collect(), &mut |joins| join(w, joins))
    });
    (factors, bits)
}

/// `selection.rs`, For the bit alone: b = v + (1 − 2v)β.
pub fn bit_to_ring<const N: usize>(w: &mut World, bit: Shared<N>) -> Shared<N> {
    let [mask, beta] = correlations::ring_bit(w);
    let v = open(w, &mut [subtract(bit, mask)])[0].widen(w.word);
    plus(times(beta, w.public(1) - v - v), v)
}

/// Returns the holder of share i.
pub fn of_share(i: usize) -> u8 {
    holders([i])
}
