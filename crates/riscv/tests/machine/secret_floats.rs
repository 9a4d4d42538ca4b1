//! Secret floats are within the stated bounds of what plain ones are.

use mpc::{Protocol, Recipient};
use riscv::operation::FloatFunction::{
    self, Add, Compare, Divide, FromFloat, FromInteger, Maximum, Minimum, Multiply, MultiplyAdd,
    Sign, SquareRoot, Subtract, ToInteger,
};
use riscv::operation::Precision::{Double, Single};
use riscv::operation::{Comparison, Floating, Precision, SignChange, Turned};
use riscv::real::{Real, float};
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Memory, Plain, Program, Secret, Signs, Words, fixed, ieee};
use testkit::{Random, run, usual_parties};

/// One unit of a word with 16 fraction bits.
const UNIT: f64 = 1.0 / 65536.0;

/// Around zero, halves, what has no end in binary, signs, and the greatest products.
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

fn operation(precision: Precision, function: FloatFunction) -> Floating {
    Floating {
        precision,
        function,
    }
}

fn real(precision: Precision) -> Real {
    Real {
        bytes: precision.bytes(),
        scale: 16,
    }
}

/// What a party has, as all hold it then.
fn shared(p: &mut dyn Protocol, owner: usize, of: Precision, values: &[f64]) -> Vec<Word> {
    let bits = values.iter().map(|value| float(*value, of.bytes()));
    let encoded: Option<Vec<u64>> = bits.map(|bits| real(of).encode(bits)).collect();
    let encoded = encoded.expect("all have a fixed point");
    let own = (p.party() == owner).then_some(encoded.as_slice());
    let words = share(p, owner, own, values.len()).expect("the links hold");
    words
        .iter()
        .map(|word| Secret.float(word, real(of)))
        .collect()
}

/// What is shared of a number.
fn near(value: f64) -> f64 {
    // There is no −0.
    (value / UNIT).round_ties_even() * UNIT + 0.0
}

fn opened(p: &mut dyn Protocol, words: &[Word]) -> Vec<u64> {
    let opened = reveal(p, words, Recipient::All).expect("the links hold");
    opened.expect("all learn it")
}

/// What floats are in registers or in memory.
fn number(bits: u64, of: Precision) -> f64 {
    match of {
        Single => f32::from_bits(bits as u32).into(),
        Double => f64::from_bits(bits),
    }
}

/// What a function gives of operands, by the processor, and how far from it a result may be.
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
    let fused = fused.map(|(product, addend)| MultiplyAdd(Turned { product, addend }));
    let signs = [SignChange::Copy, SignChange::Negate, SignChange::Multiply].map(Sign);
    let all = [Add, Subtract, Multiply, Minimum, Maximum, Divide];
    all.into_iter().chain(fused).chain(signs).collect()
}

/// Pairs of edges, every so many, and others of all sizes.
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

