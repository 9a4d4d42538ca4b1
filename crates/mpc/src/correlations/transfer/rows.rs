//! Products of scalars with rows of values, by transfers of the scalars' bits.
//!
//! The transfers of a scalar's bits serve as keys that expand to rows of any length ([`ot::products`]), so
//! their number is that of the scalars, not of the multiplications; what travels is 8 to 17 words for
//! each multiplication and ordered pair of parties.
//!
//! **Kept scalars** keep their transfers: every further product expands new words of the same keys, and
//! nothing of the set-up is done again.

use super::plan::Plan;
use super::{Transfer, blame};
use crate::Result;
use crate::group::Group;
use ot::products::{self, ScalarKeys, Scalars};
use std::ops::Range;

/// Bits of a scalar that are looked at together, for rows of n values: with more of them less travels and
/// more keys are expanded, which takes long rows to be fast.
fn digit(n: usize) -> usize {
    if n < 64 { 2 } else { 4 }
}

/// Words of one message, roughly.
const MESSAGE: usize = 1 << 21;

/// Scalars of one set: bounds the memory of its keys, 2 KiB a scalar and pair of parties.
const SET: usize = 1 << 16;

/// Memory of the keys of a kept set, for each scalar and peer.
const KEPT_KIB: usize = 4;

/// The transfers of the bits of a matrix of scalars, with every other party in both directions.
pub(super) struct Set {
    scalars: usize,
    ends: Vec<(Scalars, ScalarKeys)>,
}

impl Set {
    /// Memory for each peer, roughly.
    pub fn kib(&self) -> usize {
        self.scalars * KEPT_KIB
    }
}

impl Transfer {
    /// The cross terms of all pieces, one after another, with the scalars' transfers if they are kept; and the
    /// transfers, unless there are too many to hold.
    pub(super) fn cross_by_transfer(
        &mut self,
        plan: &Plan,
        kept: Option<Set>,
    ) -> Result<(Vec<u64>, Option<Set>)> {
        let rows = plan.scalars.len() / plan.k;
        let mut out = vec![0; plan.results()];
        if plan.scalars.len() <= SET {
            let mut set = match kept {
                Some(set) => set,
                None => self.set(&plan.scalars, digit(plan.n))?,
            };
            self.multiply(plan, &mut set, 0, 0..rows, &mut out)?;
            return Ok((out, Some(set)));
        }
        // As many rows at a time as fit.
        let step = (SET / plan.k).max(1);
        let mut start = 0;
        while start < rows {
            let now = start..rows.min(start + step);
            let scalars = &plan.scalars[now.start * plan.k..now.end * plan.k];
            let mut set = self.set(scalars, digit(plan.n))?;
            self.multiply(plan, &mut set, start, now.clone(), &mut out)?;
            start = now.end;
        }
        Ok((out, None))
    }

    /// The transfers of these scalars' bits.
    fn set(&mut self, scalars: &[u64], digit: usize) -> Result<Set> {
        let peers: Vec<usize> = self.peers().collect();
        let choices = products::choices(scalars);
        let (mut chosen, mut keys) = (Vec::new(), Vec::new());
        for peer in &peers {
            chosen.push(self.choose(*peer, &choices)?);
        }
        for peer in &peers {
            let offered = self.offer(*peer, choices.len())?;
            let (ours, message) = ScalarKeys::new(offered, scalars.len()).in_digits(digit);
            self.channel.send(*peer, message)?;
            keys.push(ours);
        }
        let mut ends = Vec::with_capacity(peers.len());
        for ((peer, chosen), keys) in peers.iter().zip(chosen).zip(keys) {
            let length = products::digit_words(scalars.len(), digit);
            let message = self.channel.receive(*peer, length)?;
            let ours = Scalars::new(chosen, scalars).in_digits(digit, &message);
            ends.push((blame(&self.channel, *peer, ours)?, keys));
        }
        Ok(Set {
            scalars: scalars.len(),
            ends,
        })
    }

    /// Adds the cross terms of those rows of scalars, of which the set's first is row `first`.
    fn multiply(
        &mut self,
        plan: &Plan,
        set: &mut Set,
        first: usize,
        rows: Range<usize>,
        out: &mut [u64],
    ) -> Result<()> {
        let peers: Vec<usize> = self.peers().collect();
        let (k, n) = (plan.k, plan.n);
        let most = MESSAGE / (33 / digit(n));
        let columns = (most / k).clamp(1, n);
        let together = (most / (k * columns)).max(1);
        let mut done = 0;
        for piece in &plan.pieces {
            let within = piece.rows.start.max(rows.start)..piece.rows.end.min(rows.end);
            let mut start = within.start;
            while start < within.end {
                let now = start..within.end.min(start + together);
                start = now.end;
                let of_set = now.start - first..now.end - first;
                let place = done + (now.start - piece.rows.start) * n;
                let mut column = 0;
                while column < n {
                    let width = columns.min(n - column);
                    let values = block(&piece.values, k, n, column, width);
                    let mut sum = vec![0; now.len() * width];
                    for (peer, (_, keys)) in peers.iter().zip(&mut set.ends) {
                        let message =
                            keys.multiply_rows(k, of_set.clone(), &values, width, &mut sum);
                        self.channel.send(*peer, message)?;
                    }
                    for (peer, (scalars, _)) in peers.iter().zip(&mut set.ends) {
                        let length = scalars.rows_words(k, now.len(), width);
                        let message = self.channel.receive(*peer, length)?;
                        let theirs =
                            scalars.multiply_rows(k, of_set.clone(), width, &mut sum, &message);
                        blame(&self.channel, *peer, theirs)?;
                    }
                    for (row, sum) in sum.chunks_exact(width).enumerate() {
                        let to = &mut out[place + row * n + column..][..width];
                        Group::Additive.add(to, sum);
                    }
                    column += width;
                }
            }
            done += piece.rows.len() * n;
        }
        Ok(())
    }
}

/// Columns of a row-major matrix.
fn block(values: &[u64], k: usize, n: usize, column: usize, width: usize) -> Vec<u64> {
    if width == n {
        return values.to_vec();
    }
    (0..k)
        .flat_map(|row| values[row * n + column..][..width].iter().copied())
        .collect()
}
