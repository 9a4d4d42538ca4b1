//! Servers of a federation of which one cheats: what clients signed is what is summed, noise is
//! what two servers drew, and clients compare what servers send.

use crate::parties::{Found, Message, Work, run_work};
use crate::programs::{Shared, opened, parts, parts_mut, product, zeros};
use kernels::stream::Key;
use mpc::agreement::PrivateComparison;
use mpc::replicated::Replicated;
use mpc::replicated::submissions::{Drawn, split};
use mpc::submission::{Federated, Summed, confirm, in_common};
use mpc::width::Width;
use mpc::{Error, PROTOCOLS, Protocol, Result, Serving};
use net::intake::REST;
use net::intake::statement::{Piece, SALT};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use testkit::components;

/// Clients, whose numbers are multiples of 10.
const CLIENTS: usize = 3;

const N: usize = 100;

/// A client's pieces of a vector of `n` numbers, all drawn from its number.
fn pieces_of(client: u64, n: usize, width: Width) -> [Piece; 3] {
    let key = |number: u64| Key::from_words([client, number]);
    let drawn = Drawn {
        seeds: [key(1), key(2)],
        salts: [1, 2, 3].map(|number| [client, number, 5, 7]),
    };
    let write = |begin: usize, out: &mut [u64]| {
        for (at, number) in out.iter_mut().enumerate() {
            *number = (client + 1) * (begin + at + 1) as u64;
        }
    };
    split(n, width, write, &drawn, Vec::new())
}

pub fn pieces(n: usize, width: Width) -> Vec<[Piece; 3]> {
    (0..CLIENTS as u64)
        .map(|client| pieces_of(client, n, width))
        .collect()
}

fn clients() -> Vec<usize> {
    (0..CLIENTS).map(|client| 10 * client).collect()
}

fn federated(p: &mut dyn Protocol) -> &mut dyn Federated {
    p.federated().expect("a protocol that serves federations")
}

/// Computes the sharing of the sum of clients' vectors of `n` numbers.
pub fn sum(p: &mut dyn Protocol, pieces: &[[Piece; 3]], n: usize, width: Width) -> Result<Shared> {
    let components = components(p.party(), pieces).into_iter();
    let (components, mut out) = (components.map(Summed::Each).collect(), zeros(p, n));
    federated(p).sum(&clients(), components, width, &mut parts_mut(&mut out))?;
    Ok(out)
}

/// Computes the sharings of clients' vectors of `n` words, and those of the words after them.
pub fn vectors(p: &mut dyn Protocol, pieces: &[[Piece; 3]], n: usize) -> Result<Shared> {
    let components = components(p.party(), pieces);
    let (mut out, mut last) = (zeros(p, CLIENTS * n), zeros(p, CLIENTS));
    let (into, after) = (&mut parts_mut(&mut out)[..], &mut parts_mut(&mut last)[..]);
    federated(p).vectors(&clients(), components, n, into, after)?;
    for (out, last) in out.iter_mut().zip(last) {
        out.extend(last);
    }
    Ok(out)
}

/// Checks that every honest party suspects the two others.
fn all_suspect_others(found: &[Found], corrupt: usize, step: &str, of: &str) {
    for party in (0..3).filter(|party| *party != corrupt) {
        let Err(Error::Cheating {
            suspects, first, ..
        }) = &found[party].result
        else {
            panic!("{of}: party {party} finds {:?}", found[party].result);
        };
        let mut others = [(party + 1) % 3, (party + 2) % 3];
        others.sort_unstable();
        assert_eq!(*suspects, others, "{of}: party {party}");
        assert!(first.contains(step), "{of}: party {party} says {first}");
    }
}

/// Checks that honest parties that have a result have this one. Returns whether one has an error.
fn judge(found: &[Found], corrupt: usize, right: &[u64], of: &str) -> bool {
    let mut stopped = false;
    for party in (0..3).filter(|party| *party != corrupt) {
        match &found[party].result {
            Ok(result) => assert!(result == right, "party {party} accepts {of} of {corrupt}"),
            Err(_) => stopped = true,
        }
    }
    stopped
}

fn is_component(message: &Message) -> bool {
    message.step.contains("reveal") && message.words.len() > 4
}

