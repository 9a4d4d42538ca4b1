//! max(x, 0), of a sharing and of an affine map whose truncation is under way.
//!
//! **Computes** x minus its negative part: the sign, then its product with x.
//!
//! **Beside the truncation** of z = Σ map(x, y) + addend·2^f the sign begins at once: both need s, known to role 0,
//! and t, known to roles 1 and 2, with s + t = z mod 2^64. Where w + f ≤ 64, the sign is taken of
//! (s ≫ f) + (t ≫ f) mod 2^w, which is ⌊z / 2^f⌋ or one less, as the carry of the dropped bits is left out. So what
//! is negative is found negative, and only what lies in [0, 2^f) may be found so as well: it becomes 0, where the
//! truncation has 0 or 1. Where w + f > 64, all 64 bits of z are compared, exactly and without a guard, as
//! |z| < 2^62 is required of whatever is truncated. Where k low bits of the result may be dropped as well
//! ([`Compared::dropping`]), s and t are shifted by f + k, whatever w is.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** those of the sign, and 2; of an affine map no more. **Bits:**
//! those of the affine map, of the sign, of its guard, and 256.
//!
//! **Simulation.** The messages are those of the truncated product, the leaves, the guard and the bit product, each
//! masked by words of its own, as their files say.

use super::products::factors;
use super::{Pair, PairMut, Replicated, pair};
use crate::group::Group;
use crate::{Affine, Compared, Result, Tally};

impl Replicated {
    pub(super) fn rectified(
        &mut self,
        x: Pair,
        compared: Compared,
        out: PairMut,
    ) -> Result<Option<Tally>> {
        let (negative, tally) = self.sign_bit(x, compared)?;
        let [first, second] = out;
        self.bit_times_word(&negative, x, [&mut *first, &mut *second])?;
        subtract_from(x, [first, second]);
        Ok(tally)
    }

    pub(super) fn rectified_sum(
        &mut self,
        sum: &Affine,
        compared: Compared,
        [first, second]: PairMut,
    ) -> Result<Option<Tally>> {
        let n = sum.elements();
        let (compared, dropped) = compared.of_summands(2, sum.shift.bits());
        let mut parameters = sum.parameters();
        parameters.extend(compared.parameters(dropped));
        self.channel.begin_of(sum.name(), n, &parameters);
        let mut sign = self.begun(n, compared, dropped);
        let mut truncated = [(); 2].map(|()| self.channel.memory(n));
        let [mine, theirs] = &mut truncated;
        let leaves = self.truncated_sum(
            &factors(sum),
            sum.addend.map(pair),
            sum.shift,
            Some(&mut sign),
            [mine, theirs],
        )?;
        let negative = self.sign_of_leaves(&leaves.expect("of the sign that was begun"))?;
        let x = [&truncated[0][..], &truncated[1]];
        self.bit_times_word(&negative, x, [&mut *first, &mut *second])?;
        subtract_from(x, [first, second]);
        for words in truncated {
            self.channel.give_back(words);
        }
        Ok(sign.tally())
    }
}

/// x − what stands there, of both components.
fn subtract_from(x: Pair, out: PairMut) {
    for (x, out) in x.into_iter().zip(out) {
        Group::Additive.subtract_from(x, out);
    }
}
