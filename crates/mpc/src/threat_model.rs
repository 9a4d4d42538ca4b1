//! The threat model of a session: what it protects, and against whom. Every report shows it.

use std::fmt;

/// Third parties that the session needs, and the trust that they require.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trust {
    /// The name of the source of correlations, if there is one.
    pub source: Option<&'static str>,
    /// How the correlations are made, and who must be trusted with what for that.
    pub statement: &'static str,
}

impl Trust {
    /// No third party and no correlations.
    pub const NOBODY: Self = Self {
        source: None,
        statement: "",
    };
}

/// The coalitions of parties that learn nothing in a session, and the assumptions behind that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreatModel {
    /// The number of parties.
    pub parties: usize,
    /// How many parties may pool their views and still learn nothing. `None` means no secrecy at
    /// all.
    pub colluding: Option<usize>,
    /// Whether the parties are assumed to follow the protocol.
    pub semi_honest: bool,
    /// The third parties that are needed.
    pub trust: Trust,
}

impl fmt::Display for ThreatModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(colluding) = self.colluding else {
            return write!(
                f,
                "NO SECRECY: every party holds all values in the clear (reference for tests)"
            );
        };
        let behaviour = if self.semi_honest {
            "semi-honest: secrecy holds while all follow the protocol"
        } else {
            "malicious: a party that deviates is caught before any output"
        };
        let who = match colluding {
            0 => "no party may be corrupt".to_owned(),
            1 => "no single party learns anything, any two together learn everything".to_owned(),
            n => format!("no {n} parties together learn anything"),
        };
        write!(f, "{} parties, {who}; {behaviour}", self.parties)?;
        match self.trust.statement {
            "" => Ok(()),
            statement => write!(f, "; {statement}"),
        }
    }
}
