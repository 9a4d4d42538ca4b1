//! Proofs that a party sent what follows from what it holds, to two verifiers that each know half.
//!
//! A *prover* P has factors `left`, which the *left verifier* L knows too, and factors `right`,
//! which the *right verifier* R knows. For many *equations* at once it proves
//!
//! > Σ_s left_s\[t\] · right_s\[t\] = c_L\[t\] + c_R\[t\],
//!
//! where the constants c_L and c_R are known to L and to R. The sum is over the *terms* of an
//! equation, each once or each twice. Equations are modulo 2^64 ([`Words`]), modulo 2 ([`Bits`]) or
//! modulo p = 2^31 − 1 ([`Residues`]). Those modulo 2^64 may also be about all outputs of a
//! bilinear map ([`Product`]): Σ_s M(a_s, b_s) = c_L + c_R. Of each term, L knows one operand, at
//! either place, and R the other. Beside equations modulo 2 there may be such about inner products
//! in GF(2^64) ([`InnerProduct`]). At most one of the three parties is corrupt. A false equation is
//! refused except with probability 2^−42, and nobody learns anything but that the equations hold.
//! This module knows no protocol: a protocol says which equations its messages ought to satisfy.
//!
//! It is a distributed zero-knowledge proof (Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai 2019; for
//! three parties Boyle, Gilboa, Ishai, Nof 2019; for bits Li+ 2023). It computes in the Galois ring
//! of [`kernels::galois`], or in the fields of [`kernels::binary_field`] and
//! [`kernels::residue_field`]: see [`ring`]. The halves are not shared between the verifiers: each
//! knows one whole. So a proof is an inner product, and its size grows with the logarithm of the
//! number of terms.
//!
//! # The proof
//!
//! Values are in rows, rows in chunks, and chunks in lanes: see [`ring`]. An equation is at a row,
//! a chunk and a lane, and has the weight u_chunk · v_row · y_lane. All these are random members of
//! the exceptional set, except that y_p = X^p for bits. One equation is left to prove, the weighted
//! sum of all.
//!
//! 1. *Words* ([`Level::Words`]). Let q(X) be the sum over all rows and lanes, with weights v and
//!    y, of the products A(X)·B(X), where A and B are the multilinear polynomials of the chunks. P
//!    sends q as its values at {0, 1, ∞}^5: additively shared, L's share being drawn from a key
//!    that P shares with L. The claim Σ_i u_i·q(i) = Σ weights·(c_L + c_R) is linear, so that each
//!    verifier computes its share of the difference. At a random point r the verifiers have shares
//!    of q(r), and L knows all A(r), R all B(r): the claim is now Σ v·y·A(r)·B(r) = q(r), with 1/32
//!    as many terms. Maps join it, as below.
//! 2. *Fold* ([`Level::Fold`]), as often as needed: the same with what is left, whose rows are
//!    split into 4 to 16 chunks. L and P have multiplied their side by v.
//! 3. *Blind* ([`Level::Blind`]). One block is left, an element for each lane. P and L draw a
//!    random block α, P and R draw β. With one more variable, A(Z) = (1 − Z)·a + Z·α, and B
//!    likewise. P sends the quadratic polynomial q(Z) = Σ y·A(Z)·B(Z) at {0, 1, ∞}, shared as
//!    before. The claim is that q(0) is what the last level left. At a random z ≠ 0, L sends A(z)
//!    to R, with its shares of all claims. R checks them, and that Σ y·A(z)·B(z) = q(z).
//!
//! # Maps
//!
//! The outputs of a map are a grid, and each row and each column has a random member as its weight
//! (R. Freivalds 1977). These are drawn for each map. The sum of M(a, b) with weights u_row ·
//! v_column is an inner product ⟨A, B⟩ of elements: A is a sum over the rows of a, with weights u,
//! and B over the columns of b, with weights v. So one equation is left of a map, Σ_s ⟨A_s, B_s⟩ =
//! Σ u·v·(c_L + c_R). For matrices of m×k and k×n, a term takes k products instead of m·k·n.
//!
//! The elements of all A and all B are blocks for the first fold, behind those of the words. The
//! lanes of blocks have weights y. So L and P divide elements of their side by the weight of the
//! lane, which is invertible: y is drawn again if it is 0. (The left blocks of bits hold y already,
//! and those of inner products in GF(2^64) go without.) Verifiers add their sums of u·v·c to
//! their shares of q(r). If L's constants are less M(a, b) of operands that it holds both, it takes
//! away ⟨A, B⟩ instead, and needs no M(a, b).
//!
//! # Challenges
//!
//! All challenges of a proof come from a key that L and R share, and P does not know. P is told a
//! challenge once what it judges is fixed:
//!
//! - The weights come from two seeds. Each verifier tells P one, after it has received all that P
//!   sent of this batch. So P knows the weights only when both have.
//! - The point of a level comes from a seed that R tells P after the message of that level. R alone
//!   receives such messages. L's shares are fixed from the start, since they are drawn from a key.
//!   P never hears the last point, z.
//!
//! Both verifiers must mean the same challenge. Otherwise R could tell P another one than L uses,
//! and learn from L's last message by how much the weighted sums of P's secrets differ. So R tells
//! P the hash of L's seed of the weights, and L tells P the hashes of all seeds that R tells. P
//! stops if they differ. The hash is BLAKE3, taken for a random oracle: it says nothing about 128
//! random bits.
//!
//! # Why a false equation is refused
//!
//! Let P be corrupt. L and R are honest, so they use the same challenges, unknown to P until it is
//! told. If an equation is false by e ≠ 0, the weighted sum of errors is a polynomial of degree 3
//! in the weights, multilinear, and not zero: it vanishes with probability at most 3/(2^48 − 1).
//! For bits, the errors of a word are the coefficients of one element, which is not zero. If a
//! claim is false and P's shares add up to the claim, then they are not those of the true q. The
//! difference is a polynomial of degree at most 2 in each variable, and not zero. It vanishes at
//! the level's point with probability at most 2/2^48 for each variable, and 2/(2^48 − 1) for z.
//! There are 5 variables of words and at most 17 of folds. In all that is less than 50 times 2^−48,
//! where 3 + 10 + 34 + 2 = 49, and so less than 2^−42; for bits, with 2^−64 in place of 2^−48.
//!
//! For residues, members are not uniform, since a residue takes 31 bits, of which two values are 0.
//! But none has a probability above 2^−60, and coordinates are drawn independently. So a polynomial
//! of degree d in one variable vanishes with probability at most d·2^−60, given the others. The
//! bounds hold with 2^−60 in place of 2^−48. An element that is drawn as a mask is uniform up to
//! 2^−61, and those of a proof, fewer than 2^10, up to 2^−51.
//!
//! Maps change none of these numbers. Let E be the weighted sum of the errors of words, and F that
//! of the errors of maps, whose weights are drawn independently. P sends q + D in place of q, and
//! is refused unless Σ_i u_i·D(i) = −E. Once maps have joined, the claim is false by D(r) − F. This
//! polynomial in r is zero only if D is the constant F, so that E + F·Σ_i u_i = 0. The left-hand
//! side is a polynomial of degree 3 in the weights, multilinear, since F has degree 2. It is not
//! zero if an equation is false: each error has monomials of its own, u_chunk · v_row · y_lane or
//! u_i · u_row · v_column. So it vanishes with probability at most 3/(2^48 − 1). Otherwise D(r) − F
//! vanishes with probability at most 10/2^48. All this is as if F had been in the first claim, with
//! the weight Σ_i u_i. A quotient by y, times R's element, times y is the product of both elements.
//!
//! These bounds hold over Z_2^64 because challenges come from an exceptional set. Let 2^k be the
//! highest power of 2 that divides all coefficients of a polynomial. Divided by it, the polynomial
//! is not zero modulo 2. The difference of two points is invertible.
//!
//! # Why nothing is learned
//!
//! Let P be honest, and its verifiers not both corrupt.
//!
//! - *L is corrupt.* It receives nothing but P's decision whether the hashes agree, and R's whether
//!   the proof is right. It knows the first beforehand. R accepts with a probability that L can
//!   compute: it depends on how L's message differs from the right one, and on B(z), which β makes
//!   uniform.
//! - *R is corrupt.* P's messages are uniform, since R does not know L's shares. If R tells P
//!   another challenge than L's, P stops before it sends more. Of L's message, A(z) is uniform,
//!   since z is invertible and α uniform. For each level whose message P sent, L's difference is
//!   minus R's. For later levels it is uniform, as L's shares of these levels are fresh. The last
//!   claim is Σ y·A(z)·B(z) less R's share, or uniform. So all that R sees can be computed from
//!   what it had, and L need not wait for P's decision.
//! - *P is corrupt.* It knows all that L and R know, and sees challenges. R's decision depends on
//!   nothing else.
//!
//! Maps change nothing of this. Their elements enter the same masked values of q as the others,
//! and are folded into the block that α and β blind.
//!
//! # What a protocol must ensure
//!
//! - P knows c_L + c_R. If they held a secret of others, a corrupt P could learn from R's decision
//!   whether it guessed it.
//! - If P is honest, its equations are true, whatever a corrupt party did before. Otherwise R would
//!   learn the weighted sum of errors.
//! - Seeds of weights are told only when all messages of the batch have arrived at both verifiers.
//! - Nothing that depends on the batch is opened before all parties have heard R's decision.
//! - A proof that stops ends the session. Each further attempt would be another chance of 2^−42.
//! - No [`Name`] comes twice.

