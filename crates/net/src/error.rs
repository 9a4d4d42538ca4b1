//! Errors by blame.

use std::{fmt, io};

/// In an error, the party that deals correlations and does not compute.
pub const DEALER: usize = usize::MAX;

/// What to do where public values differ.
pub(crate) const SAME_VALUES: &str = "run the same program with the same public values in every party; \
     share what one party has or draws (tacit.share, tacit.share_module), or draw it in all parties alike \
     (with tacit.public_random():)";

/// Whose public values no other party has.
fn alone(odd: Option<usize>) -> String {
    odd.map_or_else(String::new, |party| {
        format!(", and those of {} no other party has", called(party))
    })
}

/// What to do where programs differ.
pub(crate) const SAME_PROGRAM: &str = "run the same program with the same shapes and options in every party; what it \
     draws, such as the order of batches, draw in all parties alike (with tacit.public_random():)";

/// What a member of the mesh is called.
#[must_use]
pub fn called(party: usize) -> String {
    if party == DEALER {
        "the dealer".to_owned()
    } else {
        format!("party {party}")
    }
}

/// Where a party's program is; its step by number and name, with what else differs there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// At a step.
    At(String),
    /// At its end, after that step.
    Ended(String),
}

/// Where two parties' programs are that differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Where this party's program is.
    pub ours: Place,
    /// Where the other's is.
    pub theirs: Place,
    /// The first step whose public values were not compared before: how many bits a step drops, and which steps
    /// there are, may follow from them.
    pub uncompared: Option<String>,
    /// The one of the two whose program is not that of the others, if that is known.
    pub odd: Option<usize>,
    /// Whether steps followed from what parties told each other, so that it may come of a third one.
    pub relayed: bool,
}

impl Difference {
    /// In words, with both parties' names.
    pub(crate) fn between(&self, one: &str, other: &str) -> String {
        let places = match (&self.ours, &self.theirs) {
            (Place::At(a), Place::At(b)) => format!("{one} is at step {a}, {other} at step {b}"),
            (Place::At(a), Place::Ended(b)) => {
                format!("{other} ended its program after step {b} while {one} was at step {a}")
            }
            (Place::Ended(a), Place::At(b)) => {
                format!("{one} ended its program after step {a} while {other} was at step {b}")
            }
            (Place::Ended(a), Place::Ended(b)) => {
                format!("{one} ended its program after step {a}, {other} after step {b}")
            }
        };
        let values = self.uncompared.as_ref().map(|step| {
            format!(
                "; or what the parties take for public differs, at the earliest in step \"{step}\": share what one \
                 party has (tacit.share, tacit.share_module)"
            )
        });
        let odd = self.odd.map(|party| {
            let name = called(party);
            format!(", and the program of {name} is not that of the others")
        });
        let told = if self.relayed {
            "; or some party, which need not be one of these two, told the others different things"
        } else {
            ""
        };
        places + &odd.unwrap_or_default() + told + &values.unwrap_or_default()
    }
}

/// What is wrong, and what can be done about it where that is known: two texts, since who lists them wants both.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Fault {
    /// What is wrong.
    pub what: String,
    /// What to do, or nothing.
    pub remedy: String,
}

impl Fault {
    /// A fault that has a remedy.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remedy.as_str() {
            "" => f.write_str(&self.what),
            remedy => write!(f, "{}; {remedy}", self.what),
        }
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self::new(what, "")
    }
}

impl From<&str> for Fault {
    fn from(what: &str) -> Self {
        Self::new(what, "")
    }
}

