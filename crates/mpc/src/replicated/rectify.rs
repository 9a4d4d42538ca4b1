//! max(x, 0), of a sharing or of an affine map whose truncation is under way.
//!
//! **Computes** the product of x with the complement of the sign, a bit that is one if x is not
//! negative. If a secret bit asks for min(x, 0), it flips the sign locally: XOR of two binary
//! sharings needs no message.
//!
//! **In parallel with the truncation** of z = Σ map(x, y) + addend·2^f, the sign begins at once.
//! Both need s, known to role 0, and t, known to roles 1 and 2, with s + t = z mod 2^64. If w + f ≤
//! 64, the sign is that of (s ≫ f) + (t ≫ f) mod 2^w, which is ⌊z / 2^f⌋ or one less, because the
//! carry of the dropped bits is left out. So negative numbers are found negative. Of the others,
//! only those in [0, 2^f) may be found negative as well. Such a number becomes 0, where the
//! truncation has 0 or 1. If w + f > 64, all 64 bits of z are compared, exactly and without a
//! guard, since every number that is truncated must satisfy |z| < 2^62. If k low bits of the result
//! may also be dropped ([`Compared::dropping`]), s and t are shifted by f + k, whatever w is. For a
//! narrow sum ([`crate::Shift`]), s and t are shifted up, and f grows by the same number of bits.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** those of the sign, and 2; an affine map adds
//! none. **Bits:** those of the affine map, of the sign, of its guard, and 256.
//!
//! **Simulation.** The messages are those of the truncated product, the leaves, the guard and the
//! bit product. Each is masked by its own words, as the files of these protocols say.

use super::{Pair, PairMut, Replicated};
use crate::{Affine, Bits, Compared, Result, Tally};
use kernels::planes::words_of;
use std::mem;

pub(super) fn rectify(
    party: &mut Replicated,
    x: Pair,
    below: Option<&Bits>,
    compared: Compared,
    out: PairMut,
) -> Result<Option<Tally>> {
    let (negative, tally) = super::sign::sign(party, x, compared)?;
    super::bit_products::bit_multiply(party, &party.complement(negative.flipped(below)), x, out)?;
    Ok(tally)
}

pub(super) fn rectified_affine(
    party: &mut Replicated,
    sum: &Affine,
    compared: Compared,
    out: PairMut,
) -> Result<Option<Tally>> {
    let n = sum.elements();
    let (compared, dropped) = compared.of_summands(2, sum.shift.lifted().bits());
    let mut parameters = sum.parameters();
    parameters.extend(compared.parameters(dropped));
    party.channel.begin_of(sum.name(), n, &parameters);
    let mut sign = party.begun(n, compared, dropped);
    let [first, second] = out;
    let leaves = party.truncated_sum(
        sum.terms,
        sum.addends,
        sum.shift,
        Some(&mut sign),
        [first, second],
    )?;
    // Concurrent work may overwrite `party.kept` before this operation ends.
    let mut kept = mem::take(&mut party.kept);
    if !kept.rest.is_empty() {
        kept.truncated = vec![first.to_vec(), second.to_vec()];
    }
    let negative = party.sign_of_leaves(&leaves.expect("leaves of the sign that was begun"))?;
    party.bit_times_own(&party.complement(negative), [first, second])?;
    party.kept = kept;
    Ok(sign.tally())
}

impl Replicated {
    /// Negates each bit locally. It flips role 0's first component, which role 2 also
    /// holds.
    pub(super) fn complement(&self, bits: Bits) -> Bits {
        let (width, n) = (bits.width(), bits.len());
        let mut parts = bits.into_parts();
        let [role_0, _, role_2] = self.ranges(n);
        for (part, role) in parts.iter_mut().zip([role_0, role_2]) {
            for plane in part.chunks_exact_mut(words_of(n).max(1)) {
                for word in &mut plane[role.start / 64..][..words_of(role.len())] {
                    *word = !*word;
                }
            }
        }
        Bits::new(width, n, parts)
    }
}
