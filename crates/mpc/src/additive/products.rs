//! Products and all other bilinear maps, from correlated masks (Beaver 1991).
//!
//! **Computes** map(x, y). With masks [a], [b] and [map(a, b)] from the source, all open E = x − a and
//! D = y − b; then map(x, y) = map(x, D) + map(E, b) + map(a, b), and every party evaluates it on its
//! shares of x, b and the last term. One round, 64 bits for each element of an operand, whatever the
//! result's size.
//!
//! **Operands that are used again.** A named operand is masked and opened once; afterwards only the
//! source's product of its mask with the other one's is new. What is opened is a function of the operand
//! and its mask alone, so using it again opens nothing more; the caller warrants that a name always
//! stands for the same value ([`crate::Operand`]). So this mask is kept on purpose, beside what it has hidden
//! ([`Masked`]); all other words of the source are used once, by their types ([`crate::correlations::once`]).
//!
//! **Squares:** one mask and one opening: x² = E(x + a) + a².
//!
//! **Simulation.** E and D are masked by a and b; each new mask hides one operand.

use super::{Additive, only};
use crate::blocks;
use crate::correlations::drawn::{MaskedProduct, Squares, Triples};
use crate::correlations::job::Origin;
use crate::correlations::once::{Column, Mask};
use crate::group::Group;
use crate::{Bilinear, Error, Operand, Result};

/// An operand whose masked value is open: x − a, and this party's share of a, which has hidden its value and hides no
/// other. A named operand's goes into one product after another.
pub(super) struct Masked {
    opened: Vec<u64>,
    mask: Vec<u64>,
}

impl Additive {
    pub(super) fn product(
        &mut self,
        map: &Bilinear,
        x: &Operand,
        y: &Operand,
        out: &mut [u64],
    ) -> Result<()> {
        let (left, right, _) = map.lengths();
        if out.is_empty() || left == 0 || right == 0 {
            // A sum of no products.
            out.fill(0);
            return Ok(());
        }
        if let (Bilinear::Elementwise { n }, None, None) = (map, x.name, y.name) {
            return if std::ptr::eq(only(x.parts), only(y.parts)) {
                self.square(only(x.parts), out)
            } else {
                self.elementwise(*n, only(x.parts), only(y.parts), out)
            };
        }
        let origins = [self.origin(x, None)?, self.origin(y, Some(x))?];
        let masks = self.supply.masked_product(map, origins[0], origins[1])?;
        self.with_masks(map, x, y, masks, out)
    }

    /// Whether an operand's mask is new; `before` is the operand that is masked before it.
    fn origin(&self, operand: &Operand, before: Option<&Operand>) -> Result<Origin> {
        let Some(name) = operand.name else {
            return Ok(Origin::Fresh);
        };
        let kept = self.masked.get(&name).map(|masked| masked.mask.len());
        let same = before.filter(|before| before.name == Some(name));
        match kept.or(same.map(|before| only(before.parts).len())) {
            None => Ok(Origin::Keep(name)),
            Some(n) if n == only(operand.parts).len() => Ok(Origin::Kept(name)),
            Some(n) => Err(Error::misuse(format!(
                "operand {name} had {n} elements before; forget a name before it stands for another value"
            ))),
        }
    }

    fn with_masks(
        &mut self,
        map: &Bilinear,
        x: &Operand,
        y: &Operand,
        masks: MaskedProduct,
        out: &mut [u64],
    ) -> Result<()> {
        let x_is_new = masks.x.is_some();
        let (hidden, [of_x, of_y]) = Mask::hide_new([masks.x, masks.y], |masks| {
            let mut message = Vec::new();
            for (operand, mask) in [x, y].into_iter().zip(masks) {
                if let Some(mask) = mask {
                    let start = message.len();
                    message.extend_from_slice(only(operand.parts));
                    Group::Additive.subtract(&mut message[start..], mask);
                }
            }
            message
        });
        let mut left = self.open(Group::Additive, hidden)?;
        let right = left.split_off(if x_is_new { only(x.parts).len() } else { 0 });
        let new = [(x, of_x, left), (y, of_y, right)];
        let once = new.map(|(operand, mask, opened)| {
            let mask = mask?.into_words();
            let masked = Masked { opened, mask };
            match operand.name {
                None => Some(masked),
                Some(name) => {
                    self.masked.insert(name, masked);
                    None
                }
            }
        });
        let [of_x, of_y] = [(x, &once[0]), (y, &once[1])].map(|(operand, once)| {
            let kept = || operand.name.and_then(|name| self.masked.get(&name));
            once.as_ref()
                .or_else(kept)
                .expect("masked just now or before")
        });
        let terms = [
            (only(x.parts), &of_y.opened[..]),
            (&of_x.opened, &of_y.mask),
        ];
        map.evaluate(out, &terms);
        Column::spend([masks.product], |[c]| Group::Additive.add(out, c));
        Ok(())
    }

    fn elementwise(&mut self, n: usize, x: &[u64], y: &[u64], out: &mut [u64]) -> Result<()> {
        let Triples { a, b, product } = self.supply.triples(n)?;
        let (hidden, [_, b]) = Mask::hide([a, b], |[a, b]| {
            let mut message = vec![0; 2 * n];
            let (left, right) = message.split_at_mut(n);
            blocks::for_each(
                [left, right],
                [x, y, a, b],
                #[inline(always)]
                |_, [e, d], [x, y, a, b]| {
                    for i in 0..x.len() {
                        e[i] = x[i].wrapping_sub(a[i]);
                        d[i] = y[i].wrapping_sub(b[i]);
                    }
                },
            );
            message
        });
        let opened = self.open(Group::Additive, hidden)?;
        let (e, d) = opened.split_at(n);
        Column::spend([b, product], |[b, product]| {
            blocks::for_each(
                [out],
                [x, d, e, b, product],
                #[inline(always)]
                |_, [out], [x, d, e, b, c]| {
                    for i in 0..x.len() {
                        let both = x[i]
                            .wrapping_mul(d[i])
                            .wrapping_add(e[i].wrapping_mul(b[i]));
                        out[i] = both.wrapping_add(c[i]);
                    }
                },
            );
        });
        Ok(())
    }

    fn square(&mut self, x: &[u64], out: &mut [u64]) -> Result<()> {
        let n = x.len();
        let Squares { a, square } = self.supply.squares(n)?;
        let (hidden, [a]) = Mask::hide([a], |[a]| Group::Additive.difference(x, a));
        let opened = self.open(Group::Additive, hidden)?;
        Column::spend([a, square], |[a, square]| {
            blocks::for_each(
                [out],
                [x, &opened, a, square],
                #[inline(always)]
                |_, [out], [x, e, a, c]| {
                    for i in 0..x.len() {
                        out[i] = e[i]
                            .wrapping_mul(x[i].wrapping_add(a[i]))
                            .wrapping_add(c[i]);
                    }
                },
            );
        });
        Ok(())
    }
}
