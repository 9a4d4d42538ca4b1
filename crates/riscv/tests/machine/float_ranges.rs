//! Secret floats of known range: results are accurate at any size, and lie in their computed
//! ranges.

use crate::cases::PROTOCOLS;
use crate::secret_floats::{number, opened, operation};
use mpc::Protocol;
use riscv::floats::fixed;
use riscv::floats::ieee;
use riscv::isa::operation::FloatFunction::{
    self, Add, Compare, Divide, FromInteger, Maximum, Minimum, Multiply, MultiplyAdd, Sign,
    SquareRoot, Subtract, ToInteger,
};
use riscv::isa::operation::Precision::{Double, Single};
use riscv::isa::operation::{Comparison, Negations, Precision, SignChange};
use riscv::numbers::fixed_point::{Range, Real, float};
use riscv::secret::Word;
use riscv::secret::inputs::share;
use riscv::{Fault, Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

/// A number and its range.
#[derive(Clone, Copy, Debug)]
struct Case {
    value: f64,
    range: Range,
}

fn case(value: f64, least: f64, most: f64) -> Case {
    let range = Range::of(least, most).expect("the range is valid");
    assert!(range.contains(value));
    Case { value, range }
}

/// Salaries, cents, timestamps; small and large numbers, on both sides of 0, at the ends, and
/// ranges of a single number.
fn cases() -> Vec<Case> {
    let mut cases = vec![
        case(33_333.33, 1e4, 2e5),
        case(2e5, 1e4, 2e5),
        case(1_999_999_999.0, 0.0, 1e10),
        case(1.7e9 + 0.25, 1.6e9, 1.8e9),
        case(1e-7, 0.0, 1e-6),
        case(3e-7, 1e-7, 1e-6),
        case(-1e9, -1e9, 1e9),
        case(-7.25e14, -1e15, -1.0),
        case(4e17, 1e15, 1e18),
        case(0.0, -1.0, 1.0),
        case(0.0, 0.0, 0.0),
        case(131_072.0, 131_072.0, 131_072.0),
        case(-0.1, -2.0, 3.0),
    ];
    let words = Random::new(3).words(60);
    for three in words.chunks(3) {
        let size = 2_f64.powi((three[0] % 100) as i32 - 50);
        let part = |word: u64| word as f64 / 2_f64.powi(63) - 1.0;
        let ends = (part(three[0]) * size, part(three[1]) * size);
        let (least, most) = (ends.0.min(ends.1), ends.0.max(ends.1));
        let at = (part(three[2]) + 1.0) / 2.0;
        cases.push(case(
            (least + at * (most - least)).clamp(least, most),
            least,
            most,
        ));
    }
    cases
}

/// Shares floats of one party.
fn shared(p: &mut dyn Protocol, owner: usize, of: Precision, cases: &[Case]) -> Vec<Word> {
    let reals: Vec<Real> = cases
        .iter()
        .map(|case| Real::within(of.bytes(), case.range))
        .collect();
    let encoded = cases.iter().zip(&reals).map(|(case, real)| {
        let word = real.encode(float(case.value, of.bytes()));
        word.expect("the value is in its range")
    });
    let encoded: Vec<u64> = encoded.collect();
    let own = (p.party() == owner).then_some(encoded.as_slice());
    let words = share(p, owner, own, cases.len()).expect("no party fails");
    let floats = words.iter().zip(&reals);
    floats
        .map(|(word, real)| Secret.float(word, *real))
        .collect()
}

fn compute(of: Precision, function: FloatFunction, words: [&Word; 3]) -> Result<Word, Fault> {
    let nearest = ieee::rounding(0).expect("0 is a rounding mode");
    fixed::compute(&mut Secret, operation(of, function), nearest, words)
}

/// Returns the result of a function as the processor computes it.
fn expected(function: FloatFunction, a: f64, b: f64) -> f64 {
    match function {
        Add => a + b,
        Subtract => a - b,
        Multiply => a * b,
        MultiplyAdd(by) => {
            let turned = |number: f64, turned: bool| if turned { -number } else { number };
            turned(a * b, by.product) + turned(a, by.addend)
        }
        Minimum => a.min(b),
        Maximum => a.max(b),
        Sign(SignChange::Copy) => a.abs() * if b < 0.0 { -1.0 } else { 1.0 },
        Sign(_) => a.abs() * if (a < 0.0) == (b < 0.0) { 1.0 } else { -1.0 },
        Divide => a / b,
        _ => a.max(0.0).sqrt(),
    }
}

/// Checks every `every`-th pair, with both operands secret, or one.
fn check(protocol: &str, of: Precision, every: usize) {
    let cases = cases();
    let pairs: Vec<(Case, Case)> = cases
        .iter()
        .flat_map(|&a| cases.iter().map(move |&b| (a, b)))
        .step_by(every)
        .collect();
    let (left, right): (Vec<Case>, Vec<Case>) = pairs.iter().copied().unzip();
    let fused = MultiplyAdd(Negations {
        product: true,
        addend: false,
    });
    let signs = [Sign(SignChange::Copy), Sign(SignChange::Multiply)];
    let functions = [
        Add, Subtract, Multiply, fused, Minimum, Maximum, Divide, SquareRoot,
    ];
    let public = |case: Case| Word::Public(float(case.value, of.bytes()));
    let results = run(protocol, usual_parties(protocol), |p| {
        let (x, y) = (shared(p, 0, of, &left), shared(p, 1, of, &right));
        let mut told = Vec::new();
        for function in functions.into_iter().chain(signs) {
            for (at, (x, y)) in x.iter().zip(&y).enumerate() {
                let operands = [
                    (x.clone(), y.clone()),
                    (x.clone(), public(right[at])),
                    (public(left[at]), y.clone()),
                ];
                for (which, (a, b)) in operands.into_iter().enumerate() {
                    if function == SquareRoot && which > 0 {
                        continue;
                    }
                    // A quotient whose divisor may be 0 has no range.
                    let Ok(word) = compute(of, function, [&a, &b, &a]) else {
                        continue;
                    };
                    let range = Secret
                        .fixed(&word, of.bytes())
                        .map(|(_, fixed)| fixed.range);
                    if range != Some(None) {
                        told.push((function, at, range.flatten(), word));
                    }
                }
            }
        }
        let words: Vec<Word> = told.iter().map(|(.., word)| word.clone()).collect();
        let values = opened(p, &words);
        let kinds = told
            .into_iter()
            .map(|(function, at, range, _)| (function, at, range));
        Ok(kinds.zip(values).collect::<Vec<_>>())
    });
    for result in results {
        assert!(result.len() > 20 * pairs.len());
        for ((function, at, range), bits) in result {
            let (a, b) = pairs[at];
            // A quotient by 0 is 0.
            if function == Divide && b.value == 0.0 {
                continue;
            }
            let exact = |value: f64| number(float(value, of.bytes()), of);
            let (expected, got) = (
                expected(function, exact(a.value), exact(b.value)),
                number(bits, of),
            );
            let said = format!("{function:?} of {a:?}, {b:?}: {got}, not {expected}, in {range:?}");
            // A result is public if the ranges determine it, or if it is 0.
            let range = range.unwrap_or(Range::one(expected));
            // Operands have an error relative to their greatest possible value; a root has the root
            // of it.
            let largest = a.range.size().max(b.range.size()) / 2_f64.powi(44);
            let of_operands = match function {
                SquareRoot => (a.range.size() / 2_f64.powi(44)).sqrt(),
                Minimum | Maximum => largest,
                _ => 0.0,
            };
            let rounded = if of == Single {
                largest * 2_f64.powi(15) + expected.abs() / 2_f64.powi(23)
            } else {
                expected.abs() / 2_f64.powi(44)
            };
            let error = range.size() / 2_f64.powi(24) + of_operands + rounded;
            assert!((got - expected).abs() <= error, "{said}");
            let inside = range.widened(of_operands + rounded);
            assert!(inside.contains(got) && inside.contains(expected), "{said}");
        }
    }
}

#[test]
fn any_size_is_near_in_the_reference() {
    check("plain", Double, 1);
    check("plain", Single, 7);
}

#[test]
fn any_size_is_near_between_parties() {
    check("replicated", Double, 61);
    check("additive_2_dealer", Double, 61);
}

/// A sum of many terms is truncated on the way; the products have the greatest possible size.
#[test]
fn sums_have_room_whatever_their_length() {
    let salaries: Vec<Case> = (0..1000)
        .map(|at| case(2e5 - f64::from(at), 1e4, 2e5))
        .collect();
    let squares: f64 = salaries.iter().map(|case| case.value * case.value).sum();
    // The list is repeated, so that the sum is truncated twice.
    let times = 70;
    let expected = squares * f64::from(times);
    for found in run("plain", 2, |p| {
        let words = shared(p, 0, Double, &salaries);
        let mut sum = Word::Public(0);
        for _ in 0..times {
            for word in &words {
                sum = compute(
                    Double,
                    MultiplyAdd(Negations {
                        product: false,
                        addend: false,
                    }),
                    [word, word, &sum],
                )
                .expect("the result is in range");
            }
        }
        Ok(opened(p, &[sum]))
    }) {
        let found = f64::from_bits(found[0]);
        assert!(
            (found / expected - 1.0).abs() < 2_f64.powi(-28),
            "{found}, not {expected}"
        );
    }
}

#[test]
fn comparisons_and_integers_are_right() {
    let ends = [
        case(1.7e9, 1.6e9, 1.8e9),
        case(1.7e9 + 0.125, 1.6e9, 1.8e9),
        case(1e4, 0.0, 2e5),
    ];
    for protocol in PROTOCOLS {
        for found in run(protocol, usual_parties(protocol), |p| {
            let x = shared(p, 0, Double, &ends);
            let whole = {
                let own = (p.party() == 1).then_some([40_000_u64].as_slice());
                share(p, 1, own, 1)?
            };
            // A stated bound.
            let whole = Secret.bounded(&whole[0], 0, 65_535);
            let mut words = Vec::new();
            for (a, b) in [(0, 1), (1, 0), (0, 0), (0, 2), (2, 1)] {
                for relation in [Comparison::Less, Comparison::LessOrEqual, Comparison::Equal] {
                    words.push(
                        compute(Double, Compare(relation), [&x[a], &x[b], &x[a]])
                            .expect("the ranges are comparable"),
                    );
                }
            }
            for word in &x {
                words.push(
                    compute(Double, ToInteger(64, Signs::Signed), [word; 3])
                        .expect("the result is in range"),
                );
                words.push(
                    compute(Double, ToInteger(32, Signs::Signed), [word; 3])
                        .expect("the result is in range"),
                );
            }
            let short = compute(Double, FromInteger(64, Signs::Signed), [&whole; 3])
                .expect("the integer is bounded");
            let square = compute(Double, Multiply, [&short; 3]).expect("the result is in range");
            let fourth = compute(Double, Multiply, [&square; 3]).expect("the result is in range");
            words.push(
                compute(Double, ToInteger(64, Signs::Signed), [&square; 3])
                    .expect("the result is in range"),
            );
            let large = compute(Double, ToInteger(64, Signs::Signed), [&fourth; 3]);
            assert_eq!(large.err(), Some(Fault::Beyond(64)));
            Ok(opened(p, &words))
        }) {
            let relations = [1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0];
            let integers = [
                1_700_000_000,
                1_700_000_000,
                1_700_000_000,
                1_700_000_000,
                10_000,
                10_000,
            ];
            let expected: Vec<u64> = relations
                .into_iter()
                .chain(integers)
                .chain([1_600_000_000])
                .collect();
            assert_eq!(found, expected, "{protocol}");
        }
    }
}

/// If a number of known range is combined with one of unknown range, it loses its range, if it
/// fits.
#[test]
fn what_has_no_range_bounds_what_meets_it() {
    for found in run("plain", 2, |p| {
        let x = shared(
            p,
            0,
            Double,
            &[
                case(123_456.5, 0.0, 2e5),
                case(1e14, 0.0, 1e15),
                case(1.0, 0.0, 3.0),
            ],
        );
        let other = crate::secret_floats::shared(p, 1, Double, &[-2.25]);
        let sum = compute(Double, Add, [&x[0], &other[0], &x[0]]).expect("the result is in range");
        let product =
            compute(Double, Multiply, [&other[0], &x[0], &x[0]]).expect("the result is in range");
        let wide = compute(Double, Add, [&x[1], &other[0], &x[0]]);
        assert_eq!(wide.err(), Some(Fault::Wide(50)));
        let quotient =
            compute(Double, Divide, [&x[0], &x[2], &x[0]]).expect("the result is in range");
        let wide = compute(Double, Divide, [&x[1], &x[2], &x[0]]);
        assert_eq!(wide.err(), Some(Fault::Divisor(50)));
        Ok(opened(p, &[sum, product, quotient]))
    }) {
        let found: Vec<f64> = found.into_iter().map(f64::from_bits).collect();
        assert_eq!(found[..2], [123_454.25, -277_777.125]);
        // The error bound of quotients of unknown range.
        assert!(
            (found[2] - 123_456.5).abs() < 123_456.5 / 2_f64.powi(26),
            "{}",
            found[2]
        );
    }
}
