//! Sharing and opening.
//!
//! **Sharing**, with the owner in role 0: x0 is expanded from k20, x1 = x − x0 is sent to role 1,
//! and x2 = 0. One round, 64 bits. Role 1 sees x1 masked by x0 (it does not have k20). Role 2 sees
//! only masks.
//!
//! **Opening** to all: each party sends its first component to the next party, which lacks it. To
//! open to one party, the previous party sends it. One round, 64 bits for each recipient. If the
//! parties prove what they send, all of it is verified first, and the other holder of the component
//! sends its hash: a recipient that gets two different ones stops.

use super::{Pair, PairMut, Replicated, planes};
use crate::blocks;
use crate::dense;
use crate::group::Group;
use crate::{Bits, Recipient, Result};
use kernels::planes::words_of;
use kernels::stream::Reserved;

pub(super) fn share(
    party: &mut Replicated,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
    out: PairMut,
) -> Result<()> {
    party.channel.begin_of("share", n, &[owner as u64]);
    party.input(Group::Additive, owner, values, n, out)
}

pub(super) fn trivial(party: &Replicated, values: &[u64], [first, second]: PairMut) {
    first.fill(0);
    second.fill(0);
    // Component 0 carries the value. Party 0 holds it as its first, and party 2 as its second.
    match party.channel.party() {
        0 => first.copy_from_slice(values),
        2 => second.copy_from_slice(values),
        _ => {}
    }
}

pub(super) fn trivial_bits(party: &Replicated, planes: &[u64], width: usize, n: usize) -> Bits {
    let (mut first, mut second) = (vec![0; planes.len()], vec![0; planes.len()]);
    trivial(party, planes, [&mut first, &mut second]);
    Bits::new(width, n, vec![first, second])
}

pub(super) fn reveal(party: &mut Replicated, x: Pair, to: Recipient) -> Result<Option<Vec<u64>>> {
    party.verify_all()?;
    party
        .channel
        .begin_opening_of("reveal", x[0].len(), &[to.parameter()])?;
    party.open(Group::Additive, x, to)
}

pub(super) fn share_bits(
    party: &mut Replicated,
    owner: usize,
    planes: Option<&[u64]>,
    width: usize,
    n: usize,
) -> Result<Bits> {
    party
        .channel
        .begin_of("share bits", width * n, &[owner as u64, width as u64]);
    let values = planes.map(|planes| dense::packed(planes, n));
    let words = words_of(width * n);
    let (mut first, mut second) = (vec![0; words], vec![0; words]);
    let out = [&mut first[..], &mut second[..]];
    party.input(Group::Binary, owner, values.as_deref(), words, out)?;
    let parts = [first, second].map(|words| dense::unpack(words, width, n));
    Ok(Bits::new(width, n, parts.into()))
}

pub(super) fn reveal_bits(
    party: &mut Replicated,
    x: &Bits,
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    party.verify_all()?;
    party
        .channel
        .begin_opening_of("reveal bits", x.width() * x.len(), &[to.parameter()])?;
    let [first, second] = planes(x).map(|planes| dense::packed(planes, x.len()));
    let opened = party.open(Group::Binary, [&first, &second], to)?;
    Ok(opened.map(|words| dense::unpack(words, x.width(), x.len())))
}

impl Replicated {
    fn input(
        &mut self,
        group: Group,
        owner: usize,
        values: Option<&[u64]>,
        n: usize,
        [first, second]: PairMut,
    ) -> Result<()> {
        match (self.channel.party() + 3 - owner) % 3 {
            0 => {
                let values = values.expect("the owner passes values");
                fill(&self.previous.reserve(n), first);
                let mut x1 = self.channel.memory(n);
                x1.copy_from_slice(values);
                group.subtract(&mut x1, first);
                second.copy_from_slice(&x1);
                let after = self.after();
                self.channel.send(after, x1)?;
                self.0.round()
            }
            1 => {
                // (x1, x2)
                second.fill(0);
                self.0.round()?;
                let before = self.before();
                let x1 = self.channel.receive(before, n)?;
                first.copy_from_slice(&x1);
                self.channel.give_back(x1);
                Ok(())
            }
            _ => {
                // (x2, x0)
                first.fill(0);
                fill(&self.next.reserve(n), second);
                self.0.round()
            }
        }
    }

    fn open(
        &mut self,
        group: Group,
        [first, second]: Pair,
        to: Recipient,
    ) -> Result<Option<Vec<u64>>> {
        let (after, before) = (self.after(), self.before());
        if to.includes(after) {
            self.channel.send(after, first.to_vec())?;
        }
        let checks = self.verifying.is_some();
        if checks && to.includes(before) {
            self.channel.send(before, hash(second).to_vec())?;
        }
        self.0.round()?;
        if !to.includes(self.channel.party()) {
            return Ok(None);
        }
        let mut missing = self.channel.receive(before, first.len())?;
        if checks && self.channel.receive(after, HASH)? != hash(&missing) {
            let step = self.channel.step().to_owned();
            return Err(self.channel.cheated(&step, ""));
        }
        let lacking = &mut missing[..];
        blocks::for_each(
            [lacking],
            [first, second],
            #[inline(always)]
            |_, [value], [a, b]| {
                for i in 0..value.len() {
                    value[i] = group.combine(value[i], group.combine(a[i], b[i]));
                }
            },
        );
        Ok(Some(missing))
    }
}

/// The words of a hash.
pub(super) const HASH: usize = 4;

/// Returns the hash of a component that is opened.
fn hash(component: &[u64]) -> [u64; HASH] {
    let mut hashing = Hashing::new("tacit component that is opened, version 1");
    hashing.update(component);
    hashing.end()
}

/// A hash of a component that is computed over words as they come.
pub(super) struct Hashing(blake3::Hasher);

impl Hashing {
    /// Begins a hash. No two uses have the same context.
    pub fn new(context: &str) -> Self {
        Self(blake3::Hasher::new_derive_key(context))
    }

    /// Adds the next words.
    pub fn update(&mut self, words: &[u64]) {
        // BLAKE3 is fastest from 16 KiB on.
        for words in words.chunks(2 << 10) {
            let mut bytes = [0; 16 << 10];
            for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(8)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            self.0.update(&bytes[..8 * words.len()]);
        }
    }

    /// Returns the hash.
    pub fn end(&self) -> [u64; HASH] {
        let hash = self.0.finalize();
        let words = net::bytes::to_words(hash.as_bytes());
        words.try_into().expect("a hash of 32 bytes")
    }
}

/// Fills a slice with masks, on all threads.
fn fill(masks: &Reserved, out: &mut [u64]) {
    blocks::for_each(
        [out],
        [],
        #[inline(always)]
        |offset, [out], []| masks.fill(offset, out),
    );
}
