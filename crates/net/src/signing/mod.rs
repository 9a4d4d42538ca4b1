//! Signatures of messages, between members that have attested.
//!
//! A member signs each message of a protocol over the session, itself, the receivers, a number for
//! each receiver, everything in the frame's head (channel, step's number and name, parameters,
//! length), and a hash of the payload. The number counts all messages to the receiver on the
//! channel, so nothing can be repeated, swapped or left out. One signature serves all receivers of
//! equal messages. That the last messages have come is known from the signed end of the program.

mod verifying;

pub(crate) use verifying::Verifier;

use crate::error::{Error, PeerFault, SignatureFault};
use crate::frame::{Frame, Kind, Signature};
use ring::rand;
use ring::signature::Ed25519KeyPair;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Channel of the exchange of evidence, whose messages are not signed yet.
pub(crate) const ATTESTATION: u16 = u16::MAX;

const DOMAIN: &str = "tacit 2026 attested party: message";

/// One member's key, the keys of the others, and the numbers of their messages.
pub(crate) struct Signing {
    me: usize,
    session: [u8; 32],
    own: Ed25519KeyPair,
    keys: Vec<Verifier>,
    /// Numbers of the last messages sent, by channel and receiver.
    sent: Mutex<HashMap<(u16, usize), u64>>,
    /// Numbers of the last messages received, by sender and channel.
    received: Vec<Mutex<HashMap<u16, u64>>>,
    /// What the exchange of evidence found.
    pub(crate) exchanged: Exchanged,
    made: AtomicU64,
    nanoseconds: AtomicU64,
}

/// Result of the exchange of evidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exchanged {
    pub kind: &'static str,
    pub verified: usize,
    pub took: Duration,
}

impl Signing {
    /// Makes the state of a session that begins. `keys` are those of all members, by member.
    pub(crate) fn new(
        me: usize,
        session: [u8; 32],
        own: Ed25519KeyPair,
        keys: Vec<Verifier>,
        exchanged: Exchanged,
    ) -> Self {
        Self {
            me,
            session,
            own,
            received: keys.iter().map(|_| Mutex::default()).collect(),
            keys,
            sent: Mutex::default(),
            exchanged,
            made: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
        }
    }

    /// Signs equal frames, one to each of several members, with one signature.
    pub(crate) fn sign(&self, frames: &mut [(usize, &mut Frame)]) {
        let Some((_, first)) = frames.first() else {
            return;
        };
        let began = Instant::now();
        let mut members: Vec<usize> = frames.iter().map(|(to, _)| *to).collect();
        members.sort_unstable();
        let receivers = members.iter().fold(0, |set, to| set | bit_of(*to));
        let mut sent = locked(&self.sent);
        let places = members.iter().map(|to| {
            let last = sent.entry((first.channel, *to)).or_default();
            *last += 1;
            *last
        });
        let mut signature = Signature {
            receivers,
            places: places.collect(),
            bytes: [0; 64],
            content: None,
        };
        drop(sent);
        let statement = self.statement(self.me, first, &signature);
        signature
            .bytes
            .copy_from_slice(self.own.sign(&statement).as_ref());
        for (_, frame) in frames {
            frame.signature = Some(Box::new(signature.clone()));
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        self.count(began);
    }

    /// Verifies a frame that came from a member, and that it is the next one.
    fn verify(&self, from: usize, frame: &Frame) -> Result<(), SignatureFault> {
        let began = Instant::now();
        let signature = frame.signature.as_ref().ok_or(SignatureFault::Missing)?;
        if signature.receivers & bit_of(self.me) == 0 {
            return Err(SignatureFault::ForOthers);
        }
        let statement = self.statement(from, frame, signature);
        if !self.keys[from].accepts(&statement, &signature.bytes) {
            return Err(SignatureFault::Wrong);
        }
        // The places are those of the receivers in order.
        let before = (signature.receivers & (bit_of(self.me) - 1)).count_ones();
        let place = signature.places.get(before as usize);
        let place = *place.ok_or(SignatureFault::Wrong)?;
        let mut received = locked(&self.received[from]);
        let last = received.entry(frame.channel).or_default();
        if place <= *last {
            return Err(SignatureFault::Again);
        }
        if place > *last + 1 {
            return Err(SignatureFault::Gap);
        }
        *last = place;
        drop(received);
        self.count(began);
        Ok(())
    }

    /// Returns the digest that is signed.
    fn statement(&self, sender: usize, frame: &Frame, signature: &Signature) -> [u8; 32] {
        let head = frame.unsigned_head();
        // By one thread: it is faster than a link, and the others have the protocol's work.
        let hash = || *blake3::hash(bytemuck::cast_slice(&frame.payload)).as_bytes();
        let Signature {
            receivers,
            places,
            content,
            ..
        } = signature;
        let content = content.unwrap_or_else(hash);
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        hasher.update(&self.session);
        for number in [sender as u64, *receivers].iter().chain(places) {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&(head.len() as u64).to_le_bytes());
        hasher.update(&head);
        hasher.update(&content);
        *hasher.finalize().as_bytes()
    }

    fn count(&self, began: Instant) {
        let took = began.elapsed().as_nanos() as u64;
        self.nanoseconds.fetch_add(took, Ordering::Relaxed);
    }

    /// Returns the number of signatures that this member made.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Returns the time that the exchange of evidence, signing and verifying have taken.
    pub(crate) fn took(&self) -> Duration {
        self.exchanged.took + Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

/// Checks a message of a protocol: in a session whose members have attested, its signature; in any
/// other, that it has none.
pub(crate) fn check(
    signing: Option<&Signing>,
    from: usize,
    frame: &Frame,
) -> Result<(), PeerFault> {
    let checked = match signing {
        Some(signing) => signing.verify(from, frame),
        None if frame.signature.is_some() => Err(SignatureFault::Unexpected),
        None => Ok(()),
    };
    debug_assert!(
        matches!(frame.kind, Kind::Data | Kind::End),
        "only these are taken"
    );
    checked.map_err(PeerFault::Signature)
}

/// Draws 32 bytes, for a nonce or a key.
pub(crate) fn random() -> Result<[u8; 32], Error> {
    let drawn = rand::generate(&rand::SystemRandom::new());
    let none =
        |_| Error::setup("the operating system gives no random numbers; restart the machine");
    drawn.map(rand::Random::expose).map_err(none)
}

/// Returns the bit of a member in a set of receivers. No set has a member beyond those of a mesh,
/// which has at most 64.
fn bit_of(member: usize) -> u64 {
    1_u64.checked_shl(member as u32).unwrap_or(0)
}

fn locked<T>(numbers: &Mutex<T>) -> MutexGuard<'_, T> {
    numbers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