/// What party 1 may pass on in place of what clients signed.
#[test]
fn what_was_not_signed_is_passed_on() {
    let (right, last_round) = (pieces(N, Width::Half), pieces(N, Width::Half));
    let last_round: Vec<[Piece; 3]> = last_round
        .iter()
        .enumerate()
        .map(|(client, _)| pieces_of(100 + client as u64, N, Width::Half))
        .collect();
    type Lie<'a> = (&'a str, usize, &'a (dyn Fn(&mut Vec<u64>, usize) + Sync));
    let rest = |pieces: &[[Piece; 3]], client: usize| pieces[client][REST].words.clone();
    // Message 0 is the salts, message 1 + c the rest of client c.
    let lies: [Lie; 7] = [
        ("another word", 20, &|words, at| {
            if at == 3 {
                words[0] ^= 1 << 40;
            }
        }),
        ("another last word", 0, &|words, at| {
            if at == 1 {
                *words.last_mut().expect("a word") ^= 1;
            }
        }),
        ("another salt", 10, &|words, at| {
            if at == 0 {
                words[SALT + 2] ^= 1;
            }
        }),
        ("two clients' vectors swapped", 0, &|words, at| match at {
            1 => *words = rest(&right, 1),
            2 => *words = rest(&right, 0),
            _ => {}
        }),
        (
            "two clients' vectors and salts swapped",
            0,
            &|words, at| match at {
                0 => words[..2 * SALT].rotate_left(SALT),
                1 => *words = rest(&right, 1),
                2 => *words = rest(&right, 0),
                _ => {}
            },
        ),
        ("the last round's vectors", 0, &|words, at| match at {
            0 => {
                let salts = last_round.iter().map(|pieces| pieces[REST].salt);
                *words = salts.flatten().collect();
            }
            at => *words = rest(&last_round, at - 1),
        }),
        // As party 1 could add up vectors and pass on a sum of its choice.
        ("the sum in the first vector", 0, &|words, at| match at {
            1 => {
                for client in 1..CLIENTS {
                    Width::Half.add(words, &rest(&right, client));
                }
            }
            0 => {}
            _ => words.fill(0),
        }),
    ];
    for is_sum in [true, false] {
        let right = &right;
        let work = move |p: &mut Replicated| {
            let x = match is_sum {
                true => sum(p, right, N, Width::Half)?,
                // The packed words serve as any others.
                false => vectors(p, right, N / 2 - 1)?,
            };
            opened(p, &x)
        };
        assert!(
            run_work(&work, &|_| None)
                .iter()
                .all(|found| found.result.is_ok())
        );
        for (of, client, lie) in &lies {
            let first = Mutex::new(None);
            let found = run_work(&work, &|message| {
                let is_it = message.step.starts_with("take ") && message.sender == 1;
                (is_it && message.receiver == 0).then(|| {
                    let first = *first.lock().unwrap().get_or_insert(message.at);
                    let mut words = message.words.clone();
                    lie(&mut words, message.at - first);
                    words
                })
            });
            all_suspect_others(&found, 1, &format!("the vector of client {client}"), of);
            // Party 1 lacks the component that party 0 sends. Party 2 sends a hash of it.
            let learned = found[1].heard.iter().any(is_component);
            assert!(!learned, "{of}: party 1 learns the result");
        }
    }
}

/// A server computes with another component than clients' vectors give, whatever is computed.
#[test]
fn another_vector_is_used() {
    let all = pieces(N + 1, Width::Whole);
    let all = &all;
    for multiplies in [true, false] {
        let program = move |lie: Option<(usize, usize)>| {
            move |p: &mut Replicated| {
                let mut x = vectors(p, all, N)?;
                if let Some((_, place)) = lie.filter(|(liar, _)| *liar == p.party()) {
                    x[place][7] = x[place][7].wrapping_add(1 << 20);
                }
                let n = x[0].len();
                let x = if multiplies {
                    product(p, &x, &x, n, None)?
                } else {
                    x
                };
                opened(p, &x)
            }
        };
        let right = run_work(&program(None), &|_| None)
            .swap_remove(0)
            .result
            .unwrap();
        for liar in 0..3 {
            for place in 0..2 {
                let found = run_work(&program(Some((liar, place))), &|_| None);
                let of = format!("another component {place}");
                assert!(
                    judge(&found, liar, &right, &of),
                    "{of} of party {liar} is not found"
                );
            }
        }
    }
}

