//! Products of scalars with rows of values, by transfers of the scalars' bits.
//!
//! The transfers of a scalar's bits serve as keys that expand to rows of any length
//! ([`ot::products`]). So the number of transfers is that of the scalars, not of the
//! multiplications. Each multiplication and ordered pair of parties sends 8 to 17 words.
//!
//! **Memory**, in addition to operands, results and what is kept, for every other party: 0.7 GB for
//! the transfers of [`SET`] scalars and 50 MB for messages. Values are laid out for one task at a
//! time, 2 MB or one column.
//!
//! **Kept scalars** keep their transfers. Every further product expands new words of the same keys,
//! and repeats nothing of the set-up.

use super::plan::Plan;
use super::{Transfer, or_accuse};
use crate::Result;
use crate::group::Group;
use ot::products::{self, ScalarKeys, Scalars};
use std::ops::Range;

/// Returns the number of bits of a scalar that are handled together, for rows of n values. With
/// more bits, less travels and more keys are expanded, which is fast only for long rows.
fn digit(n: usize) -> usize {
    if n < 64 { 2 } else { 4 }
}

/// Words of one message, roughly.
const MESSAGE: usize = 1 << 21;

/// Scalars of one set. It bounds the memory of the set's keys, 2 KiB per scalar and pair of
/// parties.
const SET: usize = 1 << 16;

/// Transfers of the bits of a matrix of scalars, with every other party, in both directions.
pub(super) struct Set {
    ends: Vec<(Scalars, ScalarKeys)>,
}

impl Set {
    /// Returns the memory for each peer, both directions together. It is the same at every party.
    pub fn kib(&self) -> usize {
        let bytes = |(scalars, keys): &(Scalars, ScalarKeys)| scalars.bytes() + keys.bytes();
        self.ends.first().map_or(0, bytes).div_ceil(1 << 10)
    }
}

impl Transfer {
    /// Computes the cross terms of all pieces, one after another, with the scalars' kept transfers
    /// if there are any. Also returns the transfers, unless there are too many to hold.
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
            self.multiply(plan, &mut set, 0, &(0..rows), &mut out)?;
            return Ok((out, Some(set)));
        }
        // As many rows at a time as fit into a set.
        let step = (SET / plan.k).max(1);
        let mut start = 0;
        while start < rows {
            let now = start..rows.min(start + step);
            let scalars = &plan.scalars[now.start * plan.k..now.end * plan.k];
            let mut set = self.set(scalars, digit(plan.n))?;
            self.multiply(plan, &mut set, start, &now, &mut out)?;
            start = now.end;
        }
        Ok((out, None))
    }

    /// Runs the transfers of these scalars' bits.
    fn set(&mut self, scalars: &[u64], digit: usize) -> Result<Set> {
        let peers: Vec<usize> = self.peers().collect();
        let choices = products::choices(scalars);
        self.refill(64 * choices.len(), 0)?;
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
            ends.push((or_accuse(&self.channel, *peer, ours)?, keys));
        }
        Ok(Set { ends })
    }

    /// Adds the cross terms of the given rows of scalars. The first row of the set is row `first`.
    fn multiply(
        &mut self,
        plan: &Plan,
        set: &mut Set,
        first: usize,
        rows: &Range<usize>,
        out: &mut [u64],
    ) -> Result<()> {
        let peers: Vec<usize> = self.peers().collect();
        let (k, n) = (plan.k, plan.n);
        let most = MESSAGE / (33 / digit(n));
        let tasks = tasks(plan, rows, most);
        let mut rest = &tasks[..];
        while !rest.is_empty() {
            // Put as many tasks into one message as fit, since each message is waited for.
            let mut words = 0;
            let fit = rest.iter().take_while(|task| {
                words += task.multiplications(k);
                words <= most
            });
            let (now, later) = rest.split_at(fit.count().max(1));
            rest = later;
            let mut sums: Vec<Vec<u64>> = now.iter().map(|task| vec![0; task.results()]).collect();
            for (peer, (_, keys)) in peers.iter().zip(&mut set.ends) {
                let mut message = Vec::new();
                for (task, sum) in now.iter().zip(&mut sums) {
                    let values = plan.pieces[task.piece].block(0..k, task.columns.clone());
                    let (rows, width) = (task.of_set(first), task.columns.len());
                    message.extend(keys.multiply_rows(k, rows, &values, width, sum));
                }
                self.channel.send(*peer, message)?;
            }
            for (peer, (scalars, _)) in peers.iter().zip(&mut set.ends) {
                let lengths: Vec<usize> = now
                    .iter()
                    .map(|task| scalars.rows_words(k, task.rows.len(), task.columns.len()))
                    .collect();
                let message = self.channel.receive(*peer, lengths.iter().sum())?;
                let mut words = &message[..];
                for ((task, sum), length) in now.iter().zip(&mut sums).zip(lengths) {
                    let (message, later) = words.split_at(length);
                    words = later;
                    let (rows, width) = (task.of_set(first), task.columns.len());
                    let theirs = scalars.multiply_rows(k, rows, width, sum, message);
                    or_accuse(&self.channel, *peer, theirs)?;
                }
            }
            for (task, sum) in now.iter().zip(sums) {
                for (row, sum) in sum.chunks_exact(task.columns.len()).enumerate() {
                    let place = (task.rows.start + row) * n + task.columns.start;
                    Group::Additive.add(&mut out[place..][..task.columns.len()], sum);
                }
            }
        }
        Ok(())
    }
}

