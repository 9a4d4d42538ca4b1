//! The instruction set: instructions, their encodings, and what they compute.
//!
//! | module | contents |
//! | --- | --- |
//! | [`operation`] | the effect of an instruction, independent of its encoding |
//! | [`instruction`] | an operation with its operands |
//! | [`formats`], [`encoding`] | the positions of operands and opcodes in a word |
//! | [`extensions`] | encodings and semantics, one extension per file |
//! | [`mod@decode`] | conversion of words to instructions, and back |

pub mod decode;
pub mod encoding;
pub mod extensions;
pub mod formats;
pub mod instruction;
pub mod operation;
