//! Kinds of correlations, each defined by its random and its derived columns.
//!
//! A batch of n correlations is a list of *columns* that all parties share: words add up mod 2^64,
//! planes XOR, and residues add up modulo the prime of checks. *Free* columns are uniform.
//! *Derived* columns are functions of the free ones. In some kinds for two parties, each party has
//! free columns of its own, which are not shared. A dealer needs to know no more than that, and
//! every other source must produce the same.

use crate::blocks;
use crate::dense::{Run, concatenate};
use crate::group::Group;
use crate::leaves::{Leaves, Wanted};
use crate::residues;
use kernels::pack::{packed_words, unpack_low};
use kernels::planes::words_of;
use std::fmt;

/// Kind of correlation. The variants list the free columns; then the derived columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// a, b; ab (Beaver 1991).
    Triples,
    /// a; a².
    Squares,
    /// Bits a, b_1, .., b_rights; a ∧ b_i.
    BitTriples {
        /// Right factors that share the left one: 1 or 2.
        rights: usize,
    },
    /// A bit; the bit as a ring element (daBit; Rotaru, Wood 2019).
    RingBits,
    /// r; its low `width` bits (edaBit; Escudero+ 2020).
    RingWithBits {
        /// Number of bits that count, 1 to 64.
        width: usize,
    },
    /// r; the monomials of its low bits, by spans. A comparison evaluates linear forms in them.
    RingWithMonomials {
        /// The linear forms that the monomials are for.
        wanted: Wanted,
        /// Number of positions in spans.
        positions: usize,
    },
    /// r; r >> bits, and the highest bit of r modulo 2^bits.
    Truncations {
        /// Number of bits dropped, 1 to 61.
        bits: u32,
    },
    /// r; the columns of [`Kind::Truncations`], and the residues of r, of r >> bits and of the
    /// highest bit of r.
    CheckedTruncations {
        /// Number of bits dropped, 1 to 61.
        bits: u32,
    },
    /// Two parties only: a bit of party 0, a bit of party 1; their product mod 2^bits.
    CrossBits {
        /// Number of bits of the product that count, 1 to 61.
        bits: u32,
    },
    /// Two parties only: a bit of party 0, a bit of party 1; the residue of their product.
    CrossResidues,
    /// Two parties only: a number of party 0, a number of party 1; their product, all modulo
    /// 2^bits.
    CrossWords {
        /// Number of bits, 1 to 63.
        bits: u32,
    },
    /// Two parties only: random digits of both, and random tables of both for the spans of a
    /// comparison, without entry 0; what the digits of party 0 find in the tables of party 1, and
    /// what those of party 1 find in the tables of party 0.
    LookUps {
        /// The bits that the tables are for.
        wanted: Wanted,
        /// Number of positions in spans.
        positions: usize,
    },
    /// Two parties only: a bit and a ring element of each; the bit of party 0 times the element of
    /// party 1, and the bit of party 1 times the element of party 0.
    CrossSelections,
    /// A bit β and a ring element a; β as a ring element, βa.
    Selections,
    /// A bit β and a ring element a; β as a ring element, βa, and the guard columns of a. These are
    /// `reach` bits each of c = a >> below and of c(c + 1), for the guard of the selected number.
    GuardedSelections {
        /// Number of bits below those that the guard looks at, 2 to 62.
        below: u32,
        /// Number of bits that the guard looks at, 2 to 64 − below.
        reach: u32,
    },
    /// a; `reach` bits each of c = a >> below and of c(c + 1), for the guard of the number that a
    /// masks.
    Guards {
        /// Number of bits below those that the guard looks at, 2 to 62.
        below: u32,
        /// Number of bits that the guard looks at, 2 to 64 − below.
        reach: u32,
    },
    /// r; the residue of r, and the residue of its highest bit.
    Lifts,
    /// Residues a, b; ab.
    ResidueTriples,
    /// a, b; ab, and these residues: r and its highest bit R for r = −a, s and S for s = −b, and
    /// the products rs, rS, Rs and RS.
    CheckedTriples,
    /// a; a², and these residues: r and its highest bit R for r = −a, and the products r² and rR.
    CheckedSquares,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Triples => write!(f, "triples"),
            Self::Squares => write!(f, "squares"),
            Self::BitTriples { rights } => write!(f, "bit triples, {rights} to each left factor"),
            Self::RingBits => write!(f, "bits that are also words"),
            Self::RingWithBits { width } => write!(f, "words with their low {width} bits"),
            Self::RingWithMonomials { wanted, positions } => {
                let whose = whose(*wanted);
                write!(
                    f,
                    "words with the monomials of {positions} positions for {whose}"
                )
            }
            Self::Truncations { bits } => write!(f, "truncations by {bits} bits"),
            Self::CheckedTruncations { bits } => {
                write!(f, "truncations by {bits} bits, with residues")
            }
            Self::CrossBits { bits } => write!(f, "products of two parties' bits, of {bits} bits"),
            Self::CrossResidues => write!(f, "products of two parties' bits, as residues"),
            Self::CrossWords { bits } => {
                write!(f, "products of two parties' numbers, of {bits} bits")
            }
            Self::LookUps { wanted, positions } => {
                let whose = whose(*wanted);
                write!(f, "tables of {positions} positions for {whose}")
            }
            Self::CrossSelections => write!(f, "selections between two parties"),
            Self::Selections => write!(f, "selections"),
            Self::GuardedSelections { below, reach } => {
                write!(
                    f,
                    "selections, guarded by {reach} bits above the lowest {below}"
                )
            }
            Self::Guards { below, reach } => {
                write!(f, "guards by {reach} bits above the lowest {below}")
            }
            Self::Lifts => write!(f, "words with their residues"),
            Self::ResidueTriples => write!(f, "triples of residues"),
            Self::CheckedTriples => write!(f, "triples, with residues"),
            Self::CheckedSquares => write!(f, "squares, with residues"),
        }
    }
}

