//! Verification: every party proves that all it sent follows from what it held.
//!
//! Each party is the prover of its own messages, the left verifier of the next party's, and the
//! right verifier of the previous party's ([`super::record`], [`crate::proof`]). The three proofs
//! run side by side, and so do the parts of what is too much for one proof.
//!
//! **Rounds.** One for what provers tell of long inner products, if there are any
//! ([`super::spread`]), one for what the verifiers tell the provers first, two for each message of a
//! prover and its challenge, of which the last challenge is left out, and one for the decision: 5 for
//! the smallest proofs, 13 for those of 2^20 products, and 15 for longer sums of products. Public
//! values that were not compared before are compared first, in up to two rounds.
//!
//! **Barrier.** Whatever a party opens, it opens after it has heard from both others that they
//! accept. If several fibers run side by side, a proof takes the record of all of them, and an
//! opening waits for the proofs that other fibers run. So all that an opened value depends on was
//! verified before.
//!
//! **A proof that is refused ends the session**, in every party that hears of it. The prover and
//! one of its verifiers may have cheated. From an honest party's point of view it was always one of
//! the two others.
//!
//! **What the proofs demand of this protocol** (the head of [`crate::proof`] lists it):
//! - The constants of an equation consist of words of the prover's message, of factors that it
//!   holds, and of masks from its own keys. So the prover knows them.
//! - Each component is held by two parties, and was sent by one of them to the other, or computed
//!   by both from what both had, or given to both by a client. So if both are honest they hold the
//!   same, and the equations of an honest prover are true. What both had includes public values,
//!   which are compared before, and public coins, whose keys were compared when they were agreed
//!   on.
//! - An operation records its equations after it has received all messages of that operation.

use super::record::{Ledger, Part, Record};
use super::relations::Role;
use crate::proof::{
    Bits, Equations, Known, KnownMap, LeftVerifier, MapEquations, Name, Opening, Prover, Refused,
    Residues, RightVerifier, Ring, Seed, Words, messages,
};
use crate::replicated::Replicated;
use crate::replicated::inputs::HASH;
use crate::{Error, Result, Verification};
use kernels::stream::{Key, Stream};
use std::time::Instant;

/// The size from which on a record is verified at once: 128 to 256 MiB.
const MOST: usize = 1 << 24;

/// The state of a party that proves what it sends.
pub(in crate::replicated) struct Verifying {
    pub record: Record,
    /// The keys that this party shares with the previous and with the next one.
    keys: [Key; 2],
    /// The number of verifications that have begun.
    begun: u64,
    /// The number of those that are under way. After one that failed, nothing is opened any more.
    under_way: usize,
    has_failed: bool,
    /// The size of a record that is verified at once.
    most: usize,
    taken: Verification,
}

impl Verifying {
    pub fn new(keys: [Key; 2]) -> Self {
        Self {
            record: Record::default(),
            keys,
            begun: 0,
            under_way: 0,
            has_failed: false,
            most: MOST,
            taken: Verification::default(),
        }
    }

    pub fn taken(&self) -> Verification {
        self.taken
    }

    /// Sets from which size on a record is verified at once.
    #[cfg(feature = "mutation")]
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
    }
}

/// Result of a step of a proof.
type Checked<T> = std::result::Result<T, Refused>;

/// A proof at its prover.
trait Proving {
    fn begin(&mut self) -> Vec<u64>;
    fn next(&mut self, seed: &Seed) -> Checked<Vec<u64>>;
}

impl<R: Ring> Proving for Prover<'_, R> {
    fn begin(&mut self) -> Vec<u64> {
        self.begin()
    }

    fn next(&mut self, seed: &Seed) -> Checked<Vec<u64>> {
        self.next(seed)
    }
}

/// A proof at its left verifier.
trait Left {
    fn opening(&self) -> Opening;
    fn messages(&self) -> usize;
    fn finish(self: Box<Self>) -> Vec<u64>;
}

impl<R: Ring> Left for LeftVerifier<'_, R> {
    fn opening(&self) -> Opening {
        self.opening()
    }

    fn messages(&self) -> usize {
        self.messages()
    }

    fn finish(self: Box<Self>) -> Vec<u64> {
        (*self).finish()
    }
}

