//! Tests of additive sharing beyond the generic suite.

use kernels::convolution::Convolution;
use kernels::planes::words_of;
use mpc::{
    Bilinear, Cost, Name, Opening, Operand, Operation, OwnedFiber, Protocol, Recipient, Result,
    Shift,
};
use std::sync::mpsc::channel;
use testkit::{Random, Shared, edge_words, measured, run, setting};

const PARTIES: [usize; 2] = [2, 3];

fn among<T: Send>(
    parties: usize,
    program: impl Fn(&mut dyn Protocol) -> Result<T> + Sync,
) -> Vec<T> {
    run(&format!("additive_{parties}_dealer"), parties, program)
}

/// Asserts that all parties found the same result, and returns it.
fn agreed<T: PartialEq>(mut results: Vec<T>) -> T {
    let last = results.pop().expect("at least one result");
    assert!(
        results.iter().all(|other| *other == last),
        "the parties have different results"
    );
    last
}

/// A sharing, and the name under which it is reused, if any.
struct Value {
    words: Vec<u64>,
    name: Option<Name>,
}

impl Value {
    fn new(seed: u64, n: usize, name: Option<Name>) -> Self {
        Self {
            words: Random::new(seed).words(n),
            name,
        }
    }
}

/// One product, and how many elements of its operands it may open.
struct Step<'a> {
    map: Bilinear,
    left: &'a Value,
    right: &'a Value,
    opened: (usize, usize),
}

fn opening(elements: usize) -> Opening {
    match elements {
        0 => Opening::Known,
        _ => Opening::New(elements as u64),
    }
}

fn in_the_clear(step: &Step) -> Vec<u64> {
    let mut out = vec![0; step.map.lengths().2];
    step.map
        .evaluate(&mut out, &[(&step.left.words, &step.right.words)]);
    out
}

fn together(costs: &[Cost]) -> Cost {
    Cost {
        rounds: costs.iter().map(|cost| cost.rounds).max().unwrap_or(0),
        bits: costs.iter().map(|cost| cost.bits).sum(),
    }
}

/// Runs all products in one session with a dealer. Checks the results, and that no more is opened
/// than allowed.
fn check(steps: &[Step]) {
    for parties in PARTIES {
        check_with(&format!("additive_{parties}_dealer"), steps);
    }
}

/// Runs [`check`] in any setting.
fn check_with(name: &str, steps: &[Step]) {
    let found = run(name, setting(name).1, |p| {
        let mut found = Vec::new();
        for step in steps {
            let x = Shared::input(p, 0, &step.left.words)?;
            let y = Shared::input(p, 1, &step.right.words)?;
            let n = step.map.lengths().2;
            let (product, cost) = measured(p, |p| {
                Shared::made(p, n, |p, out| {
                    let (x, y) = (x.slices(), y.slices());
                    let operand = |parts, value: &Value| Operand {
                        parts,
                        name: value.name,
                    };
                    let (x, y) = (operand(&x, step.left), operand(&y, step.right));
                    p.bilinear(&step.map, x, y, None, out)
                })
            })?;
            let declared = p.cost(Operation::Bilinear {
                left: opening(step.opened.0),
                right: opening(step.opened.1),
                n: n as u64,
                truncate: None,
            });
            found.push((product.open(p)?, declared, cost));
        }
        Ok(found)
    });
    for (at, step) in steps.iter().enumerate() {
        let expected = in_the_clear(step);
        let costs: Vec<Cost> = found.iter().map(|steps| steps[at].2).collect();
        assert_eq!(
            together(&costs),
            found[0][at].1,
            "{:?}, step {at}",
            step.map
        );
        for steps in &found {
            assert!(steps[at].0 == expected, "{:?}, step {at}", step.map);
        }
    }
}

fn convolution(batch: usize) -> Bilinear {
    Bilinear::Convolution(Convolution {
        batch,
        groups: 2,
        in_channels: 4,
        out_channels: 6,
        input: [9, 7],
        kernel: [3, 2],
        stride: [2, 1],
        padding: [1, 2],
        dilation: [1, 2],
    })
}

