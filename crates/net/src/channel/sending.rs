//! Sending messages, signed if the members have attested.

use super::Channel;
use crate::error::{Error, PeerFault, Result};
use crate::frame::{Frame, Kind, MOST_WORDS};
use std::sync::Arc;

impl Channel {
    /// Sends words to a party, as part of the current step. Does not wait for the receiver.
    ///
    /// # Errors
    /// `Misuse` for a message of more than 2^27 words; `Peer` if the link or the mesh has ended.
    pub fn send(&mut self, to: usize, payload: Vec<u64>) -> Result<()> {
        if self.send_unless_finished(to, payload)? {
            return Ok(());
        }
        Err(self.finished(to))
    }

    /// Returns why nothing can be exchanged with a party that has finished. Ends the run, unless
    /// this channel's work is not needed.
    pub(super) fn finished(&self, party: usize) -> Error {
        let error = self.shared.blame(party, &self.step, PeerFault::Finished);
        let idle = self.patience.as_ref().is_some_and(|now| !now.is_needed());
        if idle { error } else { self.shared.fail(error) }
    }

    /// Sends words to a party that may finish without waiting for them. Returns false if the party
    /// is known to have finished.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_unless_finished(&mut self, to: usize, payload: Vec<u64>) -> Result<bool> {
        let mut frame = self.frame(to, payload)?;
        self.shared.sign(&mut [(to, &mut frame)]);
        self.send_frame(to, frame)
    }

    /// Sends the same words to several parties, as part of the current step. In an attested session
    /// one signature serves all of them.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_equal(
        &mut self,
        to: impl IntoIterator<Item = usize>,
        payload: &[u64],
    ) -> Result<()> {
        let mut frames = Vec::new();
        for receiver in to {
            frames.push((receiver, self.frame(receiver, payload.to_vec())?));
        }
        // Data that the parties compare in private differs from receiver to receiver.
        let (mut own, mut equal): (Vec<_>, Vec<_>) = frames
            .iter_mut()
            .map(|(receiver, frame)| (*receiver, frame))
            .partition(|(_, frame)| !frame.piggyback.is_empty());
        own.iter_mut()
            .for_each(|each| self.shared.sign(std::slice::from_mut(each)));
        self.shared.sign(&mut equal);
        for (receiver, frame) in frames {
            if !self.send_frame(receiver, frame)? {
                return Err(self.finished(receiver));
            }
        }
        Ok(())
    }

    /// Sends a frame and counts it. Returns false if the party is known to have finished.
    fn send_frame(&mut self, to: usize, frame: Frame) -> Result<bool> {
        let (words, wire_bytes) = (frame.payload.len(), frame.wire_bytes());
        let sent = self.shared.send_signed(to, frame);
        let sent = sent.inspect_err(|_| self.told = true)?;
        if sent {
            self.meter.sent(to, words, wire_bytes);
        }
        Ok(sent)
    }

    /// Returns the frame of the current step to a party.
    fn frame(&mut self, to: usize, payload: Vec<u64>) -> Result<Frame> {
        let words = payload.len();
        if words > MOST_WORDS {
            return Err(self.shared.fail(Error::misuse(format!(
                "step \"{}\" sends {words} words at once; the limit is {MOST_WORDS}: work on \
                 smaller tensors",
                self.step
            ))));
        }
        let piggyback = match &mut self.agreement {
            Some(agreement) if to < self.shared.parties() => agreement.piggyback(to),
            _ => Vec::new(),
        };
        Ok(Frame {
            kind: Kind::Data,
            channel: self.id,
            depth: self.depth.saturating_add(1),
            sequence: self.sequence,
            parameters: self.begun.value(),
            name: Arc::clone(&self.step),
            piggyback,
            signature: None,
            payload,
        })
    }
}
