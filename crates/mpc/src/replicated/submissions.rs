//! Vectors of clients outside the session, shared by seeds so that a client uploads its vector
//! once.
//!
//! **Computes** a sharing of x = PRG(a) + PRG(b) + rest. The client draws the seeds a and b of 128
//! bits:
//!
//! | component | value | held by parties | how they get it |
//! | --- | --- | --- | --- |
//! | x0 | PRG(a) | 2 and 0 | as a seed from the client |
//! | x1 | rest | 0 and 1 | party 1 from the client, party 0 from party 1 |
//! | x2 | PRG(b) | 1 and 2 | as a seed from the client |
//!
//! The client also gives every party a signed commitment to each of the three components
//! (crates/net, `intake::statement`). Party 0 checks what party 1 passes on against the commitment
//! ([`super::passed_on`]). If only the sum is needed, and parties are assumed to follow the
//! protocol, party 1 passes on the sum of the rests, for which there is no commitment. It adds up
//! the rests as they arrive. The other parties expand and add seeds block by block. So no party's
//! memory grows with the number of clients. If parties prove what they send, party 1 keeps the
//! rests until it passes them on.
//!
//! If the sum over all clients fits, numbers may be packed two to a word ([`crate::width`]). All of
//! the above then holds modulo 2^32, and the sum is shared modulo 2^64 as a multiple of 2^32.
//!
//! **Tickets.** When the parties compare their lists of clients, party 1 may have added a vector to
//! the sum already and cannot remove it. So party 1 accepts a vector only if both other parties
//! have confirmed that they hold their part of the same signed statement. The confirmation is a
//! hash under a key that they share with party 1 (crates/net, `intake::ticket`). The keys are 256
//! bits of the streams of k01 and k12. They are new in each round and are used for nothing else.
//!
//! **Adversary:** as in [`super`]; clients may deviate. Any three pieces are a sharing of some x,
//! and servers with the same signed statement hold the same pieces. So a client that deviates
//! chooses its x and nothing else.
//!
//! **A malicious party, with any clients.** The parties must hold the same components of the same
//! clients, or end before anything is opened. Let two parties be honest.
//!
//! - *Clients and statements.* Each party tells both others which statements it has
//!   ([`crate::submission::in_common`]). An honest party keeps a client only if the other honest
//!   party has the same statement, bit by bit. What each kept is a public value, which the two
//!   compare between themselves by a collision-resistant digest before anything is proven or
//!   opened. So they sum the same clients, with the same commitments. A party that tells the two
//!   different lists ends the round. One that denies having a client leaves it out, as a broken
//!   connection would.
//! - *Components.* An honest party took a seed or a rest from the client only if it fits the
//!   commitment, and takes a rest from party 1 only if it does. So where two honest parties hold a
//!   component, it is the same, unless the client knows a collision of BLAKE3. All that follows is
//!   computed from what both had, as [`super::proven`] demands.
//! - *Inputs.* So a corrupt party has no choice but which of the clients take part. Nobody can be
//!   in the place of a client: a statement is signed, and names the federation and the round.
//! - *Tickets.* A corrupt party can give tickets for what it lacks, or refuse them, or, as party 1,
//!   take vectors without any. What counts is decided by the lists alone, so such a client is left
//!   out. It cannot give a ticket in the name of the other honest party, whose key it lacks.
//!
//! **Rounds and bits:** one round, from party 1 to party 0. Vectors cost 64 bits per element and
//! 256 per vector, and so does a sum whose vectors are passed on; with two numbers to a word, half
//! of it. A sum that is passed on costs 64 bits per element. For results for clients see
//! [`super::sealing`].
//!
//! **Symbols.** PRG(s): AES-128 in counter mode under a key derived from s with the component's
//! label. A seed serves one vector.
//!
//! **Simulation.** Each party lacks one of the three components. Party 0 lacks PRG(b), which masks
//! the rest that it sees. Party 1 lacks PRG(a), which also masks the rest. Party 2 sees two seeds
//! and nothing of x. So for each of them, x minus the components that it holds is indistinguishable
//! from uniform. The commitment to the component that a party lacks hides that component: it has a
//! salt of 256 bits that only the holders get. Without the salt, party 2 could test guesses of x,
//! since it knows all but the rest. A sum that is passed on is a function of the rests. A ticket is
//! a function of the statement, which all parties see, and of a key that says nothing about any
//! other word of its stream.

use super::{PairMut, Party, Replicated, pair_mut};
use crate::blocks;
use crate::request;
use crate::submission::{Component, Federated, Secret, Serving, Summed};
use crate::width::Width;
use crate::{Error, Parts, PartsMut, Result};
use kernels::stream::{Key, Reserved, Stream, random_key};
use net::intake::statement::{Piece, Salt};

