//! Tests of clients' vectors at three servers: what is opened, what is detected, what each server
//! sees; and of noise.

use kernels::stream::{Key, random_key};
use mpc::replicated::Replicated;
use mpc::replicated::submissions::{Drawn, split};
use mpc::submission::{Component, Summed, confirm, in_common};
use mpc::width::Width;
use mpc::{Federated, Protocol, Recipient, Result, Serving};
use net::Mesh;
use net::intake::statement::{Piece, SALT};
use net::intake::{HELD, REST};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use testkit::{Leak, REPETITIONS, Random, Recorder, Shared, components, run, run_opened};

/// Protocols that serve federations: in the first one, servers may pass on sums.
const PROTOCOLS: [&str; 2] = ["replicated", "replicated-malicious"];

const SECRETS: [u64; 3] = [0, u64::MAX, 0x0123_4567_89ab_cdef];

fn pieces_of(numbers: &[u64], width: Width, drawn: &Drawn) -> [Piece; 3] {
    let write = |begin: usize, out: &mut [u64]| {
        out.copy_from_slice(&numbers[begin..begin + out.len()]);
    };
    // The memory that is written may have arbitrary contents.
    let memory = vec![u64::MAX; width.words(numbers.len())];
    split(numbers.len(), width, write, drawn, memory)
}

fn handed_in(vectors: &[Vec<u64>], width: Width) -> Vec<[Piece; 3]> {
    let of = |numbers: &Vec<u64>| pieces_of(numbers, width, &Drawn::fresh().unwrap());
    vectors.iter().map(of).collect()
}

/// Returns a server's part of the sum of all clients' vectors.
fn summed(server: usize, pieces: &[[Piece; 3]], width: Width) -> Vec<Summed> {
    let whole = components(server, pieces).into_iter();
    let sum = |component| match component {
        Component::Promised(_) => Summed::PromisedSum,
        Component::Pieces(pieces) => {
            let mut words = pieces.into_iter().map(|piece| piece.words);
            let first = words.next().expect("at least one client");
            Summed::Sum(words.fold(first, |mut sum, words| {
                width.add(&mut sum, &words);
                sum
            }))
        }
        seeds => Summed::Each(seeds),
    };
    whole.map(sum).collect()
}

fn federated(p: &mut dyn Protocol) -> &mut dyn Federated {
    p.federated()
        .expect("replicated sharing supports federations")
}

/// Reads vectors of n words, and the word behind each.
fn taken(p: &mut dyn Protocol, pieces: &[[Piece; 3]], n: usize) -> Result<[Shared; 2]> {
    let components = components(p.party(), pieces);
    let clients: Vec<usize> = (0..pieces.len()).map(|client| 10 * client).collect();
    let mut all = None;
    let last = Shared::made(p, pieces.len(), |p, last| {
        let vectors = Shared::made(p, n * pieces.len(), |p, out| {
            federated(p).vectors(&clients, components, n, out, last)
        });
        all = Some(vectors?);
        Ok(())
    })?;
    Ok([all.expect("the vectors exist"), last])
}

fn taken_as_sum(
    p: &mut dyn Protocol,
    pieces: &[[Piece; 3]],
    n: usize,
    width: Width,
) -> Result<Shared> {
    let components = match federated(p).takes_sums() {
        true => summed(p.party(), pieces, width),
        false => {
            let each = components(p.party(), pieces).into_iter();
            each.map(Summed::Each).collect()
        }
    };
    let clients: Vec<usize> = (0..pieces.len()).collect();
    Shared::made(p, n, |p, out| {
        federated(p).sum(&clients, components, width, out)
    })
}

/// Opens a value to each party separately, so that every pair of components is used.
fn opened(p: &mut dyn Protocol, x: &Shared) -> Result<Vec<u64>> {
    let mut found = None;
    for to in 0..3 {
        let one = p.reveal(&x.slices(), Recipient::One(to))?;
        found = found.or(one);
    }
    Ok(found.expect("each party is a recipient once"))
}

