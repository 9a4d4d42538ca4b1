//! Tests of fibers side by side: their results, and their rounds and bits against the declared
//! ones.

use super::cost::perform;
use super::{agreed, bit, values};
use kernels::planes::words_of;
use mpc::{
    Bits, Compared, Cost, Fiber, Opening, Operation, OwnedFiber, Protocol, Recipient, Result, Shift,
};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use testkit::{Shared, measured, run, usual_parties};

/// The result of a fiber.
enum Made {
    Words(Shared),
    Bits(Bits),
}

/// Begins all fibers at once, and none after them.
fn all(protocol: &mut dyn Protocol, fibers: Vec<Fiber>) -> Result<()> {
    let mut fibers = Some(fibers);
    protocol.side_by_side(&mut || fibers.take().unwrap_or_default())
}

/// Runs every kind of operation next to every other one, on few elements, where roles differ, and
/// on many. Includes fibers that begin when others have ended, and work before and after.
pub fn results(protocol: &str) {
    for n in [1, 2, 3, 65, 400] {
        let x = values(40, 400, 5)[..n].to_vec();
        let y = values(20, 400, 6)[..n].to_vec();
        let opened = run(protocol, usual_parties(protocol), |p| made(p, &x, &y));
        let found = agreed(opened);
        let each = |name: &str, of: &dyn Fn(u64, u64) -> u64| {
            for (at, (x, y)) in x.iter().zip(&y).enumerate() {
                assert_eq!(
                    found[name][at],
                    of(*x, *y),
                    "{name} of {x} and {y}, n = {n}"
                );
            }
        };
        let sign = |x: u64| x >> 63;
        each("product", &|x, y| x.wrapping_mul(y));
        each("square and less", &|x, _| {
            sign(x.wrapping_mul(x).wrapping_sub(1 << 60))
        });
        each("sign", &|x, _| sign(x));
        each("zero", &|x, _| (x == 0).into());
        each("low bits", &|x, _| x & 0x1ff);
        each("chosen", &|x, y| if sign(y) == 1 { x } else { 0 });
        each("number", &|_, y| sign(y));
        each("both", &|x, y| sign(x) & sign(y));
        each("shared", &|x, _| x);
        each("bits shared", &|_, y| y & 1);
        each("after all", &|x, y| x.wrapping_mul(y).wrapping_mul(x));
        for name in ["truncated", "fused"] {
            for (at, (x, y)) in x.iter().zip(&y).enumerate() {
                let exact = match name {
                    "fused" => (*x as i64) * (*y as i64),
                    _ => *x as i64,
                };
                let error = found[name][at].wrapping_sub((exact >> 9) as u64);
                assert!(error <= 1, "{name} of {x} and {y}, n = {n}: {error}");
            }
        }
    }
}

