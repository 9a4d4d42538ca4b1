//! A stand-in for a card: the same kernels, built as C and run by this processor.
//!
//! It is slow, and right: it fails where a card might compute something wrong. Its memory is
//! reached by copies alone, and fresh memory is not zero. What is queued is done as late as the
//! queues' events allow, and in an arbitrary order. Products of bytes that overflow are an error.

mod arena;
mod order;

use crate::error::Result;
use crate::launch::{Launch, THREADS};
use crate::region::Region;
use crate::runtime::{Event, Product, Queue, Runtime, Staging, Tuning};
use arena::{Arena, fault};
use bytemuck::cast_slice;
use kernels::dispatch::backend;
use order::Order;
use rayon::prelude::*;

unsafe extern "C" {
    /// `kernels/simulated.c`
    fn tacit_cuda_simulated(
        kernel: i32,
        parameters: *const u64,
        blocks: u32,
        threads: u32,
        is_backwards: i32,
    ) -> usize;
}

/// What a simulated card is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Chooses among the orders that queues allow.
    pub seed: u64,
    /// Bytes of memory.
    pub capacity: usize,
    /// Words of a staging buffer.
    pub staging: usize,
    /// Sizes for its owner.
    pub tuning: Tuning,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            capacity: 64 << 30,
            staging: 1 << 16,
            tuning: Tuning {
                band: 16 << 20,
                crossover: 0,
            },
        }
    }
}

/// A simulated card.
pub struct Simulated {
    settings: Settings,
    /// Its memory.
    pub arena: Arena,
    /// What is queued.
    pub order: Order<Work>,
    /// The products of bytes that were computed.
    pub products: usize,
    /// One of them that is computed wrong, for tests that notice it.
    pub wrong: Option<usize>,
    staging: [Box<[u64]>; Staging::COUNT],
    /// After which work of a queue each staging buffer is free.
    last: [(usize, u64); Staging::COUNT],
}

/// Work that was queued.
pub enum Work {
    In(usize, usize, Region),
    Out(Region, usize, usize),
    Clear(Region),
    Launch(Launch),
    Multiply(Product),
}

impl Simulated {
    /// Creates a card.
    ///
    /// # Panics
    /// If the kernels were built with other structures than the ones here.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        for (index, words) in Launch::WORDS.into_iter().enumerate() {
            let index = i32::try_from(index).expect("few kernels");
            // SAFETY: without blocks, nothing is read but the size of the kernel's structure.
            let bytes = unsafe { tacit_cuda_simulated(index, std::ptr::null(), 0, THREADS, 0) };
            assert_eq!(
                bytes,
                words * size_of::<u64>(),
                "bytes of a kernel's structure"
            );
        }
        Self {
            settings,
            arena: Arena::new(settings.capacity),
            order: Order::new(settings.seed),
            products: 0,
            wrong: None,
            staging: std::array::from_fn(|_| vec![0; settings.staging].into()),
            last: [(0, 0); Staging::COUNT],
        }
    }

    /// Works until a point of a queue is reached.
    fn work_until(&mut self, point: (usize, u64)) -> Result<()> {
        while let Some(work) = self.order.next_until(point) {
            self.work(&work)?;
        }
        Ok(())
    }

    fn work(&mut self, work: &Work) -> Result<()> {
        match *work {
            Work::In(from, words, to) => {
                self.arena.words(to)?[..words].copy_from_slice(&self.staging[from][..words]);
            }
            Work::Out(from, words, to) => {
                self.staging[to][..words].copy_from_slice(&self.arena.words(from)?[..words]);
            }
            Work::Clear(region) => self.arena.words(region)?.fill(0),
            Work::Launch(ref launch) => self.run(launch)?,
            Work::Multiply(ref product) => self.multiply_now(product)?,
        }
        Ok(())
    }

    fn run(&mut self, launch: &Launch) -> Result<()> {
        let is_backwards = i32::from(self.order.random() & 1 != 0);
        let [from, to] = launch.regions();
        // Both lie within blocks of their own.
        let pointers = [from, to].map(|region| {
            let words = self.arena.words(region)?;
            Ok(words.as_mut_ptr() as u64)
        });
        let [from_pointer, to_pointer] = pointers;
        let (from_pointer, to_pointer) = (from_pointer?, to_pointer?);
        if from.address == to.address {
            return Err(fault("launch", "a kernel writes what it reads"));
        }
        let raw = launch.raw(|region| match region == from {
            true => from_pointer,
            false => to_pointer,
        });
        let kernel = i32::try_from(launch.index()).expect("few kernels");
        // SAFETY: `Launch::raw` checked that the kernel stays within the regions, which the arena
        // holds as memory of their lengths. Nothing else refers to them: they lie in boxes of the
        // arena, which is borrowed mutably. The structure has the size that the kernel expects.
        unsafe {
            let parameters = raw.words().as_ptr();
            tacit_cuda_simulated(kernel, parameters, launch.blocks(), THREADS, is_backwards);
        }
        self.arena.check_guards()
    }

    fn multiply_now(&mut self, product: &Product) -> Result<()> {
        product.check();
        let Product {
            items,
            rows,
            columns,
            depth,
            ..
        } = *product;
        let left: &[i8] = cast_slice(self.arena.read(product.left.region)?);
        let right: &[i8] = cast_slice(self.arena.read(product.right.region)?);
        let mut sums = vec![0i32; items * rows * columns];
        let is_exact = sums
            .par_chunks_exact_mut(columns)
            .enumerate()
            .map(|(at, sums)| {
                let (item, row) = (at / rows, at % rows);
                let left = &left[item * product.left.item + row * product.left.row..][..depth];
                let right = &right[item * product.right.item..];
                backend().call(
                    #[inline(always)]
                    || inner_products(left, right, product.right.row, sums),
                )
            })
            .reduce(|| true, |a, b| a && b);
        if !is_exact {
            return Err(fault(
                "multiply",
                "a sum of products of bytes has more than 32 bits",
            ));
        }
        if self.wrong == Some(self.products) {
            sums[0] ^= 2;
        }
        self.products += 1;
        let to = self.arena.words(product.sums)?;
        to[..sums.len() / 2].copy_from_slice(cast_slice(&sums));
        Ok(())
    }
}

