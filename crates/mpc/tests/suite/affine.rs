//! Tests of affine maps, and of max(x, 0) combined with their truncation.

use super::truncation::assert_within_a_unit;
use super::{agreed, values};
use kernels::convolution::Convolution;
use mpc::{
    Addend, Affine, Bilinear, Compared, Opening, Operand, Operation, Protocol, Result, Shift, Term,
};
use testkit::{Random, Shared, run, usual_parties};

const F: u32 = 13;

fn shift() -> Shift {
    Shift::new(F).expect("a valid shift")
}

/// Returns the shift of any sum, and that of a narrow one.
fn shifts() -> [Shift; 2] {
    [shift(), shift().of_narrow().expect("a valid narrow shift")]
}

/// The terms that a layer may have: x·w over pixels and their neighbours, u·v elementwise, a
/// product of matrices, an addend, and a bias over channels of two images or over columns.
struct Layer {
    operands: Vec<Vec<u64>>,
    maps: Vec<Bilinear>,
    addend: Vec<u64>,
    bias: Vec<u64>,
}

/// How many consecutive elements take one number of a bias.
const RUNS: [usize; 2] = [8, 1];

impl Layer {
    fn new(n: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut numbers = |n: usize, bits: u32| -> Vec<u64> {
            (0..n).map(|_| random.signed(bits) as u64).collect()
        };
        let convolution = Bilinear::Convolution(Convolution {
            batch: 1,
            groups: 1,
            in_channels: 2,
            out_channels: n / 8,
            input: [4, 4],
            kernel: [3, 3],
            stride: [2, 1],
            padding: [1, 1],
            dilation: [1, 1],
        });
        let maps = vec![
            convolution,
            Bilinear::Elementwise { n },
            Bilinear::Matrix {
                batch: 1,
                m: 8,
                k: 5,
                n: n / 8,
            },
        ];
        let lengths = maps.iter().flat_map(|map| {
            assert_eq!(map.lengths().2, n);
            [map.lengths().0, map.lengths().1]
        });
        let operands = lengths.map(|n| numbers(n, 20)).collect();
        let mut addend = numbers(n, 30);
        // Results near zero are included.
        addend
            .iter_mut()
            .step_by(3)
            .for_each(|x| *x = (*x as i64 >> 20) as u64);
        let bias = numbers(n / 16, 9);
        Self {
            operands,
            maps,
            addend,
            bias,
        }
    }

    /// Computes the sum before the truncation.
    fn exactly(&self, terms: usize, with_addend: bool) -> Vec<i64> {
        let n = self.addend.len();
        let mut total = vec![0_u64; n];
        for (at, map) in self.maps[..terms].iter().enumerate() {
            let mut product = vec![0; n];
            map.evaluate(
                &mut product,
                &[(&self.operands[2 * at], &self.operands[2 * at + 1])],
            );
            total
                .iter_mut()
                .zip(product)
                .for_each(|(total, x)| *total = total.wrapping_add(x));
        }
        if with_addend {
            for (at, total) in total.iter_mut().enumerate() {
                let of_bias = RUNS.map(|run| self.bias[at / run % self.bias.len()]);
                for x in of_bias.iter().chain([&self.addend[at]]) {
                    *total = total.wrapping_add(x << F);
                }
            }
        }
        total.into_iter().map(|x| x as i64).collect()
    }

    fn carried_out(
        &self,
        p: &mut dyn Protocol,
        terms: usize,
        with_addend: bool,
        shift: Shift,
        work: impl FnOnce(&mut dyn Protocol, &Affine, mpc::PartsMut) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let shared: Result<Vec<Shared>> = self
            .operands
            .iter()
            .map(|x| Shared::input(p, 0, x))
            .collect();
        let (addend, bias) = (
            Shared::input(p, 1, &self.addend)?,
            Shared::input(p, 1, &self.bias)?,
        );
        let shared = shared?;
        let slices: Vec<Vec<&[u64]>> = shared.iter().map(Shared::slices).collect();
        let (addend, bias) = (addend.slices(), bias.slices());
        let [channels, columns] = RUNS.map(|run| Addend { parts: &bias, run });
        let addends = [channels, Addend::whole(&addend), columns];
        let operand = |at: usize| Operand::once(&slices[at]);
        let terms: Vec<Term> = (0..terms)
            .map(|at| Term {
                map: self.maps[at],
                x: operand(2 * at),
                y: operand(2 * at + 1),
            })
            .collect();
        let sum = Affine {
            terms: &terms,
            addends: if with_addend { &addends } else { &[] },
            shift,
        };
        Shared::made(p, self.addend.len(), |p, out| work(p, &sum, out))?.open(p)
    }
}

