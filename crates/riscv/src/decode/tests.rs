//! Decoding is that of an independent disassembler.

use super::{decode, encode};
use crate::formats::Format;
use crate::instruction::Instruction;
use crate::operation::Operation;
use disc_v::{Decoder, Extension, Isa};
use proptest::prelude::RngCore;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Where the instructions stand: what jumps is shown with the address that it goes to.
const PLACE: u64 = 1 << 40;

/// The same extensions.
fn oracle() -> Decoder {
    let known = [
        Extension::M,
        Extension::A,
        Extension::F,
        Extension::D,
        Extension::V,
        Extension::C,
        Extension::Zba,
        Extension::Zbb,
        Extension::Zbs,
        Extension::Zicond,
        Extension::Zicsr,
        Extension::Zifencei,
    ];
    Decoder::with_only(Isa::Rv64, known).expect("these go together")
}

/// An instruction as the other one shows it.
fn shown(instruction: &Instruction) -> String {
    let text = instruction.to_string();
    let goes = matches!(
        instruction.operation,
        Operation::Jump | Operation::Branch(_)
    );
    match text.rsplit_once(',') {
        Some((before, _)) if goes => {
            let to = PLACE.wrapping_add_signed(instruction.operands.immediate.into());
            format!("{before},{to:#x}")
        }
        _ => text,
    }
}

/// What both say of an instruction without what they name differently: control registers have names there,
/// and fences what they order.
fn compared(text: &str) -> String {
    let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
    if name.starts_with("fence") {
        return "fence".to_owned();
    }
    if name.starts_with("csr") {
        let operands: Vec<_> = operands.split(',').collect();
        return format!("{name} {} {}", operands[0], operands[2]);
    }
    text.to_owned()
}

fn check(oracle: &Decoder, word: u32) {
    let other = oracle.decode(PLACE, word.into()).without_aliases();
    let mine = decode(word);
    // Of V not all is known here.
    let named = |name: &str| crate::extensions::encodings().any(|encoding| encoding.name == name);
    let name = other.to_string();
    let name = name.split(' ').next().unwrap_or_default();
    let known = !other.is_illegal() && (!name.starts_with('v') || named(name));
    assert_eq!(mine.is_some(), known, "{word:#010x} is {other}, {mine:?}");
    let Some(mine) = mine else { return };
    assert_eq!(
        compared(&shown(&mine)),
        compared(&other.to_string()),
        "{word:#010x}"
    );
    assert_eq!(encode(&mine), word, "{mine}");
}

/// Every opcode and all that is fixed in some encoding, with random bits elsewhere.
#[test]
fn words_of_four_bytes_are_what_another_says() {
    let (oracle, mut random) = (oracle(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    for _ in 0..200_000 {
        check(&oracle, random.next_u32() | 3);
    }
    for encoding in crate::extensions::encodings() {
        for _ in 0..500 {
            let bits = random.next_u32();
            check(&oracle, encoding.bits | bits & !encoding.mask);
            // One bit of what is fixed is another.
            check(
                &oracle,
                (encoding.bits | bits & !encoding.mask) ^ (1 << (2 + bits % 30)),
            );
        }
    }
}

#[test]
#[ignore = "takes a minute"]
fn ten_million_words_are_what_another_says() {
    let (oracle, mut random) = (oracle(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    for _ in 0..10_000_000 {
        check(&oracle, random.next_u32() | 3);
    }
}

/// The instruction of four bytes that two bytes stand for is shown as they are.
#[test]
fn all_pairs_of_bytes_are_what_another_says() {
    let oracle = oracle();
    for half in (0..=u16::MAX).filter(|half| half & 3 != 3) {
        let (mine, other) = (decode(half.into()), oracle.decode(PLACE, half.into()));
        assert_eq!(
            mine.is_some(),
            !other.is_illegal(),
            "{half:#06x} is {other}, {mine:?}"
        );
        let Some(mine) = mine else { continue };
        assert_eq!(mine.length, 2);
        let long = oracle.decode(PLACE, encode(&mine).into());
        // A copy is a sum with zero there, and a name for a sum with the constant zero here.
        let long = long
            .to_string()
            .replace("add ", "mv ")
            .replace(",zero,", ",");
        let other = other
            .to_string()
            .replace("add ", "mv ")
            .replace(",zero,", ",");
        // What has no effect is shown as it is written.
        let idle =
            other.starts_with("c.") && (mine.operands.rd == 0 || mine.operands.immediate == 0);
        assert!(
            idle || long == other,
            "{half:#06x} is {mine}, {long}, {other}"
        );
    }
}

/// No two encodings are of the same bytes, and none is shadowed by another.
#[test]
fn encodings_exclude_each_other() {
    let all: Vec<_> = crate::extensions::encodings().collect();
    for (at, one) in all.iter().enumerate() {
        assert_eq!(one.bits & !one.mask, 0, "{}", one.name);
        assert!(!matches!(one.format, Format::Shift(bits) if bits > 6));
        for other in &all[..at] {
            let common = one.mask & other.mask;
            let apart = one.bits & common != other.bits & common;
            assert!(apart, "{} and {}", one.name, other.name);
            assert_ne!(
                one.operation, other.operation,
                "{} and {}",
                one.name, other.name
            );
        }
    }
}