/// Checks batches of these sizes with one named operand, on the left or on the right.
fn batches(map: impl Fn(usize) -> Bilinear, kept_is_left: bool) {
    let sizes = [3, 1, 7, 7, 7, 2, 3];
    let length = |size| {
        let (left, right, _) = map(size).lengths();
        if kept_is_left {
            (left, right)
        } else {
            (right, left)
        }
    };
    let kept = Value::new(1, length(1).0, Some(77));
    let others: Vec<Value> = (sizes.iter().zip(2..))
        .map(|(size, seed)| Value::new(seed, length(*size).1, None))
        .collect();
    let steps: Vec<Step> = others
        .iter()
        .zip(sizes)
        .enumerate()
        .map(|(at, (other, size))| {
            let first = if at == 0 { kept.words.len() } else { 0 };
            let rest = other.words.len();
            let map = map(size);
            if kept_is_left {
                Step {
                    map,
                    left: &kept,
                    right: other,
                    opened: (first, rest),
                }
            } else {
                Step {
                    map,
                    left: other,
                    right: &kept,
                    opened: (rest, first),
                }
            }
        })
        .collect();
    check(&steps);
}

#[test]
fn a_named_operand_of_products_is_opened_once() {
    let map = |_| Bilinear::Elementwise { n: 100 };
    batches(map, true);
    batches(map, false);
}

#[test]
fn a_named_matrix_is_opened_once() {
    batches(
        |m| Bilinear::Matrix {
            batch: 1,
            m,
            k: 5,
            n: 6,
        },
        false,
    );
    batches(
        |n| Bilinear::Matrix {
            batch: 1,
            m: 4,
            k: 5,
            n,
        },
        true,
    );
    batches(
        |m| Bilinear::ByTransposed {
            batch: 1,
            m,
            k: 5,
            n: 6,
        },
        false,
    );
    batches(
        |n| Bilinear::ByTransposed {
            batch: 1,
            m: 4,
            k: 5,
            n,
        },
        true,
    );
}

#[test]
fn a_named_kernel_is_opened_once() {
    batches(convolution, false);
}

/// If another fiber is just opening a named operand, fibers that multiply by it wait and do not
/// open it again. This also holds if they have nothing else to open, and if it began in a fiber
/// behind them.
#[test]
fn fibers_open_a_named_operand_once() {
    let n = 30;
    let words = Bilinear::Elementwise { n };
    let (a, b) = (Value::new(1, n, Some(1)), Value::new(2, n, Some(2)));
    let fresh = Value::new(3, n, None);
    let early = [[&a, &fresh], [&a, &b], [&fresh, &a], [&a, &b], [&b, &a]];
    let late = [[&fresh, &fresh], [&a, &fresh], [&b, &fresh]];
    for (fibers, elements) in [
        // Each fresh operand, and each named one.
        (early.map(|first| vec![first]).to_vec(), 2 + 2),
        // The first fiber takes the operands that the others begin with one turn later.
        (
            vec![
                vec![late[0], [&a, &b]],
                vec![late[1], [&b, &a]],
                vec![late[2], [&a, &a]],
            ],
            1 + 2 + 2,
        ),
    ] {
        for parties in PARTIES {
            let found = among(parties, |p| {
                let shared = |p: &mut dyn Protocol, value: &Value| {
                    Shared::input(p, 0, &value.words).map(|shared| (shared, value.name))
                };
                let (give, take) = channel();
                let mut all: Vec<OwnedFiber> = Vec::new();
                for (at, fiber) in fibers.iter().enumerate() {
                    let mut steps = Vec::new();
                    for [x, y] in fiber {
                        // A fresh operand by itself is a square, which is opened once.
                        steps.push((shared(p, x)?, shared(p, y)?, std::ptr::eq(*x, *y)));
                    }
                    let give = give.clone();
                    all.push(Box::new(move |mut p| {
                        for (x, y, is_square) in &steps {
                            let made = Shared::made(&mut *p, n, |p, out| {
                                let parts = [
                                    x.0.slices(),
                                    if *is_square {
                                        x.0.slices()
                                    } else {
                                        y.0.slices()
                                    },
                                ];
                                let [x, y] = [(&parts[0], x.1), (&parts[1], y.1)]
                                    .map(|(parts, name)| Operand { parts, name });
                                p.bilinear(&words, x, y, None, out)
                            })?;
                            let _ = give.send((at, made));
                        }
                        Ok(())
                    }));
                }
                let ((), cost) = measured(p, |p| p.owned_fibers(all))?;
                let mut products = vec![Vec::new(); fibers.len()];
                for (at, made) in take.try_iter() {
                    products[at].push(made.open(p)?);
                }
                Ok((products, cost))
            });
            let costs: Vec<Cost> = found.iter().map(|found| found.1).collect();
            let all = 64 * n as u64 * (parties * (parties - 1)) as u64;
            assert_eq!(together(&costs).bits, elements * all);
            let products = agreed(found.into_iter().map(|found| found.0).collect());
            for (fiber, products) in fibers.iter().zip(products) {
                for ([x, y], product) in fiber.iter().zip(products) {
                    let step = Step {
                        map: words,
                        left: x,
                        right: y,
                        opened: (0, 0),
                    };
                    assert_eq!(product, in_the_clear(&step));
                }
            }
        }
    }
}

