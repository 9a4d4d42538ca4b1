//! max(x, 0): x minus its negative part, which is the sign times x. Where a secret bit asks for
//! min(x, 0), the sign is
//! flipped by it before, locally: XOR of two binary sharings takes no message.
//!
//! Where the comparison is guarded, and the source makes what guards take, the selection's columns
//! are those of a guarded one ([`super::guard`]): no more is sent or opened. Elsewhere guarded
//! comparisons take 64 bits.
//!
//! **Beside the truncation** of z = Σ map(x, y) + addend·2^f between two parties, the sign begins
//! at once: its opened word travels with the truncation's opened bit. Where w + f ≤ 64, each party
//! shifts its share z_i by itself: (z_0 ≫ f) + (z_1 ≫ f) mod 2^(64−f) is ⌊z / 2^f⌋ or one less, as
//! the carry of the dropped bits is left out. So what is negative is found negative, and only what
//! lies in [0, 2^f) may be found so as well: it becomes 0, where the truncation has 0 or 1. Where
//! the sum w + f exceeds 64, all 64 bits of z are compared, exactly and without a guard, since
//! magnitudes below 2^62 are required of whatever is truncated. A guard looks at the truncated
//! number, at most two from the one that is compared: it says |x| < 1.5·2^(w−2), and a guarded
//! width is 4 at least. Where k low bits
//! of the result may be dropped as well ([`Compared::dropping`]), both shares are shifted by f + k,
//! whatever w is.
//!
//! **Rounds and bits:** those of the sign, and 1 round, 65 bits; of an affine map between two
//! parties, a round less.
//!
//! **Simulation.** The messages are those of the product, the truncation, the sign and the
//! selection, each masked by correlations of its own, as their files say.

use super::Additive;
use super::guard::Guard;
use crate::group::Group;
use crate::leaves::Wanted;
use crate::{Affine, Bits, Compared, Result, Tally};
use std::mem;

impl Additive {
    pub(super) fn rectified(
        &mut self,
        x: &[u64],
        below: Option<&Bits>,
        compared: Compared,
        out: &mut [u64],
    ) -> Result<Option<Tally>> {
        let compared = compared.with_guards(self.supply.guards());
        let (looked_at, dropped) = compared.of_summands(self.channel.parties(), 0);
        let left_out = self.sign_bit(x, looked_at, dropped)?.flipped(below);
        let guard = Guard::of(compared);
        let parameters = guard.map_or([0; 2], |guard| [guard.below, guard.reach].map(u64::from));
        self.channel.begin_of("bit product", x.len(), &parameters);
        let tally = self.select(&left_out, x, guard, out)?;
        Group::Additive.subtract_from(x, out);
        Ok(tally)
    }

    /// Of an affine map, between two parties.
    pub(super) fn rectified_sum(
        &mut self,
        sum: &Affine,
        compared: Compared,
        out: &mut [u64],
    ) -> Result<Option<Tally>> {
        let compared = compared.with_guards(self.supply.guards());
        let (looked_at, dropped) = compared.of_summands(2, sum.shift.bits());
        let guard = Guard::of(compared).filter(|_| looked_at.is_guarded());
        let mut parameters = sum.parameters();
        parameters.extend([
            looked_at.width() as u64,
            guard.map_or(0, |guard| guard.reach.into()),
            dropped.into(),
        ]);
        self.channel.begin_of(sum.name(), out.len(), &parameters);
        let is_keeping = mem::take(&mut self.is_keeping);
        if out.is_empty() {
            return Ok(None);
        }
        let z = self.summed(sum)?;
        let truncation = self.begin_between_two(&z, sum.shift.bits())?;
        let shifted: Vec<u64> = z.iter().map(|z| z >> dropped).collect();
        let leaves = self.begin_leaves(Wanted::Carry, &shifted, looked_at.width())?;
        drop(shifted);
        self.0.round()?;
        let mut x = vec![0; z.len()];
        self.end_between_two(truncation, &z, &mut x)?;
        let leaves = self.end_leaves(leaves, 0)?;
        let negative = self.sign_of_leaves(&leaves)?;
        let tally = self.select(&negative, &x, guard, out)?;
        Group::Additive.subtract_from(&x, out);
        self.leave_behind(is_keeping, &z, &x, sum.shift);
        if is_keeping {
            self.kept.truncated = vec![x];
        }
        Ok(tally)
    }
}
