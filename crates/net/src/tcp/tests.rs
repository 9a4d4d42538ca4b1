//! Tests with an authenticated party that sends invalid frames.

use super::*;
use crate::certificates;
use crate::frame::{Frame, Kind, MOST_WORDS, step_name};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Returns the error of party 0, which runs `honest`, while party 1 links and runs `other` on its
/// sending connection. Party 1 never reads.
fn beside(
    timeout: Duration,
    honest: impl Fn(&Mesh) -> crate::Result<()> + Sync,
    other: impl FnOnce(&mut Option<tls::Outgoing>),
) -> Error {
    let made = [0, 1].map(|party| certificates::generate(party, 1).unwrap());
    let certificates: Vec<String> = made
        .iter()
        .map(|made| made.certificate_pem.clone())
        .collect();
    let listeners = [0, 1].map(|_| Listener::bind("127.0.0.1:0").unwrap());
    let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
    let identity = |party: usize| Identity {
        certificates: certificates.clone(),
        key: made[party].key_pem.clone(),
    };
    let [first, second] = listeners;
    thread::scope(|scope| {
        let honest = scope.spawn(|| {
            let mesh = connect(first, 0, &addresses, false, identity(0), timeout, "test").unwrap();
            honest(&mesh).unwrap_err()
        });
        let roster = Roster::new(2, false.into());
        let tls = Tls::new(1, roster, &identity(1)).unwrap();
        let setup = Setup::new(1, &addresses, tls, roster, "test", Duration::from_secs(60));
        let (mut outgoing, met) = meet(&setup, &second);
        met.unwrap();
        let mut to_first = outgoing.swap_remove(0);
        other(&mut to_first);
        let error = honest.join().unwrap();
        drop((to_first, setup.take_incoming()));
        error
    })
}

/// Returns the error of party 0 when party 1 sends these bytes instead of frames and then leaves.
fn verdict(bytes: &[u8]) -> Error {
    let honest = |mesh: &Mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        channel.receive(1, 4).map(drop)
    };
    beside(Duration::from_secs(60), honest, |to_first| {
        let mut to_first = to_first.take().unwrap();
        to_first.write_all(bytes).unwrap();
        to_first.flush().unwrap();
    })
}

fn frame(words: usize) -> Vec<u8> {
    let name = step_name("multiply");
    let mut bytes = Frame {
        kind: Kind::Data,
        channel: 0,
        depth: 1,
        sequence: 1,
        parameters: 0,
        name,
        piggyback: vec![],
        signature: None,
        payload: vec![],
    }
    .head();
    bytes[8..12].copy_from_slice(&(words as u32).to_le_bytes());
    bytes
}

fn assert_blames(error: &Error, expected: &str) {
    match error {
        Error::Peer {
            party: 1,
            step,
            fault,
        } => {
            assert_eq!(step, "multiply");
            assert!(fault.to_string().contains(expected), "{fault}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn random_bytes_are_named() {
    assert_blames(&verdict(&[0x5a; 1000]), "not a tacit frame");
}

#[test]
fn a_frame_that_is_too_long_is_named() {
    assert_blames(&verdict(&frame(MOST_WORDS + 1)), "the limit is");
}

#[test]
fn a_truncated_frame_is_named() {
    assert_blames(&verdict(&frame(4)), "ended without a goodbye");
}

#[test]
fn a_frame_of_another_length_is_a_desync() {
    let mut bytes = frame(3);
    bytes.extend([0; 24]);
    let error = verdict(&bytes);
    assert!(matches!(error, Error::Desync { party: 1, .. }), "{error}");
}

/// Returns the error of party 0 when party 1 links and then never reads.
fn beside_one_that_does_not_read(program: impl Fn(&Mesh) -> crate::Result<()> + Sync) -> Error {
    beside(Duration::from_secs(2), program, |_| {})
}

#[test]
fn a_party_that_does_not_read_ends_the_sender_too() {
    let error = beside_one_that_does_not_read(|mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("share");
        loop {
            channel.send(1, vec![1; 1000])?;
        }
    });
    assert!(matches!(error, Error::Peer { party: 1, .. }), "{error}");
}

#[test]
fn closing_tells_of_what_was_not_taken() {
    let error = beside_one_that_does_not_read(|mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("share");
        channel.send(1, vec![1; 1 << 22])?;
        mesh.close()
    });
    assert!(matches!(error, Error::Peer { party: 1, .. }), "{error}");
}

/// Returns the error of party 0, with a timeout of two seconds, while party 1's bytes arrive one by
/// one, 20 ms apart: first bytes that TLS seals together, then bytes that it seals one by one.
fn beside_one_that_trickles(sealed_together: &[u8], sealed_apart: &[u8]) -> (Error, Duration) {
    let started = Instant::now();
    let honest = |mesh: &Mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        channel.receive(1, 40).map(drop)
    };
    let error = beside(Duration::from_secs(2), honest, |to_first| {
        let to_first = to_first.as_mut().unwrap();
        let mut bytes = Vec::new();
        to_first.conn.writer().write_all(sealed_together).unwrap();
        while to_first.conn.wants_write() {
            to_first.conn.write_tls(&mut bytes).unwrap();
        }
        let pause = || thread::sleep(Duration::from_millis(20));
        // Stops when party 0 closes the connection.
        for byte in &bytes {
            pause();
            if to_first.sock.write_all(&[*byte]).is_err() {
                return;
            }
        }
        for byte in sealed_apart {
            pause();
            if to_first.write_all(&[*byte]).is_err() {
                return;
            }
        }
    });
    (error, started.elapsed())
}

