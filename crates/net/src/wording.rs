//! Texts of errors. Only this module turns the data of [`error`](crate::error) into text.

use crate::error::{
    CertificateFault, DEALER, Denial, Difference, Error, Fault, FrameError, Name, PeerFault, Place,
    SetupFault, SignatureFault,
};
use crate::kinds::{KINDS, date};
use std::fmt::{self, Display};
use std::time::Duration;

/// Words that a session's texts use for its members, and for what programs there can do.
#[derive(Debug)]
pub struct Words {
    /// Name of one member, such as "party".
    pub member: &'static str,
    /// Name of several members.
    pub members: &'static str,
    /// Word after "this" in the text of a member about itself.
    pub own: &'static str,
    /// Advice on how a program shares what one member has: a blank and a text in brackets, or
    /// empty.
    pub sharing: &'static str,
    /// Advice on how a program draws a value in all members alike, in the same form.
    pub drawing: &'static str,
}

impl Words {
    /// Words for parties, without advice for a programming language.
    pub const PARTIES: Self = Self {
        member: "party",
        members: "parties",
        own: "party",
        sharing: "",
        drawing: "",
    };

    /// Returns the name of a member.
    #[must_use]
    pub fn name(&self, member: usize) -> String {
        match member {
            DEALER => "the dealer".to_owned(),
            member => format!("{} {member}", self.member),
        }
    }
}

/// Point of view of a text. A member is "this party" in what its own user reads, and has its name
/// in what others read.
#[derive(Clone, Copy, Debug)]
pub struct Voice<'a> {
    words: &'a Words,
    teller: Option<usize>,
}

impl<'a> Voice<'a> {
    /// Point of view of a party's own user, in a session that has chosen no other words.
    pub const PARTY: Voice<'static> = Voice {
        words: &Words::PARTIES,
        teller: None,
    };

    /// Returns the point of view of the member's own user.
    #[must_use]
    pub fn own(words: &'a Words) -> Self {
        Self {
            words,
            teller: None,
        }
    }

    /// Returns the point of view of the other members, who read what `teller` reports: a member's
    /// number or [`DEALER`].
    #[must_use]
    pub fn told(words: &'a Words, teller: usize) -> Self {
        Self {
            words,
            teller: Some(teller),
        }
    }

    fn this(&self) -> String {
        match self.teller {
            Some(teller) => self.words.name(teller),
            None => format!("this {}", self.words.own),
        }
    }

    pub(crate) fn name(&self, name: Name) -> String {
        match name {
            Name::Member(member) => self.words.name(member),
            Name::Server(server) => format!("server {server}"),
            Name::Client(client) => format!("client {client}"),
            Name::It => "it".to_owned(),
        }
    }

    /// Remedy if programs differ.
    fn same_program(&self) -> String {
        let Words {
            member, members, ..
        } = self.words;
        let drawing = self.words.drawing;
        format!(
            "run the same program with the same shapes and options in every {member}; if it draws \
             random values, such as the order of batches, draw in all {members} alike{drawing}"
        )
    }

    /// Remedy if public values differ.
    fn same_values(&self) -> String {
        let Words {
            member,
            members,
            sharing,
            drawing,
            ..
        } = self.words;
        format!(
            "run the same program with the same public values in every {member}; if only one \
             {member} \
             has or draws a value, share it{sharing}, or draw it in all {members} alike{drawing}"
        )
    }

    fn program(&self) -> String {
        format!("run the same program in every {}", self.words.member)
    }
}

impl Difference {
    /// Returns the text, with the names of both parties.
    fn text(&self, voice: &Voice<'_>, one: &str, other: &str) -> String {
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
        let Words {
            member,
            members,
            sharing,
            ..
        } = voice.words;
        let values = self.uncompared.as_ref().map(|step| {
            format!(
                "; or the public values of the {members} differ, at the earliest in step \
                 \"{step}\": share what one {member} has{sharing}"
            )
        });
        let odd = self.odd.map(|party| {
            let name = voice.words.name(party);
            format!(", and the program of {name} is not that of the others")
        });
        let relayed = if self.relayed {
            format!(
                "; or a {member}, which need not be one of these two, told the others different \
                 things"
            )
        } else {
            String::new()
        };
        places + &odd.unwrap_or_default() + &relayed + &values.unwrap_or_default()
    }
}

