//! The declared costs of operations on secret words, compared with the meter: rounds and bits.

use crate::cases::{OTHERS, PROTOCOLS, unsent};
use crate::costs::{measured, of_all};
use riscv::machine::linear_scan::Place;
use riscv::secret::Word;
use riscv::{Plain, Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

/// A computation on two words.
type Work<W> = fn(&mut W, &<W as Words>::Word, &<W as Words>::Word) -> Vec<<W as Words>::Word>;

/// A name, the bytes of the words, a public second operand, and the work on secret and on plain
/// words.
type Composition = (&'static str, u64, Option<u64>, Work<Secret>, Work<Plain>);

macro_rules! composition {
    ($name:literal, $bytes:literal, $public:expr, |$w:ident, $x:ident, $y:ident| $work:expr) => {
        (
            $name,
            $bytes,
            $public,
            (|$w, $x, $y| vec![$work]) as Work<Secret>,
            (|$w, $x, $y| vec![$work]) as Work<Plain>,
        )
    };
}

/// Computes sums of one product, of two, and so on: inner products of different lengths, in one
/// operation.
fn unlike_sums<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> Vec<W::Word> {
    let sum_of = |length: u64| {
        let mut sum = words.constant(0);
        for at in 0..length {
            let at = words.constant(at);
            let left = words.add(x, &at);
            let product = words.multiply(&left, y);
            sum = words.add(&sum, &product);
        }
        sum
    };
    (1..=4).map(sum_of).collect()
}

/// Returns some bits of one-hot vectors, at the edges of their words. For an index beyond the end
/// no bit is one.
fn some_places<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> Vec<W::Word> {
    let mask = words.constant(0x7f);
    let number = words.and(x, &mask);
    let (short, long) = (Place::new(words, &number, 100), Place::new(words, y, 100));
    [0, 37, 63, 64, 99]
        .into_iter()
        .flat_map(|place| [short.is(words, place), long.is(words, place)])
        .collect()
}

/// Looks up a secret index in a table of public words, and in one of secret words.
fn values_at<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> Vec<W::Word> {
    let mask = words.constant(7);
    let number = words.and(x, &mask);
    let place = Place::new(words, &number, 7);
    let publics: Vec<W::Word> = (1..8).map(|value| words.constant(value * 0x0101)).collect();
    let secrets = [x, y, x, y, x, y, x].map(Clone::clone);
    vec![
        place.value_of(words, &publics),
        place.value_of(words, &secrets),
    ]
}

fn compositions() -> Vec<Composition> {
    use Signs::{Signed, Unsigned};
    let thousand = Some(1000);
    vec![
        composition!("sum, bit by bit", 8, None, |w, x, y| {
            let sum = w.add(x, y);
            w.xor(&sum, x)
        }),
        composition!("less", 8, None, |w, x, y| w.less(x, y, Unsigned)),
        composition!("less, signed", 8, None, |w, x, y| w.less(x, y, Signed)),
        composition!("less, 32 bits", 4, None, |w, x, y| w.less(x, y, Signed)),
        composition!("less, bit by bit", 8, None, |w, x, y| {
            let differ = w.xor(x, y);
            w.less(&differ, y, Signed)
        }),
        composition!("equal", 8, None, |w, x, y| {
            let differ = w.subtract(x, y);
            w.is_zero(&differ)
        }),
        composition!("equal, bit by bit", 8, None, |w, x, y| {
            let differ = w.xor(x, y);
            w.is_zero(&differ)
        }),
        composition!("the lesser", 8, None, |w, x, y| {
            let less = w.less(x, y, Signed);
            w.select(&less, x, y)
        }),
        composition!("MULHU", 8, None, |w, x, y| w.multiply_high(
            x,
            y,
            (Unsigned, Unsigned)
        )),
        composition!("MULH", 8, None, |w, x, y| w.multiply_high(
            x,
            y,
            (Signed, Signed)
        )),
        composition!("MULHSU", 8, None, |w, x, y| w.multiply_high(
            x,
            y,
            (Signed, Unsigned)
        )),
        composition!("DIVU", 8, None, |w, x, y| w.divide(x, y, Unsigned)),
        composition!("DIV", 8, None, |w, x, y| w.divide(x, y, Signed)),
        composition!("DIVW", 4, None, |w, x, y| w.divide(x, y, Signed)),
        composition!("REMU", 2, None, |w, x, y| w.remainder(x, y, Unsigned)),
        composition!("DIV by 1000", 8, thousand, |w, x, y| w.divide(x, y, Signed)),
        composition!("REMU by 1000", 8, thousand, |w, x, y| w
            .remainder(x, y, Unsigned)),
        composition!("SLL", 8, None, |w, x, y| w.shift_left(x, y)),
        composition!("SLL of a sum", 8, None, |w, x, y| {
            let sum = w.add(x, y);
            w.shift_left(&sum, y)
        }),
        composition!("SRL", 8, None, |w, x, y| w.shift_right(x, y, Unsigned)),
        composition!("SRA", 8, None, |w, x, y| w.shift_right(x, y, Signed)),
        composition!("SRA by 7 of a sum", 8, Some(7), |w, x, y| {
            let sum = w.multiply(x, x);
            w.shift_right(&sum, y, Signed)
        }),
        composition!("CLZ", 8, None, |w, x, _y| w.leading_zeros(x)),
        composition!("CTZ", 8, None, |w, x, _y| {
            // The ones below the lowest one.
            let one = w.constant(1);
            let below = w.subtract(x, &one);
            let others = w.xor(x, &below);
            let lowest = w.and(&others, &below);
            w.population(&lowest)
        }),
        composition!("CPOP", 8, None, |w, x, _y| w.population(x)),
        composition!("an inner product", 8, None, |w, x, y| {
            let (of_x, of_both) = (w.multiply(x, x), w.multiply(x, y));
            w.add(&of_x, &of_both)
        }),
        (
            "sums of products of unlike lengths",
            8,
            None,
            unlike_sums,
            unlike_sums,
        ),
        ("one-hot vectors", 8, None, some_places, some_places),
        ("tables at secret places", 8, None, values_at, values_at),
    ]
}

/// Checks a composition on `n` pairs at once.
fn check(protocol: &str, n: usize, (name, bytes, public, work, plainly): Composition) {
    let low = u64::MAX >> (64 - 8 * bytes);
    let mut values = Random::new(31).words(2 * n);
    values.iter_mut().for_each(|value| *value &= low);
    let extended = |value: u64| match bytes {
        4 => value as i32 as u64,
        _ => value,
    };
    let expected: Vec<u64> = values
        .chunks(2)
        .flat_map(|pair| {
            let second = public.unwrap_or(extended(pair[1]));
            plainly(&mut Plain, &extended(pair[0]), &second)
        })
        .collect();
    let told = run(protocol, usual_parties(protocol), |p| {
        let words = unsent(p, &values, bytes);
        let pairs = words.chunks(2);
        let results: Vec<Word> = pairs
            .flat_map(|pair| {
                let second = public.map_or_else(|| pair[1].clone(), Word::Public);
                work(&mut Secret, &pair[0], &second)
            })
            .collect();
        measured(p, &results, &expected)
    });
    let (declared, spent, _) = of_all(&told);
    assert_eq!(spent, declared, "{name} of {n} by {protocol}");
}

/// Checks that costs are exact, for a number of pairs that fills whole words in every message.
fn check_all(protocol: &str) {
    // With this many pairs the parties rotate their roles; otherwise some chains are one round
    // shorter.
    let n = if protocol == "replicated" { 1536 } else { 192 };
    for composition in compositions() {
        check(protocol, n, composition);
    }
}

#[test]
fn compositions_cost_what_is_declared() {
    PROTOCOLS.into_iter().for_each(check_all);
}

#[test]
fn compositions_cost_what_is_declared_between_two() {
    for protocol in ["additive_2_ot", "additive_2_he"] {
        check_all(protocol);
    }
}

#[test]
#[ignore = "long: minutes"]
fn compositions_cost_what_is_declared_by_each_protocol() {
    for protocol in OTHERS {
        check_all(protocol);
    }
}
