//! Dealers and parties that fail: everybody ends in time, and is told whose fault it is.

mod ends;
mod failures;
mod session;
