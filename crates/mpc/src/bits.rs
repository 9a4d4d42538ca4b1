//! Binary sharings as packed bit planes.

use kernels::planes::words_of;

/// A binary (XOR) sharing of `len` values of `width` bits, stored as bit planes.
///
/// Plane j of a component holds bit j of all values, 64 to a word. Unused bits of a plane's last
/// word are unspecified.
///
/// Deliberately without `Debug` and `PartialEq`: it holds shares.
pub struct Bits {
    width: usize,
    len: usize,
    parts: Vec<Vec<u64>>,
}

impl Bits {
    /// Creates a sharing from its components, each `width` planes of `len` bits.
    ///
    /// # Panics
    /// If a component has the wrong length.
    #[must_use]
    pub fn new(width: usize, len: usize, parts: Vec<Vec<u64>>) -> Self {
        let words = width * words_of(len);
        assert!(
            parts.iter().all(|part| part.len() == words),
            "components of {width} planes of {len} bits have {words} words"
        );
        Self { width, len, parts }
    }

    /// Returns the number of bits of each value.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of values.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a length, not a container")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the components that this party holds.
    #[must_use]
    pub fn parts(&self) -> &[Vec<u64>] {
        &self.parts
    }

    /// Returns the components, by value.
    #[must_use]
    pub fn into_parts(self) -> Vec<Vec<u64>> {
        self.parts
    }

    /// Returns the number of words of one plane.
    #[must_use]
    pub fn stride(&self) -> usize {
        words_of(self.len)
    }

    /// Copies the planes `range` to a new sharing.
    #[must_use]
    pub fn planes(&self, range: std::ops::Range<usize>) -> Self {
        let stride = self.stride();
        let words = range.start * stride..range.end * stride;
        let parts = self
            .parts
            .iter()
            .map(|part| part[words.clone()].to_vec())
            .collect();
        Self {
            width: range.len(),
            len: self.len,
            parts,
        }
    }

    /// Copies bit i of the first plane to a new sharing.
    #[must_use]
    pub fn at(&self, i: usize) -> Self {
        let bit = |part: &Vec<u64>| vec![bit_at(part, i)];
        Self::new(1, 1, self.parts.iter().map(bit).collect())
    }

    /// Stacks the planes of several sharings of the same length, one after another.
    ///
    /// # Panics
    /// If `sharings` is empty, or if the lengths differ.
    #[must_use]
    pub fn stack(sharings: &[&Self]) -> Self {
        let first = sharings.first().expect("at least one sharing");
        assert!(
            sharings.iter().all(|bits| bits.len == first.len),
            "stacked sharings have one length"
        );
        let parts = (0..first.parts.len())
            .map(|part| {
                sharings
                    .iter()
                    .flat_map(|bits| bits.parts[part].iter().copied())
                    .collect()
            })
            .collect();
        Self {
            width: sharings.iter().map(|bits| bits.width).sum(),
            len: first.len,
            parts,
        }
    }

    /// XORs `other` into this sharing, which is local in every protocol.
    ///
    /// # Panics
    /// If the shapes differ.
    pub fn xor_assign(&mut self, other: &Self) {
        assert!(
            self.width == other.width && self.len == other.len,
            "XOR of equal shapes"
        );
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a ^= b);
        }
    }

    /// Returns this sharing XOR `by`, or this sharing unchanged if `by` is `None`.
    ///
    /// # Panics
    /// If the shapes differ.
    #[must_use]
    pub fn flipped(mut self, by: Option<&Self>) -> Self {
        if let Some(by) = by {
            self.xor_assign(by);
        }
        self
    }
}

/// Returns bit i of a plane, as a word.
pub(crate) fn bit_at(plane: &[u64], i: usize) -> u64 {
    plane[i / 64] >> (i % 64) & 1
}

/// Returns the number of bits of a sharing of one plane.
///
/// # Panics
/// If the sharing does not have exactly one plane.
pub(crate) fn one_plane(bit: &Bits) -> usize {
    assert!(bit.width() == 1, "one plane, not {}", bit.width());
    bit.len()
}

/// Computes x·(1 − 2·bit).
pub(crate) fn flip(x: u64, bit: u64) -> u64 {
    (x ^ bit.wrapping_neg()).wrapping_add(bit)
}
