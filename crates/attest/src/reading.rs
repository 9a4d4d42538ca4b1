//! Reading of policies, from files of their own or from tables of others.
//!
//! ```toml
//! kind = "tdx"                     # or "sev-snp", or "simulated"
//! measurements = ["5be56d41..."]   # in hexadecimal, as `tacit attest` prints them
//! programs = ["a3f1..."]           # in hexadecimal; for sessions of parties
//! statuses = ["UpToDate"]          # optional, "tdx": statuses of firmware that are accepted
//! least_evaluation = 17            # optional, "tdx": least number of the vendor's evaluation
//! collateral = "collateral.json"   # the vendor's collateral, relative to the policy
//! least_tcb = { milan = { bootloader = 4, tee = 0, snp = 24, microcode = 219 } } # "sev-snp"
//! allow_smt = true                 # optional, "sev-snp": cores may run two threads each
//! allow_vlek = true                # optional, "sev-snp": a cloud provider's key may sign
//! demand_alias_check = true        # optional, "sev-snp": the memory was checked for aliases
//! vmpl = 0                         # optional, "sev-snp": privilege level of what attests
//! allow_simulated = true           # only for "simulated", and needed there
//! ```

use crate::error::{Error, Result, from_hex};
use crate::kinds::kind_of;
use crate::policy::{GuestRules, Policy, STATUSES};
use crate::versions::LeastVersions;
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Size of the largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Most entries of one list.
const MOST: usize = 64;

/// The lowest privilege level of SEV-SNP.
const LOWEST_LEVEL: u32 = 3;

/// A policy as it is written, in a file of its own or in a table of another file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    kind: String,
    measurements: Vec<String>,
    #[serde(default)]
    programs: Vec<String>,
    statuses: Option<Vec<String>>,
    least_evaluation: Option<u32>,
    least_tcb: Option<LeastVersions>,
    allow_smt: Option<bool>,
    allow_vlek: Option<bool>,
    demand_alias_check: Option<bool>,
    vmpl: Option<u32>,
    collateral: Option<PathBuf>,
    #[serde(default)]
    allow_simulated: bool,
}

impl Entries {
    /// Returns the statuses of firmware that are accepted.
    fn statuses(&self) -> Result<Vec<&'static str>> {
        let Some(written) = &self.statuses else {
            return Ok(vec![STATUSES[0]]);
        };
        if written.is_empty() {
            return Err(Error::Policy(
                "statuses is empty: leave it out to accept UpToDate alone".to_owned(),
            ));
        }
        let known = |status: &String| {
            let known = STATUSES.into_iter().find(|known| known == status);
            known.ok_or_else(|| {
                Error::Policy(format!(
                    "statuses has \"{}\"; accepted can be {}",
                    status.escape_default(),
                    STATUSES.join(", ")
                ))
            })
        };
        let mut statuses = written.iter().map(known).collect::<Result<Vec<_>>>()?;
        statuses.sort_unstable();
        Ok(statuses)
    }

    /// Returns what is demanded of a guest of SEV-SNP. Entries of another kind are refused: who
    /// wrote them expects them to count.
    fn guest(&self, kind: &str) -> Result<Option<GuestRules>> {
        let is_snp = kind == crate::sev_snp::NAME;
        let written = [
            ("statuses", !is_snp, self.statuses.is_some()),
            ("least_evaluation", !is_snp, self.least_evaluation.is_some()),
            ("least_tcb", is_snp, self.least_tcb.is_some()),
            ("allow_smt", is_snp, self.allow_smt.is_some()),
            ("allow_vlek", is_snp, self.allow_vlek.is_some()),
            (
                "demand_alias_check",
                is_snp,
                self.demand_alias_check.is_some(),
            ),
            ("vmpl", is_snp, self.vmpl.is_some()),
        ];
        if let Some((name, ..)) = written.iter().find(|(_, fits, is_set)| *is_set && !fits) {
            return Err(Error::Policy(format!("{name} is not for kind \"{kind}\"")));
        }
        if let Some(vmpl) = self.vmpl.filter(|vmpl| *vmpl > LOWEST_LEVEL) {
            return Err(Error::Policy(format!(
                "vmpl = {vmpl}; privilege levels are 0 to {LOWEST_LEVEL}"
            )));
        }
        if let Some(what) = self.least_tcb.and_then(|least| least.defect()) {
            return Err(Error::Policy(format!("least_tcb {what}")));
        }
        Ok(self.least_tcb.map(|least| GuestRules {
            least,
            allow_smt: self.allow_smt.unwrap_or(false),
            allow_vlek: self.allow_vlek.unwrap_or(false),
            demand_alias_check: self.demand_alias_check.unwrap_or(false),
            vmpl: self.vmpl.unwrap_or(0),
        }))
    }
}

