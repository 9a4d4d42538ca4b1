//! An allocator that has large blocks lie in large pages, where the operating system has them for
//! who asks (Linux, "madvise").
//!
//! A block of many megabytes goes back to the system when it is freed, so every page of the next
//! one is mapped and cleared when something is first written there. With pages of 4 KiB that takes
//! longer than to write them; one of 2 MiB takes the time to clear it. A page becomes memory when
//! something is written there, as always: what is reserved and not used stays address space, but
//! for less than 2 MiB around each byte that is written.
//!
//! Blocks are the system's: it gives them out, moves them and takes them back, and what is advised
//! ends with the mapping. A process forked from this one has the same advice. Where the system has
//! no large pages nothing is other than without.
//!
//! ```text
//! #[global_allocator]
//! static MEMORY: kernels::large_pages::LargePages = kernels::large_pages::LargePages;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes of a block that it is done for.
const LARGE: usize = 8 << 20;

/// The system's allocator, which is told of large blocks.
pub struct LargePages;

// SAFETY: all is left to the system's allocator; advice changes no byte of a block.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same is asked of the caller; so below.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see the first.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: see the first.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: see the first.
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

/// What cannot be done is not: the block is as good as before.
#[cfg(target_os = "linux")]
fn advise(block: *mut u8, bytes: usize) {
    // SAFETY: it takes no pointer and tells a constant of the system.
    let Ok(page) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else {
        return;
    };
    // All pages that the block lies in, so that a mapping of its own stays one, which `mremap` can
    // move.
    let before = block.addr() % page;
    let begin = block.wrapping_sub(before);
    // SAFETY: these pages are mapped, since a byte of the block lies in each, and the system only
    // notes the advice: no byte changes, of the block or of what lies beside it in the first and
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

    /// What the system notes of the mapping that a byte lies in.
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

    /// Kernels built without large pages have no such folder, and refuse the advice.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_is_told_of_all_pages_of_large_blocks() {
        let has_large = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        let bytes = 5 * LARGE + 12345;
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        // SAFETY: the block is not touched, and given back once.
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
            // SAFETY: the block is written within its size only, and given back once.
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
