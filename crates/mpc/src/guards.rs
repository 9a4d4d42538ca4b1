//! What a session's guards have to tell, and to whom: see [`crate::Compared::guarded`].

use crate::tree::conjunction;
use crate::{Bits, Parts, Protocol, Recipient, Result, Tally};
use ring::planes::words_of;
use std::sync::Arc;

/// Most tallies that are taken together.
const TOGETHER: usize = 1024;

/// Runs whose flags somebody has not seen, before they are joined to one.
const RUNS: usize = 64;

/// The flags of comparisons that were looked at together.
struct Run {
    labels: Arc<[String]>,
    /// Planes of one bit: of each comparison whether it was in range, then the AND of all.
    fit: Bits,
    seen: Vec<bool>,
}

/// What a session's guards have yet to tell to whoever receives something.
#[derive(Default)]
pub struct Guards {
    pending: Vec<(String, Tally)>,
    runs: Vec<Run>,
}

impl Guards {
    /// Keeps a tally until something is revealed.
    pub fn push(&mut self, label: &str, tally: Option<Tally>) {
        self.pending
            .extend(tally.map(|tally| (label.to_owned(), tally)));
    }

    /// Keeps what those of work side by side have kept, none of which has told anything.
    pub fn extend(&mut self, others: Self) {
        self.pending.extend(others.pending);
    }

    /// Opens a ring sharing; the words where this party is among the recipients, and the labels of the comparisons
    /// that left their range. The words are zeros if there are any.
    ///
    /// # Errors
    /// What the links meet.
    pub fn reveal(
        &mut self,
        protocol: &mut dyn Protocol,
        x: Parts,
        to: Recipient,
    ) -> Result<(Option<Vec<u64>>, Vec<String>)> {
        let Some((fit, failed)) = self.look(protocol, to)? else {
            return Ok((protocol.reveal(x, to)?, Vec::new()));
        };
        let n = x[0].len();
        let mut checked = vec![vec![0; n]; protocol.parts()];
        let mut slices: Vec<&mut [u64]> = checked.iter_mut().map(Vec::as_mut_slice).collect();
        protocol.bit_multiply(&repeated(&fit, 1, n), x, &mut slices)?;
        let checked: Vec<&[u64]> = checked.iter().map(Vec::as_slice).collect();
        Ok((protocol.reveal(&checked, to)?, failed))
    }

    /// As [`Guards::reveal`], of a binary sharing.
    ///
    /// # Errors
    /// What the links meet.
    pub fn reveal_bits(
        &mut self,
        protocol: &mut dyn Protocol,
        x: &Bits,
        to: Recipient,
    ) -> Result<(Option<Vec<u64>>, Vec<String>)> {
        let Some((fit, failed)) = self.look(protocol, to)? else {
            return Ok((protocol.reveal_bits(x, to)?, Vec::new()));
        };
        let checked = protocol.and(&repeated(&fit, x.width(), x.len()), x)?;
        Ok((protocol.reveal_bits(&checked, to)?, failed))
    }

    /// Whether all that `to` has not been told of was in range, as a secret bit, and to `to` alone what was not;
    /// `None` where nothing is left to be told.
    fn look(
        &mut self,
        protocol: &mut dyn Protocol,
        to: Recipient,
    ) -> Result<Option<(Bits, Vec<String>)>> {
        self.settle(protocol)?;
        let receives = |run: &Run| {
            let mut seen = run.seen.iter().enumerate();
            seen.any(|(party, seen)| !seen && to.includes(party))
        };
        let asked: Vec<&mut Run> = self.runs.iter_mut().filter(|run| receives(run)).collect();
        if asked.is_empty() {
            return Ok(None);
        }
        let (mut labels, mut flags, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for run in asked {
            let last = run.fit.width() - 1;
            labels.extend_from_slice(&run.labels);
            flags.push(run.fit.planes(0..last));
            all.push(run.fit.planes(last..last + 1));
            for (party, seen) in run.seen.iter_mut().enumerate() {
                *seen |= to.includes(party);
            }
        }
        self.runs.retain(|run| run.seen.contains(&false));
        let (flags, all) = (stacked(&flags), stacked(&all));
        let fit = conjunction(all, &mut |joins| protocol.and_all(joins))?;
        let opened = protocol.reveal_bits(&flags, to)?.unwrap_or_default();
        let failed = labels.into_iter().zip(opened);
        let failed = failed.filter(|(_, fit)| fit & 1 == 0);
        Ok(Some((fit, failed.map(|(label, _)| label).collect())))
    }

    /// Takes the tallies together.
    fn settle(&mut self, protocol: &mut dyn Protocol) -> Result<()> {
        let parties = protocol.parties();
        while !self.pending.is_empty() {
            let some = self.pending.len().min(TOGETHER);
            let (labels, tallies): (Vec<String>, Vec<Tally>) = self.pending.drain(..some).unzip();
            self.runs.push(Run {
                labels: labels.into(),
                fit: transposed(&protocol.in_range(&tallies)?),
                seen: vec![false; parties],
            });
        }
        if self.runs.len() > RUNS {
            self.join(protocol)?;
        }
        Ok(())
    }

    /// One run of all but the latest: somebody receives nothing, and what could be told would grow for ever.
    fn join(&mut self, protocol: &mut dyn Protocol) -> Result<()> {
        let older: Vec<Run> = self.runs.drain(..self.runs.len() - 1).collect();
        let all: Vec<Bits> = older
            .iter()
            .map(|run| run.fit.planes(run.fit.width() - 1..run.fit.width()))
            .collect();
        let fit = conjunction(stacked(&all), &mut |joins| protocol.and_all(joins))?;
        // Whoever has seen some of them alone is told again; nobody misses one.
        let seen = (0..protocol.parties()).map(|party| older.iter().all(|run| run.seen[party]));
        let joined = Run {
            labels: ["a layer of an earlier run".to_owned()].into(),
            fit: Bits::stack(&[&fit, &fit]),
            seen: seen.collect(),
        };
        self.runs.insert(0, joined);
        Ok(())
    }
}

fn stacked(all: &[Bits]) -> Bits {
    Bits::stack(&all.iter().collect::<Vec<_>>())
}

/// A plane of n bits as n planes of one.
fn transposed(bits: &Bits) -> Bits {
    let n = bits.len();
    let planes = bits.parts().iter().map(|plane| {
        (0..n)
            .map(|i| crate::bits::bit_at(plane, i))
            .collect::<Vec<_>>()
    });
    Bits::new(n, 1, planes.collect())
}

/// One bit, `width` planes of n times.
fn repeated(bit: &Bits, width: usize, n: usize) -> Bits {
    let parts = bit.parts().iter();
    let planes = parts.map(|part| vec![(part[0] & 1).wrapping_neg(); width * words_of(n)]);
    Bits::new(width, n, planes.collect())
}
