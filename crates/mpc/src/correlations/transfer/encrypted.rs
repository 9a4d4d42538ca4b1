//! Products of scalars with values by encryption of the scalars ([`lattice`]).
//!
//! Every party encrypts its scalars once for all other parties. They multiply the ciphertexts by
//! their values and answer with masked products: one message each way, whose size grows with
//! scalars and results, not with multiplications. A convolution encrypts its images
//! ([`lattice::Windows`]), or unfolds them as values for encrypted filters where that costs less.
//!
//! **Keys for packing** are exchanged when a product first needs them, 1.1 MB each.
//!
//! **Memory**, in addition to operands, results and what is kept: 0.7 GB, and 0.2 GB for every
//! other party, whatever the sizes. Values are laid out for [`VALUES`] blocks at a time.
//!
//! **Kept scalars** of matrices are kept as the messages received, and every further product needs
//! only an answer. Images are encrypted for each product.

use super::plan::Plan;
use super::{Transfer, or_accuse};
use crate::{Error, Result};
use kernels::convolution::Convolution;
use kernels::stream::random_key;
use lattice::{
    Ciphertexts, Layout, PUBLIC_KEY_WORDS, Prices, PublicKey, SecretKey, Tiling, Values, Windows,
};
use std::borrow::Cow;
use std::ops::Range;

/// Blocks of scalars of all peers, 0.9 MB each with the message, and rows of blocks that are
/// multiplied at once. They are few in tests, so that products take several rounds of blocks.
const AT_ONCE: [usize; 2] = if cfg!(test) { [4, 3] } else { lattice::AT_ONCE };

/// Blocks of values that are multiplied at once, 64 KiB each as they are laid out and five times
/// that as evaluations.
const VALUES: usize = if cfg!(test) { 4 } else { 256 };

/// Memory of a block of scalars as received.
const BLOCK_KIB: usize = 214;

/// Bytes and nanoseconds of a multiplication by transfer, and of a scalar, which takes 64
/// transfers.
const BY_TRANSFER: [[u64; 2]; 2] = [[68, 370], [90, 1000]];

/// A party's bandwidth if it does not know it.
const UNKNOWN: u64 = u64::MAX;

/// This party's secret key, and the public keys of the others.
pub(super) struct Keys {
    secret: SecretKey,
    /// The public key of each peer.
    public: Vec<PublicKey>,
    /// Prices at the slowest party's bandwidth.
    pub prices: Prices,
    /// Buffers of what is being multiplied, which are reused: each peer's scalars, and this party's
    /// values.
    theirs: Vec<Ciphertexts>,
    values: Values,
}

/// Scalars as the other parties have encrypted them.
pub(super) struct Encrypted {
    tiling: Tiling,
    blocks: usize,
    /// For each section, the message of each other party. Empty until the messages have arrived.
    messages: Vec<Vec<Vec<u64>>>,
}

/// Part of a plan that is multiplied at once.
struct Section {
    piece: usize,
    /// Rows within all scalars.
    rows: Range<usize>,
    /// Scalars of each row.
    depth: Range<usize>,
}

/// Error for a system without randomness.
fn no_randomness(error: lattice::Error) -> Error {
    Error::setup(error.to_string())
}

/// Splits a plan into sections of at most `most` blocks each.
fn sections(plan: &Plan, tiling: Tiling, most: usize) -> Vec<Section> {
    let deep = plan.k.min(tiling.deepest()).min(most * tiling.depth());
    let high = (most / tiling.depths(deep)).clamp(1, AT_ONCE[1]) * tiling.rows();
    let mut sections = Vec::new();
    for (at, piece) in plan.pieces.iter().enumerate() {
        for start in piece.rows.clone().step_by(high) {
            let rows = start..piece.rows.end.min(start + high);
            sections.extend((0..plan.k).step_by(deep).map(|first| Section {
                piece: at,
                rows: rows.clone(),
                depth: first..plan.k.min(first + deep),
            }));
        }
    }
    sections
}

impl Section {
    /// Returns this section of all scalars, which are in rows of k.
    fn scalars(&self, scalars: &[u64], k: usize) -> Vec<u64> {
        let rows = scalars[self.rows.start * k..self.rows.end * k].chunks_exact(k);
        rows.flat_map(|row| row[self.depth.clone()].iter().copied())
            .collect()
    }
}

/// Returns the cost of a piece of a plan by transfer.
fn by_transfer(plan: &Plan, prices: &Prices) -> u64 {
    let scalars = (plan.pieces[0].rows.len() * plan.k) as u64;
    let counts = [scalars * plan.n as u64, scalars];
    let costs = counts
        .iter()
        .zip(BY_TRANSFER)
        .map(|(count, [bytes, time])| prices.cost(count * bytes, count * time));
    costs.sum()
}