#[test]
fn both_operands_may_be_named() {
    let (a, b) = (Value::new(1, 30, Some(1)), Value::new(2, 30, Some(2)));
    let fresh = Value::new(3, 30, None);
    let matrix = Bilinear::Matrix {
        batch: 1,
        m: 5,
        k: 6,
        n: 5,
    };
    let wide = Bilinear::Matrix {
        batch: 1,
        m: 15,
        k: 2,
        n: 15,
    };
    let words = Bilinear::Elementwise { n: 30 };
    let step = |map, left, right, opened| Step {
        map,
        left,
        right,
        opened,
    };
    check(&[
        step(matrix, &a, &b, (30, 30)),
        // Everything is open already, so nothing is sent.
        step(matrix, &a, &b, (0, 0)),
        step(matrix, &b, &a, (0, 0)),
        step(wide, &a, &b, (0, 0)),
        step(words, &a, &b, (0, 0)),
        step(words, &fresh, &b, (30, 0)),
        step(words, &a, &fresh, (0, 30)),
        step(wide, &a, &fresh, (0, 30)),
    ]);
    // One operand is named first, the other later.
    check(&[
        step(words, &a, &fresh, (30, 30)),
        step(words, &a, &b, (0, 30)),
        step(matrix, &b, &a, (0, 0)),
    ]);
}

#[test]
fn one_name_may_stand_on_both_sides() {
    let a = Value::new(1, 36, Some(1));
    let step = |map, opened| Step {
        map,
        left: &a,
        right: &a,
        opened,
    };
    let matrix = Bilinear::Matrix {
        batch: 1,
        m: 6,
        k: 6,
        n: 6,
    };
    let words = Bilinear::Elementwise { n: 36 };
    for first in [matrix, words] {
        check(&[
            step(first, (36, 0)),
            step(matrix, (0, 0)),
            step(words, (0, 0)),
        ]);
    }
}

/// The data kept of an operand for one map serves another only if the layout is the same. The right
/// operand of a matrix product is transposed; a left one, a transposed one, or weights are not.
#[test]
fn a_named_operand_serves_maps_of_every_kind() {
    let matrix = |[m, k, n]: [usize; 3]| Bilinear::Matrix { batch: 1, m, k, n };
    let of_channels = |groups, in_channels| {
        Bilinear::Convolution(Convolution {
            batch: 1,
            groups,
            in_channels,
            out_channels: 64,
            input: [8, 8],
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
        })
    };
    // Large enough that source "he" encrypts it.
    let kept = Value::new(1, 64 * 48, Some(1));
    let (small, large) = (Value::new(2, 48 * 64, None), Value::new(3, 96 * 64, None));
    let square = Value::new(4, 64 * 64, None);
    let (by_right, by_left) = (matrix([64, 64, 48]), matrix([64, 48, 64]));
    let (plain, grouped) = (of_channels(1, 48), of_channels(2, 96));
    let of_kept = |map, left| Step {
        map,
        left,
        right: &kept,
        opened: (left.words.len(), 0),
    };
    let turned = || of_kept(by_right, &square);
    let weights = || of_kept(plain, &small);
    let by_transposed = |[m, k, n]: [usize; 3]| Bilinear::ByTransposed { batch: 1, m, k, n };
    let rows = || of_kept(by_transposed([64, 48, 64]), &small);
    let other_rows = || of_kept(by_transposed([64, 64, 48]), &square);
    let first = || Step {
        map: by_left,
        left: &kept,
        right: &small,
        opened: (0, small.words.len()),
    };
    let mut steps = [
        turned(),
        weights(),
        first(),
        rows(),
        other_rows(),
        of_kept(grouped, &large),
        turned(),
        weights(),
        weights(),
        rows(),
        first(),
        other_rows(),
    ];
    steps[0].opened.1 = kept.words.len();
    for name in [
        "additive_2_ot",
        "additive_2_he",
        "additive_2_dealer",
        "additive_3_he",
        "additive_3_dealer",
    ] {
        check_with(name, &steps);
    }
}

