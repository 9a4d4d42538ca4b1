//! The exchange of evidence, with evidence that is a hash: what it is made for, and refusals.

use super::*;
use crate::SignatureFault;
use crate::frame::Frame;
use crate::in_process::{InProcess, mesh, mesh_with_dealer};
use crate::inbox::Inbox;
use crate::mesh::Link;
use crate::roster::Roster;
use std::sync::{Arc, Mutex};
use std::thread;

/// Evidence that anybody can make: the hash of what it is made for.
#[derive(Clone)]
struct Hashed {
    policy: u8,
    /// Changes what this member's evidence is made for.
    change: fn(&mut Attested<'_>),
    /// The evidence that is sent instead.
    instead: Option<Vec<u8>>,
}

const HONEST: Hashed = Hashed {
    policy: 1,
    change: |_| {},
    instead: None,
};

impl Hashed {
    fn hash(&self, about: &Attested<'_>) -> Vec<u8> {
        let text = format!("{about:?} {}", self.policy);
        blake3::hash(text.as_bytes()).as_bytes().to_vec()
    }
}

impl Attestor for Hashed {
    fn kind(&self) -> &'static str {
        "hashed"
    }

    fn program(&self) -> [u8; 32] {
        [3; 32]
    }

    fn policy(&self) -> [u8; 32] {
        [self.policy; 32]
    }

    fn make(&self, about: &Attested<'_>) -> Result<Vec<u8>> {
        let mut about = about.clone();
        (self.change)(&mut about);
        Ok(self.instead.clone().unwrap_or_else(|| self.hash(&about)))
    }

    fn judge(&self, about: &Attested<'_>, evidence: &[u8]) -> std::result::Result<(), String> {
        match evidence == self.hash(about) {
            true => Ok(()),
            false => Err("it was made for something else".to_owned()),
        }
    }
}

fn certificates(members: usize) -> Vec<String> {
    (0..members).map(|member| pem(member, "\n")).collect()
}

/// Returns a text of a member's certificate, whose content is its number alone.
fn pem(member: usize, end: &str) -> String {
    let lines = [
        "-----BEGIN CERTIFICATE-----",
        ["MA==", "MQ==", "Mg=="][member],
    ];
    [lines[0], lines[1], "-----END CERTIFICATE-----", ""].join(end)
}

