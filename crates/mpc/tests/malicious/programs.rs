//! Small programs, one for each operation. Each opens its result to all parties.

use crate::federation;
use kernels::convolution::Convolution;
use mpc::checks::{self, Group, Product};
use mpc::width::Width;
use mpc::{
    Addend, Affine, Bilinear, Bits, Compared, Fiber, Join, Operand, PartsMut, Protocol, Recipient,
    Result, Shift, Term,
};
use std::sync::{Arc, Mutex};

/// A program on n elements.
pub struct Program {
    /// What it is.
    pub name: &'static str,
    /// By how much two honest results may differ, since truncations round up or down.
    pub tolerance: u64,
    /// How often it opens something.
    pub openings: usize,
    /// Returns what this party learns.
    pub work: fn(&mut dyn Protocol, usize) -> Result<Vec<u64>>,
}

const fn exact(
    name: &'static str,
    work: fn(&mut dyn Protocol, usize) -> Result<Vec<u64>>,
) -> Program {
    Program {
        name,
        tolerance: 0,
        openings: 1,
        work,
    }
}

const fn rounding(
    name: &'static str,
    work: fn(&mut dyn Protocol, usize) -> Result<Vec<u64>>,
) -> Program {
    Program {
        name,
        tolerance: 1,
        openings: 1,
        work,
    }
}

/// The bits that the program "truncation" drops.
pub const SHIFT: u32 = 7;

/// A sharing of words.
pub type Shared = Vec<Vec<u64>>;

const fn opening(openings: usize, program: Program) -> Program {
    Program {
        openings,
        ..program
    }
}

