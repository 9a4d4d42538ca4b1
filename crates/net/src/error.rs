//! Errors by blame, as data: what happened, with its parties, steps and times.
//! [`wording`](crate::wording) says them.

use std::io;
use std::time::Duration;

/// In an error, the party that deals correlations and does not compute.
pub const DEALER: usize = usize::MAX;

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
    /// The first step whose public values were not compared before: how many bits a step drops, and
    /// which steps there are, may follow from them.
    pub uncompared: Option<String>,
    /// The one of the two whose program is not that of the others, if that is known.
    pub odd: Option<usize>,
    /// Whether steps followed from what parties told each other, so that it may come of a third
    /// one.
    pub relayed: bool,
}

/// What is wrong, and what can be done about it where that is known: two texts, since who lists
/// them wants both.
#[derive(Clone, PartialEq, Eq, Debug)]
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

/// Whom an error or a certificate belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    /// A member of a session by its number, or [`DEALER`].
    Member(usize),
    /// A server of a federation, to its clients.
    Server(usize),
    /// A client of a federation.
    Client(usize),
    /// Somebody who was called, and of whom no more is known.
    It,
}

/// What another party did, or what became of the link with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerFault {
    /// It said goodbye while messages from it or for it were still due.
    Finished,
    /// Its end of the links is gone, without a goodbye.
    NoGoodbye,
    /// Its connection ended without a goodbye.
    Ended {
        /// Why, as the operating system says it.
        cause: String,
    },
    /// Nothing can be written to its connection any more.
    Broke {
        /// Why, as the operating system says it.
        cause: String,
    },
    /// It takes too little from its connection.
    TakesTooLittle {
        /// For how long.
        lasted: Duration,
    },
    /// It sent bytes that are no frame.
    NoFrame(FrameError),
    /// What it sent cannot be deciphered.
    Undecipherable(String),
    /// It uses more channels than there may be.
    TooManyChannels {
        /// The limit.
        most: usize,
    },
    /// It sent what belongs to no comparison of public values.
    NoComparison,
    /// It sent more than there is room for, of which nothing was taken within the timeout.
    Flooded {
        /// The timeout.
        timeout: Duration,
    },
    /// Nothing came from it, and its process gives no sign of life.
    Silent {
        /// The timeout.
        timeout: Duration,
    },
    /// Nothing came from it, though its process lives.
    Stalled {
        /// The timeout.
        timeout: Duration,
    },
    /// Its message did not come though others did.
    Slow {
        /// How long it was waited for.
        waited: Duration,
        /// The timeout.
        timeout: Duration,
    },
    /// It waits for another party, and that one for it.
    Circle {
        /// The timeout.
        timeout: Duration,
    },
    /// It did not come to the session.
    Absent {
        /// Where it was looked for.
        address: String,
        /// What somebody said in its name without proving to be it.
        unproven: Option<String>,
        /// Why a connection was refused.
        refused: Option<Box<SetupFault>>,
    },
    /// It says that it cannot take part.
    CannotTakePart {
        /// Why, in its words.
        reason: String,
    },
    /// Another party says this of it.
    Reported {
        /// Who does.
        by: usize,
        /// What, in its words.
        reason: String,
    },
    /// It is not reached.
    NotReached {
        /// Where.
        address: String,
        /// Why.
        cause: String,
    },
    /// It is reached, and nothing comes of the connection.
    NotLinked {
        /// Where.
        address: String,
        /// Why.
        fault: Box<SetupFault>,
    },
    /// The connection with this server broke again and again.
    KeepsBreaking {
        /// Which.
        server: usize,
        /// Where.
        address: String,
        /// Why at last.
        fault: Box<SetupFault>,
    },
    /// Its own words, or those of the layer above that noticed what it did.
    Said(String),
}

/// Why bytes are not a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// It does not begin like a frame.
    Magic,
    /// Another version of the format.
    Version {
        /// The frame's.
        theirs: u8,
        /// The one that is spoken here.
        ours: u8,
    },
    /// Kind unknown, or a piggyback that is too long or not on data.
    Header,
    /// Step name too long, not UTF-8 or with control characters.
    Name,
    /// Payload longer than allowed.
    TooLong {
        /// Its words.
        words: usize,
        /// Words of a message at most.
        most: usize,
        /// Words of a frame without data at most.
        most_control: usize,
    },
}

/// What is wrong with a certificate by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CertificateFault {
    /// It is not a certificate in PEM.
    NoPem,
    /// It is damaged, or of a kind that links are not made with.
    Unusable,
    /// It is valid no longer.
    Expired {
        /// Since then, in seconds since 1970.
        at: u64,
    },
    /// It is not valid yet.
    NotYetValid {
        /// Until then, in seconds since 1970.
        at: u64,
    },
}

