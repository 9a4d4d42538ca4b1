//! A party's links and protocol, for as long as they last.

use crate::streams::{Stream, Streams, locked};
use crate::{attestation, devices};
use kernels::device::{Counters, Device};
use kernels::stream::Key;
use mpc::correlations::Demand;
use mpc::{
    Error, Expectation, Name, Protocol, Recipient, Rehearsal, Result, Settings, Verification,
};
use net::attested::Attestation;
use net::{Mesh, Process, Reading, Words};
use std::fmt;
use std::hint;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Kind of a session's links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Links between threads of one process.
    Memory,
    /// Links over TCP with TLS 1.3.
    Tls,
}

/// One party's session of a computation.
///
/// A session belongs to the process that opened it. In a fork of that process, everything that
/// would use its keys, counters or links is refused. Dropping a session in a fork does not wait for
/// threads that the fork lacks, and does not end links that the first process still uses.
pub struct Session {
    process: Process,
    about: About,
    /// `None` once it was dropped.
    open: Option<Open>,
}

/// Facts about a session that are known without its lock.
struct About {
    party: usize,
    parties: usize,
    words: &'static Words,
    parts: usize,
    protocol: String,
    source: Option<&'static str>,
    transport: Transport,
    threat_model: String,
    /// Whether computed values should be checked to stay in range.
    is_checked: bool,
    /// Kind of the device that evaluates products.
    device: &'static str,
}

/// Open links and protocol.
struct Open {
    mesh: Mesh,
    device: Arc<dyn Device>,
    work: Mutex<Work>,
    streams: Streams,
}

/// State on which operations run.
struct Work {
    protocol: Box<dyn Protocol>,
    /// Rehearsal that replaces the protocol while the demand of a program is determined.
    rehearsal: Option<Box<dyn Rehearsal>>,
}

