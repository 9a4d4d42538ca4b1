//! Errors as data: who is to blame, and what happened, with its parties, steps and times. The
//! module [`wording`](crate::wording) turns them into text.

use kernels::device::DeviceError;
use std::io;
use std::time::Duration;

/// Number that an error gives for the dealer, the party that deals correlations and does not
/// compute.
pub const DEALER: usize = usize::MAX;

/// Place of a party in its program: a step by number and name, and what else differs there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// The party is at this step.
    At(String),
    /// The party's program has ended after this step.
    Ended(String),
}

/// Places of two parties whose programs differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Place of this party.
    pub ours: Place,
    /// Place of the other party.
    pub theirs: Place,
    /// First step whose public values were not compared before. The bits that a step drops, and
    /// which steps there are, may depend on such values.
    pub uncompared: Option<String>,
    /// Which of the two has a program that differs from that of the others, if that is known.
    pub odd: Option<usize>,
    /// Whether steps depended on what parties told each other, so that a third party may have
    /// caused the difference.
    pub relayed: bool,
}

/// A problem, and its remedy if one is known. They are two texts because lists show them
/// separately.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The problem.
    pub what: String,
    /// The remedy; empty if there is none.
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

/// Owner of an error or a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    /// Member of a session by its number, or [`DEALER`].
    Member(usize),
    /// Server of a federation, as its clients call it.
    Server(usize),
    /// Client of a federation.
    Client(usize),
    /// Peer of a connection, of which nothing else is known.
    It,
}

/// A fault of another party, or of the link with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerFault {
    /// The party said goodbye although messages from it or for it were still outstanding.
    Finished,
    /// The party's end of the links is gone, without a goodbye.
    NoGoodbye,
    /// The party's connection ended without a goodbye.
    Ended {
        /// The cause, as the operating system reports it.
        cause: String,
    },
    /// Nothing can be written to the party's connection any more.
    Broke {
        /// The cause, as the operating system reports it.
        cause: String,
    },
    /// The party accepts too little data from its connection.
    TakesTooLittle {
        /// How long this has lasted.
        lasted: Duration,
    },
    /// The party sent bytes that are not a frame.
    NotAFrame(FrameError),
    /// The party sent data that cannot be deciphered.
    Undecipherable(String),
    /// The party uses more channels than the limit.
    TooManyChannels {
        /// The limit.
        most: usize,
    },
    /// The party sent data that belongs to no comparison of public values.
    NoComparison,
    /// The party sent more data than the buffer holds, and none of it was read within the timeout.
    Flooded {
        /// The timeout.
        timeout: Duration,
    },
    /// Nothing came from the party, and its process gives no sign of life.
    Silent {
        /// The timeout.
        timeout: Duration,
    },
    /// Nothing came from the party, although its process is alive.
    Stalled {
        /// The timeout.
        timeout: Duration,
    },
    /// The party's message did not come, although others did.
    Slow {
        /// How long this party waited for it.
        waited: Duration,
        /// The timeout.
        timeout: Duration,
    },
    /// Several parties wait for each other.
    Circle {
        /// The timeout.
        timeout: Duration,
    },
    /// The party did not join the session.
    Absent {
        /// The address at which this party tried to reach it.
        address: String,
        /// Text that a caller sent in its name without proof of its identity.
        unproven: Option<String>,
        /// Why a connection was refused.
        refused: Option<Box<SetupFault>>,
    },
    /// The party says that it cannot take part.
    CannotTakePart {
        /// The reason that it gives.
        reason: String,
    },
    /// Another party reports this failure of the party.
    Reported {
        /// The party that reports it.
        by: usize,
        /// The reason that it gives.
        reason: String,
    },
    /// The party cannot be reached.
    NotReached {
        /// The address.
        address: String,
        /// The cause.
        cause: String,
    },
    /// The party can be reached, but no link can be made over the connection.
    NotLinked {
        /// The address.
        address: String,
        /// The cause.
        fault: Box<SetupFault>,
    },
    /// The connection with a server broke again and again.
    KeepsBreaking {
        /// The server's number.
        server: usize,
        /// Its address.
        address: String,
        /// The cause of the last break.
        fault: Box<SetupFault>,
    },
    /// The party's evidence of which program it runs is missing or refused.
    Unattested {
        /// Why.
        reason: String,
    },
    /// A message that came in the party's name is not its next message.
    Signature(SignatureFault),
    /// Free text, from the party or from the layer above that noticed the fault.
    Said(String),
}

/// Why a message is not the next message of an attested party.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignatureFault {
    /// It has no signature.
    Missing,
    /// It has a signature, although the parties have not attested.
    Unexpected,
    /// Its signature is for other receivers.
    ForOthers,
    /// The signature does not hold: the message was changed, or made by somebody else, for another
    /// session, or for another channel.
    Wrong,
    /// It came before, or comes too late.
    Again,
    /// A message before it is missing.
    Gap,
}

