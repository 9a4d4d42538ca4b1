//! The instruction set: what instructions are, how they are encoded, and what they compute.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`operation`] | what an instruction does, apart from its encoding |
//! | [`instruction`] | an operation with its operands |
//! | [`formats`], [`encoding`] | where operands and opcodes stand in a word |
//! | [`extensions`] | encodings and meaning, one extension per file |
//! | [`mod@decode`] | words to instructions, and back |

pub mod decode;
pub mod encoding;
pub mod extensions;
pub mod formats;
pub mod instruction;
pub mod operation;
