//! Compiled programs: ELF files, their symbols, and the debug data that names source lines.
//!
//! | module | contents |
//! | --- | --- |
//! | [`program`] | a loadable program: segments, entry point, digest |
//! | [`symbols`] | functions and objects, and where each begins and ends |
//! | [`dwarf_lines`] | the source line of an instruction |
//! | [`unwind`] | the callers of an instruction |
//! | [`source_places`] | a place in the source, as messages show it |

pub mod dwarf_lines;
pub mod program;
pub mod source_places;
pub mod symbols;
pub mod unwind;
