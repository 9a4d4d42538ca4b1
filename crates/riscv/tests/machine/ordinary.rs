//! What compilers make of ordinary programs: selects of addresses and of float constants, loops
//! with a secret exit, and numbers that wrap to 32 bits.

use crate::assembly::{Assembler, CODE, DATA};
use crate::cases::{Case, OPTIONS};
use mpc::Recipient;
use riscv::host::arrays::{Array, Content};
use riscv::host::runs::{Output, Run, run as run_program};
use riscv::machine::few_addresses::Few;
use riscv::secret::Word;
use riscv::secret::evaluation::{Fate, Learned, cost, reveal, settle_checked};
use riscv::secret::inputs::{share, share_integers};
use riscv::secret::watch::{Claim, Watch};
use riscv::{Fault, Machine, Plain, Program, Secret, Signs, Words};
use std::sync::{Arc, Mutex};
use testkit::{Random, run, usual_parties};

const A0: u8 = 10;
const A1: u8 = 11;
const A2: u8 = 12;
const T0: u8 = 5;
const T1: u8 = 6;
const T2: u8 = 7;

/// The number of data words.
const COUNT: usize = 8;

const PROTOCOLS: [&str; 3] = ["plain", "replicated", "additive_2_dealer"];

fn data() -> Vec<u64> {
    Random::new(9).words(COUNT)
}

/// Calls a program with a word and the address of the data. Returns the result and the data.
fn called<W: Words>(
    words: W,
    program: &Program,
    given: (W::Word, Vec<W::Word>),
) -> Result<(Vec<W::Word>, Machine<W>), Fault> {
    let mut machine = Machine::new(words, program, 1 << 20).expect("the program fits");
    machine
        .memory
        .map(DATA, vec![0; 8 * COUNT], true)
        .expect("the region is free");
    for (at, word) in (DATA..).step_by(8).zip(&given.1) {
        let stored = machine.memory.store(&machine.words, at, 8, word);
        stored.expect("the address is mapped");
    }
    let address = machine.words.constant(DATA);
    let mut left = vec![machine.call(CODE, &[given.0, address])?];
    for at in (DATA..).step_by(8).take(COUNT) {
        let word = machine.memory.load(&mut machine.words, at, 8);
        left.push(word.expect("the address is mapped"));
    }
    Ok((left, machine))
}

fn plainly(program: &Program, word: u64) -> Vec<u64> {
    let (left, _) = called(Plain, program, (word, data())).expect("the function returns");
    left
}

/// What a party sees of a run: the sender, the step and the size of each message.
type Seen = Vec<(usize, String, usize)>;

/// What a party learns and sees of a run, and the accesses at few addresses.
type Found = (Vec<u64>, Seen, Vec<Few>);

/// Runs a program on a secret word and secret data, of which every third word is public. Returns
/// what each party learns and sees.
fn secretly(protocol: &str, program: &Program, word: u64) -> Vec<Result<Found, Fault>> {
    run(protocol, usual_parties(protocol), |p| {
        let mut values = data();
        values.push(word);
        let own = (p.party() == 0).then_some(values.as_slice());
        let mut words = share(p, 0, own, values.len())?;
        let word = words.pop().expect("the list is not empty");
        for at in (0..COUNT).step_by(3) {
            words[at] = Word::Public(values[at]);
        }
        let seen = Arc::new(Mutex::new(Seen::new()));
        let noted = seen.clone();
        p.channel().set_tap(Box::new(move |sender, step, words| {
            let mut seen = noted.lock().expect("no party panicked");
            seen.push((sender, step.to_owned(), words.len()));
        }));
        let (left, machine) = match called(Secret, program, (word, words)) {
            Ok(found) => found,
            Err(fault) => return Ok(Err(fault)),
        };
        let opened = reveal(p, &left, Recipient::All)?.expect("opened to all");
        p.channel().set_tap(Box::new(|_, _, _| {}));
        let seen = std::mem::take(&mut *seen.lock().expect("no party panicked"));
        Ok(Ok((
            opened,
            seen,
            machine.few().values().copied().collect(),
        )))
    })
}