impl Transport {
    /// Returns the transport's name, such as "tcp+tls".
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

/// Returns one sentence on what is protected against whom.
fn threat_model(
    mesh: &Mesh,
    protocol: &dyn Protocol,
    device: &dyn Device,
    transport: Transport,
) -> String {
    let attested = mesh.attestation().map(|attestation| attestation.kind);
    let attested = attested.map_or(String::new(), |kind| {
        format!("; {}", attestation::threat_model(kind))
    });
    let trusted = match devices::trust(device.kind()) {
        "" => String::new(),
        trusted => format!("; {trusted}"),
    };
    let model = protocol.threat_model();
    format!("{model}; links: {transport}{attested}{trusted}")
}

impl Session {
    /// Opens the protocol over the links. `device` evaluates the products of this party alone.
    ///
    /// # Errors
    /// As [`mpc::open`].
    pub fn open(
        mesh: Mesh,
        settings: &Settings,
        device: Arc<dyn Device>,
        transport: Transport,
    ) -> Result<Self> {
        keep_freed_memory();
        let opened = mpc::open(settings, &mesh, &device, transport == Transport::Memory);
        let protocol = opened.inspect_err(|error| mesh.fail(error.clone()))?;
        let about = About {
            party: mesh.party(),
            parties: mesh.parties(),
            words: mesh.words(),
            parts: protocol.parts(),
            protocol: settings.protocol.clone(),
            source: settings.source()?.map(|source| source.name),
            transport,
            threat_model: threat_model(&mesh, &*protocol, &*device, transport),
            is_checked: false,
            device: device.kind(),
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
                device,
                work,
                streams: Streams::default(),
            }),
        })
    }

    /// Returns what attestation has done so far, if the members have attested.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn attestation(&self) -> Result<Option<Attestation>> {
        Ok(self.opened()?.mesh.attestation())
    }

    /// Sets whether computed values should be checked to stay in range.
    #[must_use]
    pub fn checked(mut self, is_checked: bool) -> Self {
        self.about.is_checked = is_checked;
        self
    }

    /// Returns whether computed values should be checked to stay in range, as the configuration
    /// says.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.about.is_checked
    }

    /// Returns the kind of the device that evaluates this party's products, such as "cpu".
    #[must_use]
    pub fn device(&self) -> &'static str {
        self.about.device
    }

    /// Returns what the device has done in this session.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn device_counters(&self) -> Result<Counters> {
        Ok(self.opened()?.device.counters())
    }

    /// Returns the number of this party.
    #[must_use]
    pub fn party(&self) -> usize {
        self.about.party
    }

    /// Returns the number of computing parties.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.about.parties
    }

    /// Returns the words of texts for the members and for advice.
    #[must_use]
    pub fn words(&self) -> &'static Words {
        self.about.words
    }

    /// Returns the number of components of a sharing that this party holds.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.about.parts
    }

    /// Returns the protocol's name.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.about.protocol
    }

    /// Returns the name of the source of correlations, if the protocol consumes any.
    #[must_use]
    pub fn source(&self) -> Option<&'static str> {
        self.about.source
    }

    /// Returns the kind of the links.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.about.transport
    }

    /// Returns one sentence on what is protected against whom.
    #[must_use]
    pub fn threat_model(&self) -> &str {
        &self.about.threat_model
    }

    /// Checks a party's number; `what` is its role, such as "owner".
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

    /// Returns the recipient of an opening: all parties, or party `to`.
    ///
    /// # Errors
    /// `Misuse` for a party that does not exist.
    pub fn recipient(&self, to: Option<usize>) -> Result<Recipient> {
        to.map_or(Ok(Recipient::All), |party| {
            Ok(Recipient::One(self.member(party, "receiver")?))
        })
    }

    /// Runs an operation. Operations of several callers run one after another. A thread of
    /// [`Session::side_by_side`] uses its own stream.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's; errors of the work.
    pub fn work<T>(&self, work: impl FnOnce(&mut dyn Protocol) -> Result<T>) -> Result<T> {
        // This is checked before the locks, which another thread may have held when the process was
        // forked.
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

    /// Begins to determine a program's demand of its source of correlations: operations then look
    /// at no number and send nothing. Returns false, and changes nothing, if the source makes
    /// nothing ahead.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn rehearse(&self) -> Result<bool> {
        let at = &mut *self.lock()?;
        at.rehearsal = at.protocol.correlated().and_then(|of| of.rehearsal());
        Ok(at.rehearsal.is_some())
    }

    /// Begins the program that was rehearsed: its demand is ordered a layer ahead. Returns the
    /// demand if it is the same each time the program runs.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn expect(&self) -> Result<Option<Expectation>> {
        let at = &mut *self.lock()?;
        let Some((rehearsal, of)) = at.rehearsal.take().zip(at.protocol.correlated()) else {
            return Ok(None);
        };
        let wanted = rehearsal.wanted();
        Ok((of.expect(&wanted) && wanted.is_lasting()).then_some(wanted))
    }

    /// Begins again a program that was rehearsed before. Returns false if masks of named operands
    /// have been forgotten since, so that its demand differs.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn expect_again(&self, wanted: &Expectation) -> Result<bool> {
        let at = &mut *self.lock()?;
        Ok(at.protocol.correlated().is_some_and(|of| of.expect(wanted)))
    }

    /// Ends that program, or its rehearsal.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn expect_no_more(&self) -> Result<()> {
        let at = &mut *self.lock()?;
        at.rehearsal = None;
        if let Some(of) = at.protocol.correlated() {
            of.expect_no_more();
        }
        Ok(())
    }

    /// Forgets an operand's name, which may stand for another value from now on.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn forget(&self, name: Name) -> Result<()> {
        match self.opened()?.streams.mine() {
            Some(state) => locked(&state).forget(name),
            None => self.lock()?.protocol.forget(name),
        }
        Ok(())
    }

    /// Runs several works, each on its own thread, one at a time: while the messages of one are
    /// under way, the next one computes. All parties run the same number of works, in the same
    /// order. Works share and reveal nothing, and each computes only in its own thread.
    ///
    /// # Errors
    /// The error of the first work that fails; `Misuse` inside of a work.
    pub fn side_by_side(&self, works: Vec<Stream>) -> Result<()> {
        let streams = self.opened()?.streams.clone();
        self.work(|protocol| streams.run(works, protocol))
    }

    /// Draws new coins for guards, which no party knew before: [`Protocol::toss`].
    ///
    /// # Errors
    /// As [`Session::work`].
    pub fn toss(&self) -> Result<()> {
        self.work(|protocol| protocol.toss())
    }

    /// Returns whether comparisons can be guarded.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn has_guards(&self) -> Result<bool> {
        self.work(|protocol| Ok(protocol.guards()))
    }

    /// Returns whether computed values can be checked ([`mpc::checks`]).
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn has_checks(&self) -> Result<bool> {
        self.work(|protocol| Ok(protocol.checking().is_some()))
    }

    /// Verifies what was computed so far, without opening anything: [`Protocol::verify`]. A thread
    /// of [`Session::side_by_side`] verifies what its own stream has computed.
    ///
    /// # Errors
    /// As [`Session::work`], and `Cheating` if a party sent what does not follow from what it held.
    pub fn verify(&self) -> Result<()> {
        self.work(|protocol| protocol.verify())
    }

    /// Returns what verification has taken so far; `None` if the protocol verifies nothing.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn verification(&self) -> Result<Option<Verification>> {
        self.work(|protocol| Ok(protocol.verification()))
    }

    /// Runs a whole program and ends the session: in order, or with an error that the others are
    /// told.
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

    /// Sends the owner's public bytes to every party and returns them.
    ///
    /// # Errors
    /// As [`mpc::broadcast`], and `Misuse` for an owner that does not exist.
    pub fn broadcast(&self, owner: usize, payload: Option<&[u8]>) -> Result<Vec<u8>> {
        let owner = self.member(owner, "owner")?;
        self.work(|protocol| mpc::broadcast(protocol.channel(), owner, payload))
    }

    /// Returns random bits that every party knows, and none knew before: [`Protocol::public_coin`].
    ///
    /// # Errors
    /// As [`Protocol::public_coin`].
    pub fn public_coin(&self, mine: [u64; 2]) -> Result<[u64; 2]> {
        let mine = Key::from_words(mine);
        self.work(|protocol| Ok(protocol.public_coin(mine)?.to_words()))
    }

    /// Exchanges public bytes between all parties in one round; returns those of each party.
    ///
    /// # Errors
    /// As [`mpc::gather`].
    pub fn gather(&self, payload: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.work(|protocol| mpc::gather(protocol.channel(), payload))
    }

    /// Sets the label of the following computations, for the meter and for errors; returns the
    /// previous label.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn set_label(&self, label: &str) -> Result<String> {
        self.work(|protocol| Ok(protocol.channel().set_label(label)))
    }

    /// Adds parameters of the program, which must be equal in all parties. The following messages
    /// carry their hash.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn note(&self, parameters: &[u8]) -> Result<()> {
        self.work(|protocol| {
            protocol.channel().note(parameters);
            Ok(())
        })
    }

    /// Adds parameters that the parties told all others, and on which steps depend. A party that
    /// told two others different things makes honest parties differ. Until all have confirmed that
    /// they do not differ, no party is called the odd one.
    ///
    /// Messages carry a hash of parameters that guards against mistakes. A party that deviates
    /// could choose what it tells so that the hashes are equal, so the parties also compare what
    /// they were told before anything is opened.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn note_told(&self, told: &[u8]) -> Result<()> {
        self.work(|protocol| {
            protocol.channel().note(told);
            protocol
                .channel()
                .note_public("what the parties told", told);
            protocol.channel().set_relayed(true);
            Ok(())
        })
    }

    /// Notes a public operand, which must be equal in all parties. The parties compare it in
    /// private before anything is opened.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn note_public(&self, name: &str, value: &[u8]) -> Result<()> {
        self.work(|protocol| {
            protocol.channel().note_public(name, value);
            Ok(())
        })
    }

    /// Returns what was sent and received, by label.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn readings(&self) -> Result<Vec<(String, Reading)>> {
        self.work(|protocol| {
            let labels = protocol.channel().meter().by_label();
            Ok(labels
                .map(|(label, reading)| (label.to_owned(), *reading))
                .collect())
        })
    }

    /// Returns what was sent and received over all labels.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn totals(&self) -> Result<Reading> {
        self.work(|protocol| Ok(protocol.channel().meter().totals()))
    }

    /// Returns the demand for correlations so far, if the session records it.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn demand(&self) -> Result<Option<Demand>> {
        self.work(|protocol| Ok(protocol.correlated().and_then(|of| of.demand())))
    }

    /// Returns what was sent for making correlations, how long computing has waited for them, and
    /// the words of this party's shares that are ordered and not taken.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's.
    pub fn correlations(&self) -> Result<(Reading, Duration, usize)> {
        self.work(|protocol| {
            let correlated = protocol.correlated();
            Ok(correlated.map_or_else(Default::default, |of| {
                (of.reading(), of.waited(), of.stock())
            }))
        })
    }

    /// Ends the session and tells the other parties why. In another process than the session's this
    /// does nothing, since the session is not that process's to end.
    pub fn abort(&self, reason: &str) {
        if let Ok(open) = self.opened() {
            open.mesh.abort(reason);
        }
    }

    /// Ends the session and tells the other parties why and which party is to blame, as
    /// [`Session::abort`] does.
    pub fn fail(&self, error: Error) {
        if let Ok(open) = self.opened() {
            open.mesh.fail(error);
        }
    }

    /// Ends the session in order: verifies what was not verified before, since a program may reveal
    /// nothing; waits until the programs of all other parties have ended after the same steps; and
    /// hands everything sent to the network.
    ///
    /// # Errors
    /// `Misuse` in another process than the session's; `Cheating` as [`Session::verify`]; `Desync`
    /// for programs that differ; `Peer` for a party that failed after its last step, or did not
    /// accept what was sent to it.
    pub fn close(&self) -> Result<()> {
        self.work(|protocol| match protocol.channel().has_told() {
            true => Ok(()),
            false => protocol.verify(),
        })?;
        self.lock()?.protocol.channel().close()?;
        self.opened()?.mesh.close()
    }

    fn lock(&self) -> Result<MutexGuard<'_, Work>> {
        // This is checked before the lock, which another thread may have held when the process was
        // forked. A panic in an operation ends the session by its own error; the state is not used
        // again.
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

/// Makes the C library's allocator keep freed memory, up to 64 MiB for each of its arenas, for
/// later allocations. Results of operations come and go by megabytes. Each time their memory
/// returns to the system, every page of the next result must be mapped and cleared again, which
/// takes as long as computing its contents.
///
/// glibc adapts to the largest block that was mapped and freed, and 32 MiB are the most that it
/// adapts to (`mallopt(3)`, M_MMAP_THRESHOLD). Nothing touches this block, so it costs two system
/// calls. With other libraries this does nothing.
fn keep_freed_memory() {
    const LARGEST: usize = (32 << 20) - (64 << 10);
    drop(hint::black_box(Vec::<u8>::with_capacity(LARGEST)));
}

#[cfg(test)]
mod tests;
