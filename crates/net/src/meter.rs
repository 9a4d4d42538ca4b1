//! Meter of what a party sent and how long it waited, by label.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// One line of a [`Meter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Bytes of payload sent.
    pub payload_bytes: u64,
    /// Bytes sent with frame headers and step names, before TLS.
    pub wire_bytes: u64,
    /// Bytes received with frame headers and step names, before TLS.
    pub received_bytes: u64,
    /// Messages sent.
    pub frames: u64,
    /// Growth of the longest chain of messages in which each waited for the one before.
    pub rounds: u64,
    /// Time spent waiting for messages.
    pub waiting: Duration,
}

impl std::ops::AddAssign for Reading {
    fn add_assign(&mut self, other: Self) {
        self.payload_bytes += other.payload_bytes;
        self.wire_bytes += other.wire_bytes;
        self.received_bytes += other.received_bytes;
        self.frames += other.frames;
        self.rounds += other.rounds;
        self.waiting += other.waiting;
    }
}

/// Readings by label, in the order in which labels were first used.
#[derive(Debug)]
pub struct Meter {
    lines: Vec<(String, Reading)>,
    places: HashMap<String, usize>,
    current: usize,
    sent_to: Vec<u64>,
    account: u32,
    waited: BTreeMap<u32, Duration>,
}

impl Meter {
    pub(crate) fn new(parties: usize) -> Self {
        let mut meter = Self {
            lines: Vec::new(),
            places: HashMap::new(),
            current: 0,
            sent_to: vec![0; parties],
            account: 0,
            waited: BTreeMap::new(),
        };
        meter.set_label("");
        meter
    }

    /// Returns the sums over all labels.
    #[must_use]
    pub fn totals(&self) -> Reading {
        let mut totals = Reading::default();
        self.lines
            .iter()
            .for_each(|(_, reading)| totals += *reading);
        totals
    }

    /// Returns each label with its reading. The label "" holds what came before any label was set.
    pub fn by_label(&self) -> impl Iterator<Item = (&str, &Reading)> {
        self.lines
            .iter()
            .map(|(label, reading)| (label.as_str(), reading))
    }

    /// Returns the wire bytes sent to each party.
    #[must_use]
    pub fn sent_to(&self) -> &[u64] {
        &self.sent_to
    }

    /// Returns the label of the current computation.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.lines[self.current].0
    }

    pub(crate) fn set_label(&mut self, label: &str) {
        self.current = self.places.get(label).copied().unwrap_or_else(|| {
            self.places.insert(label.to_owned(), self.lines.len());
            self.lines.push((label.to_owned(), Reading::default()));
            self.lines.len() - 1
        });
    }

    /// Sets the account that waiting times count for from now on, a number that the caller chooses;
    /// returns the previous account. The first account is 0.
    pub(crate) fn set_account(&mut self, account: u32) -> u32 {
        std::mem::replace(&mut self.account, account)
    }

    /// Returns the waiting time for each account since the last call.
    pub(crate) fn take_waited(&mut self) -> BTreeMap<u32, Duration> {
        std::mem::take(&mut self.waited)
    }

    /// Returns the current label and account.
    pub(crate) fn line(&self) -> (usize, u32) {
        (self.current, self.account)
    }

    /// Sets the current label and account.
    pub(crate) fn resume(&mut self, (line, account): (usize, u32)) {
        self.current = line;
        self.account = account;
    }

    pub(crate) fn sent(&mut self, to: usize, words: usize, wire_bytes: usize) {
        let reading = &mut self.lines[self.current].1;
        reading.payload_bytes += 8 * words as u64;
        reading.wire_bytes += wire_bytes as u64;
        reading.frames += 1;
        self.sent_to[to] += wire_bytes as u64;
    }

    pub(crate) fn received(&mut self, wire_bytes: usize, rounds: u64, waited: Duration) {
        let reading = &mut self.lines[self.current].1;
        reading.received_bytes += wire_bytes as u64;
        reading.rounds += rounds;
        reading.waiting += waited;
        *self.waited.entry(self.account).or_default() += waited;
    }
}