/// Why bytes are not a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// The bytes do not begin like a frame.
    Magic,
    /// The frame has another version of the format.
    Version {
        /// Version of the frame.
        theirs: u8,
        /// Version that this party speaks.
        ours: u8,
    },
    /// The kind is unknown, or a piggyback is too long or not on data.
    Header,
    /// The step name is too long, not UTF-8, or has control characters.
    Name,
    /// The payload is longer than allowed.
    TooLong {
        /// Length of the payload, in words.
        words: usize,
        /// Most words of a message.
        most: usize,
        /// Most words of a frame without data.
        most_control: usize,
    },
}

/// A fault of a certificate on its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CertificateFault {
    /// The text is not a certificate in PEM.
    NoPem,
    /// The certificate is damaged, or of a kind that links do not use.
    Unusable,
    /// The certificate has expired.
    Expired {
        /// When it expired, in seconds since 1970.
        at: u64,
    },
    /// The certificate is not valid yet.
    NotYetValid {
        /// When it becomes valid, in seconds since 1970.
        at: u64,
    },
}

/// Why an authority's certificate does not let a client in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Denial {
    /// The authority did not sign it, or it is damaged or of a kind that clients do not use.
    OtherIssuer,
    /// It names no client, or several.
    NoNumber,
    /// Its key cannot sign submissions.
    CannotSign {
        /// The client that it names.
        client: usize,
    },
    /// It names a client beyond the federation's.
    Beyond {
        /// The client that it names.
        client: usize,
        /// The number of clients.
        most: usize,
    },
    /// It is revoked.
    Revoked {
        /// The client that it names.
        client: usize,
    },
    /// The list of revoked certificates is out of date.
    OldList {
        /// When the next list was due, in seconds since 1970.
        at: u64,
    },
    /// The list of revoked certificates is not the authority's.
    WrongList,
    /// The authority's own certificate is not valid now.
    OldAuthority,
}

/// Why no link can be made: certificates, keys, greetings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetupFault {
    /// A text of the layer that found the problem, which knows its files.
    Said(Fault),
    /// A certificate is wrong on its own.
    Certificate {
        /// Its owner.
        of: Name,
        /// Its fault.
        fault: CertificateFault,
    },
    /// Two owners have the same certificate.
    SameCertificate {
        /// The first owner.
        one: Name,
        /// The second owner.
        other: Name,
    },
    /// The peer presented a certificate other than that of the party that was called.
    OtherCertificate {
        /// The party that was called.
        of: Name,
        /// The owner of the certificate that was presented, if known.
        owner: Option<Name>,
    },
    /// A caller presented a certificate of no member or client that may call.
    UnknownCertificate {
        /// Whether the callers are clients, not members.
        clients: bool,
    },
    /// A client is not admitted by the authority.
    NotAdmitted(Denial),
    /// A caller presented no certificate.
    NoCertificate,
    /// A client presented no certificate.
    NoClientCertificate,
    /// The peer did not prove that it has the key of the certificate it presented.
    NoProof,
    /// The other side refused this side's certificate.
    Refused,
    /// The other side refused this side's certificate for a reason that is known here.
    RefusedFor(Box<SetupFault>),
    /// The program at that address does not speak TLS.
    NoTls,
    /// The program at that address speaks TLS with other parameters than tacit.
    OtherTls,
    /// A caller that should be a client does not speak TLS as clients do.
    NoClientTls,
    /// The connection failed for another reason.
    Failed(String),
    /// The first message is not a greeting of tacit.
    NoGreeting,
    /// The first message is that of another release.
    OtherRelease,
    /// A member called, but sent no greeting.
    NotIntroduced {
        /// The member.
        member: usize,
        /// Why nothing came.
        cause: String,
    },
    /// A member claims the number of another member.
    OtherNumber {
        /// The number that it claims.
        said: usize,
        /// The owner of its certificate.
        proven: usize,
    },
    /// No link can be made with a member.
    NoLink {
        /// The member.
        member: usize,
        /// The address that was called, if any.
        address: Option<String>,
        /// The cause.
        fault: Box<SetupFault>,
    },
    /// The members were started with different settings: groups of members with the settings of
    /// each group, the smallest group first.
    StartedDifferently(Vec<(Vec<usize>, String)>),
    /// A private key is not a key in PEM.
    NoKey {
        /// Its owner.
        of: Name,
    },
    /// A private key does not fit its certificate.
    OtherKey {
        /// Its owner.
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

/// Errors between parties. Each says who, in which step, why, and what to do. None ever holds a
/// value that was computed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Another party failed, stalled, died or deviated.
    Peer {
        /// The party at fault, or [`DEALER`].
        party: usize,
        /// The step of this party when it learned of the failure.
        step: String,
        /// The fault of that party.
        fault: PeerFault,
    },
    /// Two parties run different programs, or the same program on different shapes.
    Desync {
        /// The party whose message did not fit, or [`DEALER`].
        party: usize,
        /// The name of this party's step.
        step: String,
        /// How the two programs differ.
        difference: Box<Difference>,
    },
    /// Two parties treat different values as public.
    Differ {
        /// The party whose values differ from this party's.
        party: usize,
        /// The first step whose public values were not compared before.
        step: String,
        /// The party whose values no other party has, if known.
        odd: Option<usize>,
    },
    /// A server refuses a request or a submission of this client.
    Refused {
        /// The server.
        server: usize,
        /// The reason that it gives.
        reason: String,
    },
    /// The network itself failed.
    Network {
        /// The failure, and the remedy.
        reason: String,
    },
    /// The configuration, addresses or certificates are wrong.
    Setup {
        /// The problem.
        fault: SetupFault,
    },
    /// What this party evaluates products on failed: a card, or its driver.
    Device {
        /// The step in which it failed.
        step: String,
        /// The failure, with its sizes, and the remedy.
        fault: Fault,
    },
    /// The user ended this party.
    Interrupted,
    /// This party's own program asked for something impossible.
    Misuse {
        /// The request, and what is possible.
        reason: String,
    },
    /// One of two parties cheated: it sent something that does not follow from what it held.
    Cheating {
        /// The parties of which one cheated.
        suspects: [usize; 2],
        /// The first step that what it sent may belong to.
        first: String,
        /// The last one; empty if it was in the first one, which may be an opening.
        last: String,
    },
    /// The program that all parties run cannot continue, for a reason that all of them know. Each
    /// party would find it, and which of them reports it first is chance.
    Stopped {
        /// Where, why, and what to do about it. It holds nothing that only one party knows.
        reason: String,
    },
}