/// Checks that all secrets give what a plain machine gives, and that all are seen alike.
fn agree(program: &Program, words: &[u64]) {
    for protocol in PROTOCOLS {
        let mut first: Option<Vec<(Seen, Vec<Few>)>> = None;
        for &word in words {
            let expected = plainly(program, word);
            let mut all = Vec::new();
            for found in secretly(protocol, program, word) {
                let (values, seen, few) = found.expect("the program is accepted");
                assert_eq!(values, expected, "{protocol} {word}");
                all.push((seen, few));
            }
            let first = first.get_or_insert_with(|| all.clone());
            assert_eq!(&all, first, "{protocol} {word} is seen");
        }
    }
}

/// `p = a0 < 5 ? &data[1] : &data[6]`, by two halves that are joined, and then an access.
fn selected(access: impl Fn(&mut Assembler)) -> Program {
    let mut code = Assembler::default();
    code.add("sltiu", T0, A0, 0, 5);
    code.add("addi", T1, A1, 0, 8);
    code.add("addi", T2, A1, 0, 48);
    code.add("czero.eqz", T1, T1, T0, 0);
    code.add("czero.nez", T2, T2, T0, 0);
    code.add("or", T1, T1, T2, 0);
    access(&mut code);
    code.ret();
    code.program()
}

const EDGES: [u64; 5] = [0, 4, 5, 6, u64::MAX];

#[test]
fn a_selected_address_is_read_at_both_values() {
    agree(&selected(|code| code.add("ld", A0, T1, 0, 0)), &EDGES);
    agree(&selected(|code| code.add("lh", A0, T1, 0, -3)), &EDGES);
    agree(&selected(|code| code.add("sd", 0, T1, A0, 8)), &EDGES);
    // The two words overlap.
    let mut code = Assembler::default();
    code.add("sltiu", T0, A0, 0, 5);
    code.add("sh2add", T1, T0, A1, 0);
    code.add("sd", 0, T1, A0, 4);
    code.add("ld", A0, T1, 0, 4);
    code.ret();
    agree(&code.program(), &EDGES);
}

/// Two ways lead to one of three addresses.
#[test]
fn a_number_of_bits_is_an_address() {
    let mut code = Assembler::default();
    code.add("andi", T0, A0, 0, 1);
    code.add("srli", T1, A0, 0, 1);
    code.add("andi", T1, T1, 0, 1);
    code.add("add", T0, T0, T1, 0);
    code.add("sh3add", T0, T0, A1, 0);
    code.add("ld", A2, T0, 0, 8);
    code.add("sd", 0, T0, A0, 8);
    code.add("addi", A0, A2, 0, 0);
    code.ret();
    agree(&code.program(), &[0, 1, 2, 3, 4, u64::MAX]);
}

/// Halves by one condition go together: no third address is read.
#[test]
fn the_addresses_are_those_of_the_select() {
    let program = selected(|code| code.add("ld", A0, T1, 0, 0));
    for found in secretly("plain", &program, 3) {
        let (_, _, few) = found.expect("the program is accepted");
        let expected = Few {
            accesses: 1,
            addresses: 2,
        };
        assert_eq!(few, [expected]);
    }
}

#[test]
fn a_table_is_read_at_an_index_of_few_bits() {
    let mut code = Assembler::default();
    code.add("andi", T0, A0, 0, 7);
    code.add("sh3add", T0, T0, A1, 0);
    code.add("ld", A2, T0, 0, 0);
    code.add("sd", 0, T0, A0, 0);
    code.add("addi", A0, A2, 0, 0);
    code.ret();
    agree(&code.program(), &[0, 1, 6, 7, 8, u64::MAX]);
    // Three bits with a sign.
    let mut code = Assembler::default();
    code.add("slli", T0, A0, 0, 61);
    code.add("srai", T0, T0, 0, 61);
    code.add("sh3add", T0, T0, A1, 0);
    code.add("ld", A0, T0, 0, 32);
    code.ret();
    agree(&code.program(), &[0, 1, 3, 4, 7, 8, u64::MAX]);
    // Nine bits are too many.
    let mut code = Assembler::default();
    code.add("andi", T0, A0, 0, 511);
    code.add("add", T0, T0, A1, 0);
    code.add("lb", A0, T0, 0, 0);
    code.ret();
    let faults = secretly("plain", &code.program(), 0);
    assert!(matches!(faults[0], Err(Fault::SecretAddress)));
}

