//! The C runtime that programs are compiled with: startup code, stdio, memory and text functions.
//! It uses ordinary system calls, so the compiled file also runs in the clear.

/// A source file or header of the runtime.
pub struct Source {
    /// The file's name.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(Source { name: $name, text: include_str!(concat!("../../programs/runtime/", $name)) }),*]
    };
}

/// All sources and headers of the runtime.
pub const SOURCES: &[Source] = sources![
    "alloca.h",
    "angles.c",
    "assert.h",
    "ctype.c",
    "ctype.h",
    "decimal.c",
    "decimal.h",
    "division.c",
    "elementary.c",
    "elementary.h",
    "errno.h",
    "inttypes.h",
    "library.c",
    "limits.h",
    "locale.h",
    "math.c",
    "math.h",
    "memory.c",
    "memory.h",
    "printf.c",
    "scanf.c",
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
    "time.h",
];
