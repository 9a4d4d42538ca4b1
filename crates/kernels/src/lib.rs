//! Vectors over Z_2^64 and packed bit planes: the arithmetic below every protocol of tacit.
//!
//! - [`dispatch`]: which kernels this machine runs, and how to force others;
//! - [`aes`]: AES-128 over many blocks;
//! - [`stream`]: pseudo-random words from AES in counter mode, each range handed out once;
//! - [`planes`]: values as bit planes and back, bytes of 0 and 1 as packed bits;
//! - [`pack`]: the low bits of each word, densely;
//! - [`matrix`] and [`convolution`]: sums of products mod 2^64;
//! - [`third`]: products of what three parties share, by one product of each;
//! - [`ntt`]: polynomials modulo X^8192 + 1 and a prime, by number-theoretic transforms;
//! - [`projection`]: products of rows with random weights -1, 0 and 1;
//! - [`large_pages`]: an allocator, under which large blocks lie in large pages;
//! - [`message`]: the check of a message's length;
//! - [`parallel`]: slices processed block by block on the current thread pool.
//!
//! Nothing here knows a protocol, and no kernel branches on, or indexes by, the words it is given:
//! time depends on lengths alone. This is the only crate with `unsafe` (intrinsics, assembly for
//! tiles of bytes and the system call that asks for them, writes by several threads to disjoint
//! parts of one slice, and allocators, one of them for tests); every kernel has a portable twin
//! that tests compare it with, bit for bit.

pub mod aes;
pub mod convolution;
pub mod dispatch;
pub mod large_pages;
pub mod matrix;
#[cfg(feature = "memory")]
pub mod memory;
pub mod message;
pub mod ntt;
pub mod pack;
pub mod parallel;
pub mod planes;
pub mod projection;
pub mod stream;
pub mod third;

mod product;
mod shared_slice;
