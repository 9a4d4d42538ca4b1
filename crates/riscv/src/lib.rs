//! A RISC-V machine whose words are public or secret. An ordinary compiler makes the program; what its
//! instructions do is said once, over any kind of word.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`words`] | what registers hold: the operations on words, and plain numbers as their reference |
//! | [`real`] | numbers as words of fixed point, which secret floats are |
//! | [`composed`] | what words compute of what they have: long division, upper halves of products |
//! | [`secret`] | words that may be secret: a graph, computed when a value is wanted |
//! | [`operation`], [`instruction`] | what instructions do, apart from how they are written |
//! | [`formats`], [`encoding`], [`mod@decode`] | how they are written, and read |
//! | [`extensions`] | the instruction set: encodings and meaning, one extension a file |
//! | [`ieee`] | floats that everybody knows |
//! | [`fixed`] | floats that nobody knows |
//! | [`program`], [`code`] | a compiled program as its file has it, and its instructions |
//! | [`symbols`], [`lines`], [`callers`], [`places`] | its functions and objects; of which line an instruction was made, and who called |
//! | [`scan`] | a table at a place that nobody knows |
//! | [`memory`] | bytes that everybody knows, and pieces of words that nobody does |
//! | [`joins`] | where the sides of a branch meet again |
//! | [`machine`] | one hart: what each instruction does with registers and memory |
//! | [`system`] | what a program asks of a system: files, memory, its end |
//! | [`arrays`] | what programs are given |
//! | [`execution`] | a program under way in a session |
//! | [`bare`] | a public program on a hart without a system, as tests of instruction sets want it |
//! | [`calls`] | a function of a program, called in a session with what its parties have |
//! | [`runs`] | a whole program, run in a session with the files of its parties |
//! | [`runtime`] | what programs in C are compiled with |
//! | [`measured`] | programs that are measured |
//! | [`fault`] | why a program stops before its end |
//!
//! The sources are the RISC-V Instruction Set Manual, volume I (unprivileged, 2024), and the psABI of RISC-V for
//! calls and for ELF.

pub mod arrays;
pub mod bare;
pub mod callers;
pub mod calls;
pub mod code;
pub mod composed;
pub mod decode;
pub mod encoding;
pub mod execution;
pub mod extensions;
pub mod fault;
pub mod fixed;
pub mod formats;
pub mod ieee;
pub mod instruction;
pub mod joins;
pub mod lines;
pub mod machine;
pub mod measured;
pub mod memory;
pub mod operation;
pub mod places;
pub mod program;
pub mod real;
pub mod runs;
pub mod runtime;
pub mod scan;
pub mod secret;
pub mod symbols;
pub mod system;
pub mod words;

pub use decode::decode;
pub use fault::Fault;
pub use instruction::Instruction;
pub use machine::{Machine, Stop};
pub use memory::Memory;
pub use operation::Operation;
pub use program::Program;
pub use secret::Secret;
pub use words::{Plain, Signs, Words};