fn whose(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Carry => "carries",
        Wanted::Propagate => "equality",
    }
}

/// Shape of a column of n correlations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// n words, of which only the low bits count.
    Words(u32),
    /// n numbers modulo 2^bits, of `bits` bits each, without gaps ([`kernels::pack`]).
    Packed(u32),
    /// The given number of planes of n bits.
    Planes(usize),
    /// n residues, one per word.
    Residues,
}

impl Shape {
    /// Returns the words in memory.
    pub fn words(self, n: usize) -> usize {
        match self {
            Self::Words(_) | Self::Residues => n,
            Self::Packed(bits) => packed_words(n, bits),
            Self::Planes(planes) => planes * words_of(n),
        }
    }

    /// Returns the group in which shares combine, once they are unpacked.
    pub fn group(self) -> Group {
        match self {
            Self::Words(_) | Self::Packed(_) => Group::Additive,
            Self::Planes(_) => Group::Binary,
            Self::Residues => Group::Residues,
        }
    }

    /// Unpacks a column, so that each packed number has a word of its own.
    pub fn unpacked(self, column: Vec<u64>, n: usize) -> Vec<u64> {
        match self {
            Self::Words(_) | Self::Planes(_) | Self::Residues => column,
            Self::Packed(bits) => {
                let mut words = vec![0; n];
                unpack_low(&column, bits, &mut words);
                words
            }
        }
    }
}

impl Kind {
    /// Returns the shapes of the uniform columns.
    pub(crate) fn free(self) -> Vec<Shape> {
        match self {
            Self::Triples | Self::CheckedTriples => vec![Shape::Words(64); 2],
            Self::Squares
            | Self::CheckedSquares
            | Self::Truncations { .. }
            | Self::CheckedTruncations { .. }
            | Self::Guards { .. }
            | Self::Lifts => vec![Shape::Words(64)],
            Self::ResidueTriples => vec![Shape::Residues; 2],
            Self::CrossWords { bits } => vec![Shape::Packed(bits)],
            Self::BitTriples { rights } => vec![Shape::Planes(1); 1 + rights],
            Self::RingBits | Self::CrossBits { .. } | Self::CrossResidues => {
                vec![Shape::Planes(1)]
            }
            Self::RingWithBits { width } => vec![Shape::Words(width as u32)],
            Self::RingWithMonomials { wanted, positions } => {
                vec![Shape::Words(Leaves::new(wanted, positions).width() as u32)]
            }
            Self::LookUps { wanted, positions } => {
                let entries = Leaves::looked_up(wanted, positions).entries();
                vec![Shape::Planes(positions), Shape::Planes(entries)]
            }
            Self::Selections | Self::CrossSelections | Self::GuardedSelections { .. } => {
                vec![Shape::Planes(1), Shape::Words(64)]
            }
        }
    }

