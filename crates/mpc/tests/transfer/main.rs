//! Correlations that the parties make with each other: who fails is named by the others, and what
//! is sent is as much as is meant.

mod costs;
mod encryption;
mod session;
mod transfers;
