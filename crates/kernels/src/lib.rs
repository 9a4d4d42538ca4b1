//! Vectors over Z_2^64 and packed bit planes: the arithmetic below every protocol of tacit.
//!
//! - [`bilinear`]: matrix products, convolutions and elementwise products, by their shapes;
//! - [`binary_field`]: the field of 2^64 elements, for proofs about bits;
//! - [`device`]: what evaluates bilinear maps, such as this processor;
//! - [`dispatch`]: which kernels this machine runs, and how to force others;
//! - [`aes`]: AES-128 over many blocks;
//! - [`stream`]: pseudo-random words from AES in counter mode, with each range handed out once;
//! - [`rows`]: rows of 128 bits with a packed bit each;
//! - [`correlated_tree`]: trees of seeds whose levels have one sum;
//! - [`sparse_code`]: a random linear code with few entries in each row;
//! - [`planes`]: conversion of values to bit planes and back, and of bytes 0 and 1 to packed bits;
//! - [`pack`]: dense packing of the low bits of each word;
//! - [`matrix`] and [`convolution`]: sums of products mod 2^64;
//! - [`third`]: products of values that three parties share, by one product of each party;
//! - [`galois`]: a Galois ring over Z_2^64, for proofs about words;
//! - [`ntt`]: polynomials modulo X^8192 + 1 and a prime, by number-theoretic transforms;
//! - [`residues`]: integers modulo the prime 2^31 − 1, for checks of ranges;
//! - [`residue_field`]: the field of the squared prime's elements, for proofs about residues;
//! - [`projection`]: products of rows with random weights -1, 0 and 1;
//! - [`large_pages`]: an allocator that puts large blocks in large pages;
//! - [`message`]: the check of a message's length;
//! - [`parallel`]: processing of slices block by block on the current thread pool.
//!
//! No code in this crate depends on a protocol. No kernel branches on the words that it is given,
//! or indexes by them: time depends only on lengths. This crate uses
//! `unsafe` code for intrinsics, for assembly for tiles of bytes and the system call that requests them,
//! for writes by several threads to disjoint parts of one slice, for indexes that are drawn below a
//! bound, and for allocators, one of them for tests. Every kernel has a portable version, and tests
//! compare the two bit for bit.

pub mod aes;
pub mod bilinear;
pub mod binary_field;
pub mod convolution;
pub mod correlated_tree;
pub mod device;
pub mod dispatch;
pub mod galois;
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
pub mod residue_field;
pub mod residues;
pub mod rows;
pub mod sparse_code;
pub mod stream;
pub mod third;

mod shared_slice;
mod square;
mod vector;
