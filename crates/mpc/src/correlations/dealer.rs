//! Correlations from a dealer: a member of the mesh that takes no part in the computation and
//! learns only shapes and counts.
//!
//! **Idea.** Each party shares a key with the dealer. Uniform columns, and the shares of derived
//! columns, are expanded from these keys. For each element of a derived column, one party's share
//! is replaced by a *correction* that makes the shares add up. The dealer sends the correction to
//! that party. Corrections go to all parties in turn, as in CrypTFlow's Porthos (Kumar et al. 2020,
//! section IV): the first n-th of each job's elements goes to party 0, the next to party 1, and so
//! on ([`Job::corrected`]). So the total sent is the same as if all corrections went to one party,
//! but the dealer's busiest link carries only an n-th of it, plus the rounding of each job. Party 0
//! alone asks for jobs. It asks for all jobs that are ordered so far before it waits for the first
//! of them, so that the dealer need not wait for its next job. Each job is a step of its own. All
//! parties begin the steps in the order of the jobs, and continue a step when they need its
//! message.
//!
//! **Trust.** The dealer follows the protocol and colludes with no party: together with any one of
//! them, it could unmask what the parties open. It receives no message that depends on an input.
//!
//! **Residues** are expanded as words and reduced modulo the prime, which is within 2^−62 of
//! uniform.
//!
//! **Simulation.** For each element, one party receives the derived value minus the other parties'
//! pseudo-random shares of it. No other word depends on these shares: every party takes words of
//! its stream for whole columns, whichever party is corrected, and discards what it expanded in
//! place of a correction. If the receiver is corrupt and one other party is honest, the honest
//! party's share is uniform to all corrupt parties, and so is the correction. If the receiver is
//! honest, no corrupt party receives anything, and the receiver's share is what the sum leaves. It
//! is a function of the other shares and of what is dealt, as if the correction had gone to any
//! other party.

use super::job::{ENCODED, Job, Origin, SizedColumn};
use super::kind::{Shape, lifted};
use super::{CHANNEL, Comparisons, Source};
use crate::{Error, Name, Result, blocks, residues};
use kernels::device::{self, Device};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::parallel::Rates;
use kernels::planes::words_of;
use kernels::stream::{Key, Stream, random_key};
use net::{Channel, Mesh, Reading, Suspended};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Domain of the streams that a party and the dealer share.
const DOMAIN: &str = "correlations: party and dealer";

/// Largest number of words of masks that a dealer keeps: 8 GiB.
const MOST_KEPT: usize = 1 << 30;

/// Largest number of masks that a dealer keeps, whatever their lengths.
const MOST_NAMES: usize = 1 << 16;

/// A party's side of the dealer.
pub(crate) struct Dealt {
    channel: Channel,
    dealer: usize,
    stream: Stream,
    /// Steps of the jobs that were asked of the dealer. An error if party 0's message could not be
    /// sent.
    announced: VecDeque<Result<Suspended>>,
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
            announced: VecDeque::new(),
        })
    }

    /// Returns the channel to the dealer and the stream shared with it, for tests to watch and
    /// mutate.
    #[cfg(feature = "mutation")]
    pub fn opened(&mut self) -> (&mut Channel, &mut Stream) {
        (&mut self.channel, &mut self.stream)
    }
}

impl Source for Dealt {
    fn announce(&mut self, job: &Job) {
        // Forgetting is no step of the channel: parties need not forget at the same time, and no
        // answer comes.
        if !matches!(job, Job::Forget { .. }) {
            self.channel
                .begin(&format!("correlations: {}", job.describe()));
        }
        let sent = match self.channel.party() {
            0 => self.channel.send(self.dealer, job.encode()),
            _ => Ok(()),
        };
        self.announced
            .push_back(sent.map(|()| self.channel.suspend()));
    }

