//! Refills of silent transfers.
//!
//! A refill that is due is waited for. Refills for what a job has yet to take begin ahead, and
//! their messages travel while this end computes. At both ends of a direction, each refill begins
//! at the same transfer and ends at the same transfer: this follows from the jobs and from what is
//! left. Refills have a channel of their own, since their messages are received in another order
//! than those of the jobs are. Each message belongs to the step of the job in which its refill
//! began, so that parties whose jobs differ are told.

use super::{Transfer, or_accuse};
use crate::Result;
use net::Suspended;
use ot::Refill;
use std::collections::VecDeque;

/// The most refills of a direction that are under way. With 100 Mbit/s and a round trip of 40 ms,
/// the message of one arrives after 34 ms if nothing else travels. In that time, a core makes a
/// third of the transfers of one.
const AHEAD: usize = 4;

/// Refills with one other party that have begun ahead.
#[derive(Default)]
pub(super) struct Ahead {
    /// Those in which the other party sends, with the steps in which they began.
    coming: VecDeque<(Refill, Suspended)>,
    /// The number of those in which this party has sent.
    sent: usize,
}

impl Transfer {
    /// Makes ready for a step that takes at most `now` transfers with each peer, in each direction,
    /// of a job that takes about `later` more in both directions. A step may take more than that.
    /// What is then missing comes from transfers that are not silent.
    pub(super) fn refill(&mut self, now: usize, later: usize) -> Result<()> {
        for peer in self.peers() {
            while self.ahead[peer].sent > 0 && self.pair(peer).sender.refill(now).is_some() {
                self.ahead[peer].sent -= 1;
                self.pair(peer).sender.refilled();
            }
            while self.pair(peer).receiver.refill(now).is_some() {
                let Some((refill, begun)) = self.ahead[peer].coming.pop_front() else {
                    break;
                };
                let current = self.refills.suspend();
                self.refills.resume(begun);
                self.end_request(peer, refill)?;
                self.refills.resume(current);
            }
        }
        self.refill_at_once(now)?;
        for peer in self.peers() {
            while self.ahead[peer].sent < AHEAD {
                let Some(refill) = self.pair(peer).sender.refill_ahead(now, later) else {
                    break;
                };
                self.answer(peer, refill)?;
                self.ahead[peer].sent += 1;
            }
            while self.ahead[peer].coming.len() < AHEAD {
                let Some(refill) = self.pair(peer).receiver.refill_ahead(now, later) else {
                    break;
                };
                self.request(peer, refill)?;
                let begun = self.refills.suspend();
                self.ahead[peer].coming.push_back((refill, begun));
            }
        }
        Ok(())
    }

    /// Exchanges the messages of all refills that are due.
    fn refill_at_once(&mut self, now: usize) -> Result<()> {
        let (mut requested, mut asked) = (Vec::new(), Vec::new());
        for peer in self.peers() {
            let due = self.pair(peer).sender.refill(now);
            asked.extend(due.map(|refill| (peer, refill)));
            if let Some(refill) = self.pair(peer).receiver.refill(now) {
                self.request(peer, refill)?;
                requested.push((peer, refill));
            }
        }
        for (peer, refill) in asked {
            self.answer(peer, refill)?;
            self.pair(peer).sender.refilled();
        }
        for (peer, refill) in requested {
            self.end_request(peer, refill)?;
        }
        Ok(())
    }

    /// Begins a refill for transfers in which this party chooses.
    fn request(&mut self, peer: usize, refill: Refill) -> Result<()> {
        let message = self.pair(peer).receiver.request();
        match refill.request {
            0 => Ok(()),
            _ => self.refills.send(peer, message),
        }
    }

    /// Begins a refill for transfers in which the peer chooses.
    fn answer(&mut self, peer: usize, refill: Refill) -> Result<()> {
        let message = match refill.request {
            0 => Vec::new(),
            words => self.refills.receive(peer, words)?,
        };
        let answer = self.pair(peer).sender.answer(refill, &message);
        let answer = or_accuse(&self.refills, peer, answer)?;
        self.refills.send(peer, answer)
    }

    /// Ends the refill that this party has requested first.
    fn end_request(&mut self, peer: usize, refill: Refill) -> Result<()> {
        let answer = self.refills.receive(peer, refill.answer)?;
        let refilled = self.pair(peer).receiver.refilled(&answer);
        or_accuse(&self.refills, peer, refilled)
    }
}
