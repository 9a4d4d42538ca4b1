//! Branches on secrets: both sides are executed and merged, and whatever would reveal the condition
//! is refused.

use crate::assembly::{Assembler, CODE, DATA};
use mpc::Recipient;
use riscv::machine::LABELS;
use riscv::machine::register::ARGUMENT;
use riscv::machine::secret_branch::{NESTED, TRIPS};
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Plain, Program, Secret, Stop, Words};
use testkit::{run, usual_parties};

const A0: u8 = ARGUMENT as u8;
const A1: u8 = A0 + 1;
const A2: u8 = A0 + 2;
const RA: u8 = 1;
const SP: u8 = 2;
const T0: u8 = 5;
const T1: u8 = 6;

/// The size of the data in bytes.
const SIZE: usize = 32;

/// The results of a program: register a0, and the data as words.
type Left = Vec<u64>;

fn machine<W: Words>(words: W, program: &Program, data: &[W::Word]) -> Machine<W> {
    let mut machine = Machine::new(words, program, 1 << 16).expect("the program fits");
    machine
        .memory
        .map(DATA, vec![0; SIZE], true)
        .expect("the region is free");
    for (at, word) in (0..).zip(data) {
        machine
            .memory
            .store(&machine.words, DATA + 8 * at, 8, word)
            .expect("the address is mapped");
    }
    machine
}

fn left<W: Words>(machine: &mut Machine<W>) -> Vec<W::Word> {
    let mut left = vec![machine.register(A0.into()).clone()];
    for at in 0..SIZE as u64 / 8 {
        let word = machine.memory.load(&mut machine.words, DATA + 8 * at, 8);
        left.push(word.expect("the address is mapped"));
    }
    left
}

/// Runs a program on public values, with the address of the data in a1.
fn plainly(program: &Program, values: &[u64]) -> Left {
    let mut machine = machine(Plain, program, values);
    machine
        .call(CODE, &[values[0], DATA])
        .expect("the program ends");
    left(&mut machine)
}

/// Runs a program on secret values. Returns what each party learns.
fn secretly(protocol: &str, program: &Program, values: &[u64]) -> Vec<Result<Left, Fault>> {
    run(protocol, usual_parties(protocol), |p| {
        let own = (p.party() == 0).then_some(values);
        let words = share(p, 0, own, values.len())?;
        let mut machine = machine(Secret, program, &words);
        if let Err(fault) = machine.call(CODE, &[words[0].clone(), Word::Public(DATA)]) {
            return Ok(Err(fault));
        }
        let opened = reveal(p, &left(&mut machine), Recipient::All)?;
        Ok(Ok(opened.expect("opened to all")))
    })
}

fn refused(program: &Program) -> Fault {
    let mut faults = secretly("plain", program, &[1, 2]);
    faults.swap_remove(0).expect_err("the program is refused")
}

/// Builds a program with a branch that is taken if a0 is 0.
fn on_zero(sides: impl FnOnce(&mut Assembler), taken: impl FnOnce(&mut Assembler)) -> Program {
    let mut code = Assembler::default();
    let (other, end) = (code.label(), code.label());
    code.branch("beq", A0, 0, other);
    sides(&mut code);
    code.jump(0, end);
    code.place(other);
    taken(&mut code);
    code.place(end);
    code.ret();
    code.program()
}

fn agree(program: &Program) {
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        for first in [0, 1, u64::MAX] {
            let values = [first, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 77];
            let expected = plainly(program, &values);
            for found in secretly(protocol, program, &values) {
                assert_eq!(found.as_ref(), Ok(&expected), "{protocol} {first}");
            }
        }
    }
}

