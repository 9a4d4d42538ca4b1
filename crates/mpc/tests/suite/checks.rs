//! Tests of checks of products: passed results are right, and right results pass.

use super::agreed;
use kernels::convolution::Convolution;
use mpc::checks::{self, Addend, Group, Product, Term};
use mpc::{
    Affine, Bilinear, Bits, Compared, Factors, Kept, Operand, Parts, Protocol, Recipient, Result,
    Shift, Summands,
};
use std::sync::Arc;
use testkit::{Random, Shared, run, usual_parties};

/// The number of fraction bits that are dropped.
const F: u32 = 16;

/// The operation that makes a product.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum By {
    Whole,
    Truncated,
    Narrow,
    Added,
    Rectified,
    /// Truncated by one bit.
    Halved,
}

impl By {
    const ALL: [Self; 5] = [
        Self::Whole,
        Self::Truncated,
        Self::Narrow,
        Self::Added,
        Self::Rectified,
    ];

    fn shift(self) -> Option<Shift> {
        let shift = Shift::new(F);
        match self {
            Self::Whole => None,
            Self::Narrow => shift.and_then(Shift::of_narrow),
            Self::Truncated | Self::Added | Self::Rectified => shift,
            Self::Halved => Shift::new(1),
        }
    }

    fn has_addend(self) -> bool {
        matches!(self, Self::Added | Self::Rectified)
    }
}

fn maps() -> Vec<Bilinear> {
    let image = Convolution {
        batch: 2,
        groups: 1,
        in_channels: 3,
        out_channels: 4,
        input: [5, 6],
        kernel: [3, 2],
        stride: [1, 2],
        padding: [1, 1],
        dilation: [1, 2],
    };
    vec![
        Bilinear::Elementwise { n: 1 },
        Bilinear::Elementwise { n: 2000 },
        Bilinear::Matrix {
            batch: 1,
            m: 1,
            k: 7,
            n: 1,
        },
        Bilinear::Matrix {
            batch: 3,
            m: 4,
            k: 5,
            n: 2,
        },
        Bilinear::Matrix {
            batch: 1,
            m: 40,
            k: 3,
            n: 50,
        },
        Bilinear::ByTransposed {
            batch: 2,
            m: 3,
            k: 4,
            n: 5,
        },
        Bilinear::Convolution(image),
        Bilinear::Convolution(Convolution {
            stride: [2, 1],
            padding: [0, 2],
            dilation: [2, 1],
            ..image
        }),
        Bilinear::Convolution(Convolution {
            groups: 3,
            out_channels: 6,
            ..image
        }),
        Bilinear::Convolution(Convolution {
            groups: 3,
            out_channels: 3,
            kernel: [1, 1],
            padding: [0, 0],
            ..image
        }),
    ]
}

/// Computes the map over the integers from the ring's results for separate digits, so that it needs
/// no other summation.
fn exactly(map: &Bilinear, x: &[i64], y: &[i64]) -> Vec<i128> {
    // x = high·2^32 + low with small digits, and y likewise: every product of digits fits the ring.
    let digits = |x: &[i64]| -> Vec<Vec<u64>> {
        (0..3)
            .map(|at| {
                let digit = |x: &i64| match at {
                    2 => *x >> 42,
                    _ => *x >> (21 * at) & ((1 << 21) - 1),
                };
                x.iter().map(|x| digit(x) as u64).collect()
            })
            .collect()
    };
    let (x, y, n) = (digits(x), digits(y), map.lengths().2);
    let mut total = vec![0_i128; n];
    for (i, x) in x.iter().enumerate() {
        for (j, y) in y.iter().enumerate() {
            let mut product = vec![0; n];
            map.evaluate(&mut product, &[(x, y)]);
            for (total, product) in total.iter_mut().zip(&product) {
                *total += i128::from(*product as i64) << (21 * (i + j));
            }
        }
    }
    total
}

