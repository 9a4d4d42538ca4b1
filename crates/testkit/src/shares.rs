//! A ring sharing that owns its components, for tests that chain operations.

use mpc::{Bilinear, Bits, Operand, Protocol, Recipient, Result, Shift};

/// One party's components.
pub struct Shared(pub Vec<Vec<u64>>);

impl Shared {
    /// Creates zeros with the right number of components.
    #[must_use]
    pub fn zeros(protocol: &dyn Protocol, n: usize) -> Self {
        Self(vec![vec![0; n]; protocol.parts()])
    }

    /// Shares values of party `owner`. All parties pass the same values; those of the others are
    /// ignored.
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn input(protocol: &mut dyn Protocol, owner: usize, values: &[u64]) -> Result<Self> {
        let mine = (protocol.party() == owner).then_some(values);
        Self::made(protocol, values.len(), |protocol, out| {
            protocol.share(owner, mine, values.len(), out)
        })
    }

    /// Computes the result of an operation with n outputs.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn made(
        protocol: &mut dyn Protocol,
        n: usize,
        operation: impl FnOnce(&mut dyn Protocol, &mut [&mut [u64]]) -> Result<()>,
    ) -> Result<Self> {
        let mut result = Self::zeros(protocol, n);
        let mut slices: Vec<&mut [u64]> = result.0.iter_mut().map(Vec::as_mut_slice).collect();
        operation(protocol, &mut slices)?;
        Ok(result)
    }

    /// Returns the components as slices.
    #[must_use]
    pub fn slices(&self) -> Vec<&[u64]> {
        self.0.iter().map(Vec::as_slice).collect()
    }

    /// Applies a bilinear map to this sharing and another.
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn bilinear(
        &self,
        protocol: &mut dyn Protocol,
        map: &Bilinear,
        other: &Self,
        truncate: Option<Shift>,
    ) -> Result<Self> {
        Self::made(protocol, map.lengths().2, |protocol, out| {
            let (x, y) = (self.slices(), other.slices());
            protocol.bilinear(map, Operand::once(&x), Operand::once(&y), truncate, out)
        })
    }

    /// Truncates this sharing by `bits` bits.
    ///
    /// # Errors
    /// Those of the protocol.
    ///
    /// # Panics
    /// Unless `bits` is 1 to 61.
    pub fn truncated(&self, protocol: &mut dyn Protocol, bits: u32) -> Result<Self> {
        let shift = Shift::new(bits).expect("1 to 61 bits");
        Self::made(protocol, self.0[0].len(), |protocol, out| {
            protocol.truncate(&self.slices(), shift, out)
        })
    }

    /// Multiplies this sharing by a shared bit.
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn times_bit(&self, protocol: &mut dyn Protocol, bit: &Bits) -> Result<Self> {
        Self::made(protocol, self.0[0].len(), |protocol, out| {
            protocol.bit_multiply(bit, &self.slices(), out)
        })
    }

    /// Opens this sharing to all parties.
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn open(&self, protocol: &mut dyn Protocol) -> Result<Vec<u64>> {
        Ok(protocol
            .reveal(&self.slices(), Recipient::All)?
            .expect("all learn it"))
    }
}
