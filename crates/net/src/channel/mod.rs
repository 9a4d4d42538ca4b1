//! An ordered stream of messages between all parties, step by step.

mod divergence;
mod ending;
mod progress;
mod sending;
mod suspension;

use crate::agreement::Agreement;
use crate::error::{Error, PeerFault, Result};
use crate::frame::{Frame, Kind, step_name};
use crate::inbox::{Arrival, End};
use crate::mesh::{Mesh, Shared};
use crate::meter::Meter;
use crate::network::Network;
use crate::parameters::Parameters;
use crate::step_log::{Begun, StepLog};
use progress::Progress;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
pub use suspension::{Suspended, Watch};

/// Time after which a party that waits for a message reports that, and its current step.
const LONG: Duration = Duration::from_secs(1);

/// Function that sees, and may change, each payload that arrives: sender, step, words. For tests.
pub type Tap = Box<dyn FnMut(usize, &str, &mut Vec<u64>) + Send>;

/// Switch that says whether a thread waits for work that is done ahead of need. The thread that
/// will need the work has a clone of it.
#[derive(Clone, Default)]
pub struct Patience(Arc<Need>);

#[derive(Default)]
struct Need {
    needed: AtomicBool,
    over: AtomicBool,
}

impl Patience {
    /// Sets whether a thread waits from now on.
    pub fn set_needed(&self, needed: bool) {
        self.0.needed.store(needed, Ordering::Relaxed);
    }

    /// Makes waiting channels give up, because the work will never be needed.
    pub fn end(&self) {
        self.0.over.store(true, Ordering::Relaxed);
    }

    fn is_needed(&self) -> bool {
        self.0.needed.load(Ordering::Relaxed)
    }

    /// Returns whether [`Patience::end`] was called.
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
    /// Number of the step that began last.
    last: u64,
    /// Whether steps are interleaved: each is suspended and resumed.
    interleaved: bool,
    /// Whether a public value was noted since then.
    noted_meanwhile: bool,
    /// Running hash of everything that was asked of this channel.
    parameters: Parameters,
    /// Running hash at the beginning of the current step, which its messages carry.
    begun: Parameters,
    /// Running hashes at the last steps.
    step_log: Arc<StepLog>,
    /// Parties whose messages of the current step have come: a bit for each.
    agreed: u64,
    agreement: Option<Box<dyn Agreement>>,
    /// Step in which a peer was found to have other public values.
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
    /// Opens a separate ordered stream of messages over the same links.
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
            noted_meanwhile: false,
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

    /// Returns the number of this party.
    #[must_use]
    pub fn party(&self) -> usize {
        self.shared.party
    }

    /// Returns the network that this party's links imitate.
    #[must_use]
    pub fn network(&self) -> Option<Network> {
        self.shared.roster().network
    }

