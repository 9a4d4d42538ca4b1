//! Secret floats are within the stated error bounds of plain ones.

use crate::cases::{OTHERS, PROTOCOLS};
use mpc::{Protocol, Recipient};
use riscv::floats::{fixed, ieee};
use riscv::isa::operation::FloatFunction::{
    self, Add, Compare, Divide, FromInteger, Maximum, Minimum, Multiply, MultiplyAdd, Sign,
    SquareRoot, Subtract, ToInteger,
};
use riscv::isa::operation::Precision::{Double, Single};
use riscv::isa::operation::{Comparison, Floating, Negations, Precision, SignChange};
use riscv::numbers::fixed_point::{Real, float};
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

/// One unit of a word with 16 fraction bits.
pub const UNIT: f64 = 1.0 / 65536.0;

/// Numbers around zero, halves, binary fractions without end, signs, and the greatest factors.
const EDGES: [f64; 14] = [
    0.0,
    UNIT,
    -UNIT,
    0.5,
    -0.5,
    1.0,
    -1.0,
    1.5,
    -2.5,
    0.1,
    -1000.7,
    16383.99,
    -16000.25,
    3.999_984_741_210_937_5,
];

pub fn operation(precision: Precision, function: FloatFunction) -> Floating {
    Floating {
        precision,
        function,
    }
}

pub fn real(precision: Precision) -> Real {
    Real::of_scale(precision.bytes(), 16)
}

/// Shares floats of one party.
pub fn shared(p: &mut dyn Protocol, owner: usize, of: Precision, values: &[f64]) -> Vec<Word> {
    let bits = values.iter().map(|value| float(*value, of.bytes()));
    let encoded: Option<Vec<u64>> = bits.map(|bits| real(of).encode(bits)).collect();
    let encoded = encoded.expect("the values are in range");
    let own = (p.party() == owner).then_some(encoded.as_slice());
    let words = share(p, owner, own, values.len()).expect("no party fails");
    words
        .iter()
        .map(|word| Secret.float(word, real(of)))
        .collect()
}

/// Returns the number that is actually shared for a number.
pub fn near(value: f64) -> f64 {
    // Fixed point has no −0.
    (value / UNIT).round_ties_even() * UNIT + 0.0
}

pub fn opened(p: &mut dyn Protocol, words: &[Word]) -> Vec<u64> {
    let opened = reveal(p, words, Recipient::All).expect("no party fails");
    opened.expect("opened to all")
}

/// Returns the number of a float in a register or in memory.
pub fn number(bits: u64, of: Precision) -> f64 {
    match of {
        Single => f32::from_bits(bits as u32).into(),
        Double => f64::from_bits(bits),
    }
}

/// Returns the result of a function as the processor computes it, and the error bound.
fn expected(function: FloatFunction, a: f64, b: f64, c: f64) -> Option<(f64, f64)> {
    let product = 2.0 * UNIT + (a * b).abs() / 2_f64.powi(31);
    let turned = |number: f64, turned: bool| if turned { -number } else { number };
    Some(match function {
        Add => (a + b, UNIT / 2.0),
        Subtract => (a - b, UNIT / 2.0),
        Multiply => (a * b, product),
        MultiplyAdd(by) => {
            let product = product + UNIT / 2.0;
            (turned(a * b, by.product) + turned(c, by.addend), product)
        }
        Minimum => (a.min(b), UNIT / 2.0),
        Maximum => (a.max(b), UNIT / 2.0),
        Sign(SignChange::Copy) => (a.copysign(b), UNIT / 2.0),
        Sign(SignChange::Negate) => (a.copysign(-b), UNIT / 2.0),
        Sign(SignChange::Multiply) => (a * 1_f64.copysign(b), UNIT / 2.0),
        Divide => {
            let quotient = a / b;
            let fits = b != 0.0 && quotient.abs() < 65536.0;
            let error = quotient.abs() / 2_f64.powi(26) + a.abs() / 2_f64.powi(29);
            return fits.then_some((quotient, error + 2.0 * UNIT));
        }
        _ => return None,
    })
}