/// Where an address is not mapped, nothing is read or written; if none is, the program stops.
#[test]
fn a_null_pointer_among_the_addresses_is_skipped() {
    let among = |value: i32| {
        let mut code = Assembler::default();
        let end = code.label();
        code.add("sltiu", T0, A0, 0, 5);
        code.add("addi", T1, A1, 0, value);
        code.add("czero.eqz", T1, T1, T0, 0);
        code.branch("beq", T1, 0, end);
        code.add("ld", A0, T1, 0, 0);
        code.add("sd", 0, T1, T0, 0);
        code.place(end);
        code.ret();
        code.program()
    };
    agree(&among(16), &EDGES);
    let faults = secretly("plain", &among(1 << 10), 3);
    assert!(matches!(&faults[0], Err(Fault::OnSide { cause, .. })
        if matches!(**cause, Fault::Unmapped { .. })));
}

/// Looks for a word among the data: `for (i = 0; i < 8; i++) if (data[i] > a0) return i;`.
fn search(changes: bool) -> Program {
    let mut code = Assembler::default();
    let [again, found, end] = [(); 3].map(|()| code.label());
    code.add("addi", T0, 0, 0, 0);
    code.add("addi", T2, 0, 0, COUNT as i32);
    code.place(again);
    code.add("sh3add", T1, T0, A1, 0);
    code.add("ld", A2, T1, 0, 0);
    code.branch("bltu", A0, A2, found);
    if changes {
        code.add("sd", 0, T1, T0, 0);
    }
    code.add("addi", T0, T0, 0, 1);
    code.branch("bne", T0, T2, again);
    code.add("addi", A0, 0, 0, -1);
    code.jump(0, end);
    code.place(found);
    code.add("addi", A0, T0, 0, 0);
    code.place(end);
    code.ret();
    code.program()
}

#[test]
fn a_loop_ends_early_by_a_secret() {
    let mut words = data();
    words.extend([0, u64::MAX]);
    agree(&search(false), &words);
    agree(&search(true), &words);
}

/// States the maximum number of trips of a loop, as `TACIT_BOUND` does.
fn state(code: &mut Assembler, most: i32) {
    code.add("addi", A0, 0, 0, most);
    code.add("lui", 17, 0, 0, 0x8000);
    code.add("addi", 17, 17, 0, 0x7ac5 - 0x8000);
    code.add("ecall", 0, 0, 0, 0);
}

/// `for (; a0 > 2; a0 -= 3) n++;`, at most five trips by the program's own statement, which stands
/// at the beginning of the body or at its end. The branch leads out of the loop, or into it.
fn stated(most: i32, at_end: bool, leads_in: bool) -> Program {
    let mut code = Assembler::default();
    let [again, body, end] = [(); 3].map(|()| code.label());
    code.add("addi", T0, 0, 0, 0);
    code.add("addi", T1, A0, 0, 0);
    code.add("addi", T2, 0, 0, 3);
    code.place(again);
    if leads_in {
        code.branch("bgeu", T1, T2, body);
        code.jump(0, end);
        code.place(body);
    } else {
        code.branch("bltu", T1, T2, end);
    }
    if !at_end {
        state(&mut code, most);
    }
    code.add("addi", T1, T1, 0, -3);
    code.add("addi", T0, T0, 0, 1);
    code.add("sh3add", A2, T0, A1, 0);
    code.add("sd", 0, A2, T1, 0);
    if at_end {
        state(&mut code, most);
    }
    code.jump(0, again);
    code.place(end);
    code.add("sh3add", A0, T0, T1, 0);
    code.ret();
    code.program()
}

#[test]
fn a_loop_ends_by_a_secret_within_its_stated_bound() {
    for (at_end, leads_in) in [(false, false), (true, false), (false, true), (true, true)] {
        let program = stated(5, at_end, leads_in);
        for protocol in PROTOCOLS {
            let mut first = None;
            // 5 trips are the most, so the numbers up to 17 are right.
            for number in [0, 2, 3, 5, 6, 14, 15, 17] {
                let found = secretly(protocol, &program, number);
                let (values, seen, _) = found[0].as_ref().expect("the program is accepted");
                assert_eq!(
                    values[0],
                    number / 3 * 8 + number % 3,
                    "{protocol} {number}"
                );
                let mut expected = data();
                for trip in 1..=number / 3 {
                    expected[trip as usize] = number - 3 * trip;
                }
                assert_eq!(values[1..], expected, "{protocol} {number}");
                let first = first.get_or_insert_with(|| seen.clone());
                assert_eq!(seen, first, "{protocol} {number}");
            }
        }
    }
}

