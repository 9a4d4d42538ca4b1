//! A slice that several threads write, each in its own part.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice whose disjoint parts several threads write.
pub(crate) struct SharedSlice<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: this is a mutable borrow of the slice, and hands out parts of it only by `part`, whose
// callers guarantee that they are disjoint.
unsafe impl<T: Send> Send for SharedSlice<'_, T> {}
// SAFETY: as above; no reference to an element is shared between threads.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            life: PhantomData,
        }
    }

    /// Returns the elements `range`.
    ///
    /// # Safety
    /// No other live reference, of any thread, reaches these elements.
    #[expect(clippy::mut_from_ref, reason = "disjointness is the caller's duty")]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "a part lies inside its slice"
        );
        // SAFETY: inside the slice by the assertion; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
