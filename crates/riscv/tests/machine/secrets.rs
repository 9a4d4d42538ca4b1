//! Instructions on secret words have the results of plain ones, whichever operand is public.

use crate::assembly::{self, Assembler};
use mpc::Recipient;
use riscv::isa::extensions::encodings;
use riscv::isa::operation::{Atomic, AtomicChange, Function, Operation};
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Memory, Plain, Program, Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

/// Values at which signs, carries and widths matter.
const EDGES: [u64; 10] = [
    0,
    1,
    2,
    63,
    0x80,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
];

/// Copies a word of eight bytes to another place, byte by byte.
pub fn copy_word(memory: &mut Memory<Word>, from: u64, to: u64) {
    for byte in 0..8 {
        let one = memory
            .load(&mut Secret, from + byte, 1)
            .expect("the address is mapped");
        memory
            .store(&Secret, to + byte, 1, &one)
            .expect("the address is mapped");
    }
}

/// The computation of an instruction on two words.
#[derive(Clone, Copy)]
enum Computes {
    Function(Function),
    Atomic(Atomic),
    /// Whether a branch is taken.
    Branch(&'static str),
    /// The value loaded from the last bytes of a word in memory, by an instruction of that size.
    Load(&'static str, u8),
    /// A word in memory after a store to its last bytes.
    Store(&'static str, u8),
}

impl Computes {
    /// Returns for each pair the result register, and what an atomic instruction leaves in memory.
    /// One machine runs all pairs: creating a stack for each would take far longer than the tests.
    fn compute<W: Words + Clone>(
        self,
        words: &mut W,
        pairs: &[(W::Word, W::Word)],
    ) -> Vec<Vec<W::Word>> {
        let mut code = Assembler::default();
        match self {
            Self::Function(function) => {
                let computed = pairs.iter().map(|(a, b)| function.compute(words, a, b));
                return computed.map(|word| vec![word]).collect();
            }
            Self::Atomic(atomic) => {
                code.add("sd", 0, 10, 11, 0);
                if atomic.change == AtomicChange::StoreIfReserved {
                    let reserve = if atomic.bytes == 4 { "lr.w" } else { "lr.d" };
                    code.add(reserve, 5, 10, 0, 0);
                }
                let mut all = encodings();
                let encoding = all.find(|encoding| encoding.operation == Operation::Atomic(atomic));
                code.add(
                    encoding.expect("the operation has an encoding").name,
                    5,
                    10,
                    12,
                    0,
                );
                code.add("addi", 10, 5, 0, 0);
            }
            Self::Branch(name) => {
                let taken = code.label();
                code.add("addi", 5, 0, 0, 1);
                code.branch(name, 11, 12, taken);
                code.add("addi", 5, 0, 0, 0);
                code.place(taken);
                code.add("addi", 10, 5, 0, 0);
            }
            Self::Load(name, bytes) => {
                code.add("sd", 0, 10, 11, 0);
                code.add(name, 10, 10, 0, 8 - i32::from(bytes));
            }
            Self::Store(name, bytes) => {
                code.add("sd", 0, 10, 11, 0);
                code.add(name, 0, 10, 12, 8 - i32::from(bytes));
                code.add("ld", 10, 10, 0, 0);
            }
        }
        code.ret();
        let limit = 10 * pairs.len() as u64;
        let place = words.constant(assembly::DATA);
        let mut machine =
            Machine::new(words.clone(), &code.program(), limit).expect("the program fits");
        let room = machine.memory.map(assembly::DATA, vec![0; 8], true);
        room.expect("the region is free");
        let each = pairs.iter().map(|(a, b)| {
            let returned = machine.call(assembly::CODE, &[place.clone(), a.clone(), b.clone()]);
            let mut results = vec![returned.expect("the function returns")];
            if matches!(self, Self::Atomic(_)) {
                let left = machine.memory.load(&mut machine.words, assembly::DATA, 8);
                results.push(left.expect("the address is mapped"));
            }
            results
        });
        each.collect()
    }
}

fn functions() -> impl Iterator<Item = (&'static str, Computes)> {
    encodings().filter_map(|encoding| match encoding.operation {
        Operation::Registers(function) | Operation::Immediate(function) => {
            Some((encoding.name, Computes::Function(function)))
        }
        Operation::Atomic(atomic) => Some((encoding.name, Computes::Atomic(atomic))),
        Operation::Branch(_) => Some((encoding.name, Computes::Branch(encoding.name))),
        Operation::Load(load) => Some((encoding.name, Computes::Load(encoding.name, load.bytes))),
        Operation::Store(bytes) => Some((encoding.name, Computes::Store(encoding.name, bytes))),
        _ => None,
    })
}

/// The number of pairs of words on which every instruction is tried.
const PAIRS: usize = 256;

/// Returns all pairs of edges, and others.
fn pairs() -> Vec<(u64, u64)> {
    let edges = EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b)));
    let words = Random::new(7).words(2 * PAIRS);
    // Some pairs are small, and some are close to each other.
    let others = words.chunks(2).zip([0, 0, 40, 57].into_iter().cycle());
    let others = others.map(|(pair, by)| (pair[0] >> by, pair[1] >> by));
    edges.chain(others).take(PAIRS).collect()
}

