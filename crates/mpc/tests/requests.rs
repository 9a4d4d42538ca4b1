//! Tests of requests of clients outside of the session: what is shared and sealed, what each party
//! sees.

use kernels::stream::Key;
use mpc::request::split;
use mpc::submission::Component;
use mpc::{PROTOCOLS, Protocol, Result, Serving};
use net::intake::REST;
use net::intake::statement::Piece;
use testkit::{REPETITIONS, Random, Recorder, Shared, run, run_opened};

/// Settings that serve clients.
const SETTINGS: [(&str, usize); 5] = [
    ("replicated", 3),
    ("replicated_malicious", 3),
    ("additive_2_dealer", 2),
    ("additive_3_dealer", 3),
    ("additive_5_dealer", 5),
];

const SECRETS: [u64; 3] = [0, u64::MAX, 0x0123_4567_89ab_cdef];

/// Returns a party's part of requests, of whose components it has this many.
fn components(party: usize, parts: usize, requests: &[Vec<Piece>]) -> Vec<Component> {
    let of = |place: usize| {
        let at = (party + place) % requests[0].len();
        let pieces = requests.iter().map(|pieces| &pieces[at]);
        if at != REST {
            let seed = |piece: &Piece| Key::from_words([piece.words[0], piece.words[1]]);
            Component::Seeds(pieces.map(seed).collect())
        } else if party == REST {
            Component::Pieces(pieces.cloned().collect())
        } else {
            Component::Promised(pieces.map(Piece::commitment).collect())
        }
    };
    (0..parts).map(of).collect()
}

fn taken(p: &mut dyn Protocol, requests: &[Vec<Piece>], n: usize) -> Result<Shared> {
    let components = components(p.party(), p.parts(), requests);
    // Two requests may be of one client.
    let clients: Vec<usize> = (0..requests.len()).map(|at| at / 2).collect();
    Shared::made(p, n * requests.len(), |p, out| {
        serving(p).take(&clients, components, n, out)
    })
}

fn serving(p: &mut dyn Protocol) -> &mut dyn Serving {
    p.serving().expect("the protocol serves clients")
}

fn sealed(p: &mut dyn Protocol, x: &Shared) -> Result<Vec<u64>> {
    let mut out = vec![0; serving(p).sealed(x.0[0].len())];
    serving(p).seal(&x.slices(), &mut out)?;
    Ok(out)
}

#[test]
fn what_clients_ask_is_shared_and_only_they_join_what_is_sealed() {
    for (setting, parties) in SETTINGS {
        for (requests, n) in [(1, 1), (3, 7), (2, 5000)] {
            let mut random = Random::new(n as u64);
            let vectors: Vec<Vec<u64>> = (0..requests).map(|_| random.words(n)).collect();
            let pieces: Vec<_> = vectors
                .iter()
                .map(|vector| split(vector, parties).unwrap())
                .collect();
            let found = run(setting, parties, |p| {
                let x = taken(p, &pieces, n)?;
                let parts = sealed(p, &x)?;
                Ok((x.open(p)?, parts))
            });
            let expected = vectors.concat();
            let protocol = testkit::setting(setting).0.protocol;
            let known = PROTOCOLS.iter().find(|known| known.name == protocol);
            let unseal = known.and_then(|known| known.unseal).unwrap();
            let parts: Vec<&[u64]> = found.iter().map(|(_, parts)| &parts[..]).collect();
            let mut out = vec![0; parts.iter().map(|part| part.len()).max().unwrap()];
            let length = unseal(&parts, &mut out).unwrap();
            assert_eq!(length, Some(n * requests), "{setting}");
            assert_eq!(out[..n * requests], expected, "{setting}");
            for (opened, part) in &found {
                assert_eq!(*opened, expected, "{setting}");
                assert_ne!(part.get(..n * requests), Some(&expected[..]), "{setting}");
            }
            // A part that is cut off gives no result. The caller counts the parts.
            let cut = [&[&parts[0][1..]], &parts[1..]].concat();
            assert!(!matches!(unseal(&cut, &mut out), Ok(Some(_))), "{setting}");
        }
    }
}

/// What a party has of a request is the rest, without what its own seeds expand to. That is uniform
/// as long as it lacks one seed; with all of them it is the request.
#[test]
fn what_parties_have_of_a_request_is_uniform() {
    const N: usize = 64;
    for (setting, parties) in SETTINGS {
        for secret in SECRETS {
            let requests: Vec<_> = (0..REPETITIONS)
                .map(|_| split(&[secret; N], parties).unwrap())
                .collect();
            let shares = run(setting, parties, |p| taken(p, &requests, N));
            let of = |component: usize, at: usize| -> &[u64] {
                // Party j has component j first.
                &shares[component].0[0][at * N..][..N]
            };
            for lacking in (0..parties).filter(|piece| *piece != REST) {
                for mutant in [false, true] {
                    let recorder = Recorder::default();
                    for at in 0..REPETITIONS {
                        let mut seen = vec![0_u64; N];
                        for piece in (0..parties).filter(|piece| mutant || *piece != lacking) {
                            for (sum, word) in seen.iter_mut().zip(of(piece, at)) {
                                *sum = sum.wrapping_add(*word);
                            }
                        }
                        recorder.repeat();
                        recorder.record(&seen);
                    }
                    let leak = recorder.transcript().leak();
                    assert_eq!(leak.is_some(), mutant, "{setting}, without {lacking}");
                }
            }
        }
    }
}

/// What parties that share additively send a client is uniform but for its sum, for two parties
/// too, and whatever their shares are.
#[test]
fn what_is_sealed_is_uniform_but_for_its_sum() {
    const N: usize = 64;
    for parties in [2, 3] {
        for secret in SECRETS {
            for mute in [false, true] {
                let told = run_opened(
                    parties,
                    Some(&testkit::deal),
                    |mesh| mpc::open_exactly(mesh, testkit::device(), |_, _| ()),
                    |p| {
                        let pairs = p.streams().iter_mut().flatten();
                        pairs.for_each(|pair| pair.mute(move |_| mute));
                        // Party 0 has all of x as its share.
                        let x = Shared::made(p, N, |p, out| {
                            p.trivial(&[secret; N], out);
                            Ok(())
                        })?;
                        (0..REPETITIONS)
                            .map(|_| sealed(p, &x))
                            .collect::<Result<Vec<_>>>()
                    },
                );
                let recorder = Recorder::default();
                for at in 0..REPETITIONS {
                    recorder.repeat();
                    for part in &told[..parties - 1] {
                        recorder.record(&part[at]);
                    }
                    for word in 0..N {
                        let words = told.iter().map(|parts| parts[at][word]);
                        assert_eq!(words.fold(0, u64::wrapping_add), secret);
                    }
                }
                assert_eq!(recorder.transcript().leak().is_some(), mute, "{parties}");
            }
        }
    }
}