#[test]
fn what_clients_hand_in_is_shared() {
    let sizes = [(1, 1), (3, 7), (2, 5000), (2, 300_000), (17, 64)];
    for (protocol, (clients, n)) in PROTOCOLS
        .into_iter()
        .flat_map(|name| sizes.map(|of| (name, of)))
    {
        let mut random = Random::new(n as u64);
        let vectors: Vec<Vec<u64>> = (0..clients).map(|_| random.words(n + 1)).collect();
        let pieces = handed_in(&vectors, Width::Whole);
        let found = run(protocol, 3, |p| {
            let before = p.channel().meter().totals();
            let [all, last] = taken(p, &pieces, n)?;
            let sent = p.channel().meter().totals().payload_bytes - before.payload_bytes;
            Ok((opened(p, &all)?, opened(p, &last)?, sent))
        });
        let expected: Vec<u64> = vectors
            .iter()
            .flat_map(|words| &words[..n])
            .copied()
            .collect();
        let behind: Vec<u64> = vectors.iter().map(|words| words[n]).collect();
        for (party, (found, last, sent)) in found.into_iter().enumerate() {
            assert_eq!(found, expected, "{clients} clients, {n} words");
            assert_eq!(last, behind, "{clients} clients, {n} words");
            let expected = 8 * clients * (n + 1 + SALT) * usize::from(party == 1);
            assert_eq!(sent as usize, expected, "party {party}");
        }
    }
}

#[test]
fn the_sum_of_what_clients_hand_in_is_shared() {
    for protocol in PROTOCOLS {
        for width in Width::ALL {
            for sizes in [(1, 1), (3, 7), (2, 5000), (3, 2049), (2, 300_001), (17, 64)] {
                is_shared_sum(protocol, width, sizes);
            }
        }
    }
}

fn is_shared_sum(protocol: &str, width: Width, (clients, n): (usize, usize)) {
    let mut random = Random::new(n as u64);
    let mut vectors: Vec<Vec<u64>> = (0..clients).map(|_| random.words(n)).collect();
    // Sums that carry everywhere, and some that just do not.
    vectors[0].fill(u64::MAX);
    vectors[clients - 1][n / 2..].fill(0);
    let pieces = handed_in(&vectors, width);
    let found = run(protocol, 3, |p| {
        let before = p.channel().meter().totals();
        let sum = taken_as_sum(p, &pieces, n, width)?;
        let sent = p.channel().meter().totals().payload_bytes - before.payload_bytes;
        Ok((opened(p, &sum)?, sent))
    });
    let sum = (0..n).map(|at| {
        let sum = vectors
            .iter()
            .fold(0_u64, |sum, of| sum.wrapping_add(of[at]));
        sum << (u64::BITS - width.bits())
    });
    let sum: Vec<u64> = sum.collect();
    for (party, (found, sent)) in found.into_iter().enumerate() {
        assert_eq!(
            found, sum,
            "{protocol}: {clients} clients, {n} numbers, {width:?}"
        );
        let expected = match protocol {
            "replicated" => width.words(n),
            _ => clients * (width.words(n) + SALT),
        };
        let expected = 8 * expected * usize::from(party == 1);
        assert_eq!(sent as usize, expected, "party {party}");
    }
}

#[test]
fn exactly_two_parties_share_a_secret_and_it_is_new_each_time() {
    let found = run("replicated", 3, |p| {
        Ok([federated(p).secrets(), federated(p).secrets()])
    });
    for party in 0..3 {
        for time in 0..2 {
            let [next, previous] = found[party][time];
            assert_eq!(next, found[(party + 1) % 3][time][1]);
            assert_ne!(next, previous);
            assert_ne!(next, found[party][1 - time][0]);
        }
    }
}

/// The common key, which all parties have from the start, plays no part: results stay the same if
/// it gives zeros.
#[test]
fn what_two_parties_share_is_not_of_the_common_key() {
    type Work = fn(&mut Replicated) -> Result<()>;
    let works: [(&str, Work); 3] = [
        ("keys of tickets", |p| {
            let [next, previous] = p.secrets();
            assert_ne!(next, previous);
            Ok(())
        }),
        ("noise", |p| {
            let (mut first, mut second) = ([0; 1000], [0; 1000]);
            p.noise(10_000, &mut [&mut first, &mut second])?;
            assert_ne!(first, second);
            Ok(())
        }),
        ("seal", |p| {
            let mut out = vec![0; p.sealed(1000)];
            p.seal(&[&[0; 1000], &[0; 1000]], &mut out)?;
            assert!(out.is_empty() || out.iter().any(|word| *word != out[0]));
            Ok(())
        }),
    ];
    for (what, work) in works {
        run_opened(
            3,
            None,
            |mesh| Replicated::new(mesh.channel(0), testkit::device()),
            |p| {
                let taken = |p: &mut Replicated| p.streams().map(|stream| stream.reserved().len());
                p.streams()[2].mute(|_| true);
                let before = taken(p);
                work(p)?;
                let after = taken(p);
                assert_eq!(after[2], before[2], "{what} uses public coins");
                // Sealing uses only the key that parties 0 and 1 share.
                if what != "seal" {
                    assert!(after[0] > before[0] && after[1] > before[1], "{what}");
                }
                Ok(())
            },
        );
    }
}