/// A named operand occurs in several terms, once on the left and twice on the right, and the sum is
/// computed again. Each time it is right, and takes the rounds of a single product and its
/// truncation.
pub fn named_operands_of_several_terms(protocol: &str) {
    const NAME: mpc::Name = 7;
    let n = 1536;
    let map = Bilinear::Elementwise { n };
    let mut random = Random::new(5);
    let [weights, x, y]: [Vec<u64>; 3] =
        [(); 3].map(|()| (0..n).map(|_| random.signed(20) as u64).collect());
    let results = run(protocol, usual_parties(protocol), |p| {
        let opening = Opening::New(n as u64);
        let declared = p.cost(Operation::Affine {
            left: opening,
            right: opening,
            n: n as u64,
            shift: shift(),
        });
        // At this point, the parties have all taken the same rounds.
        let zeros = [Shared::zeros(p, n), Shared::zeros(p, n)];
        let zeros = zeros.each_ref().map(Shared::slices);
        let [zero, other] = zeros.each_ref().map(|x| Operand::once(x));
        let terms = [(zero, other), (other, zero), (zero, zero)];
        let sum = Affine {
            terms: &terms.map(|(x, y)| Term { map, x, y }),
            addends: &[],
            shift: shift(),
        };
        let before = p.channel().meter().totals().rounds;
        Shared::made(p, n, |p, out| p.affine(&sum, out))?;
        let taken = p.channel().meter().totals().rounds - before;
        let rounds = [taken, declared.rounds];
        let shared: Result<Vec<Shared>> = [&weights, &x, &y]
            .into_iter()
            .map(|x| Shared::input(p, 0, x))
            .collect();
        let shared = shared?;
        let slices: Vec<Vec<&[u64]>> = shared.iter().map(Shared::slices).collect();
        let named = Operand {
            parts: &slices[0],
            name: Some(NAME),
        };
        let [x, y] = [&slices[1], &slices[2]].map(|x| Operand::once(x));
        let terms = [(named, x), (y, named), (x, y), (named, named)];
        let terms = terms.map(|(x, y)| Term { map, x, y });
        let sum = Affine {
            terms: &terms,
            addends: &[],
            shift: shift(),
        };
        let mut opened = Vec::new();
        for _ in 0..2 {
            opened.push(Shared::made(p, n, |p, out| p.affine(&sum, out))?.open(p)?);
        }
        p.forget(NAME);
        Ok((opened, rounds))
    });
    let most = results.iter().map(|(_, rounds)| rounds[0]).max();
    assert_eq!(most, Some(results[0].1[1]), "rounds");
    for found in results.into_iter().flat_map(|(opened, _)| opened) {
        for (i, found) in found.into_iter().enumerate() {
            let [w, x, y] = [&weights, &x, &y].map(|words| words[i] as i64);
            assert_within_a_unit(w * x + y * w + x * y + w * w, F, found as i64);
        }
    }
}

/// Numbers of elements. Roles are rotated from 1536 on.
const SIZES: [usize; 3] = [64, 1536, 8 * 500];

pub fn sums(protocol: &str) {
    for n in SIZES {
        let layer = Layer::new(n, n as u64);
        for terms in 1..=3 {
            for (with_addend, shift) in [false, true]
                .iter()
                .flat_map(|is| shifts().map(|of| (*is, of)))
            {
                let found = agreed(run(protocol, usual_parties(protocol), |p| {
                    layer.carried_out(p, terms, with_addend, shift, |p, sum, out| {
                        p.affine(sum, out)
                    })
                }));
                for (exact, found) in layer.exactly(terms, with_addend).iter().zip(found) {
                    assert_within_a_unit(*exact, F, found as i64);
                }
            }
        }
    }
}

/// Results are within a unit, and negative ones are zero: in 64 bits, in fewer proved bits, and
/// guarded.
pub fn rectified_sums(protocol: &str) {
    let guarded = Compared::guarded(41, 20).expect("a valid guard");
    for n in SIZES {
        let layer = Layer::new(n, 7 + n as u64);
        for compared in [Compared::proved(64), Compared::proved(40), guarded] {
            for (terms, shift) in (1..=3).zip(shifts().into_iter().cycle()) {
                let found = agreed(run(protocol, usual_parties(protocol), |p| {
                    layer.carried_out(p, terms, true, shift, |p, sum, out| {
                        p.rectified_affine(sum, compared, out).map(drop)
                    })
                }));
                for (exact, found) in layer.exactly(terms, true).iter().zip(found) {
                    if *exact < 0 {
                        assert_eq!(found, 0, "max(0, {exact})");
                    } else {
                        assert_within_a_unit(*exact, F, found as i64);
                    }
                }
            }
        }
    }
}

