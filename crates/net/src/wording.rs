//! What errors say. The data of [`error`](crate::error) becomes text here, and nowhere else.

use crate::error::{
    CertificateFault, DEALER, Difference, Error, Fault, FrameError, Name, PeerFault, Place,
    SetupFault,
};
use crate::kinds::{KINDS, date};
use std::fmt::{self, Display};
use std::time::Duration;

/// How the texts of a session call its members, and how a program there does what they advise.
#[derive(Debug)]
pub struct Words {
    /// One member, such as "party".
    pub member: &'static str,
    /// Several.
    pub members: &'static str,
    /// Who says it, after "this".
    pub own: &'static str,
    /// How a program shares what one member has, in brackets after a blank, or nothing.
    pub sharing: &'static str,
    /// How it draws in all members alike, likewise.
    pub drawing: &'static str,
}

impl Words {
    /// Those of parties, in no programming language.
    pub const PARTIES: Self = Self {
        member: "party",
        members: "parties",
        own: "party",
        sharing: "",
        drawing: "",
    };

    /// What a member is called.
    #[must_use]
    pub fn name(&self, member: usize) -> String {
        match member {
            DEALER => "the dealer".to_owned(),
            member => format!("{} {member}", self.member),
        }
    }
}

/// Who says it, in the words of its session: "this party" where its own user reads it, its name
/// where others do.
#[derive(Clone, Copy, Debug)]
pub struct Voice<'a> {
    words: &'a Words,
    teller: Option<usize>,
}

impl<'a> Voice<'a> {
    /// The party's own user reads the text, and no session has chosen other words.
    pub const PARTY: Voice<'static> = Voice {
        words: &Words::PARTIES,
        teller: None,
    };

    /// As its own user reads it.
    #[must_use]
    pub fn own(words: &'a Words) -> Self {
        Self {
            words,
            teller: None,
        }
    }

    /// As the other members read what this one, by its number or [`DEALER`], tells them.
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

    fn name(&self, name: Name) -> String {
        match name {
            Name::Member(member) => self.words.name(member),
            Name::Server(server) => format!("server {server}"),
            Name::Client(client) => format!("client {client}"),
            Name::It => "it".to_owned(),
        }
    }

    /// What to do where programs differ.
    fn same_program(&self) -> String {
        let Words {
            member, members, ..
        } = self.words;
        let drawing = self.words.drawing;
        format!(
            "run the same program with the same shapes and options in every {member}; what it draws, such as the \
             order of batches, draw in all {members} alike{drawing}"
        )
    }

    /// What to do where public values differ.
    fn same_values(&self) -> String {
        let Words {
            member,
            members,
            sharing,
            drawing,
            ..
        } = self.words;
        format!(
            "run the same program with the same public values in every {member}; share what one {member} has or \
             draws{sharing}, or draw it in all {members} alike{drawing}"
        )
    }

    fn program(&self) -> String {
        format!("run the same program in every {}", self.words.member)
    }
}

impl Difference {
    /// With the names of both.
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
                "; or what the {members} take for public differs, at the earliest in step \"{step}\": share what one \
                 {member} has{sharing}"
            )
        });
        let odd = self.odd.map(|party| {
            let name = voice.words.name(party);
            format!(", and the program of {name} is not that of the others")
        });
        let relayed = if self.relayed {
            format!(
                "; or some {member}, which need not be one of these two, told the others different things"
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
            Self::Magic => "not a frame of tacit".to_owned(),
            Self::Version { theirs, ours } => format!(
                "frame version {theirs}, {} speaks version {ours}; run the same release of tacit in every {}",
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
                "a payload of {words} words; the limit is {most}, and {most_control} for frames without data"
            ),
        }
    }
}

