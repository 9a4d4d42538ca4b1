//! Networks that links can imitate.

use std::time::Duration;

/// Delay and bandwidth of a network, which links on one machine imitate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Network {
    /// Time that a message takes to the other end.
    pub one_way: Duration,
    /// Bytes a second that a party sends to all others together.
    pub bandwidth: f64,
}

impl Network {
    /// Makes a network from a round trip in seconds and bytes a second, if they are one: a round
    /// trip of at most a minute, and at least a byte a second.
    #[must_use]
    pub fn new(round_trip: f64, bandwidth: f64) -> Option<Self> {
        let one_way = Duration::try_from_secs_f64(round_trip / 2.0).ok()?;
        let is_one = one_way <= Duration::from_secs(30) && bandwidth >= 1.0;
        (is_one && bandwidth.is_finite()).then_some(Self { one_way, bandwidth })
    }

    /// Returns how long the network takes to accept this many bytes.
    pub(crate) fn accepts(self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bandwidth)
    }
}