/// Why no link can be made: certificates, keys, greetings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetupFault {
    /// In words of the layer that found it, which knows its files.
    Said(Fault),
    /// Somebody's certificate is wrong by itself.
    Certificate {
        /// Whose.
        of: Name,
        /// How.
        fault: CertificateFault,
    },
    /// Two have the same certificate.
    SameCertificate {
        /// One.
        one: Name,
        /// The other.
        other: Name,
    },
    /// Another certificate was presented than that of whom was called.
    OtherCertificate {
        /// Who was called.
        of: Name,
        /// Whose it is, where that is known.
        owner: Option<Name>,
    },
    /// Somebody called with a certificate that nobody has who may call.
    UnknownCertificate {
        /// Whether clients call, and not members.
        clients: bool,
    },
    /// Somebody called without a certificate.
    NoCertificate,
    /// A client called without a certificate.
    NoClientCertificate,
    /// Who presented a certificate did not prove that it has the key.
    NoProof,
    /// The other side refused this side's certificate.
    Refused,
    /// The other side refused this side's certificate, for a reason that is known here.
    RefusedFor(Box<SetupFault>),
    /// What listens there does not speak TLS.
    NoTls,
    /// What listens there speaks TLS in another way.
    OtherTls,
    /// Who called as a client does not speak TLS as clients do.
    NoClientTls,
    /// The connection failed otherwise.
    Failed(String),
    /// The first message is no greeting of tacit.
    NoGreeting,
    /// The first message is that of another release.
    OtherRelease,
    /// A member that called said nothing.
    NotIntroduced {
        /// Which.
        member: usize,
        /// Why nothing came.
        cause: String,
    },
    /// A member says that it is another one.
    OtherNumber {
        /// Who it says it is.
        said: usize,
        /// Whose certificate it has.
        proven: usize,
    },
    /// No link can be made with a member.
    NoLink {
        /// Which.
        member: usize,
        /// Where, if it was called.
        address: Option<String>,
        /// Why.
        fault: Box<SetupFault>,
    },
    /// The members were started with different settings: those with each, the fewest first.
    StartedDifferently(Vec<(Vec<usize>, String)>),
    /// A private key is not one in PEM.
    NoKey {
        /// Whose.
        of: Name,
    },
    /// A private key does not fit its certificate.
    OtherKey {
        /// Whose.
        of: Name,
    },
    /// TLS 1.3 is not available.
    NoTls13,
}

impl<T: Into<Fault>> From<T> for SetupFault {
    fn from(fault: T) -> Self {
        Self::Said(fault.into())
    }
}

impl From<String> for PeerFault {
    fn from(reason: String) -> Self {
        Self::Said(reason)
    }
}

impl From<&str> for PeerFault {
    fn from(reason: &str) -> Self {
        Self::Said(reason.to_owned())
    }
}

/// What can go wrong between parties. Each says who, in which step, why, and what to do; none ever
/// holds a value that was computed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Another party failed, stalled, died or deviated.
    Peer {
        /// The party at fault, or [`DEALER`].
        party: usize,
        /// The step of this party when it learned of it.
        step: String,
        /// What it did.
        fault: PeerFault,
    },
    /// Two parties run different programs, or the same program on different shapes.
    Desync {
        /// The party whose message did not fit, or [`DEALER`].
        party: usize,
        /// The name of this party's step.
        step: String,
        /// In what.
        difference: Box<Difference>,
    },
    /// Two parties took different values for public.
    Differ {
        /// The party whose values are others.
        party: usize,
        /// The first step whose public values were not compared before.
        step: String,
        /// Whose values no other party has, if that is known.
        odd: Option<usize>,
    },
    /// A server does not take what this client asks or hands in.
    Refused {
        /// Which of them.
        server: usize,
        /// Why, in its words.
        reason: String,
    },
    /// The network itself failed.
    Network {
        /// What failed, and the remedy.
        reason: String,
    },
    /// Configuration, addresses or certificates are wrong.
    Setup {
        /// What is wrong.
        fault: SetupFault,
    },
    /// The user ended this party.
    Interrupted,
    /// This party's own program asked for what cannot be.
    Misuse {
        /// What was asked, and what can be.
        reason: String,
    },
    /// What all parties run alike cannot go on, by what all of them know: each would find the same,
    /// and which of them tells the others first is chance.
    Stopped {
        /// Where, why, and what to do about it; nothing that one party alone has.
        reason: String,
    },
}

/// The result of everything that uses links.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// [`Error::Peer`].
    pub fn peer(party: usize, step: impl Into<String>, fault: impl Into<PeerFault>) -> Self {
        Self::Peer {
            party,
            step: step.into(),
            fault: fault.into(),
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

    /// [`Error::Network`].
    pub fn network(reason: impl Into<String>) -> Self {
        Self::Network {
            reason: reason.into(),
        }
    }

    /// [`Error::Setup`].
    pub fn setup(fault: impl Into<SetupFault>) -> Self {
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
