//! Tests of parties that fail while they encrypt, or while they multiply ciphertexts.

use crate::session::{LONG, SHORT, Session, Then, assert_blamed, right, send, set_up};
use lattice::{
    Layout, PUBLIC_KEY_WORDS, Prices, Tiling, answer_words, ciphertext_words, packing_key_words,
};
use mpc::{Bilinear, Protocol, Result};
use net::{Channel, Mesh};
use std::time::{Duration, Instant};
use testkit::Shared;

/// Rows, depth and columns of a product that is encrypted, with one message each way after keys for
/// packing.
const SIZES: [usize; 3] = [64, 256, 64];

fn map() -> Bilinear {
    let [m, k, n] = SIZES;
    Bilinear::Matrix { batch: 1, m, k, n }
}

fn multiply(p: &mut dyn Protocol) -> Result<()> {
    let [m, k, n] = SIZES;
    let (x, y) = (Shared::zeros(p, m * k), Shared::zeros(p, k * n));
    x.bilinear(p, &map(), &y, None)?.open(p).map(drop)
}

fn multiply_thrice(p: &mut dyn Protocol) -> Result<()> {
    (0..3).try_for_each(|_| multiply(p))
}

fn session(timeout: Duration) -> Session {
    Session {
        source: "he",
        timeout,
        program: multiply,
    }
}

/// Returns how the product is laid out for the slowest party's bandwidth.
fn laid_out(bandwidth: Option<u64>) -> (Prices, Layout) {
    let ([m, k, n], prices) = (SIZES, Prices::of(bandwidth));
    let layout = Layout::Matrices(Tiling::new(m, k, n, &prices), SIZES);
    (prices, layout)
}

/// The messages that make an encrypted product.
#[derive(Clone, Copy, PartialEq)]
enum Message {
    PublicKey,
    Ciphertexts,
    PackingKeys,
    Answer,
}

const MESSAGES: [Message; 4] = [
    Message::PublicKey,
    Message::Ciphertexts,
    Message::PackingKeys,
    Message::Answer,
];

impl Message {
    fn name(self) -> &'static str {
        match self {
            Self::PublicKey => "a public key",
            Self::Ciphertexts => "ciphertexts",
            Self::PackingKeys => "keys for packing",
            Self::Answer => "masked products",
        }
    }

    fn step(self) -> String {
        match self {
            Self::PublicKey => "set up encryption".to_owned(),
            _ => {
                let (left, right, out) = map().lengths();
                format!("correlations: masks for matrix product: {left} by {right} to {out}")
            }
        }
    }

    fn words(self) -> usize {
        let (prices, layout) = laid_out(None);
        match self {
            // With the bandwidth.
            Self::PublicKey => PUBLIC_KEY_WORDS + 1,
            Self::Ciphertexts => ciphertext_words(&layout),
            Self::PackingKeys => {
                let missing = layout.missing(&prices, layout.rows() * layout.columns());
                assert!(!missing.is_empty(), "a product whose answers are packed");
                packing_key_words(missing.len())
            }
            Self::Answer => answer_words(&layout, 0..layout.columns()),
        }
    }

    /// Returns the number of words with residues. A public key has the party's bandwidth after
    /// them.
    fn residues(self) -> usize {
        self.words() - usize::from(self == Self::PublicKey)
    }

    /// Returns a message that is accepted, since zeros are residues. The bandwidth is unknown.
    fn taken(self) -> Vec<u64> {
        let mut message = vec![0; self.words()];
        message[self.residues()..].fill(u64::MAX);
        message
    }
}

/// Sends the valid messages before this one, and then bad messages instead of it.
fn instead(mesh: &Mesh, message: Message, bad: &[Vec<u64>]) {
    let mut channel = mesh.channel(1);
    set_up(&mut channel, &right());
    let key = Message::PublicKey;
    if message == key {
        return send(&mut channel, &key.step(), bad);
    }
    send(&mut channel, &key.step(), &[key.taken()]);
    keys(&mut mesh.channel(0));
    let before = MESSAGES[1..]
        .iter()
        .take_while(|before| **before != message);
    let mut messages: Vec<Vec<u64>> = before.map(|before| before.taken()).collect();
    messages.extend_from_slice(bad);
    send(&mut channel, &message.step(), &messages);
}

