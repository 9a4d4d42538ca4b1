//! Tables of compiled programs in the sections that mark them for access at secret addresses.

use mpc::Recipient;
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Plain, Program, Secret, Words};
use testkit::{Random, run, usual_parties};

/// An address for arguments, where nothing else lies.
const DATA: u64 = 0x1000_0000;

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/tables.elf")).expect("the file is a program")
}

/// Returns the result of a call, or the words at the address that it returns.
fn called<W: Words>(
    words: W,
    function: &str,
    data: &[W::Word],
    arguments: &[W::Word],
) -> Vec<W::Word> {
    let program = program();
    let mut machine = Machine::new(words, &program, 1 << 20).expect("the program fits");
    machine
        .memory
        .map(DATA, vec![0; 8 * data.len()], true)
        .expect("the region is free");
    for (at, word) in (DATA..).step_by(8).zip(data) {
        machine
            .memory
            .store(&machine.words, at, 8, word)
            .expect("the address is mapped");
    }
    let function = program.function(function).expect("the function exists");
    let result = machine
        .call(function, arguments)
        .expect("the function returns");
    let counts = program.symbols.object("counts").expect("the symbol exists");
    if machine.words.public(&result) != Some(counts.start) {
        return vec![result];
    }
    let count = |at| machine.memory.load(&mut machine.words, at, 2);
    let counts = counts.step_by(2).map(count);
    counts
        .map(|count| count.expect("the count is mapped"))
        .collect()
}

/// Compares a call on a secret first argument, or on secret words in memory, with a plain one.
fn agree(function: &str, first: Option<u64>, data: &[u64], others: &[u64]) {
    let arguments: Vec<u64> = first.into_iter().chain(others.iter().copied()).collect();
    let expected = called(Plain, function, data, &arguments);
    for protocol in ["replicated", "additive_2_dealer"] {
        let results = run(protocol, usual_parties(protocol), |p| {
            let values: Vec<u64> = data.iter().copied().chain(first).collect();
            let own = (p.party() == 0).then_some(values.as_slice());
            let words = share(p, 0, own, values.len())?;
            let (data, first) = words.split_at(data.len());
            let others = others.iter().map(|other| Word::Public(*other));
            let arguments: Vec<Word> = first.iter().cloned().chain(others).collect();
            let left = called(Secret, function, data, &arguments);
            reveal(p, &left, Recipient::All)
        });
        for found in results.into_iter().flatten() {
            assert_eq!(found, expected, "{function} {first:?}");
        }
    }
}

#[test]
fn a_table_of_bytes() {
    for place in [0, 1, 100, 255, 256 + 7, u64::MAX] {
        agree("look_up", Some(place), &[], &[]);
        let expected = place
            .wrapping_mul(place)
            .wrapping_add(3 * (place & 255) + 1)
            & 255;
        assert_eq!(called(Plain, "look_up", &[], &[place]), [expected]);
    }
}

#[test]
fn a_binary_search_for_a_secret_key() {
    let mut sorted: Vec<u64> = Random::new(1)
        .words(64)
        .iter()
        .map(|word| word >> 1)
        .collect();
    sorted.sort_unstable();
    for key in [
        0,
        sorted[0],
        sorted[30],
        sorted[30] + 1,
        sorted[62],
        u64::MAX >> 1,
    ] {
        agree("search", Some(key), &sorted, &[DATA]);
        let found = sorted[..63].partition_point(|word| *word <= key) as u64;
        assert_eq!(called(Plain, "search", &sorted, &[key, DATA]), [found]);
    }
}

#[test]
fn counts_of_secret_values() {
    let words = Random::new(2).words(6);
    agree("count", None, &words, &[DATA, 6]);
    let counts = called(Plain, "count", &words, &[DATA, 6]);
    assert_eq!(counts.iter().sum::<u64>(), 6);
}

#[test]
fn an_object_is_found_by_its_name() {
    let symbols = program().symbols;
    let sorted = symbols.object("sorted").expect("the symbol exists");
    assert_eq!(sorted.end - sorted.start, 512);
    assert!(symbols.oblivious().contains(&sorted));
    assert_eq!(symbols.oblivious().len(), 3);
    let none = Err(Fault::NoObject("unsorted".to_owned()));
    assert_eq!(symbols.object("unsorted"), none);
}