impl FrameError {
    fn text(&self, voice: &Voice<'_>) -> String {
        match self {
            Self::Magic => "not a tacit frame".to_owned(),
            Self::Version { theirs, ours } => format!(
                "frame version {theirs}, but {} speaks version {ours}; run the same release of \
                 tacit in \
                 every {}",
                voice.this(),
                voice.words.member
            ),
            Self::Header => "malformed frame header".to_owned(),
            Self::Name => "malformed step name".to_owned(),
            Self::TooLong {
                words,
                most,
                most_control,
            } => format!(
                "a payload of {words} words; the limit is {most}, and {most_control} for frames \
                 without data"
            ),
        }
    }
}

impl PeerFault {
    /// Returns the text that follows "party 1 failed in step ...:".
    #[must_use]
    pub fn text(&self, voice: &Voice<'_>) -> String {
        let seconds = |time: &Duration| time.as_secs_f64();
        let this = voice.this();
        let Words {
            member, members, ..
        } = voice.words;
        let program = voice.program();
        match self {
            Self::Finished => {
                format!("it finished while {this} still has messages for it or from it; {program}")
            }
            Self::NoGoodbye => "it ended without a goodbye".to_owned(),
            Self::Ended { cause } => format!(
                "its connection ended without a goodbye ({cause}): it died, was killed or was cut \
                 off; look at its \
                 own output"
            ),
            Self::Broke { cause } => format!(
                "its connection broke ({cause}): it died, was killed or was cut off; look at its \
                 own output"
            ),
            Self::TakesTooLittle { lasted } => format!(
                "it has accepted too little data for {} s: it stalls, or its machine or link is \
                 down",
                seconds(lasted)
            ),
            Self::NotAFrame(error) => format!("it sent an invalid message: {}", error.text(voice)),
            Self::Undecipherable(error) => format!("it sent an invalid message: {error}"),
            Self::TooManyChannels { most } => format!("it uses more than {most} channels"),
            Self::NoComparison => format!(
                "it sent data that belongs to no comparison of public values; run the same \
                 release of \
                 tacit in every {member}"
            ),
            Self::Flooded { timeout } => format!(
                "it sent more data than {this} can buffer, and nothing was read from that buffer \
                 for \
                 {} s, the timeout: its program sends messages that {this}'s program does not \
                 receive; {program}",
                seconds(timeout)
            ),
            Self::Silent { timeout } => format!(
                "nothing came from it for {} s, the timeout, and its process gives no sign of \
                 life: it was stopped, \
                 or its machine or link is down; look at its own output",
                seconds(timeout)
            ),
            Self::Stalled { timeout } => format!(
                "nothing came from it for {} s, the timeout, although its process is alive: it \
                 stalls, \
                 waits for its user, or computes for longer than that; look at its own output, or \
                 raise the timeout",
                seconds(timeout)
            ),
            Self::Slow { waited, timeout } => format!(
                "it kept {this} waiting for {} s, although other messages or reports of progress \
                 came: \
                 it stalls, or its link is too slow for its messages; look at its own output, or \
                 raise \
                 the timeout of {} s",
                waited.as_secs(),
                seconds(timeout)
            ),
            Self::Circle { timeout } => format!(
                "it is one of several {members} that have waited for each other for {} s: the \
                 programs \
                 differ; {program}",
                seconds(timeout)
            ),
            Self::Absent {
                address,
                unproven,
                refused,
            } => {
                let mut text = format!(
                    "it did not come within the timeout (its address here: {address}); start it, \
                     check address and \
                     firewall"
                );
                if let Some(said) = unproven {
                    text += &format!("; a caller that could not prove its identity said: {said}");
                }
                if let Some(refused) = refused {
                    text += &format!("; a connection was refused: {}", refused.text(voice));
                }
                text
            }
            Self::CannotTakePart { reason } => format!("it cannot take part: {reason}"),
            Self::Reported { by, reason } => {
                format!("as {} reports, {reason}", voice.words.name(*by))
            }
            Self::NotReached { address, cause } => format!(
                "it cannot be reached at {address}: {cause}; check the address, the firewall, and \
                 that \
                 it runs"
            ),
            Self::NotLinked { address, fault } => format!("at {address}: {}", fault.text(voice)),
            Self::KeepsBreaking {
                server,
                address,
                fault,
            } => format!("server {server} at {address}: {}", fault.text(voice)),
            Self::Unattested { reason } => format!("it has not attested: {reason}"),
            Self::Signature(fault) => format!(
                "a message in its name was refused: {}; its host or the network changes what it \
                 sends",
                fault.text()
            ),
            Self::Said(reason) => reason.clone(),
        }
    }
}

