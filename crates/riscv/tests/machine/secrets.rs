//! What is computed of secret words is what is computed of plain ones, whatever is public beside them.

use crate::assembly::{self, Assembler};
use crate::cases::{OTHERS, PROTOCOLS};
use mpc::Recipient;
use riscv::extensions::encodings;
use riscv::operation::{Atomic, AtomicChange, Function, Multiplication, Operation};
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Memory, Plain, Program, Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

/// Where signs, carries and widths matter.
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

/// A word of eight bytes to another place, byte by byte.
pub fn copy_word(memory: &mut Memory<Word>, from: u64, to: u64) {
    for byte in 0..8 {
        let one = memory
            .load(&mut Secret, from + byte, 1)
            .expect("it is mapped");
        memory
            .store(&Secret, to + byte, 1, &one)
            .expect("it is mapped");
    }
}

/// What an instruction computes of two words.
#[derive(Clone, Copy)]
enum Computes {
    Function(Function),
    Atomic(Atomic),
    /// Whether a branch is taken.
    Branch(&'static str),
    /// What is read of a word in memory, from its last bytes on that are as many.
    Load(&'static str, u8),
    /// What a word in memory is after its last bytes were written.
    Store(&'static str, u8),
}

impl Computes {
    /// What a register has then, and what an atomic instruction leaves in memory.
    fn compute<W: Words + Clone>(self, words: &mut W, a: &W::Word, b: &W::Word) -> Vec<W::Word> {
        match self {
            Self::Function(function) => vec![function.compute(words, a, b)],
            Self::Atomic(atomic) => atomically(words, atomic, a, b),
            Self::Branch(name) => {
                let mut code = Assembler::default();
                let taken = code.label();
                code.add("addi", 5, 0, 0, 1);
                code.branch(name, 11, 12, taken);
                code.add("addi", 5, 0, 0, 0);
                code.place(taken);
                code.add("addi", 10, 5, 0, 0);
                vec![returned(words, code, a, b)]
            }
            Self::Load(name, bytes) => {
                let mut code = Assembler::default();
                code.add("sd", 0, 10, 11, 0);
                code.add(name, 10, 10, 0, 8 - i32::from(bytes));
                vec![returned(words, code, a, b)]
            }
            Self::Store(name, bytes) => {
                let mut code = Assembler::default();
                code.add("sd", 0, 10, 11, 0);
                code.add(name, 0, 10, 12, 8 - i32::from(bytes));
                code.add("ld", 10, 10, 0, 0);
                vec![returned(words, code, a, b)]
            }
        }
    }
}

/// What a function returns of an address with room for a word, and of two words.
fn returned<W: Words + Clone>(words: &W, mut code: Assembler, a: &W::Word, b: &W::Word) -> W::Word {
    code.ret();
    let mut words = words.clone();
    let place = words.constant(assembly::DATA);
    let mut machine = Machine::new(words, &code.program(), 10).expect("it fits");
    let room = machine.memory.map(assembly::DATA, vec![0; 8], true);
    room.expect("nothing is there");
    let returned = machine.call(assembly::CODE, &[place, a.clone(), b.clone()]);
    returned.expect("it returns")
}

/// What an atomic instruction reads of memory that has one word, and leaves there by another.
fn atomically<W: Words + Clone>(
    words: &mut W,
    atomic: Atomic,
    a: &W::Word,
    b: &W::Word,
) -> Vec<W::Word> {
    let mut code = Assembler::default();
    let encoding = encodings().find(|encoding| encoding.operation == Operation::Atomic(atomic));
    if atomic.change == AtomicChange::StoreIfReserved {
        let reserve = if atomic.bytes == 4 { "lr.w" } else { "lr.d" };
        code.add(reserve, 5, 10, 0, 0);
    }
    code.add(encoding.expect("it is one").name, 12, 10, 11, 0);
    code.add("addi", 10, 12, 0, 0);
    code.ret();
    let mut machine = Machine::new(words.clone(), &code.program(), 10).expect("it fits");
    machine
        .memory
        .map(assembly::DATA, vec![0; 8], true)
        .expect("nothing is there");
    let memory = &mut machine.memory;
    memory
        .store(words, assembly::DATA, 8, a)
        .expect("it is mapped");
    let place = words.constant(assembly::DATA);
    let read = machine
        .call(assembly::CODE, &[place, b.clone()])
        .expect("it returns");
    let left = machine.memory.load(words, assembly::DATA, 8);
    vec![read, left.expect("it is mapped")]
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

/// As many pairs of words as every instruction is tried on.
const PAIRS: usize = 256;

/// All pairs of edges, and others.
fn pairs() -> Vec<(u64, u64)> {
    let edges = EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b)));
    let words = Random::new(7).words(2 * PAIRS);
    // Small ones too, and those that are near each other.
    let others = words.chunks(2).zip([0, 0, 40, 57].into_iter().cycle());
    let others = others.map(|(pair, by)| (pair[0] >> by, pair[1] >> by));
    edges.chain(others).take(PAIRS).collect()
}

/// On all pairs; quotients, which take by far the longest, on those of edges alone where that is said.
fn check(protocol: &str, few_quotients: bool) {
    let pairs = &pairs();
    let count = |computes: Computes| match computes {
        Computes::Function(Function::Multiplication(
            Multiplication::Divide(_)
            | Multiplication::Remainder(_)
            | Multiplication::DivideHalf(_)
            | Multiplication::RemainderHalf(_),
        )) if few_quotients => EDGES.len() * EDGES.len(),
        _ => pairs.len(),
    };
    let (left, right): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
    let results = run(protocol, usual_parties(protocol), |p| {
        let own = |party, values| (p.party() == party).then_some(values);
        let (own_left, own_right) = (own(0, left.as_slice()), own(1, right.as_slice()));
        let (x, y) = (
            share(p, 0, own_left, left.len())?,
            share(p, 1, own_right, right.len())?,
        );
        let mut results = Vec::new();
        for (_, function) in functions() {
            // Both secret, or one of them.
            let count = count(function);
            let computed: Vec<Word> = (0..3 * count)
                .flat_map(|at| {
                    let (public, at) = (at / count, at % count);
                    let (a, b) = match public {
                        0 => (x[at].clone(), y[at].clone()),
                        1 => (x[at].clone(), Word::Public(right[at])),
                        _ => (Word::Public(left[at]), y[at].clone()),
                    };
                    function.compute(&mut Secret, &a, &b)
                })
                .collect();
            results.push(reveal(p, &computed, Recipient::All)?.expect("all learn it"));
        }
        Ok(results)
    });
    for result in &results {
        for ((name, function), got) in functions().zip(result) {
            let count = count(function);
            let each = got.len() / (3 * count);
            for (at, got) in got.chunks(each).enumerate() {
                let (a, b) = pairs[at % count];
                let expected = function.compute(&mut Plain, &a, &b);
                assert_eq!(*got, expected, "{name} of {a:#x} and {b:#x}, {at}");
            }
        }
    }
}

#[test]
fn instructions_in_the_reference() {
    check("plain", true);
}

#[test]
fn instructions_by_replicated_sharing() {
    check("replicated", true);
}

#[test]
fn instructions_by_two_parties_and_a_dealer() {
    check("additive_2_dealer", true);
}

#[test]
#[ignore = "long: minutes"]
fn instructions_by_every_protocol() {
    for protocol in PROTOCOLS.iter().chain(&OTHERS) {
        check(protocol, false);
    }
}

/// A free place for what functions are given.
const DATA: u64 = 0x1000_0000;

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/arrays.elf")).expect("it was compiled for this")
}

