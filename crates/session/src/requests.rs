//! Requests of a service's clients, as operands of a session.

use crate::Session;
use crate::submissions::serving;
use kernels::stream::Key as Seed;
use mpc::submission::Component;
use mpc::{Error, Parts, PartsMut, ProtocolProvider, Result};
use net::intake::REST;
use net::intake::requests::queue::{Key, Whole};
use net::intake::requests::{Requests, Service};
use net::intake::statement::{Hash, Piece};
use std::sync::Arc;
use std::time::Duration;

/// Makes a service from its name, its protocol, and the parties' certificates in PEM.
///
/// # Errors
/// `Misuse` for a protocol that serves no clients; otherwise as [`Service::new`].
pub fn service(name: &str, protocol: &str, parties: &[String]) -> Result<Service> {
    let mut known = mpc::PROTOCOLS.iter();
    let known = known.find(|known| known.name == protocol && known.unseal.is_some());
    let known: &ProtocolProvider =
        known.ok_or_else(|| Error::misuse(format!("protocol {protocol:?} serves no clients")))?;
    Service::new(name, protocol, known.parts, parties)
}

/// Splits the words of a request into the pieces for the parties of a service.
///
/// # Errors
/// `Setup` if the operating system gives no random bytes.
pub fn split(service: &Service, words: &[u64]) -> Result<Vec<Piece>> {
    mpc::request::split(words, service.parties())
}

/// Takes the vectors of requests as one batch, which were taken at all parties, and writes the
/// sharings of their vectors of n words, one after another. Returns how long each has been here.
/// All parties take the same requests.
///
/// # Errors
/// `Misuse` for a request that was not taken here, or is of another length; otherwise as
/// [`mpc::Serving::take`].
pub fn take(
    session: &Session,
    requests: &Requests,
    service: &Service,
    (model, keys): (Hash, &[Key]),
    n: usize,
    out: PartsMut,
) -> Result<Vec<Duration>> {
    let is_right = out.len() == session.parts()
        && out.iter().all(|part| part.len() == n * keys.len())
        && session.parties() == service.parties();
    if !is_right || n == 0 || keys.is_empty() {
        return Err(Error::misuse(format!(
            "a batch of {} requests needs {} components of {n} words for each",
            keys.len(),
            session.parts()
        )));
    }
    let taken = requests.taken(keys)?;
    let (whole, ages): (Vec<Arc<Whole>>, Vec<Duration>) = taken.into_iter().unzip();
    let fits =
        |each: &Arc<Whole>| (each.statement.model, each.statement.words) == (model, n as u64);
    if !whole.iter().all(fits) {
        return Err(Error::misuse(
            "the requests of a batch are for its model, and as long as its input",
        ));
    }
    let clients: Vec<usize> = keys.iter().map(|(client, _)| *client).collect();
    let party = session.party();
    let sent = service.sent_to(party);
    let component = |piece: usize| {
        let Some(at) = sent.iter().position(|sent| *sent == piece) else {
            let promised = whole.iter().map(|each| each.statement.pieces[piece]);
            return Component::Promised(promised.collect());
        };
        let held = whole.iter().map(|each| &each.pieces[at]);
        match piece {
            REST => Component::Pieces(held.cloned().collect()),
            _ => Component::Seeds(held.map(seed).collect()),
        }
    };
    let components = service.pieces_of(party).into_iter().map(component);
    let components = components.collect();
    session.work(|protocol| serving(protocol)?.take(&clients, components, n, out))?;
    Ok(ages)
}

/// Returns what this party sends each client of a batch of its result. `x` has a row for each
/// request. Nothing may reach a client before [`crate::submissions::confirm`].
///
/// # Errors
/// `Misuse` for components of other lengths; otherwise as [`mpc::Serving::seal`].
pub fn seal(session: &Session, requests: usize, x: Parts) -> Result<Vec<Vec<u64>>> {
    let length = x.first().map_or(0, |part| part.len());
    let is_right = x.len() == session.parts() && x.iter().all(|part| part.len() == length);
    if !is_right || requests == 0 || length % requests != 0 {
        return Err(Error::misuse(format!(
            "the results of {requests} requests need {} components, with a row of one length for \
             each",
            session.parts()
        )));
    }
    let n = length / requests;
    session.work(|protocol| {
        let protocol = serving(protocol)?;
        let sealed = (0..requests).map(|at| {
            let row: Vec<&[u64]> = x.iter().map(|part| &part[at * n..][..n]).collect();
            let mut out = vec![0; protocol.sealed(n)];
            protocol.seal(&row, &mut out)?;
            Ok(out)
        });
        sealed.collect()
    })
}

fn seed(piece: &Piece) -> Seed {
    Seed::from_words([piece.words[0], piece.words[1]])
}
