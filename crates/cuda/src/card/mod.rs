//! A card as a [`Device`]: bilinear maps by products of digits.
//!
//! A map is a product of two matrices ([`plan`]), whose result is computed in bands. While one band
//! is computed, the words of the next are copied to the card, and the results of the one before are
//! copied back ([`bands`]). Named operands stay on the card as digits ([`memory`]). Before a card
//! is used, small products of every kind are compared with the processor's ([`self_test`]).

mod bands;
mod copies;
mod description;
mod memory;
mod plan;
mod self_test;
mod words;

use crate::digits::SignedBytes;
use crate::error::{Error, Result};
use crate::process::Process;
#[cfg(test)]
use crate::region::Region;
use crate::runtime::{Runtime, Tuning};
use copies::Copies;
use kernels::bilinear::Bilinear;
use kernels::device::{self, Counters, Cpu, Device, DeviceError, Term};
use kernels::third::{Third, Thirds};
use memory::Memory;
use plan::Plan;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use words::Words;

/// A card that computes bilinear maps.
pub struct Card<R: Runtime> {
    process: Process,
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

impl<R: Runtime> Card<R> {
    /// Takes a runtime into use.
    pub fn new(runtime: R) -> Self {
        Self {
            process: Process::this(),
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
        let _current = state.runtime.enter().expect("a usable card");
        state.release().expect("the memory is freed");
        &state.runtime
    }

    /// Panics in a call, while another thread's product would run.
    #[cfg(test)]
    pub fn panic_in_a_call(&self, within: impl FnOnce()) {
        let _state = self.lock();
        within();
        panic!("of a test");
    }

    /// Makes the card one that another process opened.
    #[cfg(test)]
    pub fn in_a_fork(&mut self) {
        self.process = Process::another();
    }

    /// Frees memory that a test took.
    #[cfg(test)]
    pub fn give_back(&mut self, regions: Vec<Region>) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _current = state.runtime.enter().expect("a usable card");
        for region in regions {
            memory::release(&mut state.runtime, region).expect("the memory is freed");
        }
    }

    /// Waits until no other call is running. In a fork, the thread of such a call may be missing,
    /// so nothing is waited for there.
    fn state(&self) -> Result<MutexGuard<'_, State<R>>, DeviceError> {
        self.process.check()?;
        Ok(self.lock())
    }

    /// Waits until no other call is running. A call that panicked ends the card's use: what it
    /// queued and kept is not known.
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.failed.get_or_insert_with(|| DeviceError::Failed {
                operation: "an earlier call".into(),
                cause: "it panicked".into(),
            });
            state
        })
    }

    /// Computes a map's sum over terms on the card.
    fn sum(
        &self,
        map: &Bilinear,
        plan: &Plan,
        out: &mut [u64],
        terms: &[Term],
    ) -> Result<(), DeviceError> {
        let x = terms.iter().map(|term| Words::of(term.x)).collect();
        let y = terms.iter().map(|term| Words::of(term.y)).collect();
        self.product(map, plan, out, [x, y], SignedBytes::WHOLE)
    }

    /// Computes a narrow third of a map on the card.
    fn narrow_third(
        &self,
        third: Third,
        map: &Bilinear,
        plan: &Plan,
        out: &mut [u64],
        [one, other]: [Term; 2],
    ) -> Result<(), DeviceError> {
        let summand = third.summand();
        let x = vec![Words::of_third(summand, [one.x, other.x])];
        let y = vec![Words::of_third(summand, [one.y, other.y])];
        self.product(map, plan, out, [x, y], SignedBytes::narrow(summand))
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
        let mut state = self.state()?;
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
        match plan.filter(|_| !terms.is_empty()) {
            Some(plan) => self.sum(map, &plan, out, terms),
            None => self.cpu.bilinear(map, out, terms),
        }
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
        let plan = Plan::of(map).filter(|plan| plan.products() >= self.tuning.crossover);
        match plan {
            Some(plan) => self.narrow_third(third, map, &plan, out, parts),
            None => self.cpu.third(third, map, out, parts),
        }
    }

    fn forget(&self, operand: u64) {
        // A fork's copy of the card is never used again.
        let Ok(mut state) = self.state() else {
            return;
        };
        // Nor is what a card that failed keeps.
        let _ = state.run(
            |state| state.memory.forget(&mut state.runtime, operand),
            || "freeing an operand".into(),
        );
    }

    fn memory(&self) -> Result<Option<device::Memory>, DeviceError> {
        let mut state = self.state()?;
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
        let entered = self.runtime.enter();
        let entered = entered.as_ref().map_err(Clone::clone);
        let result = entered.and_then(|_| call(self));
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
}

impl<R: Runtime> Drop for Card<R> {
    fn drop(&mut self) {
        // A fork has nothing to give back.
        if self.process.check().is_err() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Also after a failure: most leave the context usable.
        if let Ok(_current) = state.runtime.enter() {
            let _ = state.release();
        }
    }
}
