//! The setup of both directions with one peer: three messages each way. Both ends run the same
//! steps.

use crate::Error;
use crate::base::{self, COUNT, POINT_WORDS};
use crate::binding::{Binding, Direction, Secrets};
use crate::extension::{DEPTH, Receiver, Sender};
use crate::hash::{Family, Permutation, Purpose};
use crate::leaves::Leaves;
use crate::tree::{self, MAX_DEPTH};
use kernels::message::unless_length;
use kernels::stream::Key;
use zeroize::Zeroizing;

/// The number of words of the first message of a setup.
pub const FIRST_WORDS: usize = POINT_WORDS;

/// The number of words of the second message of a setup.
pub const REPLY_WORDS: usize = COUNT * POINT_WORDS;

/// The number of words of the third message of a setup, at the usual [`DEPTH`].
pub const CORRECTION_WORDS: usize = correction_words(DEPTH);

/// Returns the words of the third message of a setup with trees of this depth.
#[must_use]
pub const fn correction_words(depth: usize) -> usize {
    4 * (COUNT - COUNT.div_ceil(depth))
}

/// The state of a setup of both directions with one peer, after the first message.
pub struct Setup {
    /// The direction in which this end's extension receives, and its base transfers send.
    receiving: Binding,
    /// The direction in which this end's extension sends.
    sending: Binding,
    depth: usize,
    secrets: Secrets,
    base: base::Sender,
}

impl Setup {
    /// Begins a setup. Returns the first message. `context` names the session and both parties, in
    /// the same bytes at both ends; `first` is true at exactly one end.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn begin(context: &[u8], first: bool) -> Result<(Self, Vec<u64>), Error> {
        Self::with_depth(context, first, DEPTH)
    }

    /// Begins a setup like [`Setup::begin`], with trees of another depth, the same at both ends. An
    /// extension sends 128 / `depth` bits for each transfer, and expands 2^`depth` / `depth` times
    /// 128 bits.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    ///
    /// # Panics
    /// If `depth` is not 1 to 8.
    pub fn with_depth(
        context: &[u8],
        first: bool,
        depth: usize,
    ) -> Result<(Self, Vec<u64>), Error> {
        assert!(
            (1..=MAX_DEPTH).contains(&depth),
            "trees have a depth of 1 to {MAX_DEPTH}, not {depth}"
        );
        Ok(Self::with_secrets(
            context,
            first,
            depth,
            Secrets::random()?,
        ))
    }

    pub(crate) fn with_secrets(
        context: &[u8],
        first: bool,
        depth: usize,
        mut secrets: Secrets,
    ) -> (Self, Vec<u64>) {
        let base = base::Sender::new(&mut secrets);
        let message = base.message();
        let setup = Self {
            receiving: Binding::new(context, Direction::from(!first)),
            sending: Binding::new(context, Direction::from(first)),
            depth,
            secrets,
            base,
        };
        (setup, message)
    }

    /// Takes the peer's first message. Returns the second message.
    ///
    /// # Errors
    /// If the message is not a point of the group.
    pub fn reply(mut self, peer_first_message: &[u64]) -> Result<(Replied, Vec<u64>), Error> {
        // The sender of an extension chooses in the base transfers. In each tree it learns all
        // leaves except that of its secret, from the keys of the secret's complement.
        // Silent transfers need an odd secret.
        let delta = Zeroizing::new(*self.secrets.bits() | 1);
        let (keys, message) = base::choose(
            &self.sending,
            &mut self.secrets,
            !*delta,
            peer_first_message,
        )?;
        let replied = Replied {
            receiving: self.receiving,
            sending: self.sending,
            depth: self.depth,
            base: self.base,
            delta,
            keys,
            silent: [(); 2].map(|()| self.secrets.key()),
        };
        Ok((replied, message))
    }
}

/// The state of a setup after the second message.
pub struct Replied {
    receiving: Binding,
    sending: Binding,
    depth: usize,
    base: base::Sender,
    delta: Zeroizing<u128>,
    keys: Zeroizing<Vec<u128>>,
    /// Secrets for silent transfers: of the receiving and of the sending direction.
    silent: [Key; 2],
}

impl Replied {
    /// Takes the peer's second message. Returns the third message.
    ///
    /// # Errors
    /// If the message is not 128 points of the group.
    pub fn correct(self, peer_reply: &[u64]) -> Result<(Corrected, Vec<u64>), Error> {
        let keys = self.base.keys(&self.receiving, peer_reply)?;
        let mut leaves = Leaves::new();
        let mut message = Vec::with_capacity(correction_words(self.depth));
        for (number, rows) in tree::cut(COUNT, self.depth).enumerate() {
            let keys: Vec<[&[u128]; 2]> = keys[rows.clone()]
                .iter()
                .map(|pair| pair.each_ref().map(std::slice::from_ref))
                .collect();
            let (seeds, corrections) = tree::grow(&permutation(&self.receiving, number), &keys);
            leaves.push(rows, &seeds);
            message.extend(corrections);
        }
        let corrected = Corrected {
            receiver: Receiver::new(leaves, family(&self.receiving), &self.silent[0]),
            sending: self.sending,
            depth: self.depth,
            delta: self.delta,
            keys: self.keys,
            silent: self.silent[1].clone(),
        };
        Ok((corrected, message))
    }
}

/// The state of a setup after the third message.
pub struct Corrected {
    receiver: Receiver,
    sending: Binding,
    depth: usize,
    delta: Zeroizing<u128>,
    keys: Zeroizing<Vec<u128>>,
    silent: Key,
}

impl Corrected {
    /// Takes the peer's third message. Returns the extensions.
    ///
    /// # Errors
    /// If the message does not have [`correction_words`] words.
    pub fn finish(self, peer_corrections: &[u64]) -> Result<Pair, Error> {
        let expected = correction_words(self.depth);
        unless_length("the corrections of a set-up", expected, peer_corrections)?;
        let mut leaves = Leaves::new();
        let mut rest = peer_corrections;
        for (number, rows) in tree::cut(COUNT, self.depth).enumerate() {
            let (corrections, after) = rest.split_at(tree::correction_words(rows.len(), 1));
            rest = after;
            let keys: Vec<_> = self.keys[rows.clone()].chunks(1).collect();
            let path = |level: usize, _| (*self.delta >> (rows.start + level) & 1).wrapping_neg();
            let permutation = permutation(&self.sending, number);
            let seeds = tree::puncture(&permutation, &keys, path, corrections);
            leaves.push(rows, &seeds);
        }
        Ok(Pair {
            sender: Sender::new(leaves, self.delta, family(&self.sending), &self.silent),
            receiver: self.receiver,
        })
    }
}

fn permutation(binding: &Binding, tree: usize) -> Permutation {
    Family::new(binding, "tacit ot trees of seeds, version 1").permutation(Purpose::Tree, 0, tree)
}

fn family(binding: &Binding) -> Family {
    Family::new(binding, "tacit ot hash of rows, version 1")
}

/// Extensions with one peer in both directions.
pub struct Pair {
    /// The direction in which this end has both pads.
    pub sender: Sender,
    /// The direction in which this end chooses.
    pub receiver: Receiver,
}
