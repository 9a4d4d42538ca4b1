//! A card as a [`Device`]: bilinear maps by products of digits.
//!
//! A map is a product of two matrices ([`plan`]), whose result is computed in bands. While one band
//! is computed, the words of the next are copied to the card, and the results of the one before are
//! copied back. Named operands stay on the card as digits ([`memory`]).
//!
//! The order: a band's words are copied, then read; its results are complete, then copied back.
//! Events say so. Buffers are used in turn, and the host waits for the results of a band before it
//! queues the next but one, so what used the same buffers before has ended.

mod copies;
mod description;
mod memory;
mod plan;
mod words;

use crate::digits::{Digits, Output, Panel, Part, Side, SignedBytes, chunks, padded};
use crate::error::{Error, Result};
use crate::region::Region;
use crate::runtime::{Event, Queue, Runtime, Tuning};
use copies::Copies;
use kernels::bilinear::Bilinear;
use kernels::device::{self, Counters, Cpu, Device, DeviceError, Term};
use kernels::third::{Third, Thirds};
use memory::{Key, Memory, Role};
use plan::{Band, Placement, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use words::Words;

const SIDES: [Side; 2] = [Side::Left, Side::Right];

/// A card that computes bilinear maps.
pub struct Card<R: Runtime> {
    state: Mutex<State<R>>,
    /// Sizes, and what was done, for callers that do not wait until a product ends.
    tuning: Tuning,
    products: AtomicU64,
    bytes_copied: AtomicU64,
    cpu: Cpu,
}

struct State<R: Runtime> {
    runtime: R,
    memory: Memory,
    copies: Copies,
    /// What ended the card's use.
    failed: Option<DeviceError>,
}

/// The digits of one side of a product.
enum Digested {
    /// All of them, in a panel for each chunk of the depth.
    Whole(Vec<Panel>),
    /// Those of a band, which are made when it is computed.
    Band(Region),
}

/// What the bands of a call have in common.
struct Call<'a, 'b> {
    plan: &'b Plan,
    /// Operands of all terms, by side.
    operands: [Vec<Words<'a>>; 2],
    chunks: Vec<Range<usize>>,
    digits: SignedBytes,
}

impl<R: Runtime> Card<R> {
    /// Takes a runtime into use.
    pub fn new(runtime: R) -> Self {
        Self {
            tuning: runtime.tuning(),
            products: AtomicU64::new(0),
            bytes_copied: AtomicU64::new(0),
            state: Mutex::new(State {
                runtime,
                memory: Memory::default(),
                copies: Copies::default(),
                failed: None,
            }),
            cpu: Cpu::default(),
        }
    }

    /// Wipes and frees the card's memory, and returns the runtime.
    #[cfg(test)]
    pub fn close(&mut self) -> &R {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.release().expect("the memory is freed");
        &state.runtime
    }

    /// Panics in a call, while another thread's product would run.
    #[cfg(test)]
    pub fn panic_in_a_call(&self, within: impl FnOnce()) {
        let _state = self.state();
        within();
        panic!("of a test");
    }

    /// Frees memory that a test took.
    #[cfg(test)]
    pub fn give_back(&mut self, region: Region) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        memory::release(&mut state.runtime, region).expect("the memory is freed");
    }

    /// Waits until no other call is running. A call that panicked ends the card's use: what it
    /// queued and kept is not known.
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.failed.get_or_insert_with(|| DeviceError::Failed {
                operation: "an earlier call".into(),
                cause: "it panicked".into(),
            });
            state
        })
    }

    /// Computes a product, and counts it.
    fn product(
        &self,
        map: &Bilinear,
        plan: &Plan,
        out: &mut [u64],
        sides: [Vec<Words>; 2],
        digits: SignedBytes,
    ) -> Result<(), DeviceError> {
        let mut state = self.state();
        let result = state.product(map, plan, out, sides, digits);
        self.bytes_copied
            .store(state.copies.bytes, Ordering::Relaxed);
        let computed = u64::from(result.is_ok());
        self.products.fetch_add(computed, Ordering::Relaxed);
        result
    }
}

impl<R: Runtime> Device for Card<R> {
    fn kind(&self) -> &'static str {
        R::KIND
    }

    fn bilinear(&self, map: &Bilinear, out: &mut [u64], terms: &[Term]) -> Result<(), DeviceError> {
        description::check(map, out, terms);
        let plan = Plan::of(map)
            .filter(|plan| plan.products().saturating_mul(terms.len()) >= self.tuning.crossover);
        let Some(plan) = plan.filter(|_| !terms.is_empty()) else {
            return self.cpu.bilinear(map, out, terms);
        };
        let x = terms.iter().map(|term| Words::of(term.x)).collect();
        let y = terms.iter().map(|term| Words::of(term.y)).collect();
        self.product(map, &plan, out, [x, y], SignedBytes::WHOLE)
    }

    /// Narrow thirds: one product of 28 digits in place of two products of 36.
    fn thirds(&self) -> Thirds {
        Thirds {
            whole: false,
            narrow: true,
        }
    }

    fn third(
        &self,
        third: Third,
        map: &Bilinear,
        out: &mut [u64],
        parts: [Term; 2],
    ) -> Result<(), DeviceError> {
        description::check(map, out, &parts);
        assert!(
            third.is_narrow() && map.has_thirds(),
            "a narrow third of a blocked product"
        );
        let plan = Plan::of(map);
        let is_small = |plan: &Plan| plan.products() < self.tuning.crossover;
        // The processor may not evaluate thirds.
        let is_left = plan.as_ref().is_none_or(is_small) && self.cpu.thirds().narrow;
        let Some(plan) = plan.filter(|_| !is_left) else {
            if is_left {
                return self.cpu.third(third, map, out, parts);
            }
            // No products at all.
            out.fill(0);
            return Ok(());
        };
        let summand = third.summand();
        let [one, other] = parts;
        let x = vec![Words::of_third(summand, [one.x, other.x])];
        let y = vec![Words::of_third(summand, [one.y, other.y])];
        self.product(map, &plan, out, [x, y], SignedBytes::narrow(summand))
    }

    fn forget(&self, operand: u64) {
        let mut state = self.state();
        // A card that failed keeps nothing that could be used again.
        let _ = state.run(
            |state| state.memory.forget(&mut state.runtime, operand),
            || "freeing an operand".into(),
        );
    }

    fn memory(&self) -> Result<Option<device::Memory>, DeviceError> {
        let mut state = self.state();
        let (free, total) = state.run(|state| state.runtime.memory(), || "memory".into())?;
        let named = state.memory.named() as u64;
        Ok(Some(device::Memory { total, free, named }))
    }

    fn counters(&self) -> Counters {
        Counters {
            products: self.products.load(Ordering::Relaxed),
            bytes_copied: self.bytes_copied.load(Ordering::Relaxed),
        }
    }
}

