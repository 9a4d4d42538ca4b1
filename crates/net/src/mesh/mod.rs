//! One party's end of all links.

mod slow;

use crate::bytes;
use crate::error::{DEALER, Error, PeerFault, Result};
use crate::frame::{EITHER, Frame, Kind, LONGEST_REASON, cut_to, step_name};
use crate::inbox::{Arrival, End, Inbox, StepHash};
use crate::interruption::is_interrupted;
use crate::roster::Roster;
use crate::signing::{self, Signing};
use crate::step_log::{Begun, StepLog};
use crate::wording::{Voice, Words};
use slow::{Departed, Slow};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Longest time for which an ending party tries to tell its peers why.
const FAREWELL: Duration = Duration::from_secs(2);

/// Longest time for which a party whose link broke listens for the reason.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Longest time for which a peer's death waits for word of its cause.
const CAUSE: Duration = Duration::from_millis(200);

/// Link to one peer.
pub(crate) trait Link: Send + Sync {
    /// Hands a frame over; never waits for the peer's program. The error says what became of the
    /// link.
    fn send(&self, frame: Frame) -> std::result::Result<(), PeerFault>;

    /// Hands over a frame that replaces everything queued; never waits, not even for the network.
    fn send_last(&self, frame: Frame) {
        // A peer that cannot be told finds out on its own.
        drop(self.send(frame));
    }

    /// Waits at most `most` until everything is handed to the network. With `may_last`, waits as
    /// long again whenever the network has accepted data at [`SLOWEST`](crate::inbox::SLOWEST) or
    /// faster. The error says what became of the link.
    fn flush(&self, _most: Duration, _may_last: bool) -> std::result::Result<(), PeerFault> {
        Ok(())
    }

    /// Cuts the link.
    fn cut(&self) {}
}

/// One party's end of the mesh: a handle that is cheap to clone. If the last handle and the last
/// channel are dropped without [`Mesh::close`], the peers consider this party dead.
#[derive(Clone)]
pub struct Mesh {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) party: usize,
    pub(crate) timeout: Duration,
    pub(crate) inbox: Arc<Inbox>,
    links: Vec<Option<Box<dyn Link>>>,
    pub(crate) opened: Mutex<HashSet<u16>>,
    /// Step of the first public value not yet compared with party 0, for a channel that compares no
    /// public values.
    uncompared: Mutex<Option<String>>,
    /// Last steps of all channels.
    step_logs: Mutex<HashMap<u16, Arc<StepLog>>>,
    /// Running hash that this party last reported.
    last_step_hash: Mutex<Option<StepHash>>,
    /// How often a message that this party waits for has made progress without being complete.
    progress: AtomicU64,
    /// Held while the peers are told why the mesh ends. A thread that cuts the links waits for
    /// that.
    farewell: Mutex<()>,
    closed: AtomicBool,
    /// Keys and counters of signatures, once all members have attested.
    pub(crate) signing: OnceLock<Signing>,
}

impl Mesh {
    pub(crate) fn new(
        party: usize,
        timeout: Duration,
        inbox: Arc<Inbox>,
        mut links: Vec<Option<Box<dyn Link>>>,
    ) -> Self {
        if let Some(network) = inbox.roster.network {
            let departed = Departed::default();
            let slow = |link| Slow::down(link, network, Arc::clone(&departed));
            links = links.into_iter().map(|link| link.map(slow)).collect();
        }
        let shared = Shared {
            party,
            timeout,
            inbox,
            links,
            opened: Mutex::default(),
            uncompared: Mutex::default(),
            step_logs: Mutex::default(),
            last_step_hash: Mutex::default(),
            progress: AtomicU64::new(0),
            farewell: Mutex::default(),
            closed: AtomicBool::new(false),
            signing: OnceLock::new(),
        };
        let shared = Arc::new(shared);
        let answering = Arc::downgrade(&shared);
        shared.inbox.answer_by(move |peer, place| {
            if let Some(shared) = answering.upgrade() {
                shared.answer_place(peer, place);
            }
        });
        Self { shared }
    }

    /// Returns the number of this party. The dealer has the number after the last party.
    #[must_use]
    pub fn party(&self) -> usize {
        self.shared.party
    }

