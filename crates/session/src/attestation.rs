//! What members of a session attest, and how they judge each other.

use attest::{Binding, Evidence, Policy, kind_of, program_of};
use mpc::{Error, Result};
use net::attested::{Attested, Attestor};
use net::config::Config;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use attest::{Verdict, tsm::FOLDER};

/// Release that every digest of a program contains.
const RELEASE: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// A policy, and the program of this member.
#[derive(Clone)]
pub struct Attestation {
    policy: Arc<Policy>,
    /// Digest of this member's program. The dealer has one of its own.
    program: [u8; 32],
    /// Digest of the policy, and of what else all members have agreed on.
    agreed: [u8; 32],
    /// What this member calls itself.
    own: &'static str,
    /// The file whose table `[attestation]` is the policy.
    pub(crate) file: &'static str,
}

/// Names of the files with a table `[attestation]` of a federation and a service.
const FEDERATION: &str = "federation.toml";
const SERVICE: &str = "service.toml";

/// Returns the digest of a program from its content, such as that of its file.
#[must_use]
pub fn program(content: &[u8]) -> [u8; 32] {
    program_of(&[RELEASE, b"party", content])
}

/// Returns the digest of what the servers of a federation run, from its rules as they are encoded.
#[must_use]
pub fn federation(rules: &[u8]) -> [u8; 32] {
    program_of(&[RELEASE, b"federation", rules])
}

/// Returns the digest of what the parties of a service run, from its rules as they are encoded.
#[must_use]
pub fn service(rules: &[u8]) -> [u8; 32] {
    program_of(&[RELEASE, b"service", rules])
}

/// Returns the digest of the dealer's program, which is part of tacit.
fn dealer() -> [u8; 32] {
    program_of(&[RELEASE, b"dealer"])
}

fn refused(error: &attest::Error) -> Error {
    Error::setup(format!("attestation: {error}"))
}

impl Attestation {
    /// Returns what a party of a trial on one machine attests.
    ///
    /// # Errors
    /// `Misuse` for another kind than "simulated", which needs a policy; `Setup` if the party
    /// runs another program than it was launched for.
    pub fn of_trial(kind: &str, accepted: [u8; 32], program: [u8; 32]) -> Result<Self> {
        Self::of(trial(kind, accepted)?, program)
    }

    /// Returns what the dealer of a trial on one machine attests.
    ///
    /// # Errors
    /// As [`Attestation::of_trial`].
    pub fn of_trial_dealer(kind: &str, accepted: [u8; 32]) -> Result<Self> {
        Ok(Self::unchecked(trial(kind, accepted)?, dealer()))
    }

    /// Returns what a party of a configuration file attests, if the file asks for it.
    ///
    /// # Errors
    /// `Setup` for a policy that is wrong, or a program that it does not name.
    pub(crate) fn of_party(config: &Config, content: Option<&[u8]>) -> Result<Option<Self>> {
        let Some(policy) = policy(config)? else {
            return Ok(None);
        };
        let content = content.filter(|content| !content.is_empty());
        let content = content.ok_or_else(|| {
            Error::setup(
                "attestation: it is not known which file runs, as in a notebook or a shell: put \
                 the program into a file, or give connect its content as program=",
            )
        })?;
        Self::of(policy, program(content)).map(Some)
    }

    /// Returns what the dealer of a configuration file attests, if the file asks for it.
    ///
    /// # Errors
    /// `Setup` for a policy that is wrong.
    pub(crate) fn of_dealer(config: &Config) -> Result<Option<Self>> {
        Ok(policy(config)?.map(|policy| Self::unchecked(policy, dealer())))
    }

    /// Returns what a server of a federation attests, to the other servers and to clients.
    /// `policy` is the text of its table, with absolute paths.
    ///
    /// # Errors
    /// `Setup` for a policy that is wrong, or that does not name the program of these rules.
    pub fn of_server(policy: &str, rules: &[u8]) -> Result<Self> {
        let policy = Policy::of_text(policy, Path::new("")).map_err(|error| refused(&error))?;
        let server = Self::of(policy, federation(rules))?;
        Ok(Self {
            own: "server",
            file: FEDERATION,
            ..server
        })
    }