mod challenges;
mod field;
mod folds;
mod grid;
mod inner_product;
#[cfg(test)]
mod map_definitions;
#[cfg(test)]
mod map_tests;
mod maps;
mod products;
mod prover;
#[cfg(test)]
mod rate_tests;
mod residues;
pub mod ring;
#[cfg(test)]
mod tests;
mod values;
mod verifiers;

pub use challenges::{Opening, Seed};
pub use grid::{Grid, Map, Place};
pub use inner_product::InnerProduct;
pub use maps::{MapEquations, MapTerm};
pub use products::Product;
pub use prover::Prover;
pub use residues::{NoMap, Residues};
pub use ring::{Bits, Ring, Words};
pub use verifiers::{Known, KnownMap, LeftVerifier, RightVerifier};

use kernels::galois::words::{CHUNKS, VARIABLES, VERTICES};
use kernels::stream::{Key, Stream};

/// All rings have rows of as many chunks.
const _: () =
    assert!(CHUNKS == kernels::binary_field::CHUNKS && CHUNKS == kernels::residue_field::CHUNKS);

/// Which proof it is: no two have the same in a session, not even after one that stopped.
///
/// Whatever is drawn for a proof is drawn from streams that its name determines. If a name came
/// twice, masks would be used twice, and challenges would be known beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The party that proves.
    pub prover: usize,
    /// Counts the proofs of the session.
    pub number: u64,
}

