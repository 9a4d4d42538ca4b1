//! A product in bands: what is copied, computed and copied back, and in which order.
//!
//! A band's words are copied, then read; its results are complete, then copied back. Events say so.
//! Buffers are used in turn, and the host waits for the results of a band before it queues the next
//! but one, so what used the same buffers before has ended.

use super::State;
use super::memory::{Key, Role};
use super::plan::{Band, Placement, Plan};
use super::words::Words;
use crate::digits::{Digits, Output, Panel, Part, Side, SignedBytes, chunks, padded};
use crate::error::Result;
use crate::launch::Gather;
use crate::region::{Address, Region};
use crate::runtime::{Event, Queue, Runtime};
use kernels::device::Name;
use std::ops::Range;

const SIDES: [Side; 2] = [Side::Left, Side::Right];

/// The digits of one side of a product.
enum Digested {
    /// All of them, in a panel for each chunk of the depth.
    Whole(Vec<Panel>),
    /// Those of a band, which are made when it is computed.
    Band(Region),
}

/// Where the words of a side lie on the card.
struct Source<'a> {
    /// Those of all terms.
    words: Region,
    /// Bytes of one term's.
    of_term: usize,
    gather: &'a Gather,
}

/// What the bands of a call have in common.
struct Call<'a, 'b> {
    plan: &'b Plan,
    /// Operands of all terms, by side.
    operands: [Vec<Words<'a>>; 2],
    chunks: Vec<Range<usize>>,
    digits: SignedBytes,
}

impl<R: Runtime> State<R> {
    /// Computes a product of left and right operands.
    pub(super) fn in_bands(
        &mut self,
        plan: &Plan,
        out: &mut [u64],
        operands: [Vec<Words>; 2],
        digits: SignedBytes,
    ) -> Result<()> {
        let (most, terms) = (self.runtime.tuning().band, operands[0].len());
        if plan.has_large_items(&digits, terms, most) {
            return self.item_by_item(plan, out, &operands, digits);
        }
        let call = Call {
            plan,
            operands,
            chunks: chunks(&digits, terms, plan.depth),
            digits,
        };
        let stays = [0, 1].map(|side: usize| plan.may_stay()[side] && names(&call, side).is_some());
        let bands = plan.bands(&digits, terms, stays, most);
        let sides = self.whole_operands(&call, &bands)?;
        for (at, band) in bands.iter().enumerate() {
            self.upload(&call, band, at % 2)?;
            self.compute(&call, band, &sides, at % 2)?;
            if at > 0 {
                self.download(&bands[at - 1].placement, (at - 1) % 2, out)?;
            }
        }
        let last = bands.len() - 1;
        self.download(&bands[last].placement, last % 2, out)
    }

    /// Computes products of matrices that are too large for a band one after another.
    fn item_by_item(
        &mut self,
        plan: &Plan,
        out: &mut [u64],
        operands: &[Vec<Words>; 2],
        digits: SignedBytes,
    ) -> Result<()> {
        let (one, [rows, columns]) = (plan.item(), plan.rows);
        for (item, out) in out.chunks_exact_mut(rows * columns).enumerate() {
            let of_item = [0, 1].map(|side: usize| {
                let len = plan.rows[side] * plan.depth;
                let words = item * len..(item + 1) * len;
                let all = operands[side].iter();
                all.map(|operand| operand.slice(words.clone())).collect()
            });
            self.in_bands(&one, out, of_item, digits)?;
        }
        Ok(())
    }

    /// Makes the digits of the operands that all bands need, and buffers for the others.
    fn whole_operands(&mut self, call: &Call, bands: &[Band]) -> Result<[Digested; 2]> {
        let mut sides = Vec::new();
        for (at, side) in SIDES.into_iter().enumerate() {
            let is_banded = bands[0].window[at].is_some();
            sides.push(if is_banded {
                let row_bytes = call.digits.row_bytes(call.most_block());
                let rows = |band: &Band| band.items.len() * side.padded(band.rows[at].len());
                let most = bands.iter().map(rows).max().expect("a band");
                let role = Role::Band(side);
                Digested::Band(
                    self.memory
                        .buffer(&mut self.runtime, role, most * row_bytes)?,
                )
            } else {
                Digested::Whole(self.whole(call, at)?)
            });
        }
        Ok(sides
            .try_into()
            .unwrap_or_else(|_| unreachable!("two sides")))
    }

