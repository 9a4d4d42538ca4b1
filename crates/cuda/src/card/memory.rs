//! What a card's memory is used for: buffers of the computation, and operands that stay.
//!
//! Both are wiped before they are freed.

use crate::digits::{Panel, Side, SignedBytes};
use crate::error::{Error, Result};
use crate::launch::Gather;
use crate::region::Region;
use crate::runtime::Runtime;
use kernels::device::Name;
use std::collections::HashMap;

/// What a buffer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The words of a band's operands, by its parity.
    Words(usize),
    /// The words of an operand that all bands need.
    WholeWords,
    /// The digits of such an operand.
    Whole(Side),
    /// The digits of a band's operand.
    Band(Side),
    /// Diagonals of a band.
    Sums,
    /// The result of a band, by its parity.
    Out(usize),
}

impl Role {
    const COUNT: usize = 10;

    fn index(self) -> usize {
        let of = |side| usize::from(side == Side::Right);
        match self {
            Self::Words(parity) => parity,
            Self::WholeWords => 2,
            Self::Whole(side) => 3 + of(side),
            Self::Band(side) => 5 + of(side),
            Self::Sums => 7,
            Self::Out(parity) => 8 + parity,
        }
    }
}

/// What an operand that stays is found by.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The names of all terms' operands, each with the number that it is multiplied by.
    pub names: Vec<(Name, u64)>,
    /// The digits that they were cut into.
    pub digits: SignedBytes,
    /// The layout of the matrices.
    pub gather: Gather,
    /// The number of matrices, their rows and columns.
    pub sizes: [usize; 3],
    /// Their side of the product.
    pub side: Side,
}

/// An operand that stays: a panel for each chunk of the depth.
struct Stays {
    region: Region,
    panels: Vec<Panel>,
    /// When it was last used, in calls.
    used: u64,
}

/// The memory that a card's owner has allocated.
#[derive(Default)]
pub struct Memory {
    buffers: [Option<Region>; Role::COUNT],
    named: HashMap<Key, Stays>,
    /// Memory of an operand that is to stay, until all of its digits are queued.
    reserved: Option<Region>,
    call: u64,
}

impl Memory {
    /// Begins a call of the device.
    pub fn begin(&mut self) {
        self.call += 1;
    }

    /// Returns a buffer with arbitrary content. It is the same one each time, or a larger one.
    pub fn buffer<R: Runtime>(
        &mut self,
        runtime: &mut R,
        role: Role,
        bytes: usize,
    ) -> Result<Region> {
        let index = role.index();
        if let Some(region) = self.buffers[index] {
            if region.bytes >= bytes {
                return Ok(Region { bytes, ..region });
            }
            self.buffers[index] = None;
            release(runtime, region)?;
        }
        let region = self.allocate(runtime, bytes)?;
        self.buffers[index] = Some(region);
        Ok(region)
    }

    /// Allocates memory. Operands that this call has not used make room if they must.
    fn allocate<R: Runtime>(&mut self, runtime: &mut R, bytes: usize) -> Result<Region> {
        loop {
            match runtime.allocate(bytes) {
                Err(Error::Memory { .. } | Error::Exhausted { .. })
                    if self.forget_oldest(runtime)? => {}
                result => return result,
            }
        }
    }

    /// Forgets the named operand that has not been used for longest. Returns whether there was one.
    fn forget_oldest<R: Runtime>(&mut self, runtime: &mut R) -> Result<bool> {
        let idle = self
            .named
            .iter()
            .filter(|(_, stays)| stays.used < self.call);
        let oldest = idle.min_by_key(|(_, stays)| stays.used);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return Ok(false);
        };
        let stays = self.named.remove(&key).expect("the oldest operand");
        release(runtime, stays.region)?;
        Ok(true)
    }

    /// Returns the panels of an operand that stayed.
    pub fn find(&mut self, key: &Key) -> Option<Vec<Panel>> {
        let stays = self.named.get_mut(key)?;
        stays.used = self.call;
        Some(stays.panels.clone())
    }

    /// Allocates memory for an operand that is to stay.
    pub fn reserve<R: Runtime>(&mut self, runtime: &mut R, bytes: usize) -> Result<Region> {
        let region = self.allocate(runtime, bytes)?;
        self.reserved = Some(region);
        Ok(region)
    }

    /// Keeps an operand, in the memory that was reserved for it.
    pub fn keep(&mut self, key: Key, panels: Vec<Panel>) {
        let used = self.call;
        let region = self.reserved.take().expect("a reserved region");
        self.named.insert(
            key,
            Stays {
                region,
                panels,
                used,
            },
        );
    }

    /// Forgets what was kept under any part of an operand.
    pub fn forget<R: Runtime>(&mut self, runtime: &mut R, operand: u64) -> Result<()> {
        let is_of = |key: &Key| key.names.iter().any(|(name, _)| name.operand == operand);
        let keys: Vec<Key> = self
            .named
            .keys()
            .filter(|key| is_of(key))
            .cloned()
            .collect();
        let regions = keys
            .iter()
            .map(|key| self.named.remove(key).expect("a key").region);
        release_all(runtime, regions)
    }

    /// Returns the bytes of the operands that stay.
    pub fn named(&self) -> usize {
        self.named.values().map(|stays| stays.region.bytes).sum()
    }

    /// Wipes and frees the buffers, and what an operand was to stay in.
    pub fn release_buffers<R: Runtime>(&mut self, runtime: &mut R) -> Result<()> {
        let buffers = self.buffers.iter_mut().filter_map(Option::take);
        release_all(runtime, buffers.chain(self.reserved.take()))
    }

    /// Wipes and frees everything.
    pub fn release<R: Runtime>(&mut self, runtime: &mut R) -> Result<()> {
        let buffers = self.release_buffers(runtime);
        let named = self.named.drain().map(|(_, stays)| stays.region);
        buffers.and(release_all(runtime, named))
    }
}

/// Wipes and frees regions, also those after one that cannot be. Returns the first error.
fn release_all<R: Runtime>(runtime: &mut R, regions: impl Iterator<Item = Region>) -> Result<()> {
    let mut result = Ok(());
    for region in regions {
        result = result.and(release(runtime, region));
    }
    result
}

/// Wipes a region, and then frees it. One that cannot be wiped is not freed.
pub fn release<R: Runtime>(runtime: &mut R, region: Region) -> Result<()> {
    runtime.clear(region)?;
    runtime.synchronise()?;
    runtime.free(region)
}
