//! Parties that deviate in several words at once, so that these agree with each other. The messages
//! are changed on their way, so the sender's own proof is still about what it computed. Parties
//! that prove what they falsified are in [`crate::provers`].

use crate::parties::{Found, Message, honest, judge, run, run_work};
use crate::programs::{
    PROGRAMS, Program, SHIFT, mapped, opened, parts, parts_mut, product, shared,
};
use mpc::replicated::Replicated;
use mpc::{Bilinear, Error, Fiber, Operand, Protocol};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

fn program(name: &str) -> &'static Program {
    let found = PROGRAMS.iter().find(|program| program.name == name);
    found.expect("a program of this name")
}

/// Elements of which each plane is one word.
const N: usize = 64;

/// Adds ±1 to the number of element 0 that planes from `first` on hold.
fn step(planes: &mut [u64], first: usize, up: bool) {
    for plane in &mut planes[first..first + SHIFT as usize] {
        *plane ^= 1;
        // A carry goes on where a one became a zero, a borrow where a zero became a one.
        if (*plane & 1 == 1) == up {
            return;
        }
    }
}

/// Role 0 of a truncation flips a bit that it shares, and changes what is computed from this bit in
/// the same message, up or down. One of the two directions agrees with the flipped bit.
#[test]
fn truncations_with_another_carry() {
    let f = SHIFT as usize;
    // The carry of the low bits and the highest carry of G, which enter m; and the products β1 and
    // s3·s2, which enter a_1 and a_2.
    let carries = [(f - 1, 0), (f + 3, 64 - SHIFT)];
    let products = [(f + 5, f + 7), (f + 6, 2 * f + 7)];
    let program = program("truncation");
    let (right, messages) = honest(program, N);
    let is_it = |message: &Message| message.step.starts_with("truncate") && message.sender == 0;
    assert_eq!(messages.iter().filter(|message| is_it(message)).count(), 1);
    let lie = |change: &(dyn Fn(&mut [u64], &mut [u64]) + Sync), of: &str| {
        let found = run(
            program,
            N,
            &|message| {
                is_it(message).then(|| {
                    let mut words = message.words.clone();
                    let (m, planes) = words.split_at_mut(N);
                    change(m, planes);
                    words
                })
            },
            &|_| {},
        );
        assert!(judge(program, 0, &found, &right, of), "{of}");
    };
    for up in [true, false] {
        for (plane, place) in carries {
            let change = |m: &mut [u64], planes: &mut [u64]| {
                planes[plane] ^= 1;
                let step = 1_u64 << place;
                m[0] = if up {
                    m[0].wrapping_add(step)
                } else {
                    m[0].wrapping_sub(step)
                };
            };
            lie(&change, &format!("plane {plane} and m"));
        }
        for (plane, a) in products {
            let change = |_: &mut [u64], planes: &mut [u64]| {
                planes[plane] ^= 1;
                step(planes, a, up);
            };
            lie(&change, &format!("plane {plane} and a"));
        }
    }
}

/// A party computes with another component than the one it was sent, from the first operation on.
#[test]
fn another_component() {
    let mut stopped = 0;
    for name in [
        "product of products",
        "sign",
        "decomposition",
        "ReLU",
        "truncation",
    ] {
        let program = program(name);
        for n in [3, 1540] {
            let (right, _) = honest(program, n);
            for liar in 0..3 {
                // The input comes from party 1; its message to party 2 is what party 2 holds.
                let found = run(
                    program,
                    n,
                    &|message| {
                        let is_it = message.receiver == liar && message.step.starts_with("share");
                        is_it.then(|| {
                            let mut words = message.words.clone();
                            words[0] = words[0].wrapping_add(1 << 30);
                            words
                        })
                    },
                    &|_| {},
                );
                judge(program, liar, &found, &right, "another component");
                // Another key makes other masks, and other components that were not sent.
                let found = run(program, n, &|_| None, &|p| {
                    if p.party() == liar {
                        drop(p.streams()[0].reserve(2));
                    }
                });
                stopped += usize::from(judge(program, liar, &found, &right, "another mask"));
            }
        }
    }
    // Some masks are of keys that a program does not use.
    assert!(stopped > 20, "{stopped} of 30");
}

/// A party contributes otherwise to the common key towards one of the others, with the hash of
/// that.
#[test]
fn another_contribution_for_one() {
    let program = program("share");
    let (right, _) = honest(program, 3);
    let other = [5, 7];
    for (liar, receiver) in (0..9).map(|link| (link / 3, link % 3)) {
        if liar == receiver {
            continue;
        }
        let found = run(
            program,
            3,
            &|message| {
                let is_it = message.step == "agree on keys"
                    && (message.sender, message.receiver) == (liar, receiver);
                // The first two messages are about the key of these two alone.
                match message.at {
                    2 if is_it => Some(hash_of_contribution(liar, other)),
                    3 if is_it => Some(other.to_vec()),
                    _ => None,
                }
            },
            &|_| {},
        );
        assert!(judge(program, liar, &found, &right, "a contribution"));
        for (party, Found { result, .. }) in found.iter().enumerate() {
            assert!(
                party == liar || matches!(result, Err(Error::Cheating { .. })),
                "party {party} of liar {liar}: {result:?}"
            );
        }
    }
}

