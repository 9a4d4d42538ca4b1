//! Compiled programs that `tacit bench` runs. `make riscv-programs` compiles them from the sources
//! next to them.

macro_rules! programs {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../riscv/programs/", $name, ".elf")))),*]
    };
}

/// Name and ELF file of each program.
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
