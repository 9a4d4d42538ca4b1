//! The numbers of system calls and of errors, as in Linux for RISC-V.

/// The errors that a call can return.
#[allow(missing_docs, reason = "the manual's names in words")]
pub mod error {
    pub const NO_FILE: u64 = 2;
    pub const NO_DESCRIPTOR: u64 = 9;
    pub const NO_MEMORY: u64 = 12;
    pub const NOT_ALLOWED: u64 = 13;
    pub const NO_DEVICE: u64 = 19;
    pub const INVALID: u64 = 22;
    pub const MANY_FILES: u64 = 24;
    pub const NO_TERMINAL: u64 = 25;
    pub const LARGE_FILE: u64 = 27;
    pub const NO_SEEK: u64 = 29;
    pub const NO_CALL: u64 = 38;
}

/// The system calls that a program can make.
#[allow(missing_docs, reason = "the manual's names in words")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Open,
    OpenAt,
    Close,
    Seek,
    Read,
    Write,
    ReadVector,
    WriteVector,
    Stat,
    StatAt,
    AccessAt,
    FileControl,
    Time,
    TimeOfDay,
    SystemName,
    Directory,
    Break,
    Map,
    Unmap,
    Exit,
    Abort,
    Reveal,
    /// A call that always returns the same value.
    Always(u64),
}

/// Returns the call for a number.
#[must_use]
pub fn call(number: u64) -> Option<Call> {
    let refused = |error: u64| Call::Always(error.wrapping_neg());
    Some(match number {
        17 => Call::Directory,
        25 => Call::FileControl,
        29 => refused(error::NO_TERMINAL),
        35 => refused(error::NOT_ALLOWED),
        48 => Call::AccessAt,
        56 => Call::OpenAt,
        57 => Call::Close,
        62 => Call::Seek,
        63 => Call::Read,
        64 => Call::Write,
        65 => Call::ReadVector,
        66 => Call::WriteVector,
        // There are no symbolic links.
        78 => refused(error::INVALID),
        79 => Call::StatAt,
        80 => Call::Stat,
        // Files are only written out after the program has ended.
        82 | 83 => Call::Always(0),
        93 | 94 => Call::Exit,
        // There is one thread, which never waits and receives no signals.
        96 | 172 | 178 => Call::Always(1),
        98 | 99 | 124 | 132 | 134 | 135 | 173..=177 => Call::Always(0),
        113 => Call::Time,
        129..=131 => Call::Abort,
        160 => Call::SystemName,
        169 => Call::TimeOfDay,
        214 => Call::Break,
        215 => Call::Unmap,
        222 => Call::Map,
        // Mapped memory is always readable and writable.
        226 | 233 => Call::Always(0),
        // `mremap`, hardware probes, limits, random numbers, restartable sequences, `statx`.
        216 | 258 | 261 | 278 | 291 | 293 => refused(error::NO_CALL),
        1024 => Call::Open,
        REVEAL => Call::Reveal,
        _ => return None,
    })
}

/// The call that opens words in memory to all parties. Arguments: the address, the number of words,
/// and the bytes of each. Other systems do not have this call, and the memory already holds the
/// values that would be opened.
pub const REVEAL: u64 = 0x7ac0;