impl<R: Runtime> State<R> {
    /// Runs a call, unless the card has failed before. `operation` describes it in errors.
    fn run<T>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T>,
        operation: impl Fn() -> String,
    ) -> Result<T, DeviceError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        self.memory.begin();
        let result = self.runtime.check().and_then(|()| call(self));
        result.map_err(|error| {
            let is_of_memory = matches!(error, Error::Memory { .. } | Error::Exhausted { .. });
            let is_usable = is_of_memory && self.settle().is_ok();
            let error = error.of(&operation());
            self.failed = (!is_usable).then(|| error.clone());
            error
        })
    }

    /// Ends what a call that failed has queued, and frees its buffers: others may need the memory.
    fn settle(&mut self) -> Result<()> {
        self.runtime.synchronise()?;
        self.memory.release_buffers(&mut self.runtime)
    }

    /// Wipes and frees all memory.
    fn release(&mut self) -> Result<()> {
        let synchronised = self.runtime.synchronise();
        synchronised.and(self.memory.release(&mut self.runtime))
    }

    /// Computes a product of a map's operands.
    fn product(
        &mut self,
        map: &Bilinear,
        plan: &Plan,
        out: &mut [u64],
        [x, y]: [Vec<Words>; 2],
        digits: SignedBytes,
    ) -> Result<(), DeviceError> {
        let sides = if plan.is_swapped { [y, x] } else { [x, y] };
        self.run(
            |state| state.in_bands(plan, out, sides, digits),
            || description::of(map),
        )
    }

    /// Computes a product of left and right operands.
    fn in_bands(
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
            let all = 0..operand.len();
            self.copies.upload(&mut self.runtime, operand, all, to)?;
        }
        self.runtime.record(Event::WholeCopied, Queue::In)?;
        self.runtime.wait(Queue::Compute, Event::WholeCopied)?;
        let mut panels = Vec::new();
        let mut rest = region;
        for chunk in &call.chunks {
            let panel = call.panel(rest, plan.items, rows, side, chunk);
            call.decompose(
                &mut self.runtime,
                &panel,
                at,
                words,
                of_words,
                0..plan.rows[at],
                chunk,
            )?;
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
            let of_words = window.words.len() * size_of::<u64>();
            for (term, operand) in call.operands[at].iter().enumerate() {
                let to = to.from(term * of_words);
                let range = window.words.clone();
                self.copies.upload(&mut self.runtime, operand, range, to)?;
            }
        }
        self.runtime.record(Event::Copied(parity), Queue::In)
    }

    /// Returns where the words of both sides of a band lie.
    fn band_words(&mut self, call: &Call, band: &Band, parity: usize) -> Result<[Region; 2]> {
        let bytes = [0, 1].map(|at: usize| {
            let words = band.window[at]
                .as_ref()
                .map_or(0, |window| window.words.len());
            call.operands[at].len() * words * size_of::<u64>()
        });
        if bytes == [0, 0] {
            let none = Region {
                address: crate::region::Address(0),
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
                        let of_words = window.words.len() * size_of::<u64>();
                        let from = words[at];
                        call.decompose(&mut self.runtime, &panel, at, from, of_words, rows, chunk)?;
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
    #[allow(
        clippy::too_many_arguments,
        reason = "a panel, where it comes from, and what part"
    )]
    fn decompose<R: Runtime>(
        &self,
        runtime: &mut R,
        panel: &Panel,
        at: usize,
        words: Region,
        of_words: usize,
        rows: Range<usize>,
        chunk: &Range<usize>,
    ) -> Result<()> {
        for term in 0..self.operands[at].len() {
            let part = Part {
                words: words.from(term * of_words),
                gather: &self.plan.gather[at],
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

impl<R: Runtime> Drop for Card<R> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Also after a failure: most leave the context usable. Where it is not, or is another
        // process's, nothing can be given back.
        if state.runtime.check().is_ok() {
            let _ = state.release();
        }
    }
}

/// Returns the names of all terms' operands on a side, if all have one.
fn names(call: &Call, side: usize) -> Option<Vec<(device::Name, u64)>> {
    let names = call.operands[side].iter().map(Words::names);
    names
        .collect::<Option<Vec<_>>>()
        .map(|names| names.concat())
}