    /// Returns the shapes of the columns derived from the uniform ones.
    pub(crate) fn derived(self) -> Vec<Shape> {
        match self {
            Self::Triples | Self::Squares | Self::RingBits => vec![Shape::Words(64)],
            Self::BitTriples { rights } => vec![Shape::Planes(1); rights],
            Self::RingWithBits { width } => vec![Shape::Planes(width)],
            Self::RingWithMonomials { wanted, positions } => {
                vec![Shape::Planes(Leaves::new(wanted, positions).monomials())]
            }
            Self::Truncations { bits } => vec![Shape::Words(64), Shape::Words(bits)],
            Self::CheckedTruncations { bits } => [
                Self::Truncations { bits }.derived(),
                vec![Shape::Residues; 3],
            ]
            .concat(),
            Self::CrossBits { bits } => vec![Shape::Words(bits)],
            Self::CrossResidues => vec![Shape::Residues],
            Self::CrossWords { bits } => vec![Shape::Packed(bits)],
            Self::LookUps { wanted, positions } => {
                vec![Shape::Planes(Leaves::looked_up(wanted, positions).outputs()); 2]
            }
            Self::Selections | Self::CrossSelections => vec![Shape::Words(64); 2],
            Self::GuardedSelections { reach, .. } => {
                [[Shape::Words(64); 2], [Shape::Packed(reach); 2]].concat()
            }
            Self::Guards { reach, .. } => vec![Shape::Packed(reach); 2],
            Self::Lifts => vec![Shape::Residues; 2],
            Self::ResidueTriples => vec![Shape::Residues],
            Self::CheckedTriples => [vec![Shape::Words(64)], vec![Shape::Residues; 8]].concat(),
            Self::CheckedSquares => [vec![Shape::Words(64)], vec![Shape::Residues; 4]].concat(),
        }
    }

    /// Returns the shapes of all columns of a batch, free ones first.
    pub(crate) fn columns(self) -> Vec<Shape> {
        [self.free(), self.derived()].concat()
    }

    /// Joins the columns of several batches, each with its number of correlations, into those of
    /// one batch.
    pub(crate) fn join(self, batches: &[(usize, Vec<Vec<u64>>)]) -> Vec<Vec<u64>> {
        let join = |(at, shape): (usize, Shape)| match shape {
            Shape::Words(_) | Shape::Residues => {
                let columns = batches.iter().map(|(_, columns)| &columns[at][..]);
                columns.collect::<Vec<_>>().concat()
            }
            Shape::Packed(width) => {
                let of_batch = batches.iter().map(|(n, columns)| Run {
                    words: &columns[at],
                    bits: n * width as usize,
                });
                concatenate(&of_batch.collect::<Vec<_>>())
            }
            Shape::Planes(planes) => {
                let joined = |plane: usize| {
                    let of_batch = batches.iter().map(|(n, columns)| Run {
                        words: &columns[at][plane * words_of(*n)..][..words_of(*n)],
                        bits: *n,
                    });
                    concatenate(&of_batch.collect::<Vec<_>>())
                };
                (0..planes).flat_map(joined).collect()
            }
        };
        self.columns().into_iter().enumerate().map(join).collect()
    }

    /// Returns whether the free columns are not shared: each of two parties has columns of its own.
    pub(crate) fn is_cross(self) -> bool {
        matches!(
            self,
            Self::CrossBits { .. }
                | Self::CrossResidues
                | Self::CrossWords { .. }
                | Self::LookUps { .. }
                | Self::CrossSelections
        )
    }