/// A function with such a loop, and two returns, called on both sides of a branch: twice on the
/// first, and once, deeper, on the second. It returns early where 3 is left.
#[test]
fn trips_are_counted_on_each_side_anew() {
    const A3: u8 = 13;
    const A4: u8 = 14;
    let mut code = Assembler::default();
    let [twice, end, function, again, done] = [(); 5].map(|()| code.label());
    code.add("addi", T1, A0, 0, 0);
    code.add("addi", A2, A0, 0, 0);
    code.add("addi", T2, 0, 0, 3);
    code.add("addi", A4, 0, 0, 0);
    code.add("andi", A3, A0, 0, 1);
    code.add("ld", A1, A1, 0, 8);
    code.branch("bne", A1, 0, twice);
    code.branch("beq", A3, 0, end);
    code.jump(T0, function);
    code.jump(0, end);
    code.place(twice);
    code.jump(T0, function);
    code.add("addi", T1, A2, 0, 0);
    code.jump(T0, function);
    code.place(end);
    code.add("addi", A0, A4, 0, 0);
    code.ret();
    code.place(function);
    code.place(again);
    // Before the check, so there is one more than there are trips.
    state(&mut code, 6);
    code.branch("bltu", T1, T2, done);
    code.add("addi", T1, T1, 0, -3);
    code.add("addi", A4, A4, 0, 1);
    code.branch("bne", T1, T2, again);
    code.add("addi", A4, A4, 0, 100);
    code.add("jalr", 0, T0, 0, 0);
    code.place(done);
    code.add("jalr", 0, T0, 0, 0);
    let program = code.program();
    for is_first in [true, false] {
        for number in [0, 3, 6, 9, 15, 16, 17] {
            let found = run("plain", usual_parties("plain"), |p| {
                let given = [number, u64::from(is_first)];
                let own = (p.party() == 0).then_some(given.as_slice());
                let mut words = share(p, 0, own, 2)?;
                let first = words.pop().expect("two words");
                let data = vec![first; COUNT];
                let (left, _) = called(Secret, &program, (words.remove(0), data))
                    .expect("the function returns");
                Ok(reveal(p, &left[..1], Recipient::All)?.expect("opened to all")[0])
            });
            let calls = if is_first { 2 } else { number % 2 };
            let expected = match number {
                6 | 9 | 15 => calls * (number / 3 + 99),
                _ => calls * (number / 3),
            };
            assert!(
                found.iter().all(|trips| *trips == expected),
                "{is_first} {number} {found:?}"
            );
        }
    }
}

/// `if (a1 == 0) for (; a0 > 2; a0 -= 3) n++;`, at most five trips by the program's own statement:
/// whether a run in checked mode is refused at the statement, for each party.
fn refused(protocol: &str, program: &Program, words: [u64; 2]) -> Vec<Vec<String>> {
    run(protocol, usual_parties(protocol), |p| {
        let _watch = Watch::begin(true);
        let own = (p.party() == 0).then_some(words.as_slice());
        let given = share(p, 0, own, words.len())?;
        let mut machine = Machine::new(Secret, program, 1 << 20).expect("the program fits");
        let memory = &mut machine.memory;
        memory
            .map(DATA, vec![0; 8 * COUNT], true)
            .expect("the region is free");
        for at in 0..COUNT as u64 {
            let stored = memory.store(&Secret, DATA + 8 * at, 8, &Word::Public(at));
            stored.expect("the address is mapped");
        }
        let arguments = [given[0].clone(), given[1].clone(), Word::Public(DATA)];
        let left = machine
            .call(CODE, &arguments)
            .expect("the function returns");
        let name = |claim: Claim| format!("{claim:#x}");
        // Party 0 learns the number of trips, and party 1 something else.
        let to = |party| Fate::Opened(Recipient::One(party));
        let (trips, other) = ([left], [given[1].clone()]);
        let settled = settle_checked(p, &[(&trips, to(0)), (&other, to(1))], true, Some(&name))?;
        let values: Vec<_> = settled.learned.iter().map(Learned::values).collect();
        match (p.party(), settled.failed.is_empty()) {
            (0, true) => {
                let expected = if words[1] == 0 { words[0] / 3 } else { 0 };
                assert_eq!(
                    values[0],
                    Some([expected].as_slice()),
                    "{protocol} {words:?}"
                );
            }
            (0, false) => assert_eq!(values[0], Some([0].as_slice())),
            (1, _) => assert_eq!(values[1], Some([words[1]].as_slice())),
            _ => {}
        }
        Ok(settled.failed)
    })
}