/// Label of a seed's stream, by component.
const LABELS: [&str; 3] = [
    "submission: component 0",
    "submission: component 1",
    "submission: component 2",
];

/// Randomness that a client draws for one vector.
pub struct Drawn {
    /// Seeds a and b.
    pub seeds: [Key; 2],
    /// Salts of the commitments, by component.
    pub salts: [Salt; 3],
}

impl Drawn {
    /// Draws seeds and salts from the operating system.
    ///
    /// # Errors
    /// `Setup` if the operating system provides no random bytes.
    pub fn fresh() -> Result<Self> {
        let salt = || -> Result<Salt> {
            let (low, high) = (random_key()?.to_words(), random_key()?.to_words());
            Ok([low[0], low[1], high[0], high[1]])
        };
        Ok(Self {
            seeds: [random_key()?, random_key()?],
            salts: [salt()?, salt()?, salt()?],
        })
    }
}

/// Splits a client's vector of `n` numbers into the pieces that it submits, by component.
///
/// `numbers` writes any run of the vector, given the index of its first number. The rest is written
/// to `memory` if that has the right length; otherwise to newly allocated memory, which must first
/// be cleared.
pub fn split(
    n: usize,
    width: Width,
    numbers: impl Fn(usize, &mut [u64]) + Sync,
    drawn: &Drawn,
    memory: Vec<u64>,
) -> [Piece; 3] {
    let [a, b] = &drawn.seeds;
    let words = width.words(n);
    let (first, second) = (expand(a, 0, words), expand(b, 2, words));
    let mut rest = memory;
    if rest.len() != words {
        rest = vec![0; words];
    }
    blocks::for_each(
        [&mut rest],
        [],
        #[inline(always)]
        |offset, [rest], []| {
            width.pack(n, offset, rest, &numbers);
            let mut mask = [0; blocks::BLOCK];
            let mask = &mut mask[..rest.len()];
            for stream in [&first, &second] {
                stream.fill(offset, mask);
                width.subtract_block(rest, mask);
            }
        },
    );
    let mut salts = drawn.salts.iter();
    [a.to_words().to_vec(), rest, b.to_words().to_vec()].map(|words| Piece {
        salt: *salts.next().expect("a salt for each piece"),
        words,
    })
}

fn expand(seed: &Key, component: usize, n: usize) -> Reserved {
    Stream::new(seed, LABELS[component]).reserve(n)
}

impl Serving for Replicated {
    fn take(
        &mut self,
        clients: &[usize],
        components: Vec<Component>,
        n: usize,
        out: PartsMut,
    ) -> Result<()> {
        self.begin_submissions("take requests", clients, n);
        for (component, out) in components.into_iter().zip(pair_mut(out)) {
            match component {
                Component::Seeds(seeds) => {
                    for (seed, out) in seeds.iter().zip(out.chunks_exact_mut(n)) {
                        request::expand(seed, out);
                    }
                }
                Component::Pieces(pieces) => self.pass_on(pieces, n, |at, words| {
                    out[at * n..][..n].copy_from_slice(words);
                })?,
                Component::Promised(commitments) => {
                    self.passed_on(clients, &commitments, n, |at, begin, words| {
                        out[at * n + begin..][..words.len()].copy_from_slice(words);
                    })?;
                }
            }
        }
        Ok(())
    }

    fn sealed(&self, n: usize) -> usize {
        self.sealed_words(n)
    }

    fn seal(&mut self, x: Parts, out: &mut [u64]) -> Result<()> {
        self.seal_all(x, out)
    }
}

impl Federated for Replicated {
    fn takes_sums(&self) -> bool {
        self.verifying.is_none()
    }

    fn vectors(
        &mut self,
        clients: &[usize],
        components: Vec<Component>,
        n: usize,
        out: PartsMut,
        last: PartsMut,
    ) -> Result<()> {
        self.begin_submissions("take vectors", clients, n);
        let (out, last) = (pair_mut(out), pair_mut(last));
        for (place, (component, (out, last))) in components
            .into_iter()
            .zip(out.into_iter().zip(last))
            .enumerate()
        {
            match component {
                Component::Seeds(seeds) => {
                    let rows = out.chunks_exact_mut(n).zip(last);
                    for (seed, (out, last)) in seeds.iter().zip(rows) {
                        fill(&self.of_component(seed, place, n + 1), out, last);
                    }
                }
                Component::Pieces(pieces) => self.pass_on(pieces, n + 1, |at, words| {
                    copy(words, 0, &mut out[at * n..][..n], &mut last[at]);
                })?,
                Component::Promised(commitments) => {
                    self.passed_on(clients, &commitments, n + 1, |at, begin, words| {
                        copy(words, begin, &mut out[at * n..][..n], &mut last[at]);
                    })?;
                }
            }
        }
        Ok(())
    }