impl SignatureFault {
    fn text(self) -> &'static str {
        match self {
            Self::Missing => "it is not signed",
            Self::Unexpected => "it is signed, although the members have not attested",
            Self::ForOthers => "it was signed for others",
            Self::Wrong => {
                "its signature does not hold: it was changed, or made by somebody else, for \
                 another session or for another channel"
            }
            Self::Again => "it was sent again or out of order",
            Self::Gap => "a message before it is missing",
        }
    }
}

impl CertificateFault {
    /// Returns the text about a certificate; `what` names it, such as "the certificate of party 1".
    pub(crate) fn said(&self, what: &str, voice: &Voice<'_>) -> Fault {
        match self {
            Self::NoPem => Fault::new(
                format!("{what} is not a certificate in PEM"),
                "give its .pem file",
            ),
            Self::Unusable => Fault::new(
                format!("{what} is damaged, or of a kind that tacit does not use"),
                KINDS,
            ),
            Self::Expired { at } => Fault::new(
                format!("{what} expired at {}", date(*at)),
                format!("make a new one and give it to all {}", voice.words.members),
            ),
            Self::NotYetValid { at } => Fault::new(
                format!("{what} is valid only from {}", date(*at)),
                "check the clock of this machine",
            ),
        }
    }
}

impl Denial {
    /// Returns the problem and the remedy as two texts.
    fn said(&self) -> Fault {
        const NEW: &str = "get one by `tacit federated admit` from the clients' authority";
        const LIST: &str = "give this server the authority's current list of revoked certificates";
        match self {
            Self::OtherIssuer => Fault::new(
                "the certificate is not signed by the clients' authority, or is not a client's",
                NEW,
            ),
            Self::NoNumber => Fault::new(
                "the certificate names no client, as client-7.tacit does",
                NEW,
            ),
            Self::CannotSign { client } => Fault::new(
                format!("the key of client {client} cannot sign submissions"),
                "make an ECDSA P-256 key by `tacit federated request`",
            ),
            Self::Beyond { client, most } => Fault::new(
                format!(
                    "the certificate names client {client}, and there are clients 0 to {}",
                    most - 1
                ),
                "get one of a free number, or begin a federation of more clients",
            ),
            Self::Revoked { client } => Fault::new(
                format!("the certificate of client {client} is revoked"),
                NEW,
            ),
            Self::OldList { at } => Fault::new(
                format!(
                    "this server's list of revoked certificates is out of date since {}",
                    date(*at)
                ),
                LIST,
            ),
            Self::WrongList => Fault::new(
                "this server's list of revoked certificates is not signed by the clients' authority",
                LIST,
            ),
            Self::OldAuthority => Fault::new(
                "the certificate of the clients' authority is not valid now",
                "check the clock of this machine, or begin with a new authority",
            ),
        }
    }
}

