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

/// One party's part of one component of one client's vector.
pub enum Component {
    /// A seed that the component is expanded from.
    Seed(Key),
    /// The component itself. This party passes it on to the party that was promised it.
    Words(Piece),
    /// The client's commitment to the component. Another party has the component and passes it on.
    Promised(Hash),
}

/// One party's part of one client's vector.
pub struct Vector {
    /// The client's number.
    pub client: usize,
    /// The components, as many as a party has of a sharing.
    pub components: Vec<Component>,
}

/// One party's part of one component of the sum of all clients' vectors.
pub enum Summed {
    /// The seeds that the components are expanded from, one of each client.
    Seeds(Vec<Key>),
    /// The sum of the components. This party passes it on to the party that was promised it.
    Words(Vec<u64>),
    /// Nothing: another party has the sum and passes it on.
    Promised,
}

/// A secret that exactly two parties know.
pub type Secret = [u8; 32];

/// The operations that a protocol provides for the servers of a federation. The clients are the
/// same in every party, in the same order.
pub trait Federated {
    /// Computes sharings of all vectors.
    ///
    /// Each vector has n > 0 words and one more word after them. `out` gets the n words of all
    /// vectors, one after another, as products need them; `last` gets the words that follow. The
    /// words that one party passes on to another must match what the client signed.
    ///
    /// # Errors
    /// `Peer` for a party that passes on anything else. Network errors.
    fn vectors(
        &mut self,
        vectors: Vec<Vector>,
        n: usize,
        out: PartsMut,
        last: PartsMut,
    ) -> Result<()>;

    /// Computes the sharing of the sum of these clients' vectors.
    ///
    /// The vectors have as many numbers as a component of `out` has words. Numbers modulo 2^32 come
    /// as multiples of 2^32. The words passed on between parties are sums too, so they cannot be
    /// compared with what each client signed.
    ///
    /// # Errors
    /// Network errors.
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

    /// Writes this party's message to a receiver outside the session who is to learn x. Returns
    /// whether this party sends one. The messages of all parties add up to x and reveal nothing
    /// else. No interaction.
    ///
    /// # Errors
    /// Network errors.
    fn seal(&mut self, x: Parts, out: &mut [u64]) -> Result<bool>;

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
/// If a party reports different lists to two others, their steps differ from here on. This shows at
/// the first message between them, and in [`confirm`] at the latest. Until then, no party is blamed
/// by name.
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
    for peer in others(parties) {
        channel.send(peer, vec![mine.len() as u64])?;
    }
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
    for peer in others(parties).filter(|_| !listed.is_empty()) {
        channel.send(peer, listed.clone())?;
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
    Ok(common.into_keys().collect())
}