/// Returns the cheapest tiling of a piece of a plan, and its cost.
fn by_matrices(plan: &Plan, prices: &Prices) -> (Tiling, u64) {
    let (rows, k, n) = (plan.pieces[0].rows.len(), plan.k, plan.n);
    let tiling = Tiling::new(rows, k, n, prices);
    (tiling, tiling.cost(rows, k, n, prices))
}

/// Returns how to encrypt the images of a convolution, if that costs less than all else.
pub(super) fn windows(shape: &Convolution, plan: &Plan, prices: &Prices) -> Option<Windows> {
    let (windows, cost) = Windows::new(shape, prices)?;
    let (_, least) = by_matrices(plan, prices);
    (cost < least.min(by_transfer(plan, prices))).then_some(windows)
}

impl Encrypted {
    /// Returns how to encrypt the scalars of a plan, if that costs less than transfers.
    pub fn cheaper(plan: &Plan, prices: &Prices) -> Option<Self> {
        let rows = plan.pieces.first()?.rows.len();
        let (tiling, cost) = by_matrices(plan, prices);
        (cost < by_transfer(plan, prices)).then(|| Self {
            tiling,
            blocks: rows.div_ceil(tiling.rows()) * tiling.depths(plan.k) * plan.pieces.len(),
            messages: Vec::new(),
        })
    }

    /// Returns the memory for each peer.
    pub fn kib(&self) -> usize {
        self.blocks * BLOCK_KIB
    }
}

impl Keys {
    /// Agrees on keys with every other party, and on the bandwidth for which products are laid out.
    pub fn exchange(channel: &mut net::Channel) -> Result<Self> {
        let me = channel.party();
        let peers = (0..channel.parties()).filter(|peer| *peer != me);
        channel.begin("set up encryption");
        let (secret, mut message) = SecretKey::new().map_err(no_randomness)?;
        let own = channel.network();
        let mut slowest = own.map_or(UNKNOWN, |network| network.bandwidth as u64);
        message.push(slowest);
        channel.send_equal(peers.clone(), &message)?;
        let mut public = Vec::new();
        for peer in peers {
            let message = channel.receive(peer, PUBLIC_KEY_WORDS + 1)?;
            let (message, bandwidth) = message.split_at(PUBLIC_KEY_WORDS);
            slowest = slowest.min(bandwidth[0]);
            let key = PublicKey::read(message, &random_key()?);
            public.push(or_accuse(channel, peer, key)?);
        }
        Ok(Self {
            secret,
            prices: Prices::of((slowest != UNKNOWN).then_some(slowest)),
            theirs: public.iter().map(|_| Ciphertexts::default()).collect(),
            public,
            values: Values::default(),
        })
    }
}

impl Transfer {
    /// Computes the cross terms of all pieces, one after another.
    pub(super) fn cross_encrypted(
        &mut self,
        plan: &Plan,
        sent: &mut Encrypted,
        keep: bool,
    ) -> Result<Vec<u64>> {
        let (mut out, n) = (vec![0; plan.results()], plan.n);
        let known = !sent.messages.is_empty();
        let sections = sections(plan, sent.tiling, self.blocks_at_once());
        for (at, section) in sections.iter().enumerate() {
            let (m, k) = (section.rows.len(), section.depth.len());
            let layout = Layout::Matrices(sent.tiling, [m, k, n]);
            let new = match known {
                true => None,
                false => Some(self.encrypt(&layout, &section.scalars(&plan.scalars, plan.k))?),
            };
            let messages = new.as_ref().unwrap_or_else(|| &sent.messages[at]);
            let out = &mut out[section.rows.start * n..section.rows.end * n];
            let values = |columns| {
                let columns = sent.tiling.columns_of(columns, n);
                plan.pieces[section.piece].block(section.depth.clone(), columns)
            };
            self.multiply_section(&layout, messages, &values, out)?;
            sent.messages.extend(new.filter(|_| keep));
        }
        Ok(out)
    }

    /// Adds the cross terms of a convolution of images with filters.
    pub(super) fn cross_windows(
        &mut self,
        windows: &Windows,
        groups: usize,
        images: &[u64],
        filters: &[u64],
        out: &mut [u64],
    ) -> Result<()> {
        for group in 0..groups {
            let windows = windows.of_group(group);
            let all = Layout::Images(windows);
            let together = (self.blocks_at_once() / all.depths()).clamp(1, AT_ONCE[1]);
            for start in (0..all.rows()).step_by(together) {
                let rows = start..all.rows().min(start + together);
                let layout = Layout::Images(windows.of_rows(rows));
                let messages = self.encrypt(&layout, images)?;
                let values = |_| Cow::Borrowed(filters);
                self.multiply_section(&layout, &messages, &values, out)?;
            }
        }
        Ok(())
    }

