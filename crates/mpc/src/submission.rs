//! Submissions of clients outside the session: vectors that they share by seeds with the parties.

use crate::width::Width;
use crate::{Parts, PartsMut, Result};
use kernels::stream::Key;
use net::Channel;
use net::intake::MOST_CLIENTS;
use net::intake::statement::{Hash, Piece};
use std::collections::{BTreeMap, BTreeSet};

/// Words that announce a submission: the client, and the hash of its statement.
const LISTED: usize = 5;

/// One party's part of one component of all clients' vectors, in the order of the clients.
pub enum Component {
    /// Seeds that the components are expanded from.
    Seeds(Vec<Key>),
    /// The components themselves. This party passes them on to the party that was promised them.
    Pieces(Vec<Piece>),
    /// The clients' commitments to the components. Another party has these and passes them on.
    Promised(Vec<Hash>),
}

/// One party's part of one component of the sum of all clients' vectors.
pub enum Summed {
    /// What the party has of each vector.
    Each(Component),
    /// The sum of the components. This party passes it on to the party that was promised it.
    Sum(Vec<u64>),
    /// Nothing: another party has the sum and passes it on.
    PromisedSum,
}

/// Joins what the parties sent a client of a result that no party knows ([`Serving::seal`]), in
/// their order, and writes it to the beginning of `out`. Returns its
/// length, or `None` if this is not what servers send of one result. `out` is as long as the
/// longest part.
///
/// # Errors
/// `Cheating` with two servers of which one sent something else than the other has.
pub type Unseal = fn(&[&[u64]], &mut [u64]) -> Result<Option<usize>>;

/// A secret that exactly two parties know.
pub type Secret = [u8; 32];

/// The operations that a protocol provides for clients outside of the session, who hand in vectors
/// and learn results.
pub trait Serving {
    /// Computes sharings of the vectors of requests, n words each, one after another
    /// ([`crate::request`]). `clients` says whose each is, the same in every party.
    ///
    /// # Errors
    /// `Peer` or `Cheating` if a party passes on anything else than the client signed. Network
    /// errors.
    fn take(
        &mut self,
        clients: &[usize],
        components: Vec<Component>,
        n: usize,
        out: PartsMut,
    ) -> Result<()>;

    /// Returns the length of this party's message of a result of n words ([`Self::seal`]).
    fn sealed(&self, n: usize) -> usize;

    /// Writes this party's message to receivers outside the session who are to learn x. The
    /// messages of all parties give x to [`Unseal`], and nothing else to those who lack them. What
    /// x depends on is verified first; otherwise there is no interaction.
    ///
    /// # Errors
    /// As [`crate::Protocol::verify`].
    fn seal(&mut self, x: Parts, out: &mut [u64]) -> Result<()>;
}

/// The operations that a protocol provides for the servers of a federation. The clients are the
/// same in every party, in the same order.
pub trait Federated: Serving {
    /// Returns whether a party that passes on components may pass on their sum instead, for which
    /// there is no commitment.
    fn takes_sums(&self) -> bool;

    /// Computes sharings of these clients' vectors.
    ///
    /// Each vector has n > 0 words and one more word after them. `out` gets the n words of all
    /// vectors, one after another, as products need them; `last` gets the words that follow. The
    /// words that one party passes on to another must match what the client signed.
    ///
    /// # Errors
    /// `Peer` or `Cheating` if a party passes on anything else. Network errors.
    fn vectors(
        &mut self,
        clients: &[usize],
        components: Vec<Component>,
        n: usize,
        out: PartsMut,
        last: PartsMut,
    ) -> Result<()>;

    /// Computes the sharing of the sum of these clients' vectors.
    ///
    /// The vectors have as many numbers as a component of `out` has words. Numbers modulo 2^b come
    /// as multiples of 2^(64 - b). If a party passes on a sum, it cannot be compared with what each
    /// client signed.
    ///
    /// # Errors
    /// As [`Self::vectors`]; `Misuse` for a sum that this protocol does not take.
    fn sum(
        &mut self,
        clients: &[usize],
        components: Vec<Summed>,
        width: Width,
        out: PartsMut,
    ) -> Result<()>;

