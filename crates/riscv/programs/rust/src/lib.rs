//! What a program may say of its secrets, as `tacit.h` has it for C. All of it does nothing where
//! there are none: the same program runs in the clear on any system.
//!
//! A table that may be read and written at secret places is a static in a section of its own, whose
//! name begins with `.tacit.oblivious`:
//!
//! ```
//! #[unsafe(link_section = ".tacit.oblivious.squares")]
//! static SQUARES: [u8; 4] = [0, 1, 4, 9];
//! # assert_eq!(SQUARES[3], 9);
//! ```
#![no_std]

/// Names what is done from here on.
#[cfg(target_arch = "riscv64")]
const LABEL: u64 = 0x7ac2;

/// Opens words in memory to all parties.
#[cfg(target_arch = "riscv64")]
const REVEAL: u64 = 0x7ac0;

/// Says of a word in memory that it is in a range.
#[cfg(target_arch = "riscv64")]
const RANGE: u64 = 0x7ac1;

/// The value of a secret, opened to all parties: the program then goes on by what it is.
#[inline(always)]
pub fn reveal(secret: u64) -> u64 {
    asked(secret, Asked::Reveal)
}

/// The value of a secret that is known to be no less than `least` and no more than `most`, as a
/// number with a sign: comparisons, shifts and conversions of it then take no more bits than that.
/// A secret that is not makes what is computed of it wrong; a number that everybody knows stops the
/// program.
#[inline(always)]
pub fn range(secret: u64, least: i64, most: i64) -> u64 {
    asked(secret, Asked::Range(least, most))
}

/// Names what is done from here on, by at most 64 bytes: the report says how long was waited for
/// it, in the place of the functions that do it. With an empty text they count again.
#[inline(always)]
pub fn label(text: &str) {
    #[cfg(target_arch = "riscv64")]
    // SAFETY: the call reads these bytes alone, and of registers it changes a0. A system that does
    // not know it answers with an error in a0.
    unsafe {
        core::arch::asm!(
            "ecall",
            inlateout("a0") text.as_ptr() => _,
            in("a1") text.len(),
            in("a7") LABEL,
            options(nostack, readonly),
        );
    }
    #[cfg(not(target_arch = "riscv64"))]
    let _ = text;
}

/// One of two words by a condition, without a branch.
#[inline(always)]
pub fn select(condition: bool, if_true: u64, if_false: u64) -> u64 {
    let mask = core::hint::black_box(u64::from(condition).wrapping_neg());
    if_false ^ (mask & (if_true ^ if_false))
}

/// What is asked of the system.
#[cfg_attr(
    not(target_arch = "riscv64"),
    allow(dead_code, reason = "there is nobody to ask")
)]
enum Asked {
    Reveal,
    Range(i64, i64),
}

#[cfg(target_arch = "riscv64")]
#[inline(always)]
fn asked(secret: u64, what: Asked) -> u64 {
    let mut word = secret;
    let (call, first, second) = match what {
        Asked::Reveal => (REVEAL, 1, 8),
        Asked::Range(least, most) => (RANGE, least as u64, most as u64),
    };
    // SAFETY: the call reads and writes this word alone, and of registers it changes a0. A system
    // that does not know it answers with an error in a0, and leaves the word.
    unsafe {
        core::arch::asm!(
            "ecall",
            inlateout("a0") &raw mut word => _,
            in("a1") first,
            in("a2") second,
            in("a7") call,
            options(nostack),
        );
    }
    word
}

#[cfg(not(target_arch = "riscv64"))]
fn asked(secret: u64, _: Asked) -> u64 {
    secret
}
