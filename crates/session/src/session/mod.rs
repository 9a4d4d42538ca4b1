//! A party's links and protocol, as long as they last.

use crate::streams::{Stream, Streams, locked};
use mpc::correlations::Demand;
use mpc::{Error, Expectation, Name, Protocol, Recipient, Rehearsal, Result, Settings, functions};
use net::{Mesh, Process, Reading, Words};
use std::fmt;
use std::hint;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the links are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Threads of one process.
    Memory,
    /// TCP with TLS 1.3.
    Tls,
}

/// One party's part in a computation.
///
/// It belongs to the process that opened it. In a fork of that process everything that would use
/// its keys, counters or links is refused, and dropping it there neither waits for threads that a
/// fork does not have, nor ends links that the first process goes on using.
pub struct Session {
    process: Process,
    about: About,
    /// None once it was dropped.
    open: Option<Open>,
}

/// What is said of a session without asking it.
struct About {
    party: usize,
    parties: usize,
    words: &'static Words,
    parts: usize,
    protocol: String,
    source: Option<&'static str>,
    transport: Transport,
    threat_model: String,
    /// Whether what is computed is to be checked.
    is_checked: bool,
}

/// What is in use.
struct Open {
    mesh: Mesh,
    work: Mutex<Work>,
    streams: Streams,
}

/// What operations are run on.
struct Work {
    protocol: Box<dyn Protocol>,
    /// In its place, while it is found out what a program will take.
    rehearsal: Option<Box<dyn Rehearsal>>,
}

impl Transport {
    /// Its name, such as "tcp+tls".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Tls => "tcp+tls",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "one process, in memory",
            Self::Tls => "TLS 1.3, mutual certificates",
        })
    }
}

impl Session {
    /// Opens the protocol over the links.
    ///
    /// # Errors
    /// As [`mpc::open`].
    pub fn open(mesh: Mesh, settings: &Settings, transport: Transport) -> Result<Self> {
        keep_freed_memory();
        let opened = mpc::open(settings, &mesh, transport == Transport::Memory);
        let protocol = opened.inspect_err(|error| mesh.fail(error.clone()))?;
        let about = About {
            party: mesh.party(),
            parties: mesh.parties(),
            words: mesh.words(),
            parts: protocol.parts(),
            protocol: settings.protocol.clone(),
            source: settings.source()?.map(|source| source.name),
            transport,
            threat_model: format!("{}; links: {transport}", protocol.threat_model()),
            is_checked: false,
        };
        let work = Mutex::new(Work {
            protocol,
            rehearsal: None,
        });
        Ok(Self {
            process: Process::this(),
            about,
            open: Some(Open {
                mesh,
                work,
                streams: Streams::default(),
            }),
        })
    }

    /// The same, of which it is known whether what is computed is to be checked.
    #[must_use]
    pub fn checked(mut self, is_checked: bool) -> Self {
        self.about.is_checked = is_checked;
        self
    }