/// What can go wrong between parties. Each says who, in which step, why, and what to do; none ever
/// holds a value that was computed on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Another party failed, stalled, died or deviated.
    #[error("{} failed in step \"{step}\": {reason}", called(*.party))]
    Peer {
        /// The party at fault, or [`DEALER`].
        party: usize,
        /// The step of this party when it learned of it.
        step: String,
        /// What is known of the cause, and the remedy.
        reason: String,
    },
    /// Two parties run different programs, or the same program on different shapes.
    #[error(
        "the parties' programs differ: {}; {SAME_PROGRAM}",
        .difference.between("this party", &called(*.party))
    )]
    Desync {
        /// The party whose message did not fit, or [`DEALER`].
        party: usize,
        /// The name of this party's step.
        step: String,
        /// In what.
        difference: Box<Difference>,
    },
    /// Two parties took different values for public.
    #[error(
        "the public values of this party and of {} differ, at the earliest in step \"{step}\"{}: {SAME_VALUES}",
        called(*.party),
        alone(*.odd)
    )]
    Differ {
        /// The party whose values are others.
        party: usize,
        /// The first step whose public values were not compared before.
        step: String,
        /// Whose values no other party has, if that is known.
        odd: Option<usize>,
    },
    /// A server does not take what this client asks or hands in.
    #[error("server {server} refused: {reason}")]
    Refused {
        /// Which of them.
        server: usize,
        /// Why, in its words.
        reason: String,
    },
    /// The network itself failed.
    #[error("network: {reason}")]
    Network {
        /// What failed, and the remedy.
        reason: String,
    },
    /// Configuration, addresses or certificates are wrong.
    #[error("setup: {fault}")]
    Setup {
        /// What is wrong, and the remedy.
        fault: Fault,
    },
    /// The user ended this party.
    #[error("it was interrupted")]
    Interrupted,
    /// This party's own program asked for what cannot be.
    #[error("{reason}")]
    Misuse {
        /// What was asked, and what can be.
        reason: String,
    },
    /// What all parties run alike cannot go on, by what all of them know: each would find the same, and which of
    /// them tells the others first is chance.
    #[error("{reason}")]
    Stopped {
        /// Where, why, and what to do about it; nothing that one party alone has.
        reason: String,
    },
}

/// The result of everything that uses links.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// [`Error::Peer`].
    pub fn peer(party: usize, step: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Peer {
            party,
            step: step.into(),
            reason: reason.into(),
        }
    }

    /// Whom it blames, if not this party itself.
    pub(crate) fn blamed(&self) -> Option<usize> {
        match self {
            Self::Peer { party, .. } | Self::Desync { party, .. } | Self::Differ { party, .. } => {
                Some(*party)
            }
            _ => None,
        }
    }

    /// The reason alone, as the others are told it.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::Peer { reason, .. }
            | Self::Refused { reason, .. }
            | Self::Network { reason }
            | Self::Misuse { reason }
            | Self::Stopped { reason } => reason.clone(),
            Self::Setup { fault } => fault.to_string(),
            Self::Desync { .. } | Self::Differ { .. } | Self::Interrupted => self.to_string(),
        }
    }

    /// [`Error::Network`].
    pub fn network(reason: impl Into<String>) -> Self {
        Self::Network {
            reason: reason.into(),
        }
    }

    /// [`Error::Setup`].
    pub fn setup(fault: impl Into<Fault>) -> Self {
        Self::Setup {
            fault: fault.into(),
        }
    }

    /// [`Error::Stopped`].
    pub fn stopped(reason: impl Into<String>) -> Self {
        Self::Stopped {
            reason: reason.into(),
        }
    }

    /// [`Error::Misuse`].
    pub fn misuse(reason: impl Into<String>) -> Self {
        Self::Misuse {
            reason: reason.into(),
        }
    }
}

/// Why something failed that the operating system was asked for, in plain words.
#[must_use]
pub fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it was silent".to_owned(),
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => "the connection broke".to_owned(),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "no way leads to its machine".to_owned()
        }
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::NotADirectory => "a part of its path is no folder".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "nothing can be written there".to_owned(),
        _ => {
            let text = error.to_string();
            let end = text.find(" (os error").unwrap_or(text.len());
            // The standard library has no kind for a name that is not found.
            if text.starts_with("failed to lookup address") {
                "its name is not known here".to_owned()
            } else {
                text[..end].to_owned()
            }
        }
    }
}

/// [`Error::Network`] where a thread could not be started.
#[must_use]
pub fn no_thread(of: &str) -> Error {
    Error::network(format!(
        "cannot start the thread of {of}: this machine has no room for more; end other programs, or raise the \
         limits of threads and memory"
    ))
}

impl From<kernels::stream::EntropyError> for Error {
    fn from(error: kernels::stream::EntropyError) -> Self {
        Self::setup(error.to_string())
    }
}
