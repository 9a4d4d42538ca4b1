//! The first levels of a comparison: spans of up to four bit positions at once.
//!
//! **Computes**, for two summands s and t, each span's *generate* bit (its positions of s + t carry
//! out) and *propagate* bit (all s_i ⊕ t_i are one). The inputs are a binary sharing of the
//! *monomials* of the bits of s, held by the parties that know t.
//!
//! **Idea.** Over GF(2), both bits are polynomials in the span's bits of s and t. Ordered by the
//! 2^k − 1 monomials of s, their coefficients are functions of t alone. This is a linear form,
//! evaluated without interaction. Each protocol shares the monomials in its own way:
//! [`crate::replicated`] sends them masked, [`crate::additive`] takes them from a correlation. If
//! two parties know a summand each, they compute the bits by [`tables`] instead.

mod tables;

pub(crate) use tables::Span;

use kernels::parallel::is_alone;
use kernels::planes::{split_from, words_of};
use rayon::prelude::*;
use std::ops::Range;

/// The most positions of a span of a linear form. k positions have 2^k − 1 monomials, so longer
/// spans would cost more than they save.
const SPAN: usize = 4;

/// The bits to compute for the spans.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wanted {
    /// Generate bits of all spans, propagate bits of all but the lowest. The position above the
    /// spans is XORed into the highest generate bit.
    Carry,
    /// Propagate bits only.
    Propagate,
}

/// A span of positions with the planes of its monomials.
type Region<'a> = (Range<usize>, &'a mut [u64]);

/// The public layout of one evaluation.
pub(crate) struct Leaves {
    wanted: Wanted,
    spans: Vec<Range<usize>>,
}

impl Leaves {
    /// Lays out spans over `positions` positions. The lowest span takes the remainder.
    pub(crate) fn new(wanted: Wanted, positions: usize) -> Self {
        Self::with_spans(wanted, positions, SPAN)
    }

    /// Lays out spans of at most `longest` positions.
    fn with_spans(wanted: Wanted, positions: usize, longest: usize) -> Self {
        let mut spans = Vec::with_capacity(positions.div_ceil(longest));
        let mut start = 0;
        while start < positions {
            let length = if (positions - start) % longest == 0 {
                longest
            } else {
                (positions - start) % longest
            };
            spans.push(start..start + length);
            start += length;
        }
        Self { wanted, spans }
    }

    pub(crate) fn wanted(&self) -> Wanted {
        self.wanted
    }

    pub(crate) fn spans(&self) -> usize {
        self.spans.len()
    }

