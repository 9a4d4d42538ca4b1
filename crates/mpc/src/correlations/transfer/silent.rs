//! Refills of silent transfers.

use super::{Transfer, or_accuse};
use crate::Result;

impl Transfer {
    /// Exchanges the messages of all refills that are due before a step that takes at most this
    /// many transfers with each peer, in each direction. A step may take more. What is then missing
    /// comes from transfers that are not silent.
    pub(super) fn refill(&mut self, transfers: usize) -> Result<()> {
        let peers: Vec<usize> = self.peers().collect();
        let (mut requested, mut asked) = (Vec::new(), Vec::new());
        for peer in peers {
            let pair = self.pair(peer);
            asked.extend(pair.sender.refill(transfers).map(|refill| (peer, refill)));
            if let Some(refill) = pair.receiver.refill(transfers) {
                let message = pair.receiver.request();
                requested.push((peer, refill));
                if refill.request > 0 {
                    self.channel.send(peer, message)?;
                }
            }
        }
        for (peer, refill) in asked {
            let message = match refill.request {
                0 => Vec::new(),
                words => self.channel.receive(peer, words)?,
            };
            let answer = self.pair(peer).sender.answer(refill, &message);
            let answer = or_accuse(&self.channel, peer, answer)?;
            self.channel.send(peer, answer)?;
        }
        for (peer, refill) in requested {
            let answer = self.channel.receive(peer, refill.answer)?;
            let refilled = self.pair(peer).receiver.refilled(&answer);
            or_accuse(&self.channel, peer, refilled)?;
        }
        Ok(())
    }
}
