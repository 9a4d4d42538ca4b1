//! Refusal: a member that cannot take part tells the others why, so that they do not wait for it in
//! vain.
//!
//! It calls each of them and verifies their identity, since what it says, such as the name of a
//! file, is for members only. A member that receives a refusal ends its own set-up if the caller
//! has proved its identity. A caller whose key is faulty cannot prove it. What it says is then
//! shown if the others have waited for it in vain.

use super::conversations::{Conversations, RETRY};
use super::hello::{Hello, Purpose};
use super::rendezvous::Setup;
use super::{start, tls};
use crate::config::LenientConfig;
use crate::error::{DEALER, Error};
use crate::interruption::is_interrupted;
use rustls::ClientConfig;
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time for which a member whose linking has failed tries to reach the others.
const WHILE_LINKING: Duration = Duration::from_secs(1);

/// A member that the refusal is sent to.
struct Listener {
    address: String,
    config: Arc<ClientConfig>,
}

/// Tells the others that the set-up has failed: over the connection that they made, over their link
/// if they have finished their set-up, and by a call if there is neither.
pub(super) fn part(setup: &Setup, outgoing: Vec<Option<tls::Outgoing>>, error: &Error) {
    let blamed = match error.blamed() {
        None => setup.party,
        Some(DEALER) => setup.roster.parties(),
        Some(party) => party,
    };
    let reason = error.reason(&setup.roster.voice_of(setup.party));
    let hello = Hello::new(Purpose::Refusal, setup.party, blamed, &reason);
    let mut incoming = setup.take_incoming();
    let unheard = |peer: &usize| match &mut incoming[*peer] {
        Some(stream) => hello.write(stream).is_err(),
        None => true,
    };
    let listeners = setup.others().filter(unheard).map(|peer| Listener {
        address: setup.addresses[peer].clone(),
        config: setup.tls.client(peer),
    });
    let listeners: Vec<Listener> = listeners.collect();
    thread::scope(|scope| {
        scope.spawn(|| tell(&hello, &listeners, WHILE_LINKING));
        if let Ok(mesh) = start(setup.party, setup.roster, WHILE_LINKING, outgoing, incoming) {
            mesh.fail(error.clone());
        }
    });
}

/// Tells the other members of a configuration, as far as it can be read, that `member` cannot take
/// part. Calls members that are not there again and again, for at most `most`.
pub fn refuse(lenient: &LenientConfig, reason: &str, most: Duration) {
    let own = lenient.own();
    let listeners = lenient.others().filter_map(|(address, certificate)| {
        let own = own.as_ref().map(|(pem, key)| (pem.as_str(), key.as_str()));
        Some(Listener {
            address,
            config: tls::notice_config(&certificate, own)?,
        })
    });
    let listeners: Vec<Listener> = listeners.collect();
    let member = lenient.member();
    let hello = Hello::new(Purpose::Refusal, member, member, reason);
    tell(&hello, &listeners, most);
}

fn tell(hello: &Hello, listeners: &[Listener], most: Duration) {
    let talks = &Conversations::new(most);
    thread::scope(|scope| {
        let callers: Vec<_> = listeners
            .iter()
            .map(|listener| scope.spawn(move || call(hello, listener, talks)))
            .collect();
        while !callers.iter().all(thread::ScopedJoinHandle::is_finished) {
            if talks.is_over() || is_interrupted() {
                talks.end();
                talks.cut();
            }
            thread::sleep(Duration::from_millis(2));
        }
    });
}

fn call(hello: &Hello, listener: &Listener, talks: &Conversations) {
    while !talks.is_over() {
        match talks.dial(&listener.address) {
            Some(Ok(stream)) => {
                let told = talks.hold(stream, |stream| say(hello, listener, stream));
                if told.flatten().is_some() {
                    return;
                }
            }
            Some(Err(_)) => {}
            None => return,
        }
        thread::sleep(RETRY);
    }
}

fn say(hello: &Hello, listener: &Listener, stream: TcpStream) -> Option<()> {
    let mut stream = tls::handshake(&listener.config, stream).ok()?;
    hello.write(&mut stream).ok()?;
    // The peer closes the connection when it has read everything. Closing it earlier, with
    // something unread, would lose that.
    let mut rest = Vec::new();
    drop(stream.take(1 << 12).read_to_end(&mut rest));
    Some(())
}
