//! The C runtime that programs are compiled with: startup code, stdio, memory and text functions.
//! It uses ordinary system calls, so the same file runs in the clear too.

/// A source or a header.
pub struct Source {
    /// Its file's name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(Source { name: $name, text: include_str!(concat!("../../programs/runtime/", $name)) }),*]
    };
}

/// All of it.
pub const SOURCES: &[Source] = sources![
    "assert.h",
    "ctype.c",
    "ctype.h",
    "decimal.c",
    "decimal.h",
    "inttypes.h",
    "limits.h",
    "math.c",
    "math.h",
    "memory.c",
    "printf.c",
    "setjmp.c",
    "setjmp.h",
    "sort.c",
    "start.c",
    "stdint.h",
    "stdio.c",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "system.h",
    "tacit.h",
    "text.c",
];