#[test]
fn a_party_whose_bytes_trickle_is_a_party_that_stalls() {
    let mut whole = frame(40);
    whole.extend([0; 320]);
    // Within a TLS record, and within a frame: either takes eight seconds.
    for (together, apart) in [(&whole[..], &[][..]), (&[], &whole)] {
        let (error, took) = beside_one_that_trickles(together, apart);
        assert_blames(&error, "the timeout");
        assert!(took < Duration::from_secs(6), "{took:?}");
    }
}

/// Party 1's process was stopped: its connections do not break, and nothing comes.
#[test]
fn a_party_without_a_sign_of_life_is_named_by_who_waits_and_by_who_has_ended() {
    let waiting = |mesh: &Mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        channel.receive(1, 4).map(drop)
    };
    let ended = |mesh: &Mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        channel.close()
    };
    let started = Instant::now();
    let timeout = Duration::from_secs(1);
    for error in [
        beside(timeout, waiting, |_| {}),
        beside(timeout, ended, |_| {}),
    ] {
        assert_blames(&error, "its process gives no sign of life");
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// More bytes than a link may hold.
const FLOOD: usize = 4 << 30;

/// Party 1 sends `first`, then frames without end, while party 0 runs `ends`, which ends the mesh.
/// Nothing of these frames is kept, and the link is cut while they come.
fn flood(first: &[u8], ends: impl Fn(&Mesh) -> Error + Sync) -> Error {
    let cut = AtomicBool::new(false);
    let honest = |mesh: &Mesh| {
        let error = ends(mesh);
        let until = Instant::now() + Duration::from_secs(60);
        while !cut.load(Ordering::Relaxed) && Instant::now() < until {
            assert_eq!(
                mesh.shared.inbox.queued(1),
                0,
                "frames were kept after the end"
            );
            thread::sleep(Duration::from_millis(1));
        }
        assert!(cut.load(Ordering::Relaxed), "the link was not cut");
        Err(error)
    };
    beside(Duration::from_secs(60), honest, |to_first| {
        let to_first = to_first.as_mut().unwrap();
        let mut more = frame(1 << 17);
        more.resize(more.len() + (8 << 17), 1);
        let mut sent = to_first.write_all(first).map(|()| 0);
        while let Ok(bytes) = sent {
            assert!(bytes < FLOOD, "{bytes} bytes were accepted");
            sent = to_first.write_all(&more).map(|()| bytes + more.len());
        }
        cut.store(true, Ordering::Relaxed);
    })
}

#[test]
fn what_comes_after_this_party_ended_is_dropped_and_the_link_cut() {
    let error = flood(&[], |mesh| {
        mesh.abort("its program raised ValueError");
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        channel.receive(1, 4).unwrap_err()
    });
    assert!(matches!(error, Error::Misuse { .. }), "{error}");
}

#[test]
fn what_comes_after_the_peers_own_abort_is_dropped_and_the_link_cut() {
    let mut abort = frame(2);
    abort[3] = Kind::Abort as u8;
    abort.extend([1_u64, 0].iter().flat_map(|word| word.to_le_bytes()));
    let error = flood(&abort, |mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        channel.receive(1, 4).unwrap_err()
    });
    assert!(matches!(error, Error::Peer { party: 1, .. }), "{error}");
}

/// Certificates, listeners and addresses of some parties.
struct Parties {
    made: Vec<certificates::Generated>,
    listeners: Vec<Option<Listener>>,
    addresses: Vec<String>,
}

impl Parties {
    fn new(parties: usize) -> Self {
        let listeners: Vec<_> = (0..parties)
            .map(|_| Listener::bind("127.0.0.1:0").unwrap())
            .collect();
        Self {
            made: (0..parties)
                .map(|party| certificates::generate(party, 1).unwrap())
                .collect(),
            addresses: listeners.iter().map(Listener::local_address).collect(),
            listeners: listeners.into_iter().map(Some).collect(),
        }
    }

    fn identity(&self, party: usize) -> Identity {
        let pems = self.made.iter().map(|made| made.certificate_pem.clone());
        Identity {
            certificates: pems.collect(),
            key: self.made[party].key_pem.clone(),
        }
    }

    /// Runs a session of one message.
    fn session(&self, party: usize, listener: Listener) -> crate::Result<()> {
        let (identity, minute) = (self.identity(party), Duration::from_secs(60));
        let linked = connect(
            listener,
            party,
            &self.addresses,
            false,
            identity,
            minute,
            "test",
        );
        let mesh = linked?;
        let mut channel = mesh.channel(0);
        channel.begin("exchange");
        channel.send(1 - party, vec![7])?;
        channel.receive(1 - party, 1)?;
        mesh.close()
    }
}

#[test]
fn sessions_that_are_over_at_once_are_linked_all_the_same() {
    for _ in 0..100 {
        let mut parties = Parties::new(2);
        let [first, second] = [0, 1].map(|party| parties.listeners[party].take().unwrap());
        thread::scope(|scope| {
            let other = scope.spawn(|| parties.session(1, second));
            parties.session(0, first).unwrap();
            other.join().unwrap().unwrap();
        });
    }
}