    /// Computes the derived columns, unpacked, from the free ones. If two parties have columns of
    /// their own, `free` has those of party 0, then those of party 1.
    pub(crate) fn derive(self, free: &[Vec<u64>]) -> Vec<Vec<u64>> {
        match self {
            Self::Triples => vec![products(&free[0], &free[1], u64::wrapping_mul)],
            Self::Squares => vec![products(&free[0], &free[0], u64::wrapping_mul)],
            Self::BitTriples { .. } => free[1..]
                .iter()
                .map(|right| products(&free[0], right, |a, b| a & b))
                .collect(),
            Self::RingBits => vec![as_words(&free[0])],
            Self::RingWithBits { width } => {
                let mut planes = vec![0; width * words_of(free[0].len())];
                kernels::planes::split(&free[0], width, &mut planes);
                vec![planes]
            }
            Self::RingWithMonomials { wanted, positions } => {
                vec![Leaves::new(wanted, positions).expand(&free[0], 0)]
            }
            Self::Truncations { bits } => vec![
                free[0].iter().map(|r| r >> bits).collect(),
                free[0].iter().map(|r| r >> 63).collect(),
            ],
            Self::CheckedTruncations { bits } => {
                let words = Self::Truncations { bits }.derive(free);
                let lifted = [&free[0], &words[0], &words[1]].map(|column| of_words(column));
                [words, lifted.into()].concat()
            }
            Self::CrossBits { .. } | Self::CrossResidues => {
                vec![as_words(&products(&free[0], &free[1], |a, b| a & b))]
            }
            Self::CrossWords { bits } => {
                let n = 64 * free[0].len() / bits as usize;
                let unpacked = |column: &Vec<u64>| Shape::Packed(bits).unpacked(column.clone(), n);
                vec![products(
                    &unpacked(&free[0]),
                    &unpacked(&free[1]),
                    u64::wrapping_mul,
                )]
            }
            Self::LookUps { wanted, positions } => {
                let leaves = Leaves::looked_up(wanted, positions);
                let pairs = [[&free[0], &free[3]], [&free[2], &free[1]]];
                pairs
                    .map(|[digits, tables]| leaves.look_up(digits, tables))
                    .into()
            }
            Self::CrossSelections => [[&free[0], &free[3]], [&free[2], &free[1]]]
                .map(|[bits, words]| products(&as_words(bits), words, u64::wrapping_mul))
                .into(),
            Self::Selections => {
                let bits = as_words(&free[0]);
                let chosen = products(&bits, &free[1], u64::wrapping_mul);
                vec![bits, chosen]
            }
            Self::GuardedSelections { below, reach } => {
                let guards = Self::Guards { below, reach };
                [Self::Selections.derive(free), guards.derive(&free[1..])].concat()
            }
            Self::Guards { below, .. } => {
                let upper: Vec<u64> = free[0].iter().map(|a| a >> below).collect();
                let both = products(&upper, &upper, |c, _| c.wrapping_mul(c.wrapping_add(1)));
                vec![upper, both]
            }
            Self::Lifts => vec![
                of_words(&free[0]),
                free[0].iter().map(|r| r >> 63).collect(),
            ],
            Self::ResidueTriples => vec![products(&free[0], &free[1], residues::multiply)],
            Self::CheckedTriples => {
                let [r, s] = [&free[0], &free[1]].map(|mask| lifted(mask));
                let pairs = r.iter().flat_map(|r| s.iter().map(move |s| (r, s)));
                let of_both = pairs.map(|(r, s)| products(r, s, residues::multiply));
                let of_both = of_both.collect();
                [Self::Triples.derive(free), r.into(), s.into(), of_both].concat()
            }
            Self::CheckedSquares => {
                let [r, top] = lifted(&free[0]);
                let with_r = [&r, &top].map(|column| products(&r, column, residues::multiply));
                [Self::Squares.derive(free), vec![r, top], with_r.into()].concat()
            }
        }
    }
}

/// Returns the residues of words.
fn of_words(words: &[u64]) -> Vec<u64> {
    let mut out = vec![0; words.len()];
    blocks::for_each(
        [&mut out],
        [words],
        #[inline(always)]
        |_, [out], [words]| {
            for i in 0..out.len() {
                out[i] = residues::of_word(words[i]);
            }
        },
    );
    out
}

/// Returns the residues of −a, and its highest bits.
pub(super) fn lifted(a: &[u64]) -> [Vec<u64>; 2] {
    let [mut residues, mut tops] = [(); 2].map(|()| vec![0; a.len()]);
    blocks::for_each(
        [&mut residues, &mut tops],
        [a],
        #[inline(always)]
        |_, [residues, tops], [a]| {
            for i in 0..a.len() {
                let negated = a[i].wrapping_neg();
                residues[i] = residues::of_word(negated);
                tops[i] = negated >> 63;
            }
        },
    );
    [residues, tops]
}

fn products(a: &[u64], b: &[u64], multiply: impl Fn(u64, u64) -> u64 + Sync) -> Vec<u64> {
    let mut out = vec![0; a.len()];
    blocks::for_each(
        [&mut out],
        [a, b],
        #[inline(always)]
        |_, [out], [a, b]| {
            for i in 0..out.len() {
                out[i] = multiply(a[i], b[i]);
            }
        },
    );
    out
}

/// Expands a plane of bits: bit i becomes word i.
pub(crate) fn as_words(plane: &[u64]) -> Vec<u64> {
    let mut words = vec![0; 64 * plane.len()];
    kernels::planes::join(plane, 1, words.len(), &mut words);
    words
}