/// Sends halves of the protocol's own keys: of the pair, and of the key for all.
fn keys(channel: &mut Channel) {
    send(channel, "agree on keys", &[vec![1, 2], vec![3, 4]]);
}

#[test]
fn products_are_laid_out_for_the_slowest_party() {
    let slow = 10_000_000;
    let words = ciphertext_words(&laid_out(Some(slow)).1);
    let (key, message) = (Message::PublicKey, Message::Ciphertexts);
    assert_ne!(
        words,
        message.words(),
        "another layout for another bandwidth"
    );
    let errors = session(LONG).beside(Then::Stays, |mesh| {
        let mut channel = mesh.channel(1);
        set_up(&mut channel, &right());
        let mut of_slow = key.taken();
        of_slow[key.residues()] = slow;
        send(&mut channel, &key.step(), &[of_slow]);
        keys(&mut mesh.channel(0));
        send(&mut channel, &message.step(), &[vec![]]);
    });
    assert_blamed(
        &errors,
        &format!("\"{}\" with {words} words", message.step()),
    );
}

#[test]
fn messages_of_another_length_are_noticed() {
    for message in MESSAGES {
        let words = message.words();
        for wrong in [0, words - 1, words + 1] {
            let bad = [vec![0; wrong]];
            let errors = session(LONG).beside(Then::Stays, |mesh| instead(mesh, message, &bad));
            let step = message.step();
            assert_blamed(&errors, &format!("\"{step}\" with {words} words"));
            assert_blamed(&errors, &format!("\"{step}\" with {wrong} words"));
        }
    }
}

#[test]
fn numbers_that_are_no_residues_are_noticed() {
    for message in MESSAGES {
        let all = vec![u64::MAX; message.words()];
        let mut last = message.taken();
        // A residue is in one word or in two.
        last[message.residues() - 2..message.residues()].fill(u64::MAX);
        for bad in [all, last] {
            let errors = session(LONG).beside(Then::Stays, |mesh| instead(mesh, message, &[bad]));
            assert_blamed(&errors, &format!("\"{}\"", message.step()));
            let name = message.name();
            assert_blamed(&errors, &format!("of {name} from the peer is not below"));
        }
    }
}

#[test]
fn who_dies_is_named_by_all() {
    for message in MESSAGES {
        let errors = session(LONG).beside(Then::Dies, |mesh| instead(mesh, message, &[]));
        assert_blamed(&errors, &format!("\"{}\"", message.step()));
        assert_blamed(&errors, "it ended without a goodbye");
    }
}

#[test]
fn who_stalls_is_named_by_all_and_in_time() {
    let started = Instant::now();
    for message in MESSAGES {
        let errors = session(SHORT).beside(Then::Stays, |mesh| instead(mesh, message, &[]));
        assert_blamed(&errors, &format!("\"{}\"", message.step()));
        assert_blamed(&errors, "nothing came from it");
    }
    assert!(started.elapsed() < LONG);
}

/// The odd party runs the real protocol, once.
#[test]
fn who_multiplies_less_than_the_others_is_named() {
    let session = |timeout| Session {
        program: multiply_thrice,
        ..session(timeout)
    };
    for (then, timeout, why) in [
        (Then::Dies, LONG, "it ended without a goodbye"),
        (Then::Stays, SHORT, "nothing came from it"),
    ] {
        let session = session(timeout);
        let errors = session.beside(then, |mesh| {
            let mut protocol = session.open(mesh).expect("the set-up succeeds");
            multiply(&mut *protocol).expect("the product succeeds");
        });
        assert_blamed(&errors, why);
    }
}
