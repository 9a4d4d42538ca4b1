//! Parties whose programs differ in a parameter or in a public value. The session ends with the
//! step's name and the remedy, and no party gets a wrong value. Equal programs never fail.

use mpc::{Bilinear, Error, Fiber, Join, Protocol, Recipient, Result, Shift, open};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use testkit::{Random, Shared, setting};

const LINKED: [&str; 3] = ["replicated", "additive_2_dealer", "additive_3_dealer"];
const ALL: [&str; 4] = [
    "plain",
    "replicated",
    "additive_2_dealer",
    "additive_3_dealer",
];

/// The number of elements from which replicated sharing rotates its roles.
const MANY: usize = 1536;

/// Runs `program` in every party, and returns how each ended.
fn ends<T: Send>(
    name: &str,
    program: impl Fn(&mut dyn Protocol) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    ends_within(name, Duration::from_secs(60), program)
}

fn ends_within<T: Send>(
    name: &str,
    timeout: Duration,
    program: impl Fn(&mut dyn Protocol) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let (settings, parties) = setting(name);
    let dealer = settings.has_dealer().unwrap();
    let mut meshes = if dealer {
        net::in_process::mesh_with_dealer(parties, timeout)
    } else {
        net::in_process::mesh(parties, timeout)
    };
    let (program, settings) = (&program, &settings);
    std::thread::scope(|scope| {
        for mesh in meshes.drain(parties..) {
            // How the dealer ends depends on the parties.
            scope.spawn(move || drop(testkit::deal(&mesh).and_then(|()| mesh.close())));
        }
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| {
                scope.spawn(move || {
                    let mut protocol = open(settings, &mesh, &testkit::device(), true)?;
                    let result = program(&mut *protocol)?;
                    protocol.channel().close()?;
                    mesh.close()?;
                    Ok(result)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a party panicked"))
            .collect()
    })
}

/// An operation on x, with a parameter that is 0 or 1.
type Varied = fn(&mut dyn Protocol, &Shared, usize) -> Result<()>;

fn words(
    p: &mut dyn Protocol,
    n: usize,
    work: impl FnOnce(&mut dyn Protocol, &mut [&mut [u64]]) -> Result<()>,
) -> Result<()> {
    Shared::made(p, n, work).map(drop)
}

const OPERATIONS: [(&str, Varied); 13] = [
    ("truncate", |p, x, v| x.truncated(p, [16, 17][v]).map(drop)),
    ("multiply", |p, x, v| {
        let map = Bilinear::Elementwise { n: 12 };
        x.bilinear(p, &map, x, Shift::new([16, 9][v])).map(drop)
    }),
    ("multiply", |p, x, v| {
        let (map, shift) = (Bilinear::Elementwise { n: 12 }, Shift::new(16));
        let shift = [shift, shift.and_then(Shift::of_narrow)][v];
        x.bilinear(p, &map, x, shift).map(drop)
    }),
    ("matrix product", |p, x, v| {
        // Operands and results have equal lengths.
        let map = Bilinear::Matrix {
            batch: [1, 3][v],
            m: [6, 2][v],
            k: 2,
            n: [6, 2][v],
        };
        x.bilinear(p, &map, x, None).map(drop)
    }),
    ("sign", |p, x, v| p.sign(&x.slices(), [40, 41][v]).map(drop)),
    ("equal to zero", |p, x, v| {
        p.equal_zero(&x.slices(), [40, 41][v]).map(drop)
    }),
    ("additive to binary", |p, x, v| {
        p.to_binary(&x.slices(), [40, 41][v]).map(drop)
    }),
    ("AND", |p, _, v| {
        let (width, n) = [(2, 64), (1, 128)][v];
        let bits = p.trivial_bits(&[5, 6], width, n);
        p.and(&bits, &bits).map(drop)
    }),
    ("AND", |p, _, v| {
        // Equally many products, with or without a common factor.
        let bits = p.trivial_bits(&[5], 1, 64);
        let joins = match v {
            0 => vec![Join::new(&bits, vec![&bits, &bits])],
            _ => vec![Join::new(&bits, vec![&bits]); 2],
        };
        p.and_all(&joins).map(drop)
    }),
    ("share", |p, _, v| {
        let values = (p.party() == v).then_some(&[7; 12][..]);
        words(p, 12, |p, out| p.share(v, values, 12, out))
    }),
    ("share bits", |p, _, v| {
        let (width, n) = [(2, 64), (1, 128)][v];
        let planes = (p.party() == 0).then_some(&[7; 2][..]);
        p.share_bits(0, planes, width, n).map(drop)
    }),
    ("reveal", |p, x, v| {
        let to = [Recipient::All, Recipient::One(0)][v];
        p.reveal(&x.slices(), to).map(drop)
    }),
    ("note", |p, _, v| {
        p.channel().note(&[3, v as u8]);
        Ok(())
    }),
];

#[test]
fn a_parameter_that_differs_ends_the_session() {
    for name in LINKED {
        let parties = testkit::usual_parties(name);
        for odd in 0..parties {
            for (operation, run) in OPERATIONS {
                let results = ends(name, |p| {
                    let x = Shared::input(p, 0, &[3; 12])?;
                    let variant = usize::from(p.party() == odd);
                    run(p, &x, variant)?;
                    let bits = p.sign(&x.slices(), 64)?;
                    let y = x.times_bit(p, &bits)?;
                    y.open(p)
                });
                let told: Vec<String> = results
                    .iter()
                    .map(|result| match result {
                        Ok(_) => {
                            panic!("{operation} of {name}: nobody notices that party {odd} differs")
                        }
                        Err(error) => error.to_string(),
                    })
                    .collect();
                let desync = results
                    .iter()
                    .any(|result| matches!(result, Err(Error::Desync { .. })));
                assert!(desync, "{operation} of {name}: {told:?}");
            }
        }
    }
}

/// The last operation differs, and nothing follows that would show it.
#[test]
fn the_last_operation_is_compared_too() {
    for name in LINKED {
        for odd in 0..testkit::usual_parties(name) {
            // A note belongs to the operation that follows it.
            for (operation, run) in &OPERATIONS[..OPERATIONS.len() - 1] {
                let results = ends_within(name, Duration::from_secs(2), |p| {
                    let x = Shared::input(p, 0, &[3; 12])?;
                    let variant = usize::from(p.party() == odd);
                    run(p, &x, variant)
                });
                for (party, result) in results.iter().enumerate() {
                    assert!(
                        result.is_err(),
                        "{operation} of {name}: party {party} ends without an error although \
                         party {odd} differs"
                    );
                }
            }
        }
    }
}

#[test]
fn a_receiver_that_differs_in_the_last_reveal_ends_the_session() {
    for name in LINKED {
        let parties = testkit::usual_parties(name);
        for odd in 0..parties {
            for (usual, other) in [(0, 1), (1, 0), (parties - 1, 0)] {
                let results = ends_within(name, Duration::from_secs(2), |p| {
                    let x = Shared::input(p, 0, &[3; 12])?;
                    let to = if p.party() == odd { other } else { usual };
                    p.reveal(&x.slices(), Recipient::One(to)).map(drop)
                });
                let told: Vec<String> = results
                    .into_iter()
                    .map(|result| result.expect_err("the recipients differ").to_string())
                    .collect();
                assert!(
                    told.iter().any(|told| told.contains("reveal of 12")),
                    "{told:?}"
                );
            }
        }
    }
}

#[test]
fn one_operation_more_in_one_party_ends_the_session() {
    for name in LINKED {
        for odd in 0..testkit::usual_parties(name) {
            for (operation, run) in &OPERATIONS[..OPERATIONS.len() - 1] {
                let results = ends_within(name, Duration::from_secs(2), |p| {
                    let x = Shared::input(p, 0, &[3; 12])?;
                    x.open(p)?;
                    if p.party() == odd {
                        run(p, &x, 0)?;
                    }
                    Ok(())
                });
                let told: Vec<String> = results
                    .into_iter()
                    .map(|result| result.expect_err("the programs differ").to_string())
                    .collect();
                assert!(
                    told.iter().any(|told| told.contains("ended its program")),
                    "{operation} of {name}: {told:?}"
                );
            }
        }
    }
}

/// Local work after the last step, and values noted there, concern only the party itself.
#[test]
fn what_a_party_does_alone_at_its_end_is_no_difference() {
    for name in ALL {
        let results = ends_within(name, Duration::from_secs(1), |p| {
            let x = Shared::input(p, 0, &[3; 12])?;
            let opened = x.open(p)?;
            if p.party() == 1 {
                p.channel().note(b"add");
                p.channel().note_public("add", b"2.5");
                std::thread::sleep(Duration::from_millis(1500));
            }
            Ok(opened)
        });
        for result in results {
            assert_eq!(result.expect("no party fails"), [3; 12], "{name}");
        }
    }
}

#[test]
fn a_parameter_is_named_as_what_differs() {
    let results = ends("replicated", |p| {
        let x = Shared::input(p, 0, &[3; 12])?;
        let bits = 16 + u32::from(p.party() == 2);
        x.truncated(p, bits)?;
        x.open(p)
    });
    let told: Vec<String> = results
        .into_iter()
        .map(|result| result.unwrap_err().to_string())
        .collect();
    let named = told
        .iter()
        .filter(|told| told.contains("truncate of 12") && told.contains("other parameters"));
    assert_eq!(named.count(), 3, "{told:?}");
}

/// If the parties wait for messages that none of them sends, the timeout reports it.
#[test]
fn parties_that_expect_other_messages_end_too() {
    let results = ends_within("replicated", Duration::from_secs(2), |p| {
        let x = Shared::input(p, 0, &[3; 12])?;
        let truncate = Shift::new([16, 0, 0][p.party()]);
        x.bilinear(p, &Bilinear::Elementwise { n: 12 }, &x, truncate)?;
        x.open(p)
    });
    assert!(results.iter().all(Result::is_err));
}

/// Each party notes a public value, runs `between`, and opens something. Returns each party's
/// error, and whether it sent anything for the opening.
fn noted(
    name: &str,
    value: impl Fn(usize) -> Vec<u8> + Sync,
    between: impl Fn(&mut dyn Protocol, &Shared) -> Result<()> + Sync,
) -> Vec<Result<Vec<u64>>> {
    ends(name, |p| {
        let x = Shared::input(p, 0, &[3; 12])?;
        p.channel().set_label("fc1");
        let party = p.party();
        p.channel().note_public("mul", &value(party));
        between(p, &x)?;
        let before = p.channel().meter().totals().payload_bytes;
        let opened = x.open(p);
        let sent = p.channel().meter().totals().payload_bytes - before;
        assert!(
            opened.is_ok() || sent == 0,
            "{sent} bytes were sent for an opening that failed"
        );
        opened
    })
}

/// Runs operations whose messages go both ways between every two parties, if there are [`MANY`]
/// elements.
fn operations(p: &mut dyn Protocol, x: &Shared, count: usize) -> Result<()> {
    let map = Bilinear::Elementwise { n: x.0[0].len() };
    for _ in 0..count {
        x.bilinear(p, &map, x, Shift::new(16))?;
        x.bilinear(p, &map, x, None)?;
        let bits = p.sign(&x.slices(), 64)?;
        x.times_bit(p, &bits)?;
    }
    Ok(())
}

/// Runs operations side by side, with an opening among them if `opens` is set. Returns what was
/// opened.
fn beside(p: &mut dyn Protocol, x: &Shared, opens: bool) -> Result<Vec<u64>> {
    let (give, opened) = channel();
    let copy = || Shared(x.0.clone());
    let (first, second, third) = (copy(), copy(), copy());
    let mut fibers: Vec<Fiber> = vec![
        Box::new(move |p| operations(p, &first, 1)),
        Box::new(move |p| p.sign(&second.slices(), 64).map(drop)),
    ];
    if opens {
        fibers.push(Box::new(move |p| {
            let _ = give.send(third.open(p)?);
            Ok(())
        }));
    }
    let mut fibers = Some(fibers);
    p.side_by_side(&mut || fibers.take().unwrap_or_default())?;
    Ok(opened.try_iter().flatten().collect())
}

fn assert_differ(results: &[Result<Vec<u64>>]) {
    let mut found = 0;
    for result in results {
        let error = result.as_ref().expect_err("public values differ");
        found += usize::from(matches!(error, Error::Differ { .. }));
        let text = error.to_string();
        for part in [
            "fc1: mul",
            "draw it in all parties alike",
            "if only one party has or draws a value, share it",
            "same program",
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
    }
    assert!(
        found > 0,
        "the party that finds the difference does not report it"
    );
}

#[test]
fn a_public_value_that_differs_ends_the_session_before_anything_is_opened() {
    for name in ALL {
        let parties = testkit::usual_parties(name);
        for odd in 0..parties {
            let value = |party| vec![u8::from(party == odd); 100];
            assert_differ(&noted(name, value, |_, _| Ok(())));
            assert_differ(&noted(name, value, |p, x| operations(p, x, 1)));
            assert_differ(&noted(name, value, |p, x| operations(p, x, 20)));
        }
        // Values that each party draws on its own.
        assert_differ(&noted(name, |party| vec![party as u8; 8], |_, _| Ok(())));
    }
}

/// Parties with other public values would prove false equations. So nothing of a proof is sent
/// before these are compared, and nobody is accused of cheating.
#[test]
fn public_values_are_compared_before_anything_is_proven() {
    for odd in 0..3 {
        let proved = AtomicUsize::new(0);
        let results = ends("replicated_malicious", |p| {
            let x = Shared::input(p, 0, &[3; 12])?;
            p.channel().set_label("fc1");
            let factor = if p.party() == odd { 2 } else { 3 };
            p.channel().note_public("mul", &[factor]);
            let scaled = |words: &Vec<u64>| -> Vec<u64> {
                let words = words.iter();
                words.map(|word| word.wrapping_mul(factor.into())).collect()
            };
            let y = Shared(x.0.iter().map(scaled).collect());
            y.bilinear(p, &Bilinear::Elementwise { n: 12 }, &y, None)?;
            let before = p.channel().meter().totals().payload_bytes;
            p.verify().inspect_err(|_| {
                let sent = p.channel().meter().totals().payload_bytes - before;
                proved.fetch_add(sent as usize, Ordering::Relaxed);
            })?;
            y.open(p)
        });
        assert_differ(&results);
        assert_eq!(proved.into_inner(), 0, "bytes of proofs were sent");
    }
}

/// All parties learn which party's values no other party has, before an opening and on the way to
/// it.
#[test]
fn of_three_the_one_whose_public_values_are_others_is_named() {
    for name in ["replicated", "additive_3_dealer", "plain"] {
        if testkit::usual_parties(name) < 3 {
            continue;
        }
        for (odd, count) in [(0, 0), (1, 0), (2, 0), (0, 20), (1, 20), (2, 20)] {
            let value = |party| vec![u8::from(party == odd); 100];
            for result in noted(name, value, |p, x| operations(p, x, count)) {
                let told = result.expect_err("public values differ").to_string();
                let found = format!("no other party has those of party {odd}");
                let reported = told.starts_with(&format!("party {odd} failed in step"))
                    && told.contains("no other party has its public values");
                assert!(told.contains(&found) || reported, "{name}, {count}: {told}");
            }
        }
    }
}

#[test]
fn a_value_that_is_public_in_one_party_alone_ends_the_session() {
    for name in LINKED {
        for odd in 0..testkit::usual_parties(name) {
            let results = ends(name, |p| {
                let x = Shared::input(p, 0, &[3; 12])?;
                if p.party() == odd {
                    p.channel().note_public("mul", b"1");
                }
                x.open(p)
            });
            let right = results.iter().flatten().all(|opened| opened == &[3; 12]);
            assert!(right, "a party received a wrong value");
            assert!(
                results
                    .iter()
                    .any(|result| matches!(result, Err(Error::Desync { .. }))),
                "{results:?}"
            );
        }
    }
}

/// Returns the rounds of two openings after `before`.
fn rounds_of_openings(
    name: &str,
    before: impl Fn(&mut dyn Protocol, &Shared) -> Result<()> + Sync,
) -> u64 {
    let all = ends(name, |p| {
        let x = Shared::input(p, 0, &[3; MANY])?;
        before(p, &x)?;
        let before = p.channel().meter().totals().rounds;
        x.open(p)?;
        x.open(p)?;
        Ok((before, p.channel().meter().totals().rounds))
    });
    let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    let longest = |rounds: fn(&(u64, u64)) -> u64| all.iter().map(rounds).max().unwrap();
    longest(|(_, after)| *after) - longest(|(before, _)| *before)
}

#[test]
fn comparing_takes_rounds_of_its_own_only_where_nothing_went_before() {
    for name in LINKED {
        let rounds = |between: usize, note: bool| {
            rounds_of_openings(name, |p, x| {
                if note {
                    p.channel().note_public("mul", b"2.5");
                }
                operations(p, x, between)
            })
        };
        assert_eq!(rounds(0, false), 2, "{name}");
        assert_eq!(rounds(0, true), 4, "{name}");
        assert_eq!(rounds(20, true), 2, "{name}");
    }
}

/// The comparison begins in a step in which all parties send, however recently another one began,
/// and continues during work side by side.
#[test]
fn comparing_takes_no_round_where_all_told_something_and_worked_side_by_side() {
    for name in LINKED {
        let rounds = |told: bool| {
            rounds_of_openings(name, |p, x| {
                p.channel().note_public("mul", b"2.5");
                x.open(p)?;
                p.channel().note_public("add", b"2.5");
                if told {
                    let party = p.party() as u8;
                    let all = mpc::gather(p.channel(), &vec![party; party.into()])?;
                    assert!((0..).zip(all).all(|(at, said)| said == vec![at; at.into()]));
                }
                beside(p, x, false).map(drop)
            })
        };
        assert_eq!(rounds(false), 4, "{name}");
        assert_eq!(rounds(true), 2, "{name}");
    }
}

/// Side by side with other work, a value is opened only after all public values were compared.
#[test]
fn what_is_opened_side_by_side_was_compared_before() {
    let program = |p: &mut dyn Protocol, compares: bool| {
        let x = Shared::input(p, 0, &[3; 12])?;
        p.channel().note_public("mul", b"2.5");
        if compares {
            p.channel().begin_opening("open", &[])?;
        }
        beside(p, &x, true)
    };
    for name in ALL {
        for result in ends(name, |p| program(p, true)) {
            assert_eq!(result.unwrap(), [3; 12], "{name}");
        }
        assert_differ(&noted(
            name,
            |party| vec![u8::from(party == 1)],
            |p, x| {
                p.channel().begin_opening("open", &[])?;
                beside(p, x, true).map(drop)
            },
        ));
    }
    for name in LINKED {
        for result in ends(name, |p| program(p, false)) {
            let told = result
                .expect_err("the values were not compared")
                .to_string();
            assert!(
                told.contains("while other steps are interleaved with it"),
                "{told}"
            );
        }
    }
}

#[test]
fn riders_are_no_payload() {
    for name in LINKED {
        let sent = |note: bool| -> Vec<(u64, u64)> {
            let all = ends(name, |p| {
                let x = Shared::input(p, 0, &[3; MANY])?;
                if note {
                    p.channel().note_public("mul", b"2.5");
                }
                operations(p, &x, 20)?;
                x.open(p)?;
                let totals = p.channel().meter().totals();
                Ok((totals.payload_bytes, totals.wire_bytes))
            });
            all.into_iter().map(Result::unwrap).collect()
        };
        let peers = testkit::usual_parties(name) as u64 - 1;
        for (without, with) in sent(false).into_iter().zip(sent(true)) {
            assert_eq!(with.0, without.0, "{name}");
            assert_eq!(
                with.1,
                without.1 + 48 * peers,
                "{name}: each peer gets an element and a tag"
            );
        }
    }
}

/// Random programs of all operations that send, one way or both ways, with public values in
/// between.
#[test]
fn equal_programs_never_fail() {
    for name in ALL {
        for seed in 0..8 {
            let results = ends(name, |p| {
                let mut random = Random::new(seed);
                let mut x = Shared::input(p, 0, &[3; 12])?;
                let mut opened = Vec::new();
                let parties = p.parties();
                for _ in 0..150 {
                    match random.word() % 13 {
                        0 => x = Shared::input(p, random.word() as usize % parties, &[5; 12])?,
                        1 => operations(p, &x, 1)?,
                        2 => x
                            .bilinear(p, &Bilinear::Elementwise { n: 12 }, &x, None)
                            .map(drop)?,
                        3 => p.sign(&x.slices(), 32).map(drop)?,
                        4 => opened.extend(x.open(p)?),
                        5 => {
                            let to = Recipient::One(random.word() as usize % parties);
                            p.reveal(&x.slices(), to)?;
                        }
                        6 => {
                            let owner = random.word() as usize % parties;
                            let mine = (p.party() == owner).then_some(&b"shape"[..]);
                            mpc::broadcast(p.channel(), owner, mine)?;
                        }
                        7 => p.channel().note(&random.word().to_le_bytes()),
                        8 => {
                            let party = p.party() as u8;
                            mpc::gather(p.channel(), &vec![party; party.into()]).map(drop)?;
                        }
                        9 => beside(p, &x, false).map(drop)?,
                        10 => {
                            p.channel().begin_opening("open", &[])?;
                            opened.extend(beside(p, &x, true)?);
                        }
                        _ => {
                            let length = 1 + random.word() as usize % 20;
                            let value = random.words(length);
                            let bytes: Vec<u8> =
                                value.iter().flat_map(|word| word.to_le_bytes()).collect();
                            p.channel().note_public("add", &bytes);
                        }
                    }
                }
                Ok(opened)
            });
            let results: Vec<_> = results
                .into_iter()
                .map(|result| result.unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}")))
                .collect();
            assert!(results.iter().all(|opened| *opened == results[0]));
        }
    }
}