/// A test case: operands, and an addend.
pub(super) struct Case {
    pub map: Bilinear,
    pub by: By,
    /// Whether x is multiplied with itself. Then y has the same numbers.
    pub is_square: bool,
    pub x: Vec<i64>,
    pub y: Vec<i64>,
    pub added: Vec<i64>,
}

impl Case {
    /// Draws magnitudes whose products are on both sides of the range.
    fn random(map: Bilinear, by: By, generator: &mut Random) -> Self {
        let (left, right, n) = map.lengths();
        let limit = if by == By::Narrow { Shift::NARROW } else { 62 };
        let total = limit - 6 + (generator.word() % 20) as u32;
        let bits = (total / 4 + (generator.word() % u64::from(total / 2)) as u32).min(59);
        let mut numbers = |n: usize, bits: u32| -> Vec<i64> {
            (0..n)
                .map(|_| generator.signed(bits.clamp(1, 59)))
                .collect()
        };
        let x = numbers(left, bits);
        let y = numbers(right, total.saturating_sub(bits));
        let added = if by.has_addend() {
            numbers(n, 40)
        } else {
            Vec::new()
        };
        Self {
            map,
            by,
            is_square: false,
            x,
            y,
            added,
        }
    }

    /// Returns the same case with the square of x.
    fn squared(self) -> Self {
        Self {
            is_square: true,
            y: self.x.clone(),
            ..self
        }
    }

    fn exact(&self) -> Vec<i128> {
        let mut exact = exactly(&self.map, &self.x, &self.y);
        for (exact, added) in exact.iter_mut().zip(&self.added) {
            *exact += i128::from(*added) << F;
        }
        exact
    }

    /// Returns whether the case must pass.
    pub fn is_in_range(&self) -> bool {
        let limit = match self.by {
            By::Narrow => 1 << Shift::NARROW,
            By::Whole => 1 << 60,
            By::Truncated | By::Added | By::Halved => 1 << 62,
            By::Rectified => 1 << 61,
        };
        self.exact().iter().all(|exact| exact.abs() < limit)
    }

    /// Returns whether a result is right.
    fn is(&self, words: &[u64]) -> bool {
        let right = |(exact, word): (&i128, &u64)| {
            let word = i128::from(*word as i64);
            if self.by == By::Whole {
                return word == *exact;
            }
            let down = exact >> F;
            let near = word == down || word == down + 1;
            match self.by {
                By::Rectified => (near && word >= 0) || (word == 0 && *exact < 1 << F),
                _ => near,
            }
        };
        self.exact().iter().zip(words).all(right)
    }
}

/// The tensors of a case (operands, addend and results), and the values kept for its check.
struct Done {
    tensors: Vec<Shared>,
    kept: Kept,
}

fn done(p: &mut dyn Protocol, case: &Case) -> Result<Done> {
    let words = |x: &[i64]| x.iter().map(|x| *x as u64).collect::<Vec<_>>();
    let x = Shared::input(p, 0, &words(&case.x))?;
    let y = Shared::input(p, 1, &words(&case.y))?;
    let added = Shared::input(p, 0, &words(&case.added))?;
    let n = case.map.lengths().2;
    p.checking().expect("the protocol checks ranges").keep();
    let out = Shared::made(p, n, |p, out| {
        let (x, y, added) = (x.slices(), y.slices(), added.slices());
        let y = if case.is_square { &x } else { &y };
        let [x, y] = [Operand::once(&x), Operand::once(y)];
        let terms = [mpc::Term {
            map: case.map,
            x,
            y,
        }];
        let addends = [mpc::Addend::whole(&added)];
        let Some(shift) = case.by.shift() else {
            return p.bilinear(&case.map, x, y, None, out);
        };
        let sum = Affine {
            terms: &terms,
            addends: &addends[..usize::from(case.by.has_addend())],
            shift,
        };
        match case.by {
            By::Rectified => p
                .rectified_affine(&sum, Compared::proved(64), out)
                .map(drop),
            By::Added => p.affine(&sum, out),
            _ => p.bilinear(&case.map, x, y, Some(shift), out),
        }
    })?;
    let checking = p.checking().expect("there are checks");
    let kept = checking.kept().expect("not in a rehearsal");
    Ok(Done {
        tensors: vec![x, y, added, out],
        kept,
    })
}