/// What is drawn from a stream.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Masks,
    Blinding,
    Challenges,
}

impl Name {
    /// Returns the stream of a key that two parties share, for one purpose in this proof.
    fn stream<R: Ring>(self, key: &Key, purpose: Purpose) -> Stream {
        let Self { prover, number } = self;
        let ring = R::NAME;
        Stream::new(
            key,
            &format!("proof {number} of party {prover} about {ring}: {purpose:?}"),
        )
    }
}

/// Equations of one kind: as many terms in each.
pub struct Equations<T> {
    /// The terms: for each, a factor of every equation, in whole rows.
    pub terms: Vec<T>,
    /// The number of words of each factor.
    pub count: usize,
    /// Whether each term counts twice.
    pub is_twice: bool,
}

impl<T> Equations<T> {
    /// Returns how often each term counts.
    fn times(&self) -> usize {
        1 + usize::from(self.is_twice)
    }
}

/// The most rows of terms in one proof. The blocks of maps count as rows: a map adds an element for
/// each step of its inner product and each term, and eight elements are a block.
pub const MOST_ROWS: usize = 1 << 17;

/// The rows of terms and blocks of maps that one proof is best about: 4 million terms of words, or
/// 32 million of bits. Larger proofs cost another level, and take more memory.
pub const ENOUGH_ROWS: usize = 1 << 14;

/// Returns the number of messages of the prover in a proof of these equations.
#[must_use]
pub fn messages<R: Ring>(
    equations: &[Equations<[&[u64]; 2]>],
    maps: &[MapEquations<R::Map, [&[u64]; 2]>],
) -> usize {
    let rows = rows_of::<R, _>(equations, |[left, _]| left.len());
    levels(rows + maps::blocks::<R, _>(maps.iter())).len()
}

/// A step of a proof, with one message of the prover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    /// The words: the chunks of a row become one block.
    Words,
    /// The blocks: each 2^n of them become one.
    Fold(u32),
    /// The last block, blinded.
    Blind,
}

impl Level {
    /// Returns the number of elements of the prover's message.
    fn values(self) -> usize {
        match self {
            Self::Words => VERTICES,
            Self::Fold(variables) => 3_usize.pow(variables),
            Self::Blind => 3,
        }
    }
}

/// Returns the levels of a proof about this number of rows of terms and blocks of maps.
///
/// The first fold, of the most blocks, has the fewest variables, since its products are the most
/// work; the last ones have the most, since each costs two rounds.
///
/// # Panics
/// If they are more than [`MOST_ROWS`].
fn levels(rows: usize) -> Vec<Level> {
    assert!(
        rows <= MOST_ROWS,
        "at most {MOST_ROWS} rows of terms in a proof, not {rows}"
    );
    let folds: &[u32] = match rows {
        0..=1 => &[],
        2..=0x10 => &[4],
        0x11..=0x100 => &[4, 4],
        0x101..=0x800 => &[3, 4, 4],
        0x801..=0x2000 => &[2, 3, 4, 4],
        0x2001..=0x4000 => &[3, 3, 4, 4],
        _ => &[2, 3, 4, 4, 4],
    };
    let folds = folds.iter().map(|variables| Level::Fold(*variables));
    [Level::Words]
        .into_iter()
        .chain(folds)
        .chain([Level::Blind])
        .collect()
}

/// What is wrong with a proof, or with a challenge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The equations are not proved: the prover cheats, or the left verifier does.
    Wrong,
    /// The verifiers told the prover different challenges.
    Challenges,
    /// A message is too short or too long, or one too many.
    Message,
}

/// Checks that factors are whole rows, and returns the rows of terms.
///
/// # Panics
/// If they are not.
fn rows_of<'a, R: Ring, T: 'a>(
    equations: impl IntoIterator<Item = &'a Equations<T>>,
    length: impl Fn(&T) -> usize,
) -> usize {
    let mut rows = 0;
    for kind in equations {
        assert!(
            kind.count % R::ROW == 0,
            "factors in rows of {} words",
            R::ROW
        );
        for term in &kind.terms {
            assert_eq!(length(term), kind.count, "a factor of each equation");
        }
        rows += kind.terms.len() * (kind.count / R::ROW);
    }
    rows
}
