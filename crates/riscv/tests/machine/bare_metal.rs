//! Programs without an operating system: traps, privileges, and the end of a program.

use crate::assembly::{Assembler, CODE, DATA};
use riscv::Fault;
use riscv::elf::program::{Program, Segment};
use riscv::host::bare_metal::Bare;

/// The maximum number of instructions.
const LIMIT: u64 = 1 << 12;

/// The address of `tohost`, after the results.
const TOHOST: u64 = DATA + 0x100;

/// Registers: scratch of the trap handler, the address of its records, the address of `tohost`.
const SCRATCH: u8 = 28;
const SAID: u8 = 29;
const TO: u8 = 30;
const A: u8 = 5;
const B: u8 = 6;

/// Control registers.
const STATUS: i32 = 0x300;
const VECTOR: i32 = 0x305;
const COUNTER: i32 = 0x341;
const CAUSE: i32 = 0x342;
const VALUE: i32 = 0x343;
const HART: i32 = 0xf14;

/// An unmapped address.
const NOWHERE: u64 = 0x40_0000;

/// Emits a placeholder that becomes `mret`, which user mode does not have.
fn mret(code: &mut Assembler) {
    code.add("fence", 0, 0, 0, 0);
}

fn bare(code: Assembler) -> Bare {
    let mut segments = code.program().segments;
    for word in segments[0].bytes.chunks_exact_mut(4) {
        if word == 0x0000_000f_u32.to_le_bytes() {
            word.copy_from_slice(&0x3020_0073_u32.to_le_bytes());
        }
    }
    segments.push(Segment {
        start: DATA,
        bytes: Vec::new(),
        size: 0x200,
        writable: false,
        executable: false,
    });
    let program = Program::new(CODE, segments);
    Bare::new(program, TOHOST, Some(DATA..TOHOST), LIMIT).expect("the program fits")
}

/// Returns the 64-bit words that a program left, up to the last nonzero one.
fn left(bare: &mut Bare) -> Vec<u64> {
    let text = bare.signature().expect("the program has a signature");
    let halves: Vec<u64> = text
        .lines()
        .map(|line| u64::from_str_radix(line, 16).expect("a hexadecimal number"))
        .collect();
    assert_eq!(halves.len(), 64);
    let mut words: Vec<u64> = halves.chunks(2).map(|two| two[1] << 32 | two[0]).collect();
    while words.last() == Some(&0) {
        words.pop();
    }
    words
}

/// Emits a trap handler that records cause and value and returns after the instruction. The program
/// follows it.
fn handled() -> Assembler {
    let mut code = Assembler::default();
    let start = code.label();
    code.jump(A, start);
    for (at, control) in [CAUSE, VALUE].into_iter().enumerate() {
        code.add("csrrs", SCRATCH, 0, 0, control);
        code.add("sd", 0, SAID, SCRATCH, 8 * at as i32);
    }
    code.add("addi", SAID, SAID, 0, 16);
    code.add("csrrs", SCRATCH, 0, 0, COUNTER);
    code.add("addi", SCRATCH, SCRATCH, 0, 4);
    code.add("csrrw", 0, SCRATCH, 0, COUNTER);
    mret(&mut code);
    code.place(start);
    code.add("lui", SAID, 0, 0, DATA as i32);
    code.add("addi", TO, SAID, 0, 0x100);
    code.add("csrrw", 0, A, 0, VECTOR);
    code
}

/// Writes a small number to `tohost`.
fn end(code: &mut Assembler, said: i32) {
    code.add("addi", B, 0, 0, said);
    code.add("sw", 0, TO, B, 0);
}