impl SetupFault {
    /// Returns the problem and the remedy as two texts.
    #[must_use]
    pub fn said(&self, voice: &Voice<'_>) -> Fault {
        let this = voice.this();
        let Words {
            member, members, ..
        } = voice.words;
        match self {
            Self::Said(fault) => fault.clone(),
            Self::Certificate { of, fault } => {
                fault.said(&format!("the certificate of {}", voice.name(*of)), voice)
            }
            Self::SameCertificate { one, other } => {
                let (one, other) = (voice.name(*one), voice.name(*other));
                Fault::new(
                    format!("{one} and {other} have the same certificate"),
                    "give each its own",
                )
            }
            Self::OtherCertificate { of, owner } => {
                let name = voice.name(*of);
                match owner {
                    Some(owner) => Fault::new(
                        format!(
                            "it presents the certificate of {}, not of {name}",
                            voice.name(*owner)
                        ),
                        "check the addresses",
                    ),
                    None => Fault::new(
                        format!(
                            "it presents a certificate that is not the one configured here for \
                             {name}"
                        ),
                        format!("put {name}'s current certificate into {this}'s configuration"),
                    ),
                }
            }
            Self::UnknownCertificate { clients } => {
                let called = if *clients { "client" } else { member };
                Fault::new(
                    format!("it presented a certificate that belongs to no {called}"),
                    format!("put each {called}'s current certificate into {this}'s configuration"),
                )
            }
            Self::NotAdmitted(denial) => denial.said(),
            Self::NoCertificate => "it presented no certificate".into(),
            Self::NoClientCertificate => {
                "it presented no certificate, and each client must present its own".into()
            }
            Self::NoProof => Fault::new(
                "it could not prove that it has the key of its certificate",
                "it must use a certificate and a key that were made together",
            ),
            Self::Refused => Fault::new(
                format!("it refused {this}'s certificate"),
                "its configuration must name the certificate in use here, and both clocks must be \
                 right",
            ),
            Self::RefusedFor(fault) => {
                format!("it refused {this}'s certificate: {}", fault.text(voice)).into()
            }
            Self::NoTls => Fault::new("the program there does not speak TLS", "check the address"),
            Self::OtherTls => Fault::new(
                "the program there does not speak TLS as tacit does",
                "check the address",
            ),
            Self::NoClientTls => "it does not speak TLS as clients do".into(),
            Self::Failed(cause) => cause.as_str().into(),
            Self::NoGreeting => "its first message is not a greeting of tacit".into(),
            Self::OtherRelease => Fault::new(
                "it runs another release of tacit",
                format!("install the same release in every {member}"),
            ),
            Self::NotIntroduced { member, cause } => {
                let caller = voice.words.name(*member);
                format!("{caller} did not introduce itself: {cause}").into()
            }
            Self::OtherNumber { said, proven } => {
                let (said, proven) = (voice.words.name(*said), voice.words.name(*proven));
                Fault::new(
                    format!("it says that it is {said}, but has the certificate of {proven}"),
                    format!("give each {member} its own number"),
                )
            }
            Self::NoLink {
                member,
                address,
                fault,
            } => {
                let at = address.as_ref().map(|address| format!(" at {address}"));
                let (name, at) = (voice.words.name(*member), at.unwrap_or_default());
                let Fault { what, remedy } = fault.said(voice);
                Fault::new(format!("cannot link with {name}{at}: {what}"), remedy)
            }
            Self::StartedDifferently(alike) => {
                let alike = alike.iter().map(|(members, parameters)| {
                    let names = members.iter().map(|member| voice.words.name(*member));
                    let names = names.collect::<Vec<_>>().join(" and ");
                    format!("{names} with \"{parameters}\"")
                });
                let alike = alike.collect::<Vec<_>>().join(", ");
                format!(
                    "the {members} were started differently: {alike}; start all with the same \
                     settings and release"
                )
                .into()
            }
            Self::NoKey { of } => Fault::new(
                format!(
                    "the private key of {} is not a private key in PEM",
                    voice.name(*of)
                ),
                "give its .key file",
            ),
            Self::OtherKey { of } => Fault::new(
                format!(
                    "the private key of {} does not fit its certificate",
                    voice.name(*of)
                ),
                "use the two files that were made together",
            ),
            Self::NoTls13 => Fault::new("TLS 1.3 is not available", "reinstall tacit"),
        }
    }

