//! The protocols once more, for words of any size: one element at a time, every step as its head
//! states it, every random value taken from a [`Tape`], every message seen.

pub mod additive;
pub mod correlations;
pub mod leaves;
pub mod replicated;
pub mod tree;
pub mod value;
mod world;

pub use value::{Holders, Value, holders};
pub use world::{Extent, Key, Range, Slot, Tape, World, Wrong};

/// One value, as its components.
pub type Shared<const N: usize> = [Value; N];

/// The sum of two sharings: XOR for bits.
pub fn add<const N: usize>(a: Shared<N>, b: Shared<N>) -> Shared<N> {
    std::array::from_fn(|i| a[i] + b[i])
}

/// The difference of two sharings.
pub fn subtract<const N: usize>(a: Shared<N>, b: Shared<N>) -> Shared<N> {
    std::array::from_fn(|i| a[i] - b[i])
}

/// The low bits of each component.
pub fn low<const N: usize>(x: Shared<N>, width: u32) -> Shared<N> {
    x.map(|x| x.low(width))
}
