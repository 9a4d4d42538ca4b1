//! Private comparison of public values: whether all parties used the same ones.
//!
//! **Computes** a running digest of all public operands of a program (BLAKE3), and compares it with
//! every other party by an [`exchange`], a balanced password-authenticated one. The comparison is
//! private because a plain tensor may be a party's secret by mistake. With a hash of it, the others
//! could try values until one fits. In an exchange, a peer can test one guess, and a wrong guess
//! ends the session.
//!
//! **Adversary:** as in the protocol that uses it, semi-honest. The digest stays hidden even from a
//! party that deviates in the exchange. Values that differ by mistake are always found. A party
//! that deviates can of course claim any digest that it knows.
//!
//! **Messages** ride on frames that are sent anyway: an element of 32 bytes, then a tag of 16, each
//! way. An exchange with a peer begins with the step after a public value was noted, unless one is
//! under way or began less than [`STEPS_BETWEEN`] steps ago. Before anything is opened, all values
//! noted so far must have been compared. If an exchange is incomplete, or older than the last
//! value, the comparison is done then, in up to two extra rounds ([`net::Channel::begin_opening`]).
//! A step in which every party sends to every other party also begins an exchange, so its elements
//! need no round ([`net::Channel::begin_comparing`]). If nothing was noted since the last
//! agreement, there is nothing to do. While steps take turns, no exchange begins, and one that is
//! under way continues.
//!
//! **Both ends know the state.** A value noted between two steps counts from the next step on. The
//! number and names of noted values are parameters of the channel, compared in each frame's header.
//! All messages of a step are received within it. So at the start of a step, both ends of a link
//! know the same about what was sent and received, and make the same decision.
//!
//! **A party that finds a difference** still sends the tag that it owes, as it would have without
//! the finding, and begins no further exchange with that peer. The channel ends the session once
//! all other parties have been compared with, and before anything is opened. So it is known if the
//! values of one party match those of no other.
//!
//! **What is opened before a difference is found:** nothing that depends on a public value that was
//! not compared with all parties, because each party compares with every other before it sends a
//! share of a result. Values that a protocol opens within an operation are masked, whatever the
//! public operands are.

mod exchange;
#[cfg(test)]
mod tests;

use crate::Result;
use curve25519_dalek::scalar::Scalar;
use exchange::{Binding, Digest, ELEMENT, Side, TAG, Tags};
use kernels::stream::random_key;
use net::{Agreement, Disagreement};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// Steps from the start of one exchange with a peer to the start of the next, unless something is
/// opened.
const STEPS_BETWEEN: u64 = 16;

/// The length in bytes from which several threads hash a value.
const LONG: usize = 1 << 18;

/// One party's digest, and how far it has been compared with each other party.
pub struct PrivateComparison {
    party: usize,
    digest: blake3::Hasher,
    /// The number of values in the digest.
    noted: u64,
    secrets: Secrets,
    pairs: Vec<Pair>,
}

/// The state of the comparison between this party and another one.
#[derive(Default)]
struct Pair {
    /// The number of values of the digest that both agreed on.
    agreed: u64,
    /// The step in which the last exchange began, and the number of exchanges so far.
    begun: u64,
    number: u64,
    under_way: Option<Comparing>,
    /// The number of values covered by the exchange that showed a difference, and the first step
    /// among them.
    differs: Option<(u64, Arc<str>)>,
    /// The step of the first value that is not agreed on, and the step of the first value that the
    /// exchange under way does not cover.
    first: Option<Arc<str>>,
    first_later: Option<Arc<str>>,
}

/// An exchange under way.
struct Comparing {
    /// The number of values in the compared digest.
    covers: u64,
    digest: Digest,
    side: Option<Side>,
    element_sent: bool,
    tags: Option<Tags>,
    tag_sent: bool,
    tag_came: bool,
}