/// A proof at its right verifier.
trait Right {
    fn opening(&self) -> Opening;
    fn messages(&self) -> usize;
    fn expects(&self) -> Option<usize>;
    fn expects_of_left(&self) -> usize;
    fn take(&mut self, message: &[u64]) -> Checked<Option<Seed>>;
    fn finish(self: Box<Self>, message: &[u64]) -> Checked<()>;
}

impl<R: Ring> Right for RightVerifier<'_, R> {
    fn opening(&self) -> Opening {
        self.opening()
    }

    fn messages(&self) -> usize {
        self.messages()
    }

    fn expects(&self) -> Option<usize> {
        self.expects()
    }

    fn expects_of_left(&self) -> usize {
        self.expects_of_left()
    }

    fn take(&mut self, message: &[u64]) -> Checked<Option<Seed>> {
        self.take(message)
    }

    fn finish(self: Box<Self>, message: &[u64]) -> Checked<()> {
        (*self).finish(message)
    }
}

/// Equations of maps that a party proves.
type ProvedMaps<'r, M> = Vec<MapEquations<M, [&'r [u64]; 2]>>;

/// What a party has of one proof: equations of words, bits or residues, and of maps.
type Proved<'r, M> = (Vec<Equations<[&'r [u64]; 2]>>, ProvedMaps<'r, M>);
type Judged<'r, M> = (Vec<Known<'r>>, Vec<KnownMap<'r, M>>);

/// What a party has of the proofs of one verification, in one ring. Each entry is one proof.
struct Share<'r, M> {
    proved: Vec<Proved<'r, M>>,
    left: Vec<Judged<'r, M>>,
    right: Vec<Judged<'r, M>>,
}

impl<'r, M> Share<'r, M> {
    /// Takes the equations of a ledger, and those of the maps of each part.
    fn of<R: Ring<Map = M>>(
        ledger: &'r Ledger,
        proved_maps: fn(&'r Ledger, &Part) -> ProvedMaps<'r, M>,
        known_maps: fn(&'r Ledger, Role, &Part) -> Vec<KnownMap<'r, M>>,
    ) -> Self {
        let parts = |role| ledger.parts(role, R::ROW).into_iter();
        let proved = |part| (ledger.proved(&part), proved_maps(ledger, &part));
        let known = |role| {
            let known = |part| (ledger.known(role, &part), known_maps(ledger, role, &part));
            parts(role).map(known).collect()
        };
        Self {
            proved: parts(Role::Prover).map(proved).collect(),
            left: known(Role::LeftVerifier),
            right: known(Role::RightVerifier),
        }
    }
}

impl<M> Share<'_, M> {
    /// Returns the number of messages in each of this party's own proofs.
    fn messages<R: Ring<Map = M>>(&self) -> impl Iterator<Item = usize> {
        let proofs = self.proved.iter();
        proofs.map(|(equations, maps)| messages::<R>(equations, maps))
    }
}

/// A party's place among its neighbours, and the keys that it shares with them.
struct Seat {
    me: usize,
    after: usize,
    before: usize,
    with_after: Key,
    with_before: Key,
    /// Counts the verifications.
    number: u64,
}

impl Seat {
    fn name(&self, prover: usize, at: usize) -> Name {
        Name {
            prover,
            number: self.number << 32 | at as u64,
        }
    }

    /// Draws what masks the message of a prover about spread sums, from its key with its left
    /// verifier.
    fn masks(&self, prover: usize, key: &Key, words: usize) -> Vec<u64> {
        let number = self.number;
        let name = format!("sums of pieces of party {prover} in verification {number}");
        let mut masks = vec![0; words];
        Stream::new(key, &name).reserve(words).fill(0, &mut masks);
        masks
    }

    fn left<'s, R: Ring + 's>(
        &self,
        share: &'s Share<'s, R::Map>,
    ) -> impl Iterator<Item = Box<dyn Left + 's>> + use<'_, 's, R> {
        let all = share.left.iter().enumerate();
        all.map(|(at, (known, maps))| -> Box<dyn Left> {
            let keys = [&self.with_after, &self.with_before];
            let name = self.name(self.after, at);
            Box::new(LeftVerifier::<R>::new(known, maps, name, keys))
        })
    }

