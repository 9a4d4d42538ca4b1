//! Tables at secret addresses: loads and stores have the same effect as on a plain machine, and no
//! effect beyond the table's end.

use crate::assembly::{Assembler, CODE, DATA};
use mpc::Recipient;
use riscv::machine::secret_address::PLACES;
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Plain, Program, Secret, Words};
use std::ops::Range;
use testkit::{Random, run, usual_parties};

const A0: u8 = 10;
const A1: u8 = 11;
const A2: u8 = 12;
const SP: u8 = 2;

/// The number of data words; the table is those in the middle.
const COUNT: usize = 12;
const TABLE: Range<u64> = DATA + 24..DATA + 72;

fn machine<W: Words>(words: W, program: &Program, data: &[W::Word]) -> Machine<W> {
    let mut machine = Machine::new(words, program, 1 << 20).expect("the program fits");
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
    machine
}

/// Calls a program with a word, the table's address and a number. Returns the result and the data.
fn called<W: Words>(
    machine: &mut Machine<W>,
    word: W::Word,
    count: usize,
) -> Result<Vec<W::Word>, Fault> {
    let [table, number] = [TABLE.start, 0x1122_3344_5566_7788];
    let given = [
        word,
        machine.words.constant(table),
        machine.words.constant(number),
    ];
    let mut left = vec![machine.call(CODE, &given)?];
    for at in (DATA..).step_by(8).take(count) {
        let word = machine.memory.load(&mut machine.words, at, 8);
        left.push(word.expect("the address is mapped"));
    }
    Ok(left)
}

fn data() -> Vec<u64> {
    Random::new(5).words(COUNT)
}

fn plainly(program: &Program, word: u64) -> Vec<u64> {
    let mut machine = machine(Plain, program, &data());
    called(&mut machine, word, COUNT).expect("the function returns")
}

/// Runs a program on a secret word and secret data, of which every third word is public.
fn secretly(protocol: &str, program: &Program, word: u64) -> Vec<Result<Vec<u64>, Fault>> {
    with_tables(protocol, program, word, &[TABLE])
}

/// Runs a program with these tables.
fn with_tables(
    protocol: &str,
    program: &Program,
    word: u64,
    tables: &[Range<u64>],
) -> Vec<Result<Vec<u64>, Fault>> {
    run(protocol, usual_parties(protocol), |p| {
        let mut values = data();
        values.push(word);
        let own = (p.party() == 0).then_some(values.as_slice());
        let mut words = share(p, 0, own, values.len())?;
        let word = words.pop().expect("the list is not empty");
        for at in (0..COUNT).step_by(3) {
            words[at] = Word::Public(values[at]);
        }
        let mut machine = machine(Secret, program, &words);
        for table in tables {
            machine.mark_oblivious(table.clone());
        }
        Ok(match called(&mut machine, word, COUNT) {
            Ok(left) => Ok(reveal(p, &left, Recipient::All)?.expect("opened to all")),
            Err(fault) => Err(fault),
        })
    })
}

/// Builds a program that computes an address from the low bits of the word, shifted left by
/// `places`, and accesses memory there.
fn at_index(bits: u64, places: i32, access: impl Fn(&mut Assembler)) -> Program {
    let mut code = Assembler::default();
    if bits < 64 {
        code.add("andi", A0, A0, 0, (1 << bits) - 1);
    }
    code.add("slli", A0, A0, 0, places);
    code.add("add", A1, A0, A1, 0);
    code.add("addi", A0, 0, 0, 0);
    access(&mut code);
    code.ret();
    code.program()
}

fn agree(program: &Program, words: &[u64]) {
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        for &word in words {
            let expected = plainly(program, word);
            for found in secretly(protocol, program, word) {
                assert_eq!(found.as_ref(), Ok(&expected), "{protocol} {word}");
            }
        }
    }
}

