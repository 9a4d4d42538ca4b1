//! Links as slow as those of a given network, on one machine.
//!
//! A party's frames leave it one after another, whatever their receivers are, as fast as the
//! network's bandwidth. Each frame arrives as a whole, one delay after it has left. So many messages
//! can be under way. What travels is the frame: the records of TLS and the packets of TCP are not
//! counted, which are less than two hundredths of large messages.

use super::Link;
use crate::error::PeerFault;
use crate::frame::Frame;
use crate::network::Network;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// When a party's frames have left it. All its links share this.
pub(super) type Departed = Arc<Mutex<Option<Instant>>>;

/// Link that hands frames to another one when they are due.
pub(super) struct Slow {
    shared: Arc<Shared>,
    network: Network,
    departed: Departed,
}

struct Shared {
    link: Box<dyn Link>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Frames with the times at which they arrive.
    frames: VecDeque<(Instant, Frame)>,
    /// Whether a frame is being handed over.
    is_busy: bool,
    is_cut: bool,
    failed: Option<PeerFault>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>, most: Duration) -> MutexGuard<'a, Queue> {
        let waited = self.changed.wait_timeout(queue, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Ends the thread, and drops what is still under way.
    fn end(&self) {
        let mut queue = self.lock();
        queue.is_cut = true;
        queue.frames.clear();
        drop(queue);
        self.changed.notify_all();
    }

    /// Hands over all frames when they are due, until the link is cut.
    fn deliver(&self) {
        const IDLE: Duration = Duration::from_secs(3600);
        let mut queue = self.lock();
        while !queue.is_cut {
            let left = queue
                .frames
                .front()
                .map(|(due, _)| due.saturating_duration_since(Instant::now()));
            match left {
                Some(Duration::ZERO) => {}
                waits => {
                    queue = self.wait(queue, waits.unwrap_or(IDLE));
                    continue;
                }
            }
            let Some((_, frame)) = queue.frames.pop_front() else {
                continue;
            };
            queue.is_busy = true;
            drop(queue);
            let sent = self.link.send(frame);
            queue = self.lock();
            queue.is_busy = false;
            if let Err(fault) = sent {
                queue.failed = Some(fault);
                queue.frames.clear();
            }
            self.changed.notify_all();
        }
    }
}

impl Slow {
    /// Slows a link down.
    pub(super) fn down(link: Box<dyn Link>, network: Network, departed: Departed) -> Box<dyn Link> {
        let shared = Arc::new(Shared {
            link,
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        let delivering = Arc::clone(&shared);
        let thread = thread::Builder::new().name("slow link".to_owned());
        let started = thread.spawn(move || delivering.deliver());
        if started.is_err() {
            shared.lock().failed = Some(PeerFault::Broke {
                cause: "there is no thread for a slow link".to_owned(),
            });
        }
        Box::new(Self {
            shared,
            network,
            departed,
        })
    }
}

impl Link for Slow {
    fn send(&self, frame: Frame) -> Result<(), PeerFault> {
        let due = {
            let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let begins = departed.map_or(now, |before| before.max(now));
            let ends = begins + self.network.accepts(frame.wire_bytes());
            *departed = Some(ends);
            ends + self.network.one_way
        };
        let mut queue = self.shared.lock();
        if let Some(fault) = &queue.failed {
            return Err(fault.clone());
        }
        if !queue.is_cut {
            queue.frames.push_back((due, frame));
        }
        drop(queue);
        self.shared.changed.notify_all();
        Ok(())
    }

    fn send_last(&self, frame: Frame) {
        self.shared.lock().frames.clear();
        self.shared.changed.notify_all();
        self.shared.link.send_last(frame);
    }

    fn flush(&self, most: Duration, may_last: bool) -> Result<(), PeerFault> {
        let mut until = Instant::now() + most;
        let mut queue = self.shared.lock();
        let mut left_before = queue.frames.len();
        while queue.failed.is_none() && (queue.is_busy || !queue.frames.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The next frame may be a large one. It is due, sooner or later.
                let next_is_due = queue.frames.front().is_some_and(|(due, _)| *due > until);
                if !(may_last && (queue.frames.len() < left_before || next_is_due)) {
                    return Err(PeerFault::TakesTooLittle { lasted: most });
                }
                (until, left_before) = (Instant::now() + most, queue.frames.len());
                continue;
            }
            queue = self.shared.wait(queue, left);
        }
        let failed = queue.failed.clone();
        drop(queue);
        match failed {
            Some(fault) => Err(fault),
            None => self.shared.link.flush(most, may_last),
        }
    }

    fn cut(&self) {
        self.shared.end();
        self.shared.link.cut();
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.shared.end();
    }
}

#[cfg(test)]
mod tests {
    use crate::in_process::mesh_of;
    use crate::{Error, Members, Mesh, Network};
    use std::thread;
    use std::time::{Duration, Instant};

