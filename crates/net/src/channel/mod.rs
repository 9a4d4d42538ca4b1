//! An ordered stream of messages between all parties, step by step.

mod divergence;
mod ending;
mod progress;
mod suspension;

use crate::agreement::{Agreement, TURNS};
use crate::error::{Error, PeerFault, Result};
use crate::frame::{Frame, Kind, MOST_WORDS};
use crate::inbox::{Arrival, End};
use crate::mesh::{Mesh, Shared, step_name};
use crate::meter::Meter;
use crate::parameters::Parameters;
use crate::step_log::{Begun, StepLog};
use progress::Progress;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
pub use suspension::{Suspended, Watch};

/// After what time a party that waits for a message says so, and where it stands.
const LONG: Duration = Duration::from_secs(1);

/// Sees, and may change, each payload that arrives: sender, step, words. For tests.
pub type Tap = Box<dyn FnMut(usize, &str, &mut Vec<u64>) + Send>;

/// Whether work ahead of need is waited for. Its other handle is with whoever will need it.
#[derive(Clone, Default)]
pub struct Patience(Arc<Need>);

#[derive(Default)]
struct Need {
    needed: AtomicBool,
    over: AtomicBool,
}

impl Patience {
    /// From here on somebody waits, or nobody does.
    pub fn set_needed(&self, needed: bool) {
        self.0.needed.store(needed, Ordering::Relaxed);
    }

    /// Nobody will ever wait again: waiting channels give up.
    pub fn end(&self) {
        self.0.over.store(true, Ordering::Relaxed);
    }

    fn is_needed(&self) -> bool {
        self.0.needed.load(Ordering::Relaxed)
    }

    /// Whether [`Patience::end`] was called.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }
}

/// One party's end of a channel. All parties go through the same steps in the same order.
pub struct Channel {
    shared: Arc<Shared>,
    id: u16,
    step: Arc<str>,
    sequence: u64,
    /// The number of the step that began last.
    last: u64,
    /// Whether steps are interleaved: each is suspended and resumed.
    interleaved: bool,
    /// Of all that was asked of this channel.
    parameters: Parameters,
    /// The same when the current step began: what its messages carry.
    begun: Parameters,
    /// The same of the last steps.
    step_log: Arc<StepLog>,
    /// Whose messages of the current step came: a bit for each.
    agreed: u64,
    agreement: Option<Box<dyn Agreement>>,
    /// The step in which a peer was found to take other values for public.
    disagreed: Option<u64>,
    /// See [`Channel::set_relayed`].
    relayed: bool,
    /// Lamport clock: the longest chain of messages that this party's state depends on.
    depth: u32,
    meter: Meter,
    tap: Option<Tap>,
    patience: Option<Patience>,
    /// Whether this party's program has ended.
    ended: bool,
    /// Whether the program has been told of the failure that ended the mesh.
    told: bool,
}

impl Mesh {
    /// An ordered stream of messages of its own, over the same links.
    ///
    /// # Panics
    /// If that channel was opened before.
    #[must_use]
    pub fn channel(&self, id: u16) -> Channel {
        let new = self
            .shared
            .opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id);
        assert!(new, "channel {id} is open already");
        Channel::new(Arc::clone(&self.shared), id)
    }
}

impl Channel {
    pub(crate) fn new(shared: Arc<Shared>, id: u16) -> Self {
        let meter = Meter::new(shared.members());
        let step_log = Arc::new(StepLog::default());
        shared.remember(id, &step_log);
        Self {
            shared,
            id,
            step: "start".into(),
            sequence: 0,
            last: 0,
            interleaved: false,
            parameters: Parameters::default(),
            begun: Parameters::default(),
            step_log,
            agreed: 0,
            agreement: None,
            disagreed: None,
            relayed: false,
            depth: 0,
            meter,
            tap: None,
            patience: None,
            ended: false,
            told: false,
        }
    }

    /// Which party this is.
    #[must_use]
    pub fn party(&self) -> usize {
        self.shared.party
    }

