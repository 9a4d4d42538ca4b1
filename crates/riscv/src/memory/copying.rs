//! Copies of bytes between memories, as between a program and its files, and changes of the size of
//! regions.

use super::{MOST, Memory, Region};
use crate::fault::{Fault, Result};

impl<Word: Clone> Memory<Word> {
    /// Copies bytes from another memory. Secret bytes remain pieces of their words, so nothing is
    /// computed.
    ///
    /// # Errors
    /// `Unmapped`, `ReadOnly`.
    pub fn copy(&mut self, to: u64, from: &Self, address: u64, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let has = |region: &&Region<Word>| region.has(address, bytes);
        let source = from.regions.iter().find(has);
        let source = source.ok_or(Fault::Unmapped { address, bytes })?;
        let part = source.part(address, bytes).moved(to);
        self.writable(to, bytes)?.put(&part);
        Ok(())
    }

    /// Resizes the region that begins at `start`; new bytes are 0.
    ///
    /// # Errors
    /// `Unmapped` if no region begins there; `TooLarge` if the total would exceed [`MOST`], or if
    /// there is no room.
    pub fn resize(&mut self, start: u64, size: u64) -> Result<()> {
        let found = self
            .regions
            .iter()
            .position(|region| region.start() == start);
        let at = found.ok_or(Fault::Unmapped {
            address: start,
            bytes: size,
        })?;
        let others = || {
            let regions = self.regions.iter().enumerate();
            regions.filter_map(|(other, region)| (other != at).then_some(region))
        };
        let wanted = others().map(Region::size).sum::<u64>().saturating_add(size);
        let is_clear = |end| others().all(|other| other.start() < start || end <= other.start());
        if wanted > MOST || !start.checked_add(size).is_some_and(is_clear) {
            return Err(Fault::TooLarge { wanted, most: MOST });
        }
        self.regions[at].resize(size);
        Ok(())
    }

    /// Removes the region that begins at `start` and has the given size. Returns whether there was
    /// one.
    pub fn unmap(&mut self, start: u64, size: u64) -> bool {
        let before = self.regions.len();
        self.regions
            .retain(|region| region.start() != start || region.size() != size);
        self.last = 0;
        self.regions.len() < before
    }
}