    /// Returns what a party of a service attests, to the other parties and to clients. `policy` is
    /// the text of its table, with absolute paths.
    ///
    /// # Errors
    /// `Setup` for a policy that is wrong, or that does not name the program of these rules.
    pub fn of_service(policy: &str, rules: &[u8]) -> Result<Self> {
        let policy = Policy::of_text(policy, Path::new("")).map_err(|error| refused(&error))?;
        let party = Self::of(policy, service(rules))?;
        Ok(Self {
            file: SERVICE,
            ..party
        })
    }

    /// Returns what the dealer of a service attests.
    ///
    /// # Errors
    /// `Setup` for a policy that is wrong.
    pub fn of_service_dealer(policy: &str) -> Result<Self> {
        let policy = Policy::of_text(policy, Path::new("")).map_err(|error| refused(&error))?;
        Ok(Self::unchecked(policy, dealer()))
    }

    /// Returns what a client judges the servers of a federation, or the parties of a service, by.
    /// It runs none of their programs.
    ///
    /// # Errors
    /// `Setup` for a policy that is wrong.
    pub fn of_client(policy: &str, is_of_service: bool) -> Result<Self> {
        let policy = Policy::of_text(policy, Path::new("")).map_err(|error| refused(&error))?;
        Ok(Self {
            file: if is_of_service { SERVICE } else { FEDERATION },
            ..Self::unchecked(policy, [0; 32])
        })
    }

    /// Returns the name of the kind of evidence.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.policy.kind()
    }

    fn of(policy: Policy, program: [u8; 32]) -> Result<Self> {
        let checked = policy.check_program(&program);
        checked.map_err(|error| refused(&error))?;
        Ok(Self::unchecked(policy, program))
    }

    fn unchecked(policy: Policy, program: [u8; 32]) -> Self {
        Self {
            agreed: policy.digest(),
            policy: Arc::new(policy),
            program,
            own: "party",
            file: "parties.toml",
        }
    }

    /// Returns it for a session with these settings, which are part of what members attest.
    pub(crate) fn of_session(self, settings: &str) -> Self {
        let agreed = program_of(&[&self.policy.digest(), settings.as_bytes()]);
        Self { agreed, ..self }
    }

    /// Makes evidence of this machine and judges it, as the others would.
    ///
    /// # Errors
    /// `Setup` if this machine cannot attest, or the policy does not accept it.
    pub fn examine(&self) -> Result<Verdict> {
        let kind = kind_of(self.policy.kind());
        let kind = kind.ok_or_else(|| Error::setup("the kind of evidence is unknown"))?;
        let data = attest::binding::of_challenge("examination");
        let judged = Evidence::make(kind, &data).and_then(|evidence| {
            attest::judge(&evidence.encode(), &self.policy, Some(&data), attest::now())
        });
        judged.map_err(|error| refused(&error))
    }

    /// Makes evidence of this machine with that data.
    pub(crate) fn evidence(&self, data: &[u8; attest::DATA]) -> Result<Vec<u8>> {
        let kind = kind_of(self.policy.kind());
        let kind = kind.ok_or_else(|| Error::setup("the kind of evidence is unknown"))?;
        let evidence = Evidence::make(kind, data);
        Ok(evidence.map_err(|error| refused(&error))?.encode())
    }

    /// Returns the policy.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the digest of this member's program.
    pub(crate) fn own_program(&self) -> [u8; 32] {
        self.program
    }

    /// Returns the data in the report of a member.
    fn data(&self, about: &Attested<'_>) -> [u8; attest::DATA] {
        Binding {
            nonces: about.nonces,
            role: about.role,
            roster: about.roster,
            certificate: about.certificate,
            key: about.key,
            policy: self.agreed,
            program: about.program,
        }
        .data()
    }

    /// Checks the program that a member says it runs.
    fn check_program(&self, about: &Attested<'_>) -> std::result::Result<(), String> {
        if about.is_dealer {
            return match about.program == dealer() {
                true => Ok(()),
                false => Err("it does not run the dealer of this release".to_owned()),
            };
        }
        let known = self.policy.check_program(&about.program);
        known.map_err(|error| error.to_string())?;
        if self.program != dealer() && self.program != about.program {
            return Err(format!("it runs another program than this {}", self.own));
        }
        Ok(())
    }
}

