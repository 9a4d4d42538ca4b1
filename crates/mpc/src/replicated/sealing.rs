//! Results that only receivers outside the session learn: the clients of a federation.
//!
//! **Computes** messages of the parties that give x together.
//!
//! *Parties that are assumed to follow the protocol.* Party 0 outputs x0 + x1 + r and party 1
//! outputs x2 − r, with r from k01. Both are uniform, except that they add up to x.
//!
//! *Parties that prove what they send.* Everything that x depends on is verified first. With r and
//! s from the key that all three know, the components become x0 + r, x1 + s and x2 − r − s. Party i
//! outputs the new component i, and after it the hash of the new component i + 1, which it holds
//! too. A receiver compares each component with the hash from its other holder. If they differ, one
//! of the two cheated, and the receiver takes no result.
//!
//! **Adversary:** as in [`super`]. A corrupt party may send receivers anything. If two honest
//! parties hold the components that they should, then what they send determines all three: each
//! component or its hash comes from one of them. So a receiver gets the right result or stops,
//! unless there are collisions of BLAKE3. A corrupt party that sends another hash than it should
//! can only deny receivers the result, and is one of the two whom they name.
//!
//! **Rounds and bits:** none between the parties; 64 bits for each word of a message, and 256 for a
//! hash.
//!
//! **Simulation.** A receiver that colludes with no party sees words that are uniform except that
//! they add up to x: it lacks k01, or the key that all three know. Hashes are functions of the
//! words. A receiver that colludes with a party knows that party's two components, so the third one
//! follows from x.

use super::inputs::{HASH, Hashing};
use super::{Pair, Replicated, pair};
use crate::blocks::{self, BLOCK};
use crate::group::Group;
use crate::{Error, Parts, Result};
use kernels::stream::Reserved;

/// What hashes of components are of.
const CONTEXT: &str = "tacit component that clients open, version 1";

/// Words that are masked and hashed at a time.
const CHUNK: usize = 1 << 14;

/// The step that receivers name.
const STEP: &str = "the result of a round";

impl Replicated {
    pub(super) fn sealed_words(&self, n: usize) -> usize {
        match (&self.verifying, self.channel.party()) {
            (Some(_), _) => n + HASH,
            (None, 2) => 0,
            (None, _) => n,
        }
    }

    pub(super) fn seal_all(&mut self, x: Parts, out: &mut [u64]) -> Result<()> {
        let x = pair(x);
        if self.verifying.is_none() {
            self.channel.begin_of("seal", x[0].len(), &[]);
            self.seal_sum(x, out);
            return Ok(());
        }
        self.verify_all()?;
        self.channel.begin_opening_of("seal", x[0].len(), &[])?;
        self.seal_components(x, out);
        Ok(())
    }

    fn seal_sum(&mut self, [first, second]: Pair, out: &mut [u64]) {
        let party = self.channel.party();
        let masks = match party {
            0 => self.next.reserve(first.len()),
            1 => self.previous.reserve(first.len()),
            _ => return,
        };
        blocks::for_each(
            [out],
            [first, second],
            #[inline(always)]
            |offset, [out], [first, second]| {
                masks.fill(offset, out);
                for i in 0..out.len() {
                    out[i] = if party == 0 {
                        first[i].wrapping_add(second[i]).wrapping_add(out[i])
                    } else {
                        second[i].wrapping_sub(out[i])
                    };
                }
            },
        );
    }

    fn seal_components(&mut self, [first, second]: Pair, out: &mut [u64]) {
        let n = first.len();
        let own = self.channel.party();
        let masks = [self.common.reserve(n), self.common.reserve(n)];
        let (sent, hash) = out.split_at_mut(n);
        mask(&masks, own, 0, first, sent);
        let mut hashing = Hashing::new(CONTEXT);
        let mut masked = vec![0; CHUNK.min(n)];
        for (at, words) in second.chunks(CHUNK).enumerate() {
            let masked = &mut masked[..words.len()];
            mask(&masks, (own + 1) % 3, at * CHUNK, words, masked);
            hashing.update(masked);
        }
        hash.copy_from_slice(&hashing.end());
    }
}

/// Masks words of a component, of which the first is at place `begin`.
fn mask(masks: &[Reserved; 2], component: usize, begin: usize, words: &[u64], out: &mut [u64]) {
    blocks::for_each(
        [out],
        [words],
        #[inline(always)]
        |offset, [out], [words]| {
            let mut other = [0; BLOCK];
            let other = &mut other[..out.len()];
            let at = begin + offset;
            match component {
                0 | 1 => {
                    masks[component].fill(at, out);
                    for i in 0..out.len() {
                        out[i] = words[i].wrapping_add(out[i]);
                    }
                }
                _ => {
                    masks[0].fill(at, out);
                    masks[1].fill(at, other);
                    for i in 0..out.len() {
                        out[i] = words[i].wrapping_sub(out[i]).wrapping_sub(other[i]);
                    }
                }
            }
        },
    );
}

/// Joins what parties send that are assumed to follow the protocol. See
/// [`crate::submission::Unseal`].
pub(crate) fn joined(parts: &[&[u64]], out: &mut [u64]) -> Result<Option<usize>> {
    match parts {
        [first, second, []] if first.len() == second.len() => {
            let out = &mut out[..first.len()];
            out.copy_from_slice(first);
            Group::Additive.add(out, second);
            Ok(Some(out.len()))
        }
        _ => Ok(None),
    }
}

/// Joins what parties send that prove what they send: compares each component with its hash. See
/// [`crate::submission::Unseal`].
///
/// # Errors
/// `Cheating` if a component differs from its hash.
pub(crate) fn compared(parts: &[&[u64]], out: &mut [u64]) -> Result<Option<usize>> {
    let split = |part: &&'_ [u64]| part.len().checked_sub(HASH);
    let Ok(parts) = <[&[u64]; 3]>::try_from(parts) else {
        return Ok(None);
    };
    for party in 0..3 {
        let other = (party + 2) % 3;
        let [own, told] = [party, other].map(|at| split(&parts[at]).map(|n| parts[at].split_at(n)));
        let fits =
            matches!((own, told), (Some((words, _)), Some((_, told))) if hash(words) == told);
        if !fits {
            return Err(Error::Cheating {
                suspects: [party.min(other), party.max(other)],
                first: STEP.to_owned(),
                last: String::new(),
            });
        }
    }
    let n = parts[0].len() - HASH;
    if parts.iter().any(|part| part.len() != parts[0].len()) {
        return Ok(None);
    }
    let out = &mut out[..n];
    out.copy_from_slice(&parts[0][..n]);
    for part in &parts[1..] {
        Group::Additive.add(out, &part[..n]);
    }
    Ok(Some(n))
}

fn hash(words: &[u64]) -> [u64; HASH] {
    let mut hashing = Hashing::new(CONTEXT);
    hashing.update(words);
    hashing.end()
}