    /// Returns the words that this session's texts use for its members.
    #[must_use]
    pub fn words(&self) -> &'static Words {
        self.shared.roster().words
    }

    /// Returns the number of computing parties.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.shared.parties()
    }

    /// Returns the number of the dealer, if there is one.
    #[must_use]
    pub fn dealer(&self) -> Option<usize> {
        self.shared.roster().dealer.then(|| self.parties())
    }

    /// Returns the longest wait for one message of which nothing arrives, to within a fifth of a
    /// second.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.shared.timeout
    }

    /// Ends the run for every party: the peers' calls fail with an error that names this party and
    /// the reason.
    pub fn abort(&self, reason: &str) {
        let own = self.shared.roster().words.own;
        let error = Error::misuse(format!("this {own} ended the run: {reason}"));
        let ended = self.shared.inbox_fails(error, |_| {
            (Some(self.shared.party), "end".to_owned(), reason.to_owned())
        });
        if ended {
            self.shared.cut();
        }
    }

    /// Ends the run for every party: the peers' calls fail with an error that names the party that
    /// the error blames, and its cause.
    pub fn fail(&self, error: Error) {
        // The first failure counts, and the mesh has recorded it.
        drop(self.shared.fail(error));
    }

    /// Ends the session in order: hands everything sent to the network, and tells the peers that
    /// nothing more comes. Compares nothing: [`Channel::close`](crate::Channel::close) must come
    /// first. After a failure, which that or an earlier call has returned, there is nothing to hand
    /// over.
    ///
    /// # Errors
    /// `Peer` if a peer did not accept what was sent to it.
    pub fn close(&self) -> Result<()> {
        if self.shared.closed.swap(true, Ordering::Relaxed) || self.shared.inbox.failure().is_some()
        {
            return Ok(());
        }
        for link in self.shared.links.iter().flatten() {
            // The flush below reports whether it was sent.
            drop(link.send(control(Kind::Goodbye, "end", Vec::new())));
        }
        let mut result = Ok(());
        for (peer, link) in self.shared.links.iter().enumerate() {
            let Some(link) = link else { continue };
            // A peer that has finished needs nothing any more.
            if let Err(fault) = link.flush(self.shared.timeout, true) {
                if self.shared.last_words(peer).is_none() {
                    let failure = self.shared.inbox.failure();
                    let failure = failure.unwrap_or_else(|| self.shared.blame(peer, "end", fault));
                    result = result.and(Err(failure));
                }
            }
            link.cut();
        }
        self.shared.inbox.close();
        result
    }
}

impl Shared {
    pub(crate) fn parties(&self) -> usize {
        self.roster().parties()
    }

    pub(crate) fn members(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn roster(&self) -> Roster {
        self.inbox.roster
    }

    /// Returns this party's point of view, as the other members read it.
    fn voice(&self) -> Voice<'static> {
        self.roster().voice_of(self.party)
    }

    /// Returns an [`Error::Peer`] for a member of this mesh.
    pub(crate) fn blame(&self, member: usize, step: &str, fault: impl Into<PeerFault>) -> Error {
        Error::peer(self.roster().name(member), step, fault)
    }

    /// Locks [`Shared::uncompared`].
    pub(crate) fn uncompared(&self) -> MutexGuard<'_, Option<String>> {
        self.uncompared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs a frame for one member, if all members have attested, and sends it. Returns false if
    /// the peer has finished.
    pub(crate) fn send(&self, to: usize, mut frame: Frame) -> Result<bool> {
        self.sign(&mut [(to, &mut frame)]);
        self.send_signed(to, frame)
    }

    /// Signs equal frames, one to each of several members, if all members have attested.
    pub(crate) fn sign(&self, frames: &mut [(usize, &mut Frame)]) {
        if let Some(signing) = self.signing.get() {
            signing.sign(frames);
        }
    }

    /// Sends a frame as it is. Returns false if the peer has finished.
    pub(crate) fn send_signed(&self, to: usize, frame: Frame) -> Result<bool> {
        if let Some(failure) = self.inbox.failure() {
            self.cut();
            return Err(failure);
        }
        if let Some(network) = self.roster().network {
            // The receiver would take it for silence, as a slow link delivers a frame as a whole.
            let takes = network.accepts(frame.wire_bytes()) + network.one_way;
            if takes >= self.timeout {
                return Err(self.fail(Error::misuse(format!(
                    "a message takes {:.0} s on the network that links imitate, longer than the \
                     timeout of {:.0} s; raise the timeout or the bandwidth",
                    takes.as_secs_f64(),
                    self.timeout.as_secs_f64()
                ))));
            }
        }
        let step = Arc::clone(&frame.name);
        let link = self.links.get(to).and_then(Option::as_ref);
        let link = link.ok_or_else(|| {
            Error::misuse(format!("party {} cannot send to party {to}", self.party))
        })?;
        let Err(fault) = link.send(frame) else {
            return Ok(true);
        };
        // A reason that comes from the peer itself says more.
        match self.last_words(to) {
            Some(End::Finished) if self.inbox.failure().is_none() => Ok(false),
            _ => Err(self.died(to, &step, fault)),
        }
    }