/// All programs.
pub const PROGRAMS: [Program; 27] = [
    exact("sum of clients' vectors", |p, n| {
        let x = federation::sum(p, &federation::pieces(n, Width::Half), n, Width::Half)?;
        opened(p, &x)
    }),
    exact("clients' vectors", |p, n| {
        let x = federation::vectors(p, &federation::pieces(n + 1, Width::Whole), n)?;
        opened(p, &x)
    }),
    exact("share", |p, n| {
        let x = shared(p, n)?;
        opened(p, &x)
    }),
    exact("product", |p, n| {
        let (x, y) = (shared(p, n)?, shared(p, n)?);
        let z = product(p, &x, &y, n, None)?;
        opened(p, &z)
    }),
    exact("product of products", |p, n| {
        let x = shared(p, n)?;
        let y = product(p, &x, &x, n, None)?;
        let z = product(p, &y, &x, n, None)?;
        opened(p, &z)
    }),
    rounding("fixed-point product", |p, n| {
        let (x, y) = (shared(p, n)?, shared(p, n)?);
        let z = product(p, &x, &y, n, Shift::new(16))?;
        opened(p, &z)
    }),
    rounding("truncation", |p, n| {
        let x = shared(p, n)?;
        let mut z = zeros(p, n);
        let shift = Shift::new(SHIFT).expect("a shift");
        p.truncate(&parts(&x), shift, &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    exact("bits", |p, n| {
        let x = bits(p, n, 5)?;
        opened_bits(p, &x)
    }),
    exact("matrix product", |p, n| {
        let (m, k) = (3, n.div_ceil(64));
        let map = Bilinear::Matrix {
            batch: 2,
            m,
            k,
            n: 2,
        };
        mapped(p, &map)
    }),
    exact("product by a transpose", |p, n| {
        let k = n.div_ceil(64);
        let map = Bilinear::ByTransposed {
            batch: 1,
            m: 2,
            k,
            n: 3,
        };
        mapped(p, &map)
    }),
    exact("long inner products", |p, n| {
        let k = 1100 + n.div_ceil(64);
        let map = Bilinear::Matrix {
            batch: 2,
            m: 1,
            k,
            n: 3,
        };
        mapped(p, &map)
    }),
    exact("convolution", |p, n| {
        let map = Bilinear::Convolution(Convolution {
            batch: 1,
            groups: 2,
            in_channels: 2,
            out_channels: 4,
            input: [3, n.div_ceil(64) + 2],
            kernel: [2, 3],
            stride: [1, 1],
            padding: [1, 0],
            dilation: [1, 1],
        });
        mapped(p, &map)
    }),
    rounding("affine map", |p, n| {
        affine(p, n, |p, sum, out| p.affine(sum, out))
    }),
    rounding("rectified affine map", |p, n| {
        let compared = Compared::proved(40).dropping(3)?;
        affine(p, n, |p, sum, out| {
            p.rectified_affine(sum, compared, out).map(drop)
        })
    }),
    opening(
        2,
        exact("two fibers", |p, n| {
            let x = shared(p, n)?;
            let results = Arc::new(Mutex::new(vec![Vec::new(); 2]));
            let fiber = |at: usize| -> Fiber {
                let (results, x) = (Arc::clone(&results), x.clone());
                Box::new(move |p| {
                    let mut y = product(p, &x, &x, n, None)?;
                    for _ in 0..at {
                        y = product(p, &y, &x, n, None)?;
                    }
                    let opened = opened(p, &y)?;
                    results.lock().expect("no panic")[at] = opened;
                    Ok(())
                })
            };
            let mut fibers = vec![fiber(0), fiber(1)];
            p.side_by_side(&mut || std::mem::take(&mut fibers))?;
            let results = results.lock().expect("no panic");
            Ok(results.concat())
        }),
    ),
    opening(
        2,
        exact("AND", |p, n| {
            let (x, y) = (bits(p, n, 5)?, bits(p, n, 5)?);
            let both = p.and_all(&[Join::new(&x, vec![&y, &x])])?;
            let first = opened_bits(p, &both[0])?;
            Ok([first, opened_bits(p, &both[1])?].concat())
        }),
    ),
    exact("sign", |p, n| {
        let x = shared(p, n)?;
        let sign = p.sign(&parts(&x), 64)?;
        opened_bits(p, &sign)
    }),
    opening(
        2,
        exact("zero", |p, n| {
            let x = shared(p, n)?;
            let odd = p.equal_zero(&parts(&x), 9)?;
            let even = p.equal_zero(&parts(&x), 4)?;
            Ok([opened_bits(p, &odd)?, opened_bits(p, &even)?].concat())
        }),
    ),
    exact("decomposition", |p, n| {
        let x = shared(p, n)?;
        let binary = p.to_binary(&parts(&x), 11)?;
        opened_bits(p, &binary)
    }),
    exact("bit product", |p, n| {
        let (bit, x) = (bits(p, n, 1)?, shared(p, n)?);
        let mut z = zeros(p, n);
        p.bit_multiply(&bit, &parts(&x), &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    exact("bit as a number", |p, n| {
        let bit = bits(p, n, 1)?;
        let mut z = zeros(p, n);
        p.bit_to_ring(&bit, &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    exact("ReLU", |p, n| {
        let x = shared(p, n)?;
        let mut z = zeros(p, n);
        let compared = Compared::proved(64);
        p.rectify(&parts(&x), None, compared, &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    opening(
        2,
        exact("guarded ReLU", |p, n| {
            let x = shared(p, n)?;
            let compared = Compared::guarded(24, 9)?.dropping(2)?;
            let mut z = zeros(p, n);
            let tally = p.rectify(&parts(&x), None, compared, &mut parts_mut(&mut z))?;
            let fits = p.in_range(&[&tally.expect("a guard")])?;
            Ok([opened_bits(p, &fits)?, opened(p, &z)?].concat())
        }),
    ),
    exact("guard out of range", |p, n| {
        let x = shared(p, n)?;
        let mut z = zeros(p, n);
        let compared = Compared::guarded(20, 46)?;
        let tally = p.rectify(&parts(&x), None, compared, &mut parts_mut(&mut z))?;
        p.toss()?;
        let tally = tally.expect("a guard");
        let fits = p.in_range(&[&tally, &tally])?;
        opened_bits(p, &fits)
    }),
    exact("checks", |p, n| checked(p, n, 1)),
    exact("checks that fail", |p, n| checked(p, n, 1 << 23)),
    opening(
        3,
        exact("opening to one", |p, n| {
            let (x, y) = (shared(p, n)?, shared(p, n)?);
            let z = product(p, &x, &y, n, None)?;
            let mut all = Vec::new();
            for party in 0..3 {
                let one = p.reveal(&parts(&z), Recipient::One(party))?;
                all.extend(one.unwrap_or_default());
            }
            Ok(all)
        }),
    ),
];

/// Shares numbers below 2^21 of either sign, zero among them, so that products can be truncated.
pub fn shared(p: &mut dyn Protocol, n: usize) -> Result<Shared> {
    let values: Vec<u64> = (0..n as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 43).wrapping_sub(1 << 20))
        .map(|value| if value % 5 == 0 { 0 } else { value })
        .collect();
    let mut x = zeros(p, n);
    let mine = (p.party() == 1).then_some(&values[..]);
    p.share(1, mine, n, &mut parts_mut(&mut x))?;
    Ok(x)
}

fn bits(p: &mut dyn Protocol, n: usize, width: usize) -> Result<Bits> {
    let words = width * n.div_ceil(64);
    let planes: Vec<u64> = (1..=words as u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let mine = (p.party() == 2).then_some(&planes[..]);
    p.share_bits(2, mine, width, n)
}

pub fn product(
    p: &mut dyn Protocol,
    x: &Shared,
    y: &Shared,
    n: usize,
    shift: Option<Shift>,
) -> Result<Shared> {
    let mut z = zeros(p, n);
    let (x, y) = (parts(x), parts(y));
    let map = Bilinear::Elementwise { n };
    p.bilinear(
        &map,
        Operand::once(&x),
        Operand::once(&y),
        shift,
        &mut parts_mut(&mut z),
    )?;
    Ok(z)
}

/// Applies a map to two shared operands, and opens the outputs.
pub fn mapped(p: &mut dyn Protocol, map: &Bilinear) -> Result<Vec<u64>> {
    let (left, right, n) = map.lengths();
    let (x, y, mut z) = (shared(p, left)?, shared(p, right)?, zeros(p, n));
    let (x, y) = (parts(&x), parts(&y));
    let (x, y) = (Operand::once(&x), Operand::once(&y));
    p.bilinear(map, x, y, None, &mut parts_mut(&mut z))?;
    opened(p, &z)
}

/// Opens the sum of two products and an addend.
fn affine(
    p: &mut dyn Protocol,
    n: usize,
    work: impl FnOnce(&mut dyn Protocol, &Affine, PartsMut) -> Result<()>,
) -> Result<Vec<u64>> {
    let x = shared(p, n)?;
    let z = affine_of(p, &x, n, work)?;
    opened(p, &z)
}

/// Computes the sum of two squares of x, and x as an addend.
fn affine_of(
    p: &mut dyn Protocol,
    x: &Shared,
    n: usize,
    work: impl FnOnce(&mut dyn Protocol, &Affine, PartsMut) -> Result<()>,
) -> Result<Shared> {
    let (x, mut z) = (parts(x), zeros(p, n));
    let term = || Term {
        map: Bilinear::Elementwise { n },
        x: Operand::once(&x),
        y: Operand::once(&x),
    };
    let sum = Affine {
        terms: &[term(), term()],
        addends: &[Addend::whole(&x)],
        shift: Shift::new(16).expect("a shift"),
    };
    work(p, &sum, &mut parts_mut(&mut z))?;
    Ok(z)
}

/// Checks products of numbers that are shared, times `scale`: one with an addend that is truncated,
/// and one that is not; and ranges. Opens whether all of it holds.
fn checked(p: &mut dyn Protocol, n: usize, scale: u64) -> Result<Vec<u64>> {
    let mut x = shared(p, n)?;
    for word in x.iter_mut().flatten() {
        *word = word.wrapping_mul(scale);
    }
    p.checking().expect("it checks").keep();
    let truncated = affine_of(p, &x, n, |p, sum, out| p.affine(sum, out))?;
    let kept = p.checking().expect("it checks").kept();
    let kept = kept.expect("no rehearsal");
    let whole = product(p, &x, &x, n, None)?;
    let all = [&x, &truncated, &whole].map(parts);
    let tensors: Vec<&[&[u64]]> = all.iter().map(Vec::as_slice).collect();
    let map = Bilinear::Elementwise { n };
    let square = || checks::Term { map, x: 0, y: 0 };
    let of_sum = Product {
        terms: vec![square(), square()],
        addends: vec![checks::Addend { x: 0, run: 1 }],
        out: 1,
        shift: Shift::new(16),
        rest: &kept.rest,
        factors: &kept.factors,
    };
    let of_whole = Product {
        terms: vec![square()],
        addends: Vec::new(),
        out: 2,
        shift: None,
        rest: &[],
        factors: &[],
    };
    let groups = [
        Group {
            products: vec![of_sum],
            holds: vec![(0, 63), (0, 40)],
            exact: Vec::new(),
        },
        Group {
            products: vec![of_whole],
            holds: vec![(2, 63)],
            exact: vec![(0, 24)],
        },
    ];
    let hold = checks::settle(p, &tensors, &groups)?;
    opened_bits(p, &hold)
}

pub fn opened(p: &mut dyn Protocol, x: &Shared) -> Result<Vec<u64>> {
    Ok(p.reveal(&parts(x), Recipient::All)?
        .expect("all receive it"))
}

fn opened_bits(p: &mut dyn Protocol, x: &Bits) -> Result<Vec<u64>> {
    Ok(p.reveal_bits(x, Recipient::All)?.expect("all receive it"))
}

pub fn zeros(p: &dyn Protocol, n: usize) -> Shared {
    vec![vec![0; n]; p.parts()]
}

pub fn parts(x: &Shared) -> Vec<&[u64]> {
    x.iter().map(Vec::as_slice).collect()
}

pub fn parts_mut(x: &mut Shared) -> Vec<&mut [u64]> {
    x.iter_mut().map(Vec::as_mut_slice).collect()
}
