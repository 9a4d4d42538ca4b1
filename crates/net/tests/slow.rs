//! Tests of slow links, and of sessions in which no party sends anything for long.

mod links;

use links::{Kind, SetUp, parties, run, text};
use net::tcp::{Listener, connect};
use net::{Error, Result};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Forwards data to the listener at `address`, `bytes` bytes every 10 ms; the way back is not
/// slowed down. Returns its own address.
fn throttle(address: &str, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let address = address.to_owned();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(from), Ok(to)) = (socket, TcpStream::connect(&address)) else {
                return;
            };
            let back = (to.try_clone().unwrap(), from.try_clone().unwrap());
            thread::spawn(move || hand_on(from, to, bytes));
            thread::spawn(move || hand_on(back.0, back.1, usize::MAX));
        }
    });
    own
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, bytes: usize) {
    let mut piece = vec![0; bytes.min(1 << 16)];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
        if bytes < usize::MAX {
            thread::sleep(Duration::from_millis(10));
        }
    }
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}

/// Party 0 sends to party 1 over a slow link, party 1 passes a word of the message on to party 2,
/// and with `back` party 2 passes it on to party 0, which waits for it.
fn relay(words: usize, timeout: Duration, bytes: usize, back: bool) -> Vec<Result<u64>> {
    relay_of(words, words, timeout, bytes, back)
}

/// Runs the same relay, with a party 1 that expects a message of `expected` words.
fn relay_of(
    words: usize,
    expected: usize,
    timeout: Duration,
    bytes: usize,
    back: bool,
) -> Vec<Result<u64>> {
    let set_up = SetUp::new(3);
    let listeners = set_up.listeners();
    let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
    let slow = throttle(&addresses[1], bytes);
    run(listeners, |listener, party| {
        let mut reached = addresses.clone();
        if party == 0 {
            reached[1].clone_from(&slow);
        }
        let identity = set_up.identity(party);
        let mesh = connect(listener, party, &reached, false, identity, timeout, "test")?;
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        let found = match party {
            0 => {
                channel.send(1, vec![7; words])?;
                match back {
                    true => channel.receive(2, 1)?,
                    false => vec![7],
                }
            }
            1 => {
                let found = channel.receive(0, expected)?;
                channel.send(2, found[expected - 1..].to_vec())?;
                found
            }
            _ => {
                let found = channel.receive(1, 1)?;
                if back {
                    channel.send(0, found.clone())?;
                }
                found
            }
        };
        channel.close()?;
        mesh.close()?;
        Ok(found[0])
    })
}

/// The link carries 160 KiB a second, for three seconds: the receiver sees the message arrive, and
/// the others hear of it.
#[test]
fn a_message_that_comes_slowly_is_waited_for_by_all() {
    let results = relay(60_000, Duration::from_secs(1), 1600, true);
    for result in results {
        assert_eq!(result.unwrap(), 7);
    }
}

/// Below the slowest rate of 8 KiB a second, all end within a few timeouts. The complete message
/// would take a minute.
#[test]
fn a_message_that_comes_too_slowly_is_not() {
    let results = relay(20_000, Duration::from_secs(2), 25, false);
    let errors: Vec<Error> = results.into_iter().map(Result::unwrap_err).collect();
    for error in &errors[1..] {
        let message = text(error);
        assert!(message.contains("party 0 failed"), "{message}");
        assert!(message.contains("the timeout"), "{message}");
    }
}

#[test]
fn a_session_in_which_nobody_waits_outlasts_the_timeout() {
    let results = parties(Kind::Tcp, 2, Duration::from_millis(400), |mesh, party| {
        let mut channel = mesh.channel(0);
        for step in 0..2 {
            thread::sleep(Duration::from_millis(1500));
            channel.begin("multiply");
            channel.send(1 - party, vec![step])?;
            assert_eq!(channel.receive(1 - party, 1)?, [step]);
        }
        channel.close()?;
        mesh.close()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn of_a_party_that_stalls_it_is_said_that_its_process_lives() {
    let timeout = Duration::from_secs(1);
    let results = parties(Kind::Tcp, 2, timeout, |mesh, party| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        if party == 1 {
            thread::sleep(timeout * 3);
        }
        channel.receive(1 - party, 1)
    });
    let message = text(results[0].as_ref().unwrap_err());
    assert!(
        message.contains("although its process is alive"),
        "{message}"
    );
}

/// A party continues with messages of another channel, and owes the message that the other waits
/// for until the minute is over.
#[test]
fn messages_of_other_channels_do_not_hold_a_wait_for_long() {
    let timeout = Duration::from_millis(200);
    let results = parties(Kind::Tcp, 2, timeout, |mesh, party| {
        let mut channel = mesh.channel(0);
        channel.begin("reveal");
        if party == 0 {
            return channel.receive(1, 1).map(drop);
        }
        let mut other = mesh.channel(1);
        other.begin("correlations");
        for _ in 0..6000 {
            other.send(0, vec![7; 64])?;
            thread::sleep(Duration::from_millis(10));
        }
        channel.send(0, vec![7])
    });
    let message = text(results[0].as_ref().unwrap_err());
    assert!(
        message.contains("party 1 failed in step \"reveal\""),
        "{message}"
    );
    assert!(
        message.contains("it kept this party waiting for 2 s"),
        "{message}"
    );
}

/// A party waits for one word, and 8 MB come instead, which takes a minute.
#[test]
fn nor_does_more_than_is_waited_for() {
    let results = relay_of(1 << 20, 1, Duration::from_millis(500), 1600, false);
    let message = text(results[1].as_ref().unwrap_err());
    // Either its own report, or that of the party it relays to, which may come first.
    let said = ["this party", "party 2"].map(|who| format!("it kept {who} waiting for 5 s"));
    assert!(said.iter().any(|said| message.contains(said)), "{message}");
}
