//! Every decoder of bytes that others wrote, as a target of cargo-fuzz. `fuzz/README.md` says how
//! to run them.
//!
//! A target takes any bytes and says whether its decoder took them. It must not panic, hang, or
//! hold much memory, and what a decoder took must have the properties that its target asserts.

mod edits;
mod files;
mod messages;
mod network;
mod programs;

/// A decoder, and what fuzzing begins with.
pub struct Target {
    /// Of its binary and its corpus.
    pub name: &'static str,
    /// Whether the decoder takes these bytes.
    pub takes: fn(&[u8]) -> bool,
    /// Inputs that the decoder takes.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them. Each has a binary in `fuzz_targets`.
pub const TARGETS: [Target; 11] = [
    network::FRAMES,
    network::GREETINGS,
    network::SUBMISSIONS,
    network::CERTIFICATES,
    network::CONFIGURATIONS,
    files::DEMANDS,
    files::SEALED,
    messages::TRANSFERS,
    messages::CIPHERTEXTS,
    programs::PROGRAMS,
    programs::INSTRUCTIONS,
];

/// The target of that name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn target(name: &str) -> &'static Target {
    let named = TARGETS.iter().find(|target| target.name == name);
    named.expect("a target of this name")
}

/// Runs a target on bytes.
pub fn run(name: &str, data: &[u8]) {
    (target(name).takes)(data);
}
