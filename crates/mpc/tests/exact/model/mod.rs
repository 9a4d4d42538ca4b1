//! A second implementation of the protocols, for words of any size: one element at a time, with
//! every step as its head states it. Every random value comes from a [`Tape`], and every message is
//! recorded.

pub mod additive;
pub mod correlations;
pub mod leaves;
pub mod proven;
pub mod replicated;
pub mod tables;
pub mod tree;
pub mod value;
mod world;

pub use value::{Holders, Value, holders};
pub use world::{Extent, Key, Range, Slot, Tape, World, Wrong};

/// The components of one value.
pub type Shared<const N: usize> = [Value; N];

/// Adds two sharings: XOR for bits.
pub fn add<const N: usize>(a: Shared<N>, b: Shared<N>) -> Shared<N> {
    std::array::from_fn(|i| a[i] + b[i])
}

/// Subtracts two sharings.
pub fn subtract<const N: usize>(a: Shared<N>, b: Shared<N>) -> Shared<N> {
    std::array::from_fn(|i| a[i] - b[i])
}

/// Returns the low bits of each component.
pub fn low<const N: usize>(x: Shared<N>, width: u32) -> Shared<N> {
    x.map(|x| x.low(width))
}