    fn right<'s, R: Ring + 's>(
        &self,
        share: &'s Share<'s, R::Map>,
    ) -> impl Iterator<Item = Box<dyn Right + 's>> + use<'_, 's, R> {
        let all = share.right.iter().enumerate();
        all.map(|(at, (known, maps))| -> Box<dyn Right> {
            let keys = [&self.with_before, &self.with_after];
            let name = self.name(self.before, at);
            Box::new(RightVerifier::<R>::new(known, maps, name, keys))
        })
    }

    /// Begins proofs with what the verifiers told.
    fn provers<'s, R: Ring + 's>(
        &self,
        share: &'s Share<'s, R::Map>,
        openings: &mut impl Iterator<Item = [Opening; 2]>,
    ) -> Checked<Vec<Box<dyn Proving + 's>>> {
        let all = share.proved.iter().zip(openings).enumerate();
        all.map(
            |(at, ((equations, maps), openings))| -> Checked<Box<dyn Proving>> {
                let keys = [&self.with_before, &self.with_after];
                let name = self.name(self.me, at);
                let prover = Prover::<R>::new(equations, maps, openings, name, keys)?;
                Ok(Box::new(prover))
            },
        )
        .collect()
    }
}

impl Replicated {
    /// Notes that an operation recorded its equations. Verifies what is recorded if it is much,
    /// unless public values were noted among fibers, which are compared only afterwards.
    pub(in crate::replicated) fn recorded(&mut self) -> Result<()> {
        let party = &mut *self.0;
        let Some(verifying) = &mut party.verifying else {
            return Ok(());
        };
        verifying.record.note(party.channel.step());
        if verifying.record.size() > verifying.most && party.channel.can_open() {
            let step = party.channel.suspend();
            self.prove()?;
            self.channel.resume(step);
        }
        Ok(())
    }

