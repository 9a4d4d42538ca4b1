//! What clients outside of a session hand to its parties: vectors, shared by seeds.

use crate::width::Width;
use crate::{Parts, PartsMut, Result};
use kernels::stream::Key;
use net::Channel;
use net::intake::MOST_CLIENTS;
use net::intake::statement::{Hash, Piece};
use std::collections::{BTreeMap, BTreeSet};

/// Words by which a submission is told of: the client, and what stands for its statement.
const LISTED: usize = 5;

/// What one party has of one component of one client's vector.
pub enum Component {
    /// It is expanded from this.
    Seed(Key),
    /// It is here as it is, and is passed on to the party that was promised it.
    Words(Piece),
    /// Another party has it and passes it on; this is the client's commitment to it.
    Promised(Hash),
}

/// One client's vector, as one party has it.
pub struct Vector {
    /// The client's number.
    pub client: usize,
    /// As many as a sharing has at a party.
    pub components: Vec<Component>,
}

/// What one party has of one component of the sum of all clients' vectors.
pub enum Summed {
    /// The components are expanded from these, one of each client.
    Seeds(Vec<Key>),
    /// They were added up here, and the sum is passed on to the party that was promised it.
    Words(Vec<u64>),
    /// Another party has the sum and passes it on.
    Promised,
}

/// What exactly two parties know.
pub type Secret = [u8; 32];

/// What a protocol does for the servers of a federation. Clients are the same in every party, in
/// one order.
pub trait Federated {
    /// Sharings of all vectors, n words each and n not 0, one after another, and apart from them of
    /// the word that follows each, so that vectors lie as products take them. What one party passes
    /// on to another must be what the client signed.
    ///
    /// # Errors
    /// `Peer` for a party that passes on something else; what the links meet.
    fn vectors(
        &mut self,
        vectors: Vec<Vector>,
        n: usize,
        out: PartsMut,
        last: PartsMut,
    ) -> Result<()>;

    /// The sharing of the sum of the vectors of these clients, as many numbers as a component of
    /// `out` has words; those modulo 2^32 come as multiples of 2^32. What is passed on is a sum
    /// too, and cannot be compared with what each client signed.
    ///
    /// # Errors
    /// What the links meet.
    fn sum(
        &mut self,
        clients: &[usize],
        components: Vec<Summed>,
        width: Width,
        out: PartsMut,
    ) -> Result<()>;

    /// What this party and the next one know, and what it and the one before: new ones each time.
    /// No interaction.
    fn secrets(&mut self) -> [Secret; 2];

    /// Writes what this party tells somebody outside of the session who is to learn x; whether it
    /// tells anything. What all tell adds up to x, and says nothing else. No interaction.
    ///
    /// # Errors
    /// What the links meet.
    fn seal(&mut self, x: Parts, out: &mut [u64]) -> Result<bool>;

    /// Adds noise that no party knows and none chooses: to each word discrete Gaussians, of which
    /// every party lacks one of that variance, in squared units of the words. No interaction.
    ///
    /// # Errors
    /// As [`crate::gaussian::Gaussian::new`].
    fn noise(&mut self, variance: u64, x: PartsMut) -> Result<()>;
}

/// Every party has gone through the same steps, with the same public values, as every other, and
/// knows it. A round, and up to two more where public values were noted since they were last
/// compared.
///
/// # Errors
/// `Desync` and `Differ` for a party that has not; what the links meet.
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
    // What anybody was told, all have gone by the same.
    channel.set_relayed(false);
    Ok(())
}

/// The clients whose submission every party has, where all have the same: what each has is told to
/// all, by client and by what stands for the client's statement. In ascending order. Two rounds.
///
/// `are_vouched_for` says of all of mine that the others said before that they have them.
///
/// A party that tells two others different lists makes their steps differ from here on, which is
/// noticed at the first message between them, and in [`confirm`] at the latest: nobody is blamed
/// for it by name until then.
///
/// # Errors
/// `Peer` for a party that says what cannot be, or lacks what it vouched for; what the links meet.
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
                    format!("it gave client {client} a ticket for what it does not have"),
                ));
            }
            common.remove(&(missing[0] as usize));
        }
    }
    channel.set_relayed(true);
    Ok(common.into_keys().collect())
}
