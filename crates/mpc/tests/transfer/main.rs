//! Tests of correlations that the parties make with each other: the others name a party that fails,
//! and the traffic is as intended.

mod costs;
mod elements;
mod encryption;
mod session;
mod transfers;
