//! Ring sharings that own their components, with local operations and operations on several at
//! once.

use crate::{Bilinear, Bits, Operand, Parts, PartsMut, Protocol, Result, Shift, dense};

/// One party's components of several words. Deliberately without `Debug`: it holds shares.
#[derive(Clone)]
pub(super) struct Words(Vec<Vec<u64>>);

impl Words {
    pub(super) fn of(parts: Parts) -> Self {
        Self(parts.iter().map(|part| part.to_vec()).collect())
    }

    pub(super) fn write(&self, out: PartsMut) {
        for (out, part) in out.iter_mut().zip(&self.0) {
            out.copy_from_slice(part);
        }
    }

    fn len(&self) -> usize {
        self.0[0].len()
    }

    fn slices(&self) -> Vec<&[u64]> {
        self.0.iter().map(Vec::as_slice).collect()
    }

    fn with(mut self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            let pairs = mine.iter_mut().zip(theirs);
            pairs.for_each(|(mine, other)| *mine = combine(*mine, *other));
        }
        self
    }

    /// Computes x + y.
    pub(super) fn plus(self, other: &Self) -> Self {
        self.with(other, u64::wrapping_add)
    }

    /// Computes x − y.
    pub(super) fn minus(self, other: &Self) -> Self {
        self.with(other, u64::wrapping_sub)
    }

    /// Computes x·factor.
    pub(super) fn times(mut self, factor: u64) -> Self {
        let words = self.0.iter_mut().flatten();
        words.for_each(|word| *word = word.wrapping_mul(factor));
        self
    }

    /// Computes Σ factor·x; `None` for no terms.
    pub(super) fn sum<'a>(terms: impl IntoIterator<Item = (&'a Self, u64)>) -> Option<Self> {
        let scaled = terms
            .into_iter()
            .map(|(words, factor)| words.clone().times(factor));
        scaled.reduce(|sum, term| sum.plus(&term))
    }

    /// Concatenates sharings.
    fn joined(all: &[&Self]) -> Self {
        let component = |part: usize| {
            all.iter()
                .flat_map(|words| words.0[part].iter().copied())
                .collect()
        };
        Self((0..all[0].0.len()).map(component).collect())
    }

    /// Splits the sharing into pieces of n words.
    fn pieces(&self, n: usize) -> Vec<Self> {
        let piece = |start: usize| {
            let of = |part: &Vec<u64>| part[start..start + n].to_vec();
            Self(self.0.iter().map(of).collect())
        };
        (0..self.len()).step_by(n).map(piece).collect()
    }
}

/// A protocol and the number n of elements on which it works.
pub(super) struct Work<'p> {
    protocol: &'p mut dyn Protocol,
    /// The components of a public 1.
    one: Words,
    n: usize,
}

impl<'p> Work<'p> {
    pub(super) fn on(protocol: &'p mut dyn Protocol, n: usize) -> Self {
        let mut one = Words(vec![vec![0]; protocol.parts()]);
        let mut slices: Vec<&mut [u64]> = one.0.iter_mut().map(Vec::as_mut_slice).collect();
        protocol.trivial(&[1], &mut slices);
        Self { protocol, one, n }
    }

    /// Returns a public word, repeated n times.
    pub(super) fn public(&self, value: u64) -> Words {
        let part = |one: &Vec<u64>| vec![one[0].wrapping_mul(value); self.n];
        Words(self.one.0.iter().map(part).collect())
    }

    /// Computes x + value.
    pub(super) fn plus(&self, x: Words, value: u64) -> Words {
        x.plus(&self.public(value))
    }

    fn made(
        &mut self,
        n: usize,
        operation: impl FnOnce(&mut dyn Protocol, PartsMut) -> Result<()>,
    ) -> Result<Words> {
        let mut words = Words(vec![vec![0; n]; self.one.0.len()]);
        let mut out: Vec<&mut [u64]> = words.0.iter_mut().map(Vec::as_mut_slice).collect();
        operation(self.protocol, &mut out)?;
        Ok(words)
    }

    /// Multiplies all pairs together, truncated by `dropped` bits.
    pub(super) fn products<const N: usize>(
        &mut self,
        pairs: [(&Words, &Words); N],
        dropped: u32,
    ) -> Result<[Words; N]> {
        Ok(known(self.all_products(&pairs, dropped)?))
    }

