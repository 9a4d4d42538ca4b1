//! Relations between messages and what their sender holds, as equations.
//!
//! The sender P of a message has a *left* half of the relation, which its left verifier knows too,
//! and a *right* half, which its right verifier knows. Each function here computes a half: factors
//! and constants. The equation is Σ left factor · right factor = left constant + right constant.
//!
//! **A shared bit** is the XOR of a bit of the left half and one of the right half. If P sends a
//! bit masked to its right verifier, with a mask that its left verifier knows, then the two halves
//! are the mask and the message.
//!
//! **Carries** of X + Y, where X is of the left half and Y of the right one: c_{b+1} = X_b·Y_b ⊕
//! c_b·(X_b ⊕ Y_b), with c_0 = 0. Every carry is a shared bit. Then c_{b+1} = X_b·(Y_b ⊕ μ_b) ⊕
//! ρ_b·Y_b, up to products of which one half knows both factors.
//!
//! **Products** of shared bits: (a ⊕ a')(b ⊕ b') = a·b' ⊕ b·a' ⊕ a·b ⊕ a'·b'.
//!
//! **A shared bit modulo p = 2^31 − 1** is a residue that P sends masked to its right verifier, with
//! a mask that its left verifier knows: the sum of the mask α and the message a. If the shared bit
//! is ρ ⊕ μ, then α + a = ρ + μ − 2ρμ.
//!
//! **Selection** of one of three words by (v1, v2), of which at most one is set: each bit of the
//! result is q ⊕ v1·(q ⊕ q1) ⊕ v2·(q ⊕ q2), where one half knows the words and the other knows v.

use crate::bits::bit_at;
use crate::group::Group;
use crate::replicated::Pair;
use crate::residues;
use kernels::planes::{split, words_of};

/// The role of a party in the proof of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::replicated) enum Role {
    Prover,
    LeftVerifier,
    RightVerifier,
}

/// A half of a relation.
#[derive(Default)]
pub(in crate::replicated) struct Half {
    pub factors: Vec<Vec<u64>>,
    pub constants: Vec<u64>,
}

/// Splits the lowest `width` bits of words into planes.
pub(in crate::replicated) fn planes_of(words: &[u64], width: usize) -> Vec<u64> {
    let mut planes = vec![0; width * words_of(words.len())];
    split(words, width, &mut planes);
    planes
}

/// Computes the carries out of the bits of two summands, both given as planes of `stride` words.
pub(in crate::replicated) fn carries([x, y]: Pair, stride: usize) -> Vec<u64> {
    let mut carries = vec![0; x.len()];
    for at in 0..x.len() {
        let carry = if at < stride { 0 } else { carries[at - stride] };
        carries[at] = (x[at] & y[at]) ^ (carry & (x[at] ^ y[at]));
    }
    carries
}

/// Returns the carry into each position: a plane of zeros, then all carries but the last.
fn carries_in(carries: &[u64], stride: usize) -> Vec<u64> {
    let mut all = vec![0; carries.len()];
    let kept = carries.len().saturating_sub(stride);
    all[carries.len() - kept..].copy_from_slice(&carries[..kept]);
    all
}

/// The left half of the relation of carries, from the left summand and the left halves of the
/// carries.
pub(in crate::replicated) fn left_of_carries(x: &[u64], shares: &[u64], stride: usize) -> Half {
    let into = carries_in(shares, stride);
    let constants = plus_product(shares, &into, x);
    Half {
        factors: vec![x.to_vec(), into],
        constants,
    }
}

/// The right half.
pub(in crate::replicated) fn right_of_carries(y: &[u64], shares: &[u64], stride: usize) -> Half {
    let into = carries_in(shares, stride);
    let constants = plus_product(shares, &into, y);
    let first = into.iter().zip(y).map(|(into, y)| into ^ y);
    Half {
        factors: vec![first.collect(), y.to_vec()],
        constants,
    }
}

/// The left half of products of shared bits, from the left halves of both factors and of the
/// products.
pub(in crate::replicated) fn left_of_products([a, b]: Pair, products: &[u64]) -> Half {
    Half {
        factors: vec![a.to_vec(), b.to_vec()],
        constants: plus_product(products, a, b),
    }
}

/// The right half.
pub(in crate::replicated) fn right_of_products([a, b]: Pair, products: &[u64]) -> Half {
    let mut half = left_of_products([a, b], products);
    half.factors.swap(0, 1);
    half
}

/// The half of a selection that knows the words: q, and those that are selected instead of it.
pub(in crate::replicated) fn words_of_selection(q: &[u64], selected: Pair, bits: usize) -> Half {
    let base = planes_of(q, bits);
    let factors = selected.map(|words| {
        let mut planes = planes_of(words, bits);
        Group::Binary.add(&mut planes, &base);
        planes
    });
    Half {
        factors: factors.into(),
        constants: base,
    }
}

/// The half of a selection that knows which word it is, and the result.
pub(in crate::replicated) fn choice_of_selection(
    chosen: Pair,
    result: &[u64],
    bits: usize,
) -> Half {
    Half {
        factors: chosen.map(|plane| plane.repeat(bits)).into(),
        constants: planes_of(result, bits),
    }
}

/// The left half of a selection by one shared bit, of `one` if it is set and else of `zero`.
pub(in crate::replicated) fn left_of_choice(
    zero: &[u64],
    one: &[u64],
    bit: &[u64],
    bits: usize,
) -> Half {
    let base = planes_of(zero, bits);
    let mut differing = planes_of(one, bits);
    Group::Binary.add(&mut differing, &base);
    let bit = bit.repeat(bits);
    Half {
        constants: plus_product(&base, &differing, &bit),
        factors: vec![differing],
    }
}

/// The right half, from the bit's right half and the result.
pub(in crate::replicated) fn right_of_choice(bit: &[u64], result: &[u64], bits: usize) -> Half {
    let bit = bit.repeat(bits);
    Half {
        constants: planes_of(result, bits),
        factors: vec![bit],
    }
}

/// The left half of the relation of a shared bit modulo p, from the bit's left half and the mask.
pub(in crate::replicated) fn left_of_residue(bit: &[u64], mask: &[u64]) -> Half {
    let rho = |i| bit_at(bit, i);
    let factors = (0..mask.len()).map(|i| residues::subtract(0, 2 * rho(i)));
    let constants = mask.iter().enumerate();
    Half {
        factors: vec![factors.collect()],
        constants: constants
            .map(|(i, mask)| residues::subtract(*mask, rho(i)))
            .collect(),
    }
}

/// The right half, from the bit's right half and the message.
pub(in crate::replicated) fn right_of_residue(bit: &[u64], message: &[u64]) -> Half {
    let mu = |i| bit_at(bit, i);
    let constants = message.iter().enumerate();
    Half {
        factors: vec![(0..message.len()).map(mu).collect()],
        constants: constants
            .map(|(i, message)| residues::subtract(*message, mu(i)))
            .collect(),
    }
}

/// Returns a ⊕ b.
pub(in crate::replicated) fn xor(mut a: Vec<u64>, b: &[u64]) -> Vec<u64> {
    Group::Binary.add(&mut a, b);
    a
}

/// Returns a ⊕ b·c.
fn plus_product(a: &[u64], b: &[u64], c: &[u64]) -> Vec<u64> {
    let all = a.iter().zip(b).zip(c);
    all.map(|((a, b), c)| a ^ (b & c)).collect()
}
