//! Correlations from a dealer: a member of the mesh that computes nothing and learns shapes and counts.
//!
//! **Idea.** Each party shares a key with the dealer. Uniform columns, and all shares of derived columns
//! but party 0's, are expanded from these keys; the one correction that makes the shares add up
//! travels from the dealer to party 0. So n − 1 parties never wait for the dealer.
//!
//! **Trust.** The dealer follows the protocol and colludes with no party: with any one of them it could
//! open what the parties open masked. It receives no message that depends on an input.
//!
//! **Simulation.** A party other than 0 receives nothing. Party 0 receives derived columns minus the
//! other parties' pseudo-random shares of them, which are uniform to it as long as one other party is
//! honest.

use super::job::{ENCODED, Job, Origin, SizedColumn};
use super::kind::{Kind, Shape};
use super::{CHANNEL, Source};
use crate::{Error, Name, Result};
use net::{Channel, Mesh, Reading};
use ring::pack::{pack_low, packed_words, unpack_low};
use ring::stream::{Key, Stream, random_key};
use std::collections::HashMap;
use std::sync::Arc;

/// Domain of the streams that a party and the dealer share.
const DOMAIN: &str = "correlations: party and dealer";

/// Words of masks that a dealer keeps at most: 8 GiB.
const MOST_KEPT: usize = 1 << 30;

/// Masks that it keeps at most, whatever their lengths.
const MOST_NAMES: usize = 1 << 16;

/// The party's side.
pub(crate) struct Dealt {
    channel: Channel,
    dealer: usize,
    stream: Stream,
}

impl Dealt {
    /// Agrees on the key.
    pub fn new(mut channel: Channel, dealer: usize) -> Result<Self> {
        channel.begin("key for the dealer");
        let key = random_key()?;
        channel.send(dealer, key.to_words().to_vec())?;
        Ok(Self {
            dealer,
            stream: Stream::new(&key, DOMAIN),
            channel,
        })
    }

    /// The channel to the dealer and the stream shared with it, to be watched and mutated.
    #[cfg(feature = "mutation")]
    pub fn opened(&mut self) -> (&mut Channel, &mut Stream) {
        (&mut self.channel, &mut self.stream)
    }
}

impl Source for Dealt {
    fn make(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        let (free, derived) = job.columns();
        let mut columns = expand(&mut self.stream, &free);
        if self.channel.party() > 0 {
            columns.extend(expand(&mut self.stream, &derived));
            return Ok(columns);
        }
        self.channel
            .begin(&format!("correlations: {}", job.describe()));
        self.channel.send(self.dealer, job.encode())?;
        let words = derived.iter().map(sent_words).sum();
        if words > 0 {
            let message = self.channel.receive(self.dealer, words)?;
            let mut at = 0;
            for shape in &derived {
                let packed = &message[at..at + sent_words(shape)];
                columns.push(unpacked(packed, shape));
                at += packed.len();
            }
        }
        Ok(columns)
    }

    fn reading(&self) -> Reading {
        self.channel.meter().totals()
    }

    fn guards(&self) -> bool {
        true
    }

    fn most_ahead(&self) -> usize {
        1 << 22
    }
}

/// The dealer.
pub struct Dealer {
    channel: Channel,
    streams: Vec<Stream>,
    kept: KeptMasks,
}

/// Masks that are used again.
#[derive(Default)]
struct KeptMasks {
    masks: HashMap<Name, Arc<Vec<u64>>>,
    /// Of all together.
    words: usize,
}

impl Dealer {
    /// Agrees on keys with all parties.
    ///
    /// # Errors
    /// What the links meet.
    pub fn new(mesh: &Mesh) -> Result<Self> {
        let mut channel = mesh.channel(CHANNEL);
        channel.begin("key for the dealer");
        let streams = (0..channel.parties())
            .map(|party| {
                let words = channel.receive(party, 2)?;
                Ok(Stream::new(&Key::from_words([words[0], words[1]]), DOMAIN))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            channel,
            streams,
            kept: KeptMasks::default(),
        })
    }

    /// The streams with the parties, to be mutated.
    #[cfg(feature = "mutation")]
    pub fn streams(&mut self) -> &mut [Stream] {
        &mut self.streams
    }

    /// Deals until the parties have finished.
    ///
    /// # Errors
    /// What the links meet, and `Peer` for a party that asks for what cannot be.
    pub fn serve(mut self) -> Result<()> {
        while let Some(words) = self.channel.follow(0, ENCODED)? {
            let message = Job::decode(&words)
                .and_then(|job| self.deal(&job))
                .map_err(|error| self.channel.accuse(0, error.to_string()))?;
            // What was asked for ahead of need may come when nobody is there any more.
            if !message.is_empty() && !self.channel.send_unless_finished(0, message)? {
                break;
            }
        }
        Ok(())
    }

