//! Tests of what parties see of each other, in order and after failures, on both kinds of links.

mod links;

use links::{Kind, parties, text};
use net::{Channel, Error, Mesh};
use std::time::Duration;

const KINDS: [Kind; 2] = [Kind::Memory, Kind::Tcp];

/// Long timeout: nothing waits for it unless a test fails.
const LONG: Duration = Duration::from_secs(60);
/// Short timeout, for tests of the timeout itself.
const SHORT: Duration = Duration::from_secs(2);

fn exchange(channel: &mut Channel, words: usize) -> net::Result<Vec<u64>> {
    let (party, all) = (channel.party(), channel.parties());
    channel.send((party + 1) % all, vec![party as u64; words])?;
    channel.receive((party + all - 1) % all, words)
}

#[test]
fn messages_arrive_in_order_and_are_metered() {
    for kind in KINDS {
        let results = parties(kind, 3, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.set_label("first");
            for words in [0, 1, 5, 3000, 200_000] {
                channel.begin("exchange");
                let got = exchange(&mut channel, words)?;
                assert_eq!(got, vec![((party + 2) % 3) as u64; words]);
            }
            channel.set_label("second");
            channel.begin("exchange");
            exchange(&mut channel, 2)?;
            mesh.close()?;
            let lines: Vec<_> = channel
                .meter()
                .by_label()
                .map(|(label, reading)| (label.to_owned(), *reading))
                .collect();
            Ok((
                lines,
                channel.meter().totals(),
                channel.meter().sent_to().to_vec(),
            ))
        });
        for (party, result) in results.into_iter().enumerate() {
            let (lines, totals, sent_to) = result.unwrap();
            let labels: Vec<&str> = lines.iter().map(|(label, _)| label.as_str()).collect();
            assert_eq!(labels, ["", "first", "second"]);
            assert_eq!((lines[1].1.frames, lines[1].1.rounds), (5, 5));
            assert_eq!(lines[1].1.payload_bytes, 8 * 203_006);
            assert_eq!(totals.payload_bytes, 8 * 203_008);
            assert_eq!(totals.rounds, 6);
            assert_eq!(sent_to[(party + 1) % 3], totals.wire_bytes);
            assert!(totals.wire_bytes > totals.payload_bytes);
        }
    }
}

#[test]
fn rounds_count_the_longest_chain_and_not_messages() {
    let results = parties(Kind::Memory, 3, LONG, |mesh, party| {
        let mut channel = mesh.channel(0);
        channel.begin("around");
        // 0 → 1 → 2 → 0 is three rounds, however many messages are sent along.
        match party {
            0 => {
                (0..4).try_for_each(|_| channel.send(1, vec![1]))?;
                channel.receive(2, 1)?;
            }
            1 => {
                for _ in 0..4 {
                    channel.receive(0, 1)?;
                }
                channel.send(2, vec![1])?;
            }
            _ => {
                channel.receive(1, 1)?;
                channel.send(0, vec![1])?;
            }
        }
        mesh.close()?;
        Ok(channel.meter().totals().rounds)
    });
    assert_eq!(
        results.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        [3, 1, 2]
    );
}

#[test]
fn channels_do_not_mix() {
    for kind in KINDS {
        parties(kind, 2, LONG, |mesh, party| {
            let (mut first, mut second) = (mesh.channel(1), mesh.channel(2));
            first.begin("a");
            second.begin("b");
            second.send(1 - party, vec![2])?;
            first.send(1 - party, vec![1])?;
            assert_eq!(first.receive(1 - party, 1)?, [1]);
            assert_eq!(second.receive(1 - party, 1)?, [2]);
            mesh.close()?;
            Ok(())
        })
        .into_iter()
        .for_each(|result| result.unwrap());
    }
}

/// Each channel has its own thread. It writes small messages itself, and the link's thread writes
/// long ones.
#[test]
fn channels_may_be_used_at_once() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            std::thread::scope(|scope| {
                for id in 0..3 {
                    let mut channel = mesh.channel(id);
                    scope.spawn(move || {
                        for at in 0..2000_usize {
                            let words = [1, 2, 3000][(at + usize::from(id)) % 3];
                            channel.begin("exchange");
                            channel.send(1 - party, vec![at as u64; words]).unwrap();
                            let got = channel.receive(1 - party, words).unwrap();
                            assert!(got.iter().all(|word| *word == at as u64));
                        }
                    });
                }
            });
            mesh.close()
        });
        assert!(results.iter().all(Result::is_ok));
    }
}

