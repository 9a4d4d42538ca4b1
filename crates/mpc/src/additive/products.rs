//! Products and all other bilinear maps, from correlated masks (Beaver 1991).
//!
//! **Computes** map(x, y). With masks [a], [b] and [map(a, b)] from the source, all parties open
//! E = x − a and D = y − b. Then map(x, y) = map(x, D) + map(E, b) + map(a, b), and every party
//! evaluates this on its shares of x, b and the last term. One round, 64 bits for each element of
//! an operand, whatever the size of the result.
//!
//! **Operands that are used again.** A named operand is masked and opened once. A later product
//! needs only a new product, from the source, of its mask with the other operand's mask. The opened
//! value is a function of the operand and its mask alone, so using it again opens nothing more. The
//! caller guarantees that a name always stands for the same value ([`crate::Operand`]). So the
//! protocol keeps this mask on purpose, next to the value that it has masked ([`Masked`]). The
//! types ensure that all other words of the source are used once ([`crate::correlations::once`]).
//!
//! If several fibers multiply by one operand ([`crate::fibers`]), the first masks it, and the
//! others wait until it is open. Each fiber has a turn between two turns of any other. So an
//! opening that was under way when a product began is complete when the product ends.
//!
//! **Sums** of maps ([`crate::Affine`]) are opened together: one round, whatever the number of
//! maps.
//!
//! **Squares:** one mask and one opening: x² = E(x + a) + a².
//!
//! **Products that are checked** among more than two parties also give residues ([`residues`]).
//! Nothing more is opened for them.
//!
//! **Simulation.** E and D are masked by a and b; each new mask hides one operand.

use super::residues;
use super::{Additive, only};
use crate::blocks;
use crate::checking::Factors;
use crate::correlations::drawn::{Squares, Triples};
use crate::correlations::job::Origin;
use crate::correlations::once::{Column, Hidden, Mask};
use crate::group::Group;
use crate::operand::Resident;
use crate::{Affine, Bilinear, Error, Name, Operand, Result, Term};
use kernels::device;
use std::sync::Arc;

/// Operand whose masked value x − a is open, with this party's share of a. The mask has hidden this
/// value and hides no other. A named operand's entry is used in one product after another.
pub(super) struct Masked {
    opened: Vec<u64>,
    mask: Vec<u64>,
}

impl Masked {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.mask.len()
    }
}

/// Correlations that a product needs once its masked operands are open.
enum Begun {
    /// Products of pairs of words, with residues if they are checked.
    Each {
        b: Column,
        product: Column,
        residues: Option<[Column; 8]>,
    },
    /// Product of words with themselves, with residues if it is checked.
    Square {
        a: Column,
        square: Column,
        residues: Option<[Column; 4]>,
    },
    /// Product of any operands, with the masks of those that are newly masked, and with the
    /// residues of these masks if it is checked.
    Masked {
        masks: [Option<Column>; 2],
        product: Column,
        residues: [Option<[Column; 2]>; 2],
    },
}

impl Additive {
    /// Computes the sum of all maps. A sum of no products is zero. Returns the residues that each
    /// product gives for its check, if it is to keep them and there are more than two parties.
    pub(super) fn products(
        &mut self,
        terms: &[Term],
        is_keeping: bool,
        out: &mut [u64],
    ) -> Result<Vec<Factors>> {
        let is_checked = is_keeping && self.channel.parties() > 2;
        let mut factors = Vec::new();
        if is_checked {
            factors.resize_with(terms.len(), Factors::default);
        }
        let (mut begun, mut hidden) = (Vec::with_capacity(terms.len()), Vec::new());
        for (which, term) in terms.iter().enumerate() {
            let (left, right, n) = term.map.lengths();
            if n > 0 && left > 0 && right > 0 {
                let (message, product) = self.begin(term, is_checked)?;
                hidden.push(message);
                begun.push((which, product));
            }
        }
        let mut lengths = Vec::with_capacity(hidden.len());
        let message = match hidden.len() {
            0 => {
                out.fill(0);
                return Ok(factors);
            }
            1 => hidden.swap_remove(0),
            _ => Hidden::pack(hidden, |all| {
                lengths.extend(all.iter().map(|words| words.len()));
                all.concat()
            }),
        };
        let opened = self.open(Group::Additive, message)?;
        if opened.is_empty() {
            self.wait_for_others(terms)?;
        }
        let mut rest = &opened[..];
        for (at, (which, product)) in begun.into_iter().enumerate() {
            let (mine, others) = rest.split_at(lengths.get(at).copied().unwrap_or(rest.len()));
            rest = others;
            let term = &terms[which];
            let given = if at == 0 {
                self.end(term, product, mine, out)?
            } else {
                let mut more = vec![0; out.len()];
                let given = self.end(term, product, mine, &mut more)?;
                Group::Additive.add(out, &more);
                given
            };
            if is_checked {
                factors[which] = given;
            }
        }
        Ok(factors)
    }