#[test]
fn traps_say_why_and_of_what() {
    let mut code = handled();
    // A call from machine mode; then a write to the read-only hart number.
    code.add("ecall", 0, 0, 0, 0);
    code.add("csrrwi", 0, 0, 0, 1 << 12 | HART);
    // Enter user mode.
    let go = code.label();
    code.jump(A, go);
    code.add("csrrs", B, 0, 0, STATUS);
    code.add("ecall", 0, 0, 0, 0);
    code.add("lui", A, 0, 0, NOWHERE as i32);
    code.add("ld", B, A, 0, 8);
    code.add("sd", 0, A, B, 16);
    code.add("lui", A, 0, 0, DATA as i32);
    code.add("addi", A, A, 0, 1);
    code.add("lr.w", B, A, 0, 0);
    code.add("amoadd.w", B, A, B, 0);
    // `mret` is not allowed in user mode.
    mret(&mut code);
    // Writes of the upper half alone, or of 0, have no effect.
    end(&mut code, 0);
    code.add("addi", B, 0, 0, 1);
    code.add("sw", 0, TO, B, 4);
    end(&mut code, 7 << 1 | 1);
    code.place(go);
    code.add("csrrw", 0, A, 0, COUNTER);
    mret(&mut code);

    let mut bare = bare(code);
    assert_eq!(bare.run(), Ok(7));
    let register = |control: u64, third: u64, first: u64, rd: u64| {
        control << 20 | first << 15 | third << 12 | rd << 7 | 0x73
    };
    let expected = [
        [11, 0],
        [2, register(HART as u64, 5, 1, 0)],
        [2, register(STATUS as u64, 2, 0, B.into())],
        [8, 0],
        [5, NOWHERE + 8],
        [7, NOWHERE + 16],
        [4, DATA + 1],
        [6, DATA + 1],
        [2, 0x3020_0073],
    ];
    assert_eq!(left(&mut bare), expected.concat());
}

#[test]
fn a_breakpoint_is_a_trap_at_its_address() {
    let mut code = handled();
    let after = code.label();
    code.jump(A, after);
    code.place(after);
    code.add("ebreak", 0, 0, 0, 0);
    end(&mut code, 1);
    let mut bare = bare(code);
    assert_eq!(bare.run(), Ok(0));
    let at = bare.register(A.into());
    assert_eq!(left(&mut bare), [3, at]);
}

#[test]
fn control_registers_keep_what_they_may() {
    // The values that are read after writing all ones, and after clearing. The remaining bits of
    // the status are those of 64-bit user mode.
    let kept = [
        (STATUS, 1 << 63 | 2 << 32 | 0x2_7888, 2 << 32),
        (0x304, 0x888, 0),
        (VECTOR, !2, 0),
        (0x306, 7, 0),
        (0x340, u64::MAX, 0),
        (COUNTER, !1, 0),
        (CAUSE, u64::MAX, 0),
        (VALUE, u64::MAX, 0),
        (0x344, 0, 0),
    ];
    for (control, ones, zeros) in kept {
        let mut code = handled();
        code.add("addi", A, 0, 0, -1);
        code.add("csrrw", 0, A, 0, control);
        code.add("csrrc", B, A, 0, control);
        code.add("sd", 0, SAID, B, 0);
        code.add("csrrsi", B, 0, 0, control);
        code.add("sd", 0, SAID, B, 8);
        // A nonzero word marks the end of the results.
        code.add("sd", 0, SAID, A, 16);
        end(&mut code, 1);
        let mut bare = bare(code);
        assert_eq!(bare.run(), Ok(0), "{control:#x}");
        assert_eq!(left(&mut bare), [ones, zeros, u64::MAX], "{control:#x}");
    }
}

#[test]
fn a_program_may_write_what_it_carries_out() {
    const AGAIN: u8 = 7;
    let mut code = handled();
    let (before, done) = (code.label(), code.label());
    code.jump(A, before);
    // This instruction replaces the next one after that has been executed.
    code.add("addi", B, 0, 0, 9 << 1 | 1);
    code.place(before);
    code.add("addi", B, 0, 0, 5 << 1 | 1);
    code.branch("bne", AGAIN, 0, done);
    code.add("lw", SCRATCH, A, 0, 0);
    code.add("sw", 0, A, SCRATCH, 4);
    code.add("fence.i", 0, 0, 0, 0);
    code.add("addi", AGAIN, 0, 0, 1);
    code.jump(0, before);
    code.place(done);
    code.add("sw", 0, TO, B, 0);
    assert_eq!(bare(code).run(), Ok(9));
}

