//! For tests: evidence without hardware or policies.

use super::{Vouched, Voucher};
use crate::error::Result;
use crate::intake::statement::Hash;

/// Says of evidence that it is not what it should be.
pub(in crate::intake) const OTHER: &str = "it was made for something else";

/// A voucher whose evidence anybody can make: the hash of what it is made for.
#[derive(Clone, Copy)]
pub(in crate::intake) struct Hashed {
    pub(in crate::intake) policy: u8,
    pub(in crate::intake) program: u8,
    /// Changes what the evidence is made for.
    pub(in crate::intake) change: fn(&mut Vouched<'_>),
    /// The length of the evidence, as a multiple of the right one.
    pub(in crate::intake) times: usize,
}

pub(in crate::intake) const HONEST: Hashed = Hashed {
    policy: 1,
    program: 7,
    change: |_| {},
    times: 1,
};

pub(in crate::intake) fn hash(about: &Vouched<'_>) -> Vec<u8> {
    blake3::hash(format!("{about:?}").as_bytes())
        .as_bytes()
        .to_vec()
}

impl Voucher for Hashed {
    fn policy(&self) -> Hash {
        [self.policy; 32]
    }

    fn program(&self) -> Hash {
        [self.program; 32]
    }

    fn make(&self, about: &Vouched<'_>) -> Result<Vec<u8>> {
        let mut about = about.clone();
        (self.change)(&mut about);
        Ok(hash(&about).repeat(self.times))
    }

    fn judge(&self, about: &Vouched<'_>, evidence: &[u8]) -> std::result::Result<(), String> {
        match evidence == hash(about) {
            true => Ok(()),
            false => Err(OTHER.to_owned()),
        }
    }
}