/// A server adds other noise than its key with another one gives, or none.
#[test]
fn other_noise_is_found() {
    let all = pieces(N, Width::Whole);
    let all = &all;
    for multiplies in [false, true] {
        for liar in 0..3 {
            for place in 0..2 {
                for adds in [false, true] {
                    let work = |p: &mut Replicated| {
                        let mut x = sum(p, all, N, Width::Whole)?;
                        let is_liar = p.party() == liar;
                        if is_liar && adds {
                            // The component before the noise is at `place` of the streams with
                            // the previous and the next party.
                            drop(p.streams()[1 - place].reserve(2));
                        }
                        let before = x[place].clone();
                        p.noise(1 << 20, &mut parts_mut(&mut x))?;
                        if is_liar && !adds {
                            x[place] = before;
                        }
                        if multiplies {
                            x = product(p, &x, &x, N, None)?;
                        }
                        opened(p, &x)
                    };
                    let found = run_work(&work, &|_| None);
                    let of = format!("party {liar}, component {place}, {adds}, {multiplies}");
                    let honest = || (0..3).filter(|party| *party != liar);
                    let errors: Vec<bool> = honest()
                        .map(|party| {
                            let result = &found[party].result;
                            matches!(result, Err(Error::Cheating { .. }))
                        })
                        .collect();
                    assert_eq!(errors, [true, true], "{of}");
                }
            }
        }
    }
}

fn unseal(parts: &[Vec<u64>]) -> Result<Option<Vec<u64>>> {
    let known = PROTOCOLS
        .iter()
        .find(|known| known.name == "replicated-malicious");
    let unseal = known
        .and_then(|known| known.unseal)
        .expect("it serves federations");
    let mut out = vec![0; parts.iter().map(Vec::len).max().unwrap_or(0)];
    let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
    Ok(unseal(&parts, &mut out)?.map(|n| out[..n].to_vec()))
}

fn seal(p: &mut Replicated, x: &Shared) -> Result<Vec<u64>> {
    let mut out = vec![0; p.sealed(x[0].len())];
    p.seal(&parts(x), &mut out)?;
    Ok(out)
}

/// Clients compare each component with the hash of its other holder.
#[test]
fn clients_find_what_a_server_falsifies() {
    for n in [1, N, 40_000] {
        let all = pieces(n, Width::Whole);
        let work = |p: &mut Replicated| {
            let x = sum(p, &all, n, Width::Whole)?;
            seal(p, &x)
        };
        let told = run_work(&work, &|_| None).into_iter();
        let told: Vec<Vec<u64>> = told.map(|found| found.result.unwrap()).collect();
        // 1 + 2 + 3 times the place.
        let right: Vec<u64> = (1..=n as u64).map(|at| 6 * at).collect();
        assert_eq!(unseal(&told).unwrap().unwrap(), right);
        let cheats = |changed: &[Vec<u64>], liar: usize, of: &str| {
            let Err(Error::Cheating { suspects, .. }) = unseal(changed) else {
                panic!("{of} of server {liar} is not found");
            };
            assert!(
                suspects.contains(&liar) && suspects[0] < suspects[1],
                "{of}: {suspects:?}"
            );
        };
        for liar in 0..3 {
            for at in [0, n / 2, n - 1, n, n + 3] {
                let mut changed = told.clone();
                changed[liar][at] ^= 1 << 17;
                cheats(
                    &changed,
                    liar,
                    if at < n {
                        "another component"
                    } else {
                        "another hash"
                    },
                );
            }
            for of in [
                "none of it",
                "a word less",
                "a word more",
                "another server's",
            ] {
                let mut changed = told.clone();
                match of {
                    "none of it" => changed[liar].clear(),
                    "a word less" => drop(changed[liar].pop()),
                    "a word more" => changed[liar].push(0),
                    _ => changed[liar] = told[(liar + 1) % 3].clone(),
                }
                cheats(&changed, liar, of);
            }
        }
        // Nothing else is joined.
        assert_eq!(unseal(&told[..2]).unwrap(), None);
    }
}

/// What a result depends on is verified before any part of it is made.
#[test]
fn nothing_falsified_is_sealed() {
    let all = pieces(N, Width::Whole);
    for liar in 0..3 {
        let sealed = Mutex::new(Vec::new());
        let work = |p: &mut Replicated| {
            let x = sum(p, &all, N, Width::Whole)?;
            let y = product(p, &x, &x, N, None)?;
            let out = seal(p, &y)?;
            sealed.lock().unwrap().push(p.party());
            Ok(out)
        };
        let found = run_work(&work, &|message| {
            let is_product = !["take", "agree", "share", "verify", "seal"]
                .iter()
                .any(|step| message.step.starts_with(step));
            (is_product && message.sender == liar && !message.words.is_empty()).then(|| {
                let mut words = message.words.clone();
                words[0] = words[0].wrapping_add(1 << 63);
                words
            })
        });
        let of = "a falsified product";
        all_suspect_others(&found, liar, "", of);
        assert!(
            sealed.lock().unwrap().is_empty(),
            "{of} of party {liar} is sealed"
        );
    }
}