impl PeerFault {
    /// What it says, after "party 1 failed in step ...:".
    #[must_use]
    pub fn text(&self, voice: &Voice<'_>) -> String {
        let seconds = |time: &Duration| time.as_secs_f64();
        let this = voice.this();
        let Words { member, .. } = voice.words;
        let program = voice.program();
        match self {
            Self::Finished => {
                format!("it finished while {this} still has messages for it or from it; {program}")
            }
            Self::NoGoodbye => "it ended without a goodbye".to_owned(),
            Self::Ended { cause } => format!(
                "its connection ended without a goodbye ({cause}): it died, was killed or was cut off; look at its \
                 own output"
            ),
            Self::Broke { cause } => format!(
                "its connection broke ({cause}): it died, was killed or was cut off; look at its own output"
            ),
            Self::TakesTooLittle { lasted } => format!(
                "it takes too little from its connection for {} s: it stalls, its machine or link is down",
                seconds(lasted)
            ),
            Self::NoFrame(error) => format!("it sent what cannot be: {}", error.text(voice)),
            Self::Undecipherable(error) => format!("it sent what cannot be: {error}"),
            Self::TooManyChannels { most } => format!("it uses more than {most} channels"),
            Self::NoComparison => format!(
                "it sent what belongs to no comparison of public values; run the same release of tacit in every \
                 {member}"
            ),
            Self::Flooded { timeout } => format!(
                "it sent more than there is room for, of which nothing was taken for {} s, the timeout: its program \
                 goes on with what {this}'s does not; {program}",
                seconds(timeout)
            ),
            Self::Silent { timeout } => format!(
                "nothing came from it for {} s, the timeout, and its process gives no sign of life: it was stopped, \
                 or its machine or link is down; look at its own output",
                seconds(timeout)
            ),
            Self::Stalled { timeout } => format!(
                "nothing came from it for {} s, the timeout, though its process lives: it stalls, waits for its user, \
                 or computes for longer than that; look at its own output, or raise the timeout",
                seconds(timeout)
            ),
            Self::Slow { waited, timeout } => format!(
                "it kept {this} waiting for {} s, though other messages came, or word that this one comes nearer: it \
                 stalls, or its link is too slow for what it sends; look at its own output, or raise the timeout of \
                 {} s",
                waited.as_secs(),
                seconds(timeout)
            ),
            Self::Circle { timeout } => format!(
                "it waits for another {member}, and that one for it, for {} s: the programs differ; {program}",
                seconds(timeout)
            ),
            Self::Absent {
                address,
                unproven,
                refused,
            } => {
                let mut text = format!(
                    "it did not come within the timeout (its address here: {address}); start it, check address and \
                     firewall"
                );
                if let Some(said) = unproven {
                    text += &format!("; somebody who could not prove to be it said: {said}");
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
                "it is not reached at {address}: {cause}; check address and firewall, and whether it runs"
            ),
            Self::NotLinked { address, fault } => format!("at {address}: {}", fault.text(voice)),
            Self::KeepsBreaking {
                server,
                address,
                fault,
            } => format!("server {server} at {address}: {}", fault.text(voice)),
            Self::Said(reason) => reason.clone(),
        }
    }
}

impl CertificateFault {
    /// What it says of a certificate; `what` is which, such as "the certificate of party 1".
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

impl SetupFault {
    /// What is wrong and what to do, apart.
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
                            "it presents a certificate that is not the one configured here for {name}"
                        ),
                        format!("put {name}'s current certificate into {this}'s configuration"),
                    ),
                }
            }
            Self::UnknownCertificate { clients } => {
                let called = if *clients { "client" } else { member };
                Fault::new(
                    format!("it presented a certificate that is no {called}'s"),
                    format!("put each {called}'s current certificate into {this}'s configuration"),
                )
            }
            Self::NoCertificate => "it presented no certificate".into(),
            Self::NoClientCertificate => {
                "it presented no certificate, and each client has its own".into()
            }
            Self::NoProof => Fault::new(
                "it could not prove that it has the key of its certificate",
                "it is to use the two files that were made together",
            ),
            Self::Refused => Fault::new(
                format!("it refused {this}'s certificate"),
                "its configuration must name the certificate in use here, and both clocks must be right",
            ),
            Self::RefusedFor(fault) => {
                format!("it refused {this}'s certificate: {}", fault.text(voice)).into()
            }
            Self::NoTls => Fault::new("what listens there does not speak TLS", "check the address"),
            Self::OtherTls => Fault::new(
                "what listens there does not speak TLS as tacit does",
                "check the address",
            ),
            Self::NoClientTls => "it does not speak TLS as clients do".into(),
            Self::Failed(cause) => cause.as_str().into(),
            Self::NoGreeting => "it sent what is no greeting of tacit".into(),
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
                    "the {members} were started differently: {alike}; start all with the same settings and release"
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
            Self::NoTls13 => Fault::new("TLS 1.3 is not available", "install tacit anew"),
        }
    }

    /// Both in one text.
    #[must_use]
    pub fn text(&self, voice: &Voice<'_>) -> String {
        self.said(voice).to_string()
    }
}

impl Error {
    /// All of it, in the voice of whoever says it.
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
                    format!(", and those of {name} no other {member} has")
                });
                format!(
                    "the public values of {} and of {} differ, at the earliest in step \"{step}\"{}: {}",
                    voice.this(),
                    voice.words.name(*party),
                    odd.unwrap_or_default(),
                    voice.same_values()
                )
            }
            Self::Refused { server, reason } => format!("server {server} refused: {reason}"),
            Self::Network { reason } => format!("network: {reason}"),
            Self::Setup { fault } => format!("setup: {}", fault.text(voice)),
            Self::Interrupted => "it was interrupted".to_owned(),
            Self::Misuse { reason } | Self::Stopped { reason } => reason.clone(),
        }
    }

    /// The reason alone, as it follows the name of whoever it blames.
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
            Self::Desync { .. }
            | Self::Interrupted
            | Self::Misuse { .. }
            | Self::Stopped { .. } => self.text(voice),
        }
    }

    /// The reason alone, in the words of a session that has chosen none.
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

/// Those that others take for errors of any kind, such as TLS and streams, are displayed in neutral
/// words.
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

    /// One of each fault whose text names a member, or members.
    fn errors() -> Vec<Error> {
        let second = Duration::from_secs(1);
        let refused = || SetupFault::OtherCertificate {
            of: Name::Member(1),
            owner: None,
        };
        let peer = [
            PeerFault::Finished,
            PeerFault::NoFrame(FrameError::Version { theirs: 6, ours: 7 }),
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
        peers.chain(setups).chain([desync, differ]).collect()
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
        let desync = errors().into_iter().rev().nth(1).expect("it is there");
        let text = desync.text(&Voice::own(&SERVERS));
        assert!(text.contains("share what one server has (share)"), "{text}");
        assert!(text.ends_with("draw in all servers alike (draw)"), "{text}");
        assert!(!desync.to_string().contains('('), "{desync}");
    }
}
