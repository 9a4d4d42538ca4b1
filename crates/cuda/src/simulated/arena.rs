//! The simulated card's memory: blocks at addresses that are no pointers of this process.

use crate::error::{Error, Result};
use crate::region::{Address, Region};
use std::collections::BTreeMap;
use std::ops::Range;

/// The first address. No pointer of a process on x86-64 or arm64 is as high.
const FIRST: u64 = 1 << 60;

/// Words before and after each block that nothing may change.
const GUARD: usize = 32;

/// The content of fresh memory and of guards. Programs that read it compute something wrong.
const ARBITRARY: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// All blocks.
pub struct Arena {
    blocks: BTreeMap<u64, Block>,
    next: u64,
    capacity: usize,
    used: usize,
    /// Blocks that were freed although they were not zero.
    pub unwiped: usize,
}

struct Block {
    words: Box<[u64]>,
    bytes: usize,
}

impl Block {
    /// Returns the places of a region's words, if they are the block's.
    fn places(&self, start: u64, region: Region) -> Result<Range<usize>> {
        let offset = (region.address.0 - start) as usize;
        if offset % size_of::<u64>() != 0 || offset + region.bytes > self.bytes {
            return Err(fault("access", "the region leaves its block"));
        }
        let first = GUARD + offset / size_of::<u64>();
        Ok(first..first + region.bytes.div_ceil(size_of::<u64>()))
    }
}

impl Arena {
    /// Creates the memory, of some bytes.
    pub fn new(capacity: usize) -> Self {
        Self {
            blocks: BTreeMap::new(),
            next: FIRST,
            capacity,
            used: 0,
            unwiped: 0,
        }
    }

    /// Returns the bytes that are free, and all.
    pub fn sizes(&self) -> (u64, u64) {
        ((self.capacity - self.used) as u64, self.capacity as u64)
    }

    /// Allocates a block.
    pub fn allocate(&mut self, bytes: usize) -> Result<Region> {
        if bytes > self.capacity - self.used {
            return Err(Error::Memory {
                needed: bytes as u64,
                free: (self.capacity - self.used) as u64,
            });
        }
        let words = vec![ARBITRARY; bytes.div_ceil(size_of::<u64>()) + 2 * GUARD];
        let address = self.next;
        self.next += (bytes as u64).next_multiple_of(256) + 256;
        self.used += bytes;
        let words = words.into_boxed_slice();
        self.blocks.insert(address, Block { words, bytes });
        let address = Address(address);
        Ok(Region { address, bytes })
    }

    /// Frees a block.
    pub fn free(&mut self, region: Region) -> Result<()> {
        let block = self
            .blocks
            .remove(&region.address.0)
            .ok_or_else(|| fault("free", "no block begins at this address"))?;
        self.used -= block.bytes;
        let content = &block.words[GUARD..block.words.len() - GUARD];
        self.unwiped += usize::from(content.iter().any(|word| *word != 0));
        Ok(())
    }

    /// Returns the words of a region, which must lie within one block, at a border of words.
    pub fn words(&mut self, region: Region) -> Result<&mut [u64]> {
        let block = self.blocks.range_mut(..=region.address.0).next_back();
        let (start, block) = block.ok_or_else(|| fault("access", "no block is here"))?;
        let words = block.places(*start, region)?;
        Ok(&mut block.words[words])
    }

    /// Returns the words of a region, for reading.
    pub fn read(&self, region: Region) -> Result<&[u64]> {
        let block = self.blocks.range(..=region.address.0).next_back();
        let (start, block) = block.ok_or_else(|| fault("access", "no block is here"))?;
        Ok(&block.words[block.places(*start, region)?])
    }

    /// Returns an error if a guard was changed.
    pub fn check_guards(&self) -> Result<()> {
        let is_whole = |block: &Block| {
            let end = block.words.len() - GUARD;
            let guards = block.words[..GUARD].iter().chain(&block.words[end..]);
            guards.copied().all(|word| word == ARBITRARY)
        };
        match self.blocks.values().all(is_whole) {
            true => Ok(()),
            false => Err(fault("launch", "a kernel wrote outside of its block")),
        }
    }
}

/// Returns the error that ends the simulated card's use.
pub fn fault(call: &'static str, cause: &str) -> Error {
    Error::Failed {
        call,
        cause: cause.into(),
    }
}