    /// Returns the number of computing parties.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.shared.parties()
    }

    /// Begins the next step. Messages carry its number and its name, with the label in front.
    pub fn begin(&mut self, name: &str) {
        self.begin_with(name, &[]);
    }

    /// Begins a step with parameters, such as a width or a recipient, which must be equal in all
    /// parties.
    pub fn begin_with(&mut self, name: &str, parameters: &[u64]) {
        self.start(name, parameters, false);
    }

    /// Begins a step in which every party sends something to every other party. Its messages begin
    /// the comparison of all public values noted so far.
    pub fn begin_comparing(&mut self, name: &str) {
        self.start(name, &[], true);
    }

    /// Begins a step for an operation on `n` elements, and puts `n` into its name.
    pub fn begin_of(&mut self, operation: &str, n: usize, parameters: &[u64]) {
        self.begin_with(&format!("{operation} of {n}"), parameters);
    }

    /// Begins a step for an operation on `n` elements that opens a value, as
    /// [`Channel::begin_opening`] does.
    ///
    /// # Errors
    /// As [`Channel::begin_opening`].
    pub fn begin_opening_of(
        &mut self,
        operation: &str,
        n: usize,
        parameters: &[u64],
    ) -> Result<()> {
        self.begin_opening(&format!("{operation} of {n}"), parameters)
    }

    /// Begins a step that opens a value. First, all public values noted so far are compared with
    /// all parties. This takes up to two rounds, or none if earlier messages have carried the
    /// comparison.
    ///
    /// # Errors
    /// `Differ` for public values that differ; `Misuse` if steps are interleaved and something
    /// remains to be compared; otherwise as [`Channel::receive`].
    pub fn begin_opening(&mut self, name: &str, parameters: &[u64]) -> Result<()> {
        if self.interleaved {
            return self.begin_opening_interleaved(name, parameters);
        }
        self.start(name, parameters, true);
        self.finish_comparing()
    }

    /// Gives the next number to a step that begins.
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

    /// Sets the step and running hash that messages carry from now on.
    fn set_begun(&mut self, name: Arc<str>, is_end: bool) {
        self.begun = self.parameters;
        self.step_log.begin(Begun {
            sequence: self.sequence,
            name,
            parameters: self.begun.value(),
            is_end,
        });
    }

    /// Returns a step's name with the label in front.
    fn named(&self, name: &str) -> Arc<str> {
        match self.meter.label() {
            "" => step_name(name),
            label => step_name(&format!("{label}: {name}")),
        }
    }

    /// Adds parameters of the program, such as an operator and its scale, which must be equal in
    /// all parties. The messages of the next step carry their hash.
    pub fn note(&mut self, parameters: &[u8]) {
        self.parameters.fold_bytes(parameters);
    }

    /// Notes a public value, which must be equal in all parties. Its name and length count as
    /// parameters. The value itself may be secret by mistake, so the parties compare it in private.
    pub fn note_public(&mut self, name: &str, value: &[u8]) {
        self.parameters.fold_bytes(name.as_bytes());
        self.parameters.fold(value.len() as u64);
        self.noted_meanwhile |= self.interleaved;
        let step = self.named(name);
        if let Some(agreement) = &mut self.agreement {
            agreement.note(&step, value);
        }
        self.tell_uncompared();
    }

    /// Tells the channel to a dealer, which compares no public values, which of them may explain a
    /// difference.
    fn tell_uncompared(&self) {
        let has_dealer = self.shared.members() > self.parties();
        if let Some(agreement) = self.agreement.as_ref().filter(|_| has_dealer) {
            let step = agreement.uncompared(0).map(str::to_owned);
            *self.shared.uncompared() = step;
        }
    }

    /// Sets how public values are compared. Without this call they are not compared.
    pub fn set_agreement(&mut self, agreement: Box<dyn Agreement>) {
        self.agreement = Some(agreement);
    }

    /// Sets whether steps depend, from now on, on what each party told the others of its own
    /// knowledge. A party that told two others different things makes honest parties differ, so no
    /// party is called the odd one meanwhile.
    pub fn set_relayed(&mut self, relayed: bool) {
        self.relayed = relayed;
    }

    /// Returns the name of the current step.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.step
    }

    /// Returns the meter, which counts by label what was sent.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Sets the label of the following computations, for the meter and the steps; returns the
    /// previous label.
    pub fn set_label(&mut self, label: &str) -> String {
        let previous = self.meter.label().to_owned();
        self.meter.set_label(label);
        previous
    }

    /// Sets the account that waiting times count for from now on, a number that the caller chooses;
    /// returns the previous account. The first account is 0.
    pub fn set_account(&mut self, account: u32) -> u32 {
        self.meter.set_account(account)
    }

    /// Returns the waiting time for each account since the last call.
    pub fn take_waited(&mut self) -> BTreeMap<u32, Duration> {
        self.meter.take_waited()
    }

    /// Makes this channel wait without limit while its work is not needed yet.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = Some(patience);
    }

    /// Sets a function by which a test sees and changes what arrives.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// Returns memory for a message, with arbitrary contents: the caller must write all of it.
    #[must_use]
    pub fn memory(&self, words: usize) -> Vec<u64> {
        self.spare_memory(words).unwrap_or_else(|| vec![0; words])
    }

    /// Returns memory for a message if the pool has some ready, with arbitrary contents.
    #[must_use]
    pub fn spare_memory(&self, words: usize) -> Option<Vec<u64>> {
        self.shared.inbox.pool.take(words)
    }

    /// Sets how many words of message memory, sent or processed, the pool keeps in addition to its
    /// usual limit.
    pub fn keep_memory(&self, words: usize) {
        self.shared.inbox.pool.keep(words);
    }

    /// Returns the memory of a processed message to the pool.
    pub fn give_back(&self, message: Vec<u64>) {
        self.shared.inbox.pool.give(message);
    }

    /// Receives the next message of a party, which must belong to the current step and have `words`
    /// words.
    ///
    /// # Errors
    /// `Desync` for another step or length; `Peer` if nothing comes within the timeout, or the mesh
    /// has ended.
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

    /// Receives the next message of a party, whatever its step, and makes its step this party's
    /// step. Waits as long as the sender lives. Returns `None` once the sender has finished in
    /// order.
    ///
    /// # Errors
    /// `Desync` for another length; `Peer` if the sender died, gave no sign of life for the
    /// timeout, or sent more on other channels than was read; `Peer` also if the mesh has ended.
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
            // A party that waits for this one then blames the party that this one waits for.
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
        mut frame: Frame,
        started: Instant,
    ) -> Result<Vec<u64>> {
        if let Some(tap) = &mut self.tap {
            tap(from, &self.step, &mut frame.payload);
        }
        self.compare_steps(from, words, &frame)?;
        self.agreed |= 1 << from;
        self.compare(from, &frame.piggyback)?;
        let rounds = frame.depth.saturating_sub(self.depth);
        self.depth += rounds;
        self.meter
            .received(frame.wire_bytes(), u64::from(rounds), started.elapsed());
        Ok(frame.payload)
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

    /// Waits in quarters of the timeout. After each quarter, and for the first time earlier, tells
    /// the peers which party this one waits for and its current step. This shows programs that
    /// differ and finds the party to blame.
    ///
    /// The timeout limits silence, not slow links. So some quarters do not count, and the timeout
    /// begins again:
    ///
    /// - if the message itself arrived at [`SLOWEST`] or faster, in that quarter and on the whole
    ///   since it began. All of it is `words` long, and anything beyond that does not count, so
    ///   this lasts at most as long as the message takes at that rate, and one timeout;
    /// - if as much arrived on other channels, since the message may be queued behind it at its
    ///   sender; and if the sender, or the party that the sender waits for, reported that its own
    ///   message makes progress. Neither can be checked, and a peer could continue it for ever, so
    ///   both end [`UNSEEN`](progress::UNSEEN) timeouts after the wait began.
    ///
    /// So a wait ends within the sum of these: `UNSEEN` + 2 timeouts, and the time that the message
    /// takes at [`SLOWEST`].
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
            self.compare_step_reports()?;
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

    /// Returns the reason for which a party counts as stalled.
    fn silence(&self, party: usize) -> PeerFault {
        let (inbox, timeout) = (&self.shared.inbox, self.shared.timeout);
        if inbox.is_full(party, timeout / 2) {
            PeerFault::Flooded { timeout }
        } else if inbox.is_silent(party, timeout / 2) {
            // Between threads no party can be cut off.
            PeerFault::Silent { timeout }
        } else {
            PeerFault::Stalled { timeout }
        }
    }
}
