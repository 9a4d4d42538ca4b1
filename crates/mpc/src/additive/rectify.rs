//! max(x, 0): x minus its negative part, which is the sign times x.
//!
//! Where the comparison is guarded, and the source makes what guards take, the selection's columns are those of a
//! guarded one ([`super::guard`]): no more is sent or opened. Elsewhere guarded comparisons take 64 bits.
//!
//! **Rounds and bits:** those of the sign, and 1 round, 65 bits.

use super::Additive;
use super::guard::Guard;
use crate::{Compared, Result, Tally, blocks};

impl Additive {
    pub(super) fn rectified(
        &mut self,
        x: &[u64],
        compared: Compared,
        out: &mut [u64],
    ) -> Result<Option<Tally>> {
        let compared = compared.with_guards(self.supply.guards());
        let negative = self.sign_bit(x, compared.width())?;
        let guard = Guard::of(compared);
        let parameters = guard.map_or([0; 2], |guard| [guard.below, guard.reach].map(u64::from));
        self.channel.begin_of("bit product", x.len(), &parameters);
        let tally = self.select(&negative, x, guard, out)?;
        subtract_from(x, out);
        Ok(tally)
    }
}

/// x − what stands there.
fn subtract_from(x: &[u64], out: &mut [u64]) {
    blocks::for_each(
        [out],
        [x],
        #[inline(always)]
        |_, [out], [x]| {
            for i in 0..out.len() {
                out[i] = x[i].wrapping_sub(out[i]);
            }
        },
    );
}