impl PrivateComparison {
    /// Starts with no noted values.
    ///
    /// # Errors
    /// `Setup` if the operating system has no random bytes.
    pub fn new(party: usize, parties: usize) -> Result<Self> {
        Ok(Self {
            party,
            digest: blake3::Hasher::new_derive_key("tacit public values, version 1"),
            noted: 0,
            secrets: Secrets::new()?,
            pairs: (0..parties).map(|_| Pair::default()).collect(),
        })
    }
}

impl Agreement for PrivateComparison {
    fn note(&mut self, step: &str, value: &[u8]) {
        self.digest.update(&(value.len() as u64).to_le_bytes());
        if value.len() < LONG {
            self.digest.update(value);
        } else {
            self.digest.update_rayon(value);
        }
        self.noted += 1;
        if self.pairs.iter().any(|pair| pair.first_later.is_none()) {
            let step: Arc<str> = step.into();
            for pair in &mut self.pairs {
                pair.first.get_or_insert_with(|| Arc::clone(&step));
                pair.first_later.get_or_insert_with(|| Arc::clone(&step));
            }
        }
    }

    fn begin(&mut self, number: u64, comparing: bool) {
        let (party, noted) = (self.party, self.noted);
        let mut digest: Option<Digest> = None;
        for (peer, pair) in self.pairs.iter_mut().enumerate() {
            if peer != party && pair.is_due(noted, number, comparing) {
                let digest = digest
                    .get_or_insert_with(|| Zeroizing::new(*self.digest.finalize().as_bytes()));
                pair.start(number, noted, digest.clone());
            }
        }
    }

    fn piggyback(&mut self, to: usize) -> Vec<u8> {
        let party = self.party;
        let Some(pair) = self.pairs.get_mut(to) else {
            return Vec::new();
        };
        let mut piggyback = Vec::new();
        let binding = pair.binding(party, to);
        if let Some(comparing) = &mut pair.under_way {
            if !comparing.element_sent {
                piggyback.extend(comparing.side(binding, &mut self.secrets).element());
                comparing.element_sent = true;
            }
            if let Some(tags) = comparing.tags.as_ref().filter(|_| !comparing.tag_sent) {
                piggyback.extend(tags.mine);
                comparing.tag_sent = true;
            }
        }
        pair.settle();
        piggyback
    }

    fn arrived(&mut self, from: usize, piggyback: &[u8]) -> bool {
        self.take(from, piggyback).is_some()
    }

    fn disagreement(&self) -> Option<Disagreement> {
        let pairs = || self.pairs.iter().enumerate();
        let (party, (covered, step)) = pairs()
            .find_map(|(peer, pair)| pair.differs.as_ref().map(|differs| (peer, differs)))?;
        let others = || pairs().filter(|(peer, _)| ![self.party, party].contains(peer));
        let agrees = |(_, pair): (usize, &Pair)| pair.differs.is_none() && pair.agreed >= *covered;
        let differs = |(_, pair): (usize, &Pair)| pair.differs.is_some();
        let odd = if others().next().is_none() {
            None
        } else if others().all(agrees) {
            Some(party)
        } else if others().all(differs) {
            Some(self.party)
        } else {
            None
        };
        Some(Disagreement {
            party,
            step: step.to_string(),
            odd,
            is_complete: others().all(|other| agrees(other) || differs(other)),
        })
    }

    fn uncompared(&self, with: usize) -> Option<&str> {
        self.pairs.get(with)?.first.as_deref()
    }

    fn owes(&self, to: usize, turn: usize) -> bool {
        self.under_way(to).is_some_and(|comparing| match turn {
            0 => !comparing.element_sent,
            _ => !comparing.tag_sent,
        })
    }

    fn awaits(&self, from: usize, turn: usize) -> bool {
        self.under_way(from).is_some_and(|comparing| match turn {
            0 => comparing.tags.is_none(),
            _ => !comparing.tag_came,
        })
    }
}

