//! `parties.toml`: the members of a session, and where they are.
//!
//! ```toml
//! protocol = "additive"            # optional; by default the first available protocol
//! source = "dealer"                # optional: source of correlations, if the protocol uses any
//! timeout = 60                     # optional, seconds: longest wait for one message
//! checked = false                  # optional: check that computed values stay in range
//!
//! [[party]]                        # party 0; the order counts
//! address = "alice.example:7400"   # where the others reach it
//! listen = "0.0.0.0:7400"          # optional: where it listens, if elsewhere
//! certificate = "party-0.pem"      # relative to this file
//! key = "party-0.key"              # for the party itself; by default next to the certificate
//! correlations = "party-0.correlations"  # only for a source that reads files
//! device = "cpu"                   # optional: what this party evaluates products on
//!
//! [dealer]                         # only for a source with a dealer: the same entries
//! address = "dealer.example:7400"
//! certificate = "dealer.pem"
//!
//! [attestation]                    # optional: all members must attest; a policy of crates/attest
//! kind = "tdx"
//! ```

mod lenient_config;

pub use lenient_config::LenientConfig;

use crate::certificates::{self, Identity};
use crate::error::{DEALER, Error, Fault, Result, cause};
use crate::wording::Words;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Size of the largest file that is read, in bytes.
const LARGEST: u64 = 1 << 16;

/// Longest timeout: a day.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

/// A checked configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Name of the protocol, if the file names one.
    pub protocol: Option<String>,
    /// Name of the source of correlations.
    pub source: Option<String>,
    /// Longest wait for one message.
    pub timeout: Duration,
    /// Whether checked mode is on, in which computed values are checked to stay in range.
    pub checked: bool,
    parties: Vec<Party>,
    dealer: Option<Party>,
    attestation: Option<toml::Table>,
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    protocol: Option<String>,
    #[serde(default = "a_minute")]
    timeout: f64,
    source: Option<String>,
    #[serde(default)]
    checked: bool,
    party: Vec<Party>,
    dealer: Option<Party>,
    attestation: Option<toml::Table>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Party {
    address: String,
    listen: Option<String>,
    certificate: PathBuf,
    key: Option<PathBuf>,
    correlations: Option<PathBuf>,
    device: Option<String>,
}

impl Party {
    fn key(&self) -> PathBuf {
        let beside = || self.certificate.with_extension("key");
        self.key.clone().unwrap_or_else(beside)
    }
}

