//! Vectors of clients, who are no party: shared by seeds, so that a client uploads its vector once.
//!
//! **Computes** a sharing of x = PRG(a) + PRG(b) + rest, where the client draws the seeds a and b of 128 bits:
//!
//! | component | is | held by parties | who get it |
//! | --- | --- | --- | --- |
//! | x0 | PRG(a) | 2 and 0 | as a seed from the client |
//! | x1 | rest | 0 and 1 | 1 from the client, 0 from 1 |
//! | x2 | PRG(b) | 1 and 2 | as a seed from the client |
//!
//! The client also gives every party a commitment to each of the three (crates/net, `door::statement`), signed.
//! Party 0 holds what party 1 passes on against the commitment. For a sum alone party 1 passes on the sum of
//! the rests, which has no commitment.
//!
//! **Adversary:** as in [`super`]; clients may deviate. Any three pieces are a sharing of some x, and servers
//! that have the same signed statement hold the same pieces, so a client that deviates chooses its x and
//! nothing else.
//!
//! **Rounds and bits:** one round; 64 bits for an element and 256 for a vector, from party 1 to party 0; for a
//! sum 64 bits for an element of it. What is sealed for clients takes neither.
//!
//! **Symbols.** PRG(s): AES-128 in counter mode under a key derived from s with the component's label. A seed
//! serves one vector.
//!
//! **Simulation.** Each party lacks one of the three components. Party 0 lacks PRG(b), which masks the rest
//! that it sees; party 1 lacks PRG(a), which masks it as well; party 2 sees two seeds and nothing of x. For
//! each of them x minus what it holds is thus indistinguishable from uniform. The commitments to what a party
//! lacks hide it: each has a salt of 256 bits that only its holders get (without it, party 2 could try out
//! guesses of x, since it knows all but the rest). A sum that is passed on is a function of the rests.

use super::{PairMut, Replicated, pair, pair_mut};
use crate::blocks;
use crate::group::Group;
use crate::submission::{Component, Federated, Vector};
use crate::{Parts, PartsMut, Result};
use net::door::statement::{Piece, SALT, Salt};
use ring::stream::{Key, Reserved, Stream, random_key};

/// What the stream of a seed is for, by component.
const LABELS: [&str; 3] = [
    "submission: component 0",
    "submission: component 1",
    "submission: component 2",
];

/// What a client draws for one vector.
pub struct Drawn {
    /// a and b.
    pub seeds: [Key; 2],
    /// Of the commitments, by component.
    pub salts: [Salt; 3],
}