impl PrivateComparison {
    /// Processes what arrived; `None` if it does not belong to the exchange under way.
    fn take(&mut self, from: usize, piggyback: &[u8]) -> Option<()> {
        let (element, tag) = split(piggyback)?;
        let pair = self.pairs.get_mut(from)?;
        let binding = pair.binding(self.party, from);
        let comparing = pair.under_way.as_mut()?;
        if let Some(element) = element {
            if comparing.tags.is_some() {
                return None;
            }
            let tags = comparing.side(binding, &mut self.secrets).tags(&element);
            comparing.tags = Some(tags?);
        }
        if let Some(tag) = tag {
            // A tag covers this party's element, and comes once.
            let tags = comparing.tags.as_ref();
            let expected = comparing.element_sent && !comparing.tag_came;
            if !tags.filter(|_| expected)?.fit(&tag) {
                let step = pair.first.clone().unwrap_or_else(|| "start".into());
                pair.differs.get_or_insert((comparing.covers, step));
            }
            comparing.tag_came = true;
        }
        pair.settle();
        Some(())
    }

    fn under_way(&self, peer: usize) -> Option<&Comparing> {
        self.pairs.get(peer)?.under_way.as_ref()
    }
}

impl Pair {
    fn binding(&self, party: usize, peer: usize) -> Binding {
        Binding {
            party,
            peer,
            number: self.number,
        }
    }

    /// Returns whether an exchange begins with this step; it replaces one that covers fewer values.
    /// After a disagreement with the peer there is nothing more to compare.
    fn is_due(&self, noted: u64, step: u64, comparing: bool) -> bool {
        match &self.under_way {
            Some(under_way) => comparing && under_way.covers < noted,
            None => {
                let rested = self.number == 0 || step >= self.begun + STEPS_BETWEEN;
                self.differs.is_none() && self.agreed < noted && (comparing || rested)
            }
        }
    }

    fn start(&mut self, step: u64, covers: u64, digest: Digest) {
        self.begun = step;
        self.number += 1;
        self.first_later = None;
        self.under_way = Some(Comparing {
            covers,
            digest,
            side: None,
            element_sent: false,
            tags: None,
            tag_sent: false,
            tag_came: false,
        });
    }

    /// Ends an exchange after which both parties know whether they agree.
    fn settle(&mut self) {
        if let Some(comparing) = &self.under_way {
            if comparing.tag_sent && comparing.tag_came {
                if self.differs.is_none() {
                    self.agreed = comparing.covers;
                    self.first.clone_from(&self.first_later);
                }
                self.under_way = None;
            }
        }
    }
}

impl Comparing {
    fn side(&mut self, binding: Binding, secrets: &mut Secrets) -> &Side {
        self.side
            .get_or_insert_with(|| Side::new(binding, &self.digest, secrets.scalar()))
    }
}

type Piggybacked = (Option<[u8; ELEMENT]>, Option<[u8; TAG]>);

/// Splits a piggyback into element and tag.
fn split(piggyback: &[u8]) -> Option<Piggybacked> {
    const BOTH: usize = ELEMENT + TAG;
    let element = |bytes: &[u8]| bytes.try_into().ok();
    match piggyback.len() {
        ELEMENT => Some((element(piggyback), None)),
        TAG => Some((None, piggyback.try_into().ok())),
        BOTH => Some((
            element(&piggyback[..ELEMENT]),
            piggyback[ELEMENT..].try_into().ok(),
        )),
        _ => None,
    }
}

/// A generator of secret scalars, wiped when dropped.
struct Secrets(blake3::OutputReader);

impl Secrets {
    fn new() -> Result<Self> {
        let mut hasher = blake3::Hasher::new_derive_key("tacit agreement secrets, version 1");
        for _ in 0..2 {
            hasher.update(random_key()?.as_bytes());
        }
        let secrets = Self(hasher.finalize_xof());
        hasher.zeroize();
        Ok(secrets)
    }

    fn scalar(&mut self) -> Zeroizing<Scalar> {
        let mut wide = Zeroizing::new([0; 64]);
        self.0.fill(&mut wide[..]);
        Zeroizing::new(Scalar::from_bytes_mod_order_wide(&wide))
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
