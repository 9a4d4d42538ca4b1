//! Places in a card's memory.

/// A place in the card's memory. It is no pointer of this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address(pub u64);

/// A range of the card's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its first byte.
    pub address: Address,
    /// Its length.
    pub bytes: usize,
}

impl Region {
    /// Returns the rest of the region after some bytes.
    ///
    /// # Panics
    /// If the region is shorter.
    pub fn from(self, bytes: usize) -> Self {
        assert!(bytes <= self.bytes, "a region of {} bytes", self.bytes);
        Self {
            address: Address(self.address.0 + bytes as u64),
            bytes: self.bytes - bytes,
        }
    }
}