    /// Computes the sum that an affine map truncates, with what its products give for its check.
    pub(super) fn summed(
        &mut self,
        sum: &Affine,
        is_keeping: bool,
    ) -> Result<(Vec<u64>, Vec<Factors>)> {
        let mut total = vec![0; sum.elements()];
        let factors = self.products(sum.terms, is_keeping, &mut total)?;
        if !sum.addends.is_empty() {
            let bits = sum.shift.bits();
            blocks::for_each(
                [&mut total],
                [],
                #[inline(always)]
                |offset, [total], []| {
                    for addend in sum.addends {
                        addend.add_to(total, offset, 0, bits);
                    }
                },
            );
        }
        Ok((total, factors))
    }

    /// Waits a turn if these products take operands that other fibers are opening. It is needed
    /// only if this fiber opened nothing itself: an opening would have waited for that turn
    /// already.
    fn wait_for_others(&mut self, terms: &[Term]) -> Result<()> {
        let mut names = terms.iter().flat_map(|term| [term.x.name, term.y.name]);
        if names.any(|name| name.is_some_and(|name| self.opening.contains_key(&name))) {
            self.0.round()?;
        }
        Ok(())
    }

    /// Draws the masks of a product. Returns the message to open and the correlations needed
    /// afterwards.
    fn begin(&mut self, Term { map, x, y }: &Term, is_checked: bool) -> Result<(Hidden, Begun)> {
        if multiplies_pairs(map, [x, y], is_checked) {
            return if std::ptr::eq(only(x.parts), only(y.parts)) {
                self.begin_square(only(x.parts), is_checked)
            } else {
                self.begin_each([x, y].map(|operand| only(operand.parts)), is_checked)
            };
        }
        let origins = self.origins([x, y])?;
        let masks = self.supply.masked_product(map, origins, is_checked)?;
        let (product, residues) = (masks.product, masks.residues);
        let (hidden, masks) = Mask::hide_new([masks.x, masks.y], |masks| {
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
        let begun = Begun::Masked {
            masks,
            product,
            residues,
        };
        Ok((hidden, begun))
    }

    /// Computes a product from its opened operands. Returns the residues that it gives.
    fn end(
        &mut self,
        Term { map, x, y }: &Term,
        begun: Begun,
        opened: &[u64],
        out: &mut [u64],
    ) -> Result<Factors> {
        let (is_first, words) = (self.is_first(), only(x.parts));
        let given = |products: Option<Vec<u64>>| Factors {
            products: products.map(|products| vec![products]),
            ..Factors::default()
        };
        let (masks, product, residues) = match begun {
            Begun::Each {
                b,
                product,
                residues,
            } => {
                summed_up(words.len(), out, |out| {
                    end_each(words, opened, [b, product], out);
                });
                let products = residues.map(|columns| {
                    let (e, d) = opened.split_at(words.len());
                    residues::of_products([e, d], columns, is_first)
                });
                return Ok(given(products));
            }
            Begun::Square {
                a,
                square,
                residues,
            } => {
                summed_up(words.len(), out, |out| {
                    end_square(words, opened, [a, square], out);
                });
                let squares =
                    residues.map(|columns| residues::of_squares(opened, columns, is_first));
                return Ok(given(squares));
            }
            Begun::Masked {
                masks,
                product,
                residues,
            } => (masks, product, residues),
        };
        let of_left = masks[0].as_ref().map_or(0, |_| words.len());
        let (left, right) = opened.split_at(of_left);
        let lift = |opened: &[u64], columns: Option<[Column; 2]>| {
            columns.map(|columns| Arc::new(vec![residues::of_opened(opened, columns, is_first)]))
        };
        let [of_x, of_y] = residues;
        let operands = [lift(left, of_x), lift(right, of_y)];
        let mut once = [None, None];
        let new = [(x, left), (y, right)].into_iter().zip(masks);
        for (((operand, opened), mask), once) in new.zip(&mut once) {
            match (operand.name, mask.map(Column::into_words)) {
                (Some(name), Some(mask)) => {
                    let opened = opened.to_vec();
                    self.opening.remove(&name);
                    self.masked.insert(name, Masked { opened, mask });
                }
                (_, mask) => *once = mask.map(|mask| (opened, mask)),
            }
        }
        let of_x = self.open_part(x, once[0].as_ref())?;
        let of_y = self.open_part(y, once[1].as_ref())?;
        let named = |words, part: Resident, operand: &Operand| {
            device::Operand::of(words).named(part.of(operand.name))
        };
        let of_share = device::Term {
            x: named(words, Resident::First, x),
            y: named(of_y.0, Resident::Opened, y),
        };
        let of_mask = device::Term {
            x: named(of_x.0, Resident::Opened, x),
            y: named(of_y.1, Resident::Mask, y),
        };
        let computed = self.device.bilinear(map, out, &[of_share, of_mask]);
        computed.map_err(|error| self.channel.device_failed(error))?;
        Column::spend([product], |[c]| Group::Additive.add(out, c));
        Ok(Factors {
            operands,
            products: None,
        })
    }

    /// Returns the opened value of an operand and its mask: new in this product, or kept from
    /// before.
    fn open_part<'a>(
        &'a self,
        operand: &Operand,
        once: Option<&'a (&[u64], Vec<u64>)>,
    ) -> Result<(&'a [u64], &'a [u64])> {
        if let Some((opened, mask)) = once {
            return Ok((opened, mask));
        }
        let masked = operand.name.and_then(|name| self.masked.get(&name));
        let failed = || Error::misuse("the operation that was opening an operand has failed");
        let Masked { opened, mask } = masked.ok_or_else(failed)?;
        Ok((opened, mask))
    }

    /// Returns whether the mask of each operand is new.
    fn origins(&mut self, operands: [&Operand; 2]) -> Result<[Origin; 2]> {
        let mut found = [Origin::Fresh; 2];
        let mut new: Option<(Name, usize)> = None;
        for (operand, origin) in operands.into_iter().zip(&mut found) {
            let Some(name) = operand.name else { continue };
            let length = only(operand.parts).len();
            let kept = self.masked.get(&name).map(|masked| masked.mask.len());
            let opening = new.filter(|new| new.0 == name).map(|new| new.1);
            let opening = opening.or_else(|| self.opening.get(&name).copied());
            *origin = match kept.or(opening) {
                None => Origin::Keep(name),
                Some(n) if n == length => Origin::Kept(name),
                Some(n) => {
                    return Err(renamed(name, n));
                }
            };
            new = Some((name, length));
        }
        for (operand, origin) in operands.into_iter().zip(&found) {
            if let Origin::Keep(name) = origin {
                self.opening.insert(*name, only(operand.parts).len());
            }
        }
        Ok(found)
    }

    fn begin_each(&mut self, [x, y]: [&[u64]; 2], is_checked: bool) -> Result<(Hidden, Begun)> {
        let n = x.len();
        let (Triples { a, b, product }, residues) = if is_checked {
            let checked = self.supply.checked_triples(n)?;
            (checked.triples, Some(checked.residues))
        } else {
            (self.supply.triples(n)?, None)
        };
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
        let begun = Begun::Each {
            b,
            product,
            residues,
        };
        Ok((hidden, begun))
    }

    fn begin_square(&mut self, x: &[u64], is_checked: bool) -> Result<(Hidden, Begun)> {
        let (Squares { a, square }, residues) = if is_checked {
            let checked = self.supply.checked_squares(x.len())?;
            (checked.squares, Some(checked.residues))
        } else {
            (self.supply.squares(x.len())?, None)
        };
        let (hidden, [a]) = Mask::hide([a], |[a]| Group::Additive.difference(x, a));
        let begun = Begun::Square {
            a,
            square,
            residues,
        };
        Ok((hidden, begun))
    }
}

/// Error for a name that now stands for a different value than before.
pub(super) fn renamed(name: Name, before: usize) -> Error {
    Error::misuse(format!(
        "operand {name} had {before} elements before; forget a name before it stands for another \
         value"
    ))
}

/// Returns whether a product is computed from products of pairs of words: an elementwise product,
/// and sums of these that are checked, whose pairs give residues. Operands with names are not.
pub(super) fn multiplies_pairs(map: &Bilinear, [x, y]: [&Operand; 2], is_checked: bool) -> bool {
    let is_elementwise = matches!(map, Bilinear::Elementwise { .. });
    let has_pairs = is_elementwise || (is_checked && map.inner_products().is_some());
    has_pairs && x.name.is_none() && y.name.is_none()
}

/// Writes the sums of `n / out.len()` consecutive products each.
fn summed_up(n: usize, out: &mut [u64], products: impl FnOnce(&mut [u64])) {
    if n == out.len() {
        return products(out);
    }
    let mut each = vec![0; n];
    products(&mut each);
    let sums = each.chunks_exact(n / out.len());
    for (out, each) in out.iter_mut().zip(sums) {
        *out = each.iter().fold(0, |sum, word| sum.wrapping_add(*word));
    }
}

fn end_each(x: &[u64], opened: &[u64], columns: [Column; 2], out: &mut [u64]) {
    let (e, d) = opened.split_at(x.len());
    Column::spend(columns, |[b, product]| {
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
}

fn end_square(x: &[u64], opened: &[u64], columns: [Column; 2], out: &mut [u64]) {
    Column::spend(columns, |[a, square]| {
        blocks::for_each(
            [out],
            [x, opened, a, square],
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
}
