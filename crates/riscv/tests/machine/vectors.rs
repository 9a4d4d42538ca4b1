//! Vectors behave as V defines.

use crate::cases::{OTHERS, PROTOCOLS};
use mpc::Recipient;
use riscv::elf::program::Segment;
use riscv::isa::decode::{decode, encode};
use riscv::isa::encoding::Encoding;
use riscv::isa::extensions::encodings;
use riscv::isa::formats::{Format, Operand, Operands};
use riscv::isa::operation::vectors::{Source, VectorFunction};
use riscv::numbers::fixed_point::Real;
use riscv::secret::Word;
use riscv::secret::evaluation::{Fate, reveal, settle_checked};
use riscv::secret::inputs::share;
use riscv::secret::watch::Watch;
use riscv::{Fault, Instruction, Machine, Plain, Program, Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/vectors.elf")).expect("the file is a program")
}

/// Every instruction leaves the results of another processor: `vectors.txt` is the output of
/// `vectors.elf` there (qemu-riscv64 7.2 with vlen=128).
#[test]
fn results_are_those_of_another_processor() {
    let program = program();
    let named = |name| program.function(name).expect("the function exists");
    let mut machine = Machine::new(Plain, &program, u64::MAX).expect("the program fits");
    let lines: Vec<&str> = include_str!("../../programs/vectors.txt").lines().collect();
    assert_eq!(machine.call(named("count"), &[]), Ok(lines.len() as u64));
    let mut wrong = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let got = machine.call(named("vectors"), &[number as u64]);
        let entry = entry(&program, number);
        if got.as_ref().map(|got| format!("{got:016x}")).as_deref() != Ok(*line) {
            wrong.push(format!("{entry}: {got:x?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the instruction of an entry as assembly.
fn entry(program: &Program, number: usize) -> String {
    let segment = program
        .segments
        .iter()
        .find(|segment| segment.executable)
        .expect("the program has code");
    // The first instruction is a vadd.vv without a mask.
    let first = 0x0288_0c57_u32.to_le_bytes();
    let start = segment
        .bytes
        .windows(4)
        .position(|bytes| bytes == first)
        .expect("the instruction exists");
    let at = start + 8 * number;
    let word = u32::from_le_bytes(
        segment.bytes[at..at + 4]
            .try_into()
            .expect("the slice has four bytes"),
    );
    decode(word).map_or_else(
        || format!("{word:#x}"),
        |instruction| instruction.to_string(),
    )
}

/// The addresses of programs and data.
const CODE: u64 = 1 << 16;
const DATA: u64 = 1 << 20;

/// Encodes an instruction by its name.
fn instruction(name: &str, rd: u8, rs1: u8, rs2: u8, immediate: i32) -> u32 {
    let encoding = encodings().find(|encoding| encoding.name == name);
    let operation = encoding
        .unwrap_or_else(|| panic!("no instruction is named {name}"))
        .operation;
    let operands = Operands {
        rd,
        rs1,
        rs2,
        immediate,
    };
    encode(&Instruction {
        operation,
        operands,
        length: 4,
    })
}

/// Builds a machine that executes these instructions and then returns.
fn machine<W: Words>(words: W, text: &[u32]) -> Machine<W> {
    let mut program = program();
    let text = text.iter().chain(&[0x8067]);
    let bytes: Vec<u8> = text.flat_map(|word| word.to_le_bytes()).collect();
    program.segments = vec![Segment {
        start: CODE,
        size: bytes.len() as u64,
        bytes,
        writable: false,
        executable: true,
    }];
    Machine::new(words, &program, 1 << 16).expect("the program fits")
}

/// The operands of an instruction: vectors a, b and the old destination, a mask, and a word for all
/// elements.
#[derive(Clone)]
struct Operation<Word> {
    vectors: [Vec<Word>; 3],
    mask: Word,
    scalar: Word,
}

/// The number of words of a result: a possible integer result, and two registers.
const RESULT: usize = 5;

/// Returns the results of all operations, executed on one machine.
fn results<W: Words>(
    words: W,
    encoding: &Encoding,
    (bits, masked): (u32, bool),
    all: &[Operation<W::Word>],
) -> Result<Vec<W::Word>, Fault> {
    let (length, bytes) = (128 / bits as i32, u64::from(bits / 8));
    let kind = (bits / 8).ilog2() as i32 * 8;
    let load = format!("vle{bits}.v");
    let scalar =
        matches!(encoding.format, Format::Vector(operands) if operands.contains(&Operand::Integer));
    let constant = matches!(encoding.format, Format::Vector(operands) if !operands.contains(&Operand::Second) && !operands.contains(&Operand::IntegerSource));
    let rs1 = if constant {
        3
    } else if matches!(encoding.format, Format::Vector(operands) if operands.contains(&Operand::Second))
    {
        16
    } else {
        15
    };
    let fixed = encoding.mask & 1 << 25 != 0;
    let unmasked = if fixed {
        (encoding.bits >> 25 & 1) as i32
    } else {
        i32::from(!masked)
    };
    let operands = Operands {
        rd: if scalar { 10 } else { 24 },
        rs1: if encoding.mask & 0x000f_8000 != 0 {
            (encoding.bits >> 15 & 31) as u8
        } else {
            rs1
        },
        rs2: if encoding.mask & 0x01f0_0000 != 0 {
            (encoding.bits >> 20 & 31) as u8
        } else {
            8
        },
        immediate: unmasked,
    };
    let tested = Instruction {
        operation: encoding.operation,
        operands,
        length: 4,
    };
    let text = [
        instruction("vsetivli", 0, length as u8, 0, kind),
        instruction(&load, 8, 10, 0, 1),
        instruction(&load, 16, 11, 0, 1),
        instruction(&load, 24, 12, 0, 1),
        instruction("vlm.v", 0, 13, 0, 1),
        encode(&tested),
        instruction("vs2r.v", 24, 14, 0, 1),
    ];
    let mut machine = machine(words, &text);
    machine.memory.map(DATA, vec![0; 1024], true)?;
    let places = [0, 64, 128, 192, 256].map(|place| machine.words.constant(DATA + place));
    let mut results = Vec::with_capacity(RESULT * all.len());
    for of in all {
        for (vector, place) in of.vectors.iter().zip([DATA, DATA + 64, DATA + 128]) {
            for (at, word) in (0..).zip(vector) {
                let place = place + bytes * at;
                machine.memory.store(&machine.words, place, bytes, word)?;
            }
        }
        // The mask has a bit for each element.
        let mask = &of.mask;
        machine.memory.store(&machine.words, DATA + 192, 2, mask)?;
        let mut arguments = places.to_vec();
        arguments.push(of.scalar.clone());
        let result = machine.call(CODE, &arguments)?;
        results.push(match scalar {
            true => result,
            false => machine.words.constant(0),
        });
        for at in 0..RESULT as u64 - 1 {
            let place = DATA + 256 + 8 * at;
            results.push(machine.memory.load(&mut machine.words, place, 8)?);
        }
    }
    Ok(results)
}

/// Returns whether an instruction takes integers, and accesses no places that depend on them.
fn tested(encoding: &Encoding, bits: u32) -> bool {
    let riscv::Operation::Vector(vector) = encoding.operation else {
        return false;
    };
    let is_float = encoding.name.starts_with("vf") && encoding.name != "vfirst.m"
        || encoding.name.starts_with("vmf");
    let by_place = encoding.name.contains("slide")
        && vector.source == Source::Integer
        && !encoding.name.contains('1');
    let refused = encoding.name.starts_with("vrgather.v")
        && vector.source != Source::Constant(Signs::Unsigned)
        || encoding.name == "vfirst.m";
    let narrow = encoding.name.starts_with("vw") || encoding.name.starts_with("vn");
    let too_long = bits == 64 && narrow;
    let part =
        matches!(vector.function, VectorFunction::Extend(times, _) if u32::from(times) * 8 > bits);
    !is_float && !by_place && !refused && !too_long && !part
}

/// Returns values at which signs, carries and widths matter in elements of `bits` bits.
fn edges(bits: u32) -> [u64; 10] {
    let low = |bits: u32| u64::MAX >> (64 - bits);
    let (half, all) = (bits / 2, low(bits));
    let other = [u64::from(bits - 1), 0x80, 1 << (half - 1), low(half)];
    let [last, byte, sign, short] = other;
    [
        0,
        1,
        2,
        last,
        byte,
        sign,
        short,
        all >> 1,
        all ^ all >> 1,
        all,
    ]
}

/// The number of elements that each element is paired with: edges, and others.
const VALUES: usize = 16;

/// Returns operations in which each of [`VALUES`] elements a meets each b once as the element of
/// the same index and, in another operation, as the word for all elements.
fn operations(bits: u32) -> Vec<Operation<u64>> {
    let others = Random::new(17 + u64::from(bits)).words(VALUES);
    let (lefts, rights) = others.split_at(VALUES / 2);
    let values = |others: &[u64]| {
        // Bits above the width of an element must have no effect.
        let above = others.iter().cycle().map(|other| match bits {
            64 => 0,
            _ => other << bits,
        });
        let all = edges(bits).into_iter().chain(others.iter().copied());
        let mut all: Vec<u64> = all.zip(above).map(|(value, above)| value ^ above).collect();
        all.truncate(VALUES);
        all
    };
    let (lefts, rights) = (values(lefts), values(rights));
    let masks = Random::new(bits.into()).words(VALUES);
    let length = 128 / bits as usize;
    let turns = (0..VALUES).flat_map(|turn| (0..VALUES).step_by(length).map(move |at| (turn, at)));
    let each = turns.map(|(turn, at)| {
        let turned = |turn: usize| {
            (at..at + length)
                .map(|at| rights[(at + turn) % VALUES])
                .collect()
        };
        Operation {
            vectors: [
                lefts[at..at + length].to_vec(),
                turned(turn),
                turned(3 * turn + 7),
            ],
            mask: masks[turn] >> at,
            scalar: rights[turn],
        }
    });
    each.collect()
}

/// Compares each instruction on secrets, with secret masks, public masks and none, with plain
/// results. All operands are secret, or all except a, or all except b and its substitute, in turns
/// from `begin`. Every `every`-th operation is tried.
fn check(protocol: &str, bits: u32, every: usize, begin: usize) {
    let operations: Vec<_> = operations(bits).into_iter().step_by(every).collect();
    let of_length = encodings().filter(|encoding| tested(encoding, bits));
    let cases = of_length.flat_map(|encoding| [0, 1, 2].map(|mask| (encoding, mask)));
    // An instruction with a fixed mask bit has a single case.
    let cases = cases.filter(|(encoding, mask)| *mask == 0 || encoding.mask & 1 << 25 == 0);
    let cases: Vec<_> = cases.collect();
    assert!(cases.len() > 100);
    let each = operations.iter().flat_map(|of| {
        let vectors = of.vectors.iter().flatten().copied();
        vectors.chain([of.mask, of.scalar])
    });
    let numbers: Vec<u64> = each.collect();
    let found = run(protocol, usual_parties(protocol), |p| {
        let own = (p.party() == 0).then_some(numbers.as_slice());
        let mut secret = share(p, 0, own, numbers.len())?.into_iter();
        let secret = operations.iter().zip(begin..).map(|(public, turn)| {
            let mut secret = |numbers: &[u64], is_public: bool| -> Vec<Word> {
                let words = numbers.iter().zip(secret.by_ref());
                words
                    .map(|(number, word)| {
                        if is_public {
                            Word::Public(*number)
                        } else {
                            word
                        }
                    })
                    .collect()
            };
            let [a, b, before] = &public.vectors;
            Operation {
                vectors: [
                    secret(a, turn % 3 == 1),
                    secret(b, turn % 3 == 2),
                    secret(before, false),
                ],
                mask: secret(&[public.mask], false).swap_remove(0),
                scalar: secret(&[public.scalar], turn % 3 == 2).swap_remove(0),
            }
        });
        let secret: Vec<Operation<Word>> = secret.collect();
        let mut masked = secret.clone();
        for (masked, public) in masked.iter_mut().zip(&operations) {
            masked.mask = Word::Public(public.mask);
        }
        let mut found = Vec::new();
        // The number of instructions that share rounds, and whose results are in memory together.
        for some in cases.chunks(16) {
            let mut words = Vec::new();
            for (encoding, mask) in some {
                let all = if *mask == 2 { &secret } else { &masked };
                let result = results(Secret, encoding, (bits, *mask > 0), all);
                words.extend(result.unwrap_or_else(|fault| panic!("{}: {fault}", encoding.name)));
            }
            found.extend(reveal(p, &words, Recipient::All)?.expect("opened to all"));
        }
        Ok(found)
    });
    for (at, (encoding, mask)) in cases.iter().enumerate() {
        let expected = results(Plain, encoding, (bits, *mask > 0), &operations)
            .expect("the program runs without a fault");
        for found in &found {
            let found = &found[at * expected.len()..][..expected.len()];
            for (turn, (found, expected)) in found
                .chunks(RESULT)
                .zip(expected.chunks(RESULT))
                .enumerate()
            {
                let name = encoding.name;
                assert_eq!(
                    found, expected,
                    "{name} of {bits} bits, {mask}, operation {turn}"
                );
            }
        }
    }
    assert!(
        found
            .iter()
            .all(|found| found.len() == cases.len() * RESULT * operations.len())
    );
}

const LENGTHS: [u32; 4] = [8, 16, 32, 64];

#[test]
fn instructions_in_the_reference() {
    for bits in LENGTHS {
        check("plain", bits, 1, 0);
    }
}

#[test]
fn instructions_by_replicated_sharing() {
    check("replicated", 32, 10, 0);
}

#[test]
fn instructions_by_two_parties_and_a_dealer() {
    check("additive_2_dealer", 64, 20, 0);
}

/// All pairs in every protocol, whichever operand is public.
#[test]
#[ignore = "long: minutes"]
fn instructions_by_every_protocol() {
    for protocol in PROTOCOLS.iter().chain(&OTHERS) {
        for begin in 0..3 {
            for bits in LENGTHS {
                check(protocol, bits, 1, begin);
            }
        }
    }
}

#[test]
fn what_would_tell_of_a_secret_is_refused() {
    run("plain", 1, |p| {
        let words = share(p, 0, Some(&[1; 50]), 50)?;
        let of = |at: usize| words[at].clone();
        for (name, fault) in [
            ("vrgather.vv", Fault::SecretElement),
            ("vrgather.vx", Fault::SecretElement),
            ("vslidedown.vx", Fault::SecretElement),
            ("vfirst.m", Fault::SecretElement),
        ] {
            let encoding = encodings()
                .find(|encoding| encoding.name == name)
                .expect("the encoding exists");
            let operation = Operation {
                vectors: [0, 16, 32].map(|from| (from..from + 4).map(of).collect()),
                mask: Word::Public(1),
                scalar: of(48),
            };
            let result = results(Secret, encoding, (32, false), &[operation]);
            assert_eq!(result.err(), Some(fault), "{name}");
        }
        // A secret vector length: vsetvli a0, a0, e64, m1.
        let mut machine = machine(Secret, &[instruction("vsetvli", 10, 10, 0, 24)]);
        assert_eq!(
            machine.call(CODE, &[of(0)]).err(),
            Some(Fault::SecretLength)
        );
        Ok(())
    });
}

#[test]
fn kinds_of_vectors_that_do_not_exist_are_none() {
    // vsetivli a0, 3, type; csrr a1, vtype; and a sum of vectors of it.
    let kind = |code: i32, more: &[u32]| {
        let mut text = vec![
            instruction("vsetivli", 10, 3, 0, code),
            instruction("csrrs", 11, 0, 0, 0xc21),
        ];
        text.extend(more);
        let mut machine = machine(Plain, &text);
        let length = machine.call(CODE, &[]);
        (length, *machine.register(11))
    };
    assert_eq!(kind(0b11_000, &[]), (Ok(2), 0b11_000));
    assert_eq!(kind(0b01_101, &[]), (Ok(0), 1 << 63));
    assert_eq!(kind(0b00_100, &[]), (Ok(0), 1 << 63));
    let sum = instruction("vadd.vv", 1, 2, 3, 1);
    assert_eq!(kind(0b01_101, &[sum]).0, Err(Fault::VectorKind));
    // Eight groups of eight registers would be 64 registers.
    let fields = instruction("vlseg8e64.v", 0, 2, 0, 1);
    assert_eq!(kind(0b00_011, &[fields]).0, Err(Fault::VectorRegisters));
    let last = instruction("vadd.vv", 31, 2, 3, 1);
    assert_eq!(kind(0b11_001, &[last]).0, Err(Fault::VectorRegisters));
}

/// Conversions round toward zero whatever the rounding mode is, as casts do.
#[test]
fn floats_become_integers_toward_zero() {
    let values = [1.75, -2.5];
    let text = [
        instruction("vsetivli", 0, 2, 0, 24),
        instruction("vle64.v", 8, 10, 0, 1),
        instruction("vfcvt.rtz.x.f.v", 16, 0, 8, 1),
        instruction("vse64.v", 16, 10, 0, 1),
    ];
    let mut machine = machine(Plain, &text);
    let bytes = values
        .iter()
        .flat_map(|value: &f64| value.to_le_bytes())
        .collect();
    machine
        .memory
        .map(DATA, bytes, true)
        .expect("the region is free");
    machine.call(CODE, &[DATA]).expect("the function returns");
    let found = [0, 8].map(|at| machine.memory.load(&mut Plain, DATA + at, 8));
    assert_eq!(found, [Ok(1), Ok(-2_i64 as u64)]);
}

/// A sum of products as compilers vectorize a loop: vfmacc for each part, then vfredosum.
#[test]
fn secret_floats_are_elements_too() {
    let (left, right) = ([1.5, -2.0, 0.25, 100.0], [4.0, 0.5, -8.0, 0.125]);
    let text = [
        instruction("vsetivli", 0, 2, 0, 24),
        instruction("vmv.v.i", 24, 0, 0, 1),
        instruction("vle64.v", 8, 10, 0, 1),
        instruction("vle64.v", 16, 11, 0, 1),
        instruction("vfmacc.vv", 24, 16, 8, 1),
        instruction("addi", 10, 10, 0, 16),
        instruction("addi", 11, 11, 0, 16),
        instruction("vle64.v", 8, 10, 0, 1),
        instruction("vle64.v", 16, 11, 0, 1),
        instruction("vfmacc.vv", 24, 16, 8, 1),
        // The greater of each two of the last elements.
        instruction("vmflt.vv", 0, 16, 8, 1),
        instruction("vmerge.vvm", 8, 16, 8, 0),
        instruction("vse64.v", 8, 12, 0, 1),
        instruction("vmv.v.i", 1, 0, 0, 1),
        instruction("vfredosum.vs", 1, 1, 24, 1),
        instruction("vfmv.f.s", 10, 0, 1, 1),
    ];
    let real = Real::of_scale(8, 16);
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        for found in run(protocol, usual_parties(protocol), |p| {
            let values: Vec<u64> = left
                .iter()
                .chain(&right)
                .map(|value| real.encode(f64::to_bits(*value)).expect("in range"))
                .collect();
            let own = (p.party() == 0).then_some(values.as_slice());
            let words = share(p, 0, own, 8)?;
            let mut machine = machine(Secret, &text);
            machine
                .memory
                .map(DATA, vec![0; 128], true)
                .expect("the region is free");
            for (at, word) in (0..).zip(&words) {
                let float = Secret.float(word, real);
                machine
                    .memory
                    .store(&Secret, DATA + 8 * at, 8, &float)
                    .expect("the address is mapped");
            }
            let arguments = [0, 32, 64].map(|at| Word::Public(DATA + at));
            machine
                .call(CODE, &arguments)
                .expect("the function returns");
            let mut words = vec![machine.float_register(10).clone()];
            for at in [64, 72] {
                words.push(
                    machine
                        .memory
                        .load(&mut Secret, DATA + at, 8)
                        .expect("the address is mapped"),
                );
            }
            Ok(reveal(p, &words, Recipient::All)?.expect("opened to all"))
        }) {
            let found: Vec<f64> = found.into_iter().map(f64::from_bits).collect();
            // 6 − 1 − 2 + 12.5, each product with an error of at most one unit.
            assert!((found[0] - 15.5).abs() <= 4.0 / 65536.0, "{}", found[0]);
            assert_eq!(found[1..], [0.25, 100.0]);
        }
    }
}

/// Products of elements, and their sum over a vector, that overflow a word are reported at their
/// instruction.
#[test]
fn secret_floats_of_vectors_are_checked() {
    let text = [
        instruction("vsetivli", 0, 2, 0, 24),
        instruction("vmv.v.i", 1, 0, 0, 1),
        instruction("vle64.v", 8, 10, 0, 1),
        instruction("vfmul.vv", 16, 8, 8, 1),
        instruction("vse64.v", 16, 10, 0, 1),
        instruction("vfredosum.vs", 1, 1, 8, 1),
        instruction("vfmv.f.s", 10, 0, 1, 1),
    ];
    // Either one square overflows, or the sum does.
    let cases: [([i64; 2], usize); 2] = [([3 << 16, 1 << 40], 3), ([1 << 62, 1 << 62], 5)];
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        for (values, at) in cases {
            let told = run(protocol, usual_parties(protocol), |p| {
                let _watch = Watch::begin(true);
                let own = values.map(|value| value as u64);
                let own = (p.party() == 0).then_some(&own[..]);
                let words = share(p, 0, own, 2)?;
                let mut machine = machine(Secret, &text);
                let room = machine.memory.map(DATA, vec![0; 16], true);
                room.expect("the region is free");
                for (at, word) in (0..).zip(&words) {
                    let float = Secret.float(word, Real::of_scale(8, 16));
                    let stored = machine.memory.store(&Secret, DATA + 8 * at, 8, &float);
                    stored.expect("the address is mapped");
                }
                let called = machine.call(CODE, &[Word::Public(DATA)]);
                called.expect("the function returns");
                let left = match at {
                    5 => machine.float_register(10).clone(),
                    _ => {
                        let loaded = machine.memory.load(&mut Secret, DATA + 8, 8);
                        loaded.expect("the address is mapped")
                    }
                };
                let fate = Fate::Opened(Recipient::All);
                let name = |claim: u32| format!("{:#x}", claim);
                let settled = settle_checked(p, &[(&[left], fate)], true, Some(&name))?;
                Ok((
                    settled.failed,
                    settled.learned[0].values().map(<[u64]>::to_vec),
                ))
            });
            for told in told {
                let instruction = format!("{:#x}", CODE + 4 * at as u64);
                assert_eq!(told, (vec![instruction], Some(vec![0])), "{protocol}");
            }
        }
    }
}
