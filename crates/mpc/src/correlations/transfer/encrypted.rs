//! Products of scalars with values by encryption of the scalars ([`lattice`]).
//!
//! Every party encrypts its scalars once for all other parties. They multiply the ciphertexts by
//! their values and answer with masked products: one message each way, whose size grows with
//! scalars and results, not with multiplications.
//!
//! **Memory**, in addition to operands, results and what is kept: 0.7 GB, and 0.1 GB for every
//! other party, whatever the sizes. Values are laid out for [`VALUES`] blocks at a time.
//!
//! **Kept scalars** are kept as the messages received, and every further product needs only an
//! answer.

use super::plan::Plan;
use super::{Transfer, or_accuse};
use crate::{Error, Result};
use kernels::stream::random_key;
use lattice::{Ciphertexts, PUBLIC_KEY_WORDS, PublicKey, SecretKey, Tiling, Values};
use std::ops::Range;

/// Blocks of scalars of all peers that are multiplied at once, 0.9 MB each with the message. It is
/// small in tests, so that products take several rounds of blocks.
const LIVE: usize = if cfg!(test) { 4 } else { 512 };

/// Blocks of values that are multiplied at once, 64 KiB each as they are laid out and five times
/// that as evaluations.
const VALUES: usize = if cfg!(test) { 4 } else { 256 };

/// Blocks of results in one message: at least a tenth of a megabyte each, and 0.7 MB before they
/// are masked.
const ANSWERS: usize = if cfg!(test) { 3 } else { 128 };

/// Memory of a block of scalars as received.
const BLOCK_KIB: usize = 214;

/// Costs by transfer of a multiplication and of a scalar, in the unit of [`Tiling::cost`]: a
/// multiplication takes 68 bytes and the time worth as many, and a scalar takes transfers of 64
/// bits.
const BY_TRANSFER: [u64; 2] = [160, 600];

/// This party's secret key, and the public keys of the others.
pub(super) struct Keys {
    secret: SecretKey,
    /// Public key of each party; `None` at this party's own index.
    public: Vec<Option<PublicKey>>,
    /// Buffers of what is being multiplied, which are reused.
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

/// Splits a plan into sections of at most `most` blocks each.
fn sections(plan: &Plan, tiling: Tiling, most: usize) -> Vec<Section> {
    let deep = plan.k.min(tiling.deepest()).min(most * tiling.depth());
    let high = (most / tiling.depths(deep)).max(1) * tiling.rows();
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

impl Encrypted {
    /// Returns how to encrypt the scalars of a plan, if that costs less than transfers.
    pub fn cheaper(plan: &Plan) -> Option<Self> {
        let (k, n, rows) = (plan.k, plan.n, plan.pieces.first()?.rows.len());
        let tiling = Tiling::new(rows, k, n);
        let [multiplication, scalar] = BY_TRANSFER;
        let by_transfer = (rows * k) as u64 * (n as u64 * multiplication + scalar);
        (tiling.cost(rows, k, n) < by_transfer).then(|| Self {
            tiling,
            blocks: rows.div_ceil(tiling.rows()) * tiling.depths(k) * plan.pieces.len(),
            messages: Vec::new(),
        })
    }

    /// Returns the memory for each peer.
    pub fn kib(&self) -> usize {
        self.blocks * BLOCK_KIB
    }
}

impl Keys {
    /// Agrees on keys with every other party.
    pub fn exchange(channel: &mut net::Channel) -> Result<Self> {
        let me = channel.party();
        channel.begin("set up encryption");
        let (secret, message) =
            SecretKey::new().map_err(|error| Error::setup(error.to_string()))?;
        for peer in (0..channel.parties()).filter(|peer| *peer != me) {
            channel.send(peer, message.clone())?;
        }
        let mut public: Vec<Option<PublicKey>> = Vec::new();
        for peer in 0..channel.parties() {
            if peer == me {
                public.push(None);
                continue;
            }
            let message = channel.receive(peer, PUBLIC_KEY_WORDS)?;
            let key = PublicKey::read(&message, &random_key()?);
            public.push(Some(or_accuse(channel, peer, key)?));
        }
        Ok(Self {
            secret,
            public,
            theirs: (1..channel.parties())
                .map(|_| Ciphertexts::default())
                .collect(),
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
        let most = (LIVE / (self.channel.parties() - 1)).max(1);
        let known = !sent.messages.is_empty();
        for (at, section) in sections(plan, sent.tiling, most).iter().enumerate() {
            let new = match known {
                true => None,
                false => Some(self.encrypt(sent.tiling, plan, section)?),
            };
            let messages = new.as_ref().unwrap_or_else(|| &sent.messages[at]);
            let out = &mut out[section.rows.start * n..section.rows.end * n];
            self.multiply_section(plan, section, sent.tiling, messages, out)?;
            sent.messages.extend(new.filter(|_| keep));
        }
        Ok(out)
    }

    /// Sends this party's encrypted scalars. Returns the messages of the others, which have as
    /// many.
    fn encrypt(&mut self, tiling: Tiling, plan: &Plan, section: &Section) -> Result<Vec<Vec<u64>>> {
        let scalars = section.scalars(&plan.scalars, plan.k);
        let encrypted = self
            .keys()
            .secret
            .encrypt(tiling, &scalars, section.depth.len());
        let message = encrypted.map_err(|error| Error::setup(error.to_string()))?;
        for peer in self.peers() {
            self.channel.send(peer, message.clone())?;
        }
        self.peers()
            .map(|peer| self.channel.receive(peer, message.len()))
            .collect()
    }

    fn keys(&mut self) -> &mut Keys {
        self.keys.as_mut().expect("a session with encryption")
    }

    /// Adds the cross terms of a section to its rows of results.
    fn multiply_section(
        &mut self,
        plan: &Plan,
        section: &Section,
        tiling: Tiling,
        messages: &[Vec<u64>],
        out: &mut [u64],
    ) -> Result<()> {
        let (m, k, n) = (section.rows.len(), section.depth.len(), plan.n);
        let peers: Vec<usize> = self.peers().collect();
        let Self { channel, keys, .. } = self;
        let Keys {
            secret,
            public,
            theirs,
            values,
        } = keys.as_mut().expect("a session with encryption");
        for ((peer, theirs), message) in peers.iter().zip(&mut *theirs).zip(messages) {
            or_accuse(channel, *peer, theirs.read(tiling, m, k, message))?;
        }
        let together = (VALUES / tiling.depths(k))
            .min(ANSWERS / m.div_ceil(tiling.rows()))
            .max(1);
        let all = tiling.column_blocks(n);
        for start in (0..all).step_by(together) {
            let columns = start..all.min(start + together);
            let of_blocks = tiling.columns_of(columns.clone(), n);
            let own = plan.pieces[section.piece].block(section.depth.clone(), of_blocks);
            values.read(tiling, &own, (k, n), columns.clone());
            drop(own);
            for (peer, theirs) in peers.iter().zip(&*theirs) {
                let key = public[*peer].as_mut().expect("a key of every other party");
                channel.send(*peer, key.answer(theirs, values, out))?;
            }
            for peer in &peers {
                let length = lattice::answer_words(tiling, m, n, columns.clone());
                let answer = channel.receive(*peer, length)?;
                let shares = secret.decrypt(tiling, (m, n), columns.clone(), &answer, out);
                or_accuse(channel, *peer, shares)?;
            }
        }
        Ok(())
    }
}
