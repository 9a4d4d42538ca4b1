//! Spans of positions of two summands that one party knows each, by tables.
//!
//! **Computes** the same bits as the linear forms. The *reader* knows s and the *writer* t. For
//! each span, the writer tabulates the bits over all digits of s, and the reader learns the entry
//! of its digit, masked. A random table T and a random digit r, with shares of T\[r\], make this a
//! matter of two messages: the reader sends d = s ⊕ r. The writer tabulates G\[k\], the bits for
//! the digit k ⊕ d, and sends G\[k\] ⊕ G\[0\] ⊕ T\[k\] for k > 0, where T\[0\] is 0. Both know
//! shares of the bits then: the writer its share of T\[r\] and G\[0\], the reader its share of
//! T\[r\] and what it received for k = r, if r > 0.
//!
//! **Simulation.** d is masked by r, and each entry that travels by T\[k\].

use super::{Leaves, Wanted};
use std::ops::Range;

/// Longest span. Its tables have 2^3 entries. By bits, spans of two positions cost as much: larger
/// tables make up for a smaller tree above them. Spans of three take a sixth fewer transfers.
const DIGIT: usize = 3;

/// Tables of one span.
pub(crate) struct Span {
    pub positions: Range<usize>,
    /// Bits of an entry, with their places among the planes of the result.
    pub outputs: Vec<(Output, usize)>,
}

impl Span {
    /// Returns the number of entries but entry 0.
    pub fn entries(&self) -> usize {
        (1 << self.positions.len()) - 1
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Generate,
    Propagate,
}

/// Bits of all entries of one span, for 64 elements.
struct Entries {
    generate: [u64; 1 << DIGIT],
    propagate: [u64; 1 << DIGIT],
}

impl Entries {
    /// Tabulates the bits of a span from bits of t and of d, by position.
    fn new(bits: impl Iterator<Item = [u64; 2]>) -> Self {
        let mut entries = Self {
            generate: [0; 1 << DIGIT],
            propagate: [u64::MAX; 1 << DIGIT],
        };
        let Self {
            generate: g,
            propagate: p,
        } = &mut entries;
        for (position, [t, d]) in bits.enumerate() {
            for low in 0..1 << position {
                let (g_low, p_low) = (g[low], p[low]);
                // The digit's bit is d in an entry whose number has 0 here, else ¬d.
                for (entry, s) in [(low, d), (low | 1 << position, !d)] {
                    let is_other = s ^ t;
                    g[entry] = s & t | is_other & g_low;
                    p[entry] = is_other & p_low;
                }
            }
        }
        entries
    }

    fn of(&self, output: Output) -> &[u64; 1 << DIGIT] {
        match output {
            Output::Generate => &self.generate,
            Output::Propagate => &self.propagate,
        }
    }
}

impl Leaves {
    /// Lays out spans that are looked up in tables.
    pub(crate) fn looked_up(wanted: Wanted, positions: usize) -> Self {
        Self::with_spans(wanted, positions, DIGIT)
    }

    /// Lists the tables, from the lowest span up.
    pub(crate) fn tables(&self) -> impl Iterator<Item = Span> + '_ {
        let spans = self.spans.len();
        self.spans.iter().enumerate().map(move |(at, span)| {
            let outputs = match (self.wanted, at) {
                (Wanted::Propagate, _) => vec![(Output::Propagate, at)],
                (Wanted::Carry, 0) => vec![(Output::Generate, 0)],
                (Wanted::Carry, _) => {
                    vec![(Output::Generate, at), (Output::Propagate, spans + at - 1)]
                }
            };
            Span {
                positions: span.clone(),
                outputs,
            }
        })
    }

    /// Returns the number of planes of all tables, which leave out entry 0: span by span, entry by
    /// entry, with the span's bits in the order of the planes of the result.
    pub(crate) fn entries(&self) -> usize {
        let planes = self
            .tables()
            .map(|span| span.entries() * span.outputs.len());
        planes.sum()
    }

    /// Returns the planes of the result that lie in tables, where digits are planes.
    pub(crate) fn look_up(&self, digits: &[u64], tables: &[u64]) -> Vec<u64> {
        let stride = digits.len() / self.positions();
        let mut out = vec![0; self.outputs() * stride];
        let mut rest = tables;
        for span in self.tables() {
            let (entries, Span { positions, outputs }) = (span.entries(), span);
            let (table, others) = rest.split_at(entries * outputs.len() * stride);
            rest = others;
            let digits = &digits[positions.start * stride..positions.end * stride];
            for i in 0..stride {
                let mut is_entry = [u64::MAX; 1 << DIGIT];
                for position in 0..positions.len() {
                    let bit = digits[position * stride + i];
                    for low in 0..1 << position {
                        is_entry[low | 1 << position] = is_entry[low] & bit;
                        is_entry[low] &= !bit;
                    }
                }
                for (column, (_, place)) in outputs.iter().enumerate() {
                    let plane = |entry: usize| (entry * outputs.len() + column) * stride + i;
                    let bits = (0..entries).map(|entry| table[plane(entry)] & is_entry[entry + 1]);
                    out[place * stride + i] = bits.fold(0, |sum, bit| sum ^ bit);
                }
            }
        }
        out
    }

