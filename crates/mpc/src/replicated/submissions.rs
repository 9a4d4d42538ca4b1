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
//! (crates/net, `intake::statement`). Party 0 checks what party 1 passes on against the commitment.
//! If only the sum is needed, party 1 passes on the sum of the rests, for which there is no
//! commitment. It adds up the rests as they arrive. The other parties expand and add seeds block by
//! block. So no party's memory grows with the number of clients.
//!
//! If the sum over all clients fits, numbers may be packed two to a word ([`crate::width`]). All of
//! the above then holds modulo 2^32, and the sum is shared modulo 2^64 as a multiple of 2^32.
//!
//! **Tickets.** When the parties compare their lists of clients, party 1 has already added a vector
//! to the sum and cannot remove it. So party 1 accepts a vector only if both other parties have
//! confirmed that they hold their part of the same signed statement. The confirmation is a hash
//! under a key that they share with party 1 (crates/net, `intake::ticket`). The keys are 256 bits
//! of the streams of k01 and k12. They are new in each round and are used for nothing else.
//!
//! **Adversary:** as in [`super`]; clients may deviate. Any three pieces are a sharing of some x,
//! and servers with the same signed statement hold the same pieces. So a client that deviates
//! chooses its x and nothing else.
//!
//! **Rounds and bits:** one round, from party 1 to party 0. Vectors cost 64 bits per element and
//! 256 per vector. A sum costs 64 bits per element of the sum. Sealing results for clients costs no
//! rounds and no bits.
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

use super::{PairMut, Party, Replicated, pair, pair_mut};
use crate::blocks;
use crate::submission::{Component, Federated, Secret, Summed, Vector};
use crate::width::Width;
use crate::{Parts, PartsMut, Result};
use kernels::stream::{Key, Reserved, Stream, random_key};
use net::intake::statement::{Piece, SALT, Salt};

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

impl Federated for Replicated {
    fn vectors(
        &mut self,
        vectors: Vec<Vector>,
        n: usize,
        out: PartsMut,
        last: PartsMut,
    ) -> Result<()> {
        let clients = vectors.iter().map(|vector| vector.client);
        self.begin_submissions("take vectors", clients, n);
        let salts = self.pass_on_salts(&vectors)?;
        // The next round's vectors can reuse the memory of those that are passed on.
        let components = vectors.iter().flat_map(|vector| &vector.components);
        let passed_on = components.filter(|component| matches!(component, Component::Words(_)));
        self.channel.keep_memory(passed_on.count() * (n + 1));
        let [first, second] = pair_mut(out).map(|out| out.chunks_exact_mut(n));
        let [first_last, second_last] = pair_mut(last).map(|last| last.iter_mut());
        let rows = (first.zip(first_last)).zip(second.zip(second_last));
        for ((vector, (first, second)), salt) in vectors.into_iter().zip(rows).zip(salts) {
            let Vector { client, components } = vector;
            for ((place, component), (out, last)) in
                components.into_iter().enumerate().zip([first, second])
            {
                match component {
                    Component::Seed(seed) => {
                        fill(&self.of_component(&seed, place, n + 1), out, last);
                    }
                    Component::Words(piece) => {
                        copy(&piece.words, out, last);
                        let before = self.before();
                        self.channel.send(before, piece.words)?;
                    }
                    Component::Promised(commitment) => {
                        let after = self.after();
                        let words = self.channel.receive(after, n + 1)?;
                        let passed_on = Piece { salt, words };
                        if passed_on.commitment() != commitment {
                            return Err(self.channel.accuse(
                                after,
                                format!(
                                    "the vector that it passed on for client {client} is not \
                                         the one that the client signed"
                                ),
                            ));
                        }
                        copy(&passed_on.words, out, last);
                        self.channel.give_back(passed_on.words);
                    }
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
        self.begin_submissions("take the sum of vectors", clients.iter().copied(), n);
        let out: PairMut = pair_mut(out);
        for (place, (component, out)) in components.into_iter().zip(out).enumerate() {
            match component {
                Summed::Seeds(seeds) => {
                    let of_component = |seed| self.of_component(seed, place, words);
                    let streams: Vec<Reserved> = seeds.iter().map(of_component).collect();
                    if width == Width::Whole {
                        add_up(&streams, width, out);
                    } else {
                        let mut sum = vec![0; words];
                        add_up(&streams, width, &mut sum);
                        width.widen(&sum, out);
                    }
                }
                Summed::Words(sum) => {
                    width.widen(&sum, out);
                    let before = self.before();
                    self.channel.send(before, sum)?;
                }
                Summed::Promised => {
                    let after = self.after();
                    width.widen(&self.channel.receive(after, words)?, out);
                }
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

    /// Seals x: party 0 outputs x0 + x1 + r and party 1 outputs x2 − r, with r from k01. Both are
    /// uniform, except that they add up to x.
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
    /// Begins a step in which all parties take the vectors of the same clients.
    fn begin_submissions(&mut self, what: &str, clients: impl Iterator<Item = usize>, n: usize) {
        let clients: Vec<u64> = clients.map(|client| client as u64).collect();
        self.channel.begin_of(what, n, &clients);
    }

    /// Passes on the salts of the vectors that are passed on, one per vector. Returns them at the
    /// party that sends them and at the party that receives them.
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

fn copy(words: &[u64], out: &mut [u64], last: &mut u64) {
    let (vector, [word]) = words.split_at(out.len()) else {
        unreachable!("one word more than a vector has")
    };
    out.copy_from_slice(vector);
    *last = *word;
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
