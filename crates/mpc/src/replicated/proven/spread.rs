//! Long inner products of few outputs, spread over equations.
//!
//! Each output is a sum of k products for each of two terms. As outputs of a map ([`Product`]) they
//! would add an element of 384 bytes for each of the k. Here each output has a number of *pieces*,
//! and each piece is an equation, whose terms are products of words. The equations of an operation
//! are in rows as all others. The factors at place s of a sum belong to piece s mod the number of
//! pieces: so the factors of a row's term lie side by side.
//!
//! The prover tells the right verifier the sum of each piece but the last one of each output, less a
//! mask from the key that it shares with the left verifier. So the constants of these equations are
//! the mask and the message. Those of the last piece are what is left of the output's.
//!
//! **Security.** The messages are uniform to the right verifier, and arrive before the weights of
//! equations are told. The constants of an output's pieces add up to the output's, whatever the
//! prover sends. So if an output is wrong, the equation of one of its pieces is false.
//!
//! [`Product`]: crate::proof::Product

use super::relations::Role;
use crate::proof::{Equations, Known, Ring, Words};
use crate::replicated::Pair;
use crate::{Bilinear, blocks};
use kernels::parallel;

/// The words of a row: an equation for each.
const ROW: usize = Words::ROW;

/// The most terms that a factor of an equation has in one operand.
const MOST: usize = 1 << 11;

/// The most outputs of one inner product's operands: an element for each place takes less than
/// more of them.
const FEW: usize = 32;

/// The fewest places of sums. Shorter ones take no longer as outputs of a map.
const LONG: usize = 1 << 11;

/// Sums of products of an operation.
pub(in crate::replicated) struct Spread {
    /// The number of outputs.
    outputs: usize,
    /// The number of equations for each output.
    pieces: usize,
    /// The number of terms of each equation in one of the two mixed products.
    terms: usize,
    /// Whether both operands are the same, of which there is only x then. The two mixed products are
    /// equal, and one of them counts twice.
    is_square: bool,
    /// This party's components of both operands: row by row, then term by term.
    x: [Vec<u64>; 2],
    y: [Vec<u64>; 2],
    /// Its constants as the left and as the right verifier: of the outputs, and once they are
    /// [settled](Self::settle) of the equations.
    constants: [Vec<u64>; 2],
}

/// Where the factors of an output lie in an operand: the first one, and how far apart they are.
type Places = (usize, usize);

impl Spread {
    /// Returns whether a map's outputs are better spread.
    pub fn is_better(map: &Bilinear) -> bool {
        match *map {
            Bilinear::Matrix { batch, m, k, n } | Bilinear::ByTransposed { batch, m, k, n } => {
                (1..=FEW).contains(&(m * n)) && batch * k >= LONG
            }
            _ => false,
        }
    }

    /// Returns whether a map's outputs are sums of squares: both operands are the same words in
    /// memory. All parties of one program find the same.
    pub fn is_square(map: &Bilinear, x: Pair, y: Pair) -> bool {
        let is_one = match *map {
            Bilinear::Matrix { m, n, .. } | Bilinear::ByTransposed { m, n, .. } => m * n == 1,
            _ => false,
        };
        is_one && (0..2).all(|side| std::ptr::eq(x[side], y[side]))
    }

    /// Spreads a map's outputs. The arguments are as for [`super::record::Ledger::products`].
    ///
    /// # Panics
    /// If the map is none that [is better](Self::is_better) spread.
    pub fn of(map: &Bilinear, x: Pair, y: Pair, constants: Pair) -> Self {
        let (Bilinear::Matrix { batch, m, k, n } | Bilinear::ByTransposed { batch, m, k, n }) =
            *map
        else {
            panic!("{} has no inner products", map.name());
        };
        let outputs = batch * m * n;
        let pieces = k.div_ceil(MOST).max(ROW / outputs).max(1);
        let is_square = Self::is_square(map, x, y);
        let mut spread = Self {
            is_square,
            outputs,
            pieces,
            terms: k.div_ceil(pieces),
            x: [Vec::new(), Vec::new()],
            y: [Vec::new(), Vec::new()],
            constants: constants.map(<[u64]>::to_vec),
        };
        let left = |output: usize| (output / n * k, 1);
        let right = |output: usize| {
            let (of_batch, column) = (output / (m * n), output % n);
            match map {
                Bilinear::Matrix { .. } => (of_batch * k * n + column, n),
                _ => ((of_batch * n + column) * k, 1),
            }
        };
        spread.x = x.map(|words| spread.factors(words, k, &left));
        if !is_square {
            spread.y = y.map(|words| spread.factors(words, k, &right));
        }
        spread
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        (self.outputs * self.pieces).div_ceil(ROW)
    }

    /// Returns the number of rows of terms in each of [`rows`](Self::rows).
    pub fn terms(&self) -> usize {
        if self.is_square {
            self.terms
        } else {
            2 * self.terms
        }
    }

    /// Returns the number of words that a prover tells.
    pub fn told(&self) -> usize {
        self.outputs * (self.pieces - 1)
    }