    /// How many parties compute.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.shared.parties()
    }

    /// Begins the next step. Messages carry its number and name, the label in front.
    pub fn begin(&mut self, name: &str) {
        self.begin_with(name, &[]);
    }

    /// The same for a step with parameters, such as a width or a recipient, which must be equal in
    /// all parties.
    pub fn begin_with(&mut self, name: &str, parameters: &[u64]) {
        self.start(name, parameters, false);
    }

    /// The same for a step in which every party sends something to every other: what was noted as
    /// public so far begins to be compared with these messages.
    pub fn begin_comparing(&mut self, name: &str) {
        self.start(name, &[], true);
    }

    /// The same for an operation on so many elements, which its name says.
    pub fn begin_of(&mut self, operation: &str, n: usize, parameters: &[u64]) {
        self.begin_with(&format!("{operation} of {n}"), parameters);
    }

    /// The same for an operation that opens something, as [`Channel::begin_opening`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_opening_of(
        &mut self,
        operation: &str,
        n: usize,
        parameters: &[u64],
    ) -> Result<()> {
        self.begin_opening(&format!("{operation} of {n}"), parameters)
    }

    /// The same for a step that opens something: first, all that was noted as public so far is
    /// compared with all parties. Takes up to two rounds where that has not ridden on earlier
    /// messages, or nothing.
    ///
    /// # Errors
    /// `Differ` for public values that differ; `Misuse` where steps are interleaved and something
    /// is to be compared; as [`Channel::receive`].
    pub fn begin_opening(&mut self, name: &str, parameters: &[u64]) -> Result<()> {
        if self.interleaved {
            return self.begin_opening_interleaved(name, parameters);
        }
        self.start(name, parameters, true);
        for turn in 0..TURNS {
            for peer in 0..self.parties() {
                if self.comparing(|agreement| agreement.owes(peer, turn)) {
                    self.send(peer, Vec::new())?;
                }
            }
            for peer in 0..self.parties() {
                if self.comparing(|agreement| agreement.awaits(peer, turn)) {
                    self.receive(peer, 0)?;
                }
            }
        }
        self.agree(true)
    }

    fn comparing(&self, question: impl Fn(&dyn Agreement) -> bool) -> bool {
        self.agreement.as_deref().is_some_and(question)
    }

    /// A step of a number of its own begins.
    fn number(&mut self) {
        self.last += 1;
        self.sequence = self.last;
        self.agreed = 0;
    }

    fn start(&mut self, name: &str, parameters: &[u64], comparing: bool) {
        self.number();
        self.step = self.named(name);
        self.parameters.fold_bytes(self.step.as_bytes());
        parameters
            .iter()
            .for_each(|word| self.parameters.fold(*word));
        self.set_begun(Arc::clone(&self.step), false);
        if let Some(agreement) = self.agreement.as_mut().filter(|_| !self.interleaved) {
            agreement.begin(self.sequence, comparing);
        }
    }

    /// What messages carry from here on.
    fn set_begun(&mut self, name: Arc<str>, is_end: bool) {
        self.begun = self.parameters;
        self.step_log.begin(Begun {
            sequence: self.sequence,
            name,
            parameters: self.begun.value(),
            is_end,
        });
    }

    /// A step's name with the label in front.
    fn named(&self, name: &str) -> Arc<str> {
        match self.meter.label() {
            "" => step_name(name),
            label => step_name(&format!("{label}: {name}")),
        }
    }

    /// Further parameters of the program, such as an operator and its scale, which must be equal in
    /// all
    /// parties: the messages of the next step carry their hash.
    pub fn note(&mut self, parameters: &[u8]) {
        self.parameters.fold_bytes(parameters);
    }

    /// A public value that must be equal in all parties. Its name and length are parameters. The
    /// value itself
    /// may be secret by mistake: it is compared in private.
    pub fn note_public(&mut self, name: &str, value: &[u8]) {
        self.parameters.fold_bytes(name.as_bytes());
        self.parameters.fold(value.len() as u64);
        let step = self.named(name);
        if let Some(agreement) = &mut self.agreement {
            agreement.note(&step, value);
        }
        self.tell_uncompared();
    }

    /// Lets the channel to a dealer, which compares no public values, know what may be the cause
    /// where it differs.
    fn tell_uncompared(&self) {
        let has_dealer = self.shared.members() > self.parties();
        if let Some(agreement) = self.agreement.as_ref().filter(|_| has_dealer) {
            let step = agreement.uncompared(0).map(str::to_owned);
            *self.shared.uncompared() = step;
        }
    }

    /// How public values are compared; without, they are not.
    pub fn set_agreement(&mut self, agreement: Box<dyn Agreement>) {
        self.agreement = Some(agreement);
    }

    /// Whether steps follow, from here on, from what each party told the others of what it alone
    /// knows. One that told two of them different things makes honest parties differ, so nobody is
    /// called the odd one meanwhile.
    pub fn set_relayed(&mut self, relayed: bool) {
        self.relayed = relayed;
    }

    /// The name of the current step.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.step
    }

    /// What was sent, by label.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Names what is computed from here on, for the meter and the steps; returns the previous
    /// label.
    pub fn set_label(&mut self, label: &str) -> String {
        let previous = self.meter.label().to_owned();
        self.meter.set_label(label);
        previous
    }

    /// For what messages are waited for from here on, by a number of the caller's; that before. It
    /// is 0 at first.
    pub fn set_account(&mut self, account: u32) -> u32 {
        self.meter.set_account(account)
    }

    /// For what messages were waited since this was last asked, and for how long.
    pub fn take_waited(&mut self) -> BTreeMap<u32, Duration> {
        self.meter.take_waited()
    }

    /// Lets this channel wait without limit while its work is not needed yet.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = Some(patience);
    }

    /// Lets a test see and change what arrives.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// Memory for a message, with anything in it: whoever takes it writes all of it.
    #[must_use]
    pub fn memory(&self, words: usize) -> Vec<u64> {
        self.spare_memory(words).unwrap_or_else(|| vec![0; words])
    }

    /// The same where some lies ready.
    #[must_use]
    pub fn spare_memory(&self, words: usize) -> Option<Vec<u64>> {
        self.shared.inbox.pool.take(words)
    }

    /// From here on memory of so many words of messages, sent or worked off, stays besides what
    /// always does.
    pub fn keep_memory(&self, words: usize) {
        self.shared.inbox.pool.keep(words);
    }

    /// Gives back the memory of a message that was worked off.
    pub fn give_back(&self, message: Vec<u64>) {
        self.shared.inbox.pool.give(message);
    }

    /// Sends words to a party, as part of the current step. Does not wait for the receiver.
    ///
    /// # Errors
    /// `Misuse` for a message of more than 2^27 words; `Peer` where the link or the mesh has ended.
    pub fn send(&mut self, to: usize, payload: Vec<u64>) -> Result<()> {
        if self.send_unless_finished(to, payload)? {
            return Ok(());
        }
        Err(self.finished(to))
    }

    /// Why nothing can be exchanged with a party that has finished; the end of the run, unless this
    /// channel's work is not needed.
    fn finished(&self, party: usize) -> Error {
        let error = self.shared.blame(party, &self.step, PeerFault::Finished);
        let idle = self.patience.as_ref().is_some_and(|now| !now.is_needed());
        if idle { error } else { self.shared.fail(error) }
    }

    /// The same for a party that may finish without waiting for it; false if that is known to have
    /// happened.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_unless_finished(&mut self, to: usize, payload: Vec<u64>) -> Result<bool> {
        let words = payload.len();
        if words > MOST_WORDS {
            return Err(self.shared.fail(Error::misuse(format!(
                "step \"{}\" sends {words} words at once; the limit is {MOST_WORDS}: work on smaller tensors",
                self.step
            ))));
        }
        let piggyback = match &mut self.agreement {
            Some(agreement) if to < self.shared.parties() => agreement.piggyback(to),
            _ => Vec::new(),
        };
        let frame = Frame {
            kind: Kind::Data,
            channel: self.id,
            depth: self.depth.saturating_add(1),
            sequence: self.sequence,
            parameters: self.begun.value(),
            name: Arc::clone(&self.step),
            piggyback,
            payload,
        };
        let wire_bytes = frame.wire_bytes();
        let sent = self.shared.send(to, frame);
        let sent = sent.inspect_err(|_| self.told = true)?;
        if sent {
            self.meter.sent(to, words, wire_bytes);
        }
        Ok(sent)
    }

    /// Ends the run for every party: what this one sent cannot be. Returns the error that counts.
    #[must_use]
    pub fn accuse(&self, party: usize, fault: impl Into<PeerFault>) -> Error {
        self.shared
            .fail(self.shared.blame(party, &self.step, fault))
    }

    /// The next message of a party, which must belong to the current step and have that many words.
    ///
    /// # Errors
    /// `Desync` for another step or length; `Peer` where nothing comes within the timeout, or the
    /// mesh has ended.
    pub fn receive(&mut self, from: usize, words: usize) -> Result<Vec<u64>> {
        if from == self.party() || from >= self.shared.members() {
            return Err(Error::misuse(format!(
                "party {} cannot receive from party {from}",
                self.party()
            )));
        }
        let started = Instant::now();
        let received = self
            .wait(from, words, started)
            .and_then(|frame| self.accept(from, words, frame, started));
        received.inspect_err(|_| self.told = true)
    }

    /// The next message of a party, whatever its step, which becomes this party's; waits as long as
    /// that party lives. `None` once it has finished in order.
    ///
    /// # Errors
    /// `Desync` for another length; `Peer` where the sender died, gave no sign of life for the
    /// timeout, or sent more on other channels than anybody takes; or where the mesh has ended.
    pub fn follow(&mut self, from: usize, words: usize) -> Result<Option<Vec<u64>>> {
        let started = Instant::now();
        let (mut told, mut silent) = (started, 0);
        loop {
            match self.shared.take(from, self.id, words)? {
                Arrival::Message(frame) if frame.kind == Kind::End => return Ok(None),
                Arrival::Message(frame) => {
                    self.sequence = frame.sequence;
                    self.last = frame.sequence;
                    self.step = Arc::clone(&frame.name);
                    self.parameters = Parameters::of(frame.parameters);
                    self.begun = self.parameters;
                    return self.accept(from, words, frame, started).map(Some);
                }
                Arrival::Ended(End::Finished) => return Ok(None),
                Arrival::Ended(End::Died(fault)) => {
                    return Err(self.shared.died(from, &self.step, fault));
                }
                Arrival::Nothing => {}
            }
            self.expect_life(from, &mut silent)?;
            // Whoever waits for this one's answers blames the one that it waits for.
            if told.elapsed() >= self.shared.timeout / 4 {
                self.shared.tell_waiting(from);
                told = Instant::now();
            }
        }
    }

    fn accept(
        &mut self,
        from: usize,
        words: usize,
        frame: Frame,
        started: Instant,
    ) -> Result<Vec<u64>> {
        self.compare_steps(from, words, &frame)?;
        self.agreed |= 1 << from;
        self.compare(from, &frame.piggyback)?;
        let rounds = frame.depth.saturating_sub(self.depth);
        self.depth += rounds;
        self.meter
            .received(frame.wire_bytes(), u64::from(rounds), started.elapsed());
        let mut payload = frame.payload;
        if let Some(tap) = &mut self.tap {
            tap(from, &self.step, &mut payload);
        }
        Ok(payload)
    }

    fn compare(&mut self, from: usize, piggyback: &[u8]) -> Result<()> {
        if piggyback.is_empty() {
            return Ok(());
        }
        let agreement = self.agreement.as_mut();
        if !agreement.is_some_and(|agreement| agreement.arrived(from, piggyback)) {
            return Err(self.accuse(from, PeerFault::NoComparison));
        }
        self.tell_uncompared();
        self.agree(false)
    }

    /// Waits in quarters of the timeout; after each, and soon for the first time, the peers are
    /// told who is waited for and where this party stands, so that programs that differ show, and
    /// the party to blame can be found.
    ///
    /// The timeout is for silence, not for slow links, so some quarters do not count, and the
    /// timeout begins anew:
    ///
    /// - where of the message itself [`SLOWEST`] or more came, in that quarter and on the whole
    ///   since it began. All of it is `words` long, and what is beyond that counts for nothing, so
    ///   that this lasts for as long as the message takes at that rate, at most, and a timeout;
    /// - where as much came on other channels, since the message may be queued behind that at its
    ///   sender; and where whoever is waited for, or whom that one waits for, said that what it
    ///   waits for comes nearer. Neither can be checked, and a peer could go on with it for ever:
    ///   both end with [`UNSEEN`](progress::UNSEEN) timeouts since the wait began.
    ///
    /// So a wait ends within the sum: `UNSEEN` + 2 timeouts, and what the message takes at
    /// [`SLOWEST`].
    fn wait(&mut self, from: usize, words: usize, started: Instant) -> Result<Frame> {
        let timeout = self.shared.timeout;
        let mut progress = Progress::begin(self, from, words, started);
        let (mut since, mut quarter, mut ended) = (started, 1, None);
        let mut is_told = false;
        let over = || Error::misuse("this work is no longer needed");
        if self.patience.as_ref().is_some_and(Patience::is_over) {
            return Err(over());
        }
        while quarter <= 4 {
            match self.shared.take(from, self.id, words)? {
                Arrival::Message(frame) => return Ok(frame),
                Arrival::Ended(End::Finished) => return Err(self.finished(from)),
                Arrival::Ended(End::Died(fault)) => {
                    return Err(self.shared.died(from, &self.step, fault));
                }
                Arrival::Nothing => self.shared.answer(),
            }
            if let Some(patience) = &self.patience {
                if patience.is_over() {
                    return Err(over());
                }
                if !patience.is_needed() {
                    (since, quarter, ended, is_told) = (Instant::now(), 1, None, false);
                    progress = Progress::begin(self, from, words, since);
                    continue;
                }
            }
            self.compare_places()?;
            self.compare_with_followed(from, &mut ended)?;
            if !is_told && Instant::now() >= since + LONG.min(timeout / 8) {
                self.shared.tell_waiting(from);
                is_told = true;
            }
            if Instant::now() >= since + timeout * quarter / 4 {
                if progress.look(&self.shared) {
                    (since, quarter) = (Instant::now(), 0);
                }
                if quarter < 4 {
                    self.shared.tell_waiting(from);
                }
                quarter += 1;
            }
        }
        let (party, fault) = match self.shared.inbox.stalled(self.party(), from, timeout / 2) {
            Ok(party) if progress.is_late() => {
                let waited = progress.begun.elapsed();
                (party, PeerFault::Slow { waited, timeout })
            }
            Ok(party) => (party, self.silence(party)),
            Err(party) => (party, PeerFault::Circle { timeout }),
        };
        Err(self
            .shared
            .fail(self.shared.blame(party, &self.step, fault)))
    }

    /// Why a party is taken for one that stalls.
    fn silence(&self, party: usize) -> PeerFault {
        let (inbox, timeout) = (&self.shared.inbox, self.shared.timeout);
        if inbox.is_full(party, timeout / 2) {
            PeerFault::Flooded { timeout }
        } else if inbox.is_silent(party, timeout / 2) {
            // Between threads nobody can be cut off.
            PeerFault::Silent { timeout }
        } else {
            PeerFault::Stalled { timeout }
        }
    }
}
