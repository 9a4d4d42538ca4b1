//! Random programs have the same results on secret words as on plain ones.

mod generator;

use crate::assembly::{CODE, DATA};
use crate::cases::{OTHERS, PROTOCOLS};
use generator::{BASE, POOL, SIZE, program};
use mpc::{Protocol, Recipient, Result};
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Machine, Plain, Program, Secret, Words};
use testkit::{Random, run, usual_parties};

/// A limit on instructions that no program reaches.
const LIMIT: u64 = 1 << 20;

/// The number of statements of a program.
const STATEMENTS: u64 = 40;

/// Runs a program on words, one for each register and for each eight bytes of data. Returns their
/// final values.
fn carried_out<W: Words>(words: W, program: &Program, given: &[W::Word]) -> Vec<W::Word> {
    let mut machine = Machine::new(words, program, LIMIT).expect("the program fits");
    machine
        .memory
        .map(DATA, vec![0; SIZE as usize], true)
        .expect("the region is free");
    let (registers, data) = given.split_at(POOL.len());
    for (register, word) in POOL.iter().zip(registers) {
        machine.set_register((*register).into(), word.clone());
    }
    for (at, word) in (DATA..).step_by(8).zip(data) {
        machine
            .memory
            .store(&machine.words, at, 8, word)
            .expect("the address is mapped");
    }
    let base = machine.words.constant(DATA);
    machine.set_register(BASE.into(), base);
    machine.call(CODE, &[]).expect("the program ends");
    let mut left: Vec<W::Word> = POOL
        .iter()
        .map(|register| machine.register((*register).into()).clone())
        .collect();
    for at in (DATA..DATA + SIZE).step_by(8) {
        let word = machine.memory.load(&mut machine.words, at, 8);
        left.push(word.expect("the address is mapped"));
    }
    left
}

/// Returns initial words. Some are small, so that comparisons go either way.
fn given(seed: u64) -> Vec<u64> {
    let words = Random::new(!seed).words(POOL.len() + SIZE as usize / 8);
    let small = |(at, word): (usize, &u64)| word >> [0, 40, 60][at % 3];
    words.iter().enumerate().map(small).collect()
}

/// Returns the final words of a random program.
pub fn left<W: Words>(words: W, seed: u64, share: impl Fn(&[u64]) -> Vec<W::Word>) -> Vec<W::Word> {
    carried_out(words, &program(seed, STATEMENTS), &share(&given(seed)))
}

fn compare(protocol: &mut dyn Protocol, seed: u64) -> Result<()> {
    let (program, values) = (program(seed, STATEMENTS), given(seed));
    let expected = carried_out(Plain, &program, &values);
    let own = (protocol.party() == 0).then_some(values.as_slice());
    let mut words = share(protocol, 0, own, values.len())?;
    // Some words are public.
    for (at, word) in words.iter_mut().enumerate() {
        if (seed >> (at % 8)) % 3 == 0 {
            *word = Word::Public(values[at]);
        }
    }
    let left = carried_out(Secret, &program, &words);
    let found = reveal(protocol, &left, Recipient::All)?.expect("opened to all");
    assert_eq!(found, expected, "program {seed}");
    Ok(())
}

fn check(protocol: &str, seeds: std::ops::Range<u64>) {
    run(protocol, usual_parties(protocol), |p| {
        seeds.clone().try_for_each(|seed| compare(p, seed))
    });
}

#[test]
fn on_the_reference() {
    check("plain", 0..2000);
}

#[test]
fn by_replicated_sharing() {
    check("replicated", 2000..2012);
}

#[test]
fn by_two_parties_and_a_dealer() {
    check("additive_2_dealer", 2012..2024);
}

#[test]
#[ignore = "takes minutes"]
fn by_each_protocol_many() {
    for (at, protocol) in (3..).zip(PROTOCOLS.iter().chain(&OTHERS)) {
        check(protocol, 1000 * at..1000 * at + 200);
    }
}