    /// Arranges the factors of all equations.
    fn factors(
        &self,
        words: &[u64],
        k: usize,
        places: &(dyn Fn(usize) -> Places + Sync),
    ) -> Vec<u64> {
        let mut factors = vec![0; self.rows() * self.terms * ROW];
        let (n, block) = (factors.len(), self.terms * ROW);
        parallel::map_blocks::<_, u64, 1, 0>(n, block, [&mut factors], [], |first, [row], []| {
            let mut at = first / self.terms;
            let end = (at + ROW).min(self.outputs * self.pieces);
            while at < end {
                let (output, piece) = (at / self.pieces, at % self.pieces);
                let run = (self.pieces - piece).min(end - at);
                let (start, stride) = places(output);
                for (term, out) in row.chunks_exact_mut(ROW).enumerate() {
                    let from = term * self.pieces + piece;
                    if from >= k {
                        break;
                    }
                    let out = &mut out[at % ROW..][..run.min(k - from)];
                    if stride == 1 {
                        out.copy_from_slice(&words[start + from..][..out.len()]);
                        continue;
                    }
                    for (place, factor) in (from..).zip(out) {
                        *factor = words[start + place * stride];
                    }
                }
                at += run;
            }
        });
        factors
    }

    /// Returns what this party tells as the prover, before it is masked: the sums of all pieces but
    /// each output's last.
    pub fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.rows() * ROW];
        for (row, sums) in sums.chunks_exact_mut(ROW).enumerate() {
            let shift = u32::from(self.is_square);
            for [left, right] in self.proved(row).terms {
                blocks::for_each(
                    [&mut *sums],
                    [left, right],
                    #[inline(always)]
                    |_, [sums], [left, right]| {
                        for (i, sum) in sums.iter_mut().enumerate() {
                            let product = left[i].wrapping_mul(right[i]);
                            *sum = sum.wrapping_add(product << shift);
                        }
                    },
                );
            }
        }
        let pieces = sums.chunks_exact(self.pieces).take(self.outputs);
        pieces
            .flat_map(|all| &all[..self.pieces - 1])
            .copied()
            .collect()
    }

    /// Takes what a verifier knows of the prover's message: the masks, or the rest. Its constants are
    /// those of the equations from now on.
    ///
    /// # Panics
    /// If it has another length.
    pub fn settle(&mut self, role: Role, told: &[u64]) {
        assert_eq!(
            told.len(),
            self.told(),
            "a word for each piece but the last"
        );
        let constants = &mut self.constants[of_role(role)];
        let mut of_equations = vec![0; (self.outputs * self.pieces).next_multiple_of(ROW)];
        let outputs = of_equations.chunks_exact_mut(self.pieces).zip(&*constants);
        for (output, (pieces, constant)) in outputs.enumerate() {
            let told = &told[output * (self.pieces - 1)..][..self.pieces - 1];
            let (last, others) = pieces.split_last_mut().expect("a piece");
            others.copy_from_slice(told);
            *last = told
                .iter()
                .fold(*constant, |rest, sum| rest.wrapping_sub(*sum));
        }
        *constants = of_equations;
    }

    /// Returns what this party proves of a row.
    pub fn proved(&self, row: usize) -> Equations<[&[u64]; 2]> {
        let sides = match self.is_square {
            true => vec![[&self.x[0], &self.x[1]]],
            false => vec![[&self.x[0], &self.y[1]], [&self.y[0], &self.x[1]]],
        };
        let terms = sides.into_iter().flat_map(|sides| {
            let [left, right] = sides.map(|words| self.row(words, row));
            left.chunks_exact(ROW).zip(right.chunks_exact(ROW))
        });
        Equations {
            terms: terms.map(|(left, right)| [left, right]).collect(),
            count: ROW,
            is_twice: self.is_square,
        }
    }

    /// Returns what a verifier knows of a row, once its constants are settled.
    pub fn known(&self, role: Role, row: usize) -> Known<'_> {
        let factors = match (role, self.is_square) {
            (Role::LeftVerifier, true) => vec![&self.x[1]],
            (Role::RightVerifier, true) => vec![&self.x[0]],
            (Role::LeftVerifier, false) => vec![&self.x[1], &self.y[1]],
            (Role::RightVerifier, false) => vec![&self.y[0], &self.x[0]],
            (Role::Prover, _) => unreachable!("a verifier"),
        };
        let terms = factors
            .into_iter()
            .flat_map(|words| self.row(words, row).chunks_exact(ROW));
        Known {
            factors: Equations {
                terms: terms.collect(),
                count: ROW,
                is_twice: self.is_square,
            },
            constants: &self.constants[of_role(role)][row * ROW..][..ROW],
        }
    }

    /// Returns a row's factors of all terms.
    fn row<'w>(&self, words: &'w [u64], row: usize) -> &'w [u64] {
        let size = self.terms * ROW;
        &words[row * size..][..size]
    }
}

/// Returns the place of a verifier's constants.
fn of_role(role: Role) -> usize {
    match role {
        Role::LeftVerifier => 0,
        Role::RightVerifier => 1,
        Role::Prover => unreachable!("a verifier"),
    }
}
