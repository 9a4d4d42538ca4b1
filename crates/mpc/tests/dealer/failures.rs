//! Tests of members that die, stall, or send invalid messages.

use crate::session::{
    LONG, Member, SHORT, answer, asked, assert_names, dealer, in_memory, odd_dealer, party,
    products,
};
use mpc::{Bilinear, Error, Protocol, Result};
use net::DEALER;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::Shared;

const PARTIES: [usize; 2] = [2, 3];

/// Runs this program in all parties.
fn with_dealer(
    parties: usize,
    dealer: Member,
    program: impl Fn(&mut dyn Protocol) -> Result<()> + Clone + Send + Sync + 'static,
) -> Vec<Member> {
    let mut members: Vec<Member> = (0..parties).map(|_| party(program.clone())).collect();
    members.push(dealer);
    members
}

/// Asserts that all parties blame the dealer: the first for this reason, the others on its word.
fn assert_all_blame_the_dealer(ends: &[Result<()>], parties: usize, why: &str) {
    for (who, end) in ends[..parties].iter().enumerate() {
        assert_names(end, DEALER, who);
    }
    let first = ends[0].as_ref().expect_err("party 0 fails").to_string();
    assert!(first.contains(why), "{first}");
}

#[test]
fn a_dealer_that_is_dead_from_the_start_is_named() {
    for parties in PARTIES {
        let members = with_dealer(parties, Arc::new(|_| Ok(())), |p| products(p, 1, 64));
        let ends = in_memory(LONG, members);
        assert_all_blame_the_dealer(&ends, parties, "ended without a goodbye");
    }
}

#[test]
fn a_dealer_that_dies_is_named() {
    for parties in PARTIES {
        for answers in [0, 1, 2, 5] {
            let dying = odd_dealer(move |channel| {
                for _ in 0..answers {
                    let n = asked(channel)?.expect("another request follows");
                    answer(channel, n)?;
                }
                // In the middle of a job.
                asked(channel).map(drop)
            });
            let ends = in_memory(
                LONG,
                with_dealer(parties, dying, |p| products(p, 1000, 1000)),
            );
            assert_all_blame_the_dealer(&ends, parties, "ended without a goodbye");
        }
    }
}

/// The dealer dies after finished work, and the parties need more later.
#[test]
fn a_dealer_that_dies_in_a_pause_is_named() {
    for parties in PARTIES {
        let dying = odd_dealer(|channel| {
            let n = asked(channel)?.expect("the first batch is requested");
            answer(channel, n)
        });
        let members = with_dealer(parties, dying, |p| {
            products(p, 1, 64)?;
            std::thread::sleep(Duration::from_millis(300));
            products(p, 100, 1000)
        });
        let ends = in_memory(LONG, members);
        assert_all_blame_the_dealer(&ends, parties, "ended without a goodbye");
    }
}

/// No party waits for correlations that it does not need.
#[test]
fn a_dealer_that_is_needed_no_more_may_die() {
    for parties in PARTIES {
        let dying = odd_dealer(|channel| {
            let n = asked(channel)?.expect("the first batch is requested");
            answer(channel, n)
        });
        let members = with_dealer(parties, dying, |p| {
            products(p, 1, 64)?;
            std::thread::sleep(Duration::from_millis(300));
            products(p, 1, 64)
        });
        assert!(in_memory(LONG, members).iter().all(Result::is_ok));
    }
}

#[test]
fn an_answer_of_another_length_is_the_dealers_fault() {
    for parties in PARTIES {
        let lengths = [(-1, 0), (1, 0), (-1024, 0), (1 << 20, 0), (-1, 1), (1, 2)];
        for (at, (off, before)) in lengths.into_iter().enumerate() {
            let odd_to = at % parties;
            let odd = odd_dealer(move |channel| {
                let mut answers = 0;
                while let Some(n) = asked(channel)? {
                    if answers < before {
                        answer(channel, n)?;
                    } else {
                        let words = (n / parties).checked_add_signed(off).unwrap_or(0);
                        channel.send(odd_to, vec![0; words])?;
                    }
                    answers += 1;
                }
                Ok(())
            });
            let ends = in_memory(LONG, with_dealer(parties, odd, |p| products(p, 1000, 1000)));
            for (who, end) in ends[..parties].iter().enumerate() {
                assert_names(end, DEALER, who);
            }
            assert!(
                matches!(&ends[odd_to], Err(error @ Error::Desync { .. }) if error.to_string().contains("words")),
                "party {odd_to} did not report the wrong length"
            );
        }
    }
}