/// Checks all instructions on all pairs.
fn check(protocol: &str) {
    let pairs = &pairs();
    let (left, right): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
    let results = run(protocol, usual_parties(protocol), |p| {
        let own = |party, values| (p.party() == party).then_some(values);
        let (own_left, own_right) = (own(0, left.as_slice()), own(1, right.as_slice()));
        let (x, y) = (
            share(p, 0, own_left, left.len())?,
            share(p, 1, own_right, right.len())?,
        );
        let mut results = Vec::new();
        let functions: Vec<_> = functions().collect();
        // The number of instructions that share rounds, and whose results are in memory together.
        for some in functions.chunks(16) {
            // Both operands are secret, or one of them.
            let mixed = |public, at: usize| match public {
                0 => (x[at].clone(), y[at].clone()),
                1 => (x[at].clone(), Word::Public(right[at])),
                _ => (Word::Public(left[at]), y[at].clone()),
            };
            let mut computed = Vec::new();
            for (_, function) in some {
                let each = (0..3 * PAIRS).map(|at| mixed(at / PAIRS, at % PAIRS));
                let each: Vec<_> = each.collect();
                computed.extend(function.compute(&mut Secret, &each).into_iter().flatten());
            }
            results.extend(reveal(p, &computed, Recipient::All)?.expect("opened to all"));
        }
        Ok(results)
    });
    for result in &results {
        let mut got = result.iter();
        for (name, function) in functions() {
            let expected = function.compute(&mut Plain, pairs);
            for public in 0..3 {
                for ((a, b), expected) in pairs.iter().zip(&expected) {
                    let got: Vec<u64> = got.by_ref().take(expected.len()).copied().collect();
                    assert_eq!(got, *expected, "{name} of {a:#x} and {b:#x}, {public}");
                }
            }
        }
        assert_eq!(got.next(), None);
    }
}

#[test]
fn instructions_in_the_reference() {
    check("plain");
}

#[test]
fn instructions_by_replicated_sharing() {
    check("replicated");
}

#[test]
fn instructions_by_parties_and_a_dealer() {
    for protocol in [
        "additive_2_dealer",
        "additive_3_dealer",
        "additive_5_dealer",
    ] {
        check(protocol);
    }
}

#[test]
fn instructions_by_transfer_and_by_encryption() {
    for protocol in ["additive_2_ot", "additive_2_he"] {
        check(protocol);
    }
}

#[test]
#[ignore = "long: a minute"]
fn instructions_by_three_parties_by_transfer_and_by_encryption() {
    for protocol in ["additive_3_ot", "additive_3_he"] {
        check(protocol);
    }
}

/// An address for arguments, where nothing else lies.
const DATA: u64 = 0x1000_0000;

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/arrays.elf")).expect("the file is a program")
}

/// Calls a function on one party's words. Returns the result that each party learns.
fn called(protocol: &str, name: &str, values: &[u64], bytes: u64) -> Vec<Result<u64, Fault>> {
    let all = measured(protocol, name, values, bytes).into_iter();
    all.map(|(result, _)| result).collect()
}

/// Calls a function on one party's words. Returns the result and the rounds for each party.
fn measured(
    protocol: &str,
    name: &str,
    values: &[u64],
    bytes: u64,
) -> Vec<(Result<u64, Fault>, u64)> {
    let program = program();
    run(protocol, usual_parties(protocol), |p| {
        let own = (p.party() == 1).then_some(values);
        let words = share(p, 1, own, values.len())?;
        let mut machine = Machine::new(Secret, &program, 1 << 20).expect("the program fits");
        let memory = &mut machine.memory;
        memory
            .map(DATA, vec![0; 8 * values.len()], true)
            .expect("the region is free");
        for (at, word) in (0..).zip(&words) {
            memory
                .store(&Secret, DATA + bytes * at, bytes, word)
                .expect("the address is mapped");
        }
        let function = program.function(name).expect("the function exists");
        let count = Word::Public(values.len() as u64);
        let before = p.channel().meter().totals().rounds;
        let result = match machine.call(function, &[Word::Public(DATA), count]) {
            Ok(result) => {
                let opened = reveal(p, &[result], Recipient::All)?;
                Ok(opened.expect("opened to all")[0])
            }
            Err(fault) => Err(fault),
        };
        Ok((result, p.channel().meter().totals().rounds - before))
    })
}

