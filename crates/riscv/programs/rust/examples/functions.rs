//! Functions in Rust on secrets:
//! `cargo build --release --target riscv64gc-unknown-none-elf --example functions`, and then
//! `tacit riscv try functions --call mean --arg a --arg len:a --secret a=0:u64:salaries.txt`.
#![no_std]
#![no_main]

use core::panic::PanicInfo;
use core::slice::from_raw_parts;

#[unsafe(link_section = ".tacit.oblivious.primes")]
static PRIMES: [u8; 16] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];

/// # Safety
/// There are so many numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mean(numbers: *const u64, count: usize) -> u64 {
    // SAFETY: as the caller says.
    let numbers = unsafe { from_raw_parts(numbers, count) };
    numbers.iter().sum::<u64>() / count.max(1) as u64
}

/// How many numbers below 100 are below a bound, which is opened.
///
/// # Safety
/// There are so many numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn below(numbers: *const u64, count: usize, bound: u64) -> u64 {
    // SAFETY: as the caller says.
    let numbers = unsafe { from_raw_parts(numbers, count) };
    let number = |x: &u64| u64::from(tacit_program::range(*x, 0, 99) < bound);
    tacit_program::reveal(numbers.iter().map(number).sum())
}

/// The prime of that place, or the number itself.
#[unsafe(no_mangle)]
pub extern "C" fn prime(place: u64, is_wanted: u64) -> u64 {
    let prime = PRIMES[(place & 15) as usize];
    tacit_program::select(is_wanted == 1, prime.into(), place)
}

#[unsafe(no_mangle)]
pub extern "C" fn _start() {}

#[panic_handler]
fn stopped(_: &PanicInfo) -> ! {
    loop {}
}