    /// Multiplies any number of pairs together, truncated by `dropped` bits.
    pub(super) fn all_products(
        &mut self,
        pairs: &[(&Words, &Words)],
        dropped: u32,
    ) -> Result<Vec<Words>> {
        let (x, y): (Vec<&Words>, Vec<&Words>) = pairs.iter().copied().unzip();
        let (x, y) = (Words::joined(&x), Words::joined(&y));
        let n = x.len();
        let products = self.made(n, |protocol, out| {
            let (x, y) = (x.slices(), y.slices());
            let map = Bilinear::Elementwise { n };
            protocol.bilinear(
                &map,
                Operand::once(&x),
                Operand::once(&y),
                Shift::new(dropped),
                out,
            )
        })?;
        Ok(products.pieces(self.n))
    }

    /// Truncates x by [`Protocol::truncate`], or returns x if no bits are dropped.
    pub(super) fn truncated(&mut self, x: Words, dropped: u32) -> Result<Words> {
        let Some(shift) = Shift::new(dropped) else {
            return Ok(x);
        };
        self.made(x.len(), |protocol, out| {
            protocol.truncate(&x.slices(), shift, out)
        })
    }

    /// Computes which words are negative as words of `width` bits, all together.
    pub(super) fn negative(&mut self, words: &[&Words], width: usize) -> Result<Vec<Bits>> {
        let all = Words::joined(words);
        let signs = self.protocol.sign(&all.slices(), width)?;
        Ok(self.cut(&signs))
    }

    /// Cuts a plane into planes of n bits.
    fn cut(&self, plane: &Bits) -> Vec<Bits> {
        let piece = |start: usize| {
            let of = |part: &Vec<u64>| dense::planes(part, start, 1, self.n);
            Bits::new(1, self.n, plane.parts().iter().map(of).collect())
        };
        (0..plane.len()).step_by(self.n).map(piece).collect()
    }

    /// Converts each plane to words 0 and 1.
    pub(super) fn as_words(&mut self, bits: &Bits) -> Result<Vec<Words>> {
        let flat = flattened(bits);
        let words = self.made(flat.len(), |protocol, out| protocol.bit_to_ring(&flat, out))?;
        Ok(words.pieces(self.n))
    }

    /// Computes bit·x for all pairs together.
    pub(super) fn chosen<const N: usize>(
        &mut self,
        pairs: [(&Bits, &Words); N],
    ) -> Result<[Words; N]> {
        let bits = flattened(&Bits::stack(&pairs.map(|(bit, _)| bit)));
        let words = Words::joined(&pairs.map(|(_, words)| words));
        let chosen = self.made(words.len(), |protocol, out| {
            protocol.bit_multiply(&bits, &words.slices(), out)
        })?;
        Ok(known(chosen.pieces(self.n)))
    }

    /// Converts the low `width` bits of all words together.
    pub(super) fn as_bits<const N: usize>(
        &mut self,
        words: [&Words; N],
        width: usize,
    ) -> Result<[Bits; N]> {
        let all = Words::joined(&words);
        let bits = self.protocol.to_binary(&all.slices(), width)?;
        let planes: Vec<Vec<Bits>> = (0..width)
            .map(|at| self.cut(&bits.planes(at..at + 1)))
            .collect();
        Ok(std::array::from_fn(|of| {
            Bits::stack(&planes.iter().map(|plane| &plane[of]).collect::<Vec<_>>())
        }))
    }

    /// Returns the protocol, to multiply bits.
    pub(super) fn protocol(&mut self) -> &mut dyn Protocol {
        self.protocol
    }
}

/// Computes NOT of all bits.
pub(super) fn inverted(protocol: &dyn Protocol, bits: &Bits) -> Bits {
    let ones = vec![u64::MAX; bits.width() * bits.stride()];
    let mut inverted = protocol.trivial_bits(&ones, bits.width(), bits.len());
    inverted.xor_assign(bits);
    inverted
}

/// Joins all planes into one.
fn flattened(bits: &Bits) -> Bits {
    let n = bits.len();
    let flat = bits.parts().iter().map(|part| dense::packed(part, n));
    let flat = flat.map(std::borrow::Cow::into_owned).collect();
    Bits::new(1, bits.width() * n, flat)
}

fn known<const N: usize>(pieces: Vec<Words>) -> [Words; N] {
    let pieces = pieces.try_into();
    pieces.unwrap_or_else(|_| unreachable!("as many pieces as were joined"))
}