#[test]
fn a_compiled_program_runs_on_what_nobody_knows() {
    let values: Vec<u64> = Random::new(9)
        .words(12)
        .iter()
        .map(|word| word >> 8)
        .collect();
    let mean = values.iter().sum::<u64>() / 12;
    let text: Vec<u64> = b"123456789".map(u64::from).to_vec();
    for protocol in ["replicated", "additive_2_dealer"] {
        for result in called(protocol, "mean", &values, 8) {
            assert_eq!(result, Ok(mean));
        }
        for result in called(protocol, "checksum", &text, 1) {
            assert_eq!(result, Ok(0xcbf4_3926));
        }
    }
}

/// The greatest by branches, the least by instructions: they take the rounds of six comparisons and
/// selections, not of 63. A selection by the greatest so far has to wait for it.
#[test]
fn the_greatest_of_many_is_found_by_halves() {
    let values: Vec<u64> = Random::new(12).words(64);
    let signed = || values.iter().map(|word| *word as i64);
    let most = signed().max().expect("at least one value");
    let place = signed().position(|word| word == most);
    let of = [
        ("highest", most as u64, 6 * 8),
        // One of the words is the initial value.
        (
            "least",
            *values.iter().min().expect("at least one value"),
            7 * 8,
        ),
        (
            "place",
            place.expect("the maximum is a word") as u64,
            63 * 8,
        ),
    ];
    for (name, expected, most) in of {
        for protocol in [
            "plain",
            "replicated",
            "additive_2_dealer",
            "additive_3_dealer",
        ] {
            for (result, rounds) in measured(protocol, name, &values, 8) {
                assert_eq!(result, Ok(expected), "{name}, {protocol}");
                if protocol == "additive_2_dealer" {
                    assert!(rounds <= most, "{name}: {rounds} rounds");
                }
            }
        }
    }
}

/// The compiler has copied the outer loop's end into the inner loop, so the sides meet too late.
#[test]
fn copied_ends_of_loops_are_refused() {
    for result in called("plain", "sort", &[3, 1, 2, 9, 0, 2, 7], 4) {
        assert!(matches!(result, Err(Fault::Parting(_))), "{result:?}");
    }
}

/// Messages do not depend on secrets, and independent operations share them.
#[test]
fn rounds_and_bits_are_those_of_the_longest_path() {
    let sent = |values: &[u64], work: fn(&mut Secret, &Word, &Word) -> Word| {
        let readings = run("replicated", 3, |p| {
            let own = (p.party() == 0).then_some(values);
            let words = share(p, 0, own, values.len())?;
            let before = p.channel().meter().totals();
            let results: Vec<Word> = words
                .chunks(2)
                .map(|pair| work(&mut Secret, &pair[0], &pair[1]))
                .collect();
            reveal(p, &results, Recipient::All)?;
            let after = p.channel().meter().totals();
            Ok((
                after.rounds - before.rounds,
                after.payload_bytes - before.payload_bytes,
            ))
        });
        readings[0]
    };
    let random = Random::new(3).words(2000);
    // One message for the products, and one that opens them.
    let products = |words: &mut Secret, x: &Word, y: &Word| words.multiply(x, y);
    assert_eq!(sent(&random, products).0, 2);
    // The smaller word, next to a remainder that is not used.
    let least = |words: &mut Secret, x: &Word, y: &Word| {
        words.remainder(x, y, Signs::Signed);
        let less = words.less(x, y, Signs::Unsigned);
        words.select(&less, x, y)
    };
    assert_eq!(sent(&random, least), sent(&[0; 2000], least));
    assert_eq!(sent(&random, least).0, sent(&random[..2], least).0);
}

/// A word that was copied by bytes is recognized as the same word: joining it sends nothing.
#[test]
fn pieces_in_order_are_the_word_again() {
    run("replicated", 3, |p| {
        let own = (p.party() == 0).then_some([0x0123_4567_89ab_cdef].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        // Only the arithmetic form exists, so a shift would cost a conversion.
        let doubled = Secret.add(&word, &word);
        let mut memory = Memory::new();
        memory
            .map(DATA, vec![0xff; 32], true)
            .expect("the region is free");
        memory
            .store(&Secret, DATA, 8, &doubled)
            .expect("the address is mapped");
        copy_word(&mut memory, DATA, DATA + 16);
        // A public half replaces the upper one.
        memory
            .store(&Secret, DATA + 4, 4, &Word::Public(7))
            .expect("the address is mapped");
        let half = memory
            .load(&mut Secret, DATA, 8)
            .expect("the address is mapped");
        let copied = memory
            .load(&mut Secret, DATA + 16, 8)
            .expect("the address is mapped");
        assert!(Secret.are_one(&copied, &doubled));
        let opened = reveal(p, &[half, copied], Recipient::All)?.expect("opened to all");
        assert_eq!(opened, [0x7_1357_9bde, 0x0246_8acf_1357_9bde]);
        Ok(())
    });
}