/// Returns the results of all cases, and whether the checks of each hold.
pub(super) fn checked(p: &mut dyn Protocol, cases: &[Case]) -> Result<(Vec<Vec<u64>>, Vec<bool>)> {
    checked_after(p, cases, |_, _| ())
}

/// [`checked`], after a change to what the party with this number has kept.
fn checked_after(
    p: &mut dyn Protocol,
    cases: &[Case],
    change: impl Fn(usize, &mut Kept),
) -> Result<(Vec<Vec<u64>>, Vec<bool>)> {
    let mut all: Vec<Done> = cases
        .iter()
        .map(|case| done(p, case))
        .collect::<Result<_>>()?;
    for done in &mut all {
        change(p.party(), &mut done.kept);
    }
    let all = all;
    let slices: Vec<Vec<&[u64]>> = all
        .iter()
        .flat_map(|done| {
            let truncated: Vec<&[u64]> = done.kept.truncated.iter().map(Vec::as_slice).collect();
            let given = done.tensors.iter().map(Shared::slices);
            given.chain([truncated]).collect::<Vec<_>>()
        })
        .collect();
    let tensors: Vec<Parts> = slices.iter().map(Vec::as_slice).collect();
    let groups: Vec<Group> = cases
        .iter()
        .zip(&all)
        .enumerate()
        .map(|(at, (case, done))| {
            let place = |i: usize| 5 * at + i;
            let is_rectified = !done.kept.truncated.is_empty();
            let mut holds = vec![(place(0), 63), (place(1), 63)];
            if case.by == By::Whole {
                holds.push((place(3), 63));
            }
            if is_rectified {
                // A sum that overflows its word may have a right truncation by luck. Its sign is
                // then wrong.
                holds.push((place(4), 64 - F as usize));
            }
            Group {
                products: vec![Product {
                    terms: vec![Term {
                        map: case.map,
                        x: place(0),
                        y: place(usize::from(!case.is_square)),
                    }],
                    addends: (0..usize::from(case.by.has_addend()))
                        .map(|_| Addend {
                            x: place(2),
                            run: 1,
                        })
                        .collect(),
                    out: place(if is_rectified { 4 } else { 3 }),
                    shift: case.by.shift(),
                    rest: &done.kept.rest,
                    factors: &done.kept.factors,
                }],
                holds,
                exact: Vec::new(),
            }
        })
        .collect();
    let with_residues = groups.iter().zip(&all);
    let kept = with_residues
        .filter(|(_, done)| !done.kept.residues.is_empty())
        .map(|(group, done)| {
            let residues = checks::Residues::of(done.kept.residues.clone());
            (group.products[0].out, Arc::new(residues))
        })
        .collect();
    let bits = checks::settle_keeping(p, &tensors, &kept, &groups)?;
    let opened = opened(p, &bits)?;
    let results = all.iter().map(|done| done.tensors[3].open(p));
    Ok((results.collect::<Result<_>>()?, opened))
}

/// Opens the bits of groups.
pub(super) fn opened(p: &mut dyn Protocol, bits: &Bits) -> Result<Vec<bool>> {
    let plane = p.reveal_bits(bits, Recipient::All)?.expect("opened to all");
    Ok((0..bits.len())
        .map(|i| super::bit(&plane, i) == 1)
        .collect())
}