impl Policy {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// `Policy`, which names the file.
    pub fn read(path: &Path) -> Result<Self> {
        let at = |what: String| Error::Policy(format!("{}: {what}", path.display()));
        let text = String::from_utf8(read_file(path)?);
        let text = text.map_err(|_| at("it is not text in UTF-8".to_owned()))?;
        let entries = entries(&text).map_err(at)?;
        Self::of(&entries, path.parent().unwrap_or(Path::new("")))
    }

    /// Checks the text of a policy; files are looked up in `folder`.
    ///
    /// # Errors
    /// `Policy`.
    pub fn of_text(text: &str, folder: &Path) -> Result<Self> {
        Self::of(&entries(text).map_err(Error::Policy)?, folder)
    }

    /// Checks a table of another file; files are looked up in `folder`.
    ///
    /// # Errors
    /// `Policy`.
    pub fn of_table(table: &toml::Table, folder: &Path) -> Result<Self> {
        let entries: Entries = table.clone().try_into().map_err(|error: toml::de::Error| {
            Error::Policy(error.message().replace('\n', ", ").replace('`', "\""))
        })?;
        Self::of(&entries, folder)
    }

    /// Checks entries; files are looked up in `folder`.
    ///
    /// # Errors
    /// `Policy` for entries that are wrong, or lack what their kind needs.
    fn of(entries: &Entries, folder: &Path) -> Result<Self> {
        let wrong = |what: String| Err(Error::Policy(what));
        let Some(kind) = kind_of(&entries.kind) else {
            return wrong(format!(
                "kind = \"{}\"; kinds are \"tdx\", \"sev-snp\" and \"simulated\"",
                entries.kind.escape_default()
            ));
        };
        let simulated = kind.name() == crate::simulated::NAME;
        if simulated != entries.allow_simulated {
            return wrong(if simulated {
                "simulated evidence proves nothing: set allow_simulated = true for a trial, or \
                 choose \"tdx\" or \"sev-snp\""
                    .to_owned()
            } else {
                format!(
                    "allow_simulated is for kind \"simulated\", not \"{}\"",
                    kind.name()
                )
            });
        }
        let guest = entries.guest(kind.name())?;
        let collateral = entries.collateral.as_ref();
        let collateral = collateral.map(|path| read_file(&folder.join(path)));
        let policy = Self {
            kind: kind.name(),
            measurements: digests(
                "measurements",
                &entries.measurements,
                kind.measurement_bytes(),
            )?,
            programs: digests("programs", &entries.programs, 32)?,
            statuses: entries.statuses()?,
            least_evaluation: entries.least_evaluation.unwrap_or(0),
            guest,
            collateral: collateral.transpose()?,
        };
        if policy.measurements.is_empty() {
            return wrong("measurements is empty: name those that are accepted".to_owned());
        }
        kind.check_policy(&policy)?;
        Ok(policy)
    }

    /// Returns the policy of a trial on one machine: simulated evidence of this release, for one
    /// program.
    #[must_use]
    pub fn simulated(program: [u8; 32]) -> Self {
        Self {
            kind: crate::simulated::NAME,
            measurements: vec![crate::simulated::measurement().to_vec()],
            programs: vec![program.to_vec()],
            statuses: vec![STATUSES[0]],
            least_evaluation: 0,
            guest: None,
            collateral: None,
        }
    }
}

/// Parses the entries of a policy; an error has the line.
fn entries(text: &str) -> std::result::Result<Entries, String> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        let message = error.message().replace('\n', ", ").replace('`', "\"");
        format!("line {line}: {message}")
    })
}

