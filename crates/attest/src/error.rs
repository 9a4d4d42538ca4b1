//! Why evidence, a policy or a machine is refused.

/// Result of every function that judges or makes evidence.
pub type Result<T> = std::result::Result<T, Error>;

/// Reasons of refusals. None holds a secret: evidence and policies are public.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not evidence.
    #[error("the evidence is malformed: {0}")]
    Malformed(String),
    /// The evidence is of another kind than the policy accepts.
    #[error("the evidence is of kind \"{found}\", and the policy accepts \"{accepted}\" alone")]
    Kind {
        /// The kind of the evidence.
        found: String,
        /// The kind that the policy accepts.
        accepted: &'static str,
    },
    /// Signatures, certificates, revocation lists or collateral do not hold.
    #[error("the vendor's chain does not hold: {0}")]
    Chain(String),
    /// The status of the platform's firmware is not one that the policy names.
    #[error("the platform's firmware is {found}, and the policy accepts {accepted}")]
    Tcb {
        /// The status or version of the platform.
        found: String,
        /// What the policy accepts.
        accepted: String,
    },
    /// The host can read and change the guest's memory.
    #[error("the machine runs in debug mode, in which its host can read and change everything")]
    Debug,
    /// The guest was started in a way that the policy does not accept.
    #[error("the guest is not as the policy demands: {0}")]
    Guest(String),
    /// Other software runs than the policy names.
    #[error("the measurement {0} is not among those that the policy accepts")]
    Measurement(String),
    /// The program is not one that the policy names.
    #[error("the program {0} is not among those that the policy accepts")]
    Program(String),
    /// The evidence was made for something else: another session, party, key or challenge.
    #[error(
        "the evidence was made for something else: another session, party, certificate, key, \
         policy, program or challenge"
    )]
    Data,
    /// A policy is wrong.
    #[error("the policy is wrong: {0}")]
    Policy(String),
    /// This machine cannot make evidence.
    #[error("this machine cannot attest: {0}")]
    Machine(String),
}

/// Returns bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads hexadecimal digits; `None` for anything else.
#[must_use]
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}
