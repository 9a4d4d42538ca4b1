//! Correlations of exactly two parties, from transfers with random choices. Most take no message
//! beyond the transfers: what one party may choose freely is what its transfers happen to hold.
//!
//! **Simulation.** A party's columns are its own random choices, and pads of its transfers. To the
//! other party, choices are uniform, and so are pads that it lacks ([`ot`]). The message of
//! [`Transfer::cross_bits`] is masked as all correlated transfers are.

use super::{Transfer, or_accuse};
use crate::Result;
use crate::correlations::kind::as_words;
use crate::leaves::{Leaves, Span};
use kernels::planes::words_of;

/// Tables of which the transfers are made at once. Fewer would leave gaps between the numbers of
/// transfers, and more would not stay in a cache.
const TOGETHER: usize = 1 << 14;

impl Transfer {
    /// Returns the other party.
    fn other(&self) -> usize {
        1 - self.channel.party()
    }

    /// Makes transfers in which this party has random choices.
    fn choose_randomly(&mut self, words: usize) -> Result<ot::Chosen> {
        let other = self.other();
        let (message, chosen) = self.pair(other).receiver.extend_random(words);
        if !message.is_empty() {
            self.channel.send(other, message)?;
        }
        Ok(chosen)
    }

    /// Makes transfers in which the other party has random choices.
    fn offer_randomly(&mut self, words: usize) -> Result<ot::Offered> {
        let other = self.other();
        let message = match self.pair(other).sender.random_words(words) {
            0 => Vec::new(),
            length => self.channel.receive(other, length)?,
        };
        let offered = self.pair(other).sender.extend_random(words, &message);
        or_accuse(&self.channel, other, offered)
    }

    /// Makes [`crate::correlations::kind::Kind::BitTriples`]. The left factor is this party's
    /// choices, and the right ones are the differences of its own pads.
    pub(super) fn bit_triples_of_two(&mut self, rights: usize, n: usize) -> Result<Vec<Vec<u64>>> {
        let chosen = self.choose_randomly(n / 64)?;
        let left = chosen.choices().to_vec();
        let mut products = chosen.random_bits(rights);
        let (values, shares) = self.offer_randomly(n / 64)?.random_bits(rights);
        for ((product, share), right) in products.iter_mut().zip(shares).zip(&values) {
            for (i, product) in product.iter_mut().enumerate() {
                *product ^= share[i] ^ left[i] & right[i];
            }
        }
        Ok([vec![left], values, products].concat())
    }

    /// Makes [`crate::correlations::kind::Kind::CrossSelections`].
    pub(super) fn cross_selections(&mut self, n: usize) -> Result<Vec<Vec<u64>>> {
        let chosen = self.choose_randomly(n / 64)?;
        let bits = chosen.choices().to_vec();
        let own = chosen.random_words();
        let (words, others) = self.offer_randomly(n / 64)?.random_words();
        Ok([vec![bits, words], self.by_chooser(own, others)].concat())
    }

    /// Makes [`crate::correlations::kind::Kind::LookUps`]: tables of random pads, each without
    /// its entry 0, which is XORed into all others.
    pub(super) fn look_ups(&mut self, leaves: &Leaves, n: usize) -> Result<Vec<Vec<u64>>> {
        let stride = words_of(n);
        let [mut digits, mut tables] =
            [leaves.positions(), leaves.entries()].map(|planes| vec![0; planes * stride]);
        let [mut own, mut others] = [(); 2].map(|()| vec![0; leaves.outputs() * stride]);
        let spans: Vec<Span> = leaves.tables().collect();
        let shape = |span: &Span| (span.positions.len(), span.outputs.len());
        let together = (TOGETHER / n).max(1);
        // Spans of one shape, so few that their transfers stay in the cache.
        let groups = spans.chunk_by(|one, other| shape(one) == shape(other));
        let groups: Vec<&[Span]> = groups.flat_map(|group| group.chunks(together)).collect();
        for group in &groups {
            let ((length, columns), count) = (shape(&group[0]), group.len());
            let chosen = self.choose_randomly(length * count * stride)?;
            let plane = |at: usize, span: usize| (at * count + span) * stride;
            for (at, span) in group.iter().enumerate() {
                for (bit, position) in span.positions.clone().enumerate() {
                    let choices = &chosen.choices()[plane(bit, at)..][..stride];
                    digits[position * stride..][..stride].copy_from_slice(choices);
                }
            }
            let found = chosen.look_up(length, columns);
            for (at, span) in group.iter().enumerate() {
                for (column, (_, place)) in span.outputs.iter().enumerate() {
                    let bits = &found[plane(column, at)..][..stride];
                    own[place * stride..][..stride].copy_from_slice(bits);
                }
            }
        }
        let mut rest = &mut tables[..];
        for group in &groups {
            let ((length, columns), count) = (shape(&group[0]), group.len());
            let offered = self.offer_randomly(length * count * stride)?;
            let all = offered.tables(length, columns);
            for (at, span) in group.iter().enumerate() {
                let bits = |entry: usize, column: usize| {
                    &all[((entry * columns + column) * count + at) * stride..][..stride]
                };
                for (column, (_, place)) in span.outputs.iter().enumerate() {
                    others[place * stride..][..stride].copy_from_slice(bits(0, column));
                }
                for entry in 1..=span.entries() {
                    for column in 0..columns {
                        let (plane, later) = rest.split_at_mut(stride);
                        rest = later;
                        let both = bits(entry, column).iter().zip(bits(0, column));
                        let both = both.map(|(bits, first)| bits ^ first);
                        plane
                            .iter_mut()
                            .zip(both)
                            .for_each(|(plane, bits)| *plane = bits);
                    }
                }
            }
        }
        Ok([vec![digits, tables], self.by_chooser(own, others)].concat())
    }

    /// Makes [`crate::correlations::kind::Kind::CrossBits`]. Each party chooses in one half, so
    /// that both send as much.
    pub(super) fn cross_bits(&mut self, bits: u32, n: usize) -> Result<Vec<Vec<u64>>> {
        let (other, words) = (self.other(), n / 64);
        let halves = [words / 2, words - words / 2];
        let [choosing, offering] = match self.channel.party() {
            0 => halves,
            _ => [halves[1], halves[0]],
        };
        let chosen = self.choose_randomly(choosing)?;
        let choices = chosen.choices().to_vec();
        let plane = self.uniform(offering);
        let offered = self.offer_randomly(offering)?;
        let (mut mine, message) = offered.correlate(&[&as_words(&plane)], bits);
        if offering > 0 {
            self.channel.send(other, message)?;
        }
        let message = match choosing {
            0 => Vec::new(),
            _ => {
                let length = ot::correlate_words(64 * choosing, 1, bits);
                self.channel.receive(other, length)?
            }
        };
        let theirs = chosen.correlate(1, bits, &message);
        let mut theirs = or_accuse(&self.channel, other, theirs)?;
        let (mine, theirs) = (mine.swap_remove(0), theirs.swap_remove(0));
        // Party 0 chooses in the first half.
        Ok(match self.channel.party() {
            0 => vec![[choices, plane].concat(), [theirs, mine].concat()],
            _ => vec![[plane, choices].concat(), [mine, theirs].concat()],
        })
    }

    /// Orders columns by the party that chooses, which is this one for `own`.
    fn by_chooser<T>(&self, own: T, others: T) -> Vec<T> {
        match self.channel.party() {
            0 => vec![own, others],
            _ => vec![others, own],
        }
    }
}