/// Such a program. It returns the number of trips, or reads it from a list, at an address that has
/// a value for each number of trips.
fn promising(reads: bool) -> Program {
    let mut code = Assembler::default();
    let [again, end] = [(); 2].map(|()| code.label());
    code.add("addi", T0, 0, 0, 0);
    code.add("addi", T1, A0, 0, 0);
    code.add("addi", T2, 0, 0, 3);
    code.branch("bne", A1, 0, end);
    code.place(again);
    code.branch("bltu", T1, T2, end);
    state(&mut code, 5);
    code.add("addi", T1, T1, 0, -3);
    code.add("addi", T0, T0, 0, 1);
    code.add("addi", A2, A2, 0, 8);
    code.jump(0, again);
    code.place(end);
    code.add("addi", A0, T0, 0, 0);
    if reads {
        code.add("ld", A0, A2, 0, 0);
    }
    code.ret();
    code.program()
}

#[test]
fn more_trips_than_stated_are_found_in_checked_mode() {
    // 5 trips are the most. Where the loop is not entered, nothing is promised.
    let is_kept = |number, other| number < 18 || other != 0;
    for (reads, protocol) in [false, true]
        .into_iter()
        .flat_map(|reads| PROTOCOLS.map(|p| (reads, p)))
    {
        let program = promising(reads);
        for words in [
            [0, 0],
            [17, 0],
            [18, 0],
            [18, 1],
            [u64::MAX, 0],
            [u64::MAX, 9],
        ] {
            for (party, failed) in refused(protocol, &program, words).iter().enumerate() {
                let is_told = party == 0 && !is_kept(words[0], words[1]);
                assert_eq!(
                    failed.len(),
                    usize::from(is_told),
                    "{protocol} {words:?} {reads}"
                );
                let place = format!("{:#x}", CODE + 4 * 8);
                assert!(failed.iter().all(|at| *at == place), "{failed:?}");
            }
        }
    }
}

/// A loop whose bound is stated within another: the sum of `a & 3` for `a = a0; a > 2; a -= 3`,
/// counted by ones.
#[test]
fn a_bounded_loop_is_counted_anew_within_another() {
    const A3: u8 = 13;
    const A4: u8 = 14;
    const A5: u8 = 15;
    let mut code = Assembler::default();
    let [again, inner, next, end] = [(); 4].map(|()| code.label());
    code.add("addi", T1, A0, 0, 0);
    code.add("addi", T2, 0, 0, 3);
    code.add("addi", A4, 0, 0, 0);
    code.place(again);
    code.branch("bltu", T1, T2, end);
    state(&mut code, 5);
    code.add("andi", A5, T1, 0, 3);
    code.add("addi", A3, 0, 0, 0);
    code.place(inner);
    state(&mut code, 4);
    code.branch("bgeu", A3, A5, next);
    code.add("addi", A3, A3, 0, 1);
    code.add("addi", A4, A4, 0, 1);
    code.jump(0, inner);
    code.place(next);
    code.add("addi", T1, T1, 0, -3);
    code.jump(0, again);
    code.place(end);
    code.add("addi", A0, A4, 0, 0);
    code.ret();
    let program = code.program();
    for number in 0..18_u64 {
        let found = secretly("plain", &program, number);
        let (values, ..) = found[0].as_ref().expect("the program is accepted");
        let expected: u64 = (0..number / 3).map(|trip| (number - 3 * trip) & 3).sum();
        assert_eq!(values[0], expected, "{number}");
    }
}