/// Products on both sides of their range: no wrong result passes, and every result in range passes.
pub fn products(protocol: &str, rounds: u64, seed: u64) {
    let mut cases = Vec::new();
    let mut generator = Random::new(seed);
    for round in 0..rounds {
        for map in maps() {
            for by in By::ALL {
                if round > 0 && map.lengths().2 > 100 {
                    continue;
                }
                cases.push(Case::random(map, by, &mut generator));
                if let Bilinear::Elementwise { .. } = map {
                    cases.push(Case::random(map, by, &mut generator).squared());
                }
            }
        }
    }
    let (results, passed) = agreed(run(protocol, usual_parties(protocol), |p| {
        checked(p, &cases)
    }));
    let (mut right, mut wrong) = (0, 0);
    for ((case, words), passed) in cases.iter().zip(&results).zip(&passed) {
        assert!(
            *passed || !case.is_in_range(),
            "{:?} {:?} is refused",
            case.by,
            case.map
        );
        assert!(
            !passed || case.is(words),
            "{:?} {:?} is accepted although it is wrong",
            case.by,
            case.map
        );
        right += usize::from(*passed);
        wrong += usize::from(!passed);
    }
    assert!(
        right > cases.len() / 10 && wrong > cases.len() / 10,
        "{right} right, {wrong} wrong"
    );
}

/// What an operation kept is part of its check: whoever changes it by one unit is noticed.
pub fn changes_are_noticed(protocol: &str) {
    let mut generator = Random::new(3);
    let cases: Vec<Case> = maps()
        .into_iter()
        .flat_map(|map| [By::Truncated, By::Added, By::Rectified].map(|by| (map, by)))
        .flat_map(|(map, by)| {
            let mut small = || {
                let mut case = Case::random(map, by, &mut generator);
                case.x.iter_mut().for_each(|x| *x %= 1 << 20);
                case.y.iter_mut().for_each(|y| *y %= 1 << 20);
                case
            };
            let is_elementwise = matches!(map, Bilinear::Elementwise { .. });
            let square = is_elementwise.then(|| small().squared());
            [small()].into_iter().chain(square)
        })
        .collect();
    let changes: [fn(usize, &mut Kept); 4] = [
        |_, _| (),
        |party, kept| {
            if let Some(rest) = summands(0, party, &mut kept.rest) {
                rest[0] = rest[0].wrapping_add(1);
            }
        },
        |party, kept| {
            if let Some(residues) = summands(1, party, &mut kept.residues) {
                let last = residues.last_mut().expect("an element");
                *last = (*last + 1) % ((1 << 31) - 1);
            } else if let (true, Some(rest)) =
                (kept.residues.is_empty(), summands(1, party, &mut kept.rest))
            {
                *rest.last_mut().expect("bits were dropped") ^= 1;
            }
        },
        |party, kept| {
            // Of two parties, and of replicated ones, products give no residues.
            if kept.factors.is_empty() {
                if let Some(rest) = summands(1, party, &mut kept.rest) {
                    rest[0] ^= 1;
                }
            } else if party == 1 {
                change_factor(&mut kept.factors);
            }
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let (_, passed) = agreed(run(protocol, usual_parties(protocol), |p| {
            // Plain parties compute the same, each alone.
            let is_plain = protocol == "plain";
            checked_after(p, &cases, |party, kept| {
                change(if is_plain { usize::from(at > 1) } else { party }, kept);
            })
        }));
        assert!(
            passed.iter().all(|passed| *passed == (at == 0)),
            "{at}: {passed:?}"
        );
    }
}

/// Returns the summands of a place, if this party knows them. If parties know two places each, two
/// of them know each summand, and must change it alike.
fn summands(place: usize, party: usize, lists: &mut Summands) -> Option<&mut Vec<u64>> {
    let at = match lists.len() {
        2 => (place + 3 - party) % 3,
        _ => place.abs_diff(party),
    };
    lists.get_mut(at)
}

/// Changes a residue that a product gave by one unit.
fn change_factor(factors: &mut [Factors]) {
    let factors = &mut factors[0];
    let [left, right] = &mut factors.operands;
    let mut operands = [right, left].into_iter().flatten();
    let residues = match &mut factors.products {
        Some(products) => &mut products[0],
        None => &mut Arc::make_mut(operands.next().expect("new masks give residues"))[0],
    };
    let last = residues.last_mut().expect("an element");
    *last = (*last + 1) % ((1 << 31) - 1);
}