/// A forgotten name may stand for another value, of another length. Forgetting an unknown name
/// changes nothing.
#[test]
fn a_forgotten_name_is_free_again() {
    for parties in PARTIES {
        let opened = among(parties, |p| {
            let mut opened = Vec::new();
            p.forget(5);
            for (round, n) in [100, 100, 7, 300].into_iter().enumerate() {
                let map = Bilinear::Elementwise { n };
                let words = Random::new(round as u64).words(n);
                let x = Shared::input(p, 0, &words)?;
                for _ in 0..3 {
                    let (product, cost) = measured(p, |p| {
                        Shared::made(p, n, |p, out| {
                            let (x, name) = (x.slices(), Some(5));
                            p.bilinear(
                                &map,
                                Operand { parts: &x, name },
                                Operand::once(&x),
                                None,
                                out,
                            )
                        })
                    })?;
                    let squares: Vec<u64> = words.iter().map(|x| x.wrapping_mul(*x)).collect();
                    assert!(product.open(p)? == squares, "round {round}");
                    opened.push(cost.bits / 64 / (p.parties() as u64 - 1));
                }
                p.forget(5);
                p.forget(6);
            }
            Ok(opened)
        });
        let expected = [100, 100, 7, 300].map(|n| [2 * n, n, n]).concat();
        assert_eq!(agreed(opened), expected);
    }
}

/// Parties may forget a name at different times, as when the value that it stood for is freed.
#[test]
fn parties_forget_when_they_like() {
    for (source, parties) in [("ot", 2), ("ot", 3), ("he", 2), ("dealer", 3)] {
        run(&format!("additive_{parties}_{source}"), parties, |p| {
            let n = 100;
            let map = Bilinear::Elementwise { n };
            let words = Random::new(3).words(n);
            let squares: Vec<u64> = words.iter().map(|x| x.wrapping_mul(*x)).collect();
            let x = Shared::input(p, 0, &words)?;
            for round in 0..6 {
                let product = Shared::made(p, n, |p, out| {
                    let (x, name) = (x.slices(), Some(round));
                    p.bilinear(
                        &map,
                        Operand { parts: &x, name },
                        Operand::once(&x),
                        None,
                        out,
                    )
                })?;
                assert!(product.open(p)? == squares, "round {round}");
                if round % parties as Name == p.party() as Name {
                    (0..=round).for_each(|name| p.forget(name));
                }
            }
            Ok(())
        });
    }
}

#[test]
fn sums_of_no_products_are_zero() {
    let map = Bilinear::Matrix {
        batch: 2,
        m: 2,
        k: 0,
        n: 3,
    };
    for name in ["additive_2_ot", "additive_2_he", "additive_3_dealer"] {
        let found = run(name, setting(name).1, |p| {
            let out = Shared::made(p, 12, |p, out| {
                let none = || Operand::once(&[&[]]);
                p.bilinear(&map, none(), none(), None, out)
            })?;
            out.open(p)
        });
        assert_eq!(agreed(found), [0; 12]);
    }
}

#[test]
fn a_named_product_is_truncated_too() {
    for parties in PARTIES {
        let mut random = Random::new(3);
        let mut small = |n| -> Vec<u64> { (0..n).map(|_| random.signed(25) as u64).collect() };
        let (x, y) = (small(40), small(40));
        let found = among(parties, |p| {
            let (x, y) = (Shared::input(p, 0, &x)?, Shared::input(p, 1, &y)?);
            let mut found = Vec::new();
            for _ in 0..3 {
                let product = Shared::made(p, 40, |p, out| {
                    let (x, y, name) = (x.slices(), y.slices(), Some(0));
                    let kept = Operand { parts: &y, name };
                    let map = Bilinear::Elementwise { n: 40 };
                    p.bilinear(&map, Operand::once(&x), kept, Shift::new(16), out)
                })?;
                found.extend(product.open(p)?);
            }
            Ok(found)
        });
        for (at, found) in agreed(found).into_iter().enumerate() {
            let exact = (x[at % 40] as i64) * (y[at % 40] as i64);
            assert!(((found as i64) - (exact >> 16)).abs() <= 1);
        }
    }
}