#[test]
fn loads_of_all_sizes() {
    agree(
        &at_index(64, 3, |code| code.add("ld", A0, A1, 0, 0)),
        &[0, 1, 5],
    );
    agree(
        &at_index(2, 3, |code| code.add("lh", A0, A1, 0, 14)),
        &[0, 3],
    );
    let before = at_index(64, 3, |code| code.add("ld", A0, A1, 0, -8));
    agree(&before, &[1, 6]);
    // At every byte.
    agree(
        &at_index(5, 0, |code| code.add("lwu", A0, A1, 0, 3)),
        &[0, 17, 31],
    );
    agree(
        &at_index(5, 0, |code| code.add("lb", A0, A1, 0, 0)),
        &[0, 29],
    );
    // Backward from a place inside the table.
    let mut code = Assembler::default();
    code.add("sub", A0, 0, A0, 0);
    code.add("add", A1, A1, A0, 0);
    code.add("lbu", A0, A1, 0, 47);
    code.ret();
    agree(&code.program(), &[0, 13, 47]);
}

#[test]
fn stores_of_all_sizes() {
    agree(
        &at_index(64, 3, |code| code.add("sd", 0, A1, A2, 0)),
        &[0, 5],
    );
    agree(
        &at_index(3, 1, |code| code.add("sh", 0, A1, A2, 8)),
        &[0, 7],
    );
    agree(
        &at_index(5, 0, |code| code.add("sb", 0, A1, A2, 1)),
        &[0, 31],
    );
    // At every second byte, so that places overlap; the stored value is secret.
    let program = at_index(4, 1, |code| {
        code.add("ld", A2, A1, 0, 0);
        code.add("sw", 0, A1, A2, 8);
        code.add("sd", 0, A1, A2, 2);
        code.add("lw", A0, A1, 0, 0);
    });
    agree(&program, &[0, 1, 15]);
}

/// Backward from the end of one table, where another begins: the place determines the table.
#[test]
fn backward_from_behind_the_end_where_another_table_begins() {
    let end = TABLE.start;
    let tables = [DATA..end, TABLE];
    let mut of_bytes = Assembler::default();
    of_bytes.add("sub", A1, A1, A0, 0);
    of_bytes.add("lbu", A0, A1, 0, 0);
    of_bytes.ret();
    let mut of_words = Assembler::default();
    of_words.add("slli", A0, A0, 0, 3);
    of_words.add("sub", A0, 0, A0, 0);
    of_words.add("add", A1, A1, A0, 0);
    of_words.add("sd", 0, A1, A2, 0);
    of_words.add("ld", A0, A1, 0, 0);
    of_words.ret();
    for (program, places) in [(of_bytes, [1, 9, 24]), (of_words, [1, 2, 3])] {
        let program = program.program();
        for protocol in ["plain", "replicated", "additive_2_dealer"] {
            for place in places {
                let expected = plainly(&program, place);
                for found in with_tables(protocol, &program, place, &tables) {
                    assert_eq!(found.as_ref(), Ok(&expected), "{protocol} {place}");
                }
            }
        }
        // The table that begins there is also reachable, and beyond both there is nothing.
        let forward = plainly(&program, 0_u64.wrapping_sub(2));
        for found in with_tables("plain", &program, 0_u64.wrapping_sub(2), &tables) {
            assert_eq!(found.as_ref(), Ok(&forward));
        }
        for found in with_tables("plain", &program, 25, &tables) {
            assert_eq!(found.expect("the function returns")[0], 0);
        }
    }
}

/// Pointers that branches on secrets move, one of them in memory.
#[test]
fn pointers_that_a_branch_chooses_stay_in_their_table() {
    let mut code = Assembler::default();
    code.add("addi", SP, SP, 0, -16);
    code.add("sd", 0, SP, A1, 8);
    for bit in [1, 2, 4] {
        let stay = code.label();
        code.add("andi", 5, A0, 0, bit);
        code.branch("beq", 5, 0, stay);
        code.add("ld", 5, SP, 0, 8);
        code.add("addi", 5, 5, 0, 8);
        code.add("sd", 0, SP, 5, 8);
        code.add("addi", A1, A1, 0, 16);
        code.place(stay);
    }
    code.add("ld", 5, SP, 0, 8);
    code.add("ld", 5, 5, 0, 8);
    code.add("sb", 0, A1, 5, -8);
    code.add("addi", SP, SP, 0, 16);
    code.add("sub", A0, A1, A0, 0);
    code.ret();
    agree(&code.program(), &[1, 3, 6]);
}

