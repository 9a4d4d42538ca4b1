//! Compositions of operations one after another, for protocols without a faster combined form.

use crate::group::Group;
use crate::{Affine, Bits, Compared, Parts, PartsMut, Protocol, Result, Tally};

/// Computes [`Protocol::affine`] from products and one truncation.
pub(crate) fn affine(protocol: &mut dyn Protocol, sum: &Affine, out: PartsMut) -> Result<()> {
    let n = sum.elements();
    if let [only] = sum.terms {
        protocol.bilinear(&only.map, only.x, only.y, Some(sum.shift), out)?;
    } else {
        let mut total = vec![vec![0; n]; protocol.parts()];
        for term in sum.terms {
            let mut product = vec![vec![0; n]; protocol.parts()];
            let mut slices: Vec<&mut [u64]> = product.iter_mut().map(Vec::as_mut_slice).collect();
            protocol.bilinear(&term.map, term.x, term.y, None, &mut slices)?;
            for (total, product) in total.iter_mut().zip(&product) {
                Group::Additive.add(total, product);
            }
        }
        let total: Vec<&[u64]> = total.iter().map(Vec::as_slice).collect();
        protocol.truncate(&total, sum.shift, out)?;
    }
    // Addends are whole units of the result, so they are added after the truncation.
    for (component, out) in out.iter_mut().enumerate() {
        for addend in sum.addends {
            addend.add_to(out, 0, component, 0);
        }
    }
    Ok(())
}

/// Computes [`Protocol::rectified_affine`] by [`Protocol::affine`] and [`Protocol::rectify`].
pub(crate) fn rectified_affine(
    protocol: &mut dyn Protocol,
    sum: &Affine,
    compared: Compared,
    out: PartsMut,
) -> Result<Option<Tally>> {
    let mut truncated = vec![vec![0; sum.elements()]; protocol.parts()];
    let mut slices: Vec<&mut [u64]> = truncated.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.affine(sum, &mut slices)?;
    // While this fiber waits for messages, another one may keep its own data.
    let kept = protocol.checking().and_then(|checking| checking.kept());
    let slices: Vec<&[u64]> = truncated.iter().map(Vec::as_slice).collect();
    let tally = protocol.rectify(&slices, None, compared, out)?;
    if let (Some(mut kept), Some(checking)) = (kept, protocol.checking()) {
        if !kept.rest.is_empty() {
            kept.truncated = truncated;
        }
        checking.put_back(kept);
    }
    Ok(tally)
}

/// Computes [`Protocol::rectify`] for a width that is proved to be enough: x minus the part that is
/// left out, which is its negative part, or its positive part where `below` is set.
pub(crate) fn rectify(
    protocol: &mut dyn Protocol,
    x: Parts,
    below: Option<&Bits>,
    width: usize,
    out: PartsMut,
) -> Result<()> {
    let left_out = protocol.sign(x, width)?.flipped(below);
    protocol.bit_multiply(&left_out, x, out)?;
    for (out, x) in out.iter_mut().zip(x) {
        out.iter_mut()
            .zip(*x)
            .for_each(|(out, x)| *out = x.wrapping_sub(*out));
    }
    Ok(())
}