/// The product of an unnamed value with itself takes one opening, not two.
#[test]
fn squares_open_their_operand_once() {
    for parties in PARTIES {
        for n in [1, 63, 64, 65, 1536, 5000, 100_000] {
            let mut words = Random::new(n as u64).words(n);
            let edges = edge_words(63);
            words
                .iter_mut()
                .zip(&edges)
                .for_each(|(word, edge)| *word = *edge);
            let found = among(parties, |p| {
                let x = Shared::input(p, 1, &words)?;
                let map = Bilinear::Elementwise { n };
                let (square, cost) = measured(p, |p| x.bilinear(p, &map, &x, None))?;
                let declared = p.cost(Operation::Bilinear {
                    left: Opening::New(n as u64),
                    right: Opening::Known,
                    n: n as u64,
                    truncate: None,
                });
                Ok((square.open(p)?, cost, declared))
            });
            let costs: Vec<Cost> = found.iter().map(|(_, cost, _)| *cost).collect();
            assert_eq!(together(&costs), found[0].2);
            let expected: Vec<u64> = words.iter().map(|x| x.wrapping_mul(*x)).collect();
            assert!(found.iter().all(|(square, ..)| *square == expected));
        }
    }
}

/// Checks one operation on n random elements against plain arithmetic.
fn operate(p: &mut dyn Protocol, which: u64, n: usize, random: &mut Random) -> Result<()> {
    let x: Vec<u64> = (0..n).map(|_| random.signed(61) as u64).collect();
    let (y, plane) = (random.words(n), random.words(words_of(n)));
    let owner = (random.word() % p.parties() as u64) as usize;
    let sx = Shared::input(p, owner, &x)?;
    let sy = Shared::input(p, 0, &y)?;
    let mine = (p.party() == owner).then_some(&plane[..]);
    let bit = p.share_bits(owner, mine, 1, n)?;
    let bit_of = |plane: &[u64], i: usize| plane[i / 64] >> (i % 64) & 1;
    let map = Bilinear::Elementwise { n };
    let all = "opened to all";
    match which % 8 {
        0 => {
            let found = sx.bilinear(p, &map, &sy, None)?.open(p)?;
            assert!(
                (0..n).all(|i| found[i] == x[i].wrapping_mul(y[i])),
                "products"
            );
        }
        1 => {
            let found = sy.bilinear(p, &map, &sy, None)?.open(p)?;
            assert!(
                (0..n).all(|i| found[i] == y[i].wrapping_mul(y[i])),
                "squares"
            );
        }
        2 => {
            let width = 2 + random.word() as usize % 63;
            let fits = 64 - width as u32;
            let x: Vec<u64> = y.iter().map(|y| ((*y as i64) >> fits) as u64).collect();
            let x = Shared::input(p, owner, &x)?;
            let sign = p.sign(&x.slices(), width)?;
            let found = p.reveal_bits(&sign, Recipient::All)?.expect(all);
            assert!((0..n).all(|i| bit_of(&found, i) == y[i] >> 63), "signs");
        }
        3 => {
            let f = 1 + random.word() as u32 % 61;
            let found = sx.truncated(p, f)?.open(p)?;
            let exact = |i: usize| (x[i] as i64) >> f;
            let off = |i: usize| (found[i] as i64).wrapping_sub(exact(i));
            assert!(
                (0..n).all(|i| [0, 1].contains(&off(i))),
                "truncation by {f}"
            );
        }
        4 => {
            let found = sx.times_bit(p, &bit)?.open(p)?;
            assert!(
                (0..n).all(|i| found[i] == x[i] * bit_of(&plane, i)),
                "products with bits"
            );
        }
        5 => {
            let found = Shared::made(p, n, |p, out| p.bit_to_ring(&bit, out))?.open(p)?;
            assert!(
                (0..n).all(|i| found[i] == bit_of(&plane, i)),
                "conversion of bits to words"
            );
        }
        6 => {
            let square = p.and(&bit, &bit)?;
            let found = p.reveal_bits(&square, Recipient::All)?.expect(all);
            assert!(
                (0..n).all(|i| bit_of(&found, i) == bit_of(&plane, i)),
                "AND"
            );
        }
        _ => {
            let width = 1 + random.word() as usize % 64;
            let bits = p.to_binary(&sy.slices(), width)?;
            let found = p.reveal_bits(&bits, Recipient::All)?.expect(all);
            let stride = words_of(n);
            let right = |j: usize| (0..n).all(|i| bit_of(&found[j * stride..], i) == y[i] >> j & 1);
            assert!((0..width).all(right), "binary of {width} bits");
        }
    }
    Ok(())
}

