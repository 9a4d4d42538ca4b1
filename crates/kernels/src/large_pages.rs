//! An allocator that puts large blocks in large pages, if the operating system offers them on
//! request (Linux, "madvise").
//!
//! A block of many megabytes is returned to the system when it is freed. So every page of the next
//! block is mapped and cleared when it is first written. With pages of 4 KiB, this takes longer
//! than writing them; with pages of 2 MiB, it takes only the time to clear them. A page becomes
//! memory when it is first written, as always. Reserved but unused memory stays address space,
//! except for less than 2 MiB around each byte that is written.
//!
//! The system's allocator allocates, moves and frees the blocks, and the advice ends with the
//! mapping. A process forked from this one has the same advice. If the system has no large pages,
//! the allocator changes nothing.
//!
//! ```text
//! #[global_allocator]
//! static MEMORY: kernels::large_pages::LargePages = kernels::large_pages::LargePages;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};

/// The size in bytes from which a block is put in large pages.
const LARGE: usize = 8 << 20;

/// The system's allocator, with advice to the system about large blocks.
pub struct LargePages;

// SAFETY: the system's allocator does all the work; advice changes no byte of a block.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees what the system's allocator requires; so below.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        advised(unsafe { System.realloc(block, layout, size) }, size)
    }
}

#[inline]
fn advised(block: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= LARGE && !block.is_null() {
        advise(block, bytes);
    }
    block
}

/// Advises the system to use large pages. Failure is ignored, since the block is usable anyway.
#[cfg(target_os = "linux")]
fn advise(block: *mut u8, bytes: usize) {
    // SAFETY: the call takes no pointer and returns a constant of the system.
    let Ok(page) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else {
        return;
    };
    // All pages that the block lies in, so that a mapping that holds only the block stays one
    // mapping, which `mremap` can move.
    let before = block.addr() % page;
    let begin = block.wrapping_sub(before);
    // SAFETY: these pages are mapped, since a byte of the block lies in each. The system only
    // records the advice: no byte changes, neither of the block nor next to it in the first and
    // last page.
    unsafe {
        libc::madvise(begin.cast(), before + bytes, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the system's flags of the mapping that contains an address.
    #[cfg(target_os = "linux")]
    fn flags_at(byte: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_here = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|word| word.split_once('-'));
            let address = |text| usize::from_str_radix(text, 16).ok();
            if let Some((begin, end)) = range.and_then(|(a, b)| Some((address(a)?, address(b)?))) {
                is_here = (begin..end).contains(&byte);
            }
            if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_here) {
                return flags.to_owned();
            }
        }
        panic!("{byte} is not mapped")
    }

    /// A kernel built without large pages has no such folder, and refuses the advice.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_is_told_of_all_pages_of_large_blocks() {
        let has_large = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        let bytes = 5 * LARGE + 12345;
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        // SAFETY: the block is not touched, and freed once.
        unsafe {
            let block = LargePages.alloc(layout);
            assert!(!block.is_null());
            for at in [0, bytes / 2, bytes - 1] {
                let flags = flags_at(block.addr() + at);
                let is_told = flags.split(' ').any(|flag| flag == "hg");
                assert_eq!(is_told, has_large, "byte {at}: {flags}");
            }
            LargePages.dealloc(block, layout);
        }
    }

    #[test]
    fn blocks_are_as_they_were_asked_for() {
        for bytes in [1, LARGE - 1, LARGE, 3 * LARGE + 12345] {
            let layout = Layout::from_size_align(bytes, 8).unwrap();
            // SAFETY: the block is written only within its size, and freed once.
            unsafe {
                let block = LargePages.alloc_zeroed(layout);
                assert!(!block.is_null());
                assert!((0..bytes).step_by(4096).all(|at| *block.add(at) == 0));
                block.write_bytes(7, bytes);
                let block = LargePages.realloc(block, layout, bytes + LARGE);
                assert!(*block == 7 && *block.add(bytes - 1) == 7);
                let larger = Layout::from_size_align(bytes + LARGE, 8).unwrap();
                LargePages.dealloc(block, larger);
            }
        }
    }
}
