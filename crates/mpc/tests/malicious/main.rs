//! One of three parties cheats: whatever it sends, the two others get the right result or stop.

mod federation;
mod liars;
mod parties;
mod programs;
mod provers;
mod tampering;
