//! Tests of a party that fails while two parties multiply elements by encryption.

use crate::session::{LONG, SHORT, right};
use lattice::PUBLIC_KEY_WORDS;
use lattice::slots::{KEY_WORDS, SLOTS, answer_words, factor_words};
use mpc::{Bilinear, Error, Settings};
use net::{Channel, Mesh};
use std::sync::mpsc::channel;
use std::time::Duration;
use testkit::Shared;

/// Elements of which either party encrypts a block.
const N: usize = 2 * SLOTS;

/// The messages of the failing party, in order.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Message {
    Key,
    Factors,
    Answer,
}

const MESSAGES: [Message; 3] = [Message::Key, Message::Factors, Message::Answer];

impl Message {
    fn name(self) -> &'static str {
        match self {
            Self::Key => "a public key for products of elements",
            Self::Factors => "encrypted elements",
            Self::Answer => "masked products of elements",
        }
    }

    fn words(self) -> usize {
        match self {
            Self::Key => KEY_WORDS,
            Self::Factors => factor_words(2, SLOTS),
            Self::Answer => answer_words(SLOTS),
        }
    }
}

fn send(channel: &mut Channel, step: &str, messages: &[Vec<u64>]) {
    channel.begin(step);
    for message in messages {
        // A party that has noticed the failure receives no more.
        drop(channel.send(0, message.clone()));
    }
}

/// Returns the error of party 0 if party 1 sends the valid messages before this one, and then
/// `bad` instead of it; with `stays`, party 1 waits then until party 0 has ended.
fn error(message: Message, bad: &[Vec<u64>], stays: bool, timeout: Duration) -> String {
    let settings = Settings {
        protocol: "additive".to_owned(),
        source: Some("he".to_owned()),
        ..Settings::default()
    };
    let [honest, odd]: [Mesh; 2] = net::in_process::mesh(2, timeout)
        .try_into()
        .unwrap_or_else(|_| panic!("two parties"));
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut source = odd.channel(1);
            send(&mut source, "set up oblivious transfers", &right());
            send(
                &mut source,
                "set up encryption",
                &[vec![0; PUBLIC_KEY_WORDS + 1]],
            );
            send(
                &mut odd.channel(0),
                "agree on keys",
                &[vec![1, 2], vec![3, 4]],
            );
            let before = MESSAGES.into_iter().take_while(|other| *other != message);
            let mut messages: Vec<Vec<u64>> = before.map(|other| vec![0; other.words()]).collect();
            messages.extend_from_slice(bad);
            send(
                &mut source,
                &format!("correlations: {N} triples"),
                &messages,
            );
            if stays {
                let _ = ended.recv();
            }
        });
        let error =
            mpc::open(&settings, &honest, &testkit::device(), true).and_then(|mut protocol| {
                let p = &mut *protocol;
                let (x, y) = (Shared::zeros(p, N), Shared::zeros(p, N));
                x.bilinear(p, &Bilinear::Elementwise { n: N }, &y, None)
                    .map(drop)
            });
        drop(done);
        let error = error.expect_err("party 0 fails");
        assert!(
            matches!(
                error,
                Error::Peer { party: 1, .. } | Error::Desync { party: 1, .. }
            ),
            "{error}"
        );
        error.to_string()
    })
}

#[test]
fn messages_of_another_length_are_noticed() {
    for message in MESSAGES {
        let words = message.words();
        for wrong in [0, words - 1, words + 1] {
            let error = error(message, &[vec![0; wrong]], true, LONG);
            for words in [words, wrong] {
                assert!(
                    error.contains(&format!("with {words} words")),
                    "{message:?}: {error}"
                );
            }
        }
    }
}

#[test]
fn numbers_that_are_no_residues_are_noticed() {
    for message in MESSAGES {
        let mut last = vec![0; message.words()];
        *last.last_mut().expect("the message is not empty") = u64::MAX;
        for bad in [vec![u64::MAX; message.words()], last] {
            let error = error(message, &[bad], true, LONG);
            let expected = format!("of {} from the peer is not below", message.name());
            assert!(error.contains(&expected), "{message:?}: {error}");
        }
    }
}

#[test]
fn who_dies_or_stalls_is_named() {
    for message in MESSAGES {
        for (stays, timeout, why) in [
            (false, LONG, "it ended without a goodbye"),
            (true, SHORT, "nothing came from it"),
        ] {
            let error = error(message, &[], stays, timeout);
            assert!(error.contains(why), "{message:?}: {error}");
        }
    }
}