/// Overlapping words, halves and bytes, on one side or on both, with public and secret values.
#[test]
fn what_a_side_writes_is_merged_with_what_was_there() {
    agree(&on_zero(
        |code| {
            code.add("sd", 0, A1, A0, 8);
            code.add("sh", 0, A1, A1, 10);
            code.add("sb", 0, A1, A0, 23);
            code.add("addi", A0, A0, 0, 5);
        },
        |code| {
            code.add("lw", A0, A1, 0, 20);
            code.add("sw", 0, A1, A0, 14);
            code.add("sd", 0, A1, A0, 19);
            code.add("sb", 0, A1, 0, 24);
        },
    ));
}

#[test]
fn sides_may_have_branches_loops_and_calls_of_their_own() {
    let mut code = Assembler::default();
    let [outer, inner, end, twice, again, many] = [(); 6].map(|()| code.label());
    code.add("addi", SP, SP, 0, -16);
    code.add("sd", 0, SP, RA, 8);
    code.branch("bge", A0, 0, outer);
    code.jump(RA, twice);
    code.add("ld", A2, A1, 0, 8);
    code.branch("bltu", A2, A0, inner);
    code.add("sd", 0, A1, A0, 16);
    code.jump(RA, twice);
    code.place(inner);
    code.jump(0, end);
    code.place(outer);
    // A loop with a public bound.
    code.add("addi", T1, 0, 0, 3);
    code.place(again);
    code.jump(RA, many);
    code.add("addi", T1, T1, 0, -1);
    code.branch("bne", T1, 0, again);
    code.place(end);
    code.add("ld", RA, SP, 0, 8);
    code.add("addi", SP, SP, 0, 16);
    code.ret();
    code.place(twice);
    code.add("add", A0, A0, A0, 0);
    code.ret();
    // This function returns in two places, and its argument is secret.
    code.place(many);
    let early = code.label();
    code.add("andi", A2, A0, 0, 1);
    code.branch("bne", A2, 0, early);
    code.add("addi", A0, A0, 0, 7);
    code.ret();
    code.place(early);
    code.add("sb", 0, A1, A0, 31);
    code.ret();
    agree(&code.program());
}

#[test]
fn a_function_may_return_on_both_sides() {
    let mut code = Assembler::default();
    let other = code.label();
    code.branch("beq", A0, 0, other);
    code.add("sd", 0, A1, 0, 8);
    code.ret();
    code.place(other);
    code.add("ld", A0, A1, 0, 16);
    code.ret();
    agree(&code.program());
}

#[test]
fn loops_with_a_secret_end_are_refused() {
    let mut code = Assembler::default();
    let again = code.label();
    code.place(again);
    code.add("addi", A0, A0, 0, -1);
    code.branch("bne", A0, 0, again);
    code.ret();
    assert_eq!(refused(&code.program()), Fault::SecretLoop(TRIPS));
}

#[test]
fn sides_that_do_not_meet_are_refused() {
    // The other side does not end.
    let mut code = Assembler::default();
    let (other, forever) = (code.label(), code.label());
    code.branch("beq", A0, 0, other);
    code.place(forever);
    code.jump(0, forever);
    code.place(other);
    code.jump(0, forever);
    assert_eq!(refused(&code.program()), Fault::SecretBranch);
    // The return addresses differ: at two returns, and at one.
    let mut code = Assembler::default();
    let other = code.label();
    code.branch("beq", A0, 0, other);
    code.add("addi", RA, RA, 0, 8);
    code.ret();
    code.place(other);
    code.ret();
    assert_eq!(refused(&code.program()), Fault::SecretBranch);
    let program = on_zero(|code| code.add("addi", RA, RA, 0, 8), |_| {});
    assert_eq!(refused(&program), Fault::SecretJump);
}