    fn make(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        if self.announced.is_empty() {
            self.announce(job);
        }
        let step = self.announced.pop_front().expect("announced by now")?;
        let (free, derived) = job.columns();
        let mut columns = expand(&mut self.stream, &free);
        let (me, parties) = (self.channel.party(), self.channel.parties());
        let last = self.channel.suspend();
        self.channel.resume(step);
        let corrected = |sized: &SizedColumn| job.corrected(sized.1, me, parties);
        let sent = |sized: &SizedColumn| sent_words(sized.0, &corrected(sized));
        let words = derived.iter().map(sent).sum();
        let mut derived_columns = expand(&mut self.stream, &derived);
        if words > 0 {
            let message = self.channel.receive(self.dealer, words)?;
            let mut rest = &message[..];
            for (column, sized) in derived_columns.iter_mut().zip(&derived) {
                let (packed, after) = rest.split_at(sent(sized));
                correct(column, sized, &corrected(sized), packed);
                rest = after;
            }
        }
        self.channel.resume(last);
        columns.append(&mut derived_columns);
        Ok(columns)
    }

    fn reading(&self) -> Reading {
        self.channel.meter().totals()
    }

    fn comparisons(&self) -> Comparisons {
        Comparisons::Guarded
    }

    fn most_ahead(&self) -> usize {
        1 << 22
    }
}

/// Dealer, which serves all parties.
pub struct Dealer {
    channel: Channel,
    device: Arc<dyn Device>,
    streams: Vec<Stream>,
    kept: KeptMasks,
}

/// Masks that the dealer keeps for later products.
#[derive(Default)]
struct KeptMasks {
    masks: HashMap<Name, Arc<Vec<u64>>>,
    /// Words of all masks together.
    words: usize,
}