#[test]
fn beyond_the_end_zero_is_read_and_nothing_is_written() {
    let program = at_index(64, 3, |code| {
        code.add("sd", 0, A1, A2, 0);
        code.add("ld", A0, A1, 0, 0);
    });
    let mut expected = vec![0];
    expected.extend(data());
    let beyond = [
        6,
        7,
        8,
        63,
        64,
        1 << 40,
        1 << 60,
        u64::MAX >> 3,
        (1 << 61) - 3,
    ];
    for index in beyond {
        for found in secretly("plain", &program, index) {
            assert_eq!(found.as_ref(), Ok(&expected), "{index}");
        }
    }
    // The last place with two bytes; at the next one, neither byte is written.
    let program = at_index(6, 0, |code| {
        code.add("sh", 0, A1, A2, 0);
        code.add("lhu", A0, A1, 0, 0);
    });
    for (index, read) in [(46, 0x7788), (47, 0), (48, 0), (63, 0)] {
        for found in secretly("plain", &program, index) {
            let found = found.expect("the function returns");
            assert_eq!(found[0], read, "{index}");
            assert_eq!(found[1..] == data()[..], read == 0, "{index}");
        }
    }
}

#[test]
fn what_is_not_marked_is_refused() {
    let fault = |offset: i32| {
        let mut code = Assembler::default();
        code.add("addi", A1, A1, 0, offset);
        code.add("add", A1, A0, A1, 0);
        code.add("lbu", A0, A1, 0, 0);
        code.ret();
        secretly("plain", &code.program(), 1).swap_remove(0)
    };
    assert!(fault(47).is_ok());
    assert_eq!(fault(48), Err(Fault::SecretAddress));
    assert_eq!(fault(-1), Err(Fault::SecretAddress));
    // The upper part of an address identifies no object without the lower part.
    let upper = |offset: i32| {
        let mut code = Assembler::default();
        code.add("lui", A1, 0, 0, DATA as i32);
        code.add("add", A1, A0, A1, 0);
        code.add("lbu", A0, A1, 0, offset);
        code.ret();
        secretly("plain", &code.program(), 1).swap_remove(0)
    };
    assert!(upper(24).is_ok());
    assert_eq!(upper(16), Err(Fault::SecretAddress));
    // An address without a public part.
    let mut code = Assembler::default();
    code.add("sd", 0, A0, A0, 0);
    code.ret();
    let found = secretly("plain", &code.program(), TABLE.start);
    assert_eq!(found[0], Err(Fault::SecretAddress));
}

#[test]
fn tables_are_not_too_large() {
    let program = at_index(64, 0, |code| code.add("lbu", A0, A1, 0, 0));
    run("plain", 2, |p| {
        let own = (p.party() == 0).then_some([3].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        for (more, fits) in [(0, true), (1, false)] {
            let zeros = vec![Word::Public(0); (PLACES / 8 + 8) as usize];
            let mut machine = machine(Secret, &program, &zeros);
            machine.mark_oblivious(TABLE.start..TABLE.start + PLACES + more);
            let left = called(&mut machine, word.clone(), 0);
            let fault = (!fits).then_some(Fault::Places(PLACES + 1, PLACES));
            assert_eq!(left.err(), fault);
        }
        Ok(())
    });
}

/// A byte index into a public table: its bits are available, and each product of halves is a round.
#[test]
fn a_byte_takes_three_rounds() {
    let program = at_index(8, 0, |code| code.add("lbu", A0, A1, 0, 0));
    let rounds = run("replicated", 3, |p| {
        let own = (p.party() == 0).then_some([0x83].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        let table: Vec<Word> = Random::new(6)
            .words(35)
            .into_iter()
            .map(Word::Public)
            .collect();
        let mut machine = machine(Secret, &program, &table);
        machine.mark_oblivious(TABLE.start..TABLE.start + 256);
        let left = called(&mut machine, word, 0).expect("the function returns");
        let before = p.channel().meter().totals();
        let found = reveal(p, &left, Recipient::All)?.expect("opened to all");
        let after = p.channel().meter().totals();
        let byte = machine
            .memory
            .read(TABLE.start + 0x83, 1)
            .expect("the byte is public");
        assert_eq!(found, [u64::from(byte[0])]);
        Ok(after.rounds - before.rounds)
    });
    assert_eq!(rounds[0], 4);
}