#[test]
fn sending_does_not_wait_for_the_receiver() {
    for kind in KINDS {
        // Both send 160 MB before either receives, which is more than all buffers of the network
        // hold.
        parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin("much");
            for _ in 0..20 {
                channel.send(1 - party, vec![7; 1 << 20])?;
            }
            for _ in 0..20 {
                assert_eq!(channel.receive(1 - party, 1 << 20)?.len(), 1 << 20);
            }
            mesh.close()?;
            Ok(())
        })
        .into_iter()
        .for_each(|result| result.unwrap());
    }
}

#[test]
fn different_steps_are_named_on_both_sides() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.set_label(["conv1", "conv2"][party]);
            channel.begin(["multiply", "sign"][party]);
            exchange(&mut channel, 3)
        });
        let mut desync = 0;
        for result in results {
            let error = result.unwrap_err();
            let message = text(&error);
            assert!(
                message.contains("conv1: multiply") && message.contains("conv2: sign"),
                "{message}"
            );
            desync += usize::from(matches!(error, Error::Desync { .. }));
        }
        assert!(desync >= 1, "no party reports a Desync");
    }
}

/// Only party 1 hears from both others, as in replicated products of few elements.
fn lopsided(channel: &mut Channel) -> net::Result<()> {
    match channel.party() {
        0 => channel.send(1, vec![1]),
        1 => {
            channel.send(2, vec![1])?;
            channel.receive(2, 1)?;
            channel.receive(0, 1).map(drop)
        }
        _ => {
            channel.send(1, vec![1])?;
            channel.receive(1, 1).map(drop)
        }
    }
}

#[test]
fn of_three_the_odd_one_is_named_to_all() {
    for kind in KINDS {
        for odd in 0..3 {
            for ring in [true, false] {
                let results = parties(kind, 3, LONG, |mesh, party| {
                    let mut channel = mesh.channel(0);
                    channel.begin("share");
                    exchange(&mut channel, 1)?;
                    if party == odd {
                        channel.note(b"another scale");
                    }
                    channel.begin("multiply");
                    if ring {
                        exchange(&mut channel, 3)?;
                    } else {
                        lopsided(&mut channel)?;
                    }
                    // No party has finished, and all wait for the others.
                    channel.begin("wait");
                    exchange(&mut channel, 1)
                });
                let alone = format!("the program of party {odd} is not that of the others");
                for result in results {
                    let message = text(&result.unwrap_err());
                    assert!(message.contains(&alone), "{odd} on {kind:?}: {message}");
                    assert!(!message.contains("\"\""), "nested quotes: {message}");
                }
            }
        }
    }
}

#[test]
fn of_two_and_two_none_is_called_the_odd_one() {
    let results = parties(Kind::Memory, 4, LONG, |mesh, party| {
        let mut channel = mesh.channel(0);
        if party >= 2 {
            channel.note(b"another scale");
        }
        channel.begin("multiply");
        exchange(&mut channel, 1)?;
        channel.begin("wait");
        exchange(&mut channel, 1)
    });
    for result in results {
        let message = text(&result.unwrap_err());
        assert!(
            message.contains("programs differ") && !message.contains("that of the others"),
            "{message}"
        );
    }
}

#[test]
fn different_lengths_are_named() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin("multiply");
            exchange(&mut channel, 3 + party)
        });
        assert!(results.iter().any(|result| {
            let message = text(result.as_ref().unwrap_err());
            message.contains("with 3 words") && message.contains("with 4 words")
        }));
    }
}

#[test]
fn a_party_that_dies_is_named_at_once() {
    for kind in KINDS {
        let results = parties(kind, 3, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin("share");
            exchange(&mut channel, 1)?;
            if party == 1 {
                return Ok(()); // This drops its links without a goodbye.
            }
            loop {
                channel.begin("multiply");
                exchange(&mut channel, 1)?;
            }
        });
        for survivor in [0, 2] {
            match results[survivor].as_ref().unwrap_err() {
                Error::Peer { party: 1, step, .. } => assert_eq!(step, "multiply"),
                other => panic!("party {survivor}: {other}"),
            }
        }
    }
}

