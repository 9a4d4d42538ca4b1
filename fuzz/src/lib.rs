//! Fuzz targets of cargo-fuzz for every decoder of bytes from others. `fuzz/README.md` describes
//! how to run them.
//!
//! A target takes any bytes and reports whether its decoder accepted them. It must not panic, hang,
//! or use much memory, and accepted bytes must have the properties that the target asserts.

mod edits;
mod files;
mod messages;
mod network;
mod programs;
mod requests;

/// A decoder, and the inputs that fuzzing starts with.
pub struct Target {
    /// The name of its binary and its corpus.
    pub name: &'static str,
    /// Runs the decoder and returns whether it accepts these bytes.
    pub takes: fn(&[u8]) -> bool,
    /// Returns inputs that the decoder accepts.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets. Each has a binary in `fuzz_targets`.
pub const TARGETS: [Target; 12] = [
    network::FRAMES,
    network::GREETINGS,
    network::SUBMISSIONS,
    requests::REQUESTS,
    network::CERTIFICATES,
    network::CONFIGURATIONS,
    files::DEMANDS,
    files::SEALED,
    messages::TRANSFERS,
    messages::CIPHERTEXTS,
    programs::PROGRAMS,
    programs::INSTRUCTIONS,
];

/// Returns the target with this name.
///
/// # Panics
/// If no target has this name.
#[must_use]
pub fn target(name: &str) -> &'static Target {
    let named = TARGETS.iter().find(|target| target.name == name);
    named.expect("a target of this name")
}

/// Runs a target on bytes.
pub fn run(name: &str, data: &[u8]) {
    (target(name).takes)(data);
}