/// Returns how each of three parties ends, if some fail.
fn ended<T: Send>(program: impl Fn(&Mesh) -> Result<T> + Sync) -> Vec<Result<T>> {
    let program = &program;
    let meshes = net::in_process::mesh(3, Duration::from_secs(20));
    thread::scope(|scope| {
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| {
                scope.spawn(move || {
                    let found = program(&mesh);
                    match &found {
                        Ok(_) => drop(mesh.close()),
                        Err(error) => mesh.abort(&error.to_string()),
                    }
                    found
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.collect()
    })
}

#[test]
fn who_gave_a_ticket_for_what_it_lacks_is_named() {
    let results = ended(|mesh| {
        let mut channel = mesh.channel(0);
        let party = mesh.party();
        let mut mine = BTreeMap::from([(0, [1; 32]), (3, [3; 32])]);
        if party == 2 {
            mine.remove(&3);
        }
        in_common(&mut channel, &mine, party == 1)
    });
    let message = results[1].as_ref().unwrap_err().to_string();
    assert!(
        message.contains("party 2") && message.contains("it gave client 3 a ticket"),
        "{message}"
    );
}

/// Reports these lists of clients to the others, instead of [`in_common`].
fn tell_lists(p: &mut dyn Protocol, lists: [&[usize]; 3]) -> Result<()> {
    let (me, channel) = (p.party(), p.channel());
    channel.begin("count submissions");
    for other in (0..3).filter(|other| *other != me) {
        channel.send(other, vec![lists[other].len() as u64])?;
        channel.receive(other, 1)?;
    }
    channel.begin("compare submissions");
    for other in (0..3).filter(|other| *other != me) {
        let entries = lists[other]
            .iter()
            .flat_map(|client| [*client as u64, 0, 0, 0, 0]);
        channel.send(other, entries.collect())?;
        channel.receive(other, 5 * 2)?;
    }
    Ok(())
}

#[test]
fn a_server_that_tells_two_lists_of_clients_is_found_out_before_any_client_is_told() {
    const N: usize = 20;
    let pieces = handed_in(&[vec![1; N + 1], vec![2; N + 1]], Width::Whole);
    // Each server has clients 0 and 10. The liar reports both to one server and only one client to
    // the other. It then continues as if that were all, or as if both were.
    for (liar, told, goes_on_with, is_sum) in [
        (2, [2, 1, 0], 2, true),
        (2, [1, 2, 0], 2, true),
        (2, [1, 2, 0], 1, true),
        (0, [0, 2, 1], 1, true),
        (1, [2, 0, 1], 2, false),
        (1, [1, 0, 2], 1, false),
        (0, [0, 1, 2], 2, false),
    ] {
        let results = ended(|mesh| {
            let mut p = Replicated::new(mesh.channel(0), testkit::device())?;
            let mine = BTreeMap::from([(0, [0; 32]), (10, [0; 32])]);
            let count = if mesh.party() == liar {
                tell_lists(&mut p, told.map(|count| &[0, 10][..count]))?;
                goes_on_with
            } else {
                in_common(p.channel(), &mine, false)?.len()
            };
            let pieces = &pieces[..count];
            let shared = if is_sum {
                let clients = &[0, 10][..count];
                let components = summed(mesh.party(), pieces, Width::Whole);
                Shared::made(&mut p, N + 1, |p, out| {
                    federated(p).sum(clients, components, Width::Whole, out)
                })?
            } else {
                let [vectors, _] = taken(&mut p, pieces, N)?;
                // All results have one size, whatever each party takes for the list.
                Shared(vectors.0.iter().map(|part| part[..N].to_vec()).collect())
            };
            p.reveal(&shared.slices(), Recipient::All)?;
            confirm(p.channel())
        });
        let failed = |result: &Result<()>| result.as_ref().err().cloned();
        let errors: Vec<net::Error> = results.iter().filter_map(failed).collect();
        let case = format!("{liar} tells {told:?}: {results:?}");
        assert!(
            (0..3).all(|party| party == liar || results[party].is_err()),
            "{case}"
        );
        let is_desync = |error: &net::Error| matches!(error, net::Error::Desync { .. });
        assert!(errors.iter().any(is_desync), "{case}");
        // Two honest parties differ in what the third one reported to them, so the named party may
        // be another one.
        for error in errors {
            let text = error.to_string();
            assert!(
                text.contains("need not be one of these two, told the others"),
                "{case}"
            );
            assert!(!text.contains("is not that of the others"), "{case}");
        }
    }
}

#[test]
fn what_is_passed_on_and_was_not_signed_is_noticed() {
    let vectors = [vec![1; 100], vec![2; 100]];
    let right = handed_in(&vectors, Width::Whole);
    let changes: [fn(&mut Piece); 4] = [
        |rest| rest.words[98] ^= 1,
        // The word behind the vector.
        |rest| rest.words[99] ^= 1,
        |rest| rest.salt[3] ^= 1,
        |rest| rest.words.swap(0, 1),
    ];
    for change in changes {
        let mut changed = right.clone();
        change(&mut changed[1][REST]);
        let results = ended(|mesh| {
            let mut p = Replicated::new(mesh.channel(0), testkit::device())?;
            let pieces = if mesh.party() == 1 { &changed } else { &right };
            taken(&mut p, pieces, 99)
        });
        let error = results[0].as_ref().err().expect("party 0 reports an error");
        let message = error.to_string();
        assert!(
            message.contains("party 1")
                && message.contains("for client 10 is not the one that the client signed"),
            "{message}"
        );
    }
}

#[test]
fn servers_go_on_with_whom_all_have() {
    // For each server, its clients and their statements.
    let lists = [
        [(0, 5), (1, 6), (2, 7), (9, 1)],
        [(0, 5), (1, 6), (3, 7), (9, 1)],
        // Client 1 signed two statements.
        [(0, 5), (1, 8), (2, 7), (9, 1)],
    ];
    let found = run("replicated", 3, |p| {
        let mine = lists[p.party()];
        let mine: BTreeMap<usize, [u8; 32]> = mine
            .into_iter()
            .map(|(client, digest)| (client, [digest; 32]))
            .collect();
        let none = in_common(p.channel(), &BTreeMap::new(), false)?;
        let one_sided = if p.party() == 0 {
            mine.clone()
        } else {
            BTreeMap::new()
        };
        let alone = in_common(p.channel(), &one_sided, false)?;
        assert!(none.is_empty() && alone.is_empty());
        in_common(p.channel(), &mine, false)
    });
    assert_eq!(found, [[0, 9], [0, 9], [0, 9]]);
}

/// Returns a server's view of a client's vector, with everything that it knows of the client's
/// seeds set to zero: the rest, if the server gets it, and the commitments to what it lacks.
/// `muted` selects a further draw of the client that is zero.
fn seen(server: usize, secret: u64, width: Width, muted: Option<usize>) -> Option<Leak> {
    const N: usize = 64;
    let recorder = Recorder::default();
    for _ in 0..REPETITIONS {
        let mut drawn = Drawn::fresh().unwrap();
        let zero = || Key::from_words([0, 0]);
        for (at, component) in [0, 2].into_iter().enumerate() {
            let known = HELD[server].contains(&component);
            if known || muted == Some(at) {
                drawn.seeds[at] = zero();
            }
        }
        if muted == Some(2) {
            drawn.salts = [[0; SALT]; 3];
        }
        let pieces = pieces_of(&[secret; N], width, &drawn);
        recorder.repeat();
        for (at, piece) in pieces.iter().enumerate() {
            let passed_on = server == 0 && at == REST;
            if at == REST && (passed_on || HELD[server].contains(&at)) {
                recorder.record(&piece.words);
            }
            if !HELD[server].contains(&at) {
                recorder.record(&net::bytes::to_words(&piece.commitment()));
            }
        }
    }
    recorder.transcript().leak()
}

#[test]
fn what_a_server_sees_of_a_submission_is_uniform() {
    for server in 0..3 {
        for secret in SECRETS {
            for width in Width::ALL {
                assert_eq!(seen(server, secret, width, None), None, "server {server}");
            }
        }
    }
}

#[test]
fn without_a_seed_or_a_salt_the_test_fails() {
    // Server 0 lacks the second seed, server 1 the first. Server 2 could test guesses of the rest.
    for (server, muted) in [(0, 1), (1, 0), (2, 2)] {
        let noticed = SECRETS
            .iter()
            .any(|secret| seen(server, *secret, Width::Half, Some(muted)).is_some());
        assert!(
            noticed,
            "server {server}: no leak is detected without seed or salt {muted}"
        );
    }
}

#[test]
fn every_party_lacks_one_part_of_the_noise() {
    const N: usize = 100_000;
    let variance = 10_000_u64;
    let found = run_opened(
        3,
        None,
        |mesh| Replicated::new(mesh.channel(0), testkit::device()),
        |p| {
            let mut x = Shared::made(p, N, |p, out| {
                p.trivial(&vec![7; N], out);
                Ok(())
            })?;
            let before = p.channel().meter().totals();
            let mut parts: Vec<&mut [u64]> = x.0.iter_mut().map(|part| &mut part[..]).collect();
            p.noise(variance, &mut parts)?;
            assert_eq!(
                p.channel().meter().totals().payload_bytes,
                before.payload_bytes
            );
            let noisy = opened(p, &x)?;
            Ok((x.0, noisy))
        },
    );
    let spread = |words: &mut dyn Iterator<Item = i64>| {
        words.map(|word| (word as f64).powi(2)).sum::<f64>() / N as f64 / variance as f64
    };
    let noise: Vec<i64> = found[0]
        .1
        .iter()
        .map(|word| word.wrapping_sub(7) as i64)
        .collect();
    let all = spread(&mut noise.iter().copied());
    assert!((all - 3.0).abs() < 0.07, "{all}");
    for (party, (parts, opened)) in found.iter().enumerate() {
        assert_eq!(*opened, found[0].1);
        // Without what this party knows.
        let known = |at: usize| {
            let public = if party == 1 { 0 } else { 7 };
            parts[0][at].wrapping_add(parts[1][at]).wrapping_sub(public) as i64
        };
        let lacking = spread(&mut (0..N).map(|at| noise[at] - known(at)));
        assert!((lacking - 1.0).abs() < 0.04, "party {party}: {lacking}");
    }
}

/// Returns the noise on `N` zeros that a party does not know. All streams that it knows are zeros:
/// those of its two keys, and of the key that all three have.
fn lacked(party: usize) -> Vec<i64> {
    const N: usize = 4096;
    let found = run_opened(
        3,
        None,
        |mesh| Replicated::new(mesh.channel(0), testkit::device()),
        |p| {
            let place = (p.party() + 3 - party) % 3;
            let [next, previous, common] = p.streams();
            common.mute(|_| true);
            if place != 1 {
                next.mute(|_| true);
            }
            if place != 2 {
                previous.mute(|_| true);
            }
            let mut x = Shared::zeros(p, N);
            let mut parts: Vec<&mut [u64]> = x.0.iter_mut().map(|part| &mut part[..]).collect();
            p.noise(10_000, &mut parts)?;
            let all = opened(p, &x)?;
            Ok((x.0, all))
        },
    );
    let (parts, all) = &found[party];
    let known = |at: usize| parts[0][at].wrapping_add(parts[1][at]);
    (0..N)
        .map(|at| all[at].wrapping_sub(known(at)) as i64)
        .collect()
}

#[test]
fn the_part_of_the_noise_that_a_party_lacks_comes_of_no_key_that_it_has() {
    for party in 0..3 {
        let (one, other) = (lacked(party), lacked(party));
        let product = |a: &[i64], b: &[i64]| {
            let products = a.iter().zip(b).map(|(a, b)| *a as f64 * *b as f64);
            products.sum::<f64>()
        };
        let correlation =
            product(&one, &other) / (product(&one, &one) * product(&other, &other)).sqrt();
        assert!(
            correlation.abs() < 0.1,
            "party {party} can predict the noise: {correlation}"
        );
    }
}

#[test]
fn fresh_seeds_each_time() {
    let (one, other) = (Drawn::fresh().unwrap(), Drawn::fresh().unwrap());
    assert_ne!(one.seeds[0].as_bytes(), other.seeds[0].as_bytes());
    assert_ne!(one.seeds[0].as_bytes(), one.seeds[1].as_bytes());
    assert_ne!(one.salts, other.salts);
    assert!(one.salts[0] != one.salts[1] && one.salts[1] != one.salts[2]);
    assert_ne!(random_key().unwrap().as_bytes(), one.seeds[0].as_bytes());
}

#[test]
fn what_is_sealed_is_told_by_two_and_uniform_but_for_its_sum() {
    const N: usize = 64;
    for secret in SECRETS {
        for mute in [false, true] {
            let told = run_opened(
                3,
                None,
                |mesh| Replicated::new(mesh.channel(0), testkit::device()),
                |p| {
                    // The sharing's own mask, from k20, is zero, so that only the masks of sealing,
                    // from k01, hide x.
                    let party = p.party();
                    let [next, previous, _] = p.streams();
                    next.mute(move |_| mute || party == 2);
                    previous.mute(move |_| mute || party == 0);
                    let x = Shared::input(p, 0, &[secret; N])?;
                    let mut told = Vec::new();
                    for _ in 0..REPETITIONS {
                        let mut out = vec![0; p.sealed(N)];
                        p.seal(&x.slices(), &mut out)?;
                        if !out.is_empty() {
                            told.push(out);
                        }
                    }
                    Ok(told)
                },
            );
            assert!(told[2].is_empty());
            let recorder = Recorder::default();
            for (one, other) in told[0].iter().zip(&told[1]) {
                recorder.repeat();
                recorder.record(one);
                assert!((0..N).all(|at| one[at].wrapping_add(other[at]) == secret));
            }
            assert_eq!(recorder.transcript().leak().is_some(), mute);
        }
    }
}

/// Parties that prove what they send tell clients all components, which are uniform but for their
/// sum: so says each pair of them.
#[test]
fn components_that_clients_get_are_uniform_but_for_their_sum() {
    const N: usize = 64;
    const HASH: usize = 4;
    for secret in SECRETS {
        for mute in [false, true] {
            let told = run_opened(
                3,
                None,
                |mesh| Replicated::malicious(mesh.channel(0), testkit::device()),
                |p| {
                    // The sharing has no masks of its own.
                    let [next, previous, common] = p.streams();
                    next.mute(|_| true);
                    previous.mute(|_| true);
                    common.mute(move |_| mute);
                    let x = Shared::input(p, 0, &[secret; N])?;
                    let mut told = Vec::new();
                    for _ in 0..REPETITIONS {
                        let mut out = vec![0; p.sealed(N)];
                        p.seal(&x.slices(), &mut out)?;
                        told.push(out);
                    }
                    Ok(told)
                },
            );
            let mut leaks = false;
            for pair in [[0, 1], [1, 2], [2, 0]] {
                let recorder = Recorder::default();
                for (one, other) in told[pair[0]].iter().zip(&told[pair[1]]) {
                    recorder.repeat();
                    for words in [one, other] {
                        assert_eq!(words.len(), N + HASH);
                        recorder.record(&words[..N]);
                    }
                }
                leaks |= recorder.transcript().leak().is_some();
            }
            assert_eq!(leaks, mute);
            for (one, (two, three)) in told[0].iter().zip(told[1].iter().zip(&told[2])) {
                let sum = [one, two, three].map(|words| words[N - 1]);
                assert_eq!(sum.into_iter().fold(0, u64::wrapping_add), secret);
            }
        }
    }
}

#[test]
fn no_sum_is_passed_on_if_parties_prove_what_they_send() {
    let pieces = handed_in(&[vec![1; 20], vec![2; 20]], Width::Whole);
    let found = run("replicated-malicious", 3, |p| {
        let components = summed(p.party(), &pieces, Width::Whole);
        let sum = Shared::made(p, 20, |p, out| {
            federated(p).sum(&[0, 1], components, Width::Whole, out)
        });
        Ok(sum.err().map(|error| error.to_string()))
    });
    let said = "under this protocol a server passes on each vector, and not their sum";
    // Party 2 has seeds alone.
    assert_eq!(found, [Some(said.to_owned()), Some(said.to_owned()), None]);
}