/// `for (;;) { if (a) x++; else y++; }`, whose sides each have a copy of the loop's end: they meet
/// only after the loop, and double on each trip.
#[test]
fn sides_that_part_on_each_trip_are_refused() {
    let mut code = Assembler::default();
    let [again, other, end] = [(); 3].map(|()| code.label());
    code.add("addi", T0, 0, 0, 0);
    code.add("addi", T2, 0, 0, 64);
    code.place(again);
    code.add("addi", T0, T0, 0, 1);
    code.add("srl", T1, A0, T0, 0);
    code.add("andi", T1, T1, 0, 1);
    code.branch("beq", T1, 0, other);
    code.add("addi", A1, A1, 0, 1);
    code.branch("bne", T0, T2, again);
    code.jump(0, end);
    code.place(other);
    code.add("addi", A1, A1, 0, 2);
    code.branch("bne", T0, T2, again);
    code.place(end);
    code.ret();
    let faults = secretly("plain", &code.program(), 3);
    assert!(
        matches!(faults[0], Err(Fault::Parting(_))),
        "{:?}",
        faults[0]
    );
}

/// `h = h * 31 + x` of 32 bits, as `slli`, `subw` and `addw`, and of 8 bits.
#[test]
fn wrapping_numbers_are_sums() {
    fn chain<W: Words>(words: &mut W, x: &[W::Word]) -> [W::Word; 2] {
        let mut h = [words.constant(7), words.constant(7)];
        let (five, mask) = (words.constant(5), words.constant(255));
        for x in x {
            let up = words.shift_left(&h[0], &five);
            let times = words.subtract(&up, &h[0]);
            let times = words.extend(&times, 32, Signs::Signed);
            let sum = words.add(&times, x);
            h[0] = words.extend(&sum, 32, Signs::Signed);
            let up = words.shift_left(&h[1], &five);
            let times = words.subtract(&up, &h[1]);
            let times = words.and(&times, &mask);
            let sum = words.add(&times, x);
            h[1] = words.and(&sum, &mask);
        }
        h
    }
    let values: Vec<u64> = Random::new(4).words(1000).iter().map(|x| x >> 32).collect();
    let plain: Vec<u64> = values.iter().map(|x| *x as i32 as u64).collect();
    let expected = chain(&mut Plain, &plain);
    for protocol in ["replicated", "additive_2_dealer"] {
        let found = run(protocol, usual_parties(protocol), |p| {
            let own = (p.party() == 0).then_some(values.as_slice());
            let x = share_integers(p, 0, own, values.len(), 4)?;
            let h = chain(&mut Secret, &x);
            let rounds = cost(&*p, &h, Recipient::All).rounds;
            Ok((reveal(p, &h, Recipient::All)?, rounds))
        });
        for (opened, rounds) in found {
            assert_eq!(opened.expect("opened to all"), expected, "{protocol}");
            assert!(rounds <= 60, "{protocol}: {rounds} rounds");
        }
    }
}

/// Chains of operations that move and drop bits, at widths that meet, against plain integers.
#[test]
fn chains_that_drop_bits_are_right() {
    fn chains<W: Words>(words: &mut W, given: &[W::Word], count: usize) -> Vec<W::Word> {
        const WIDTHS: [u64; 14] = [1, 2, 7, 8, 9, 15, 16, 17, 26, 27, 31, 32, 33, 63];
        let mut random = Random::new(31);
        let mut chains = Vec::new();
        for _ in 0..count {
            let mut all = given.to_vec();
            for _ in 0..7 {
                let [kind, x, y, width] = random.words(4)[..] else {
                    unreachable!()
                };
                let (x, y) = (&all[x as usize % all.len()], &all[y as usize % all.len()]);
                let width = WIDTHS[width as usize % WIDTHS.len()];
                let by = words.constant(width);
                let mask = words.constant((1 << width) - 1);
                let found = match kind % 9 {
                    0 => words.extend(x, width as u32, Signs::Signed),
                    1 => words.extend(x, width as u32, Signs::Unsigned),
                    2 => words.shift_left(x, &by),
                    3 => words.shift_right(x, &by, Signs::Signed),
                    4 => words.shift_right(x, &by, Signs::Unsigned),
                    5 => words.and(x, &mask),
                    6 => words.add(x, y),
                    7 => words.subtract(x, y),
                    _ => words.multiply(x, y),
                };
                all.push(found);
            }
            chains.extend(all.pop());
        }
        // An extension, a shift and a sum that wraps to as many bits as are left, or one fewer.
        let sum = words.add(&given[1], &given[3]);
        for bits in [8, 16, 32] {
            for places in 1..bits {
                let by = words.constant(places.into());
                for kept in [bits - places - 1, bits - places, bits - places + 1] {
                    let part = words.extend(&sum, kept.max(1), Signs::Signed);
                    let up = words.shift_left(&part, &by);
                    let wrapped = words.add(&up, &given[1]);
                    chains.push(words.extend(&wrapped, bits, Signs::Signed));
                }
            }
        }
        chains
    }
    let values = [3, 0x8000_0001, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63];
    let expected = chains(&mut Plain, &values, 3000);
    let found = run("plain", usual_parties("plain"), |p| {
        let own = (p.party() == 0).then_some(values.as_slice());
        let given = share(p, 0, own, values.len())?;
        let left = chains(&mut Secret, &given, 3000);
        Ok(reveal(p, &left, Recipient::All)?.expect("opened to all"))
    });
    for (at, (found, expected)) in found[0].iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "chain {at}");
    }
}

