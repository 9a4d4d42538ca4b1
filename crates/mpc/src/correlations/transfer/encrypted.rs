//! Products of scalars with values by encryption of the scalars ([`lattice`]).
//!
//! Every party encrypts its scalars once for all others, who multiply them by their values and answer with
//! masked products: a round each way, and as many bytes as there are scalars and results, not multiplications.
//!
//! **Kept scalars** are kept as the messages that came, and every further product takes an answer alone.

use super::plan::{Piece, Plan};
use super::{Transfer, blame};
use crate::{Error, Result};
use lattice::{Ciphertexts, PUBLIC_KEY_WORDS, PublicKey, SecretKey, Tiling, Values};
use ring::stream::random_key;
use std::ops::Range;

/// Blocks of scalars of all peers that are expanded at once, half a megabyte each; few in tests, so that
/// products take several times as many.
const LIVE: usize = if cfg!(test) { 2 } else { 512 };

/// Blocks of values that are expanded at once, a quarter of a megabyte each.
const VALUES: usize = if cfg!(test) { 2 } else { 256 };

/// Memory of a block of scalars as it came.
const BLOCK_KIB: usize = 200;

/// What a multiplication, and a scalar, cost by transfer, in the unit of [`Tiling::cost`]: 68 bytes and the time
/// worth as many; transfers of 64 bits.
const BY_TRANSFER: [u64; 2] = [160, 600];

/// This party's secret key, and what it knows of the others'.
pub(super) struct Keys {
    secret: SecretKey,
    /// None for oneself.
    public: Vec<Option<PublicKey>>,
}

/// Scalars as the others have encrypted them.
pub(super) struct Encrypted {
    tiling: Tiling,
    blocks: usize,
    /// For each band of rows, the message of each other party; empty until they came.
    bands: Vec<Vec<Vec<u64>>>,
}

impl Encrypted {
    /// How to encrypt the scalars of a plan, if that costs less than transfers.
    pub fn cheaper(plan: &Plan) -> Option<Self> {
        let (k, n, pieces) = (plan.k, plan.n, plan.pieces.len() as u64);
        let rows = plan.pieces.first()?.rows.len();
        let tiling = Tiling::new(rows, k, n)?;
        let [multiplication, scalar] = BY_TRANSFER;
        let by_transfer = (rows * k) as u64 * (n as u64 * multiplication + scalar);
        (tiling.cost(rows, k, n) < by_transfer).then(|| Self {
            tiling,
            blocks: rows.div_ceil(tiling.rows()) * tiling.depths(k) * pieces as usize,
            bands: Vec::new(),
        })
    }

    /// Memory for each peer.
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
            public.push(Some(blame(channel, peer, key)?));
        }
        Ok(Self { secret, public })
    }
}

impl Transfer {
    /// The cross terms of all pieces, one after another.
    pub(super) fn cross_encrypted(
        &mut self,
        plan: &Plan,
        sent: &mut Encrypted,
    ) -> Result<Vec<u64>> {
        let mut out = vec![0; plan.results()];
        let known = !sent.bands.is_empty();
        let (mut band, mut done) = (0, 0);
        for piece in &plan.pieces {
            let mut start = piece.rows.start;
            while start < piece.rows.end {
                let rows = start..piece.rows.end.min(start + self.band(sent.tiling, plan.k));
                if !known {
                    let scalars = &plan.scalars[rows.start * plan.k..rows.end * plan.k];
                    sent.bands.push(self.encrypt(sent.tiling, scalars, plan.k)?);
                }
                let out = &mut out[done..done + rows.len() * plan.n];
                self.multiply_band(
                    plan,
                    piece,
                    rows.clone(),
                    sent.tiling,
                    &sent.bands[band],
                    out,
                )?;
                done += out.len();
                band += 1;
                start = rows.end;
            }
        }
        Ok(out)
    }

    /// Rows whose ciphertexts are expanded at once.
    fn band(&self, tiling: Tiling, k: usize) -> usize {
        let peers = self.channel.parties() - 1;
        (LIVE / peers / tiling.depths(k)).max(1) * tiling.rows()
    }

    /// Sends this party's scalars; the messages of the others, which have as many.
    fn encrypt(&mut self, tiling: Tiling, scalars: &[u64], k: usize) -> Result<Vec<Vec<u64>>> {
        let encrypted = self.keys().secret.encrypt(tiling, scalars, k);
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

    /// Adds the cross terms of a band of rows.
    fn multiply_band(
        &mut self,
        plan: &Plan,
        piece: &Piece,
        rows: Range<usize>,
        tiling: Tiling,
        messages: &[Vec<u64>],
        out: &mut [u64],
    ) -> Result<()> {
        let (m, k, n) = (rows.len(), plan.k, plan.n);
        let mut theirs = Vec::with_capacity(messages.len());
        for (peer, message) in self.peers().zip(messages) {
            let read = Ciphertexts::read(tiling, m, k, message);
            theirs.push((peer, blame(&self.channel, peer, read)?));
        }
        let (all, together) = (tiling.column_blocks(n), (VALUES / tiling.depths(k)).max(1));
        for start in (0..all).step_by(together) {
            let columns = start..all.min(start + together);
            let values = Values::new(tiling, &piece.values, k, columns.clone());
            for (peer, theirs) in &theirs {
                let key = self.keys().public[*peer]
                    .as_mut()
                    .expect("a key of every other party");
                let answer = key.answer(theirs, &values, out);
                self.channel.send(*peer, answer)?;
            }
            for peer in self.peers() {
                let length = lattice::answer_words(tiling, m, n, columns.clone());
                let answer = self.channel.receive(peer, length)?;
                let shares =
                    self.keys()
                        .secret
                        .decrypt(tiling, (m, n), columns.clone(), &answer, out);
                blame(&self.channel, peer, shares)?;
            }
        }
        Ok(())
    }
}
