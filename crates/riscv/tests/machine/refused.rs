//! A dry run finds everything that a program would be refused; a normal run stops at the first
//! refusal.

use crate::assembly::{Assembler, CODE, DATA};
use riscv::elf::unwind::Frames;
use riscv::machine::refused::Refused;
use riscv::secret::Word;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Program, Secret, Words};
use testkit::{run, usual_parties};

const A0: u8 = 10;
const A1: u8 = 11;
const T0: u8 = 5;
const T1: u8 = 6;

/// Returns how a program with a secret first argument ends, and what it was refused.
fn ended(program: &Program, passes: bool) -> (Result<bool, Fault>, Vec<(u64, Fault)>) {
    let mut all = run("plain", usual_parties("plain"), |p| {
        let own = (p.party() == 0).then_some([3].as_slice());
        let word = share(p, 0, own, 1)?.swap_remove(0);
        let mut machine = Machine::new(Secret, program, 1 << 20).expect("the program fits");
        machine
            .memory
            .map(DATA, vec![0; 64], true)
            .expect("the region is free");
        if passes {
            machine.pass_over(Frames::default());
        }
        let left = machine.call(CODE, &[word, Word::Public(DATA)]);
        let is_public = left.map(|word| Secret.public(&word).is_some());
        let refused = machine.refused().iter();
        let refused = refused.map(|Refused { address, fault, .. }| (*address, fault.clone()));
        Ok((is_public, refused.collect()))
    });
    all.swap_remove(0)
}

/// A table that is not marked, a loop with a secret end, and a call on a side of a branch.
fn program() -> Program {
    let mut code = Assembler::default();
    let [again, end] = [(); 2].map(|()| code.label());
    code.add("add", T0, A0, A1, 0);
    code.add("lw", T1, T0, 0, 0);
    code.place(again);
    code.add("addi", A0, A0, 0, -1);
    code.branch("bne", A0, 0, again);
    code.branch("beq", T1, 0, end);
    code.add("ecall", 0, 0, 0, 0);
    code.place(end);
    code.add("sd", 0, T0, T1, 0);
    code.add("add", A0, A0, T1, 0);
    code.ret();
    code.program()
}

#[test]
fn all_that_is_refused_is_found() {
    let program = program();
    let (left, refused) = ended(&program, true);
    assert_eq!(left, Ok(false));
    let expected = [
        (CODE + 4, Fault::SecretAddress),
        (
            CODE + 12,
            Fault::SecretLoop(riscv::machine::secret_branch::TRIPS),
        ),
        (CODE + 20, Fault::CallOnSide),
        (CODE + 24, Fault::SecretAddress),
    ];
    assert_eq!(refused, expected);
    let (left, refused) = ended(&program, false);
    assert_eq!((left, refused), (Err(Fault::SecretAddress), Vec::new()));
}

/// A loop that ends by a secret in its middle continues after its end, and a branch that is refused
/// repeatedly is reported once.
#[test]
fn loops_with_a_secret_end_come_to_one() {
    let mut code = Assembler::default();
    let [outer, inner, end] = [(); 3].map(|()| code.label());
    code.add("addi", T0, 0, 0, 5);
    code.place(outer);
    code.add("addi", T1, A0, 0, 0);
    code.place(inner);
    code.branch("beq", T1, 0, end);
    code.add("addi", T1, T1, 0, -1);
    code.jump(0, inner);
    code.place(end);
    code.add("addi", T0, T0, 0, -1);
    code.branch("bne", T0, 0, outer);
    code.add("addi", A0, T0, 0, 0);
    code.ret();
    let (left, refused) = ended(&code.program(), true);
    assert_eq!(left, Ok(true));
    assert_eq!(
        refused,
        [(
            CODE + 8,
            Fault::SecretLoop(riscv::machine::secret_branch::TRIPS)
        )]
    );
}

/// A jump to a secret address cannot be passed over, so it stops the program.
#[test]
fn what_is_nowhere_ends_all() {
    let mut code = Assembler::default();
    code.add("lw", T1, A0, 0, 0);
    code.add("jalr", 0, A0, 0, 0);
    let (left, refused) = ended(&code.program(), true);
    assert_eq!(left, Err(Fault::SecretJump));
    assert_eq!(refused, [(CODE, Fault::SecretAddress)]);
}