/// The dealer follows party 0. A party that gets other steps than its own from the dealer reports
/// that it and party 0 differ.
#[test]
fn programs_that_differ_are_not_the_dealers_fault() {
    for parties in PARTIES {
        let differing = |me: usize| -> Member {
            party(move |p| {
                if me == 1 {
                    let x = Shared::input(p, 0, &[3; 1000])?;
                    let map = Bilinear::Elementwise { n: 1000 };
                    return x.bilinear(p, &map, &x, None).map(drop);
                }
                products(p, 1, 1000)
            })
        };
        let mut members: Vec<Member> = (0..parties).map(differing).collect();
        members.push(dealer());
        let ends = in_memory(LONG, members);
        assert_names(&ends[1], 0, 1);
        for (who, end) in ends.iter().enumerate() {
            let error = end.as_ref().expect_err("every member fails");
            let (Error::Peer { party, .. } | Error::Desync { party, .. }) = error else {
                panic!("member {who}: {error}")
            };
            assert_ne!(*party, DEALER, "member {who}: {error}");
        }
    }
}

/// A party that waits for the dealer, which waits for party 0, blames party 0.
#[test]
fn a_party_0_that_asks_for_nothing_is_named() {
    let over = Arc::new(AtomicBool::new(false));
    for parties in PARTIES {
        let stop = Arc::clone(&over);
        let mut members: Vec<Member> = vec![party(move |p| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
            products(p, 1, 64)
        })];
        members.extend((1..parties).map(|_| party(|p| products(p, 1, 64))));
        members.push(dealer());
        let stop = Arc::clone(&over);
        std::thread::spawn(move || {
            std::thread::sleep(2 * SHORT);
            stop.store(true, Ordering::Relaxed);
        });
        let ends = in_memory(SHORT, members);
        for (who, end) in ends.iter().enumerate().skip(1) {
            assert_names(end, 0, who);
        }
        over.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_dealer_that_stalls_is_named() {
    for parties in PARTIES {
        for answers in [0, 3] {
            let over = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&over);
            let stalling = odd_dealer(move |channel| {
                for _ in 0..answers {
                    let n = asked(channel)?.expect("another request follows");
                    answer(channel, n)?;
                }
                while !seen.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(())
            });
            let members = with_dealer(parties, stalling, |p| products(p, 1000, 1000));
            let started = Instant::now();
            let stop = Arc::clone(&over);
            std::thread::spawn(move || {
                std::thread::sleep(2 * SHORT);
                stop.store(true, Ordering::Relaxed);
            });
            let ends = in_memory(SHORT, members);
            assert!(started.elapsed() >= SHORT);
            assert_all_blame_the_dealer(&ends, parties, "the timeout");
        }
    }
}

/// Work made ahead may take longer than the timeout, as long as no party waits for it.
#[test]
fn a_slow_dealer_is_no_fault_while_nobody_waits() {
    let timeout = Duration::from_millis(800);
    for parties in PARTIES {
        let slow = odd_dealer(move |channel| {
            let mut answers = 0;
            while let Some(n) = asked(channel)? {
                if answers > 0 {
                    std::thread::sleep(2 * timeout);
                }
                answer(channel, n)?;
                answers += 1;
            }
            Ok(())
        });
        let members = with_dealer(parties, slow, move |p| {
            // The whole first batch, so that the next one is made ahead.
            products(p, 1, 1024)?;
            std::thread::sleep(2 * timeout + timeout / 4);
            products(p, 1, 64)
        });
        for (who, end) in in_memory(timeout, members).into_iter().enumerate() {
            end.unwrap_or_else(|error| panic!("member {who}: {error}"));
        }
    }
}

/// Plays party 0's side of the channel to the dealer.
fn asking(jobs: impl Fn(u64) -> Option<Vec<u64>> + Send + Sync + 'static) -> Member {
    Arc::new(move |mesh| {
        let mut channel = mesh.channel(1);
        channel.begin("key for the dealer");
        let dealer = mesh.dealer().expect("the session has a dealer");
        channel.send(dealer, vec![1, 2])?;
        for job in (0..).map_while(&jobs) {
            channel.begin("correlations: by hand");
            channel.send(dealer, job)?;
        }
        // Only the news of a failure comes on this channel.
        mesh.channel(7).receive(1, 1).map(drop)
    })
}

/// Plays a party that gives the dealer its key and waits for party 0.
fn waiting() -> Member {
    Arc::new(|mesh| {
        let mut channel = mesh.channel(1);
        channel.begin("key for the dealer");
        channel.send(mesh.dealer().expect("the session has a dealer"), vec![3, 4])?;
        mesh.channel(0).receive(0, 1).map(drop)
    })
}

/// Asserts that the dealer, and all others, blame party 0.
fn refused(
    parties: usize,
    jobs: impl Fn(u64) -> Option<Vec<u64>> + Send + Sync + 'static,
) -> String {
    let mut members = vec![asking(jobs)];
    members.extend((1..parties).map(|_| waiting()));
    members.push(dealer());
    let ends = in_memory(LONG, members);
    for (who, end) in ends.iter().enumerate().skip(1) {
        assert_names(end, 0, who);
    }
    assert!(ends[0].is_err(), "party 0 did not fail");
    ends[parties]
        .as_ref()
        .expect_err("the dealer refuses the request")
        .to_string()
}

/// Pads a job to 24 words.
fn job(words: &[u64]) -> Vec<u64> {
    let mut job = words.to_vec();
    job.resize(24, 0);
    job
}

