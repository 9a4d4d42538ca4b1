//! What a session protects, and against whom: a value that every report shows.

use std::fmt;

/// Whom the parties need besides themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trust {
    /// The source of correlations, by name, where there is one.
    pub source: Option<&'static str>,
    /// How they are made, and who must be trusted with what for it.
    pub statement: &'static str,
}

impl Trust {
    /// The parties need nobody else, and no correlations.
    pub const NOBODY: Self = Self {
        source: None,
        statement: "",
    };
}

/// Who may do what without learning anything, for one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreatModel {
    /// Number of parties.
    pub parties: usize,
    /// How many of them may pool what they see and still learn nothing; `None`: no secrecy at all.
    pub colluding: Option<usize>,
    /// Whether the parties are assumed to follow the protocol.
    pub semi_honest: bool,
    /// Who else is needed.
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