    /// Verifies all that the three parties sent so far.
    pub(in crate::replicated) fn verify_all(&mut self) -> Result<()> {
        self.prove()?;
        // Other fibers may be verifying what this one computed.
        while let Some(verifying) = &self.verifying {
            if verifying.under_way > 0 && self.0.is_fiber() {
                self.0.round()?;
            } else if verifying.has_failed || verifying.under_way > 0 {
                // It has ended the mesh.
                self.channel.look()?;
                let failed = "a verification has failed: nothing can be opened";
                return Err(Error::misuse(failed));
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Verifies what is recorded, if anything is.
    fn prove(&mut self) -> Result<()> {
        let Some(verifying) = &mut self.verifying else {
            return Ok(());
        };
        if verifying.record.is_empty() {
            return Ok(());
        }
        // If honest parties had other public values, equations of an honest prover could be false.
        self.channel.begin_opening("verify", &[])?;
        let begun = Instant::now();
        let verifying = self.verifying.as_mut().expect("a party that proves");
        let mut record = std::mem::take(&mut verifying.record);
        let [first, last] = record.steps.take().unwrap_or_default();
        let number = verifying.begun;
        verifying.begun += 1;
        verifying.under_way += 1;
        let accepted = self.exchange(&mut record, number);
        let verifying = self.0.held().and_then(|party| party.verifying.as_mut());
        if let Some(verifying) = verifying {
            verifying.under_way -= 1;
            verifying.has_failed |= !matches!(accepted, Ok(true));
            verifying.taken.time += begun.elapsed();
        }
        match accepted? {
            true => Ok(()),
            false => Err(self.channel.cheated(&first, &last)),
        }
    }

    /// Runs all proofs. Returns whether every party accepts those that it verifies.
    fn exchange(&mut self, record: &mut Record, number: u64) -> Result<bool> {
        record.words.fill_up(Words::ROW);
        record.bits.fill_up(Bits::ROW);
        record.residues.fill_up(Residues::ROW);
        self.settle(&mut record.words, number)?;
        let words = Share::of::<Words>(&record.words, Ledger::proved_maps, Ledger::known_maps);
        let bits = Share::of::<Bits>(&record.bits, Ledger::proved_inner, Ledger::known_inner);
        let ledger = &record.residues;
        let residues = Share::of::<Residues>(ledger, |_, _| Vec::new(), |_, _, _| Vec::new());
        let (after, before) = (self.after(), self.before());
        let seat = self.seat(number);
        let mut left: Vec<_> = seat.left::<Words>(&words).collect();
        left.extend(seat.left::<Bits>(&bits));
        left.extend(seat.left::<Residues>(&residues));
        let mut right: Vec<_> = seat.right::<Words>(&words).collect();
        right.extend(seat.right::<Bits>(&bits));
        right.extend(seat.right::<Residues>(&residues));
        let mut own: Vec<usize> = words.messages::<Words>().collect();
        own.extend(bits.messages::<Bits>());
        own.extend(residues.messages::<Residues>());
        let others = left.iter().map(|proof| proof.messages());
        let others = others.chain(right.iter().map(|proof| proof.messages()));
        let turns = others.chain(own.iter().copied()).max().unwrap_or(0);

        let mut openings = self.openings(&left, &right, &own)?.into_iter();
        let (Ok(mut provers), Ok(of_bits), Ok(of_residues)) = (
            seat.provers::<Words>(&words, &mut openings),
            seat.provers::<Bits>(&bits, &mut openings),
            seat.provers::<Residues>(&residues, &mut openings),
        ) else {
            return Ok(false);
        };
        provers.extend(of_bits);
        provers.extend(of_residues);

        let mut told = provers.iter_mut().flat_map(|proof| proof.begin()).collect();
        let mut left = left.into_iter();
        let mut heard_of_left = Vec::new();
        for turn in 0..turns {
            self.tell(after, told)?;
            // The left verifiers' messages, in the first turn: they need none of the provers'.
            self.tell(before, left.by_ref().flat_map(Left::finish).collect())?;
            self.turn()?;
            let lengths = right.iter().map(|proof| proof.expects().unwrap_or(0));
            let heard = self.hear(before, lengths)?;
            if turn == 0 {
                let lengths = right.iter().map(|proof| proof.expects_of_left());
                heard_of_left = self.hear(after, lengths)?;
            }
            let Ok(seeds) = challenges(&mut right, &heard) else {
                return Ok(false);
            };
            if turn + 1 == turns {
                break;
            }
            self.tell(before, seeds)?;
            self.turn()?;
            let seed = |messages: &usize| if *messages > turn + 1 { 2 } else { 0 };
            let seeds = self.hear(after, own.iter().map(seed))?;
            let Ok(answers) = answers(&mut provers, &seeds) else {
                return Ok(false);
            };
            told = answers;
        }
        let mut accepted = true;
        for (proof, message) in right.into_iter().zip(&heard_of_left) {
            accepted &= proof.finish(message).is_ok();
        }
        self.agreed(accepted)
    }

    /// Exchanges what provers tell of spread sums ([`super::spread`]), if they tell anything.
    fn settle(&mut self, words: &mut Ledger, number: u64) -> Result<()> {
        let (after, before, told) = (self.after(), self.before(), words.told());
        let seat = self.seat(number);
        let mut heard = Vec::new();
        if told > 0 {
            let mut sums = words.sums();
            self.told("sums of pieces", told, [&mut sums]);
            let masks = seat.masks(seat.me, &seat.with_before, told);
            for (sum, mask) in sums.iter_mut().zip(masks) {
                *sum = sum.wrapping_sub(mask);
            }
            self.tell(after, sums)?;
            self.turn()?;
            heard = self.hear(before, [told].into_iter())?.concat();
        }
        words.settle(Role::RightVerifier, &heard);
        let masks = seat.masks(after, &seat.with_after, told);
        words.settle(Role::LeftVerifier, &masks);
        Ok(())
    }

    /// Tells the provers what they are told at first. Returns what this party is told as a prover.
    fn openings(
        &mut self,
        left: &[Box<dyn Left + '_>],
        right: &[Box<dyn Right + '_>],
        own: &[usize],
    ) -> Result<Vec<[Opening; 2]>> {
        let (after, before) = (self.after(), self.before());
        let told = left.iter().flat_map(|proof| encoded(&proof.opening()));
        self.tell(after, told.collect())?;
        let told = right.iter().flat_map(|proof| encoded(&proof.opening()));
        self.tell(before, told.collect())?;
        self.turn()?;
        let of_left = self.hear(before, own.iter().map(|messages| opening_words(*messages)))?;
        let of_right = self.hear(after, own.iter().map(|_| opening_words(1)))?;
        let both = of_left.iter().zip(&of_right);
        let both = both.map(|(left, right)| [decoded(left), decoded(right)]);
        Ok(both.collect())
    }

    /// Tells the others whether this party accepts. Returns whether all three do.
    fn agreed(&mut self, mut accepted: bool) -> Result<bool> {
        let others = [self.after(), self.before()];
        for peer in others {
            self.tell(peer, vec![u64::from(!accepted)])?;
        }
        self.turn()?;
        for peer in others {
            accepted &= self.hear(peer, [1].into_iter())?.concat() == [0];
        }
        Ok(accepted)
    }

    fn seat(&self, number: u64) -> Seat {
        let verifying = self.verifying.as_ref().expect("a party that proves");
        let [with_before, with_after] = verifying.keys.clone();
        Seat {
            me: self.channel.party(),
            after: self.after(),
            before: self.before(),
            with_after,
            with_before,
            number,
        }
    }

    /// Sends words of a verification, if there are any.
    fn tell(&mut self, to: usize, words: Vec<u64>) -> Result<()> {
        if let Some(verifying) = &mut self.verifying {
            verifying.taken.bytes_sent += 8 * words.len() as u64;
        }
        self.send_some(to, words)
    }

    /// Receives words of these lengths, if there are any.
    fn hear(
        &mut self,
        from: usize,
        lengths: impl Iterator<Item = usize> + Clone,
    ) -> Result<Vec<Vec<u64>>> {
        let all: usize = lengths.clone().sum();
        let words = match all {
            0 => Vec::new(),
            all => self.channel.receive(from, all)?,
        };
        let mut rest = &words[..];
        let next = |length| {
            let next;
            (next, rest) = rest.split_at(length);
            next.to_vec()
        };
        Ok(lengths.map(next).collect())
    }

    fn turn(&mut self) -> Result<()> {
        if let Some(verifying) = &mut self.verifying {
            verifying.taken.rounds += 1;
        }
        self.0.round()
    }
}

/// Takes the provers' messages, and returns the seeds to tell them.
fn challenges(right: &mut [Box<dyn Right + '_>], heard: &[Vec<u64>]) -> Checked<Vec<u64>> {
    let mut seeds = Vec::new();
    for (proof, message) in right.iter_mut().zip(heard) {
        if !message.is_empty() {
            seeds.extend(proof.take(message)?.into_iter().flatten());
        }
    }
    Ok(seeds)
}

/// Takes the seeds of the proofs that go on, and returns the next messages.
fn answers(provers: &mut [Box<dyn Proving + '_>], seeds: &[Vec<u64>]) -> Checked<Vec<u64>> {
    let mut told = Vec::new();
    for (proof, seed) in provers.iter_mut().zip(seeds) {
        if let [first, second] = seed[..] {
            told.extend(proof.next(&[first, second])?);
        }
    }
    Ok(told)
}

/// Returns the words of an opening that holds this number of hashes.
fn opening_words(hashes: usize) -> usize {
    2 + HASH * hashes
}

fn encoded(opening: &Opening) -> Vec<u64> {
    let hashes = opening.others.iter();
    let hashes = hashes.flat_map(|hash| net::bytes::to_words(hash));
    opening.seed.into_iter().chain(hashes).collect()
}

fn decoded(words: &[u64]) -> Opening {
    let (seed, hashes) = words.split_at(2);
    let hash = |words: &[u64]| {
        let bytes = net::bytes::from_words(words, 8 * HASH);
        bytes.try_into().expect("a hash of 32 bytes")
    };
    Opening {
        seed: [seed[0], seed[1]],
        others: hashes.chunks_exact(HASH).map(hash).collect(),
    }
}
