//! Lies of a party, for tests.
//!
//! A party falsifies a value before it records it, and before it derives anything else from it. So
//! all that it sends afterwards agrees with the lie, and so does what it proves. Without the
//! feature `mutation` there are no lies, and this compiles to nothing.

use super::Replicated;

/// A value that a party is about to send.
#[cfg(feature = "mutation")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Value {
    /// The step that it belongs to.
    pub step: String,
    /// What it is, in the symbols of the operation.
    pub name: &'static str,
    /// The number of elements. Planes have this number of bits each.
    pub n: usize,
    /// The number of words.
    pub words: usize,
}

/// May change a value that a party is about to send.
#[cfg(feature = "mutation")]
pub type Lie = Box<dyn FnMut(&Value, &mut [u64]) + Send>;

impl Replicated {
    /// Shows every value to `lie`, which may change it.
    #[cfg(feature = "mutation")]
    pub fn falsify(&mut self, lie: Lie) {
        self.0.lie = Some(lie);
    }

    /// Lets a lie change a value of n elements. All copies of the value are changed alike.
    #[cfg(feature = "mutation")]
    pub(super) fn told<const N: usize>(
        &mut self,
        name: &'static str,
        n: usize,
        copies: [&mut [u64]; N],
    ) {
        let party = &mut *self.0;
        let mut copies = copies.into_iter();
        let (Some(lie), Some(words)) = (&mut party.lie, copies.next()) else {
            return;
        };
        let value = Value {
            step: party.channel.step().to_owned(),
            name,
            n,
            words: words.len(),
        };
        lie(&value, words);
        copies.for_each(|copy| copy.copy_from_slice(words));
    }

    #[cfg(not(feature = "mutation"))]
    #[inline(always)]
    pub(super) fn told<const N: usize>(&mut self, _: &str, _: usize, _: [&mut [u64]; N]) {}
}