/// Returns the hash that a party sends before its contribution.
fn hash_of_contribution(party: usize, key: [u64; 2]) -> Vec<u64> {
    let mut hasher = blake3::Hasher::new_derive_key("tacit coins, version 1");
    hasher.update(format!("contribution of party {party}").as_bytes());
    hasher.update(&key.map(u64::to_le_bytes).concat());
    net::bytes::to_words(hasher.finalize().as_bytes())
}

/// Whatever is verified at once: results are right, and each message belongs to its step.
#[test]
fn small_records() {
    // What is sent when values are opened, or verified, is not the same.
    let steps = |messages: &[Message], receiver: usize, sender: usize| -> Vec<String> {
        let of_link = |message: &&Message| {
            (message.receiver, message.sender) == (receiver, sender)
                && !["verify", "reveal"]
                    .iter()
                    .any(|step| message.step.starts_with(step))
        };
        let all = messages.iter().filter(of_link);
        all.map(|message| message.step.clone()).collect()
    };
    for program in &PROGRAMS {
        for n in [3, 1540] {
            let (right, messages) = honest(program, n);
            let found = run(program, n, &|_| None, &|p| p.verify_from(0));
            let mut verified = Vec::new();
            for (found, right) in found.into_iter().zip(&right) {
                let result = found.result.expect("an honest run");
                let near = |(one, other): (&u64, &u64)| {
                    one.wrapping_sub(*other).wrapping_add(program.tolerance)
                        <= 2 * program.tolerance
                };
                assert!(result.iter().zip(right).all(near), "{}", program.name);
                verified.extend(found.heard);
            }
            for (receiver, sender) in (0..9).map(|link| (link / 3, link % 3)) {
                let [one, other] = [&messages, &verified].map(|each| steps(each, receiver, sender));
                assert_eq!(one, other, "{} of {n}", program.name);
            }
        }
    }
}

/// All parties find their records alike large: they verify after the same operation.
#[test]
fn records_of_any_size() {
    for program in &PROGRAMS {
        let (right, _) = honest(program, 3);
        for size in [4, 16, 64, 256, 1024] {
            let found = run(program, 3, &|_| None, &|p| p.verify_from(size));
            assert!(!judge(
                program,
                3,
                &found,
                &right,
                "records of another size"
            ));
        }
    }
}

/// All parties verify after the same operation of a fiber, although a comparison of public values
/// that began before the fibers is complete on some links only: nothing goes from party 2 to
/// party 0. What has public values of its own is verified when all fibers have ended.
#[test]
fn verifications_among_fibers_begin_alike() {
    for notes in [false, true] {
        let work = |p: &mut Replicated| {
            p.verify_from(0);
            let x = shared(p, 3)?;
            p.channel().note_public("mul", b"2.5");
            let made = Arc::new(Mutex::new(vec![Vec::new(); 2]));
            let fiber = |at: usize| -> Fiber {
                let (made, x) = (Arc::clone(&made), x.clone());
                Box::new(move |p| {
                    if notes {
                        p.channel().note_public("mul", b"0.5");
                    }
                    let mut y = x.clone();
                    for _ in 0..4 {
                        y = product(p, &y, &x, 3, None)?;
                        p.sign(&parts(&y), 64)?;
                    }
                    made.lock().expect("no panic")[at] = y;
                    Ok(())
                })
            };
            let mut fibers = vec![fiber(0), fiber(1)];
            p.side_by_side(&mut || std::mem::take(&mut fibers))?;
            let made = made.lock().expect("no panic").clone();
            Ok([opened(p, &made[0])?, opened(p, &made[1])?].concat())
        };
        let found = run_work(&work, &|_| None);
        let results: Vec<_> = found
            .iter()
            .map(|found| found.result.as_ref().expect("an honest run"))
            .collect();
        assert!(results[1..].iter().all(|result| *result == results[0]));
        for found in &found {
            let steps: Vec<&str> = found
                .heard
                .iter()
                .map(|message| &message.step[..])
                .collect();
            let begun = steps
                .iter()
                .position(|step| step.starts_with("side by side"));
            let last = steps.iter().rposition(|step| step.starts_with("mul"));
            let among = &steps[begun.unwrap_or(0)..last.expect("products")];
            assert_eq!(among.contains(&"verify"), !notes, "{steps:?}");
        }
    }
}

/// No two verifications draw the same challenges.
#[test]
fn challenges_are_fresh() {
    let seen = Mutex::new(BTreeSet::new());
    let program = program("product of products");
    let found = run(program, 3, &|_| None, &|p| p.verify_from(1));
    let mut count = 0;
    for message in found.iter().flat_map(|found| &found.heard) {
        if message.step == "verify" && message.words.len() > 1 {
            count += 1;
            assert!(
                seen.lock().unwrap().insert(message.words.clone()),
                "{message:?}"
            );
        }
    }
    assert!(count > 20, "{count} messages");
}