/// Runs a member's work in each thread.
fn each<T: Send>(meshes: Vec<Mesh>, work: impl Fn(Mesh) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| scope.spawn(move || work(mesh)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a message from each party to each other after the exchange, alone and to all.
fn talk(mesh: &Mesh) -> Result<()> {
    let mut channel = mesh.channel(0);
    let (me, parties) = (mesh.party(), mesh.parties());
    let others = || (0..parties).filter(move |party| *party != me);
    channel.begin("alone");
    others().try_for_each(|to| channel.send(to, vec![me as u64, to as u64]))?;
    for from in others() {
        assert_eq!(channel.receive(from, 2)?, [from as u64, me as u64]);
    }
    channel.begin("to all");
    channel.send_equal(others(), &[me as u64; 3])?;
    for from in others() {
        assert_eq!(channel.receive(from, 3)?, [from as u64; 3]);
    }
    channel.close()?;
    mesh.close()
}

#[test]
fn members_attest_and_sign_from_then_on() {
    let found = each(mesh(3, TIMEOUT), |mesh| {
        mesh.attest(&HONEST, &certificates(3)).unwrap();
        talk(&mesh).unwrap();
        mesh.attestation().unwrap()
    });
    for found in found {
        assert_eq!((found.kind, found.verified), ("hashed", 2));
        // Two alone, one for all, and two for the end.
        assert_eq!(found.signatures, 5);
        assert!(found.took > Duration::ZERO);
    }
}

#[test]
fn certificates_may_be_written_in_different_ways() {
    each(mesh(3, TIMEOUT), |mesh| {
        let ends = ["\n", "\r\n", "\n\n"];
        let written: Vec<_> = (0..3)
            .map(|member| format!("a comment\n{}", pem(member, ends[mesh.party()])))
            .collect();
        mesh.attest(&HONEST, &written).unwrap();
    });
}

#[test]
fn a_certificate_that_cannot_be_read_is_named() {
    let errors = each(mesh(3, TIMEOUT), |mesh| {
        let written = [pem(0, "\n"), "nothing".to_owned(), pem(2, "\n")];
        mesh.attest(&HONEST, &written).unwrap_err().to_string()
    });
    assert!(
        errors.iter().any(|error| error.contains("party 1")),
        "{errors:?}"
    );
}

#[test]
fn the_dealer_attests_too() {
    let found = each(mesh_with_dealer(2, TIMEOUT), |mesh| {
        mesh.attest(&HONEST, &certificates(3)).unwrap();
        mesh.attestation().unwrap().verified
    });
    assert_eq!(found, [2, 2, 2]);
}

/// Returns the errors of parties 0 and 2, if party 1 differs.
fn against(one: &Hashed) -> Vec<Error> {
    each(mesh(3, TIMEOUT), |mesh| {
        let attestor = if mesh.party() == 1 { one } else { &HONEST };
        mesh.attest(attestor, &certificates(3)).err()
    })
    .into_iter()
    .enumerate()
    .filter(|(member, _)| *member != 1)
    .map(|(_, error)| error.expect("party 1 is refused"))
    .collect()
}

#[test]
fn evidence_for_anything_else_is_refused_by_name() {
    let changes: [fn(&mut Attested<'_>); 6] = [
        |about| about.nonces = &about.nonces[1..],
        |about| about.role = 2,
        |about| about.roster[0] ^= 1,
        |about| about.certificate = b"2",
        |about| about.key[0] ^= 1,
        |about| about.program[0] ^= 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let errors = against(&Hashed { change, ..HONEST });
        for error in errors {
            let error = error.to_string();
            let expected = "party 1 failed in step \"attestation: evidence\": ";
            assert!(error.starts_with(expected), "{number}: {error}");
            assert!(
                error.contains("made for something else"),
                "{number}: {error}"
            );
        }
    }
}

/// The host of party 1 gives party 2 another nonce than party 0. Then parties 0 and 2 would refuse
/// each other's evidence, which is right.
#[test]
fn nobody_is_blamed_for_what_nobody_can_tell() {
    let roster = Roster::new(3, false.into());
    let inboxes = [0, 1, 2].map(|member| Arc::new(Inbox::new(member, roster, usize::MAX)));
    let meshes = [0, 1, 2].map(|member| {
        let link = |peer: usize| -> Option<Box<dyn Link>> {
            let to = Arc::clone(&inboxes[peer]);
            let link = InProcess { from: member, to };
            match (member, peer) {
                _ if member == peer => None,
                (1, 2) => Some(Box::new(Host {
                    link,
                    channel: ATTESTATION,
                    change: |frame, kept| {
                        if kept.is_none() {
                            frame.payload[0] ^= 1;
                            *kept = Some(frame.clone());
                        }
                    },
                    kept: Mutex::default(),
                })),
                _ => Some(Box::new(link)),
            }
        };
        let links = (0..3).map(link).collect();
        Mesh::new(member, TIMEOUT, Arc::clone(&inboxes[member]), links)
    });
    let errors = each(meshes.into(), |mesh| {
        mesh.attest(&HONEST, &certificates(3))
            .unwrap_err()
            .to_string()
    });
    let told = "a member has told the others different nonces, keys or programs";
    assert!(
        errors.iter().any(|error| error.contains(told)),
        "{errors:?}"
    );
    assert!(
        !errors
            .iter()
            .any(|error| error.contains("made for something else"))
    );
}

#[test]
fn empty_and_excessive_evidence_is_refused() {
    for instead in [vec![], vec![7; LONGEST + 1]] {
        let errors = against(&Hashed {
            instead: Some(instead),
            ..HONEST
        });
        assert!(
            errors[0].to_string().starts_with("party 1 failed"),
            "{}",
            errors[0]
        );
    }
}

/// A party that skips the exchange, and begins as parties that do not attest.
#[test]
fn a_party_that_does_not_attest_is_refused_by_name() {
    let errors = each(mesh(2, Duration::from_millis(500)), |mesh| {
        match mesh.party() {
            0 => mesh.attest(&HONEST, &certificates(2)),
            _ => talk(&mesh),
        }
        .unwrap_err()
    });
    assert!(errors[0].to_string().contains("party 1"), "{}", errors[0]);
}

/// A link whose host changes messages of one channel.
struct Host {
    link: InProcess,
    channel: u16,
    change: fn(&mut Frame, &mut Option<Frame>),
    kept: Mutex<Option<Frame>>,
}

impl Link for Host {
    fn send(&self, mut frame: Frame) -> std::result::Result<(), PeerFault> {
        if frame.channel == self.channel && frame.kind == crate::frame::Kind::Data {
            (self.change)(&mut frame, &mut self.kept.lock().unwrap());
        }
        self.link.send(frame)
    }

    fn cut(&self) {
        self.link.cut();
    }
}

/// Returns what two parties get if the host of party 1 changes what it sends.
fn under(change: fn(&mut Frame, &mut Option<Frame>)) -> Vec<Result<()>> {
    let roster = Roster::new(2, false.into());
    let inboxes = [0, 1].map(|member| Arc::new(Inbox::new(member, roster, usize::MAX)));
    let meshes = [0, 1].map(|member| {
        let to = Arc::clone(&inboxes[1 - member]);
        let link = InProcess { from: member, to };
        let link: Box<dyn Link> = match member {
            0 => Box::new(link),
            _ => Box::new(Host {
                link,
                channel: 0,
                change,
                kept: Mutex::default(),
            }),
        };
        let links = if member == 0 {
            vec![None, Some(link)]
        } else {
            vec![Some(link), None]
        };
        Mesh::new(member, TIMEOUT, Arc::clone(&inboxes[member]), links)
    });
    each(meshes.into(), |mesh| {
        mesh.attest(&HONEST, &certificates(2))?;
        talk(&mesh)
    })
}

/// Changes a message, and may keep one.
type Attack = fn(&mut Frame, &mut Option<Frame>);

#[test]
fn a_host_that_changes_messages_is_found_before_the_protocol_sees_them() {
    assert!(under(|_, _| {}).iter().all(Result::is_ok));
    let attacks: [(Attack, SignatureFault); 5] = [
        (|frame, _| frame.payload[0] ^= 1, SignatureFault::Wrong),
        (|frame, _| frame.sequence += 1, SignatureFault::Wrong),
        (|frame, _| frame.signature = None, SignatureFault::Missing),
        (
            // The first message again, in place of the second.
            |frame, kept| *frame = kept.get_or_insert_with(|| frame.clone()).clone(),
            SignatureFault::Again,
        ),
        (
            |frame, _| frame.signature.as_mut().unwrap().receivers = 1 << 1,
            SignatureFault::ForOthers,
        ),
    ];
    for (change, fault) in attacks {
        let found = under(change).swap_remove(0).unwrap_err();
        let Error::Peer {
            party, fault: told, ..
        } = &found
        else {
            panic!("{found}");
        };
        assert_eq!((*party, told), (1, &PeerFault::Signature(fault)));
    }
}