    fn sum(
        &mut self,
        clients: &[usize],
        components: Vec<Summed>,
        width: Width,
        out: PartsMut,
    ) -> Result<()> {
        let n = out[0].len();
        let words = width.words(n);
        self.begin_submissions("take the sum of vectors", clients, n);
        let out: PairMut = pair_mut(out);
        for (place, (component, out)) in components.into_iter().zip(out).enumerate() {
            if width == Width::Whole {
                self.summed(component, place, clients, width, out)?;
            } else {
                let mut sum = self.channel.memory(words);
                self.summed(component, place, clients, width, &mut sum)?;
                width.widen(&sum, out);
                self.channel.give_back(sum);
            }
        }
        Ok(())
    }

    fn secrets(&mut self) -> [Secret; 2] {
        const WORDS: usize = size_of::<Secret>() / size_of::<u64>();
        self.channel.begin_of("keys of tickets", WORDS, &[]);
        let Party { next, previous, .. } = &mut **self;
        [next, previous].map(|stream| {
            let mut words = [0; WORDS];
            stream.reserve(WORDS).fill(0, &mut words);
            let bytes = net::bytes::from_words(&words, size_of::<Secret>());
            bytes.try_into().expect("as many bytes as were asked for")
        })
    }

    fn noise(&mut self, variance: u64, x: PartsMut) -> Result<()> {
        self.add_noise(variance, pair_mut(x))
    }
}

impl Replicated {
    /// Begins a step in which all parties take the vectors of the same clients.
    fn begin_submissions(&mut self, what: &str, clients: &[usize], n: usize) {
        let clients: Vec<u64> = clients.iter().map(|client| *client as u64).collect();
        self.channel.begin_of(what, n, &clients);
    }

    /// Writes a component of the sum, as it lies in words of vectors.
    fn summed(
        &mut self,
        component: Summed,
        place: usize,
        clients: &[usize],
        width: Width,
        out: &mut [u64],
    ) -> Result<()> {
        let words = out.len();
        if clients.is_empty() {
            out.fill(0);
        }
        match component {
            Summed::Each(Component::Seeds(seeds)) => {
                let of_component = |seed| self.of_component(seed, place, words);
                let streams: Vec<Reserved> = seeds.iter().map(of_component).collect();
                add_up(&streams, width, out);
                Ok(())
            }
            Summed::Each(Component::Pieces(pieces)) => {
                self.pass_on(pieces, words, |at, words| add(width, at, out, words))
            }
            Summed::Each(Component::Promised(commitments)) => {
                self.passed_on(clients, &commitments, words, |at, begin, words| {
                    add(width, at, &mut out[begin..][..words.len()], words);
                })
            }
            _ if !self.takes_sums() => Err(Error::misuse(
                "under this protocol a server passes on each vector, and not their sum",
            )),
            Summed::Sum(sum) => {
                out.copy_from_slice(&sum);
                let before = self.before();
                self.channel.send(before, sum)
            }
            Summed::PromisedSum => {
                let after = self.after();
                let sum = self.channel.receive(after, words)?;
                out.copy_from_slice(&sum);
                self.channel.give_back(sum);
                Ok(())
            }
        }
    }

    fn of_component(&self, seed: &Key, place: usize, n: usize) -> Reserved {
        expand(seed, (self.channel.party() + place) % 3, n)
    }
}

/// Writes the expansion of a seed.
fn fill(stream: &Reserved, out: &mut [u64], last: &mut u64) {
    // Streams can be entered only at even words.
    let even = out.len() & !1;
    let mut end = [0; 2];
    let end = &mut end[..=out.len() - even];
    stream.fill(even, end);
    *last = end[end.len() - 1];
    blocks::for_each(
        [out],
        [],
        #[inline(always)]
        |offset, [out], []| stream.fill(offset, out),
    );
}

/// Copies words that begin at a place of a vector, or of the word after it.
fn copy(words: &[u64], begin: usize, out: &mut [u64], last: &mut u64) {
    let (vector, after) = words.split_at(words.len().min(out.len() - begin));
    out[begin..][..vector.len()].copy_from_slice(vector);
    if let [word] = after {
        *last = *word;
    }
}

/// Adds the words of a vector to the sum, which the first one begins.
fn add(width: Width, at: usize, sum: &mut [u64], words: &[u64]) {
    match at {
        0 => sum.copy_from_slice(words),
        _ => width.add(sum, words),
    }
}

/// Adds up the expansions of seeds, block by block, so that the sum is written once.
fn add_up(seeds: &[Reserved], width: Width, out: &mut [u64]) {
    blocks::for_each(
        [out],
        [],
        #[inline(always)]
        |offset, [out], []| {
            let mut mask = [0; blocks::BLOCK];
            let mask = &mut mask[..out.len()];
            out.fill(0);
            for stream in seeds {
                stream.fill(offset, mask);
                width.add_block(out, mask);
            }
        },
    );
}
