//! Memory that a program allocates while it runs: by moving the program break (`brk`), and by
//! mapping regions (`mmap`).

use super::start::PAGE;
use crate::fault::Result;
use crate::memory::{MOST, Memory};

/// The address of the first mapped region; the others follow.
const REGIONS: u64 = 1 << 40;

/// The maximum number of regions at a time: each memory access may search all of them.
const MOST_REGIONS: usize = 1 << 10;

/// The memory that a program has allocated.
pub struct Heap {
    start: u64,
    end: u64,
    next: u64,
    regions: usize,
    /// Whether an allocation was refused for lack of room.
    pub refused: bool,
}

/// Rounds up to a multiple of a page.
fn whole_pages(bytes: u64) -> u64 {
    bytes.saturating_add(PAGE - 1) / PAGE * PAGE
}

impl Heap {
    /// Creates an empty heap. The data segment may grow from the end of the program, at `behind`.
    ///
    /// # Errors
    /// `InvalidProgram` if the program lies at the end of the address space.
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

    /// Moves the program break if there is room. Returns the resulting break.
    pub fn move_end<Word: Clone>(&mut self, memory: &mut Memory<Word>, end: u64) -> u64 {
        // An address before the heap is a query for the present break.
        if let Some(size) = end.checked_sub(self.start) {
            match memory.resize(self.start, size) {
                Ok(()) => self.end = end,
                Err(_) => self.refused = true,
            }
        }
        self.end
    }

    /// Maps a new region of whole pages, filled with 0; `None` if there is no room.
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
        // The gap keeps reads beyond the end of one region from reaching the next.
        self.next = start.saturating_add(size + PAGE);
        self.regions += 1;
        Some(start)
    }

    /// Unmaps a region. A request to unmap a part of one does nothing.
    pub fn unmap<Word: Clone>(&mut self, memory: &mut Memory<Word>, start: u64, bytes: u64) {
        if start >= REGIONS && start < self.next && memory.unmap(start, whole_pages(bytes)) {
            self.regions -= 1;
        }
    }
}
