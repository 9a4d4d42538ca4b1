//! Clients outside of the session: what they hand in, and what they learn.
//!
//! **Taking** a request: party i's share is piece i of the client's ([`crate::request`]). No
//! interaction.
//!
//! **Sealing** a result: each party sends the client its share, masked by a fresh sharing of zero:
//! for each two parties, a pseudo-random word that one adds and the other subtracts. Two parties
//! need that mask too, unlike when one of them learns the result ([`super::inputs`]): the client
//! sees both shares, and a share may depend on more than the result.
//!
//! **Adversary:** as in [`super`]. A party that deviates can give the client any result.
//!
//! **Rounds and bits:** none between the parties; 64 bits for each word, from each party.
//!
//! **Simulation.** A client that colludes with no party sees words that are uniform except that
//! they add up to x: it lacks the keys of all pairs. A client that colludes with all parties but one
//! knows their shares and masks, so what the last party sends follows from x.

use super::{Additive, only, only_mut};
use crate::group::Group;
use crate::request;
use crate::submission::{Component, Serving};
use crate::{Error, Parts, PartsMut, Result};

impl Serving for Additive {
    fn take(
        &mut self,
        clients: &[usize],
        components: Vec<Component>,
        n: usize,
        out: PartsMut,
    ) -> Result<()> {
        let whose: Vec<u64> = clients.iter().map(|client| *client as u64).collect();
        self.channel.begin_of("take requests", n, &whose);
        let rows = only_mut(out).chunks_exact_mut(n);
        match components.into_iter().next() {
            Some(Component::Seeds(seeds)) => {
                for (seed, out) in seeds.iter().zip(rows) {
                    request::expand(seed, out);
                }
            }
            Some(Component::Pieces(pieces)) => {
                for (piece, out) in pieces.iter().zip(rows) {
                    out.copy_from_slice(&piece.words);
                }
            }
            _ => return Err(Error::misuse("a party has its own pieces of each request")),
        }
        Ok(())
    }

    fn sealed(&self, n: usize) -> usize {
        n
    }

    fn seal(&mut self, x: Parts, out: &mut [u64]) -> Result<()> {
        self.channel.begin_of("seal", out.len(), &[]);
        out.copy_from_slice(only(x));
        self.mask(Group::Additive, out);
        Ok(())
    }
}

/// Joins what the parties send. See [`crate::submission::Unseal`].
#[allow(clippy::unnecessary_wraps, reason = "another protocol's fails")]
pub(crate) fn joined(parts: &[&[u64]], out: &mut [u64]) -> Result<Option<usize>> {
    let Some(first) = parts.first().filter(|_| parts.len() > 1) else {
        return Ok(None);
    };
    if parts.iter().any(|part| part.len() != first.len()) {
        return Ok(None);
    }
    let out = &mut out[..first.len()];
    out.fill(0);
    for part in parts {
        Group::Additive.add(out, part);
    }
    Ok(Some(first.len()))
}