    /// Returns the digits of an operand that all bands need. They may be on the card already.
    fn whole(&mut self, call: &Call, at: usize) -> Result<Vec<Panel>> {
        let (plan, side, operands) = (call.plan, SIDES[at], &call.operands[at]);
        let rows = side.padded(plan.rows[at]);
        let key = names(call, at).map(|names| Key {
            names,
            digits: call.digits,
            gather: plan.gather[at],
            sizes: [plan.items, plan.rows[at], plan.depth],
            side,
        });
        if let Some(panels) = key.as_ref().and_then(|key| self.memory.find(key)) {
            return Ok(panels);
        }
        let bytes =
            |chunk: &Range<usize>| plan.items * rows * call.digits.row_bytes(call.block(chunk));
        let all: usize = call.chunks.iter().map(bytes).sum();
        let of_words = operands[0].len() * size_of::<u64>();
        let role = Role::WholeWords;
        let words = self
            .memory
            .buffer(&mut self.runtime, role, operands.len() * of_words)?;
        let region = match key {
            Some(_) => self.memory.reserve(&mut self.runtime, all)?,
            None => self
                .memory
                .buffer(&mut self.runtime, Role::Whole(side), all)?,
        };
        self.runtime.wait(Queue::In, Event::WholeRead)?;
        for (term, operand) in operands.iter().enumerate() {
            let to = words.from(term * of_words);
            let all = Placement::run(0..operand.len());
            self.copies.upload(&mut self.runtime, operand, &all, to)?;
        }
        self.runtime.record(Event::WholeCopied, Queue::In)?;
        self.runtime.wait(Queue::Compute, Event::WholeCopied)?;
        let mut panels = Vec::new();
        let mut rest = region;
        for chunk in &call.chunks {
            let panel = call.panel(rest, plan.items, rows, side, chunk);
            let from = Source {
                words,
                of_term: of_words,
                gather: &plan.gather[at],
            };
            call.decompose(&mut self.runtime, &panel, &from, 0..plan.rows[at], chunk)?;
            panels.push(panel);
            rest = rest.from(bytes(chunk));
        }
        self.runtime.record(Event::WholeRead, Queue::Compute)?;
        if let Some(key) = key {
            self.memory.keep(key, panels.clone());
        }
        Ok(panels)
    }

    /// Copies the words of a band to the card.
    fn upload(&mut self, call: &Call, band: &Band, parity: usize) -> Result<()> {
        let words = self.band_words(call, band, parity)?;
        for (at, to) in words.into_iter().enumerate() {
            let Some(window) = &band.window[at] else {
                continue;
            };
            let of_words = window.words.len * size_of::<u64>();
            for (term, operand) in call.operands[at].iter().enumerate() {
                let to = to.from(term * of_words);
                let place = &window.words;
                self.copies.upload(&mut self.runtime, operand, place, to)?;
            }
        }
        self.runtime.record(Event::Copied(parity), Queue::In)
    }

    /// Returns where the words of both sides of a band lie.
    fn band_words(&mut self, call: &Call, band: &Band, parity: usize) -> Result<[Region; 2]> {
        let bytes = [0, 1].map(|at: usize| {
            let words = band.window[at]
                .as_ref()
                .map_or(0, |window| window.words.len);
            call.operands[at].len() * words * size_of::<u64>()
        });
        if bytes == [0, 0] {
            let none = Region {
                address: Address(0),
                bytes: 0,
            };
            return Ok([none; 2]);
        }
        let role = Role::Words(parity);
        let all = self
            .memory
            .buffer(&mut self.runtime, role, bytes[0] + bytes[1])?;
        Ok([all, all.from(bytes[0])])
    }