/// A compiled program: an input of 16 words, and what it writes by other arithmetic than its own.
fn ordinary(x: [u64; 16]) -> (Case, Vec<u64>) {
    let (left, right) = (u128::from(x[0]) << 64 | u128::from(x[1]), u128::from(x[2]));
    let bids = x[4..12].chunks(2);
    let best = bids.reduce(|best, bid| if bid[1] > best[1] { bid } else { best });
    let best = best.expect("there are bids");
    let place = x[12..].iter().position(|number| *number == x[3]);
    let bytes = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let order = bytes(&x[4..6]).cmp(&bytes(&x[12..14])) as i64;
    let mut sorted = x[8..].to_vec();
    sorted.sort_unstable();
    let mut expected = vec![
        (left / right) as u64,
        (left % right) as u64,
        (-((x[1] >> 1) as i128) / (x[2] >> 1) as i128) as u64,
        best[0],
        best[1],
        place.map_or(u64::MAX, |place| place as u64),
        order as u64,
        if x[3] > 50 { 768 } else { 1536 },
    ];
    expected.append(&mut sorted);
    let case = Case {
        file: include_bytes!("../../programs/ordinary.elf"),
        told: &[],
        inputs: vec![("x", 8, x.to_vec())],
        output: ("out", 8),
    };
    (case, expected)
}

#[test]
fn a_compiled_program_selects_ends_early_compares_divides_and_sorts() {
    let mut all = [
        [
            3,
            0x1234_5678_9abc_def0,
            0x1000_0000_0000_0007,
            77,
            1,
            5,
            2,
            9,
            3,
            9,
            4,
            8,
            11,
            77,
            5,
            77,
        ],
        [
            u64::MAX,
            u64::MAX,
            u64::MAX,
            50,
            1,
            1,
            2,
            1,
            3,
            1,
            4,
            1,
            1,
            1,
            9,
            9,
        ],
        [0; 16],
    ];
    all[2][..3].copy_from_slice(&Random::new(5).words(3));
    for x in all {
        let (case, expected) = ordinary(x);
        case.is(&expected, &PROTOCOLS, &[]);
    }
}

/// What the program prints with glibc.
#[test]
fn the_library_of_public_programs_is_as_elsewhere() {
    let (case, _) = ordinary([2; 16]);
    let program = Program::parse(case.file).expect("the file is a program");
    for outcome in run("plain", usual_parties("plain"), |p| {
        let x = Array {
            name: "x".to_owned(),
            bytes: 8,
            floats: false,
            range: None,
            content: Content::Public(2_u64.to_le_bytes().repeat(16)),
        };
        let asked = Run {
            program: &program,
            arguments: &["ordinary".to_owned()],
            inputs: &[&x],
            outputs: &[Output {
                name: "out".to_owned(),
                bytes: 8,
                fate: Fate::Opened(Recipient::All),
            }],
            options: OPTIONS,
        };
        run_program(p, &asked)
    }) {
        let printed = String::from_utf8_lossy(&outcome.printed);
        assert_eq!(printed, include_str!("../../programs/ordinary.txt"));
    }
}
