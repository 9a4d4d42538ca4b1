//! Tests of the end of a program, on both kinds of links: a step that is compared, whichever party
//! differs in the last ones.

mod links;

use links::{Kind, parties, text};
use net::{Channel, Error, Mesh, Result};
use std::time::{Duration, Instant};

const KINDS: [Kind; 2] = [Kind::Memory, Kind::Tcp];
const LONG: Duration = Duration::from_secs(60);

fn exchange(channel: &mut Channel) -> Result<Vec<u64>> {
    let (party, all) = (channel.party(), channel.parties());
    channel.send((party + 1) % all, vec![party as u64])?;
    channel.receive((party + all - 1) % all, 1)
}

/// Each party goes through a step with messages, then through `last`, and ends.
fn ends(
    kind: Kind,
    n: usize,
    timeout: Duration,
    last: impl Fn(&Mesh, &mut Channel) -> Result<()> + Sync,
) -> Vec<Result<()>> {
    parties(kind, n, timeout, |mesh, _| {
        let mut channel = mesh.channel(0);
        channel.begin("multiply");
        exchange(&mut channel)?;
        last(&mesh, &mut channel)?;
        channel.close()?;
        mesh.close()
    })
}

fn messages(results: Vec<Result<()>>) -> Vec<String> {
    results
        .into_iter()
        .map(|result| text(&result.expect_err("the programs differ")))
        .collect()
}

#[test]
fn equal_programs_end_in_order() {
    for kind in KINDS {
        for n in [2, 3] {
            let results = ends(kind, n, LONG, |_, channel| {
                channel.begin("reveal");
                exchange(channel).map(drop)?;
                channel.close()?;
                assert!(
                    channel.meter().totals().payload_bytes == 16,
                    "closing sent a payload"
                );
                Ok(())
            });
            assert!(results.iter().all(Result::is_ok), "{results:?}");
        }
    }
}