impl Dealer {
    /// Agrees on keys with all parties.
    ///
    /// # Errors
    /// Errors of the links.
    pub fn new(mesh: &Mesh, device: Arc<dyn Device>) -> Result<Self> {
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
            device,
            streams,
            kept: KeptMasks::default(),
        })
    }

    /// Returns the streams with the parties, for tests to mutate.
    #[cfg(feature = "mutation")]
    pub fn streams(&mut self) -> &mut [Stream] {
        &mut self.streams
    }

    /// Deals until the parties have finished.
    ///
    /// # Errors
    /// Errors of the links, and `Peer` for a party that sends an invalid request.
    pub fn serve(mut self) -> Result<()> {
        while let Some(words) = self.channel.follow(0, ENCODED)? {
            let messages = Job::decode(&words)
                .and_then(|job| self.deal(&job))
                .map_err(|error| self.channel.accuse(0, error.to_string()))?;
            for (party, message) in messages.into_iter().enumerate() {
                // Jobs that were ordered ahead of need may be dealt after a party has left. A party
                // that has finished has had all that any party needs, as all run the same program.
                if !message.is_empty() && !self.channel.send_unless_finished(party, message)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Computes the corrections of a job, by party.
    fn deal(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        let (free, derived) = job.columns();
        let mut totals = match job {
            Job::Batch { kind, .. } if kind.is_cross() => {
                let [left, right] = &mut self.streams[..] else {
                    return Err(Error::misuse("cross products are for two parties"));
                };
                kind.derive(&[left, right].map(|stream| expand(stream, &free)).concat())
            }
            Job::Batch { kind, .. } => kind.derive(&self.sums(&free)),
            Job::Product {
                map,
                x,
                y,
                is_checked,
            } => {
                let (left, right, n) = map.lengths();
                let mut new = self.sums(&free).into_iter();
                let a = self.mask(*x, left, &mut new)?;
                let b = self.mask(*y, right, &mut new)?;
                let mut product = vec![0; n];
                let terms = [device::Term {
                    x: x.operand(&a),
                    y: y.operand(&b),
                }];
                let computed = self.device.bilinear(map, &mut product, &terms);
                computed.map_err(|error| self.channel.device_failed(error))?;
                let mut columns = vec![product];
                if *is_checked {
                    let new = [(x, &a), (y, &b)];
                    let new = new.into_iter().filter(|(origin, _)| origin.is_new());
                    columns.extend(new.flat_map(|(_, mask)| lifted(mask)));
                }
                columns
            }
            Job::Forget { name } => {
                self.kept.forget(*name);
                self.device.forget(*name);
                Vec::new()
            }
        };
        let parties = self.streams.len();
        for (party, stream) in self.streams.iter_mut().enumerate() {
            for (total, sized) in totals.iter_mut().zip(&derived) {
                let corrected = job.corrected(sized.1, party, parties);
                subtract_share(total, stream, sized, &corrected);
            }
        }
        let message = |party| {
            let columns = totals.iter().zip(&derived);
            columns
                .flat_map(|(total, sized)| {
                    packed(total, sized, &job.corrected(sized.1, party, parties))
                })
                .collect()
        };
        Ok((0..parties).map(message).collect())
    }

    /// Computes the sums of the parties' shares of each column.
    fn sums(&mut self, shapes: &[SizedColumn]) -> Vec<Vec<u64>> {
        let (first, others) = self.streams.split_first_mut().expect("at least one party");
        let mut totals = expand(first, shapes);
        for stream in others {
            for (total, sized) in totals.iter_mut().zip(shapes) {
                add_share(total, stream, sized);
            }
        }
        totals
    }

    /// Returns the whole mask of an operand of n elements. New masks are taken from `new`.
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
                // A party may order another mask of that name.
                self.device.forget(name);
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

/// Expands the next words of a stream as columns.
fn expand(stream: &mut Stream, shapes: &[SizedColumn]) -> Vec<Vec<u64>> {
    let column = |(shape, n): &SizedColumn| {
        let mut words = vec![0; shape.words(*n)];
        let reserved = stream.reserve(words.len());
        if *shape == Shape::Residues {
            blocks::for_each(
                [&mut words],
                [],
                #[inline(always)]
                |offset, [words], []| {
                    reserved.fill(offset, words);
                    for word in words {
                        *word = residues::of_word(*word);
                    }
                },
            );
        } else {
            reserved.fill(0, &mut words);
        }
        words
    };
    shapes.iter().map(column).collect()
}

/// Adds a party's share of a column to a total.
fn add_share(total: &mut [u64], stream: &mut Stream, sized: &SizedColumn) {
    let none = 0..0;
    match sized.0 {
        Shape::Words(_) => change_by_share(total, stream, &none, u64::wrapping_add),
        Shape::Residues => change_by_share(
            total,
            stream,
            &none,
            #[inline(always)]
            |total, word| residues::add(total, residues::of_word(word)),
        ),
        Shape::Packed(_) | Shape::Planes(_) => {
            let share = expand(stream, &[*sized]).swap_remove(0);
            sized.0.group().add(total, &share);
        }
    }
}

/// Subtracts a party's share of a column from the unpacked total, except for corrected elements.
fn subtract_share(
    total: &mut [u64],
    stream: &mut Stream,
    sized: &SizedColumn,
    corrected: &Range<usize>,
) {
    match sized.0 {
        Shape::Words(_) => change_by_share(total, stream, corrected, u64::wrapping_sub),
        Shape::Residues => change_by_share(
            total,
            stream,
            corrected,
            #[inline(always)]
            |total, word| residues::subtract(total, residues::of_word(word)),
        ),
        Shape::Packed(_) | Shape::Planes(_) => {
            let share = expand(stream, &[*sized]).swap_remove(0);
            let mut share = sized.0.unpacked(share, sized.1);
            for range in unpacked_ranges(sized, corrected) {
                share[range].fill(0);
            }
            sized.0.group().subtract(total, &share);
        }
    }
}

/// Combines a total with the next words of a stream, block by block, as if the words of `left_out`
/// were zeros.
fn change_by_share(
    total: &mut [u64],
    stream: &mut Stream,
    left_out: &Range<usize>,
    combine: impl Fn(u64, u64) -> u64 + Sync,
) {
    let reserved = stream.reserve(total.len());
    let rates = Rates {
        outputs: [64],
        inputs: [],
    };
    blocks::for_each_packed(
        total.len(),
        rates,
        [total],
        [],
        #[inline(always)]
        |offset, [total], [], [words]| {
            let words = &mut words[..total.len()];
            let within = |at: usize| at.clamp(offset, offset + words.len()) - offset;
            let none = within(left_out.start)..within(left_out.end);
            if none.len() == words.len() {
                return;
            }
            reserved.fill(offset, words);
            words[none].fill(0);
            for i in 0..total.len() {
                total[i] = combine(total[i], words[i]);
            }
        },
    );
}

/// Returns the ranges of these elements in an unpacked column: one in each plane, if it has planes.
fn unpacked_ranges((shape, n): &SizedColumn, elements: &Range<usize>) -> Vec<Range<usize>> {
    match shape {
        Shape::Words(_) | Shape::Packed(_) | Shape::Residues => vec![elements.clone()],
        Shape::Planes(planes) => (0..*planes)
            .map(|plane| {
                let start = plane * words_of(*n);
                start + elements.start / 64..start + elements.end / 64
            })
            .collect(),
    }
}

/// Returns the words in which a column's corrections of these elements travel.
fn sent_words(shape: Shape, elements: &Range<usize>) -> usize {
    match shape {
        Shape::Words(bits) => packed_words(elements.len(), bits),
        Shape::Residues => packed_words(elements.len(), residues::BITS),
        Shape::Packed(_) | Shape::Planes(_) => shape.words(elements.len()),
    }
}

/// Packs the corrections of an unpacked column.
fn packed(column: &[u64], sized: &SizedColumn, elements: &Range<usize>) -> Vec<u64> {
    let pack = |bits| {
        let mut words = vec![0; sent_words(sized.0, elements)];
        pack_low(&column[elements.clone()], bits, &mut words);
        words
    };
    match sized.0 {
        Shape::Words(bits) | Shape::Packed(bits) => pack(bits),
        Shape::Residues => pack(residues::BITS),
        Shape::Planes(_) => {
            let ranges = unpacked_ranges(sized, elements);
            ranges
                .into_iter()
                .flat_map(|range| &column[range])
                .copied()
                .collect()
        }
    }
}

/// Replaces what was expanded by corrections.
fn correct(column: &mut [u64], sized: &SizedColumn, elements: &Range<usize>, words: &[u64]) {
    match sized.0 {
        Shape::Words(bits) => unpack_low(words, bits, &mut column[elements.clone()]),
        Shape::Residues => unpack_low(words, residues::BITS, &mut column[elements.clone()]),
        // The corrected elements of a batch begin and end at whole words.
        Shape::Packed(bits) => {
            let start = packed_words(elements.start, bits);
            column[start..start + words.len()].copy_from_slice(words);
        }
        Shape::Planes(_) => {
            let mut rest = words;
            for range in unpacked_ranges(sized, elements) {
                let (now, after) = rest.split_at(range.len());
                column[range].copy_from_slice(now);
                rest = after;
            }
        }
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
            kept.keep(name, Arc::clone(&mask))
                .expect("the limit is not reached");
        }
        assert!(kept.keep(1 << 10, Arc::new(vec![0])).is_err());
        // A mask fits in place of another, or after another was forgotten.
        kept.keep(7, Arc::clone(&mask))
            .expect("the count does not grow");
        kept.forget(7);
        kept.forget(7);
        kept.keep(1 << 10, mask).expect("the count does not grow");
        assert!(kept.keep(7, Arc::new(vec![0])).is_err());
    }
}