fn made(p: &mut dyn Protocol, x: &[u64], y: &[u64]) -> Result<HashMap<String, Vec<u64>>> {
    let n = x.len();
    let (values, mut flags) = (x.to_vec(), vec![0; words_of(n)]);
    for (at, value) in y.iter().enumerate() {
        flags[at / 64] |= (value & 1) << (at % 64);
    }
    let x = Shared::input(p, 0, x)?.0;
    let y = Shared::input(p, 1, y)?.0;
    let signs = [&x, &y].map(|words| p.sign(&Shared(words.clone()).slices(), 64));
    let [sign_of_x, sign_of_y] = signs;
    let (sign_of_x, sign_of_y) = (sign_of_x?, sign_of_y?);
    let (give, take) = channel();
    type Work = Box<dyn FnOnce(&mut dyn Protocol, Shared, Shared) -> Result<Made> + Send>;
    let fiber = |name: &str, work: Work| -> Fiber {
        let (name, give) = (name.to_owned(), give.clone());
        let (x, y) = (Shared(x.clone()), Shared(y.clone()));
        Box::new(move |p| {
            let made = work(p, x, y)?;
            let _ = give.send((name, made));
            Ok(())
        })
    };
    let elementwise = mpc::Bilinear::Elementwise { n };
    let shift = Shift::new(9);
    let mut first = Some(vec![
        fiber(
            "product",
            Box::new(move |p, x, y| x.bilinear(p, &elementwise, &y, None).map(Made::Words)),
        ),
        // As many operations as are needed, one after another.
        fiber(
            "square and less",
            Box::new(move |p, x, _| {
                let mut square = x.bilinear(p, &elementwise, &x, None)?;
                let most = Shared::made(p, n, |p, out| {
                    p.trivial(&vec![1 << 60; n], out);
                    Ok(())
                })?;
                for (square, most) in square.0.iter_mut().flatten().zip(most.0.iter().flatten()) {
                    *square = square.wrapping_sub(*most);
                }
                p.sign(&square.slices(), 64).map(Made::Bits)
            }),
        ),
        fiber(
            "sign",
            Box::new(|p, x, _| p.sign(&x.slices(), 42).map(Made::Bits)),
        ),
        fiber(
            "zero",
            Box::new(|p, x, _| p.equal_zero(&x.slices(), 64).map(Made::Bits)),
        ),
        fiber(
            "low bits",
            Box::new(|p, x, _| p.to_binary(&x.slices(), 9).map(Made::Bits)),
        ),
        fiber(
            "truncated",
            Box::new(|p, x, _| x.truncated(p, 9).map(Made::Words)),
        ),
        fiber(
            "fused",
            Box::new(move |p, x, y| x.bilinear(p, &elementwise, &y, shift).map(Made::Words)),
        ),
        fiber("chosen", {
            let sign = Bits::stack(&[&sign_of_y]);
            Box::new(move |p, x, _| x.times_bit(p, &sign).map(Made::Words))
        }),
        fiber("number", {
            let sign = Bits::stack(&[&sign_of_y]);
            Box::new(move |p, _, _| {
                Shared::made(p, n, |p, out| p.bit_to_ring(&sign, out)).map(Made::Words)
            })
        }),
        fiber("both", {
            let signs = [&sign_of_x, &sign_of_y].map(|sign| Bits::stack(&[sign]));
            Box::new(move |p, _, _| p.and(&signs[0], &signs[1]).map(Made::Bits))
        }),
        fiber(
            "shared",
            Box::new(move |p, _, _| Shared::input(p, 1, &values).map(Made::Words)),
        ),
        fiber(
            "bits shared",
            Box::new(move |p, _, _| {
                let owner = p.parties() - 1;
                let own = (p.party() == owner).then_some(&flags[..]);
                p.share_bits(owner, own, 1, n).map(Made::Bits)
            }),
        ),
    ]);
    let mut results = Vec::new();
    p.side_by_side(&mut || {
        if let Some(first) = first.take() {
            return first;
        }
        // Work that needs the first product begins while longer fibers continue.
        let mut after = Vec::new();
        for (name, made) in take.try_iter() {
            if let (Made::Words(product), "product") = (&made, &name[..]) {
                let product = Shared(product.0.clone());
                after.push(fiber(
                    "after all",
                    Box::new(move |p, x, _| {
                        product.bilinear(p, &elementwise, &x, None).map(Made::Words)
                    }),
                ));
            }
            results.push((name, made));
        }
        after
    })?;
    let mut opened = HashMap::new();
    for (name, made) in results {
        let values = match made {
            Made::Words(words) => words.open(p)?,
            Made::Bits(bits) => {
                let planes = p
                    .reveal_bits(&bits, Recipient::All)?
                    .expect("opened to all");
                let planes: Vec<&[u64]> = planes.chunks(words_of(n)).collect();
                let word = |at: usize| {
                    let bits = planes.iter().enumerate();
                    bits.map(|(place, plane)| bit(plane, at) << place).sum()
                };
                (0..n).map(word).collect()
            }
        };
        opened.insert(name, values);
    }
    Ok(opened)
}

