//! Residues of the operands of a product that is checked, among more than two parties.
//!
//! **Computes** what [`crate::checks`] would otherwise lift and multiply. A product opens E = x − a.
//! With r = −a and c = E + 2^62, this is c = x + 2^62 + r modulo 2^64, as truncations open it
//! ([`super::truncation`]). So for |x| < 2^62, x = k − u over the integers, where k = c − 2^62 is
//! public and
//!
//! u = r − R(1 − C)·2^64,
//!
//! with the highest bits R of r and C of c. A dealer shares r and R modulo p. In the same way y =
//! l − v, where v is made of s = −b and its highest bit S. Then xy = kl − kv − lu + uv, and
//!
//! uv = rs − (1 − D)·2^64·rS − (1 − C)·2^64·Rs + (1 − C)(1 − D)·2^128·RS,
//!
//! where D is the bit C of y. A dealer shares rs, rS, Rs and RS modulo p too. For a square, R² = R.
//!
//! **Rounds and bits:** none.
//!
//! **Simulation.** Nothing is opened. The shares of the residues are as uniform as any others.

use crate::blocks;
use crate::correlations::once::Column;
use crate::residues::{self, ROUND, add, multiply, product, subtract};

/// What is public of a masked operand: k modulo p, and 2^64 modulo p if C is 0.
#[inline(always)]
fn known(opened: u64) -> (u64, u64) {
    let c = opened.wrapping_add(1 << 62);
    let k = subtract(residues::of_word(c), residues::power_of_two(62));
    (k, ROUND * (1 - (c >> 63)))
}

/// Returns u from shares of r and R.
#[inline(always)]
fn masked(r: u64, top: u64, round: u64) -> u64 {
    // The product has few more bits than a residue, since `round` has three.
    subtract(r, residues::of_word(round * top))
}

/// Returns this party's summands of the residues of operands, from E and the columns r and R.
pub(super) fn of_opened(opened: &[u64], columns: [Column; 2], is_first: bool) -> Vec<u64> {
    let mut out = vec![0; opened.len()];
    Column::spend(columns, |[r, top]| {
        blocks::for_each(
            [&mut out],
            [opened, r, top],
            #[inline(always)]
            |_, [out], [opened, r, top]| {
                for i in 0..out.len() {
                    let (k, round) = known(opened[i]);
                    let k = if is_first { k } else { 0 };
                    out[i] = subtract(k, masked(r[i], top[i], round));
                }
            },
        );
    });
    out
}

/// Returns this party's summands of the residues of products, from E and D, and from the columns r,
/// R, s, S, rs, rS, Rs and RS.
pub(super) fn of_products([e, d]: [&[u64]; 2], columns: [Column; 8], is_first: bool) -> Vec<u64> {
    let mut out = vec![0; e.len()];
    Column::spend(
        columns,
        |[r, r_top, s, s_top, rs, r_s_top, r_top_s, tops]| {
            blocks::for_each(
                [&mut out],
                [e, d, r, r_top, s, s_top, rs, r_s_top, r_top_s, tops],
                #[inline(always)]
                |_, [out], [e, d, r, r_top, s, s_top, rs, r_s_top, r_top_s, tops]| {
                    for i in 0..out.len() {
                        let ((k, left), (l, right)) = (known(e[i]), known(d[i]));
                        let (u, v) = (masked(r[i], r_top[i], left), masked(s[i], s_top[i], right));
                        // Each summand has at most 36 bits.
                        let both = rs[i] + left * right * tops[i];
                        let mixed = residues::of_word(right * r_s_top[i] + left * r_top_s[i]);
                        let of_masks = subtract(residues::of_word(both), mixed);
                        let other = if is_first {
                            subtract(l, v)
                        } else {
                            subtract(0, v)
                        };
                        let outer = residues::folded(product(k, other));
                        let inner = residues::folded(product(l, subtract(0, u)));
                        out[i] = residues::of_word(outer + inner + of_masks);
                    }
                },
            );
        },
    );
    out
}

/// Returns this party's summands of the residues of squares, from E and the columns r, R, r² and
/// rR.
pub(super) fn of_squares(e: &[u64], columns: [Column; 4], is_first: bool) -> Vec<u64> {
    let mut out = vec![0; e.len()];
    Column::spend(columns, |[r, top, squared, with_top]| {
        blocks::for_each(
            [&mut out],
            [e, r, top, squared, with_top],
            #[inline(always)]
            |_, [out], [e, r, top, squared, with_top]| {
                for i in 0..out.len() {
                    let (k, round) = known(e[i]);
                    let u = masked(r[i], top[i], round);
                    // u² = r² − 2·round·rR + round²·R. Each summand has at most 36 bits.
                    let both = residues::of_word(squared[i] + round * round * top[i]);
                    let of_masks = subtract(both, residues::of_word(2 * round * with_top[i]));
                    let twice = multiply(k, add(u, u));
                    let square = if is_first { multiply(k, k) } else { 0 };
                    out[i] = add(subtract(square, twice), of_masks);
                }
            },
        );
    });
    out
}