    /// Returns the problem and the remedy in one text.
    #[must_use]
    pub fn text(&self, voice: &Voice<'_>) -> String {
        self.said(voice).to_string()
    }
}

impl Error {
    /// Returns the whole text, from the point of view of `voice`.
    #[must_use]
    pub fn text(&self, voice: &Voice<'_>) -> String {
        let Words {
            member, members, ..
        } = voice.words;
        match self {
            Self::Peer { party, step, fault } => format!(
                "{} failed in step \"{step}\": {}",
                voice.words.name(*party),
                fault.text(voice)
            ),
            Self::Desync {
                party, difference, ..
            } => format!(
                "the {members}' programs differ: {}; {}",
                difference.text(voice, &voice.this(), &voice.words.name(*party)),
                voice.same_program()
            ),
            Self::Differ { party, step, odd } => {
                let odd = odd.map(|party| {
                    let name = voice.words.name(party);
                    format!(", and no other {member} has those of {name}")
                });
                format!(
                    "the public values of {} and of {} differ, at the earliest in step \
                     \"{step}\"{}: {}",
                    voice.this(),
                    voice.words.name(*party),
                    odd.unwrap_or_default(),
                    voice.same_values()
                )
            }
            Self::Refused { server, reason } => format!("server {server} refused: {reason}"),
            Self::Network { reason } => format!("network: {reason}"),
            Self::Device { step, fault } => {
                format!(
                    "the device of {} failed in step \"{step}\": {fault}",
                    voice.this()
                )
            }
            Self::Setup { fault } => format!("setup: {}", fault.text(voice)),
            Self::Interrupted => "it was interrupted".to_owned(),
            Self::Cheating {
                suspects: [one, other],
                first,
                last,
            } => {
                let [one, other] = [one, other].map(|party| voice.words.name(*party));
                if last.is_empty() {
                    return format!("{one} or {other} cheated in \"{first}\"");
                }
                format!(
                    "{one} or {other} cheated between \"{first}\" and \"{last}\"; nothing of this \
                     was revealed"
                )
            }
            Self::Misuse { reason } | Self::Stopped { reason } => reason.clone(),
        }
    }

    /// Returns the reason alone, for use after the name of the party that the error blames.
    #[must_use]
    pub fn reason(&self, voice: &Voice<'_>) -> String {
        match self {
            Self::Peer { fault, .. } => fault.text(voice),
            Self::Differ { odd: Some(_), .. } => format!(
                "no other {} has its public values: {}",
                voice.words.member,
                voice.same_values()
            ),
            Self::Differ { .. } => format!(
                "its public values and those of {} differ: {}",
                voice.this(),
                voice.same_values()
            ),
            Self::Refused { reason, .. } | Self::Network { reason } => reason.clone(),
            Self::Setup { fault } => fault.text(voice),
            Self::Device { fault, .. } => format!("its device failed: {fault}"),
            Self::Desync { .. }
            | Self::Interrupted
            | Self::Misuse { .. }
            | Self::Cheating { .. }
            | Self::Stopped { .. } => self.text(voice),
        }
    }

    /// Returns the reason alone, in the words of a session that has chosen none.
    #[must_use]
    pub fn cause(&self) -> String {
        self.reason(&Voice::PARTY)
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remedy.as_str() {
            "" => f.write_str(&self.what),
            remedy => write!(f, "{}; {remedy}", self.what),
        }
    }
}

