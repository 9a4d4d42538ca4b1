//! Python's arrays as slices, without a copy. This is the only unsafe code outside of `kernels`.

#![allow(unsafe_code)]

use crate::errors::misuse;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use std::ops::Range;

/// A C-contiguous array that Python keeps alive; it is read or written while the interpreter is
/// released.
///
/// If Python code on another thread writes the memory meanwhile, that is a bug of that code, as it
/// is for NumPy itself. tacit's Python layer passes only arrays that nothing else holds.
pub struct Array<T: Element>(PyBuffer<T>);

/// Ring words.
pub type Words = Array<i64>;
/// Bits, one in each byte, 0 or 1.
pub type Bytes = Array<u8>;
/// Numbers in single precision.
pub type Singles = Array<f32>;
/// Numbers in double precision.
pub type Doubles = Array<f64>;

impl<'a, 'py, T: Element> FromPyObject<'a, 'py> for Array<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<T>::get(&object)?;
        if buffer.is_c_contiguous() {
            Ok(Self(buffer))
        } else {
            Err(misuse(
                "an array is not C-contiguous; call .contiguous() first",
            ))
        }
    }
}

impl<T: Element> Array<T> {
    pub fn len(&self) -> usize {
        self.0.item_count()
    }

    /// Returns the range of its addresses in memory.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.0.buf_ptr().addr();
        start..start + self.0.len_bytes()
    }

    fn slice(&self) -> &[T] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: the buffer is C-contiguous, its format was checked to be T by `PyBuffer::get`, it
        // holds `item_count` elements, and the view keeps its memory alive for the borrow of self.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast::<T>(), self.len()) }
    }

    /// Returns disjoint mutable slices of `outputs`, none of which overlaps an array that the call
    /// reads, of any type.
    fn slices_mut<'a>(
        outputs: &'a mut [Self],
        read: &[Range<usize>],
    ) -> PyResult<Vec<&'a mut [T]>> {
        let overlap = |a: &Range<usize>, b: &Range<usize>| {
            !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
        };
        for (at, output) in outputs.iter().enumerate() {
            if output.0.readonly() {
                return Err(misuse("an output array is read-only"));
            }
            let mine = output.addresses();
            let earlier = outputs[..at].iter().map(Self::addresses);
            if earlier
                .chain(read.iter().cloned())
                .any(|other| overlap(&mine, &other))
            {
                return Err(misuse("an output array overlaps another array of the call"));
            }
        }
        let slice = |output: &'a mut Self| {
            if output.len() == 0 {
                return &mut [][..];
            }
            // SAFETY: as in `slice`; also, the memory is writable and was just checked not to
            // overlap any other slice of this call.
            unsafe { std::slice::from_raw_parts_mut(output.0.buf_ptr().cast::<T>(), output.len()) }
        };
        Ok(outputs.iter_mut().map(slice).collect())
    }
}

impl Words {
    pub fn words(&self) -> &[u64] {
        bytemuck::cast_slice(self.slice())
    }

    /// Returns the outputs of one call, disjoint from each other and from the arrays that it reads.
    pub fn outputs<'a>(
        outputs: &'a mut [Self],
        read: &[Range<usize>],
    ) -> PyResult<Vec<&'a mut [u64]>> {
        Ok(Self::slices_mut(outputs, read)?
            .into_iter()
            .map(bytemuck::cast_slice_mut)
            .collect())
    }
}

impl Singles {
    pub fn numbers(&self) -> &[f32] {
        self.slice()
    }
}

impl Doubles {
    pub fn numbers(&self) -> &[f64] {
        self.slice()
    }
}

impl Bytes {
    pub fn bytes(&self) -> &[u8] {
        self.slice()
    }

    /// Returns the outputs of one call, disjoint from each other and from the arrays that it reads.
    pub fn outputs<'a>(
        outputs: &'a mut [Self],
        read: &[Range<usize>],
    ) -> PyResult<Vec<&'a mut [u8]>> {
        Self::slices_mut(outputs, read)
    }
}