/// A coin that all know is chosen by none: whoever tells another contribution, or two, is found.
#[test]
fn no_party_chooses_a_public_coin() {
    let work = |p: &mut Replicated| {
        let mine = Key::from_words([7, p.party() as u64]);
        Ok(p.public_coin(mine)?.to_words().to_vec())
    };
    let found = run_work(&work, &|_| None);
    let coins: Vec<_> = found
        .iter()
        .map(|found| found.result.as_ref().unwrap())
        .collect();
    assert!(coins[0] == coins[1] && coins[1] == coins[2]);
    let is_it = |message: &&Message| message.step.contains("public coin");
    let messages = found
        .iter()
        .flat_map(|found| found.heard.iter().filter(is_it));
    let messages: Vec<&Message> = messages
        .filter(|message| !message.words.is_empty())
        .collect();
    assert_eq!(messages.len(), 18);
    for message in messages {
        let found = run_work(&work, &|other| {
            let at = |message: &Message| (message.receiver, message.sender, message.at);
            (at(other) == at(message)).then(|| {
                let mut words = other.words.clone();
                words[0] ^= 1;
                words
            })
        });
        let liar = message.sender;
        all_suspect_others(&found, liar, "public coin", "another coin");
    }
}

/// A server that tells two others different submissions is found by a comparison that it cannot
/// deceive, before anything is opened.
#[test]
fn lists_of_submissions_are_compared() {
    for differ in [false, true] {
        let meshes = net::in_process::mesh(3, Duration::from_secs(20));
        let results: Vec<Result<()>> = std::thread::scope(|scope| {
            let run = |mesh: net::Mesh| {
                let mut channel = mesh.channel(0);
                let party = mesh.party();
                channel.set_agreement(Box::new(PrivateComparison::new(party, 3)?));
                let list = |clients: [usize; 2]| BTreeMap::from(clients.map(|at| (at, [7; 32])));
                let mine = list([0, 10]);
                if party == 2 && differ {
                    // Client 0 to one of them, client 10 to the other.
                    channel.begin("count submissions");
                    for other in 0..2 {
                        channel.send(other, vec![1])?;
                        channel.receive(other, 1)?;
                    }
                    channel.begin("compare submissions");
                    for other in 0..2 {
                        let word = 0x0707_0707_0707_0707;
                        channel.send(other, vec![10 * other as u64, word, word, word, word])?;
                        channel.receive(other, 10)?;
                    }
                    channel.set_relayed(true);
                    let entry = [&0_u64.to_le_bytes()[..], &[7; 32]].concat();
                    channel.note_public("the submissions in common", &entry);
                } else {
                    let common = in_common(&mut channel, &mine, false)?;
                    assert_eq!(common.len(), if differ { 1 } else { 2 });
                }
                let confirmed = confirm(&mut channel);
                mesh.close()?;
                confirmed
            };
            let threads: Vec<_> = meshes
                .into_iter()
                .map(|mesh| scope.spawn(move || run(mesh)))
                .collect();
            let results = threads.into_iter().map(|thread| thread.join());
            results.map(|result| result.expect("no panic")).collect()
        });
        for result in &results[..2] {
            assert_eq!(result.is_err(), differ, "{results:?}");
        }
        let compared = |result: &Result<()>| match result {
            Err(Error::Differ { step, odd, .. }) => {
                step == "the submissions in common" && odd.is_none()
            }
            Err(Error::Peer { step, .. }) => step == "the submissions in common",
            _ => false,
        };
        assert!(!differ || results[..2].iter().all(compared), "{results:?}");
    }
}

/// The programs of this file are those that it takes them for.
#[test]
fn honest_servers_sum_what_clients_signed() {
    for width in Width::ALL {
        let all = pieces(N, width);
        let work = |p: &mut Replicated| {
            let x = sum(p, &all, N, width)?;
            opened(p, &x)
        };
        let work: Work = &work;
        let shift = u64::BITS - width.bits();
        let right: Vec<u64> = (1..=N as u64).map(|at| (6 * at) << shift).collect();
        for found in run_work(work, &|_| None) {
            assert_eq!(found.result.unwrap(), right);
        }
    }
}