    /// Returns the number of blocks of scalars of each peer that are multiplied at once.
    fn blocks_at_once(&self) -> usize {
        (AT_ONCE[0] / (self.channel.parties() - 1)).max(1)
    }

    /// Sends this party's encrypted scalars. Returns the messages of the others, which have as
    /// many.
    fn encrypt(&mut self, layout: &Layout, scalars: &[u64]) -> Result<Vec<Vec<u64>>> {
        let encrypted = self.keys().secret.encrypt(layout, scalars);
        self.exchange(&encrypted.map_err(no_randomness)?)
    }

    /// Sends a message to all peers. Returns theirs, which are as long.
    fn exchange(&mut self, message: &[u64]) -> Result<Vec<Vec<u64>>> {
        self.channel.send_equal(self.peers(), message)?;
        self.peers()
            .map(|peer| self.channel.receive(peer, message.len()))
            .collect()
    }

    fn keys(&mut self) -> &mut Keys {
        self.keys.as_mut().expect("a session with encryption")
    }

    /// Exchanges the keys that are missing to pack this many blocks of a layout.
    fn exchange_packing_keys(&mut self, layout: &Layout, blocks: usize) -> Result<()> {
        let keys = self.keys();
        let missing = layout.missing(&keys.prices, blocks);
        if missing.is_empty() {
            return Ok(());
        }
        let message = keys.secret.packing_keys(&missing).map_err(no_randomness)?;
        let messages = self.exchange(&message)?;
        let peers = self.peers();
        let Self { channel, keys, .. } = self;
        let keys = keys.as_mut().expect("a session with encryption");
        keys.prices.exchanged(&missing);
        for ((peer, key), message) in peers.zip(&mut keys.public).zip(&messages) {
            or_accuse(channel, peer, key.read_packing_keys(&missing, message))?;
        }
        Ok(())
    }

    /// Adds the cross terms of a section to its results. `values` returns this party's values in
    /// some blocks of columns.
    fn multiply_section<'a>(
        &mut self,
        layout: &Layout,
        messages: &[Vec<u64>],
        values: &dyn Fn(Range<usize>) -> Cow<'a, [u64]>,
        out: &mut [u64],
    ) -> Result<()> {
        let (rows, all) = (layout.rows(), layout.columns());
        let together = columns_of_message(layout);
        let peers: Vec<usize> = self.peers().collect();
        let Self { channel, keys, .. } = self;
        let theirs = &mut keys.as_mut().expect("a session with encryption").theirs;
        for ((peer, theirs), message) in peers.iter().zip(theirs).zip(messages) {
            or_accuse(channel, *peer, theirs.read(layout, message))?;
        }
        self.exchange_packing_keys(layout, rows * together.min(all))?;
        let Self { channel, keys, .. } = self;
        let Keys {
            secret,
            public,
            theirs,
            values: ready,
            ..
        } = keys.as_mut().expect("a session with encryption");
        let at_once = (VALUES / layout.depths()).max(1);
        for start in (0..all).step_by(together) {
            let columns = start..all.min(start + together);
            for first in columns.clone().step_by(at_once) {
                let part = first..columns.end.min(first + at_once);
                ready.read(layout, &values(part.clone()), part);
                for (key, theirs) in public.iter_mut().zip(&*theirs) {
                    key.multiply(theirs, ready);
                }
            }
            for (peer, key) in peers.iter().zip(&mut *public) {
                channel.send(*peer, key.answer(layout, columns.clone(), out))?;
            }
            for peer in &peers {
                let length = lattice::answer_words(layout, columns.clone());
                let answer = channel.receive(*peer, length)?;
                let shares = secret.decrypt(layout, columns.clone(), &answer, out);
                or_accuse(channel, *peer, shares)?;
            }
        }
        Ok(())
    }
}

/// Returns the number of blocks of columns that one message answers. Its answers are full, unless
/// that takes more blocks than are held at once. A block takes 0.7 MB until it is masked.
fn columns_of_message(layout: &Layout) -> usize {
    let (rows, packed) = (layout.rows().max(1), layout.together());
    let most = (AT_ONCE[1] / rows).max(1);
    // A power of two is packed.
    let full = packed >> rows.trailing_zeros().min(packed.trailing_zeros());
    match most / full {
        0 => most,
        times => times * full,
    }
}
