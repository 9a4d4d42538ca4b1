//! Comparison of the decoder with an independent disassembler.

use super::{decode, encode};
use crate::isa::extensions::encodings;
use crate::isa::formats::Format;
use crate::isa::instruction::Instruction;
use crate::isa::operation::Operation;
use disc_v::{Decoder, Extension, Isa};
use proptest::prelude::RngCore;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::collections::HashSet;
use std::fmt::Write;
use std::num::NonZero;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// The address of the instructions. The disassembler shows jumps with their target addresses.
const PLACE: u64 = 1 << 40;

/// Instructions of privileged modes, which this decoder does not have.
const PRIVILEGED: [&str; 4] = ["mret", "sret", "wfi", "sfence.vma"];

/// Returns the independent disassembler, with this crate's extensions.
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
    Decoder::with_only(Isa::Rv64, known).expect("the extensions are compatible")
}

/// The comparison of four-byte words with the disassembler.
struct Comparison {
    oracle: Decoder,
    /// The names of all instructions of this crate.
    names: HashSet<&'static str>,
    /// The texts of a word by both.
    texts: [String; 2],
}

impl Comparison {
    fn new() -> Self {
        Self {
            oracle: oracle(),
            names: encodings().map(|encoding| encoding.name).collect(),
            texts: Default::default(),
        }
    }

    fn check(&mut self, word: u32) {
        let other = self.oracle.decode(PLACE, word.into()).without_aliases();
        let name = other.mnemonic();
        // This crate does not have all of V.
        let is_elsewhere =
            PRIVILEGED.contains(&name) || name.starts_with('v') && !self.names.contains(name);
        let known = !other.is_illegal() && !is_elsewhere;
        let mine = decode(word);
        assert_eq!(mine.is_some(), known, "{word:#010x} is {other}, {mine:?}");
        let Some(mine) = mine else { return };
        self.texts.iter_mut().for_each(String::clear);
        let [of_mine, of_other] = &mut self.texts;
        show(&mine, of_mine);
        write!(of_other, "{other}").expect("strings accept writes");
        assert!(
            are_alike(of_mine, of_other),
            "{word:#010x} is {of_other}, {of_mine}"
        );
        assert_eq!(encode(&mine), word, "{mine}");
    }
}

/// Writes an instruction in the disassembler's style.
fn show(instruction: &Instruction, text: &mut String) {
    write!(text, "{instruction}").expect("strings accept writes");
    if matches!(
        instruction.operation,
        Operation::Jump | Operation::Branch(_)
    ) {
        let to = PLACE.wrapping_add_signed(instruction.operands.immediate.into());
        text.truncate(text.rfind(',').expect("the text ends with an offset"));
        write!(text, ",{to:#x}").expect("strings accept writes");
    }
}

/// Returns whether both texts show the same instruction. The disassembler names control registers,
/// and shows the sets of fences.
fn are_alike(mine: &str, other: &str) -> bool {
    let parts = |text| str::split_once(text, ' ').unwrap_or((text, ""));
    let [(name, mine_with), (other_name, other_with)] = [mine, other].map(parts);
    if name.starts_with("csr") {
        let ends = |text| {
            Some((
                str::split_once(text, ',')?.0,
                str::rsplit_once(text, ',')?.1,
            ))
        };
        return name == other_name
            && ends(mine_with).is_some_and(|of_mine| Some(of_mine) == ends(other_with));
    }
    match name {
        "fence" => matches!(other_name, "fence" | "fence.tso"),
        _ => (name, mine_with) == (other_name, other_with),
    }
}

/// Every opcode and the fixed bits of every encoding, with random bits elsewhere.
#[test]
fn words_of_four_bytes_are_what_another_says() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut comparison = Comparison::new();
    for _ in 0..200_000 {
        comparison.check(random.next_u32() | 3);
    }
    for encoding in encodings() {
        for _ in 0..500 {
            let bits = random.next_u32();
            comparison.check(encoding.bits | bits & !encoding.mask);
            // One fixed bit is flipped.
            comparison.check((encoding.bits | bits & !encoding.mask) ^ (1 << (2 + bits % 30)));
        }
    }
}

#[test]
fn ten_million_words_are_what_another_says() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut comparison = Comparison::new();
    for _ in 0..10_000_000 {
        comparison.check(random.next_u32() | 3);
    }
}

/// Together with the two-byte instructions, which are tested below, these are all words.
#[test]
#[ignore = "long: minutes on all cores"]
fn all_words_are_what_another_says() {
    const PART: u32 = 1 << 22;
    let next = AtomicU32::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut comparison = Comparison::new();
                loop {
                    let from = next.fetch_add(PART, Relaxed);
                    if from >= 1 << 30 {
                        return;
                    }
                    (from..from + PART).for_each(|upper| comparison.check(upper << 2 | 3));
                }
            });
        }
    });
    assert!(next.into_inner() >= 1 << 30);
}

/// A compressed instruction is shown like the four-byte instruction that it expands to.
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
        // A move expands to an addition of zero, and a load of an immediate to an addition to zero.
        let long = long
            .to_string()
            .replace("add ", "mv ")
            .replace(",zero,", ",");
        let other = other
            .to_string()
            .replace("add ", "mv ")
            .replace(",zero,", ",");
        // Hints without effect are shown in their compressed form.
        let idle =
            other.starts_with("c.") && (mine.operands.rd == 0 || mine.operands.immediate == 0);
        assert!(
            idle || long == other,
            "{half:#06x} is {mine}, {long}, {other}"
        );
    }
}

/// No two encodings overlap, and none shadows another.
#[test]
fn encodings_exclude_each_other() {
    let all: Vec<_> = encodings().collect();
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