fn functions() -> Vec<FloatFunction> {
    let fused = [(false, false), (false, true), (true, false), (true, true)];
    let fused = fused.map(|(product, addend)| MultiplyAdd(Negations { product, addend }));
    let signs = [SignChange::Copy, SignChange::Negate, SignChange::Multiply].map(Sign);
    let all = [Add, Subtract, Multiply, Minimum, Maximum, Divide];
    all.into_iter().chain(fused).chain(signs).collect()
}

/// Returns every `every`-th pair of edges, and other pairs of all sizes.
fn pairs(every: usize, others: usize) -> Vec<(f64, f64)> {
    let edges = EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b)));
    let words = Random::new(11).words(2 * others);
    let value = |word: u64| {
        let size = (word as i32 >> 8) as f64 / 2_f64.powi((word >> 32) as i32 & 31);
        size / 1024.0
    };
    let others = words.chunks(2).map(|pair| (value(pair[0]), value(pair[1])));
    edges.step_by(every).chain(others).collect()
}

/// Checks functions with both operands secret, or one of them; c is secret or public as a is.
fn check(protocol: &str, of: Precision, pairs: &[(f64, f64)]) {
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let nearest = ieee::rounding(0).expect("0 is a rounding mode");
    let public = |value: f64| Word::Public(float(value, of.bytes()));
    let operands = |x: &[Word], y: &[Word], at: usize| {
        let (which, at) = (at / left.len(), at % left.len());
        match which {
            0 => (x[at].clone(), y[at].clone()),
            1 => (x[at].clone(), public(right[at])),
            _ => (public(left[at]), y[at].clone()),
        }
    };
    let results = run(protocol, usual_parties(protocol), |p| {
        let (x, y) = (shared(p, 0, of, &left), shared(p, 1, of, &right));
        let mut results = Vec::new();
        for function in functions() {
            let words: Vec<Word> = (0..3 * left.len())
                .map(|at| {
                    let (a, b) = operands(&x, &y, at);
                    let all = [&a, &b, &a];
                    let result = fixed::compute(&mut Secret, operation(of, function), nearest, all);
                    // Some operands have no fixed-point result, such as the inverse of a public
                    // zero.
                    result.unwrap_or(Word::Public(float(f64::NAN, 8)))
                })
                .collect();
            results.push(opened(p, &words));
        }
        Ok(results)
    });
    let exact = |value: f64| number(float(value, of.bytes()), of);
    for result in &results {
        for (function, got) in functions().into_iter().zip(result) {
            for (at, got) in got.iter().enumerate() {
                let (which, (a, b)) = (at / left.len(), pairs[at % left.len()]);
                let (a, b) = (exact(a), exact(b));
                let (a, b) = match which {
                    0 => (near(a), near(b)),
                    1 => (near(a), b),
                    _ => (a, near(b)),
                };
                let Some((expected, error)) = expected(function, a, b, a) else {
                    continue;
                };
                let error = error
                    + if of == Single {
                        expected.abs() / 2_f64.powi(24)
                    } else {
                        0.0
                    };
                let got = number(*got, of);
                let close = (got - expected).abs() <= error;
                assert!(
                    close,
                    "{function:?} of {a}, {b}: {got}, not {expected}, {which}"
                );
            }
        }
    }
}

#[test]
fn arithmetic_in_the_reference() {
    check("plain", Double, &pairs(1, 60));
    check("plain", Single, &pairs(7, 20));
}

#[test]
fn arithmetic_by_replicated_sharing() {
    check("replicated", Double, &pairs(9, 10));
}

#[test]
fn arithmetic_by_two_parties_and_a_dealer() {
    check("additive_2_dealer", Double, &pairs(9, 10));
}

#[test]
#[ignore = "long: minutes"]
fn arithmetic_by_every_protocol() {
    let pairs = pairs(1, 256 - EDGES.len() * EDGES.len());
    for protocol in PROTOCOLS.iter().chain(&OTHERS) {
        check(protocol, Double, &pairs);
        check(protocol, Single, &pairs);
    }
}