/// The party continues for longer than the timeout, and notes what would be a parameter of the next
/// step.
#[test]
fn a_party_may_go_on_alone() {
    for kind in KINDS {
        let results = ends(kind, 3, Duration::from_millis(500), |_, channel| {
            if channel.party() == 2 {
                channel.note(b"add");
                std::thread::sleep(Duration::from_millis(1500));
            }
            Ok(())
        });
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}

/// A party computes alone for longer than the timeout before it goes to a step that the others do
/// not have: no party ends in order.
#[test]
fn who_has_ended_waits_for_those_that_compute_for_long() {
    for kind in KINDS {
        for n in [2, 3] {
            let results = ends(kind, n, Duration::from_millis(500), |_, channel| {
                if channel.party() == 0 {
                    std::thread::sleep(Duration::from_millis(1500));
                    channel.begin("truncate");
                    return channel.receive(1, 1).map(drop);
                }
                channel.begin("reveal");
                channel.send(0, vec![1])
            });
            for message in messages(results) {
                assert!(message.contains("programs differ"), "{message}");
            }
        }
    }
}

#[test]
fn who_ends_early_is_named_to_all() {
    for kind in KINDS {
        for early in 0..3 {
            let results = ends(kind, 3, LONG, |_, channel| {
                if channel.party() != early {
                    channel.begin("reveal");
                    exchange(channel)?;
                }
                Ok(())
            });
            let program = format!("the program of party {early} is not that of the others");
            for (party, message) in messages(results).iter().enumerate() {
                let name = format!("party {early}");
                let named = [name.as_str(), "this party"];
                let named = &named[..1 + usize::from(party == early)];
                let early = |who: &&str| {
                    let while_others =
                        format!("{who} ended its program after step 1 \"multiply\" while ");
                    let ended_later = format!("{who} after step 1 \"multiply\"");
                    message.contains(&while_others) || message.contains(&ended_later)
                };
                assert!(named.iter().any(early), "{message}");
                assert!(message.contains("step 2 \"reveal\""), "{message}");
                assert!(message.contains(&program), "{message}");
            }
        }
    }
}

/// The additional step sends nothing.
#[test]
fn a_step_more_without_messages_shows() {
    for kind in KINDS {
        let results = ends(kind, 3, LONG, |_, channel| {
            if channel.party() == 1 {
                channel.begin("truncate");
            }
            Ok(())
        });
        for message in messages(results) {
            assert!(
                message.contains("1 \"multiply\"") && message.contains("2 \"truncate\""),
                "{message}"
            );
            assert!(
                message.contains("the program of party 1 is not that of the others"),
                "{message}"
            );
        }
    }
}

#[test]
fn a_parameter_of_the_last_step_shows() {
    for kind in KINDS {
        let results = ends(kind, 2, LONG, |_, channel| {
            channel.begin_with("truncate", &[16 + channel.party() as u64]);
            Ok(())
        });
        let errors: Vec<Error> = results.into_iter().map(Result::unwrap_err).collect();
        assert!(
            errors
                .iter()
                .any(|error| matches!(error, Error::Desync { .. }))
        );
        for message in errors.iter().map(text) {
            assert!(
                message.contains("2 \"truncate\"") && message.contains("other parameters"),
                "{message}"
            );
        }
    }
}

/// Each party takes the other for the recipient, and neither waits for anything.
#[test]
fn a_message_that_nobody_received_shows() {
    for kind in KINDS {
        let results = ends(kind, 2, LONG, |_, channel| {
            let other = 1 - channel.party();
            channel.begin_with("reveal", &[other as u64]);
            channel.send(other, vec![5])
        });
        for message in messages(results) {
            assert!(
                message.contains("is at step 2 \"reveal\"") && message.contains("receiver"),
                "{message}"
            );
        }
    }
}

/// Two parties wait for each other in the last step, and the third has ended: it hears of it too.
#[test]
fn who_has_ended_hears_that_the_others_wait_for_each_other() {
    for kind in KINDS {
        let results = ends(kind, 3, Duration::from_secs(1), |_, channel| {
            channel.begin("reveal");
            match channel.party() {
                2 => Ok(()),
                // This is after the third has begun to wait.
                party => {
                    std::thread::sleep(Duration::from_millis(300));
                    channel.receive(1 - party, 1).map(drop)
                }
            }
        });
        assert!(
            messages(results)
                .iter()
                .all(|message| message.contains("programs differ")),
        );
    }
}

#[test]
fn who_fails_after_its_last_step_fails_the_others() {
    for kind in KINDS {
        let results = ends(kind, 3, LONG, |mesh, channel| {
            if channel.party() == 1 {
                // The others have ended by now.
                std::thread::sleep(Duration::from_millis(100));
                mesh.abort("its program raised ValueError; see its own output");
            }
            Ok(())
        });
        for other in [0, 2] {
            let message = text(results[other].as_ref().unwrap_err());
            assert!(
                message.contains("party 1 failed") && message.contains("raised ValueError"),
                "{message}"
            );
        }
    }
}

#[test]
fn who_dies_after_its_last_step_is_named() {
    for kind in KINDS {
        let started = Instant::now();
        let results = parties(kind, 3, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin("multiply");
            exchange(&mut channel)?;
            if party == 1 {
                return Ok(());
            }
            channel.close()?;
            mesh.close()
        });
        for other in [0, 2] {
            let message = text(results[other].as_ref().unwrap_err());
            assert!(message.contains("party 1 failed"), "{message}");
        }
        assert!(started.elapsed() < LONG / 2);
    }
}

#[test]
fn a_failure_that_the_program_has_seen_is_not_raised_again() {
    for kind in KINDS {
        let results = ends(kind, 2, LONG, |mesh, channel| {
            channel.begin("reveal");
            if channel.party() == 1 {
                channel.receive(0, 1)?;
                mesh.abort("enough");
                return Err(Error::misuse("enough"));
            }
            channel.send(1, vec![5])?;
            assert!(channel.receive(1, 1).is_err());
            Ok(())
        });
        assert!(results[0].is_ok(), "{results:?}");
    }
}

#[test]
fn nothing_is_done_after_the_end() {
    for kind in KINDS {
        let results = ends(kind, 2, LONG, |mesh, channel| {
            channel.close()?;
            channel.close()?;
            mesh.close()?;
            channel.begin("reveal");
            assert!(exchange(channel).is_err());
            Ok(())
        });
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}