/// Returns the policy of a trial on one machine.
fn trial(kind: &str, accepted: [u8; 32]) -> Result<Policy> {
    if kind == attest::simulated::NAME {
        return Ok(Policy::simulated(accepted));
    }
    Err(Error::misuse(format!(
        "attestation {kind:?} is not for parties on one machine: choose \"simulated\", or set \
         [attestation] in the parties.toml of parties on their own machines"
    )))
}

fn policy(config: &Config) -> Result<Option<Policy>> {
    let table = config.attestation();
    let policy = table.map(|table| Policy::of_table(table, config.folder()));
    policy.transpose().map_err(|error| refused(&error))
}

impl Attestor for Attestation {
    fn kind(&self) -> &'static str {
        self.policy.kind()
    }

    fn program(&self) -> [u8; 32] {
        self.program
    }

    fn policy(&self) -> [u8; 32] {
        self.agreed
    }

    fn make(&self, about: &Attested<'_>) -> Result<Vec<u8>> {
        self.evidence(&self.data(about))
    }

    fn judge(&self, about: &Attested<'_>, evidence: &[u8]) -> std::result::Result<(), String> {
        self.check_program(about)?;
        let judged = attest::judge(
            evidence,
            &self.policy,
            Some(&self.data(about)),
            attest::now(),
        );
        judged.map(drop).map_err(|error| error.to_string())
    }
}

/// The text that must be equal at both ends of a link.
impl fmt::Display for Attestation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = attest::hex(&self.policy.digest()[..4]);
        write!(
            f,
            "attested by {} under policy {digest}",
            self.policy.kind()
        )
    }
}

/// Draws a challenge.
///
/// # Errors
/// `Setup` if the operating system gives no random numbers.
pub fn challenge() -> Result<String> {
    Ok(attest::hex(kernels::stream::random_key()?.as_bytes()))
}

/// Makes evidence of this machine for a challenge.
///
/// # Errors
/// `Setup` if the machine cannot attest.
pub fn evidence(folder: &Path, challenge: &str) -> Result<Vec<u8>> {
    let data = attest::binding::of_challenge(challenge);
    let made = attest::kind_here(folder)
        .and_then(|kind| Ok(Evidence::of(kind, kind.make_in(folder, &data)?).encode()));
    made.map_err(|error| refused(&error))
}

/// Returns the measurement in simulated evidence of this release, in hexadecimal.
#[must_use]
pub fn simulated_measurement() -> String {
    attest::hex(&attest::simulated::measurement())
}

/// Makes simulated evidence for a challenge, which proves nothing.
#[must_use]
pub fn simulated_evidence(challenge: &str) -> Vec<u8> {
    let data = attest::binding::of_challenge(challenge);
    let report = attest::simulated::report(&data, None);
    Evidence::of(&attest::simulated::Simulated, report).encode()
}

/// Judges evidence against the policy in a file, offline: that it is for the challenge, if there
/// is one. Returns the kind, the measurement and the firmware's status.
///
/// # Errors
/// `Setup` for a policy that is wrong, or evidence that is refused.
pub fn judge(evidence: &[u8], policy: &Path, challenge: Option<&str>) -> Result<Verdict> {
    let data = challenge.map(attest::binding::of_challenge);
    let judged = Policy::read(policy)
        .and_then(|policy| attest::judge(evidence, &policy, data.as_ref(), attest::now()));
    judged.map_err(|error| refused(&error))
}

/// Returns what the threat model says about attested parties.
#[must_use]
pub fn threat_model(kind: &str) -> String {
    let promise = if kind == attest::simulated::NAME {
        "the evidence is simulated and proves nothing; with hardware, a party that deviates is \
         caught"
    } else {
        "a party that deviates is caught"
    };
    format!(
        "attested parties ({kind}): {promise}, as long as the measured image runs nothing but \
         tacit and lets nobody in, and nobody with physical access attacks its machine: who owns \
         the machine can forge its evidence, so this is not what replicated-malicious protects \
         against; the host may read data, but must not read the signing key"
    )
}