/// Both secret, or one of them; c is secret or public with a.
fn check(protocol: &str, of: Precision, pairs: &[(f64, f64)]) {
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let nearest = ieee::rounding(0).expect("it is the first");
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
                    // What has no fixed point, such as the inverse of a public zero.
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

/// Comparisons are exact, of a public number too that has no fixed point.
#[test]
fn comparisons_are_exact() {
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
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        let found = run(protocol, usual_parties(protocol), |p| {
            let x = shared(p, 0, Double, &EDGES);
            let y = shared(p, 1, Double, &EDGES);
            let mut words = Vec::new();
            for comparison in comparisons {
                let of = operation(Double, Compare(comparison));
                let mut compared = |a: &Word, b: &Word| {
                    let nearest = ieee::rounding(0).expect("it is the first");
                    let result = fixed::compute(&mut Secret, of, nearest, [a, b, a]);
                    words.push(result.expect("all numbers compare"));
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

/// To integers of all kinds, in all rounding modes, exactly and with RISC-V's ends; and from integers.
#[test]
fn conversions_are_exact() {
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
    // 2^31 and more as scale 8 has them.
    let wide = Real { bytes: 8, scale: 8 };
    let far = [3e9, -3e9, 5e9, 2147483647.5, -2147483648.5, 4294967295.5];
    let integers = [0, 1, u64::MAX, 1 << 31, 0xffff_ffff, 1 << 40, 1 << 61];
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        let found = run(protocol, usual_parties(protocol), |p| {
            let mut x = shared(p, 0, Double, &values);
            let encoded = far.map(|value: f64| wide.encode(value.to_bits()).expect("it fits"));
            let own = (p.party() == 1).then_some(encoded.as_slice());
            x.extend(
                share(p, 1, own, far.len())?
                    .iter()
                    .map(|word| Secret.float(word, wide)),
            );
            let mut words = Vec::new();
            for ((bits, signs), mode) in &cases {
                let of = operation(Double, ToInteger(*bits, *signs));
                let mode = ieee::rounding(*mode).expect("it is one");
                words.extend(x.iter().map(|x| {
                    fixed::compute(&mut Secret, of, mode, [x; 3]).expect("it is a number")
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
                let mode = ieee::rounding(0).expect("it is one");
                words.extend(whole.iter().map(|x| {
                    fixed::compute(&mut Secret, of, mode, [x; 3]).expect("it is a number")
                }));
            }
            Ok(opened(p, &words))
        });
        for found in found {
            let mut found = found.into_iter();
            for ((bits, signs), mode) in &cases {
                let of = operation(Double, ToInteger(*bits, *signs));
                let round = ieee::rounding(*mode).expect("it is one");
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

/// Roots and inverses over all sizes that numbers have.
#[test]
fn roots_and_inverses_are_near() {
    let sizes =
        (0..46).flat_map(|place| [1.0, 1.3, 1.5, 1.999].map(|of| of * UNIT * 2_f64.powi(place)));
    let values: Vec<f64> = sizes
        .map(near)
        .filter(|value| *value < 2_f64.powi(30))
        .collect();
    let nearest = ieee::rounding(0).expect("it is the first");
    for (protocol, every) in [("plain", 1), ("replicated", 9), ("additive_2_dealer", 9)] {
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
                words.push(fixed::compute(&mut Secret, root, nearest, [x; 3]).expect("it is one"));
                let inverse = operation(Double, Divide);
                let of = [&one, x, x];
                words.push(fixed::compute(&mut Secret, inverse, nearest, of).expect("it is one"));
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

const DATA: u64 = 0x1000_0000;

/// Floats that are copied by bytes, by halves or two at a time are the floats; they change their length for nothing.
#[test]
fn floats_are_moved_and_not_looked_into() {
    let values = [1.5, -2.25, 1000.0];
    for opened in run("replicated", 3, |p| {
        let x = shared(p, 0, Double, &values);
        let narrow = shared(p, 1, Single, &values);
        let nearest = ieee::rounding(0).expect("it is the first");
        let mut memory = Memory::new();
        memory
            .map(DATA, vec![0xff; 64], true)
            .expect("nothing is there");
        memory.store(&Secret, DATA, 8, &x[0]).expect("it is mapped");
        memory
            .store(&Secret, DATA + 8, 4, &narrow[1])
            .expect("it is mapped");
        memory
            .store(&Secret, DATA + 12, 4, &narrow[2])
            .expect("it is mapped");
        for byte in 0..8 {
            let one = memory
                .load(&mut Secret, DATA + byte, 1)
                .expect("it is mapped");
            memory
                .store(&Secret, DATA + 16 + byte, 1, &one)
                .expect("it is mapped");
        }
        // Two floats of 32 bits as one word of 64, and back.
        let both = memory.load(&mut Secret, DATA + 8, 8).expect("it is mapped");
        memory
            .store(&Secret, DATA + 24, 8, &both)
            .expect("it is mapped");
        let mut load = |at, bytes| {
            memory
                .load(&mut Secret, DATA + at, bytes)
                .expect("it is mapped")
        };
        let (copied, low, high) = (load(16, 8), load(24, 4), load(28, 4));
        assert!(Secret.are_one(&copied, &x[0]));
        assert!(Secret.is_refused(&Secret.xor(&copied, &low)));
        assert!(Secret.is_refused(&Secret.less(&copied, &Word::Public(0), Signs::Signed)));
        assert!(!Secret.is_refused(&Secret.add(&copied, &Word::Public(0))));
        let longer = operation(Double, FromFloat(Single));
        let longer = fixed::compute(&mut Secret, longer, nearest, [&high; 3]).expect("it is one");
        for function in [FloatFunction::Classify, FloatFunction::ToBits] {
            let refused = fixed::compute(
                &mut Secret,
                operation(Double, function),
                nearest,
                [&x[0]; 3],
            );
            assert_eq!(refused.err(), Some(Fault::SecretBits));
        }
        let bits = operation(Double, FromInteger(64, Signs::Signed));
        let refused = fixed::compute(&mut Secret, bits, nearest, [&copied; 3]);
        assert_eq!(refused.err(), Some(Fault::SecretBits));
        // A float of another length, and half of one.
        for other in [&low, &load(0, 4)] {
            let refused = fixed::compute(&mut Secret, operation(Double, Add), nearest, [other; 3]);
            assert_eq!(refused.err(), Some(Fault::SecretBits));
        }
        let own = (p.party() == 0).then_some([7].as_slice());
        let seven = share(p, 0, own, 1)?.swap_remove(0);
        let condition = Secret.less(&seven, &Word::Public(8), Signs::Signed);
        let chosen = Secret.select(&condition, &copied, &Word::Public(3_f64.to_bits()));
        let fixed = |word: &Word, bytes| Secret.fixed(word, bytes).expect("it is one").0;
        assert!(Secret.are_one(&fixed(&longer, 8), &fixed(&narrow[2], 4)));
        let moved = self::opened(p, &[copied, low, high, longer]);
        assert!(reveal(p, &[load(0, 4)], Recipient::All).is_err());
        // Of two floats in a word each is chosen, also beside public ones.
        let mut chosen = vec![chosen];
        let public = Word::Public(0x4040_0000_c000_0000);
        for other in [&public, &Secret.shift_left(&narrow[0], &Word::Public(32))] {
            for (x, y) in [(&both, other), (other, &both)] {
                let word = Secret.select(&condition, x, y);
                memory
                    .store(&Secret, DATA + 32, 8, &word)
                    .expect("it is mapped");
                for half in [32, 36] {
                    chosen.push(
                        memory
                            .load(&mut Secret, DATA + half, 4)
                            .expect("it is mapped"),
                    );
                }
            }
        }
        Ok((moved, self::opened(p, &chosen)))
    }) {
        let (moved, chosen) = opened;
        let single = |value: f64| float(value, 4);
        assert_eq!(
            moved,
            [
                1.5_f64.to_bits(),
                single(-2.25),
                single(1000.0),
                1000_f64.to_bits()
            ]
        );
        assert_eq!(chosen[0], 1.5_f64.to_bits());
        let chosen: Vec<f64> = chosen[1..]
            .iter()
            .map(|bits| number(*bits, Single))
            .collect();
        assert_eq!(chosen, [-2.25, 1000.0, -2.0, 3.0, -2.25, 1000.0, 0.0, 1.5]);
    }
}

#[test]
fn what_has_no_fixed_point_is_refused() {
    let of = real(Double);
    assert_eq!(of.encode(2_f64.powi(30).to_bits()), None);
    assert_eq!(
        of.encode((2_f64.powi(30) - UNIT).to_bits()),
        Some((1 << 46) - 1)
    );
    assert_eq!(of.encode(f64::NAN.to_bits()), None);
    assert_eq!(
        real(Single).encode(float(-0.75, 4)),
        Some((-49152_i64) as u64)
    );
    run("plain", 1, |p| {
        let x = shared(p, 0, Double, &[1.0]).swap_remove(0);
        let nearest = ieee::rounding(0).expect("it is the first");
        for (function, public) in [
            (Add, 1e12),
            (Multiply, f64::NAN),
            (Multiply, 1e30),
            (Divide, 0.0),
        ] {
            let public = Word::Public(f64::to_bits(public));
            let refused = fixed::compute(
                &mut Secret,
                operation(Double, function),
                nearest,
                [&x, &public, &x],
            );
            assert_eq!(refused.err(), Some(Fault::NotFixed), "{function:?}");
        }
        Ok(())
    });
}

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/arrays_of_floats.elf")).expect("it is one")
}

/// A function over an array: its results in the registers of integers and of floats, and the array after it.
fn called<W: Words>(words: W, name: &str, of: Precision, array: &[W::Word]) -> Vec<W::Word> {
    let program = program();
    let mut machine = Machine::new(words, &program, 1 << 16).expect("it fits");
    let bytes = u64::from(of.bytes());
    let size = vec![0; bytes as usize * array.len()];
    machine
        .memory
        .map(DATA, size, true)
        .expect("nothing is there");
    for (at, word) in (0..).zip(array) {
        machine
            .memory
            .store(&machine.words, DATA + bytes * at, bytes, word)
            .expect("it is mapped");
    }
    let count = array.len() as u64 / (8 / bytes);
    let arguments = [DATA, count].map(|argument| machine.words.constant(argument));
    let function = program.function(name).expect("it is there");
    let result = machine.call(function, &arguments).expect("it returns");
    let mut results = vec![machine.float_register(10).clone()];
    if matches!(name, "scaled" | "whole") {
        results[0] = result;
    }
    for at in 0..array.len() as u64 {
        let place = DATA + bytes * at;
        results.push(
            machine
                .memory
                .load(&mut machine.words, place, bytes)
                .expect("it is mapped"),
        );
    }
    results
}

/// A compiled program on secret floats is near what it is on plain ones, and integers that it makes of them are equal.
#[test]
fn compiled_programs_run_on_floats_that_nobody_knows() {
    let values = [3.25, -7.5, 100.75, 0.125, -60.0, 12.5, 99.0, 1.75].map(near);
    // What the first result is, and the length of the floats in the array.
    let functions = [
        ("mean", Some(Double), Double),
        ("deviation", Some(Double), Double),
        ("greatest", Some(Double), Double),
        ("weighted", Some(Double), Single),
        ("scaled", None, Double),
        ("whole", None, Double),
    ];
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        for (name, of_result, of) in functions {
            let plain = values.map(|value| float(value, of.bytes()));
            let expected = called(Plain, name, of, &plain);
            for found in run(protocol, usual_parties(protocol), |p| {
                let secret = shared(p, 1, of, &values);
                Ok(opened(p, &called(Secret, name, of, &secret)))
            }) {
                let close = |of, at: usize| {
                    let (found, expected) = (number(found[at], of), number(expected[at], of));
                    let near = (found - expected).abs() < 16.0 * UNIT;
                    assert!(near, "{name}, {at}: {found}, not {expected}");
                };
                match of_result {
                    Some(length) => close(length, 0),
                    None => assert_eq!(found[0], expected[0], "{name}"),
                }
                (1..found.len()).for_each(|at| close(of, at));
            }
        }
    }
}

/// Two floats that are moved as one word of 64 bits cost nothing, and are the floats.
#[test]
fn pairs_are_moved_as_integers() {
    let values = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5];
    for found in run("replicated", 3, |p| {
        let secret = shared(p, 1, Single, &values);
        Ok(opened(p, &called(Secret, "turn", Single, &secret)[1..]))
    }) {
        let turned = [5.5, 6.5, 3.5, 4.5, 1.5, 2.5].map(|value| float(value, 4));
        assert_eq!(found, turned);
    }
}
