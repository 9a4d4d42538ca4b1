//! Examination of the other members, before a session or next to one that waits for them: which
//! ones are there, what they were started with, and what their clocks say.

use super::conversations::{Conversations, RETRY};
use super::hello::{Hello, Purpose, now};
use super::tls::{self, Tls};
use super::{Identity, Listener};
use crate::error::{Result, SetupFault, cause};
use crate::interruption::is_interrupted;
use crate::roster::{Members, Roster};
use std::io;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Finding at the address of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The machine answers, but no program listens: the member is not started yet.
    Nobody,
    /// The machine does not answer, and why.
    Nothing(String),
    /// A program that cannot be linked with, and why.
    Wrong(SetupFault),
    /// The member itself.
    Member {
        /// The settings that it was started with.
        parameters: String,
        /// Seconds by which its clock is ahead of this machine's.
        ahead: i64,
    },
}

/// State of one examination.
struct Look<'a> {
    mine: Hello,
    addresses: &'a [String],
    tls: Tls,
    talks: Conversations,
    found: Mutex<Vec<Found>>,
    /// Which members have called.
    called: Mutex<Vec<bool>>,
}

/// Examines the address of each member for at most `most`; returns the findings in the members'
/// order. Members that examine each other at the same time find each other. The finding for this
/// member itself means nothing.
///
/// # Errors
/// `Setup` for certificates or a key that cannot be used.
pub fn look(
    listener: Option<&Listener>,
    member: usize,
    addresses: &[String],
    kind: impl Into<Members>,
    identity: &Identity,
    parameters: &str,
    most: Duration,
) -> Result<Vec<Found>> {
    let members = addresses.len();
    let look = Look {
        mine: Hello::new(Purpose::Examination, member, member, parameters),
        addresses,
        tls: Tls::new(member, Roster::new(members, kind.into()), identity)?,
        talks: Conversations::new(most),
        found: Mutex::new(vec![Found::Nobody; members]),
        called: Mutex::new((0..members).map(|other| other == member).collect()),
    };
    let ready = listener.is_some_and(|listener| listener.socket.set_nonblocking(true).is_ok());
    thread::scope(|scope| {
        let look = &look;
        let callers = (0..members).filter(|peer| *peer != member);
        let callers: Vec<_> = callers
            .map(|peer| scope.spawn(move || look.call(peer)))
            .collect();
        let waiting = || {
            let called = look.called.lock().unwrap_or_else(PoisonError::into_inner);
            !callers.iter().all(thread::ScopedJoinHandle::is_finished)
                || (ready && called.contains(&false))
        };
        while waiting() && !look.talks.is_over() && !is_interrupted() {
            let accepted = listener
                .filter(|_| ready)
                .map(|listener| listener.socket.accept());
            match accepted {
                Some(Ok((stream, _))) if !look.talks.is_crowded() => {
                    scope.spawn(move || {
                        look.talks.hold(stream, |stream| look.answer(stream));
                    });
                }
                _ => thread::sleep(Duration::from_millis(2)),
            }
        }
        look.talks.end();
        look.talks.cut();
    });
    Ok(look
        .found
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner))
}

impl Look<'_> {
    fn find(&self, peer: usize, found: Found) {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        all[peer] = found;
    }

    fn call(&self, peer: usize) {
        while !self.talks.is_over() {
            match self.talks.dial(&self.addresses[peer]) {
                Some(Ok(stream)) => match self.talks.hold(stream, |stream| self.meet(peer, stream))
                {
                    Some(Ok(met)) => return self.find(peer, met),
                    Some(Err(Some(reason))) => self.find(peer, Found::Wrong(reason)),
                    Some(Err(None)) | None => {}
                },
                Some(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Some(Err(error)) => self.find(peer, Found::Nothing(cause(&error))),
                None => return self.find(peer, Found::Nothing("it was silent".to_owned())),
            }
            thread::sleep(RETRY);
        }
    }

    fn meet(
        &self,
        peer: usize,
        stream: TcpStream,
    ) -> std::result::Result<Found, Option<SetupFault>> {
        let mut stream = self.tls.call(peer, stream)?;
        self.mine.write(&mut stream).map_err(|_| None)?;
        let theirs = Hello::read(&mut stream).map_err(|error| tls::refusal(&error))?;
        Ok(member(&theirs))
    }

    fn answer(&self, stream: TcpStream) {
        let Ok((Some(peer), mut stream)) = self.tls.answer(stream) else {
            return;
        };
        let exchanged = self.mine.write(&mut stream);
        if let Ok(theirs) = exchanged.and_then(|()| Hello::read(&mut stream)) {
            if theirs.purpose != Purpose::Refusal {
                let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
                called[peer] = true;
            }
        }
    }
}

fn member(theirs: &Hello) -> Found {
    Found::Member {
        parameters: theirs.text.clone(),
        ahead: i64::try_from(theirs.clock)
            .unwrap_or(i64::MAX)
            .saturating_sub_unsigned(now()),
    }
}
