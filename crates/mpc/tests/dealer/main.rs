//! Dealers and parties that fail: everybody ends in time, and is told whose fault it is. What a
//! dealer sends, and to whom.

mod ends;
mod failures;
mod links;
mod porthos;
mod session;
