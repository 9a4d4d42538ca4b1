//! Floats: [`ieee`] computes public ones as IEEE 754 does, [`fixed`] computes secret ones in fixed
//! point.

pub mod fixed;
pub mod ieee;
