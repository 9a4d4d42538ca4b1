//! Tests of dealers and parties that fail: all members end in time, and learn whose fault it is.
//! Tests of a dealer's traffic to each party.

mod ends;
mod failures;
mod links;
mod porthos;
mod session;