/// Every number of units around zero and around the ends of the compared range, with every kind of
/// dropped bits.
pub fn rectified_edges(protocol: &str) {
    let end = 1_i64 << (15 - 1);
    let units = (-300..300)
        .chain(end - 300..end - 1)
        .chain(2 - end..300 - end);
    let x: Vec<i64> = units
        .flat_map(|unit| [0, 1, 1 << (F - 1), (1 << F) - 1].map(|dropped| (unit << F) + dropped))
        .collect();
    let words: Vec<u64> = x.iter().map(|x| *x as u64).collect();
    let n = x.len();
    let widths = [15, 16, 38, 39, 51, 52, 64].map(Compared::proved);
    for (compared, shift) in widths
        .iter()
        .flat_map(|of| shifts().map(|shift| (*of, shift)))
    {
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let (x, one) = (
                Shared::input(p, 0, &words)?,
                Shared::input(p, 1, &vec![1; n])?,
            );
            let (x, one) = (x.slices(), one.slices());
            let terms = [Term {
                map: Bilinear::Elementwise { n },
                x: Operand::once(&x),
                y: Operand::once(&one),
            }];
            let sum = Affine {
                terms: &terms,
                addends: &[],
                shift,
            };
            Shared::made(p, n, |p, out| {
                p.rectified_affine(&sum, compared, out).map(drop)
            })?
            .open(p)
        }));
        for (exact, found) in x.iter().zip(found) {
            if *exact < 0 {
                assert_eq!(found, 0, "max(0, {exact}) in {compared:?}");
            } else {
                assert_within_a_unit(*exact, F, found as i64);
            }
        }
    }
}

/// Rectified sums at the largest magnitudes that can be truncated.
pub fn rectified_whole_range(protocol: &str) {
    let [any, narrow] = shifts();
    rectified_below(protocol, 62, any);
    rectified_below(protocol, Shift::NARROW, narrow);
}

fn rectified_below(protocol: &str, bits: u32, shift: Shift) {
    let words = values(bits, 20_000, 11);
    let n = words.len();
    let found = agreed(run(protocol, usual_parties(protocol), |p| {
        let (x, one) = (
            Shared::input(p, 0, &words)?,
            Shared::input(p, 1, &vec![1; n])?,
        );
        let (x, one) = (x.slices(), one.slices());
        let terms = [Term {
            map: Bilinear::Elementwise { n },
            x: Operand::once(&x),
            y: Operand::once(&one),
        }];
        let sum = Affine {
            terms: &terms,
            addends: &[],
            shift,
        };
        let compared = Compared::proved(64);
        Shared::made(p, n, |p, out| {
            p.rectified_affine(&sum, compared, out).map(drop)
        })?
        .open(p)
    }));
    for (exact, found) in words.iter().zip(found) {
        if (*exact as i64) < 0 {
            assert_eq!(found, 0);
        } else {
            assert_within_a_unit(*exact as i64, F, found as i64);
        }
    }
}

/// Narrow blocked products, of which three parties evaluate a third each, with every sum at or next
/// to an end of its range. Results are within a unit, so exact if the sum is a whole number.
pub fn narrow_ends(protocol: &str) {
    const K: usize = 300;
    let convolution = Bilinear::Convolution(Convolution {
        batch: 1,
        groups: 1,
        in_channels: K,
        out_channels: 40,
        input: [1, 9],
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
    });
    let (batch, m, k, n) = (1, 40, K, 9);
    let maps = [
        Bilinear::Matrix { batch, m, k, n },
        Bilinear::ByTransposed { batch, m, k, n },
        convolution,
    ];
    let end = (1_i64 << Shift::NARROW) - 1;
    // Sums are ±(most + at), by rows and columns.
    let most = end - 1 - (m as i64) * (1 << F);
    let each = most / (K as i64 - 1);
    let x: Vec<i64> = (0..m * K)
        .map(|at| match (at / K, at % K) {
            (row, 0) => most - each * (K as i64 - 1) + (row as i64) * (1 << F) + [0, 1][row % 2],
            _ => each,
        })
        .collect();
    let signs: Vec<i64> = (0..n).map(|column| [1, -1][column % 2]).collect();
    for map in maps {
        let (of_left, of_right, of_result) = map.lengths();
        // In a convolution the images are on the left, and the rows are its filters.
        let columns: Vec<u64> = (0..K * n)
            .map(|at| match map {
                Bilinear::ByTransposed { .. } => signs[at / K] as u64,
                _ => signs[at % n] as u64,
            })
            .collect();
        let rows: Vec<u64> = x.iter().map(|x| *x as u64).collect();
        let (left, right) = match map {
            Bilinear::Convolution(_) => (&columns, &rows),
            _ => (&rows, &columns),
        };
        assert_eq!((left.len(), right.len()), (of_left, of_right));
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let (left, right) = (Shared::input(p, 0, left)?, Shared::input(p, 1, right)?);
            let [_, narrow] = shifts();
            let (left, right) = (left.slices(), right.slices());
            Shared::made(p, of_result, |p, out| {
                let [left, right] = [&left, &right].map(|parts| Operand::once(parts));
                p.bilinear(&map, left, right, Some(narrow), out)
            })?
            .open(p)
        }));
        for (at, found) in found.into_iter().enumerate() {
            let (row, column) = (at / n, at % n);
            let exact = signs[column] * x[row * K..][..K].iter().sum::<i64>();
            assert!(exact.abs() <= end && exact.abs() >= most);
            assert_within_a_unit(exact, F, found as i64);
        }
    }
}
