//! Secret floats can be moved unchanged, operations on their bits are refused, and compiled
//! programs run on them.

use crate::secret_floats::{UNIT, near, number, opened, operation, real, shared};
use crate::secrets::copy_word;
use mpc::Recipient;
use riscv::floats::{fixed, ieee};
use riscv::isa::operation::FloatFunction::{self, Add, Divide, FromFloat, FromInteger, Multiply};
use riscv::isa::operation::Precision;
use riscv::isa::operation::Precision::{Double, Single};
use riscv::numbers::fixed_point::float;
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Memory, Plain, Program, Secret, Signs, Words};
use testkit::{run, usual_parties};

const DATA: u64 = 0x1000_0000;

/// Floats that are copied by bytes, by halves or in pairs are unchanged; a change of precision
/// costs nothing.
#[test]
fn floats_are_moved_and_not_looked_into() {
    let values = [1.5, -2.25, 1000.0];
    for opened in run("replicated", 3, |p| {
        let x = shared(p, 0, Double, &values);
        let narrow = shared(p, 1, Single, &values);
        let nearest = ieee::rounding(0).expect("0 is a rounding mode");
        let mut memory = Memory::new();
        memory
            .map(DATA, vec![0xff; 64], true)
            .expect("the region is free");
        memory
            .store(&Secret, DATA, 8, &x[0])
            .expect("the address is mapped");
        memory
            .store(&Secret, DATA + 8, 4, &narrow[1])
            .expect("the address is mapped");
        memory
            .store(&Secret, DATA + 12, 4, &narrow[2])
            .expect("the address is mapped");
        copy_word(&mut memory, DATA, DATA + 16);
        // Two floats of 32 bits are moved as one word of 64, and back.
        let both = memory
            .load(&mut Secret, DATA + 8, 8)
            .expect("the address is mapped");
        memory
            .store(&Secret, DATA + 24, 8, &both)
            .expect("the address is mapped");
        let mut load = |at, bytes| {
            memory
                .load(&mut Secret, DATA + at, bytes)
                .expect("the address is mapped")
        };
        let (copied, low, high) = (load(16, 8), load(24, 4), load(28, 4));
        assert!(Secret.are_one(&copied, &x[0]));
        assert!(Secret.is_refused(&Secret.xor(&copied, &low)));
        assert!(Secret.is_refused(&Secret.less(&copied, &Word::Public(0), Signs::Signed)));
        assert!(!Secret.is_refused(&Secret.add(&copied, &Word::Public(0))));
        let longer = operation(Double, FromFloat(Single));
        let longer = fixed::compute(&mut Secret, longer, nearest, [&high; 3])
            .expect("the conversion is supported");
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
        // A float of another precision, and half of one.
        for other in [&low, &load(0, 4)] {
            let refused = fixed::compute(&mut Secret, operation(Double, Add), nearest, [other; 3]);
            assert_eq!(refused.err(), Some(Fault::SecretBits));
        }
        let own = (p.party() == 0).then_some([7].as_slice());
        let seven = share(p, 0, own, 1)?.swap_remove(0);
        let condition = Secret.less(&seven, &Word::Public(8), Signs::Signed);
        let chosen = Secret.select(&condition, &copied, &Word::Public(3_f64.to_bits()));
        let fixed = |word: &Word, bytes| Secret.fixed(word, bytes).expect("a fixed-point word").0;
        assert!(Secret.are_one(&fixed(&longer, 8), &fixed(&narrow[2], 4)));
        let moved = self::opened(p, &[copied, low, high, longer]);
        assert!(reveal(p, &[load(0, 4)], Recipient::All).is_err());
        // Each of two floats in a word is selected, also together with public ones.
        let mut chosen = vec![chosen];
        let public = Word::Public(0x4040_0000_c000_0000);
        for other in [&public, &Secret.shift_left(&narrow[0], &Word::Public(32))] {
            for (x, y) in [(&both, other), (other, &both)] {
                let word = Secret.select(&condition, x, y);
                memory
                    .store(&Secret, DATA + 32, 8, &word)
                    .expect("the address is mapped");
                for half in [32, 36] {
                    chosen.push(
                        memory
                            .load(&mut Secret, DATA + half, 4)
                            .expect("the address is mapped"),
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
        let nearest = ieee::rounding(0).expect("0 is a rounding mode");
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
    Program::parse(include_bytes!("../../programs/arrays_of_floats.elf"))
        .expect("the file is a program")
}

/// Calls a function on an array. Returns its integer or float result, and the array afterwards.
fn called<W: Words>(words: W, name: &str, of: Precision, array: &[W::Word]) -> Vec<W::Word> {
    let program = program();
    let mut machine = Machine::new(words, &program, 1 << 16).expect("the program fits");
    let bytes = u64::from(of.bytes());
    let size = vec![0; bytes as usize * array.len()];
    machine
        .memory
        .map(DATA, size, true)
        .expect("the region is free");
    for (at, word) in (0..).zip(array) {
        machine
            .memory
            .store(&machine.words, DATA + bytes * at, bytes, word)
            .expect("the address is mapped");
    }
    let count = array.len() as u64 / (8 / bytes);
    let arguments = [DATA, count].map(|argument| machine.words.constant(argument));
    let function = program.function(name).expect("the function exists");
    let result = machine
        .call(function, &arguments)
        .expect("the function returns");
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
                .expect("the address is mapped"),
        );
    }
    results
}

/// A compiled program on secret floats has nearly the results of plain ones, and exactly the
/// integers that it computes from them.
#[test]
fn compiled_programs_run_on_floats_that_nobody_knows() {
    let values = [3.25, -7.5, 100.75, 0.125, -60.0, 12.5, 99.0, 1.75].map(near);
    // The precision of the first result, and of the floats in the array.
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

/// Two floats that are moved as one word of 64 bits cost nothing and are unchanged.
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
