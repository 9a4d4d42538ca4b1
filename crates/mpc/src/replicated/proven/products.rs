//! Products and all other bilinear maps, if their messages are proven ([`crate::proof`]).
//!
//! Party i sends z_i = M(x_i, y_i) + M(x_i, y_{i+1}) + M(x_{i+1}, y_i) + k_{i,i+1} − k_{i−1,i} to
//! party i − 1, as without proofs ([`crate::replicated::products`]). Of this, its left verifier, party i − 1,
//! lacks the two mixed products and the first mask; its right verifier knows that mask. So the two
//! mixed products are the terms of an equation for each output.
//!
//! The summands of several maps are sent apart, in one round. So are the pieces of an inner product
//! that is too long for one proof.
//!
//! A truncation follows in rounds of its own ([`super::truncation`]). Each summand was just
//! masked, so the sharing is uniform.

use super::record::{LONGEST, Ledger};
use super::spread::Spread;
use crate::blocks;
use crate::group::Group;
use crate::replicated::products::forms;
use crate::replicated::roles::Masks;
use crate::replicated::{Pair, PairMut, Replicated, pair};
use crate::{Addend, Affine, Bilinear, Operand, Result, Shift, Term};
use kernels::device;
use kernels::parallel::Rates;

/// A map of a piece of inner products, with copies of this piece of both factors.
struct Piece {
    map: Bilinear,
    x: [Vec<u64>; 2],
    y: [Vec<u64>; 2],
}

/// Computes an affine map.
pub(in crate::replicated) fn affine(
    party: &mut Replicated,
    sum: &Affine,
    out: PairMut,
) -> Result<()> {
    party
        .channel
        .begin_of(sum.name(), sum.elements(), &sum.parameters());
    party.proven_sum(sum.terms, sum.addends, sum.shift, out)
}

impl Replicated {
    /// Computes the sum of products and of addends·2^shift, and truncates it, as part of the step
    /// that is under way.
    pub(in crate::replicated) fn proven_sum(
        &mut self,
        terms: &[Term],
        addends: &[Addend],
        shift: Shift,
        out: PairMut,
    ) -> Result<()> {
        let wanted = self.wanted(shift);
        let n = out[0].len();
        let mut total = [vec![0; n], vec![0; n]];
        self.proven_products(terms, total.each_mut().map(Vec::as_mut_slice))?;
        for (component, total) in total.iter_mut().enumerate() {
            for addend in addends {
                addend.add_to(total, 0, component, shift.bits());
            }
        }
        self.proven_truncation([&total[0], &total[1]], true, wanted, out)
    }

    /// Computes the sum of products, as part of the step that is under way.
    pub(in crate::replicated) fn proven_products(
        &mut self,
        terms: &[Term],
        [first, second]: PairMut,
    ) -> Result<()> {
        let pieces: Vec<Vec<Piece>> = terms.iter().map(pieces).collect();
        let borrowed: Vec<Vec<[Pair; 2]>> = pieces
            .iter()
            .map(|pieces| pieces.iter().map(Piece::factors).collect())
            .collect();
        let mut all = Vec::with_capacity(terms.len());
        for (term, (pieces, borrowed)) in terms.iter().zip(pieces.iter().zip(&borrowed)) {
            if pieces.is_empty() {
                all.push(*term);
            }
            all.extend(pieces.iter().zip(borrowed).map(|(piece, [x, y])| Term {
                map: piece.map,
                x: Operand::once(x),
                y: Operand::once(y),
            }));
        }
        for term in &all {
            Ledger::check(&term.map)?;
        }
        let n = first.len();
        let mut masks = Vec::with_capacity(all.len());
        for (at, term) in all.iter().enumerate() {
            if at == 0 {
                masks.push(self.send_product(term, first)?);
                continue;
            }
            let mut more = vec![0; n];
            masks.push(self.send_product(term, &mut more)?);
            Group::Additive.add(first, &more);
        }
        self.0.round()?;
        let after = self.after();
        for (at, (term, zero)) in all.iter().zip(masks).enumerate() {
            let theirs = self.channel.receive(after, n)?;
            match at {
                0 => second.copy_from_slice(&theirs),
                _ => Group::Additive.add(second, &theirs),
            }
            self.record_product(term, &theirs, &zero)?;
            self.channel.give_back(theirs);
        }
        self.recorded()
    }