    /// Whether what is computed is to be checked, as its configuration says.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.about.is_checked
    }

    /// Which party this is.
    #[must_use]
    pub fn party(&self) -> usize {
        self.about.party
    }

    /// How many parties compute.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.about.parties
    }

    /// How texts call the members, and what they advise.
    #[must_use]
    pub fn words(&self) -> &'static Words {
        self.about.words
    }

    /// Components of a sharing that this party holds.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.about.parts
    }

    /// The protocol's name.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.about.protocol
    }

    /// The name of the source of correlations, where the protocol consumes any.
    #[must_use]
    pub fn source(&self) -> Option<&'static str> {
        self.about.source
    }

    /// What the links are made of.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.about.transport
    }

    /// In one sentence, what is protected against whom.
    #[must_use]
    pub fn threat_model(&self) -> &str {
        &self.about.threat_model
    }

    /// A party's number, checked; `what` is its part, such as "owner".
    ///
    /// # Errors
    /// `Misuse` for a party that does not exist.
    pub fn member(&self, party: usize, what: &str) -> Result<usize> {
        if party < self.parties() {
            return Ok(party);
        }
        let last = self.parties() - 1;
        Err(Error::misuse(format!(
            "{what} {party} does not exist: the parties are 0 to {last}"
        )))
    }

    /// Who learns what is opened: all, or that party.
    ///
    /// # Errors
    /// `Misuse` for a party that does not exist.
    pub fn recipient(&self, to: Option<usize>) -> Result<Recipient> {
        to.map_or(Ok(Recipient::All), |party| {
            Ok(Recipient::One(self.member(party, "receiver")?))
        })
    }

    /// Computes; one operation after another, whoever calls. In a thread of
    /// [`Session::side_by_side`] it is that stream's.
    ///
    /// # Errors
    /// `Misuse` in another process than its own, and what the work meets.
    pub fn work<T>(&self, work: impl FnOnce(&mut dyn Protocol) -> Result<T>) -> Result<T> {
        // Before the locks, which another thread may have held when the process was forked.
        let open = self.opened()?;
        if let Some(state) = open.streams.mine() {
            return work(&mut **locked(&state));
        }
        let at = &mut *self.lock()?;
        match &mut at.rehearsal {
            Some(rehearsal) => work(rehearsal.protocol()),
            None => work(&mut *at.protocol),
        }
    }

    /// From here on it is found out what a program takes of its source of correlations: operations
    /// look at no number and send nothing. False where the source makes nothing ahead, and
    /// everything stays as it was.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn rehearse(&self) -> Result<bool> {
        let at = &mut *self.lock()?;
        at.rehearsal = at.protocol.correlated().and_then(|of| of.rehearsal());
        Ok(at.rehearsal.is_some())
    }

    /// The program begins that was rehearsed: what it takes is ordered a layer ahead. It is given
    /// back where the program takes the same when it comes again.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn expect(&self) -> Result<Option<Expectation>> {
        let at = &mut *self.lock()?;
        let Some((rehearsal, of)) = at.rehearsal.take().zip(at.protocol.correlated()) else {
            return Ok(None);
        };
        let wanted = rehearsal.wanted();
        Ok((of.expect(&wanted) && wanted.is_lasting()).then_some(wanted))
    }

    /// The program begins again that was rehearsed before. False where masks of named operands have
    /// been forgotten since, so that it takes something else.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn expect_again(&self, wanted: &Expectation) -> Result<bool> {
        let at = &mut *self.lock()?;
        Ok(at.protocol.correlated().is_some_and(|of| of.expect(wanted)))
    }

    /// That program, or its rehearsal, has ended.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn expect_no_more(&self) -> Result<()> {
        let at = &mut *self.lock()?;
        at.rehearsal = None;
        if let Some(of) = at.protocol.correlated() {
            of.expect_no_more();
        }
        Ok(())
    }

    /// An operand's name may stand for another value from here on.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn forget(&self, name: Name) -> Result<()> {
        match self.opened()?.streams.mine() {
            Some(state) => functions::forget(&mut **locked(&state), name),
            None => functions::forget(&mut *self.lock()?.protocol, name),
        }
        Ok(())
    }

    /// Does works side by side, each on a thread of its own, of which one goes on at a time: while
    /// what one has sent is under way, the next one computes. All parties do as many of these, in
    /// the same order. They share and reveal nothing, and all that they compute in their threads is
    /// theirs.
    ///
    /// # Errors
    /// Of the first that fails; `Misuse` inside of one.
    pub fn side_by_side(&self, works: Vec<Stream>) -> Result<()> {
        let streams = self.opened()?.streams.clone();
        self.work(|protocol| streams.run(works, protocol))
    }

    /// Draws new coins for guards, which nobody knew before: [`Protocol::toss`].
    ///
    /// # Errors
    /// As [`Session::work`].
    pub fn toss(&self) -> Result<()> {
        self.work(|protocol| protocol.toss())
    }

    /// Whether comparisons can be guarded.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn has_guards(&self) -> Result<bool> {
        self.work(|protocol| Ok(protocol.guards()))
    }

    /// Whether what is computed can be checked ([`mpc::checks`]).
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn has_checks(&self) -> Result<bool> {
        self.work(|protocol| Ok(protocol.checking().is_some()))
    }

    /// Runs a whole program and ends the session: in order, or telling the others why.
    ///
    /// # Errors
    /// As [`Session::work`] and [`Session::close`].
    pub fn run<T>(self, program: impl FnOnce(&mut dyn Protocol) -> Result<T>) -> Result<T> {
        match self.work(program) {
            Ok(value) => self.close().map(|()| value),
            Err(error) => {
                self.fail(error.clone());
                Err(error)
            }
        }
    }

    /// The owner's public bytes, in every party.
    ///
    /// # Errors
    /// As [`mpc::broadcast`], and `Misuse` for an owner that does not exist.
    pub fn broadcast(&self, owner: usize, payload: Option<&[u8]>) -> Result<Vec<u8>> {
        let owner = self.member(owner, "owner")?;
        self.work(|protocol| mpc::broadcast(protocol.channel(), owner, payload))
    }

    /// Public bytes of each party, in every party, in one round.
    ///
    /// # Errors
    /// As [`mpc::gather`].
    pub fn gather(&self, payload: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.work(|protocol| mpc::gather(protocol.channel(), payload))
    }

    /// Names what is computed from here on, for the meter and for errors; the previous label.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn set_label(&self, label: &str) -> Result<String> {
        self.work(|protocol| Ok(protocol.channel().set_label(label)))
    }

    /// Parameters of the program that must be equal in all parties: the messages that follow carry
    /// their hash.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn note(&self, parameters: &[u8]) -> Result<()> {
        self.work(|protocol| {
            protocol.channel().note(parameters);
            Ok(())
        })
    }

    /// The same of what the parties told all others, from which steps follow. One that told two of
    /// them different things
    /// makes honest parties differ: until all have confirmed that they do not, nobody is called the
    /// odd one.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn note_told(&self, told: &[u8]) -> Result<()> {
        self.work(|protocol| {
            protocol.channel().note(told);
            protocol.channel().set_relayed(true);
            Ok(())
        })
    }

    /// A public operand that must be equal in all parties, compared in private before anything is
    /// opened.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn note_public(&self, name: &str, value: &[u8]) -> Result<()> {
        self.work(|protocol| {
            protocol.channel().note_public(name, value);
            Ok(())
        })
    }

    /// What was sent and received, by label.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn readings(&self) -> Result<Vec<(String, Reading)>> {
        self.work(|protocol| {
            let labels = protocol.channel().meter().by_label();
            Ok(labels
                .map(|(label, reading)| (label.to_owned(), *reading))
                .collect())
        })
    }

    /// What was sent and received over all labels.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn totals(&self) -> Result<Reading> {
        self.work(|protocol| Ok(protocol.channel().meter().totals()))
    }

    /// What was asked of the source of correlations, where the session records it.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn demand(&self) -> Result<Option<Demand>> {
        self.work(|protocol| Ok(protocol.correlated().and_then(|of| of.demand())))
    }

    /// What making correlations has sent, and how long computing has waited for them.
    ///
    /// # Errors
    /// `Misuse` in another process than its own.
    pub fn correlations(&self) -> Result<(Reading, Duration)> {
        self.work(|protocol| {
            let correlated = protocol.correlated();
            Ok(correlated.map_or_else(Default::default, |of| (of.reading(), of.waited())))
        })
    }

    /// Tells the other parties why this one ends. In another process than its own it does nothing:
    /// the session is not that one's to end.
    pub fn abort(&self, reason: &str) {
        if let Ok(open) = self.opened() {
            open.mesh.abort(reason);
        }
    }

    /// Tells the other parties why this one ends, and whom it blames, as [`Session::abort`] does.
    pub fn fail(&self, error: Error) {
        if let Ok(open) = self.opened() {
            open.mesh.fail(error);
        }
    }

    /// The orderly end: the others' programs have gone through the same steps, as far as they have
    /// ended within the timeout.
    ///
    /// # Errors
    /// `Misuse` in another process than its own; `Desync` for programs that differ; `Peer` for a
    /// party that failed after its last step, or did not take what was sent to it.
    pub fn close(&self) -> Result<()> {
        self.lock()?.protocol.channel().close()?;
        self.opened()?.mesh.close()
    }

    fn lock(&self) -> Result<MutexGuard<'_, Work>> {
        // Before the lock, which another thread may have held when the process was forked. A panic
        // in an operation ends the session by its own error; the state is not used again.
        let work = &self.opened()?.work;
        Ok(work.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn opened(&self) -> Result<&Open> {
        self.process.check("this session")?;
        Ok(self.open.as_ref().expect("open until it is dropped"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.process.is_this() {
            mem::forget(self.open.take());
        }
    }
}

/// Has the C library's allocator keep what is freed, up to 64 MiB for each of its arenas, for what
/// is allocated next. Results of operations come and go by megabytes; each time that their memory
/// goes back to the system, every page of the next has to be mapped and cleared anew, which takes
/// as long as computing what is written there.
///
/// glibc learns it from the largest block that was mapped and freed, and 32 MiB are the most that
/// it learns from (`mallopt(3)`, M_MMAP_THRESHOLD). Nothing touches this block, so it costs two
/// system calls. With other libraries it does nothing.
fn keep_freed_memory() {
    const LARGEST: usize = (32 << 20) - (64 << 10);
    drop(hint::black_box(Vec::<u8>::with_capacity(LARGEST)));
}

#[cfg(test)]
mod tests;
