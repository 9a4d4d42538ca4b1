//! Signatures of messages, between members that have attested.
//!
//! A member signs each message of a protocol over the session, itself, the receivers, two numbers,
//! everything in the frame's head (channel, step's number and name, parameters, length), and a hash
//! of the payload. The first number counts all messages that it signed on the channel, so nothing
//! can be repeated or swapped. The second counts those to the same receivers, so nothing can be
//! left out. One signature serves all receivers of equal messages.

use crate::error::{PeerFault, SignatureFault};
use crate::frame::{Frame, Kind, Signature};
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Channel of the exchange of evidence, whose messages are not signed yet.
pub(crate) const ATTESTATION: u16 = u16::MAX;

const DOMAIN: &str = "tacit 2026 attested party: message";

/// Bytes of a payload from which it is hashed by several threads.
const LONG: usize = 1 << 17;

/// One member's key, the keys of the others, and the numbers of their messages.
pub(crate) struct Signing {
    me: usize,
    session: [u8; 32],
    own: Ed25519KeyPair,
    keys: Vec<[u8; 32]>,
    sent: Mutex<Numbers>,
    /// Numbers of the last messages, by sender.
    received: Vec<Mutex<Numbers>>,
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

/// Numbers of the last messages of one sender.
#[derive(Default)]
struct Numbers {
    /// By channel.
    last: HashMap<u16, u64>,
    /// By channel and receivers.
    places: HashMap<(u16, u64), u64>,
}

impl Signing {
    /// Makes the state of a session that begins. `keys` are those of all members, by member.
    pub(crate) fn new(
        me: usize,
        session: [u8; 32],
        own: Ed25519KeyPair,
        keys: Vec<[u8; 32]>,
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
        let receivers = frames.iter().fold(0, |set, (to, _)| set | 1 << *to);
        let mut sent = locked(&self.sent);
        let number = next(sent.last.entry(first.channel).or_default());
        let place = next(sent.places.entry((first.channel, receivers)).or_default());
        drop(sent);
        let mut signature = Signature {
            receivers,
            number,
            place,
            bytes: [0; 64],
        };
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
        if signature.receivers & 1 << self.me == 0 {
            return Err(SignatureFault::ForOthers);
        }
        let statement = self.statement(from, frame, signature);
        UnparsedPublicKey::new(&ED25519, &self.keys[from])
            .verify(&statement, &signature.bytes)
            .map_err(|_| SignatureFault::Wrong)?;
        let mut received = locked(&self.received[from]);
        let last = received.last.entry(frame.channel).or_default();
        if signature.number <= *last {
            return Err(SignatureFault::Again);
        }
        *last = signature.number;
        let stream = (frame.channel, signature.receivers);
        let place = next(received.places.entry(stream).or_default());
        drop(received);
        self.count(began);
        if place == signature.place {
            Ok(())
        } else {
            Err(SignatureFault::Gap)
        }
    }

    /// Returns the digest that is signed.
    fn statement(&self, sender: usize, frame: &Frame, signature: &Signature) -> [u8; 32] {
        let head = frame.unsigned_head();
        let payload: &[u8] = bytemuck::cast_slice(&frame.payload);
        let mut content = blake3::Hasher::new();
        if payload.len() >= LONG {
            content.update_rayon(payload);
        } else {
            content.update(payload);
        }
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        hasher.update(&self.session);
        let Signature {
            receivers,
            number,
            place,
            ..
        } = signature;
        for number in [
            sender as u64,
            *receivers,
            *number,
            *place,
            head.len() as u64,
        ] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&head);
        hasher.update(content.finalize().as_bytes());
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

fn next(last: &mut u64) -> u64 {
    *last += 1;
    *last
}

fn locked(numbers: &Mutex<Numbers>) -> MutexGuard<'_, Numbers> {
    numbers.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
