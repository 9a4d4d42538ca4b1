//! Running programs: in a session of several parties, or alone on a bare machine.
//!
//! | module | contents |
//! | --- | --- |
//! | [`arrays`] | the arrays that a program receives and returns |
//! | [`execution`] | a running program in a session |
//! | [`calls`] | one function of a program, called on the parties' arrays |
//! | [`runs`] | a whole program, run on the parties' files |
//! | [`runtime`] | the C sources that programs are compiled with |
//! | [`bare_metal`] | a public program without an operating system, for ISA tests |

pub mod arrays;
pub mod bare_metal;
pub mod calls;
pub mod execution;
pub mod runs;
pub mod runtime;