fn digests(what: &str, texts: &[String], bytes: usize) -> Result<Vec<Vec<u8>>> {
    if texts.len() > MOST {
        return Err(Error::Policy(format!(
            "{what} has more than {MOST} entries"
        )));
    }
    let mut digests = Vec::new();
    for text in texts {
        let read = from_hex(text).filter(|read| read.len() == bytes);
        digests.push(read.ok_or_else(|| {
            let digits = 2 * bytes;
            Error::Policy(format!(
                "{what} has an entry that is not {digits} hexadecimal digits"
            ))
        })?);
    }
    digests.sort_unstable();
    digests.dedup();
    Ok(digests)
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    let failed = |what: String| {
        Error::Policy(format!(
            "cannot read {}: {what}; check the path",
            path.display()
        ))
    };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed(format!("it is larger than {LARGEST} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Policy> {
        Policy::of_text(text, Path::new("nowhere"))
    }

    fn text(kind: &str, digits: usize, rest: &str) -> String {
        format!(
            "kind = \"{kind}\"\nmeasurements = [\"{}\"]\n{rest}",
            "ab".repeat(digits / 2)
        )
    }

    const LEAST: &str =
        "least_tcb = { milan = { bootloader = 3, tee = 0, snp = 8, microcode = 115 } }";

    #[test]
    fn whatever_is_wrong_is_named() {
        let simulated = "allow_simulated = true";
        let cases = [
            (text("sgx", 96, ""), "kinds are"),
            (text("simulated", 96, ""), "allow_simulated = true"),
            (text("tdx", 64, simulated), "allow_simulated is for"),
            (text("simulated", 94, simulated), "96 hexadecimal digits"),
            (
                text(
                    "simulated",
                    96,
                    "allow_simulated = true\nprograms = [\"ab\"]",
                ),
                "64 hexa",
            ),
            (
                text(
                    "simulated",
                    96,
                    "allow_simulated = true\nstatuses = [\"Revoked\"]",
                ),
                "Revoked",
            ),
            (
                text("simulated", 96, "allow_simulated = true\nstatuses = []"),
                "is empty",
            ),
            (
                text("simulated", 96, "allow_simulated = true\nsurprise = 1"),
                "surprise",
            ),
            (text("tdx", 64, ""), "collateral"),
            (
                text("tdx", 64, "collateral = \"c.json\""),
                "cannot read nowhere/c.json",
            ),
            (text("sev-snp", 96, ""), "needs least_tcb"),
            (text("sev-snp", 96, LEAST), "needs collateral"),
            (text("sev-snp", 96, "statuses = []"), "statuses is not for"),
            (
                text("sev-snp", 96, "least_evaluation = 1"),
                "least_evaluation is not",
            ),
            (text("tdx", 64, LEAST), "least_tcb is not for kind \"tdx\""),
            (text("tdx", 64, "allow_smt = true"), "allow_smt is not for"),
            (text("tdx", 64, "vmpl = 0"), "vmpl is not for"),
            (text("tdx", 64, "allow_vlek = true"), "allow_vlek is not"),
            (
                text("tdx", 64, "demand_alias_check = true"),
                "demand_alias_check is not",
            ),
            (
                text("sev-snp", 96, &format!("vmpl = 4\n{LEAST}")),
                "levels are 0 to 3",
            ),
            (
                text("sev-snp", 96, "least_tcb = {}"),
                "least_tcb names no generation",
            ),
            (
                text(
                    "sev-snp",
                    96,
                    &LEAST.replace("bootloader", "fmc = 1, bootloader"),
                ),
                "fmc, which Turin alone",
            ),
            (
                "kind = \"simulated\"\nmeasurements = []\nallow_simulated = true".into(),
                "is empty",
            ),
        ];
        for (text, names) in cases {
            let error = parse(&text).expect_err(&text).to_string();
            assert!(error.contains(names), "{text}\n{error}");
        }
        parse(&text("simulated", 96, simulated)).unwrap();
    }

    #[test]
    fn the_digest_is_of_what_is_accepted() {
        let base = "allow_simulated = true\n";
        let one = parse(&text("simulated", 96, base)).unwrap();
        let programs = format!("{base}programs = [\"{}\"]", "cd".repeat(32));
        let statuses = format!("{base}statuses = [\"OutOfDate\"]");
        let least = format!("{base}least_evaluation = 3");
        for other in [programs, statuses, least] {
            assert_ne!(
                parse(&text("simulated", 96, &other)).unwrap().digest(),
                one.digest()
            );
        }
        assert!(
            one.check_program(&[0; 32]).is_err(),
            "no program is named, so none is accepted"
        );
    }
}