    /// Returns the positions of each span, from the lowest up.
    pub(crate) fn ranges(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// Returns the number of positions in spans.
    pub(crate) fn positions(&self) -> usize {
        self.spans.last().map_or(0, |span| span.end)
    }

    fn top(&self) -> usize {
        usize::from(self.wanted == Wanted::Carry)
    }

    /// Returns the number of planes of monomials.
    pub(crate) fn monomials(&self) -> usize {
        self.spans
            .iter()
            .map(|span| (1 << span.len()) - 1)
            .sum::<usize>()
            + self.top()
    }

    /// Returns the number of planes of the result: generate bits, then propagate bits, each from
    /// the lowest span up.
    pub(crate) fn outputs(&self) -> usize {
        match self.wanted {
            Wanted::Carry => 2 * self.spans.len() - 1,
            Wanted::Propagate => self.spans.len(),
        }
    }

    /// Returns the number of planes that s and t are split into.
    pub(crate) fn width(&self) -> usize {
        self.positions() + self.top()
    }

    /// Splits `message` into the planes of each span and the rest.
    fn regions<'a>(
        &self,
        message: &'a mut [u64],
        stride: usize,
    ) -> (Vec<Region<'a>>, &'a mut [u64]) {
        let mut rest = message;
        let mut regions = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            let (region, after) = rest.split_at_mut(((1 << span.len()) - 1) * stride);
            regions.push((span.clone(), region));
            rest = after;
        }
        (regions, rest)
    }

    /// Computes the monomials of s without its lowest bits.
    pub(crate) fn expand(&self, s: &[u64], dropped: u32) -> Vec<u64> {
        let stride = words_of(s.len());
        let mut planes = vec![0; self.width() * stride];
        split_from(s, dropped as usize, self.width(), &mut planes);
        let mut message = vec![0; self.monomials() * stride];
        let (regions, top) = self.regions(&mut message, stride);
        regions
            .into_par_iter()
            .with_min_len(serial_below(stride))
            .for_each(|(span, region)| {
                for set in 1..1usize << span.len() {
                    let highest = set.ilog2() as usize;
                    let below = set & !(1 << highest);
                    let bit = &planes[(span.start + highest) * stride..][..stride];
                    let (done, now) = region.split_at_mut((set - 1) * stride);
                    let now = &mut now[..stride];
                    if below == 0 {
                        now.copy_from_slice(bit);
                    } else {
                        let product = &done[(below - 1) * stride..][..stride];
                        now.iter_mut()
                            .zip(product.iter().zip(bit))
                            .for_each(|(now, (a, b))| *now = a & b);
                    }
                }
            });
        if self.wanted == Wanted::Carry {
            top.copy_from_slice(&planes[(self.width() - 1) * stride..]);
        }
        message
    }

    /// Evaluates the linear forms for t, without its lowest bits, on one share of the monomials.
    /// `first` is set for the one holder that adds the terms that t alone determines.
    pub(crate) fn evaluate(
        &self,
        message: &mut [u64],
        t: &[u64],
        dropped: u32,
        first: bool,
    ) -> Vec<u64> {
        let stride = words_of(t.len());
        let mut planes = vec![0; self.width() * stride];
        split_from(t, dropped as usize, self.width(), &mut planes);
        let one = if first { u64::MAX } else { 0 };
        let mut out = vec![0; self.outputs() * stride];
        let (regions, top) = self.regions(message, stride);
        let (generates, propagates) = match self.wanted {
            Wanted::Carry => out.split_at_mut(self.spans.len() * stride),
            Wanted::Propagate => (&mut [][..], &mut out[..]),
        };
        let has_generate = self.wanted == Wanted::Carry;
        let mut generates = generates.chunks_mut(stride.max(1));
        let mut propagates = propagates.chunks_mut(stride.max(1));
        let work: Vec<_> = regions
            .into_iter()
            .enumerate()
            .map(|(at, (span, region))| {
                let propagate = if has_generate && at == 0 {
                    None
                } else {
                    propagates.next()
                };
                (span, &*region, generates.next(), propagate)
            })
            .collect();
        work.into_par_iter()
            .with_min_len(serial_below(stride))
            .for_each(|(span, region, generate, propagate)| {
                let t = &planes[span.start * stride..span.end * stride];
                match span.len() {
                    1 => forms::<1>(region, t, one, generate, propagate),
                    2 => forms::<2>(region, t, one, generate, propagate),
                    3 => forms::<3>(region, t, one, generate, propagate),
                    _ => forms::<4>(region, t, one, generate, propagate),
                }
            });
        if has_generate {
            let highest = &mut out[(self.spans.len() - 1) * stride..][..stride];
            let t = &planes[(self.width() - 1) * stride..];
            for i in 0..stride {
                highest[i] ^= top[i] ^ (t[i] & one);
            }
        }
        out
    }
}

/// Returns a limit below which spans are processed on one thread. Threads pay off only for several
/// long spans.
fn serial_below(stride: usize) -> usize {
    if stride < 512 || is_alone() {
        usize::MAX
    } else {
        1
    }
}

/// Computes the generate and propagate bits of one span of K positions, as linear forms in its
/// monomials.
///
/// Applies g ← s_j t_j ⊕ (s_j ⊕ t_j) g and p ← (s_j ⊕ t_j) p from the lowest position up. `g[T]`
/// and `p[T]` stand for the bit so far times M_T, for T above the positions that are done.
fn forms<const K: usize>(
    monomials: &[u64],
    t: &[u64],
    one: u64,
    mut generate: Option<&mut [u64]>,
    mut propagate: Option<&mut [u64]>,
) {
    let stride = t.len() / K;
    for i in 0..stride {
        let mut m = [one; 16];
        for set in 1..1 << K {
            m[set] = monomials[(set - 1) * stride + i];
        }
        let (mut g, mut p) = ([0; 16], m);
        for j in 0..K {
            let bit = t[j * stride + i];
            let mut set = 0;
            while set < 1 << K {
                let with = set | 1 << j;
                g[set] = (bit & (m[with] ^ g[set])) ^ g[with];
                p[set] = p[with] ^ (bit & p[set]);
                set += 2 << j;
            }
        }
        if let Some(generate) = &mut generate {
            generate[i] = g[0];
        }
        if let Some(propagate) = &mut propagate {
            propagate[i] = p[0];
        }
    }
}