    /// Tabulates the bits over the digits of s, from planes of t and of d. Returns entry 0 of each
    /// table, as the planes of the result, and the other entries, each XOR entry 0.
    pub(crate) fn tabulate(&self, t: &[u64], d: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let stride = d.len() / self.positions();
        let mut first = vec![0; self.outputs() * stride];
        let mut tables = vec![0; self.entries() * stride];
        let mut rest = &mut tables[..];
        for span in self.tables() {
            let (entries, Span { positions, outputs }) = (span.entries(), span);
            let (table, others) = rest.split_at_mut(entries * outputs.len() * stride);
            rest = others;
            for i in 0..stride {
                let bits = positions
                    .clone()
                    .map(|at| [t, d].map(|x| x[at * stride + i]));
                let all = Entries::new(bits);
                for (column, (output, place)) in outputs.iter().enumerate() {
                    let bits = all.of(*output);
                    first[place * stride + i] = bits[0];
                    for entry in 0..entries {
                        let plane = entry * outputs.len() + column;
                        table[plane * stride + i] = bits[entry + 1] ^ bits[0];
                    }
                }
            }
        }
        (first, tables)
    }

    /// XORs the position above the spans into the highest generate bit, if there is one. `top` is
    /// that position's plane.
    pub(crate) fn add_top(&self, top: &[u64], out: &mut [u64]) {
        if self.wanted == Wanted::Carry {
            let highest = &mut out[(self.spans.len() - 1) * top.len()..][..top.len()];
            highest
                .iter_mut()
                .zip(top)
                .for_each(|(bit, top)| *bit ^= top);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::planes::split;

    /// All pairs of small numbers, and random ones, through masked tables, against additions.
    #[test]
    fn tables_have_the_bits_of_sums() {
        let mut state = 7_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        for wanted in [Wanted::Carry, Wanted::Propagate] {
            for positions in (1..=10).chain([31, 62, 63]) {
                let leaves = Leaves::looked_up(wanted, positions);
                let n = 1 << 12;
                let low = u64::MAX >> (64 - positions);
                let draw = |at: u64, random: &mut dyn FnMut() -> u64| match positions {
                    1..=6 => at & low,
                    _ => random() & low,
                };
                let s: Vec<u64> = (0..n).map(|i| draw(i, &mut random)).collect();
                let mut t: Vec<u64> = (0..n).map(|i| draw(i >> 6, &mut random)).collect();
                // Many that propagate.
                t.iter_mut()
                    .zip(&s)
                    .step_by(5)
                    .for_each(|(t, s)| *t = s ^ low);
                let planes = |x: &[u64]| {
                    let mut planes = vec![0; positions * x.len() / 64];
                    split(x, positions, &mut planes);
                    planes
                };
                let (s_bits, t_bits) = (planes(&s), planes(&t));
                let r: Vec<u64> = s_bits.iter().map(|_| random()).collect();
                let d: Vec<u64> = s_bits.iter().zip(&r).map(|(s, r)| s ^ r).collect();
                let (first, tables) = leaves.tabulate(&t_bits, &d);
                assert_eq!(tables.len(), leaves.entries() * n as usize / 64);
                let mut bits = leaves.look_up(&r, &tables);
                bits.iter_mut()
                    .zip(first)
                    .for_each(|(bit, first)| *bit ^= first);
                let stride = n as usize / 64;
                for i in 0..n as usize {
                    let bit = |plane: usize| bits[plane * stride + i / 64] >> (i % 64) & 1 == 1;
                    for (at, span) in leaves.ranges().iter().enumerate() {
                        let mask = (1 << span.len()) - 1;
                        let digit = |x: u64| x >> span.start & mask;
                        let sum = digit(s[i]) + digit(t[i]);
                        let spans = leaves.spans();
                        if wanted == Wanted::Carry {
                            assert_eq!(bit(at), sum > mask);
                        }
                        let place = match wanted {
                            Wanted::Carry => (at > 0).then(|| spans + at - 1),
                            Wanted::Propagate => Some(at),
                        };
                        assert!(place.is_none_or(|place| bit(place) == (sum == mask)));
                    }
                }
            }
        }
    }
}