/// Computes inner products of a row with others. Returns whether all have at most 32 bits.
#[inline(always)]
fn inner_products(left: &[i8], right: &[i8], stride: usize, sums: &mut [i32]) -> bool {
    let mut is_exact = true;
    for (column, sum) in sums.iter_mut().enumerate() {
        let right = &right[column * stride..][..left.len()];
        let mut all = 0i64;
        // As many as 32 bits can always sum up.
        for (left, right) in left.chunks(1 << 16).zip(right.chunks(1 << 16)) {
            let products = left
                .iter()
                .zip(right)
                .map(|(a, b)| i32::from(*a) * i32::from(*b));
            all += i64::from(products.sum::<i32>());
        }
        is_exact &= i32::try_from(all).is_ok();
        *sum = all as i32;
    }
    is_exact
}

impl Runtime for Simulated {
    const KIND: &'static str = "simulated";

    type Current = ();

    fn tuning(&self) -> Tuning {
        self.settings.tuning
    }

    fn enter(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&mut self) -> Result<(u64, u64)> {
        Ok(self.arena.sizes())
    }

    fn allocate(&mut self, bytes: usize) -> Result<Region> {
        self.arena.allocate(bytes)
    }

    fn free(&mut self, region: Region) -> Result<()> {
        if !self.order.is_empty() {
            return Err(fault("free", "work is queued that may use the memory"));
        }
        self.arena.free(region)
    }

    fn staging(&mut self, buffer: Staging) -> Result<&mut [u64]> {
        self.work_until(self.last[buffer.index()])?;
        Ok(&mut self.staging[buffer.index()])
    }

    fn copy_in(&mut self, from: Staging, words: usize, to: Region) -> Result<()> {
        let work = Work::In(from.index(), words, to);
        self.last[from.index()] = self.order.push(Queue::In, work);
        Ok(())
    }

    fn copy_out(&mut self, from: Region, words: usize, to: Staging) -> Result<()> {
        let work = Work::Out(from, words, to.index());
        self.last[to.index()] = self.order.push(Queue::Out, work);
        Ok(())
    }

    fn clear(&mut self, region: Region) -> Result<()> {
        self.order.push(Queue::Compute, Work::Clear(region));
        Ok(())
    }

    fn launch(&mut self, launch: &Launch) -> Result<()> {
        self.order.push(Queue::Compute, Work::Launch(*launch));
        Ok(())
    }

    fn multiply(&mut self, product: &Product) -> Result<()> {
        self.order.push(Queue::Compute, Work::Multiply(*product));
        Ok(())
    }

    fn record(&mut self, event: Event, queue: Queue) -> Result<()> {
        self.order.record(event, queue);
        Ok(())
    }

    fn wait(&mut self, queue: Queue, event: Event) -> Result<()> {
        self.order.wait(queue, event);
        Ok(())
    }

    fn synchronise(&mut self) -> Result<()> {
        while let Some(work) = self.order.next() {
            self.work(&work)?;
        }
        Ok(())
    }
}