/// Fibers take the rounds of the longest one, and the bits of all.
pub fn rounds_are_shared(protocol: &str) {
    // With this many, roles are rotated. Without rotation, some chains are shorter by one.
    let (n, many) = (192, 1536);
    let shift = Shift::new(16).expect("a valid shift");
    let compared = Compared::guarded(24, 10).expect("a valid guard");
    let product = |truncate| Operation::Bilinear {
        left: Opening::New(n),
        right: Opening::New(n),
        n,
        truncate,
    };
    let operations = [
        Operation::Share { n },
        Operation::ShareBits { n, width: 3 },
        product(None),
        product(Some(shift)),
        Operation::Truncate { n, shift },
        Operation::And {
            n,
            width: 3,
            rights: 2,
        },
        Operation::Sign { n, width: 64 },
        Operation::EqualZero { n, width: 17 },
        Operation::ToBinary { n, width: 64 },
        Operation::BitMultiply { n },
        Operation::BitToRing { n },
        Operation::Affine {
            left: Opening::New(many),
            right: Opening::New(many),
            n: many,
            shift,
        },
        Operation::RectifiedAffine {
            left: Opening::New(many),
            right: Opening::New(many),
            n: many,
            shift,
            compared,
        },
        Operation::Rectify { n: many, compared },
    ];
    check(protocol, &operations);
    for operation in operations {
        check(protocol, &[product(None), operation]);
        check(protocol, &[operation, Operation::Sign { n, width: 64 }]);
    }
}

fn check(protocol: &str, operations: &[Operation]) {
    let spent = run(protocol, usual_parties(protocol), |p| {
        let fiber = |operation: &Operation| -> Fiber {
            let operation = *operation;
            Box::new(move |p| perform(p, operation))
        };
        let ((), spent) = measured(p, |p| all(p, operations.iter().map(fiber).collect()))?;
        let declared = operations.iter().map(|operation| p.cost(*operation));
        let declared = declared.fold(Cost::default(), Cost::beside);
        Ok((declared, spent))
    });
    let measured = Cost {
        rounds: spent
            .iter()
            .map(|(_, spent)| spent.rounds)
            .max()
            .expect("at least one party"),
        bits: spent.iter().map(|(_, spent)| spent.bits).sum(),
    };
    assert_eq!(measured, spent[0].0, "{operations:?} of {protocol}");
}

/// What an operation is to keep for its check is its own: a truncation in another fiber keeps
/// nothing.
pub fn kept(protocol: &str) {
    let kept = run(protocol, usual_parties(protocol), |p| {
        let x = Shared::input(p, 0, &[5, 1_u64.wrapping_neg(), 70])?;
        let map = mpc::Bilinear::Elementwise { n: 3 };
        let product = move |p: &mut dyn Protocol, x: &Shared| {
            let Some(checking) = p.checking() else {
                return Ok(0);
            };
            checking.keep();
            x.bilinear(p, &map, x, None)?;
            let kept = p.checking().and_then(|checking| checking.kept());
            Ok(kept.map_or(0, |kept| kept.rest.concat().len()))
        };
        let (one, other) = (Shared(x.0.clone()), Shared(x.0.clone()));
        let fibers: Vec<Fiber> = vec![
            Box::new(move |p| {
                assert_eq!(product(p, &one)?, 0);
                Ok(())
            }),
            Box::new(move |p| other.bilinear(p, &map, &other, Shift::new(2)).map(drop)),
        ];
        all(p, fibers)?;
        product(p, &x)
    });
    assert!(kept.iter().all(|words| *words == 0), "{kept:?}");
}

/// A failed fiber is reported, the others run to their ends, and the parties have their state
/// again.
pub fn failures(protocol: &str) {
    let told = run(protocol, usual_parties(protocol), |p| {
        let fibers: Vec<Fiber> = vec![
            Box::new(|p| {
                let x = Shared::zeros(p, 3);
                (0..5).try_for_each(|_| p.sign(&x.slices(), 64).map(drop))
            }),
            Box::new(|p| {
                let x = Shared::zeros(p, 3);
                p.sign(&x.slices(), 8)?;
                Err(mpc::Error::misuse("this is what was wrong"))
            }),
        ];
        let told = all(p, fibers).expect_err("a fiber fails").to_string();
        // The party has its state again, and all parties are at the same step.
        let x = Shared::zeros(p, 3);
        assert_eq!(x.truncated(p, 3)?.open(p)?, [0; 3]);
        Ok(told)
    });
    assert!(
        told.iter().all(|told| told.contains("what was wrong")),
        "{told:?}"
    );
}

