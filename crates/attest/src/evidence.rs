//! Evidence and its verdict.

use crate::binding::DATA;
use crate::error::{Error, Result, hex};
use crate::kind::Kind;
use crate::kinds::{KINDS, kind_of};
use crate::policy::Policy;
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest evidence in bytes.
pub const LONGEST: usize = 1 << 16;

const MAGIC: [u8; 7] = *b"tacit-e";
const VERSION: u8 = b'1';
const HEAD: usize = MAGIC.len() + 2;

/// A report and what is needed to check it, of a named kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    kind: &'static str,
    number: u8,
    body: Vec<u8>,
}

/// What was found in evidence that was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Kind of the evidence.
    pub kind: &'static str,
    /// Measurement of the software, in hexadecimal.
    pub measurement: String,
    /// Status or version of the platform's firmware.
    pub tcb: String,
}

impl Evidence {
    /// Makes evidence of this machine.
    ///
    /// # Errors
    /// `Machine` if it cannot make a report of that kind.
    pub fn make(kind: &dyn Kind, data: &[u8; DATA]) -> Result<Self> {
        Ok(Self::of(kind, kind.make(data)?))
    }

    /// Wraps a report of a kind.
    #[must_use]
    pub fn of(kind: &dyn Kind, body: Vec<u8>) -> Self {
        let (kind, number) = (kind.name(), kind.number());
        Self { kind, number, body }
    }

    /// Returns the name of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the bytes of a file or message: `tacit-e1`, the kind's number, and the report.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&MAGIC[..], &[VERSION, self.number], &self.body].concat()
    }

    /// Reads the bytes of a file or message.
    ///
    /// # Errors
    /// `Malformed`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let malformed = |what: &str| Error::Malformed(what.to_owned());
        if bytes.len() > LONGEST {
            return Err(malformed("it is longer than 64 KiB"));
        }
        let Some((head, body)) = bytes.split_at_checked(HEAD) else {
            return Err(malformed("it is too short"));
        };
        if head[..MAGIC.len()] != MAGIC {
            return Err(malformed("it does not begin as evidence of tacit does"));
        }
        if head[HEAD - 2] != VERSION {
            return Err(malformed("it is of another release of tacit"));
        }
        let number = head[HEAD - 1];
        let kind = KINDS.into_iter().find(|kind| kind.number() == number);
        let kind = kind.ok_or_else(|| malformed("its kind is unknown"))?;
        Ok(Self::of(kind, body.to_vec()))
    }
}

/// Judges evidence: the vendor's chain and the platform's status, then that it is not in debug
/// mode, its measurement, and its data.
///
/// # Errors
/// The first reason to refuse it.
pub fn judge(
    evidence: &[u8],
    policy: &Policy,
    data: Option<&[u8; DATA]>,
    now: u64,
) -> Result<Verdict> {
    let kind = kind_of(policy.kind());
    let kind = kind.ok_or_else(|| Error::Policy("its kind is unknown".to_owned()))?;
    judge_as(kind, evidence, policy, data, now)
}

/// Judges evidence of a kind, as [`judge`] does with the kind that the policy names.
pub(crate) fn judge_as(
    kind: &dyn Kind,
    evidence: &[u8],
    policy: &Policy,
    data: Option<&[u8; DATA]>,
    now: u64,
) -> Result<Verdict> {
    let evidence = Evidence::decode(evidence)?;
    let accepted = kind.name();
    if evidence.kind != accepted {
        let found = evidence.kind.to_owned();
        return Err(Error::Kind { found, accepted });
    }
    let report = kind.check(&evidence.body, policy, now)?;
    if report.debug {
        return Err(Error::Debug);
    }
    if !policy.measurements().contains(&report.measurement) {
        return Err(Error::Measurement(hex(&report.measurement)));
    }
    if data.is_some_and(|data| *data != report.data) {
        return Err(Error::Data);
    }
    Ok(Verdict {
        kind: accepted,
        measurement: hex(&report.measurement),
        tcb: report.tcb,
    })
}

/// Returns this machine's time in seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
