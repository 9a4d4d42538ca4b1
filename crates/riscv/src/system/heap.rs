//! Memory that a program allocates while it runs: the moving end of its data, and regions of its
//! own.

use super::start::PAGE;
use crate::fault::Result;
use crate::memory::{MOST, Memory};

/// Where regions of their own lie, one behind another.
const REGIONS: u64 = 1 << 40;

/// How many there may be at once: each access may look through all.
const MOST_REGIONS: usize = 1 << 10;

/// What was given.
pub struct Heap {
    start: u64,
    end: u64,
    next: u64,
    regions: usize,
    /// Whether there was no room once.
    pub refused: bool,
}

/// The next multiple of a page.
fn whole_pages(bytes: u64) -> u64 {
    bytes.saturating_add(PAGE - 1) / PAGE * PAGE
}

impl Heap {
    /// None yet; data may grow from behind a program's end.
    ///
    /// # Errors
    /// `NoProgram` where the program lies at the end of all addresses.
    pub fn new<Word: Clone>(memory: &mut Memory<Word>, behind: u64) -> Result<Self> {
        let start = whole_pages(behind);
        memory.map(start, Vec::new(), true)?;
        Ok(Self {
            start,
            end: start,
            next: REGIONS,
            regions: 0,
            refused: false,
        })
    }

    /// Moves the end of the data, where there is room; where it is then.
    pub fn move_end<Word: Clone>(&mut self, memory: &mut Memory<Word>, end: u64) -> u64 {
        // What lies before the data asks where their end is.
        if let Some(size) = end.checked_sub(self.start) {
            match memory.resize(self.start, size) {
                Ok(()) => self.end = end,
                Err(_) => self.refused = true,
            }
        }
        self.end
    }

    /// A region of its own of whole pages, all 0; `None` where there is no room.
    pub fn map<Word: Clone>(&mut self, memory: &mut Memory<Word>, bytes: u64) -> Option<u64> {
        let size = whole_pages(bytes);
        if size == 0 {
            return None;
        }
        let start = self.next;
        let fits = size <= MOST && self.regions < MOST_REGIONS;
        if !fits || memory.map(start, vec![0; size as usize], true).is_err() {
            self.refused = true;
            return None;
        }
        // What reads beyond the end of one does not meet the next.
        self.next = start.saturating_add(size + PAGE);
        self.regions += 1;
        Some(start)
    }

    /// Takes a region back. A part of one stays.
    pub fn unmap<Word: Clone>(&mut self, memory: &mut Memory<Word>, start: u64, bytes: u64) {
        if start >= REGIONS && start < self.next && memory.unmap(start, whole_pages(bytes)) {
            self.regions -= 1;
        }
    }
}