/// Result of every function that uses links.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an [`Error::Peer`].
    pub fn peer(party: usize, step: impl Into<String>, fault: impl Into<PeerFault>) -> Self {
        Self::Peer {
            party,
            step: step.into(),
            fault: fault.into(),
        }
    }

    /// Returns the party that the error blames, unless that is this party itself or unknown.
    pub(crate) fn blamed(&self) -> Option<usize> {
        match self {
            Self::Peer { party, .. } | Self::Desync { party, .. } | Self::Differ { party, .. } => {
                Some(*party)
            }
            _ => None,
        }
    }

    /// Returns an [`Error::Cheating`], as party `me` of three sees it.
    pub(crate) fn cheating(me: usize, first: &str, last: &str) -> Self {
        let mut suspects = [(me + 1) % 3, (me + 2) % 3];
        suspects.sort_unstable();
        Self::Cheating {
            suspects,
            first: first.to_owned(),
            last: last.to_owned(),
        }
    }

    /// Returns an [`Error::Network`].
    pub fn network(reason: impl Into<String>) -> Self {
        Self::Network {
            reason: reason.into(),
        }
    }

    /// Returns an [`Error::Setup`].
    pub fn setup(fault: impl Into<SetupFault>) -> Self {
        Self::Setup {
            fault: fault.into(),
        }
    }

    /// Returns an [`Error::Stopped`].
    pub fn stopped(reason: impl Into<String>) -> Self {
        Self::Stopped {
            reason: reason.into(),
        }
    }

    /// Returns an [`Error::Misuse`].
    pub fn misuse(reason: impl Into<String>) -> Self {
        Self::Misuse {
            reason: reason.into(),
        }
    }
}

/// Returns the cause of an operating system error in plain words.
#[must_use]
pub fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied for this user".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it was silent".to_owned(),
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => "the connection broke".to_owned(),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "there is no route to its machine".to_owned()
        }
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::NotADirectory => "a part of its path is not a folder".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "nothing can be written there".to_owned(),
        _ => {
            let text = error.to_string();
            let end = text.find(" (os error").unwrap_or(text.len());
            // The standard library has no kind for a name that is not found.
            if text.starts_with("failed to lookup address") {
                "its host name cannot be resolved here".to_owned()
            } else {
                text[..end].to_owned()
            }
        }
    }
}

/// Returns the [`Error::Network`] for a thread that could not be started.
#[must_use]
pub fn no_thread(of: &str) -> Error {
    Error::network(format!(
        "cannot start the thread of {of}: this machine has no room for more; end other programs, \
         or raise the \
         limits of threads and memory"
    ))
}

/// A device that cannot be opened.
impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Self::setup(said(error))
    }
}

/// Returns a device's failure as the problem and its remedy.
pub(crate) fn said(error: DeviceError) -> Fault {
    let what = error.to_string();
    match error {
        DeviceError::Unavailable { remedy, .. } => Fault::new(what, remedy),
        DeviceError::Memory { .. } | DeviceError::Exhausted { .. } => Fault::new(
            what,
            "end other programs on the card, run smaller batches, or choose device \"cpu\"",
        ),
        DeviceError::Failed { .. } => {
            Fault::new(what, "start the session anew, or choose device \"cpu\"")
        }
    }
}

impl From<kernels::stream::EntropyError> for Error {
    fn from(error: kernels::stream::EntropyError) -> Self {
        Self::setup(error.to_string())
    }
}