impl Drawn {
    /// From the operating system.
    ///
    /// # Errors
    /// `Setup` where it gives no random bytes.
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

/// A client's vector as the pieces that it hands in, by component.
#[must_use]
pub fn split(words: &[u64], drawn: &Drawn) -> [Piece; 3] {
    let [a, b] = &drawn.seeds;
    let (first, second) = (expand(a, 0, words.len()), expand(b, 2, words.len()));
    let mut rest = vec![0; words.len()];
    blocks::for_each(
        [&mut rest],
        [words],
        #[inline(always)]
        |offset, [rest], [words]| {
            let mut mask = [0; blocks::BLOCK];
            let mask = &mut mask[..rest.len()];
            first.fill(offset, mask);
            for i in 0..rest.len() {
                rest[i] = words[i].wrapping_sub(mask[i]);
            }
            second.fill(offset, mask);
            for i in 0..rest.len() {
                rest[i] = rest[i].wrapping_sub(mask[i]);
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

impl Federated for Replicated {
    fn vectors(&mut self, vectors: Vec<Vector>, n: usize, out: PartsMut) -> Result<()> {
        self.begin_submissions("take vectors", &vectors, n);
        let salts = self.pass_on_salts(&vectors)?;
        let [first, second] = pair_mut(out);
        let rows = first.chunks_exact_mut(n).zip(second.chunks_exact_mut(n));
        for ((vector, (first, second)), salt) in vectors.into_iter().zip(rows).zip(salts) {
            let Vector { client, components } = vector;
            for ((place, component), out) in components.into_iter().enumerate().zip([first, second])
            {
                match component {
                    Component::Seed(seed) => fill(&self.of_component(&seed, place, n), out),
                    Component::Words(piece) => {
                        out.copy_from_slice(&piece.words);
                        let before = self.before();
                        self.channel.send(before, piece.words)?;
                    }
                    Component::Promised(commitment) => {
                        let after = self.after();
                        let words = self.channel.receive(after, n)?;
                        let passed_on = Piece { salt, words };
                        if passed_on.commitment() != commitment {
                            return Err(self.channel.accuse(
                                after,
                                format!("what it passed on of client {client} is not what the client signed"),
                            ));
                        }
                        out.copy_from_slice(&passed_on.words);
                    }
                }
            }
        }
        Ok(())
    }

    fn sum(&mut self, vectors: Vec<Vector>, n: usize, out: PartsMut) -> Result<()> {
        self.begin_submissions("take the sum of vectors", &vectors, n);
        let out: PairMut = pair_mut(out);
        for (place, out) in out.into_iter().enumerate() {
            let mut seeds = Vec::new();
            let mut rests = Vec::new();
            let mut is_promised = false;
            for component in vectors.iter().map(|vector| &vector.components[place]) {
                match component {
                    Component::Seed(seed) => seeds.push(self.of_component(seed, place, n)),
                    Component::Words(piece) => rests.push(&piece.words[..]),
                    Component::Promised(_) => is_promised = true,
                }
            }
            if is_promised {
                let after = self.after();
                out.copy_from_slice(&self.channel.receive(after, n)?);
                continue;
            }
            add_up(&seeds, &rests, out);
            if !rests.is_empty() {
                let before = self.before();
                self.channel.send(before, out.to_vec())?;
            }
        }
        Ok(())
    }

    /// Party 0 tells x0 + x1 + r and party 1 x2 − r, with r from k01: uniform but for their sum.
    fn seal(&mut self, x: Parts, out: &mut [u64]) -> Result<bool> {
        let [first, second] = pair(x);
        self.channel.begin_of("seal", out.len(), &[]);
        let party = self.channel.party();
        let masks = match party {
            0 => self.next.reserve(out.len()),
            1 => self.previous.reserve(out.len()),
            _ => return Ok(false),
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
        Ok(true)
    }

    fn noise(&mut self, variance: u64, x: PartsMut) -> Result<()> {
        self.add_noise(variance, pair_mut(x))
    }
}

impl Replicated {
    /// All parties are about to take the vectors of the same clients.
    fn begin_submissions(&mut self, what: &str, vectors: &[Vector], n: usize) {
        let clients: Vec<u64> = vectors.iter().map(|vector| vector.client as u64).collect();
        self.channel.begin_of(what, n, &clients);
    }

    /// The salts of what is passed on, a vector each, where this party passes on or is passed on to.
    fn pass_on_salts(&mut self, vectors: &[Vector]) -> Result<Vec<[u64; SALT]>> {
        let of = |vector: &Vector| {
            let mut components = vector.components.iter();
            components.find_map(|component| match component {
                Component::Words(piece) => Some(piece.salt),
                _ => None,
            })
        };
        let held: Vec<[u64; SALT]> = vectors.iter().filter_map(of).collect();
        let is_promised = |component: &Component| matches!(component, Component::Promised(_));
        let awaits = vectors.iter().flat_map(|vector| &vector.components);
        if awaits.clone().any(is_promised) {
            let after = self.after();
            let salts = self.channel.receive(after, SALT * vectors.len())?;
            return Ok(salts
                .chunks_exact(SALT)
                .map(|salt| std::array::from_fn(|at| salt[at]))
                .collect());
        }
        if held.is_empty() {
            return Ok(vec![[0; SALT]; vectors.len()]);
        }
        let before = self.before();
        self.channel.send(before, held.as_flattened().to_vec())?;
        Ok(held)
    }

    fn of_component(&self, seed: &Key, place: usize, n: usize) -> Reserved {
        expand(seed, (self.channel.party() + place) % 3, n)
    }
}

/// Writes what a seed stands for.
fn fill(stream: &Reserved, out: &mut [u64]) {
    blocks::for_each(
        [out],
        [],
        #[inline(always)]
        |offset, [out], []| stream.fill(offset, out),
    );
}

/// The sum of what seeds stand for and of words, block by block, so that the sum is written once.
fn add_up(seeds: &[Reserved], words: &[&[u64]], out: &mut [u64]) {
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
                add(out, mask);
            }
            for words in words {
                add(out, &words[offset..offset + out.len()]);
            }
        },
    );
}

#[inline(always)]
fn add(into: &mut [u64], words: &[u64]) {
    for (into, word) in into.iter_mut().zip(words) {
        *into = Group::Additive.combine(*into, *word);
    }
}