/// What a function gives for words that one party has, as each of all parties learns it.
fn called(protocol: &str, name: &str, values: &[u64], bytes: u64) -> Vec<Result<u64, Fault>> {
    let all = measured(protocol, name, values, bytes).into_iter();
    all.map(|(result, _)| result).collect()
}

/// The same, and how many rounds that took.
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
        let mut machine = Machine::new(Secret, &program, 1 << 20).expect("it fits");
        let memory = &mut machine.memory;
        memory
            .map(DATA, vec![0; 8 * values.len()], true)
            .expect("nothing is there");
        for (at, word) in (0..).zip(&words) {
            memory
                .store(&Secret, DATA + bytes * at, bytes, word)
                .expect("it is mapped");
        }
        let function = program.function(name).expect("it is there");
        let count = Word::Public(values.len() as u64);
        let before = p.channel().meter().totals().rounds;
        let result = match machine.call(function, &[Word::Public(DATA), count]) {
            Ok(result) => {
                let opened = reveal(p, &[result], Recipient::All)?;
                Ok(opened.expect("all learn it")[0])
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

/// The greatest by branches, the least by instructions: rounds of six comparisons and what is chosen by them, and not
/// of 63. What is chosen by the greatest so far waits for it.
#[test]
fn the_greatest_of_many_is_found_by_halves() {
    let values: Vec<u64> = Random::new(12).words(64);
    let signed = || values.iter().map(|word| *word as i64);
    let most = signed().max().expect("there are some");
    let place = signed().position(|word| word == most);
    let of = [
        ("highest", most as u64, 6 * 8),
        // Among them what it begins with.
        ("least", *values.iter().min().expect("some"), 7 * 8),
        ("place", place.expect("it is one") as u64, 63 * 8),
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

#[test]
fn what_would_tell_of_a_secret_is_refused() {
    for result in called("plain", "sort", &[3, 1, 2], 4) {
        assert_eq!(result, Err(Fault::SecretLoop));
    }
}

/// What is sent depends on no secret, and what is independent shares its messages.
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
    // One message of products, and one that opens them.
    let products = |words: &mut Secret, x: &Word, y: &Word| words.multiply(x, y);
    assert_eq!(sent(&random, products).0, 2);
    // The smaller one, and what nobody asks for.
    let least = |words: &mut Secret, x: &Word, y: &Word| {
        words.remainder(x, y, Signs::Signed);
        let less = words.less(x, y, Signs::Unsigned);
        words.select(&less, x, y)
    };
    assert_eq!(sent(&random, least), sent(&[0; 2000], least));
    assert_eq!(sent(&random, least).0, sent(&random[..2], least).0);
}

/// A word that was copied by bytes is the word: nothing is sent to put it together.
#[test]
fn pieces_in_order_are_the_word_again() {
    run("replicated", 3, |p| {
        let own = (p.party() == 0).then_some([0x0123_4567_89ab_cdef].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        // In arithmetic form alone, so that a shift would cost a conversion.
        let doubled = Secret.add(&word, &word);
        let mut memory = Memory::new();
        memory
            .map(DATA, vec![0xff; 32], true)
            .expect("nothing is there");
        memory
            .store(&Secret, DATA, 8, &doubled)
            .expect("it is mapped");
        copy_word(&mut memory, DATA, DATA + 16);
        // Over the half of it, a public one.
        memory
            .store(&Secret, DATA + 4, 4, &Word::Public(7))
            .expect("it is mapped");
        let half = memory.load(&mut Secret, DATA, 8).expect("it is mapped");
        let copied = memory
            .load(&mut Secret, DATA + 16, 8)
            .expect("it is mapped");
        assert!(Secret.are_one(&copied, &doubled));
        let opened = reveal(p, &[half, copied], Recipient::All)?.expect("all learn it");
        assert_eq!(opened, [0x7_1357_9bde, 0x0246_8acf_1357_9bde]);
        Ok(())
    });
}
