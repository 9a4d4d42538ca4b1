//! Floats: [`ieee`] computes public ones in IEEE 754, [`fixed`] computes secret ones in fixed
//! point.

pub mod fixed;
pub mod ieee;
