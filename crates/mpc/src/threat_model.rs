//! What a session protects, and against whom: a value that every report shows.

use std::fmt;

/// What besides the computing parties must be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Nothing: the parties need nobody else.
    Nobody,
    /// Oblivious transfer between the parties; they need nobody else.
    Transfer,
    /// Homomorphic encryption, and oblivious transfer, between the parties; they need nobody else.
    Encryption,
    /// A dealer of correlations, who learns shapes and counts.
    Dealer,
    /// A file of correlations that the parties made ahead from another source.
    File,
}

impl Trust {
    /// The name of the source of correlations, where there is one.
    #[must_use]
    pub fn source(self) -> Option<&'static str> {
        match self {
            Self::Nobody => None,
            Self::Transfer => Some("ot"),
            Self::Encryption => Some("he"),
            Self::Dealer => Some("dealer"),
            Self::File => Some("file"),
        }
    }
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
        write!(
            f,
            "{} parties, {who}; {behaviour}{}",
            self.parties, self.trust
        )
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nobody => "",
            Self::Transfer => {
                "; correlations by oblivious transfer between the parties: no third party is needed"
            }
            Self::Encryption => {
                "; correlations by oblivious transfer and homomorphic encryption (ring-LWE) between the parties: no third party is needed"
            }
            Self::Dealer => {
                "; correlations from a dealer, who sees shapes and counts only, and must not collude with any party"
            }
            Self::File => "; correlations from files made ahead, each used once",
        })
    }
}