    /// Derives the secret shared with the next party, and the one shared with the previous party.
    /// Every call gives new ones. No interaction.
    fn secrets(&mut self) -> [Secret; 2];

    /// Adds noise that no party knows and no party chooses. Each word gets discrete Gaussians;
    /// every party lacks at least one of this variance, in squared units of the words. No
    /// interaction.
    ///
    /// # Errors
    /// As [`crate::gaussian::Gaussian::new`].
    fn noise(&mut self, variance: u64, x: PartsMut) -> Result<()>;
}

/// Confirms that every party has gone through the same steps with the same public values, and knows
/// it. Takes one round, and up to two more if public values were noted since the last comparison.
///
/// # Errors
/// `Desync` and `Differ` for a party that diverged. Network errors.
pub fn confirm(channel: &mut Channel) -> Result<()> {
    channel.begin_opening("stand behind the result", &[])?;
    let me = channel.party();
    let others = || (0..channel.parties()).filter(move |party| *party != me);
    let others: Vec<usize> = others().collect();
    for peer in &others {
        channel.send(*peer, Vec::new())?;
    }
    for peer in others {
        channel.receive(peer, 0)?;
    }
    // All parties have acted alike, whatever each was told.
    channel.set_relayed(false);
    Ok(())
}

/// Finds the clients whose submissions every party has, and has identically. Returns them in
/// ascending order. Takes two rounds.
///
/// Each party reports its submissions to all, by client and by hash of the client's statement.
/// `are_vouched_for` states that the other parties have claimed earlier to have all submissions in
/// `mine`.
///
/// If a party reports different lists to two others, these end with different lists. The lists and
/// hashes that all parties have in common are public values, so this shows before anything is
/// opened, and in [`confirm`] at the latest. Until then, no party is blamed by name.
///
/// # Errors
/// `Peer` for a party whose report is impossible, or that lacks what it vouched for. Network
/// errors.
pub fn in_common(
    channel: &mut Channel,
    mine: &BTreeMap<usize, Hash>,
    are_vouched_for: bool,
) -> Result<Vec<usize>> {
    let me = channel.party();
    let others = move |parties: usize| (0..parties).filter(move |party| *party != me);
    let parties = channel.parties();
    channel.begin("count submissions");
    channel.send_equal(others(parties), &[mine.len() as u64])?;
    let mut counts = Vec::new();
    for peer in others(parties) {
        let count = channel.receive(peer, 1)?[0];
        if count > MOST_CLIENTS as u64 {
            return Err(channel.accuse(peer, format!("it claims to have {count} submissions")));
        }
        counts.push(count as usize);
    }
    channel.begin("compare submissions");
    let listed: Vec<u64> = mine
        .iter()
        .flat_map(|(client, digest)| {
            let number = *client as u64;
            std::iter::once(number).chain(net::bytes::to_words(digest))
        })
        .collect();
    if !listed.is_empty() {
        channel.send_equal(others(parties), &listed)?;
    }
    let mut common = mine.clone();
    for (peer, count) in others(parties).zip(counts) {
        let theirs = match count {
            0 => Vec::new(),
            _ => channel.receive(peer, LISTED * count)?,
        };
        let theirs: BTreeSet<&[u64]> = theirs.chunks_exact(LISTED).collect();
        let ours = listed.chunks_exact(LISTED);
        for missing in ours.filter(|entry| !theirs.contains(entry)) {
            if are_vouched_for {
                let client = missing[0];
                return Err(channel.accuse(
                    peer,
                    format!(
                        "it gave client {client} a ticket for a submission that it does not have"
                    ),
                ));
            }
            common.remove(&(missing[0] as usize));
        }
    }
    channel.set_relayed(true);
    let entries = common.iter();
    let entries =
        entries.flat_map(|(client, hash)| (*client as u64).to_le_bytes().into_iter().chain(*hash));
    channel.note_public("the submissions in common", &entries.collect::<Vec<u8>>());
    Ok(common.into_keys().collect())
}
