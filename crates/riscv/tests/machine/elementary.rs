//! The functions of `math.h`, of public numbers and of secret ones, against another library.

use mpc::Recipient;
use riscv::Program;
use riscv::host::arrays::{Array, Content};
use riscv::host::execution::Options;
use riscv::host::runs::{Output, Run, run as run_program};
use riscv::numbers::fixed_point::Range;
use riscv::secret::evaluation::Fate;
use std::f64::consts::E;
use testkit::{Random, run, usual_parties};

/// A function of a number and the next one, and where it is tried.
struct Tried {
    name: &'static str,
    function: fn(f64, f64) -> f64,
    least: f64,
    most: f64,
}

const fn tried(name: &'static str, least: f64, most: f64, function: fn(f64, f64) -> f64) -> Tried {
    Tried {
        name,
        function,
        least,
        most,
    }
}

/// In the order of `elementary.c`.
const FUNCTIONS: [Tried; 31] = [
    tried("exp", -8.0, 8.0, |x, _| x.exp()),
    tried("exp2", -8.0, 8.0, |x, _| x.exp2()),
    tried("expm1", -2.0, 2.0, |x, _| x.exp_m1()),
    tried("log", 0.01, 5000.0, |x, _| x.ln()),
    tried("log2", 0.01, 5000.0, |x, _| x.log2()),
    tried("log10", 0.01, 5000.0, |x, _| x.log10()),
    tried("log1p", -0.5, 100.0, |x, _| x.ln_1p()),
    tried("sinh", -11.0, 11.0, |x, _| x.sinh()),
    tried("cosh", -11.0, 11.0, |x, _| x.cosh()),
    tried("tanh", -4.0, 4.0, |x, _| x.tanh()),
    tried("asinh", -10.0, 10.0, |x, _| x.asinh()),
    tried("acosh", 1.1, 20.0, |x, _| x.acosh()),
    tried("atanh", -0.9, 0.9, |x, _| x.atanh()),
    tried("cbrt", -100.0, 100.0, |x, _| x.cbrt()),
    tried("sin", -30.0, 30.0, |x, _| x.sin()),
    tried("cos", -30.0, 30.0, |x, _| x.cos()),
    tried("tan", -1.2, 1.2, |x, _| x.tan()),
    tried("asin", -0.99, 0.99, |x, _| x.asin()),
    tried("acos", -0.99, 0.99, |x, _| x.acos()),
    tried("atan", -20.0, 20.0, |x, _| x.atan()),
    tried("floor", -9.0, 9.0, |x, _| x.floor()),
    tried("sqrt", 0.1, 900.0, |x, _| x.sqrt()),
    tried("pow(x, 3)", -9.0, 9.0, |x, _| x.powi(3)),
    tried("pow(3, x)", -2.0, 2.0, |x, _| 3_f64.powf(x)),
    tried("pow(x, 1.5)", 0.1, 20.0, |x, _| x.powf(1.5)),
    tried("fmod(x, e)", -20.0, 20.0, |x, _| x % E),
    tried("ldexp(x + 1, -1)", -9.0, 9.0, |x, _| (x + 1.0) / 2.0),
    tried("pow", 0.5, 4.0, |x, y| x.powf(y)),
    tried("hypot", -20.0, 20.0, |x, y| x.hypot(y)),
    tried("atan2", -5.0, 5.0, |x, y| x.atan2(y)),
    tried("exp(x) exp(y) exp(x)", -0.2, 0.2, |x, y| {
        (2.0 * x + y).exp()
    }),
];

/// The error of secret numbers without a stated range, in units of 2^-16 and, for results above 1,
/// of as much of the result.
const UNITS: f64 = 6.0;

/// The error of secret numbers of stated range, likewise.
const RANGED: f64 = 3e-5;

/// Functions that divide, by a number of which zero is not excluded: their quotients have the usual
/// fraction bits, also if the range is stated.
const DIVIDING: [&str; 2] = ["tan", "hypot"];

/// The error of public numbers, relative to the result: three units of the last place.
const PUBLIC: f64 = 7e-16;

/// How the numbers are given.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Given {
    Public,
    Secret,
    Ranged,
}