fn a_minute() -> f64 {
    60.0
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// `Setup`, naming file, line and remedy.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(&read_file(path)?, path)
    }

    /// Checks the text of a file; certificates are looked up relative to `path`.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let wrong = |reason: String| Error::setup(format!("{}: {reason}", path.display()));
        let document: Document = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            let what = format!(
                "{}: line {line}: {}",
                path.display(),
                plain(error.message())
            );
            Error::setup(Fault::new(
                what,
                "correct this line as examples/parties.toml has it",
            ))
        })?;
        let parties = document.party.len();
        if !(2..=crate::MOST_PARTIES).contains(&parties) {
            let most = crate::MOST_PARTIES;
            return Err(wrong(format!(
                "{parties} [[party]] tables; a session has 2 to {most}, one for each party"
            )));
        }
        if !(document.timeout > 0.0 && document.timeout <= LONGEST_TIMEOUT.as_secs_f64()) {
            return Err(wrong(format!(
                "timeout = {}; it is a number of seconds above 0 and at most {}",
                document.timeout,
                LONGEST_TIMEOUT.as_secs()
            )));
        }
        let of_all = [&document.protocol, &document.source];
        let members = document.party.iter().chain(&document.dealer);
        let of_members = members.map(|member| &member.device);
        for name in of_all.into_iter().chain(of_members).flatten() {
            if name.len() > 64 || !name.chars().all(|c| c.is_ascii_graphic()) {
                return Err(wrong(
                    "protocol, source and device are short names such as \"replicated\"".to_owned(),
                ));
            }
        }
        let called = |index: usize| {
            if index == parties {
                "the dealer".to_owned()
            } else {
                format!("party {index}")
            }
        };
        let members: Vec<&Party> = document.party.iter().chain(&document.dealer).collect();
        for (index, party) in members.iter().enumerate() {
            for address in [Some(&party.address), party.listen.as_ref()]
                .into_iter()
                .flatten()
            {
                check_address(address)
                    .map_err(|reason| wrong(format!("{}: {reason}", called(index))))?;
            }
            if let Some(other) = members[..index]
                .iter()
                .position(|other| other.address == party.address)
            {
                return Err(wrong(format!(
                    "{} and {} have the same address \"{}\"",
                    called(other),
                    called(index),
                    party.address
                )));
            }
        }
        Ok(Self {
            protocol: document.protocol,
            timeout: Duration::from_secs_f64(document.timeout),
            source: document.source,
            checked: document.checked,
            parties: document.party,
            dealer: document.dealer,
            attestation: document.attestation,
            path: path.to_owned(),
        })
    }

    /// Returns the number of computing parties.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.parties.len()
    }

    /// Returns the addresses at which the members reach each other, by party, the dealer last.
    ///
    /// # Errors
    /// `Setup` if a dealer is needed and the file has none.
    pub fn addresses(&self, dealer: bool) -> Result<Vec<String>> {
        Ok(self
            .members(dealer)?
            .map(|party| party.address.clone())
            .collect())
    }

    /// Returns the address on which a member listens. The dealer has the number after the last
    /// party.
    ///
    /// # Errors
    /// `Misuse` for a member that is not in the file.
    pub fn listen_address(&self, member: usize) -> Result<&str> {
        let entry = self.entry(member)?;
        Ok(entry.listen.as_ref().unwrap_or(&entry.address))
    }

    /// Reads all certificates and the key of a member from their files.
    ///
    /// # Errors
    /// `Misuse` for a member that is not in the file; `Setup` for files that cannot be read.
    pub fn identity(&self, member: usize, dealer: bool) -> Result<Identity> {
        // A member checks its own files first: a faulty certificate of another member is reported
        // by that member too.
        let key = read_key(&self.folder().join(self.entry(member)?.key()))?;
        Ok(Identity {
            certificates: self
                .members(dealer)?
                .enumerate()
                .map(|(member, party)| self.checked(member, party))
                .collect::<Result<_>>()?,
            key,
        })
    }

    /// Reads a member's certificate from its file.
    ///
    /// # Errors
    /// `Misuse` for a member that is not in the file; `Setup` for a file that cannot be read, or a
    /// certificate that links do not use.
    pub fn certificate(&self, member: usize) -> Result<String> {
        self.checked(member, self.entry(member)?)
    }

    fn checked(&self, member: usize, entry: &Party) -> Result<String> {
        let path = self.folder().join(&entry.certificate);
        let pem = read_file(&path)?;
        let parties = self.parties.len();
        let whose = Words::PARTIES.name(if member < parties { member } else { DEALER });
        let what = format!("the certificate of {whose}, {},", path.display());
        certificates::check(&pem, &what, false)?;
        Ok(pem)
    }

    /// Returns whether a member's key is on this machine.
    #[must_use]
    pub fn has_key(&self, member: usize) -> bool {
        let entry = self.entry(member);
        entry.is_ok_and(|entry| self.folder().join(entry.key()).exists())
    }

    /// Returns the path of a party's file of correlations, if the configuration names one.
    ///
    /// # Errors
    /// `Misuse` for a party that is not in the file.
    pub fn correlations(&self, party: usize) -> Result<Option<PathBuf>> {
        let entry = self.entry(party)?;
        Ok(entry
            .correlations
            .as_ref()
            .map(|path| self.folder().join(path)))
    }

    /// Returns the name of a member's device, if the file names one. The dealer has the number after
    /// the last party.
    ///
    /// # Errors
    /// `Misuse` for a member that is not in the file.
    pub fn device(&self, member: usize) -> Result<Option<&str>> {
        Ok(self.entry(member)?.device.as_deref())
    }

    /// Returns the table `[attestation]`, unchecked, if the file has one: its members must attest.
    #[must_use]
    pub fn attestation(&self) -> Option<&toml::Table> {
        self.attestation.as_ref()
    }

    /// Returns the folder of the file, in which the files that it names are looked up.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn members(&self, dealer: bool) -> Result<impl Iterator<Item = &Party>> {
        if dealer && self.dealer.is_none() {
            return Err(Error::setup(format!(
                "{}: the table [dealer] is missing, but the source of correlations is a dealer; \
                 add the table, with \
                 the dealer's address and certificate, to the file of every member, or choose \
                 another source",
                self.path.display()
            )));
        }
        let dealer = self.dealer.iter().filter(move |_| dealer);
        Ok(self.parties.iter().chain(dealer))
    }

    fn entry(&self, party: usize) -> Result<&Party> {
        let entry = self.parties.iter().chain(&self.dealer).nth(party);
        entry.ok_or_else(|| {
            let (file, last) = (self.path.display(), self.parties.len() - 1);
            Error::misuse(format!(
                "there is no party {party} in {file}; its parties are 0 to {last}"
            ))
        })
    }
}

/// Rewrites the parser's message in one line, in the terms of the file.
fn plain(message: &str) -> String {
    const NAMES: [(&str, &str); 7] = [
        ("`\"`", "a closing quote"),
        ("`", "\""),
        ("\n", ", "),
        ("expected f64", "a number is expected"),
        ("expected a sequence", "tables [[party]] are expected"),
        ("expected struct Party", "a table is expected"),
        ("expected a string", "a text in quotes is expected"),
    ];
    let replaced = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    NAMES.into_iter().fold(message.to_owned(), replaced)
}

fn check_address(address: &str) -> std::result::Result<(), String> {
    let port = address
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty())
        .map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(port))
            if port > 0
                && address.len() <= 256
                && address.chars().all(|c| c.is_ascii_graphic()) =>
        {
            Ok(())
        }
        _ => Err(format!(
            "address \"{}\" is not of the form host:port",
            address.escape_default()
        )),
    }
}

/// Reads a private key, which only its owner may be able to read.
///
/// # Errors
/// `Setup` for a file that cannot be read, or that others can read.
pub fn read_key(path: &Path) -> Result<String> {
    let text = read_file(path)?;
    let Some(mode) = open_mode(path) else {
        return Ok(text);
    };
    let path = path.display();
    Err(Error::setup(Fault::new(
        format!(
            "the private key {path} can be read by other users of this machine (mode {mode:03o})"
        ),
        format!("run: chmod 600 {path}"),
    )))
}

/// Returns the permissions of a file, if users other than its owner have access.
#[cfg(unix)]
pub(crate) fn open_mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
pub(crate) fn open_mode(_path: &Path) -> Option<u32> {
    None
}

fn read_file(path: &Path) -> Result<String> {
    let failed = |reason: String| {
        let what = format!("cannot read {}: {reason}", path.display());
        Error::setup(Fault::new(
            what,
            "check the path, and that the file is yours",
        ))
    };
    let file = File::open(path).map_err(|error| failed(cause(&error)))?;
    let mut text = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut text)
        .map_err(|error| failed(cause(&error)))?;
    if text.len() as u64 > LARGEST {
        return Err(failed(format!("it is larger than {LARGEST} bytes")));
    }
    String::from_utf8(text).map_err(|_| failed("it is not text in UTF-8".to_owned()))
}