    /// Queues the computation of a band.
    fn compute(
        &mut self,
        call: &Call,
        band: &Band,
        sides: &[Digested; 2],
        parity: usize,
    ) -> Result<()> {
        let words = self.band_words(call, band, parity)?;
        let size = [0, 1].map(|at: usize| band.rows[at].len());
        let items = band.items.len();
        let block = call.most_block();
        let sums = call.digits.sums_bytes(items, size[0], size[1], block);
        let sums = self.memory.buffer(&mut self.runtime, Role::Sums, sums)?;
        let out = band.placement.len * size_of::<u64>();
        let region = self
            .memory
            .buffer(&mut self.runtime, Role::Out(parity), out)?;
        self.runtime.wait(Queue::Compute, Event::Copied(parity))?;
        for (index, chunk) in call.chunks.iter().enumerate() {
            let mut panels = Vec::new();
            for (at, side) in SIDES.into_iter().enumerate() {
                panels.push(match (&sides[at], &band.window[at]) {
                    (Digested::Whole(panels), _) => {
                        panels[index].skip(band.items.start, band.rows[at].start)
                    }
                    (Digested::Band(region), Some(window)) => {
                        let panel = call.panel(*region, items, side.padded(size[at]), side, chunk);
                        let rows = window.skipped..window.skipped + size[at];
                        let from = Source {
                            words: words[at],
                            of_term: window.words.len * size_of::<u64>(),
                            gather: &window.gather,
                        };
                        call.decompose(&mut self.runtime, &panel, &from, rows, chunk)?;
                        panel
                    }
                    (Digested::Band(_), None) => unreachable!("a band's operand has a window"),
                });
            }
            let output = Output {
                region,
                size,
                columns_inner: band.columns_inner,
                strides: band.strides,
                is_added: index > 0,
            };
            let panels = [&panels[0], &panels[1]];
            call.digits
                .multiply(&mut self.runtime, panels, items, sums, &output)?;
        }
        self.runtime.record(Event::Done(parity), Queue::Compute)
    }

    /// Copies the result of a band to where it belongs.
    fn download(&mut self, placement: &Placement, parity: usize, out: &mut [u64]) -> Result<()> {
        let bytes = placement.len * size_of::<u64>();
        let region = self
            .memory
            .buffer(&mut self.runtime, Role::Out(parity), bytes)?;
        self.runtime.wait(Queue::Out, Event::Done(parity))?;
        let words = placement.len;
        self.copies
            .download(&mut self.runtime, region, words, |piece, words| {
                let first = piece.start;
                placement.runs(piece, |from, to| {
                    out[to].copy_from_slice(&words[from.start - first..from.end - first]);
                });
            })
    }
}

impl Call<'_, '_> {
    /// Returns the depth that all terms' words of a chunk take in a panel.
    fn block(&self, chunk: &Range<usize>) -> usize {
        self.operands[0].len() * padded(chunk.len())
    }

    /// Returns the largest of the chunks' depths.
    fn most_block(&self) -> usize {
        let blocks = self.chunks.iter().map(|chunk| self.block(chunk));
        blocks.max().expect("a product has a depth")
    }

    fn panel(
        &self,
        region: Region,
        items: usize,
        rows: usize,
        side: Side,
        chunk: &Range<usize>,
    ) -> Panel {
        let block = self.block(chunk);
        Panel {
            region,
            items,
            rows,
            block,
            row_bytes: self.digits.row_bytes(block),
            side,
        }
    }

    /// Queues the decomposition of all terms' words of a chunk.
    fn decompose<R: Runtime>(
        &self,
        runtime: &mut R,
        panel: &Panel,
        from: &Source,
        rows: Range<usize>,
        chunk: &Range<usize>,
    ) -> Result<()> {
        for term in 0..self.operands[0].len() {
            let part = Part {
                words: from.words.from(term * from.of_term),
                gather: from.gather,
                rows: rows.clone(),
                depth: chunk.clone(),
                start: term * padded(chunk.len()),
            };
            self.digits.decompose(runtime, &part, panel)?;
        }
        Ok(())
    }
}

impl Side {
    /// Returns the rows of a panel: those of right ones are columns of sums.
    fn padded(self, rows: usize) -> usize {
        match self {
            Self::Left => rows,
            Self::Right => padded(rows),
        }
    }
}

/// Returns the names of all terms' operands on a side, if all have one.
fn names(call: &Call, side: usize) -> Option<Vec<(Name, u64)>> {
    let names = call.operands[side].iter().map(Words::names);
    names
        .collect::<Option<Vec<_>>>()
        .map(|names| names.concat())
}
