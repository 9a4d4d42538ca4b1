//! A RISC-V machine whose words are public or secret. It runs programs that an ordinary compiler
//! built. The meaning of each instruction is written once, generically over the kind of word.
//!
//! | module | contents |
//! | --- | --- |
//! | [`numbers`] | words and the operations on them, including fixed point |
//! | [`floats`] | public floats in IEEE 754, secret floats in fixed point |
//! | [`secret`] | words that may be secret: a graph, evaluated when a value is needed |
//! | [`isa`] | the instruction set: operations, encodings, extensions, decoding |
//! | [`elf`] | compiled programs: segments, symbols, source lines, callers |
//! | [`memory`] | public bytes, and pieces of secret words |
//! | [`machine`] | one hart: the effect of each instruction on registers and memory |
//! | [`system`] | system calls: files, memory, exit |
//! | [`host`] | programs run in a session, or on a bare machine |
//! | [`fault`] | the reasons why a program stops before its end |
//!
//! The sources are the RISC-V Instruction Set Manual, volume I (unprivileged, 2024), and the RISC-V
//! psABI for calls and for ELF.

pub mod elf;
pub mod fault;
pub mod floats;
pub mod host;
pub mod isa;
pub mod machine;
pub mod memory;
pub mod numbers;
pub mod secret;
pub mod system;

pub use elf::program::Program;
pub use fault::Fault;
pub use isa::decode::{self, decode};
pub use isa::instruction::Instruction;
pub use isa::operation::Operation;
pub use machine::{Machine, Stop};
pub use memory::Memory;
pub use numbers::words::{Plain, Signs, Words};
pub use secret::Secret;