#[test]
fn a_party_that_stalls_is_named_by_all_within_the_timeout() {
    for kind in KINDS {
        let results = parties(kind, 3, SHORT, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin("multiply");
            match party {
                // Party 2 is alive, but does nothing until all others have given up.
                2 => {
                    std::thread::sleep(SHORT * 3);
                    channel.send(1, vec![1])?;
                    Ok(vec![])
                }
                // Party 1 waits for party 2, and party 0 for party 1. Party 2 is still the one to
                // blame.
                1 => {
                    let got = channel.receive(2, 1)?;
                    channel.send(0, got.clone())?;
                    Ok(got)
                }
                _ => channel.receive(1, 1),
            }
        });
        for waiting in [0, 1] {
            match results[waiting].as_ref().unwrap_err() {
                Error::Peer {
                    party: 2, fault, ..
                } => assert!(fault.to_string().contains("timeout"), "{fault}"),
                other => panic!("party {waiting} on {kind:?} links: {other}"),
            }
        }
        assert!(results[2].is_err(), "the stalled party did not fail");
    }
}

#[test]
fn parties_that_wait_for_each_other_are_told_so() {
    let results = parties(Kind::Memory, 2, SHORT, |mesh, party| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        channel.receive(1 - party, 1)
    });
    let messages: Vec<String> = results
        .iter()
        .map(|result| text(result.as_ref().unwrap_err()))
        .collect();
    assert!(
        messages
            .iter()
            .any(|message| message.contains("programs differ")),
        "{messages:?}"
    );
}

#[test]
fn a_reason_is_told_to_all() {
    for kind in KINDS {
        let results = parties(kind, 3, LONG, |mesh: Mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin("multiply");
            if party == 0 {
                mesh.abort("its program raised\nValueError");
                return channel.receive(1, 1);
            }
            channel.receive(0, 1)
        });
        for other in [1, 2] {
            match results[other].as_ref().unwrap_err() {
                Error::Peer {
                    party: 0, fault, ..
                } => assert_eq!(fault.to_string(), "its program raisedValueError"),
                error => panic!("{error}"),
            }
        }
        assert!(matches!(results[0], Err(Error::Misuse { .. })));
    }
}

#[test]
fn a_party_that_finishes_early_is_named() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin("multiply");
            if party == 0 {
                channel.send(1, vec![5])?;
                mesh.close()?;
                return Ok(vec![]);
            }
            assert_eq!(
                channel.receive(0, 1)?,
                [5],
                "a message that was sent before the end was lost"
            );
            channel.receive(0, 1)
        });
        let message = text(results[1].as_ref().unwrap_err());
        assert!(
            message.contains("party 0") && message.contains("finished"),
            "{message}"
        );
    }
}

#[test]
fn misuse_is_told_and_does_not_panic() {
    let results = parties(Kind::Memory, 2, LONG, |mesh, party| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        assert!(matches!(
            channel.receive(party, 1),
            Err(Error::Misuse { .. })
        ));
        assert!(matches!(channel.receive(9, 1), Err(Error::Misuse { .. })));
        assert!(matches!(channel.send(9, vec![]), Err(Error::Misuse { .. })));
        mesh.close()?;
        Ok(())
    });
    assert!(results.into_iter().all(|result| result.is_ok()));
}

#[test]
fn a_tap_sees_and_changes_what_arrives() {
    let results = parties(Kind::Memory, 2, LONG, |mesh, _| {
        let mut channel = mesh.channel(0);
        channel.set_tap(Box::new(|from, step, words| {
            assert_eq!(step, "multiply");
            words[0] += 10 * (from as u64 + 1);
        }));
        channel.begin("multiply");
        let got = exchange(&mut channel, 1)?;
        mesh.close()?;
        Ok(got)
    });
    assert_eq!(
        results
            .into_iter()
            .map(|got| got.unwrap()[0])
            .collect::<Vec<_>>(),
        [21, 10]
    );
}