#[test]
fn a_party_that_asks_for_what_cannot_be_is_named() {
    let most = 1 << 27;
    let jobs: [&[u64]; 24] = [
        // No such job; no such kind.
        &[3],
        &[u64::MAX],
        &[0, 64, 9],
        // No elements; half a word of bits; too many elements.
        &[0, 0, 0],
        &[0, 63, 0],
        &[0, most + 64, 0],
        &[0, u64::MAX - 63, 0],
        // Two columns of these fit separately but not together; planes that do not fit.
        &[0, most, 8],
        &[0, most, 5, 1, 63],
        // Parameters out of range.
        &[0, 64, 2, 0],
        &[0, 64, 2, 3],
        &[0, 64, 4, 65],
        &[0, 64, 5, 2, 8],
        &[0, 64, 5, 1, 64],
        &[0, 64, 6, 62],
        &[0, 64, 7, u64::MAX],
        // Cross products are for two parties.
        &[0, 64, 7, 16],
        // Masks: no such sort; a fresh one with a name; ones that are not kept.
        &[1, 3, 0, 0, 0, 0, 10],
        &[1, 0, 5, 0, 0, 0, 10],
        &[1, 2, 5, 0, 0, 0, 10],
        &[1, 0, 0, 2, u64::MAX, 0, 10],
        // Maps: no such map; too long; overflowing; and an invalid convolution.
        &[1, 0, 0, 0, 0, 3, 10],
        &[1, 0, 0, 0, 0, 1, 1 << 20, 1 << 20, 1 << 20, 1 << 20],
        &[1, 0, 0, 0, 0, 2, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    ];
    for words in jobs {
        let words = words.to_vec();
        let text = refused(3, move |at| (at == 0).then(|| job(&words)));
        assert!(text.starts_with("party 0 failed in step"), "{text}");
        assert!(
            text.contains("asked for") || text.contains("for two parties"),
            "{text}"
        );
    }
}

#[test]
fn a_message_that_is_no_job_is_refused() {
    for words in [0, 1, 23, 25, 100_000] {
        let text = refused(2, move |at| (at == 0).then(|| vec![0; words]));
        assert!(text.contains("with 24 words"), "{text}");
    }
}

/// A mask of another length than the product's is another mask.
#[test]
fn a_kept_mask_fits_or_is_refused() {
    let jobs = [
        job(&[1, 1, 5, 0, 0, 0, 10]),
        job(&[1, 2, 5, 0, 0, 0, 10]),
        job(&[1, 2, 5, 0, 0, 0, 11]),
    ];
    let text = refused(2, move |at| jobs.get(at as usize).cloned());
    assert!(text.contains("a mask that is not kept"), "{text}");
    let jobs = [
        job(&[1, 1, 5, 0, 0, 0, 10]),
        job(&[2, 5]),
        job(&[1, 2, 5, 0, 0, 0, 10]),
    ];
    let text = refused(2, move |at| jobs.get(at as usize).cloned());
    assert!(text.contains("a mask that is not kept"), "{text}");
}

/// Small masks take memory too. Their number is bounded, and empty ones are not allowed.
#[test]
fn a_flood_of_names_is_refused() {
    for (n, why) in [
        (0, "asked for correlations that are malformed or too large"),
        (1, "asked to keep more than 65536 masks"),
    ] {
        let text = refused(2, move |name| {
            (name <= 1 << 16).then(|| job(&[1, 1, name, 0, 0, 0, n]))
        });
        assert!(text.contains(why), "{text}");
    }
}

/// Masks kept under one name repeatedly, with or without forgetting, count only once.
#[test]
fn names_that_are_used_again_take_no_room() {
    let mut members = vec![asking(|at| {
        Some(match at {
            0..200_000 if at % 2 == 0 => job(&[1, 1, at % 100, 0, 0, 0, 64]),
            0..200_000 => job(&[2, at % 50]),
            200_000 => job(&[9]),
            _ => return None,
        })
    })];
    members.extend([waiting(), dealer()]);
    let ends = in_memory(LONG, members);
    let text = ends[2]
        .as_ref()
        .expect_err("the dealer refuses the job")
        .to_string();
    assert!(
        text.contains("asked for correlations that are malformed or too large"),
        "{text}"
    );
}

/// If a party dies, the others and the dealer end, and name it.
#[test]
fn a_party_that_dies_is_named_by_all() {
    for parties in PARTIES {
        for dying in 0..parties {
            for times in [0, 1, 7] {
                let mut members: Vec<Member> = (0..parties)
                    .map(|me| {
                        party(move |p| {
                            if me == dying {
                                products(p, times, 1000)?;
                                return Err(Error::misuse("this one dies"));
                            }
                            products(p, 1000, 1000)
                        })
                    })
                    .collect();
                members.push(dealer());
                let ends = in_memory(LONG, members);
                for (who, end) in ends.iter().enumerate() {
                    if who != dying {
                        assert_names(end, dying, who);
                    }
                }
            }
        }
    }
}