/// Fibers with their own protocol objects give right results, take the rounds of one, and leave
/// everything as it was. The first runs on the thread that begins them. No fibers can begin inside
/// a fiber, or under the reference protocol. If one fails, the others run to their ends.
pub fn owned(protocol: &str) {
    if protocol == "plain" {
        let told = run(protocol, 2, |p| Ok(p.owned_fibers(Vec::new()).is_err()));
        assert_eq!(told, [true; 2]);
        return;
    }
    let told = run(protocol, usual_parties(protocol), |p| {
        let x = Shared::input(p, 0, &[5, 1_u64.wrapping_neg(), 70])?;
        let (give, take) = channel();
        let here = thread::current().id();
        let fiber = |at: usize, fails: usize| -> OwnedFiber {
            let (x, give) = (Shared(x.0.clone()), give.clone());
            Box::new(move |mut p| {
                let map = mpc::Bilinear::Elementwise { n: 3 };
                let square = x.bilinear(&mut *p, &map, &x, None)?;
                let made = square.bilinear(&mut *p, &map, &x, None)?;
                let inside = p.owned_fibers(Vec::new());
                let is_here = thread::current().id() == here;
                let _ = give.send((at, made, inside.is_err() && is_here == (at == 0)));
                if at == fails {
                    return Err(mpc::Error::misuse("this one is wrong"));
                }
                Ok(())
            })
        };
        let before = p.channel().meter().totals().rounds;
        p.owned_fibers((0..4).map(|at| fiber(at, 4)).collect())?;
        let rounds = p.channel().meter().totals().rounds - before;
        for fails in 0..=4 {
            for (place, (at, made, is_right)) in take.try_iter().enumerate() {
                assert_eq!((place, is_right), (at, true));
                assert_eq!(made.open(p)?, [125, 1_u64.wrapping_neg(), 343_000]);
            }
            let ended = p.owned_fibers((0..4).map(|at| fiber(at, fails)).collect());
            assert_eq!(ended.is_err(), fails < 4);
        }
        Ok(rounds)
    });
    // The rounds of one fiber. After sharing, parties have taken different numbers of rounds.
    let rounds = told.into_iter().max().expect("at least one party");
    assert!((2..=3).contains(&rounds), "{rounds} of {protocol}");
}

/// A panic of a fiber continues in the code that began it, for both kinds of fibers.
pub fn panics(protocol: &str) {
    fn step(p: &mut dyn Protocol, panics: bool) -> Result<()> {
        let x = Shared::zeros(p, 3);
        p.sign(&x.slices(), 8)?;
        assert!(!panics, "this is what was wrong");
        p.sign(&x.slices(), 64).map(drop)
    }
    let who = [[false, true], [true, false], [true, true]];
    for (is_owned, who) in [false, protocol != "plain"]
        .into_iter()
        .flat_map(|is_owned| who.map(|who| (is_owned, who)))
    {
        let told = run(protocol, usual_parties(protocol), |p| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                if is_owned {
                    let fiber =
                        |panics| -> OwnedFiber { Box::new(move |mut p| step(&mut *p, panics)) };
                    p.owned_fibers(who.map(fiber).into())
                } else {
                    let fiber = |panics| -> Fiber { Box::new(move |p| step(p, panics)) };
                    all(p, who.map(fiber).into())
                }
            }));
            let panicked = panicked.expect_err("the panic is propagated");
            // The party has its state again.
            let parties = p.channel().parties();
            Ok((
                parties,
                panicked.downcast_ref::<&str>().map(ToString::to_string),
            ))
        });
        for (parties, told) in told {
            assert_eq!(parties, usual_parties(protocol));
            assert_eq!(told.as_deref(), Some("this is what was wrong"));
        }
    }
}
