//! An allocator for tests that inspects freed memory and counts allocated bytes. Tests use it to
//! show that secrets were wiped, and that memory use is bounded. It exists only under the feature
//! `memory`, which only tests enable.
//!
//! ```text
//! #[global_allocator]
//! static MEMORY: kernels::memory::Watched = kernels::memory::Watched;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most secrets that are searched for at once.
const MOST: usize = 16;

/// Words of a secret.
const WORDS: usize = 2;

static WATCHING: AtomicBool = AtomicBool::new(false);
static SECRETS: [[AtomicU64; WORDS]; MOST] = [const { [const { AtomicU64::new(0) }; WORDS] }; MOST];
static FOUND: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// Allocated bytes, and their maximum since [`most`] began.
static HELD: AtomicUsize = AtomicUsize::new(0);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator under observation. It returns zeroed memory, so that a block holds only
/// what its owner wrote.
pub struct Watched;

// SAFETY: the system's allocator does all the work; a block is read before it is freed.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees what the system's allocator requires; so below.
        unsafe { self.alloc_zeroed(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let before = HELD.fetch_add(layout.size(), Ordering::Relaxed);
        HIGHEST.fetch_max(before + layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if WATCHING.load(Ordering::Acquire) {
            // SAFETY: the block is still the caller's.
            unsafe { look(block, layout) };
        }
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Counts the secrets that lie in a block at word boundaries.
///
/// # Safety
/// The block is valid for reads of its layout.
unsafe fn look(block: *mut u8, layout: Layout) {
    let start = block.align_offset(align_of::<u64>());
    let words = layout.size().saturating_sub(start) / size_of::<u64>();
    for at in 0..words.saturating_sub(WORDS - 1) {
        // No slice is made, since some words may never have been written.
        // SAFETY: these words are within the block, and aligned.
        let now: [u64; WORDS] = std::array::from_fn(|of| unsafe {
            block.add(start).cast::<u64>().add(at + of).read_volatile()
        });
        for (secret, found) in SECRETS.iter().zip(&FOUND) {
            let same = (secret.iter().zip(now)).all(|(s, w)| s.load(Ordering::Relaxed) == w);
            if same && now != [0; WORDS] {
                found.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Counts how often each of at most 16 secrets lies in memory that any thread frees during `work`.
///
/// # Panics
/// If there are more than 16 secrets, or if one is zero, which would occur everywhere.
pub fn copies<T>(secrets: &[[u64; WORDS]], work: impl FnOnce() -> T) -> (Vec<usize>, T) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    assert!(secrets.len() <= MOST, "at most {MOST} secrets");
    assert!(!secrets.contains(&[0; WORDS]), "secrets are not zero");
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for (at, found) in FOUND.iter().enumerate() {
        let secret = secrets.get(at).copied().unwrap_or_default();
        for (place, word) in SECRETS[at].iter().zip(secret) {
            place.store(word, Ordering::Relaxed);
        }
        found.store(0, Ordering::Relaxed);
    }
    WATCHING.store(true, Ordering::Release);
    let result = work();
    WATCHING.store(false, Ordering::Release);
    let found = FOUND[..secrets.len()].iter();
    let found = found.map(|found| found.load(Ordering::Relaxed)).collect();
    drop(turn);
    (found, result)
}

/// Returns the most bytes that all threads together allocate at once during `work`, above those
/// before it.
pub fn most<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.load(Ordering::Relaxed);
    HIGHEST.store(before, Ordering::Relaxed);
    let result = work();
    (
        HIGHEST.load(Ordering::Relaxed).saturating_sub(before),
        result,
    )
}