/// A verifier that says no is heard, and so is one that says neither yes nor no. The run ends
/// before anything is opened, and every honest party says that one of the two others cheated.
#[test]
fn refusals() {
    for name in ["product", "opening to one"] {
        let program = program(name);
        let (right, messages) = honest(program, 3);
        let verdicts: Vec<&Message> = messages
            .iter()
            .filter(|message| message.step == "verify" && message.words == [0])
            .collect();
        assert!(verdicts.len() >= 6, "{}", verdicts.len());
        for verdict in verdicts {
            for word in [1, 2, u64::MAX] {
                let found = run(
                    program,
                    3,
                    &|message| {
                        let is_it = (message.receiver, message.sender, message.at)
                            == (verdict.receiver, verdict.sender, verdict.at);
                        is_it.then(|| vec![word])
                    },
                    &|_| {},
                );
                assert!(judge(program, verdict.sender, &found, &right, "a verdict"));
                let result = &found[verdict.receiver].result;
                assert!(
                    matches!(result, Err(Error::Cheating { suspects, .. })
                        if !suspects.contains(&verdict.receiver)),
                    "{result:?}"
                );
            }
        }
    }
}

/// Two fibers: what one computed is verified by the other, and is not opened before.
#[test]
fn fibers_wait_for_each_other() {
    let program = program("two fibers");
    let (right, messages) = honest(program, 3);
    let products: Vec<&Message> = messages
        .iter()
        .filter(|message| message.step.starts_with("multiply"))
        .collect();
    assert_eq!(products.len(), 9);
    let first = products
        .iter()
        .map(|product| product.at)
        .min()
        .expect("a product");
    for product in products {
        let found = run(
            program,
            3,
            &|message| {
                let is_it = (message.receiver, message.sender, message.at)
                    == (product.receiver, product.sender, product.at);
                is_it.then(|| message.words.iter().map(|word| word ^ 1).collect())
            },
            &|_| {},
        );
        assert!(judge(program, product.sender, &found, &right, "a product"));
        // The first fiber opens after its first product.
        if product.at == first {
            let heard = &found[product.sender].heard;
            let opened = heard.iter().find(|message| message.step.contains("reveal"));
            assert!(
                opened.is_none(),
                "a product that was not verified is opened"
            );
        }
    }
}

/// What a prover tells of the sums of pieces is masked. All of these sums are public here.
#[test]
fn sums_of_pieces_are_masked() {
    let program = Program {
        name: "a public inner product",
        tolerance: 0,
        openings: 1,
        work: |p, k| {
            let mut x = vec![vec![0; k]; 2];
            p.trivial(&vec![1; k], &mut parts_mut(&mut x));
            let (x, mut z) = (parts(&x), vec![vec![0]; 2]);
            let (m, n) = (1, 1);
            let map = Bilinear::ByTransposed { batch: 1, m, k, n };
            let both = [Operand::once(&x), Operand::once(&x)];
            let [left, right] = both;
            p.bilinear(&map, left, right, None, &mut parts_mut(&mut z))?;
            opened(p, &z)
        },
    };
    let (_, messages) = honest(&program, 5000);
    let told = messages.iter().map(|message| &message.words);
    let told: Vec<u64> = told
        .filter(|words| words.len() == 255)
        .flatten()
        .copied()
        .collect();
    let seen: BTreeSet<&u64> = told.iter().collect();
    assert_eq!([told.len(), seen.len()], [3 * 255; 2]);
}

/// More than one proof has room for: many products, and long sums. The last word is changed.
#[test]
fn large_records() {
    // Of few outputs, and of many.
    let long = |work| Program {
        name: "long sums",
        tolerance: 0,
        openings: 1,
        work,
    };
    let few = long(|p, k| {
        let (m, n) = (2, 2);
        mapped(p, &Bilinear::Matrix { batch: 1, m, k, n })
    });
    let many = long(|p, k| {
        let (m, n) = (6, 6);
        mapped(p, &Bilinear::Matrix { batch: 1, m, k, n })
    });
    let sizes = [1_200_000, 900_000, 70_000];
    for (program, n) in [program("product"), &few, &many].into_iter().zip(sizes) {
        let (right, messages) = honest(program, n);
        let sent = |message: &&Message| {
            ["multiply", "matrix"]
                .iter()
                .any(|step| message.step.starts_with(step))
        };
        let last = messages.iter().rfind(sent).expect("a product");
        let found = run(
            program,
            n,
            &|message| {
                let is_it = (message.receiver, message.sender, message.at)
                    == (last.receiver, last.sender, last.at);
                is_it.then(|| {
                    let mut words = message.words.clone();
                    *words.last_mut().expect("a word") ^= 1;
                    words
                })
            },
            &|_| {},
        );
        assert!(judge(program, last.sender, &found, &right, "the last word"));
    }
}