    fn slow(round_trip: f64, bandwidth: f64) -> Vec<Mesh> {
        let members = Members {
            network: Network::new(round_trip, bandwidth),
            ..Members::from(false)
        };
        mesh_of(2, members, Duration::from_secs(60))
    }

    /// Runs a program at both parties, and returns how long it took.
    fn both(meshes: Vec<Mesh>, work: impl Fn(&mut crate::Channel) + Sync) -> Duration {
        let started = Instant::now();
        thread::scope(|scope| {
            for mesh in meshes {
                let work = &work;
                scope.spawn(move || {
                    work(&mut mesh.channel(0));
                    mesh.close().unwrap();
                });
            }
        });
        started.elapsed()
    }

    fn exchange(channel: &mut crate::Channel, words: usize) {
        let other = 1 - channel.party();
        channel.begin("exchange");
        channel.send(other, vec![7; words]).unwrap();
        assert!(channel.receive(other, words).unwrap() == vec![7; words]);
    }

    /// Ten rounds wait for ten messages. Messages that wait for nothing travel side by side. What a
    /// link must not undercut is a lower bound; upper bounds only say that nothing waits twice.
    #[test]
    fn rounds_take_the_delay_and_bytes_the_bandwidth() {
        let rounds = both(slow(0.1, 1e9), |channel| {
            (0..10).for_each(|_| exchange(channel, 1));
        });
        assert!(rounds >= Duration::from_millis(500), "{rounds:?}");
        let beside = both(slow(0.4, 1e9), |channel| {
            let other = 1 - channel.party();
            channel.begin("many");
            for _ in 0..20 {
                channel.send(other, vec![1; 10]).unwrap();
            }
            for _ in 0..20 {
                channel.receive(other, 10).unwrap();
            }
        });
        assert!((0.2..3.0).contains(&beside.as_secs_f64()), "{beside:?}");
        let bytes = both(slow(0.0, 8e5), |channel| exchange(channel, 50_000));
        assert!(bytes >= Duration::from_millis(500), "{bytes:?}");
    }

    #[test]
    fn a_message_that_outlasts_the_timeout_is_refused_with_its_time() {
        let [one, _two]: [Mesh; 2] = slow(0.0, 1e3).try_into().unwrap_or_else(|_| panic!("two"));
        let mut channel = one.channel(0);
        channel.begin("much");
        let error = channel.send(1, vec![0; 10_000]).unwrap_err();
        let expected = "a message takes 80 s on the network that links imitate, longer than the \
                        timeout of 60 s; raise the timeout or the bandwidth";
        assert!(matches!(error, Error::Misuse { .. }) && error.to_string().contains(expected));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for (round_trip, bandwidth) in [
            (-1.0, 1e6),
            (f64::NAN, 1e6),
            (1e9, 1e6),
            (0.1, 0.0),
            (0.1, f64::INFINITY),
            (0.1, f64::NAN),
        ] {
            assert!(Network::new(round_trip, bandwidth).is_none());
        }
        assert!(Network::new(0.0, 1e6).is_some());
    }

    /// The peer learns the reason although frames before it are still under way.
    #[test]
    fn a_failure_arrives() {
        let [one, two]: [Mesh; 2] = slow(0.2, 1e4).try_into().unwrap_or_else(|_| panic!("two"));
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut channel = one.channel(0);
                channel.begin("stop");
                channel.send(1, vec![0; 10_000]).unwrap();
                one.abort("the user has ended it");
            });
            let mut channel = two.channel(0);
            channel.begin("stop");
            let error = channel.receive(0, 10_000).unwrap_err();
            assert!(
                error.to_string().contains("the user has ended it"),
                "{error}"
            );
        });
    }
}
