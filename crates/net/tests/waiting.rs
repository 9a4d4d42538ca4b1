//! Tests of programs that differ while no party sends anything that would show it: parties that
//! wait report where they stand. All have a timeout longer than any test.

mod links;

use links::{Kind, parties, text};
use net::{Channel, Error, Mesh, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const KINDS: [Kind; 2] = [Kind::Memory, Kind::Tcp];
const SAME_PROGRAM: &str = "run the same program with the same shapes and options in every party";
const LONG: Duration = Duration::from_secs(3600);

/// Returns the errors of all parties, whose programs begin with a step that they have in common.
fn differing(
    kind: Kind,
    n: usize,
    program: impl Fn(&Mesh, &mut Channel) -> Result<()> + Sync,
) -> Vec<Error> {
    let results = parties(kind, n, LONG, |mesh, _| {
        let mut channel = mesh.channel(0);
        channel.begin("share");
        let (party, all) = (channel.party(), channel.parties());
        channel.send((party + 1) % all, vec![7])?;
        channel.receive((party + all - 1) % all, 1)?;
        program(&mesh, &mut channel)?;
        channel.close()
    });
    let errors: Vec<Error> = results.into_iter().map(Result::unwrap_err).collect();
    assert!(
        errors
            .iter()
            .any(|error| matches!(error, Error::Desync { .. })),
        "{errors:?}"
    );
    errors
}

fn names(error: &Error, all: &[&str]) {
    let message = text(error);
    assert!(all.iter().all(|part| message.contains(part)), "{message}");
}

/// Each party takes itself for the recipient.
#[test]
fn recipients_that_differ_show() {
    for kind in KINDS {
        let errors = differing(kind, 2, |_, channel| {
            let me = channel.party();
            channel.begin_with("reveal of 3", &[me as u64]);
            channel.receive(1 - me, 3).map(drop)
        });
        for error in &errors {
            names(
                error,
                &["2 \"reveal of 3\"", "other parameters", "receiver"],
            );
        }
    }
}

/// Party 0 waits for party 1, party 1 for party 2 some steps later, and party 2 for party 0.
#[test]
fn steps_that_differ_show_and_the_odd_one_of_three_is_named() {
    for kind in KINDS {
        let errors = differing(kind, 3, |_, channel| {
            let me = channel.party();
            channel.begin(if me == 0 { "reveal" } else { "truncate" });
            if me > 0 {
                channel.begin("sign");
            }
            channel.receive((me + 1) % 3, 1).map(drop)
        });
        for error in &errors {
            let alone = "the program of party 0 is not that of the others";
            names(error, &["2 \"reveal\"", "2 \"truncate\"", alone]);
        }
    }
}

/// The others wait for each other, and none of them for the party that has ended.
#[test]
fn who_has_ended_shows_where_the_others_wait_for_each_other() {
    for kind in KINDS {
        let errors = differing(kind, 3, |_, channel| {
            let me = channel.party();
            if me == 2 {
                return Ok(());
            }
            channel.begin("truncate");
            channel.begin("reveal");
            channel.receive(1 - me, 1).map(drop)
        });
        // Either the last step of the others, or their first step that this party does not have.
        names(&errors[2], &["1 \"share\"", SAME_PROGRAM]);
        let theirs = ["3 \"reveal\"", "2 \"truncate\""];
        let message = text(&errors[2]);
        assert!(
            theirs.iter().any(|step| message.contains(step)),
            "{message}"
        );
    }
}

/// The party waits for nothing, and sends nothing, until the others have ended.
#[test]
fn who_computes_alone_after_another_step_shows() {
    for kind in KINDS {
        for n in [2, 3] {
            let ended = AtomicUsize::new(0);
            let errors = differing(kind, n, |_, channel| {
                let (me, last) = (channel.party(), n - 1);
                if me == last {
                    channel.begin("truncate");
                    while ended.load(Ordering::Relaxed) < last {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    return channel.send(0, vec![1]);
                }
                channel.begin("reveal");
                let received = channel.receive(last, 1);
                ended.fetch_add(1, Ordering::Relaxed);
                received.map(drop)
            });
            for error in &errors {
                names(error, &["2 \"reveal\"", "2 \"truncate\"", SAME_PROGRAM]);
            }
            let alone = "the program of party 2 is not that of the others";
            let named = errors.iter().all(|error| text(error).contains(alone));
            assert_eq!(named, n == 3, "{errors:?}");
        }
    }
}

/// The others have ended, and do not conclude that all agree. The party has begun a different last
/// step, or one more.
#[test]
fn who_computes_alone_shows_to_those_that_have_ended() {
    for kind in KINDS {
        for more in [false, true] {
            let ended = AtomicUsize::new(0);
            let errors = differing(kind, 3, |_, channel| {
                if channel.party() < 2 {
                    if !more {
                        channel.begin("reveal");
                    }
                    let closed = channel.close();
                    ended.fetch_add(1, Ordering::Relaxed);
                    return closed;
                }
                channel.begin("truncate");
                while ended.load(Ordering::Relaxed) < 2 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                channel.send(0, vec![1])
            });
            let theirs = if more { "1 \"share\"" } else { "2 \"reveal\"" };
            for error in &errors {
                let alone = "the program of party 2 is not that of the others";
                names(error, &[theirs, "2 \"truncate\"", alone, SAME_PROGRAM]);
            }
        }
    }
}

/// This resembles a party that waits in its program while the other waits for correlations, further
/// on in its program.
#[test]
fn another_channels_steps_show() {
    for kind in KINDS {
        for further in [0, 1] {
            let errors = differing(kind, 2, |mesh, channel| {
                let me = channel.party();
                channel.begin(["reveal", "multiply"][me]);
                if me == further {
                    channel.begin("sign");
                }
                if me == 1 {
                    let mut other = mesh.channel(1);
                    other.begin("correlations");
                    return other.receive(0, 1).map(drop);
                }
                channel.receive(1, 1).map(drop)
            });
            for error in &errors {
                names(error, &["2 \"reveal\"", "2 \"multiply\""]);
            }
        }
    }
}

/// The party is slow for longer than waiting parties take to report where they stand, at different
/// steps of one program.
#[test]
fn a_party_that_is_only_slow_is_waited_for() {
    for kind in KINDS {
        let results = parties(kind, 3, LONG, |mesh, me| {
            let mut channel = mesh.channel(0);
            for step in 0..10 {
                channel.begin_with("share", &[step]);
                if me == 0 {
                    channel.send(1, vec![step])?;
                } else if me == 1 {
                    if step == 5 {
                        std::thread::sleep(Duration::from_millis(2500));
                    }
                    let got = channel.receive(0, 1)?;
                    channel.send(2, got)?;
                } else {
                    channel.receive(1, 1)?;
                }
            }
            channel.begin("back");
            match me {
                0 => channel.receive(2, 1)?,
                2 => {
                    channel.send(0, vec![1])?;
                    vec![]
                }
                _ => vec![],
            };
            channel.close()?;
            mesh.close()
        });
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}