    /// Calls [`Inbox::take`], and verifies the signature of a message: no protocol sees one that is
    /// not its sender's. Cuts the links if the mesh has failed, and ends the mesh if the user wants
    /// that.
    pub(crate) fn take(&self, from: usize, channel: u16, words: usize) -> Result<Arrival> {
        let taken = self.inbox.take(from, channel, words);
        match &taken {
            Ok(Arrival::Nothing) if is_interrupted() => Err(self.fail(Error::Interrupted)),
            Ok(Arrival::Message(frame)) => match signing::check(self.signing.get(), from, frame) {
                Ok(()) => taken,
                Err(fault) => Err(self.fail(self.blame(from, &frame.name, fault))),
            },
            Ok(_) => taken,
            Err(_) => {
                self.cut();
                taken
            }
        }
    }

    /// Returns the failure for a peer that died. The peer may have died because of another member's
    /// failure. Then that member's own words are on their way, and the peer's words have come,
    /// since it passes on what it heard before it ends.
    pub(crate) fn died(&self, peer: usize, step: &str, fault: PeerFault) -> Error {
        let until = Instant::now() + CAUSE.min(self.timeout);
        while self.inbox.failure().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        match self.inbox.believe_rumour() {
            Some(failure) => {
                self.cut();
                failure
            }
            None => self.fail(self.blame(peer, step, fault)),
        }
    }

    /// Cuts all links. Passes on first what this party has heard of the cause: a peer that saw its
    /// links end, and has not heard the cause, would otherwise take this party for the one that
    /// failed.
    fn cut(&self) {
        let farewell = self.farewell();
        if let Some(report) = self.inbox.take_report() {
            // The text must not read as if this party blamed itself.
            let reason = match report.blamed == Some(self.party) {
                true => report.fault(self.roster()).text(&self.voice()),
                false => report.reason,
            };
            let word = abort(Kind::ForwardedAbort, report.blamed, &report.step, &reason);
            self.tell_last(&word, Some(report.from));
        }
        drop(farewell);
        self.links.iter().flatten().for_each(|link| link.cut());
    }