/// Some rows of one piece's scalars, to be multiplied by some columns of its values.
struct Task {
    piece: usize,
    /// Rows within all scalars.
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Task {
    fn results(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    fn multiplications(&self, k: usize) -> usize {
        self.results() * k
    }

    /// Returns the rows within a set whose first row is `first`.
    fn of_set(&self, first: usize) -> Range<usize> {
        self.rows.start - first..self.rows.end - first
    }
}

/// Splits the products of the given rows into tasks of at most `most` multiplications each, or of
/// one row with one column.
fn tasks(plan: &Plan, rows: &Range<usize>, most: usize) -> Vec<Task> {
    let columns = (most / plan.k).clamp(1, plan.n);
    let together = (most / (plan.k * columns)).max(1);
    let mut tasks = Vec::new();
    for (at, piece) in plan.pieces.iter().enumerate() {
        let within = piece.rows.start.max(rows.start)..piece.rows.end.min(rows.end);
        for start in within.clone().step_by(together) {
            tasks.extend((0..plan.n).step_by(columns).map(|column| Task {
                piece: at,
                rows: start..within.end.min(start + together),
                columns: column..plan.n.min(column + columns),
            }));
        }
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bilinear;

    #[test]
    fn tasks_lay_out_few_values_and_cover_all_products() {
        for (batch, m, k, n, most) in [
            (1, 9, 40, 1000, 512),
            (3, 5, 7, 11, 100),
            (2, 4, 600, 3, 512),
        ] {
            let (x, y) = (vec![0; batch * m * k], vec![0; batch * k * n]);
            let map = Bilinear::Matrix { batch, m, k, n };
            let plan = Plan::new(&map, &x, &y, [true, false]);
            let mut done = vec![0; batch * m * n];
            for task in tasks(&plan, &(0..batch * m), most) {
                assert!(
                    task.columns.len() * k <= most.max(k),
                    "a task has too many values"
                );
                assert!(
                    task.multiplications(k) <= most.max(k),
                    "a task has too many products"
                );
                assert!(plan.pieces[task.piece].rows.contains(&task.rows.start));
                for row in task.rows {
                    task.columns
                        .clone()
                        .for_each(|column| done[row * n + column] += 1);
                }
            }
            assert!(done.iter().all(|times| *times == 1));
        }
    }
}
