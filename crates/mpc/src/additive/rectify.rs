//! max(x, 0), computed as x minus its negative part, which is the sign times x.
//!
//! If a secret bit asks for min(x, 0), it first flips the sign locally: XOR of two binary sharings
//! needs no message.
//!
//! If the comparison is guarded, and the source makes the correlations that guards take, the
//! selection uses guarded columns ([`super::guard`]). Nothing more is sent or opened. Otherwise
//! guarded comparisons compare 64 bits.
//!
//! **In parallel with the truncation** of z = Σ map(x, y) + addend·2^f between two parties, the
//! sign begins at once: its first message travels with the truncation's opened bit. If w + f ≤ 64,
//! each party shifts its share z_i locally. Then (z_0 ≫ f) + (z_1 ≫ f) mod 2^(64−f) is ⌊z / 2^f⌋ or
//! one less, because the carry of the dropped bits is left out. So negative numbers are found
//! negative. Of the others, only those in [0, 2^f) may be found negative as well. Such a number
//! becomes 0, where the truncation has 0 or 1. If w + f exceeds 64, all 64 bits of z are compared,
//! exactly and without a guard, since every number that is truncated must be below 2^62 in
//! magnitude. A guard looks at the truncated number, which differs by at most two from the number
//! that is compared. The guard says |x| < 1.5·2^(w−2), and a guarded width is at least 4. If k low
//! bits of the result may also be dropped ([`Compared::dropping`]), both shares are shifted by f +
//! k, whatever w is.
//!
//! **Rounds and bits:** those of the sign, and 1 round, 65 bits. For an affine map between two
//! parties, one round less.
//!
//! **Simulation.** The messages are those of the product, the truncation, the sign and the
//! selection. Each is masked by its own correlations, as the files of these protocols say.

use super::Additive;
use super::guard::Guard;
use super::parts::of_part;
use crate::bits::one_plane;
use crate::checking::{Kept, only_summand};
use crate::group::Group;
use crate::leaves::Wanted;
use crate::{Affine, Bits, Compared, Protocol, Result, Tally};
use std::mem;
use std::ops::Range;

pub(super) fn rectify(
    party: &mut Additive,
    x: &[u64],
    below: Option<&Bits>,
    compared: Compared,
    out: &mut [u64],
) -> Result<Option<Tally>> {
    let compared = compared.with_guards(party.supply.guards());
    let (inspected, dropped) = compared.of_summands(party.channel.parties(), 0);
    let left_out = super::sign::sign(party, x, inspected, dropped)?.flipped(below);
    let guard = Guard::of(compared);
    let parameters = guard.map_or([0; 2], |guard| [guard.below, guard.reach].map(u64::from));
    party.channel.begin_of("bit product", x.len(), &parameters);
    let tally = party.select(&left_out, x, guard, out)?;
    Group::Additive.subtract_from(x, out);
    Ok(tally)
}

/// Rectifies numbers in parts, which only comparisons without guards take.
pub(super) fn in_parts(
    party: &mut Additive,
    parts: &[Range<usize>],
    x: &[u64],
    below: Option<&Bits>,
    compared: Compared,
    out: &mut [u64],
) -> Result<()> {
    assert!(
        below.is_none_or(|below| one_plane(below) == x.len()),
        "a bit for each number"
    );
    let part = |range: &Range<usize>| {
        let below = below.map(|below| of_part(below, range));
        (x[range.clone()].to_vec(), below, compared)
    };
    let inputs = parts.iter().map(part).collect();
    let whole = |protocol: &mut dyn Protocol| {
        let mut out = vec![0; x.len()];
        let out = &mut [&mut out[..]];
        protocol.rectify(&[x], below, compared, out).map(drop)
    };
    let rectified = party.in_parts(inputs, whole, |protocol, (x, below, compared)| {
        let mut out = vec![0; x.len()];
        protocol.rectify(&[x], below.as_ref(), *compared, &mut [&mut out])?;
        Ok(out)
    })?;
    for (range, part) in parts.iter().zip(rectified) {
        out[range.clone()].copy_from_slice(&part);
    }
    Ok(())
}

/// Computes a rectified affine map between two parties.
pub(super) fn rectified_affine(
    party: &mut Additive,
    sum: &Affine,
    compared: Compared,
    out: &mut [u64],
) -> Result<Option<Tally>> {
    let compared = compared.with_guards(party.supply.guards());
    let (inspected, dropped) = compared.of_summands(2, sum.shift.bits());
    let guard = Guard::of(compared).filter(|_| inspected.is_guarded());
    let mut parameters = sum.parameters();
    parameters.extend([
        inspected.width() as u64,
        guard.map_or(0, |guard| guard.reach.into()),
        dropped.into(),
    ]);
    party.channel.begin_of(sum.name(), out.len(), &parameters);
    let is_keeping = mem::take(&mut party.is_keeping);
    if out.is_empty() {
        return Ok(None);
    }
    let (z, _) = party.summed(sum, false)?;
    let truncation = party.begin_between_two(&z, sum.shift.bits())?;
    let shifted: Vec<u64> = z.iter().map(|z| z >> dropped).collect();
    let leaves = party.begin_leaves(Wanted::Carry, &shifted, inspected.width(), 0)?;
    drop(shifted);
    party.0.round()?;
    let mut x = vec![0; z.len()];
    party.end_between_two(truncation, &z, &mut x)?;
    let leaves = party.end_leaves(leaves)?;
    let negative = party.sign_of_leaves(&leaves)?;
    let tally = party.select(&negative, &x, guard, out)?;
    Group::Additive.subtract_from(&x, out);
    party.kept = Kept::default();
    if is_keeping {
        party.kept.rest = only_summand(party.rest_of(&z, sum.shift.bits()));
        party.kept.truncated = vec![x];
    }
    Ok(tally)
}