    /// Returns how a peer ended whose link accepts nothing any more. Returns `None` if the mesh has
    /// failed or nothing is known of the peer. Its goodbye travels in the other direction than the
    /// break, and may still be queued behind what the peer sent before.
    fn last_words(&self, peer: usize) -> Option<End> {
        let until = Instant::now() + LAST_WORDS.min(self.timeout);
        loop {
            let end = self.inbox.end_of(peer);
            if end.is_some() || self.inbox.failure().is_some() || Instant::now() >= until {
                return end;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Records the first failure and tells all peers; returns the failure that counts.
    pub(crate) fn fail(&self, error: Error) -> Error {
        self.inbox_fails(error.clone(), |error| {
            let (blamed, step) = match error {
                Error::Cheating { first, last, .. } => {
                    return (None, first.clone(), last.clone());
                }
                Error::Peer { party, step, .. } => (*party, &step[..]),
                Error::Desync {
                    party,
                    step,
                    difference,
                } => (difference.odd.unwrap_or(*party), &step[..]),
                Error::Differ { party, step, odd } => (odd.unwrap_or(*party), &step[..]),
                Error::Device { step, .. } => (self.party, &step[..]),
                _ => (self.party, "end"),
            };
            (Some(blamed), step.to_owned(), error.reason(&self.voice()))
        });
        self.cut();
        self.inbox.failure().unwrap_or(error)
    }

    /// Ends the mesh and tells the peers the party to blame, the step and the reason, or no party
    /// and two steps if one of two cheated. Returns false if the mesh had ended before.
    fn inbox_fails(
        &self,
        error: Error,
        told: impl FnOnce(&Error) -> (Option<usize>, String, String),
    ) -> bool {
        let _farewell = self.farewell();
        let first = self.inbox.fail(error.clone());
        if first {
            let (blamed, step, reason) = told(&error);
            let blamed = blamed.map(|blamed| match blamed {
                DEALER => self.parties(),
                party => party,
            });
            self.tell_last(&abort(Kind::Abort, blamed, &step, &reason), None);
        }
        first
    }

    fn farewell(&self) -> MutexGuard<'_, ()> {
        self.farewell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts progress of a message that this party waits for. The next report of its wait includes
    /// the count.
    pub(crate) fn count_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells all peers that this party waits, for which party, and which step began last on each of
    /// its channels.
    pub(crate) fn tell_waiting(&self, target: usize) {
        let step_logs = self.step_logs();
        let last = |(channel, step_log): (&u16, &Arc<StepLog>)| {
            (*channel, step_log.last().unwrap_or_default())
        };
        let channels: Vec<(u16, Begun)> = step_logs.iter().map(last).collect();
        drop(step_logs);
        for (channel, last) in &channels {
            self.tell_place(*channel, last, Some(target));
        }
    }

    /// Tells all peers that this party waits, and a step that it began on a channel.
    pub(crate) fn tell_place(&self, channel: u16, step: &Begun, target: Option<usize>) {
        for link in self.links.iter().flatten() {
            let progress = self.progress.load(Ordering::Relaxed);
            let payload = target.map_or_else(Vec::new, |target| vec![target as u64, progress]);
            // A broken link shows when it is next used.
            drop(link.send(place(Kind::Waiting, channel, step, payload)));
        }
    }

    /// Answers a peer that waits at a step, if this party's step of that number was a different
    /// one, whatever this party does now. At its end it compares on its own.
    fn answer_place(&self, peer: usize, asked: &Frame) {
        let ours = self.begun(asked.channel, asked.sequence);
        let ours = ours.filter(|ours| !ours.is_end && ours.parameters != asked.parameters);
        let link = self.links.get(peer).and_then(Option::as_ref);
        if let (Some(ours), Some(link)) = (ours, link) {
            // A broken link shows when it is next used.
            drop(link.send(place(Kind::Place, asked.channel, &ours, Vec::new())));
        }
    }

    /// Registers the last steps of a channel, for requests of other threads.
    pub(crate) fn remember(&self, channel: u16, step_log: &Arc<StepLog>) {
        self.step_logs().insert(channel, Arc::clone(step_log));
    }

    /// Returns the step of this number that this party began on a channel, if it has begun and
    /// remembers it.
    pub(crate) fn begun(&self, channel: u16, sequence: u64) -> Option<Begun> {
        self.step_logs().get(&channel)?.at(sequence)
    }

    fn step_logs(&self) -> MutexGuard<'_, HashMap<u16, Arc<StepLog>>> {
        self.step_logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports this party's running hashes to peers that have asked for them.
    pub(crate) fn answer(&self) {
        while let Some(asked) = self.inbox.asked() {
            if let Some(begun) = self.begun(asked.channel, asked.sequence) {
                self.tell_step_hash(StepHash {
                    parameters: begun.parameters,
                    ..asked
                });
            }
        }
    }

    /// Tells all peers this party's running hash at a step, unless that was its last report.
    pub(crate) fn tell_step_hash(&self, step_hash: StepHash) {
        let mut last_step_hash = self
            .last_step_hash
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last_step_hash.replace(step_hash) == Some(step_hash) {
            return;
        }
        drop(last_step_hash);
        let StepHash {
            channel,
            sequence,
            parameters,
        } = step_hash;
        let payload = vec![u64::from(channel), sequence, parameters];
        for link in self.links.iter().flatten() {
            // A broken link shows when it is next used.
            drop(link.send(control(Kind::StepHash, "", payload.clone())));
        }
    }

    /// Tells all peers except `but` why the mesh ends, unless they accept it too slowly.
    fn tell_last(&self, word: &Frame, but: Option<usize>) {
        let peers = self.links.iter().enumerate();
        let told = peers.filter(|(peer, _)| Some(*peer) != but);
        let told: Vec<_> = told.filter_map(|(_, link)| link.as_ref()).collect();
        told.iter().for_each(|link| link.send_last(word.clone()));
        let until = Instant::now() + FAREWELL.min(self.timeout);
        for link in told {
            // A peer that cannot be told finds out on its own.
            drop(link.flush(until.saturating_duration_since(Instant::now()), false));
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.inbox.close();
        self.cut();
    }
}

fn place(kind: Kind, channel: u16, step: &Begun, payload: Vec<u64>) -> Frame {
    Frame {
        channel,
        sequence: step.sequence,
        parameters: step.parameters,
        name: Arc::clone(&step.name),
        ..control(kind, "", payload)
    }
}

/// Returns the frame that says why the mesh ends: the party to blame and the reason, or no party
/// and two steps if one of two cheated.
fn abort(kind: Kind, blamed: Option<usize>, step: &str, reason: &str) -> Frame {
    let reason = cut_to(reason, LONGEST_REASON);
    let blamed = blamed.map_or(EITHER, |party| party as u64);
    let mut payload = vec![blamed, reason.len() as u64];
    payload.extend(bytes::to_words(reason.as_bytes()));
    control(kind, step, payload)
}

/// Returns a frame without data.
pub(crate) fn control(kind: Kind, step: &str, payload: Vec<u64>) -> Frame {
    Frame {
        kind,
        channel: 0,
        depth: 0,
        sequence: 0,
        parameters: 0,
        name: step_name(step),
        piggyback: Vec::new(),
        signature: None,
        payload,
    }
}

#[cfg(test)]
mod tests;