#[test]
fn a_program_without_an_end_is_stopped() {
    // The trap vector is 0, where there are no instructions, so traps repeat without any
    // instruction being executed.
    let mut code = Assembler::default();
    code.add("ebreak", 0, 0, 0, 0);
    let mut traps = bare(code);
    assert!(matches!(traps.run(), Err(Fault::Limit(_))));

    let mut code = Assembler::default();
    let here = code.label();
    code.place(here);
    code.jump(0, here);
    assert_eq!(bare(code).run(), Err(Fault::Limit(LIMIT)));

    // An even number is a request to a host, and there is none.
    let mut code = handled();
    end(&mut code, 2);
    assert_eq!(bare(code).run(), Err(Fault::UnknownCall(2)));
}

/// Builds an ELF file with one read-only segment and labels.
fn elf(code: Assembler, labels: &[(&str, u64)]) -> Vec<u8> {
    let content = code.program().segments.remove(0).bytes;
    let (header, segment, section) = (64, 56, 64);
    let mut names = b"\0.text\0".to_vec();
    let mut symbols = vec![0; 24];
    for (name, address) in labels {
        symbols.extend((names.len() as u32).to_le_bytes());
        // A global symbol without a type, in the first section.
        symbols.extend([0x10, 0, 1, 0]);
        symbols.extend(address.to_le_bytes());
        symbols.extend([0; 8]);
        names.extend(name.as_bytes());
        names.push(0);
    }
    let at = header + segment;
    let [symbols_at, names_at] = [at + content.len(), at + content.len() + symbols.len()];
    let sections_at = names_at + names.len();

    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, values: &[usize]| {
        values
            .iter()
            .for_each(|&value| file.extend((value as u16).to_le_bytes()));
    };
    let words = |file: &mut Vec<u8>, values: &[usize]| {
        values
            .iter()
            .for_each(|&value| file.extend((value as u32).to_le_bytes()));
    };
    let longs = |file: &mut Vec<u8>, values: &[usize]| {
        values
            .iter()
            .for_each(|&value| file.extend((value as u64).to_le_bytes()));
    };
    halves(&mut file, &[2, 243]);
    words(&mut file, &[1]);
    longs(&mut file, &[CODE as usize, header, sections_at]);
    words(&mut file, &[0]);
    halves(&mut file, &[header, segment, 1, section, 4, 3]);
    words(&mut file, &[1, 4]);
    longs(
        &mut file,
        &[
            at,
            CODE as usize,
            CODE as usize,
            content.len(),
            content.len(),
            4,
        ],
    );
    let size = content.len();
    file.extend(&content);
    file.extend(&symbols);
    file.extend(&names);
    for (name, kind, address, place, bytes, link, each) in [
        (0, 0, 0, 0, 0, 0, 0),
        (1, 1, CODE as usize, at, size, 0, 0),
        (0, 2, 0, symbols_at, symbols.len(), 3, 24),
        (0, 3, 0, names_at, names.len(), 0, 0),
    ] {
        words(&mut file, &[name, kind]);
        longs(&mut file, &[0, address, place, bytes]);
        words(&mut file, &[link, 1]);
        longs(&mut file, &[1, each]);
    }
    file
}

#[test]
fn a_file_names_where_it_ends_and_what_it_leaves() {
    // After four instructions.
    let [tohost, results] = [CODE + 16, CODE + 32];
    let mut code = Assembler::default();
    code.add("auipc", A, 0, 0, 0);
    code.add("addi", B, 0, 0, 3);
    code.add("sw", 0, A, B, 36);
    code.add("sw", 0, A, B, 16);
    for _ in 0..8 {
        code.add("addi", 0, 0, 0, 0);
    }
    let all = [
        ("tohost", tohost),
        ("begin_signature", results),
        ("end_signature", results + 8),
    ];
    let mut bare = Bare::parse(&elf(code, &all), LIMIT).expect("the file is a program");
    assert_eq!(bare.run(), Ok(1));
    assert_eq!(bare.signature().as_deref(), Ok("00000013\n00000003\n"));

    let mut code = Assembler::default();
    code.add("addi", 0, 0, 0, 0);
    let none = Bare::parse(&elf(code, &[]), LIMIT);
    assert_eq!(none.err(), Some(Fault::NoObject("tohost".to_owned())));
}