/// Hints work on both sides: a bound holds on its side only, and a label that the sides set
/// differently ends where they meet.
#[test]
fn bounds_and_labels_are_said_on_sides() {
    // If a0 is 0, the word is bounded to 0 to 3 and doubled. Otherwise it may have any size, and is
    // unchanged.
    let program = on_zero(
        |code| code.add("sd", 0, A1, A0, 16),
        |code| {
            note(code, 0x7ac1, 8, 3);
            code.add("ld", A2, T0, 0, 8);
            code.add("slli", A2, A2, 0, 1);
            code.add("sd", 0, T0, A2, 16);
            code.add("sltu", A0, A2, 7, 0);
        },
    );
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        for (first, second, left) in [(0, 3, 6), (0, 1, 2), (1, u64::MAX, 1), (9, 1 << 40, 9)] {
            let values = [first, second, 5, 77];
            for found in secretly(protocol, &program, &values) {
                let found = found.expect("the program is accepted");
                assert_eq!(found[3], left, "{protocol} {first} {second}");
                assert_eq!(found[2], second, "{protocol} {first} {second}");
            }
        }
    }
}

#[test]
fn labels_of_sides_end_where_they_meet() {
    let program = on_zero(
        |code| {
            note(code, 0x7ac2, 8, 0);
            code.add("addi", A0, 0, 0, 7);
        },
        |code| code.add("addi", A0, 0, 0, 8),
    );
    run("plain", usual_parties("plain"), |p| {
        let own = (p.party() == 0).then_some([5].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        let mut machine = machine(Secret, &program, &[]);
        let written = machine.memory.write(DATA + 8, b"hashes");
        written.expect("the address is mapped");
        let result = machine.call(CODE, &[word, Word::Public(DATA)]);
        assert_eq!(machine.labels(), ["hashes"]);
        assert!(machine.whereabouts() < LABELS);
        let result = result.expect("the program ends");
        assert_eq!(reveal(p, &[result], Recipient::All)?, Some(vec![7]));
        Ok(())
    });
}

/// Emits a hint with the given number and arguments: an address within the data, a least number,
/// and a greatest one. The address of the data is then in T0.
fn note(code: &mut Assembler, number: i32, offset: i32, most: i32) {
    code.add("addi", T0, A1, 0, 0);
    code.add("addi", A0, A1, 0, offset);
    // The least number is 0; for a label, this argument is its length of six bytes.
    code.add("addi", A1, 0, 0, if number == 0x7ac2 { 6 } else { 0 });
    code.add("addi", A2, 0, 0, most);
    code.add("lui", 17, 0, 0, 0x8000);
    code.add("addi", 17, 17, 0, number - 0x8000);
    code.add("ecall", 0, 0, 0, 0);
}

/// A fault that the program would meet for one value of the secret stops it for all values.
#[test]
fn a_fault_on_a_side_is_named_with_the_branch() {
    let on_side = |cause| Fault::OnSide {
        branch: CODE,
        cause: Box::new(cause),
    };
    let cause = |taken: fn(&mut Assembler)| refused(&on_zero(|_| {}, taken));
    let end = DATA + SIZE as u64;
    let (address, bytes) = (end - 4, 8);
    let unmapped = on_side(Fault::Unmapped { address, bytes });
    assert_eq!(cause(|code| code.add("ld", A0, A1, 0, 28)), unmapped);
    let address = CODE;
    let constant = on_side(Fault::ReadOnly { address });
    let to_code = |code: &mut Assembler| {
        code.add("lui", A1, 0, 0, CODE as i32);
        code.add("sd", 0, A1, 0, 0);
    };
    assert_eq!(cause(to_code), constant);
    let failed = cause(|code| code.add("ebreak", 0, 0, 0, 0));
    assert_eq!(failed, on_side(Fault::Breakpoint));
    let asked = cause(|code| code.add("ecall", 0, 0, 0, 0));
    assert_eq!(asked, on_side(Fault::CallOnSide));
    let address = cause(|code| code.add("ld", A2, A0, 0, 0));
    assert_eq!(address, on_side(Fault::SecretAddress));
    let said = unmapped.to_string();
    assert!(
        said.contains("0x10001c") && said.contains("0x10000"),
        "{said}"
    );
}

#[test]
fn recursion_with_a_secret_end_is_refused() {
    let mut code = Assembler::default();
    let (function, end) = (code.label(), code.label());
    code.place(function);
    code.branch("beq", A0, 0, end);
    code.add("addi", SP, SP, 0, -16);
    code.add("sd", 0, SP, RA, 8);
    code.add("addi", A0, A0, 0, -1);
    code.jump(RA, function);
    code.add("ld", RA, SP, 0, 8);
    code.add("addi", SP, SP, 0, 16);
    code.place(end);
    code.ret();
    let branch = CODE;
    let cause = Box::new(Fault::Nested(NESTED));
    assert_eq!(refused(&code.program()), Fault::OnSide { branch, cause });
}

#[test]
fn a_branch_is_opened_where_that_was_asked_for() {
    // Counts how often the argument can be halved.
    let mut code = Assembler::default();
    let again = code.label();
    code.add("addi", A2, 0, 0, 0);
    code.place(again);
    code.add("addi", A2, A2, 0, 1);
    code.add("srli", A0, A0, 0, 1);
    let branch = CODE + 12;
    code.branch("bne", A0, 0, again);
    code.ret();
    let program = code.program();
    let results = run("replicated", 3, |p| {
        let own = (p.party() == 0).then_some([300].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        let mut machine = machine(Secret, &program, &[]);
        machine.open_branches(branch..branch + 4);
        machine.set_register(A0.into(), word);
        let mut bits = Vec::new();
        while machine
            .run(Some(0))
            .expect("the program runs without a fault")
            == Stop::Branch
        {
            assert_eq!(machine.pc(), branch);
            let bit = machine
                .asked()
                .expect("the machine stopped at a branch")
                .clone();
            let opened = reveal(p, &[bit], Recipient::All)?.expect("opened to all")[0];
            bits.push(opened);
            machine.answer(opened == 1);
        }
        assert_eq!(machine.opened()[&branch], bits.len() as u64);
        let count = Secret.public(machine.register(A2.into()));
        Ok((bits, count))
    });
    for (bits, count) in results {
        assert_eq!(bits, [1, 1, 1, 1, 1, 1, 1, 1, 0]);
        assert_eq!(count, Some(9));
    }
}

#[test]
fn a_branch_is_not_opened_on_a_side() {
    let inner = CODE + 8;
    let program = on_zero(
        |_| {},
        |code| {
            let end = code.label();
            code.branch("bltu", A0, A1, end);
            code.add("addi", A0, A0, 0, 3);
            code.place(end);
        },
    );
    let faults = run("plain", 2, |p| {
        let own = (p.party() == 0).then_some([1].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        let mut machine = machine(Secret, &program, &[]);
        machine.open_branches(inner..inner + 4);
        Ok(machine.call(CODE, &[word, Word::Public(1)]).err())
    });
    let cause = Box::new(Fault::OpeningOnSide);
    let branch = CODE;
    assert_eq!(faults[0], Some(Fault::OnSide { branch, cause }));
}

/// Flags that are raised on one side only cannot be read, and both sides must leave the same
/// rounding mode.
#[test]
fn control_registers_do_not_depend_on_a_secret() {
    const FLAGS: i32 = 1;
    const ROUNDING: i32 = 2;
    let set = |register: i32, value: i32, then: fn(&mut Assembler)| {
        let mut code = Assembler::default();
        let end = code.label();
        code.branch("beq", A0, 0, end);
        code.add("csrrsi", 0, 0, 0, value << 12 | register);
        code.place(end);
        then(&mut code);
        code.ret();
        code.program()
    };
    let read = |code: &mut Assembler| code.add("csrrs", A2, 0, 0, FLAGS);
    assert_eq!(refused(&set(FLAGS, 1, read)), Fault::SecretFlags);
    agree(&set(FLAGS, 1, |code| {
        code.add("csrrwi", 0, 0, 0, 2 << 12 | FLAGS);
        code.add("csrrs", A0, 0, 0, FLAGS);
    }));
    assert_eq!(refused(&set(ROUNDING, 1, |_| {})), Fault::SecretControl);
}