/// Implements `Display` in neutral words for errors that are passed on as errors of any type, such
/// as by TLS and streams.
macro_rules! displayed {
    ($($error:ty),*) => {
        $(
            impl Display for $error {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&self.text(&Voice::PARTY))
                }
            }

            impl std::error::Error for $error {}
        )*
    };
}

displayed!(Error, FrameError, PeerFault, SetupFault);

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: Words = Words {
        member: "server",
        members: "servers",
        own: "server",
        sharing: " (share)",
        drawing: " (draw)",
    };

    /// One of each fault whose text names a member or members.
    fn errors() -> Vec<Error> {
        let second = Duration::from_secs(1);
        let refused = || SetupFault::OtherCertificate {
            of: Name::Member(1),
            owner: None,
        };
        let peer = [
            PeerFault::Finished,
            PeerFault::NotAFrame(FrameError::Version { theirs: 6, ours: 7 }),
            PeerFault::NoComparison,
            PeerFault::Flooded { timeout: second },
            PeerFault::Slow {
                waited: second,
                timeout: second,
            },
            PeerFault::Circle { timeout: second },
            PeerFault::Absent {
                address: "host:1".to_owned(),
                unproven: None,
                refused: Some(Box::new(SetupFault::UnknownCertificate { clients: false })),
            },
            PeerFault::Reported {
                by: 2,
                reason: "it stalls".to_owned(),
            },
        ];
        let setup = [
            refused(),
            SetupFault::Refused,
            SetupFault::RefusedFor(Box::new(SetupFault::Certificate {
                of: Name::Member(0),
                fault: CertificateFault::Expired { at: 0 },
            })),
            SetupFault::OtherRelease,
            SetupFault::OtherNumber { said: 1, proven: 2 },
            SetupFault::NoLink {
                member: 1,
                address: None,
                fault: Box::new(refused()),
            },
            SetupFault::StartedDifferently(vec![(vec![0, 2], "a".to_owned())]),
        ];
        let difference = Difference {
            ours: Place::At("1 \"mul\"".to_owned()),
            theirs: Place::Ended("2 \"mul\"".to_owned()),
            uncompared: Some("fc".to_owned()),
            odd: Some(1),
            relayed: true,
        };
        let desync = Error::Desync {
            party: 1,
            step: "mul".to_owned(),
            difference: Box::new(difference),
        };
        let differ = Error::Differ {
            party: 1,
            step: "mul".to_owned(),
            odd: Some(1),
        };
        let peers = peer.into_iter().map(|fault| Error::peer(1, "mul", fault));
        let setups = setup.into_iter().map(Error::setup);
        let cheating = Error::cheating(2, "matmul", "reveal");
        let device = Error::Device {
            step: "matmul".to_owned(),
            fault: "no memory".into(),
        };
        peers
            .chain(setups)
            .chain([device, cheating, desync, differ])
            .collect()
    }

    #[test]
    fn members_are_called_by_the_words_of_their_session_alone() {
        for error in errors() {
            let (party, server) = (error.to_string(), error.text(&Voice::own(&SERVERS)));
            assert!(!server.contains("part"), "{server}");
            let advice = server.replace(" (share)", "").replace(" (draw)", "");
            assert_eq!(
                advice
                    .replace("servers", "parties")
                    .replace("server", "party"),
                party
            );
        }
    }

    #[test]
    fn what_others_are_told_names_the_teller() {
        for error in errors() {
            let told = error.text(&Voice::told(&SERVERS, 2));
            let own = error.text(&Voice::own(&SERVERS));
            assert_eq!(told, own.replace("this server", "server 2"));
        }
    }

    #[test]
    fn advice_is_that_of_the_program_s_language() {
        let desync = errors()
            .into_iter()
            .rev()
            .nth(1)
            .expect("the error is listed");
        let text = desync.text(&Voice::own(&SERVERS));
        assert!(text.contains("share what one server has (share)"), "{text}");
        assert!(text.ends_with("draw in all servers alike (draw)"), "{text}");
        assert!(!desync.to_string().contains('('), "{desync}");
    }
}