    /// Records the equations of a product. `theirs` is the next party's message. Of a sum of
    /// products, the proof takes away what the left verifier knows whole.
    fn record_product(&mut self, term: &Term, theirs: &[u64], zero: &Masks) -> Result<()> {
        let map = &term.map;
        let n = theirs.len();
        let [mut left, mut right] = [vec![0; n], vec![0; n]];
        if !Ledger::takes_own_away(map) {
            let [[_, x, _], [_, y, _]] = [&term.x, &term.y].map(forms);
            let term = device::Term { x, y };
            let computed = self.device.bilinear(map, &mut left, &[term]);
            computed.map_err(|error| self.channel.device_failed(error))?;
        }
        let rates = Rates {
            outputs: [64; 2],
            inputs: [64],
        };
        blocks::for_each_packed(
            n,
            rates,
            [&mut left, &mut right],
            [theirs],
            #[inline(always)]
            |offset, [left, right], [theirs], [mask]| {
                let mask = &mut mask[..theirs.len()];
                zero.with_next.fill(offset, mask);
                zero.with_previous.fill(offset, right);
                for i in 0..theirs.len() {
                    left[i] = theirs[i].wrapping_sub(left[i]).wrapping_add(mask[i]);
                    right[i] = right[i].wrapping_neg();
                }
            },
        );
        let [x, y] = [term.x, term.y].map(|operand| pair(operand.parts));
        if let Some(verifying) = &mut self.0.verifying {
            verifying.record.words.map(map, x, y, [&left, &right]);
        }
        if Spread::is_better(map) {
            // Squares take other equations. Parties whose programs differ in this have diverged:
            // their proofs would fail, and they would accuse each other.
            self.channel.note(&[Spread::is_square(map, x, y).into()]);
        }
        Ok(())
    }
}

impl Piece {
    fn factors(&self) -> [Pair<'_>; 2] {
        [&self.x, &self.y].map(|parts| parts.each_ref().map(Vec::as_slice))
    }
}

/// Splits the inner products of matrices if they are too long. Returns nothing if they are not.
fn pieces(Term { map, x, y }: &Term) -> Vec<Piece> {
    let (Bilinear::Matrix { batch, m, k, n } | Bilinear::ByTransposed { batch, m, k, n }) = *map
    else {
        return Vec::new();
    };
    if k <= LONGEST || Spread::is_better(map) {
        return Vec::new();
    }
    // Of rows of a number of words, the words of a piece.
    let cut = |words: &[u64], row: usize, from: usize, count: usize| -> Vec<u64> {
        let rows = words.chunks_exact(row);
        rows.flat_map(|row| &row[from..from + count])
            .copied()
            .collect()
    };
    let piece = |from: usize| {
        let k_of_piece = LONGEST.min(k - from);
        let (map, row, size) = match map {
            Bilinear::Matrix { .. } => (
                Bilinear::Matrix {
                    batch,
                    m,
                    k: k_of_piece,
                    n,
                },
                k * n,
                n,
            ),
            _ => (
                Bilinear::ByTransposed {
                    batch,
                    m,
                    k: k_of_piece,
                    n,
                },
                k,
                1,
            ),
        };
        Piece {
            map,
            x: pair(x.parts).map(|x| cut(x, k, from, k_of_piece)),
            y: pair(y.parts).map(|y| cut(y, row, from * size, k_of_piece * size)),
        }
    };
    (0..k).step_by(LONGEST).map(piece).collect()
}