/// Batches are split and joined, for requests of any size in any order.
#[test]
fn many_small_requests_and_few_huge_ones() {
    for parties in PARTIES {
        among(parties, |p| {
            let mut random = Random::new(parties as u64);
            for at in 0..300 {
                let which = random.word();
                let n = if at % 60 == 59 {
                    200_000 + random.word() as usize % 100_000
                } else {
                    1 + random.word() as usize % 5000
                };
                operate(p, which, n, &mut random)?;
            }
            Ok(())
        });
    }
}

/// Requests of one kind only, so that batches of all sizes lie in one pool.
#[test]
fn requests_of_one_kind_at_all_sizes() {
    for parties in PARTIES {
        for which in [0, 1, 4, 5, 6] {
            among(parties, |p| {
                let mut random = Random::new(which);
                for _ in 0..40 {
                    let most = 1 << (random.word() % 17);
                    let n = 1 + random.word() as usize % most;
                    operate(p, which, n, &mut random)?;
                }
                Ok(())
            });
        }
    }
}

#[test]
fn rounds_do_not_grow_with_the_parties() {
    let n = 640;
    let perform = |p: &mut dyn Protocol, operation: Operation| -> Result<()> {
        let (x, y) = (Shared::zeros(p, n), Shared::zeros(p, n));
        let bit = p.trivial_bits(&vec![0; words_of(n)], 1, n);
        match operation {
            Operation::Sign { width, .. } => p.sign(&x.slices(), width as usize).map(drop),
            Operation::EqualZero { width, .. } => {
                p.equal_zero(&x.slices(), width as usize).map(drop)
            }
            Operation::ToBinary { width, .. } => p.to_binary(&x.slices(), width as usize).map(drop),
            Operation::BitMultiply { .. } => x.times_bit(p, &bit).map(drop),
            Operation::And { .. } => p.and(&bit, &bit).map(drop),
            Operation::Truncate { shift, .. } => x.truncated(p, shift.bits()).map(drop),
            Operation::Bilinear { truncate, .. } => x
                .bilinear(p, &Bilinear::Elementwise { n }, &y, truncate)
                .map(drop),
            Operation::Reveal { to, .. } => p.reveal(&x.slices(), to).map(drop),
            other => panic!("{other:?} has no measured cost"),
        }
    };
    let count = n as u64;
    let product = |truncate| Operation::Bilinear {
        left: Opening::New(count),
        right: Opening::New(count),
        n: count,
        truncate,
    };
    for (operation, rounds) in [
        (
            Operation::Sign {
                n: count,
                width: 64,
            },
            5,
        ),
        (
            Operation::Sign {
                n: count,
                width: 32,
            },
            4,
        ),
        (
            Operation::EqualZero {
                n: count,
                width: 64,
            },
            5,
        ),
        (
            Operation::ToBinary {
                n: count,
                width: 64,
            },
            7,
        ),
        (Operation::BitMultiply { n: count }, 1),
        (
            Operation::And {
                n: count,
                width: 1,
                rights: 1,
            },
            1,
        ),
        (
            Operation::Truncate {
                n: count,
                shift: Shift::new(16).expect("16 is a valid shift"),
            },
            1,
        ),
        (product(None), 1),
        (product(Shift::new(16)), 2),
        (
            Operation::Reveal {
                n: count,
                to: Recipient::All,
            },
            1,
        ),
    ] {
        for parties in 2..=8 {
            let costs = among(parties, |p| {
                let ((), cost) = measured(p, |p| perform(p, operation))?;
                Ok((cost, p.cost(operation)))
            });
            let measured: Vec<Cost> = costs.iter().map(|(cost, _)| *cost).collect();
            let cost = together(&measured);
            assert_eq!(cost, costs[0].1, "{operation:?} among {parties}");
            assert_eq!(cost.rounds, rounds, "{operation:?} among {parties}");
        }
    }
}
