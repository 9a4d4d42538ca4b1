//! Programs that are measured, compiled from the sources beside them (`make riscv-programs`).

macro_rules! programs {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../programs/", $name, ".elf")))),*]
    };
}

/// The name of each, and its ELF file.
pub const PROGRAMS: &[(&str, &[u8])] = programs![
    "aes",
    "arrays",
    "ascon",
    "figures",
    "net",
    "psi",
    "psi_loops",
    "psi_merge",
];