    /// The corrections of a job.
    fn deal(&mut self, job: &Job) -> Result<Vec<u64>> {
        let (free, derived) = job.columns();
        let mut totals = match job {
            Job::Batch {
                kind: kind @ Kind::CrossBits { .. },
                ..
            } => {
                let [left, right] = &mut self.streams[..] else {
                    return Err(Error::misuse("cross products are for two parties"));
                };
                kind.derive(&[left, right].map(|stream| expand(stream, &free).swap_remove(0)))
            }
            Job::Batch { kind, .. } => kind.derive(&self.sums(&free)),
            Job::Product { map, x, y } => {
                let (left, right, n) = map.lengths();
                let mut new = self.sums(&free).into_iter();
                let a = self.mask(*x, left, &mut new)?;
                let b = self.mask(*y, right, &mut new)?;
                let mut product = vec![0; n];
                map.evaluate(&mut product, &[(&a, &b)]);
                vec![product]
            }
            Job::Forget { name } => {
                self.kept.forget(*name);
                Vec::new()
            }
        };
        for stream in &mut self.streams[1..] {
            for ((total, share), (shape, _)) in totals
                .iter_mut()
                .zip(expand(stream, &derived))
                .zip(&derived)
            {
                shape.group().subtract(total, &share);
            }
        }
        let sized = totals.iter().zip(&derived);
        Ok(sized
            .flat_map(|(total, shape)| packed(total, shape))
            .collect())
    }

    /// What the parties' shares of each column add up to.
    fn sums(&mut self, shapes: &[SizedColumn]) -> Vec<Vec<u64>> {
        let (first, others) = self.streams.split_first_mut().expect("at least one party");
        let mut totals = expand(first, shapes);
        for stream in others {
            for ((total, share), (shape, _)) in
                totals.iter_mut().zip(expand(stream, shapes)).zip(shapes)
            {
                shape.group().add(total, &share);
            }
        }
        totals
    }

    /// The whole mask of an operand of n elements, new ones from `new`.
    fn mask(
        &mut self,
        origin: Origin,
        n: usize,
        new: &mut impl Iterator<Item = Vec<u64>>,
    ) -> Result<Arc<Vec<u64>>> {
        let mut take = || Arc::new(new.next().expect("a column for each new mask"));
        match origin {
            Origin::Fresh => Ok(take()),
            Origin::Keep(name) => {
                let whole = take();
                self.kept.keep(name, Arc::clone(&whole))?;
                Ok(whole)
            }
            Origin::Kept(name) => {
                let kept = self.kept.masks.get(&name).filter(|kept| kept.len() == n);
                let unknown = || Error::misuse("asked for a product with a mask that is not kept");
                kept.cloned().ok_or_else(unknown)
            }
        }
    }
}

impl KeptMasks {
    fn keep(&mut self, name: Name, mask: Arc<Vec<u64>>) -> Result<()> {
        self.forget(name);
        if self.masks.len() >= MOST_NAMES || self.words + mask.len() > MOST_KEPT {
            return Err(Error::misuse(format!(
                "asked to keep more than {MOST_NAMES} masks, or more than {MOST_KEPT} words of them"
            )));
        }
        self.words += mask.len();
        self.masks.insert(name, mask);
        Ok(())
    }

    fn forget(&mut self, name: Name) {
        self.words -= self.masks.remove(&name).map_or(0, |mask| mask.len());
    }
}

/// The next words of a stream as columns.
fn expand(stream: &mut Stream, shapes: &[SizedColumn]) -> Vec<Vec<u64>> {
    let column = |(shape, n): &SizedColumn| {
        let mut words = vec![0; shape.words(*n)];
        stream.reserve(words.len()).fill(0, &mut words);
        words
    };
    shapes.iter().map(column).collect()
}

/// Words of a column on its way to party 0.
fn sent_words((shape, n): &SizedColumn) -> usize {
    match shape {
        Shape::Words(bits) => packed_words(*n, *bits),
        Shape::Planes(_) => shape.words(*n),
    }
}

fn packed(column: &[u64], sized: &SizedColumn) -> Vec<u64> {
    match sized.0 {
        Shape::Words(bits) => {
            let mut words = vec![0; sent_words(sized)];
            pack_low(column, bits, &mut words);
            words
        }
        Shape::Planes(_) => column.to_vec(),
    }
}

fn unpacked(words: &[u64], (shape, n): &SizedColumn) -> Vec<u64> {
    match shape {
        Shape::Words(bits) => {
            let mut column = vec![0; *n];
            unpack_low(words, *bits, &mut column);
            column
        }
        Shape::Planes(_) => words.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_masks_are_bounded_in_words() {
        let mask = Arc::new(vec![0; 1 << 20]);
        let mut kept = KeptMasks::default();
        for name in 0..1 << 10 {
            kept.keep(name, Arc::clone(&mask)).expect("there is room");
        }
        assert!(kept.keep(1 << 10, Arc::new(vec![0])).is_err());
        // One in place of another, or after another is forgotten, fits.
        kept.keep(7, Arc::clone(&mask)).expect("as many as before");
        kept.forget(7);
        kept.forget(7);
        kept.keep(1 << 10, mask).expect("as many as before");
        assert!(kept.keep(7, Arc::new(vec![0])).is_err());
    }
}