/// Runs a function of the program on numbers, and returns what it wrote.
fn results(protocol: &str, which: usize, numbers: &[f64], given: Given) -> Vec<f64> {
    let file = include_bytes!("../../programs/elementary.elf");
    let program = Program::parse(file).expect("the file is a program");
    let tried = &FUNCTIONS[which];
    let bits: Vec<u64> = numbers.iter().map(|number| number.to_bits()).collect();
    let outcomes = run(protocol, usual_parties(protocol), |p| {
        let content = match given {
            Given::Public => {
                Content::Public(bits.iter().flat_map(|bits| bits.to_le_bytes()).collect())
            }
            _ => Content::Secret {
                owner: 1,
                count: bits.len(),
                values: (p.party() == 1).then(|| bits.clone()),
            },
        };
        let range = (given == Given::Ranged).then_some(Range {
            least: tried.least,
            most: tried.most,
        });
        let array = Array {
            name: "numbers".to_owned(),
            bytes: 8,
            floats: true,
            range,
            content,
        };
        let asked = Run {
            program: &program,
            arguments: &["elementary".to_owned(), which.to_string()],
            inputs: &[&array],
            outputs: &[Output {
                name: "results".to_owned(),
                bytes: 8,
                fate: Fate::Opened(Recipient::All),
            }],
            options: Options {
                open_branches: &[],
                oblivious: &[],
                limit: 1 << 24,
                passes_over: false,
                checked: false,
            },
        };
        run_program(p, &asked)
    });
    let outcome = outcomes.into_iter().next().expect("a party");
    assert_eq!(outcome.status, 0, "{}", tried.name);
    let values = outcome.outputs[0].values().expect("all learn it");
    values.iter().map(|bits| f64::from_bits(*bits)).collect()
}

fn numbers(tried: &Tried, count: usize) -> Vec<f64> {
    let mut random = Random::new(5);
    let between = |word: &u64| {
        let part = (word >> 11) as f64 / (1_u64 << 53) as f64;
        tried.least + (tried.most - tried.least) * part
    };
    random.words(count).iter().map(between).collect()
}

/// Checks one function, with the tolerance for a result.
fn check(protocol: &str, which: usize, given: Given, tolerance: impl Fn(f64) -> f64) {
    let tried = &FUNCTIONS[which];
    let numbers = numbers(tried, 24);
    let found = results(protocol, which, &numbers, given);
    assert_eq!(found.len(), numbers.len());
    for (at, found) in found.into_iter().enumerate() {
        let next = numbers[(at + 1) % numbers.len()];
        let right = (tried.function)(numbers[at], next);
        let error = (found - right).abs();
        assert!(
            error <= tolerance(right),
            "{} of {} and {next}, {given:?}, {protocol}: {found} and not {right}",
            tried.name,
            numbers[at]
        );
    }
}

#[test]
fn public_numbers() {
    for which in 0..FUNCTIONS.len() {
        check("plain", which, Given::Public, |right| PUBLIC * right.abs());
    }
}

#[test]
fn secret_numbers() {
    for protocol in ["plain", "replicated"] {
        for which in 0..FUNCTIONS.len() {
            check(protocol, which, Given::Secret, |right| {
                UNITS / 65536.0 * right.abs().max(1.0)
            });
        }
    }
}

/// What is 0, and what is beyond the range of results.
#[test]
fn secret_edges() {
    let named = |name: &str| {
        FUNCTIONS
            .iter()
            .position(|tried| tried.name == name)
            .unwrap()
    };
    for (name, numbers, right) in [
        ("pow", &[0.0, 0.3, 0.0, 2.0][..], &[0.0, 1.0, 0.0, 1.0][..]),
        ("hypot", &[0.0, 0.0], &[0.0, 0.0]),
        ("atan2", &[0.0, 0.0], &[0.0, 0.0]),
        ("cbrt", &[0.0, -27.0], &[0.0, -3.0]),
        ("exp", &[-40.0, 0.0], &[0.0, 1.0]),
        ("sinh", &[-9.0, 9.0], &[-4_051.541_902, 4_051.541_902]),
    ] {
        let found = results("plain", named(name), numbers, Given::Secret);
        for (found, right) in found.into_iter().zip(right.iter().copied()) {
            let tolerance = UNITS / 65536.0 * f64::abs(right).max(1.0);
            assert!(
                (found - right).abs() <= tolerance,
                "{name} {numbers:?}: {found}"
            );
        }
    }
}

#[test]
fn secret_numbers_of_known_range() {
    for protocol in ["plain", "replicated"] {
        for (which, tried) in FUNCTIONS.iter().enumerate() {
            let divides = DIVIDING.contains(&tried.name);
            let error = if divides { UNITS / 65536.0 } else { RANGED };
            check(protocol, which, Given::Ranged, |right| {
                error * right.abs().max(1.0)
            });
        }
    }
}