/// Comparisons are exact, also with a public number that has no fixed-point form.
#[test]
fn comparisons_are_exact() {
    check_comparisons(&PROTOCOLS);
}

#[test]
#[ignore = "long: minutes"]
fn comparisons_and_conversions_are_exact_by_every_protocol() {
    check_comparisons(&OTHERS);
    check_conversions(&OTHERS);
    check_roots(OTHERS.map(|protocol| (protocol, 1)));
}

fn check_comparisons(protocols: &[&str]) {
    let comparisons = [Comparison::Equal, Comparison::Less, Comparison::LessOrEqual];
    let others = [
        0.5,
        0.1,
        -1000.7,
        1e-9,
        -1e-9,
        1e300,
        -1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let mut publics = EDGES.to_vec();
    publics.extend(others);
    for protocol in protocols {
        let found = run(protocol, usual_parties(protocol), |p| {
            let x = shared(p, 0, Double, &EDGES);
            let y = shared(p, 1, Double, &EDGES);
            let mut words = Vec::new();
            for comparison in comparisons {
                let of = operation(Double, Compare(comparison));
                let mut compared = |a: &Word, b: &Word| {
                    let nearest = ieee::rounding(0).expect("0 is a rounding mode");
                    let result = fixed::compute(&mut Secret, of, nearest, [a, b, a]);
                    words.push(result.expect("the comparison is supported"));
                };
                for x in &x {
                    y.iter().for_each(|y| compared(x, y));
                    for public in &publics {
                        let public = Word::Public(public.to_bits());
                        compared(x, &public);
                        compared(&public, x);
                    }
                }
            }
            Ok(opened(p, &words))
        });
        let holds = |comparison, a: f64, b: f64| match comparison {
            Comparison::Equal => a == b,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
        };
        for found in found {
            let mut found = found.into_iter();
            for comparison in comparisons {
                for x in EDGES.map(near) {
                    let secret = EDGES.map(near).map(|y| (x, y));
                    let public = publics.iter().flat_map(|&y| [(x, y), (y, x)]);
                    for (a, b) in secret.into_iter().chain(public) {
                        let expected = u64::from(holds(comparison, a, b));
                        assert_eq!(found.next(), Some(expected), "{comparison:?} of {a}, {b}");
                    }
                }
            }
        }
    }
}

/// Conversions to all integer types, in all rounding modes, are exact and saturate as RISC-V
/// defines; conversions from integers are exact.
#[test]
fn conversions_are_exact() {
    check_conversions(&PROTOCOLS);
}

fn check_conversions(protocols: &[&str]) {
    let values = [
        0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -1.5,
        -2.5,
        0.1,
        -0.1,
        -3.75,
        7.25,
        1e9,
        5e8,
        -5e8,
        -1e9,
        1e9 + 0.3,
    ];
    let kinds = [32, 64]
        .into_iter()
        .flat_map(|bits| [(bits, Signs::Signed), (bits, Signs::Unsigned)]);
    let cases: Vec<_> = kinds
        .flat_map(|kind| (0..5).map(move |mode| (kind, mode)))
        .collect();
    // 2^31 and more, with 8 fraction bits.
    let wide = Real::of_scale(8, 8);
    let far = [3e9, -3e9, 5e9, 2147483647.5, -2147483648.5, 4294967295.5];
    let integers = [0, 1, u64::MAX, 1 << 31, 0xffff_ffff, 1 << 40, 1 << 61];
    for protocol in protocols {
        let found = run(protocol, usual_parties(protocol), |p| {
            let mut x = shared(p, 0, Double, &values);
            let encoded = far.map(|value: f64| wide.encode(value.to_bits()).expect("in range"));
            let own = (p.party() == 1).then_some(encoded.as_slice());
            x.extend(
                share(p, 1, own, far.len())?
                    .iter()
                    .map(|word| Secret.float(word, wide)),
            );
            let mut words = Vec::new();
            for ((bits, signs), mode) in &cases {
                let of = operation(Double, ToInteger(*bits, *signs));
                let mode = ieee::rounding(*mode).expect("the rounding mode is valid");
                words.extend(x.iter().map(|x| {
                    fixed::compute(&mut Secret, of, mode, [x; 3])
                        .expect("the conversion is supported")
                }));
            }
            let own = (p.party() == 1).then_some(integers.as_slice());
            let whole = share(p, 1, own, integers.len())?;
            for (bits, signs) in [
                (32, Signs::Signed),
                (32, Signs::Unsigned),
                (64, Signs::Signed),
            ] {
                let of = operation(Double, FromInteger(bits, signs));
                let mode = ieee::rounding(0).expect("the rounding mode is valid");
                words.extend(whole.iter().map(|x| {
                    fixed::compute(&mut Secret, of, mode, [x; 3])
                        .expect("the conversion is supported")
                }));
            }
            Ok(opened(p, &words))
        });
        for found in found {
            let mut found = found.into_iter();
            for ((bits, signs), mode) in &cases {
                let of = operation(Double, ToInteger(*bits, *signs));
                let round = ieee::rounding(*mode).expect("the rounding mode is valid");
                for value in values.map(near).into_iter().chain(far) {
                    let (expected, _) = ieee::compute(of, round, [value.to_bits(), 0, 0]);
                    assert_eq!(
                        found.next(),
                        Some(expected),
                        "{value} to {bits}, {signs:?}, {mode}"
                    );
                }
            }
            for convert in [
                |x| f64::from(x as i32),
                |x| f64::from(x as u32),
                |x| x as i64 as f64,
            ] {
                for integer in integers {
                    let expected: f64 = convert(integer);
                    assert_eq!(
                        found.next().map(f64::from_bits),
                        Some(expected),
                        "{integer:#x}"
                    );
                }
            }
        }
    }
}

/// Roots and inverses over the whole range of sizes.
#[test]
fn roots_and_inverses_are_near() {
    check_roots([("plain", 1), ("replicated", 9), ("additive_2_dealer", 9)]);
}

fn check_roots<const COUNT: usize>(protocols: [(&str, usize); COUNT]) {
    let sizes =
        (0..46).flat_map(|place| [1.0, 1.3, 1.5, 1.999].map(|of| of * UNIT * 2_f64.powi(place)));
    let values: Vec<f64> = sizes
        .map(near)
        .filter(|value| *value < 2_f64.powi(30))
        .collect();
    let nearest = ieee::rounding(0).expect("0 is a rounding mode");
    for (protocol, every) in protocols {
        let values: Vec<f64> = values
            .iter()
            .copied()
            .step_by(every)
            .chain([0.0, -4.0])
            .collect();
        let found = run(protocol, usual_parties(protocol), |p| {
            let x = shared(p, 0, Double, &values);
            let one = Word::Public(1_f64.to_bits());
            let mut words = Vec::new();
            for x in &x {
                let root = operation(Double, SquareRoot);
                words.push(
                    fixed::compute(&mut Secret, root, nearest, [x; 3])
                        .expect("the operation is supported"),
                );
                let inverse = operation(Double, Divide);
                let of = [&one, x, x];
                words.push(
                    fixed::compute(&mut Secret, inverse, nearest, of)
                        .expect("the operation is supported"),
                );
            }
            Ok(opened(p, &words))
        });
        for found in found {
            for (value, found) in values.iter().zip(found.chunks(2)) {
                let (root, inverse) = (f64::from_bits(found[0]), f64::from_bits(found[1]));
                let expected = value.max(0.0).sqrt();
                let error = expected / 2_f64.powi(26) + 2.0 * UNIT;
                assert!((root - expected).abs() <= error, "root of {value}: {root}");
                let expected = if *value == 0.0 { 0.0 } else { 1.0 / value };
                let error = expected.abs() / 2_f64.powi(26) + 2.0 * UNIT;
                let far = expected >= 65536.0 || (inverse - expected).abs() <= error;
                assert!(far, "inverse of {value}: {inverse}");
            }
        }
    }
}
