//! Tests of additional data on frames, on both kinds of links: parameters in headers, piggybacks,
//! and the frames of a comparison before an opening.

mod links;

use links::{Kind, parties, text};
use net::{Agreement, Channel, Disagreement, Error, LONGEST_PIGGYBACK, Result};
use std::time::Duration;

const KINDS: [Kind; 2] = [Kind::Memory, Kind::Tcp];
const LONG: Duration = Duration::from_secs(60);

/// Compares the number of noted bytes, once and in the clear.
struct Count {
    party: usize,
    noted: u8,
    /// Whether it was sent to each party, and whether it came from each party.
    sent: Vec<bool>,
    came: Vec<bool>,
    /// Whether each party had another number.
    differs: Vec<bool>,
    length: usize,
}

impl Count {
    fn boxed(channel: &Channel, length: usize) -> Box<Self> {
        Box::new(Self {
            party: channel.party(),
            noted: 0,
            sent: vec![false; channel.parties()],
            came: vec![false; channel.parties()],
            differs: vec![false; channel.parties()],
            length,
        })
    }
}

impl Agreement for Count {
    fn note(&mut self, _: &str, value: &[u8]) {
        self.noted += value.len() as u8;
    }

    fn begin(&mut self, _: u64, _: bool) {}

    fn piggyback(&mut self, to: usize) -> Vec<u8> {
        if std::mem::replace(&mut self.sent[to], true) {
            return Vec::new();
        }
        vec![self.noted; self.length]
    }

    fn arrived(&mut self, from: usize, piggyback: &[u8]) -> bool {
        self.came[from] = true;
        self.differs[from] = piggyback.iter().any(|byte| *byte != self.noted);
        piggyback.len() == self.length
    }

    fn disagreement(&self) -> Option<Disagreement> {
        let mut differing = (0..self.came.len()).filter(|party| self.differs[*party]);
        let party = differing.next()?;
        let mut others = (0..self.came.len()).filter(|other| *other != self.party);
        Some(Disagreement {
            party,
            step: "conv1: mul".to_owned(),
            odd: Some(differing.next().map_or(party, |_| self.party)),
            is_complete: others.all(|other| self.came[other]),
        })
    }

    fn uncompared(&self, with: usize) -> Option<&str> {
        (self.noted > 0 && !self.came[with]).then_some("conv1: mul")
    }

    fn owes(&self, to: usize, turn: usize) -> bool {
        turn == 0 && to != self.party && !self.sent[to]
    }

    fn awaits(&self, from: usize, turn: usize) -> bool {
        turn == 0 && from != self.party && !self.came[from]
    }
}

fn exchange(channel: &mut Channel) -> Result<Vec<u64>> {
    let (party, all) = (channel.party(), channel.parties());
    channel.send((party + 1) % all, vec![party as u64])?;
    channel.receive((party + all - 1) % all, 1)
}

#[test]
fn riders_ride_once_and_are_metered_apart_from_payload() {
    for kind in KINDS {
        for length in [1, LONGEST_PIGGYBACK] {
            let results = parties(kind, 3, LONG, |mesh, _| {
                let mut channel = mesh.channel(0);
                let agreement = Count::boxed(&channel, length);
                channel.set_agreement(agreement);
                channel.begin("exchange");
                exchange(&mut channel)?;
                channel.begin_opening("reveal", &[])?;
                exchange(&mut channel)?;
                mesh.close()?;
                Ok(channel.meter().totals())
            });
            for totals in results.into_iter().map(Result::unwrap) {
                // One is on the first message, and one on a separate frame to the party that got no
                // message.
                assert_eq!((totals.frames, totals.payload_bytes), (3, 16));
                let names = "exchange".len() + 2 * "reveal".len();
                let expected = 3 * 32 + 16 + names + 2 * length;
                assert_eq!(totals.wire_bytes, expected as u64);
                assert_eq!(totals.received_bytes, expected as u64);
            }
        }
    }
}

#[test]
fn a_difference_is_told_to_all_with_the_step_and_the_remedy() {
    for kind in KINDS {
        let results = parties(kind, 3, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            let agreement = Count::boxed(&channel, 8);
            channel.set_agreement(agreement);
            channel.begin("exchange");
            // The header's hash covers equally many bytes of value in all parties, but the
            // comparison differs: party 2 is the odd one.
            channel.note_public("mul", if party == 2 { b"abc" } else { b"ab" });
            channel.begin_opening("reveal", &[])?;
            exchange(&mut channel)
        });
        for result in &results {
            let message = text(result.as_ref().unwrap_err());
            assert!(
                message.contains("other parameters") || message.contains("conv1: mul"),
                "{message}"
            );
        }
    }
}

#[test]
fn public_values_that_differ_are_no_desync() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            let mut agreement = Count::boxed(&channel, 8);
            agreement.noted = party as u8;
            channel.set_agreement(agreement);
            channel.begin_opening("reveal", &[])?;
            exchange(&mut channel)
        });
        let errors: Vec<Error> = results.into_iter().map(Result::unwrap_err).collect();
        let differ = |error: &&Error| matches!(error, Error::Differ { .. });
        assert!(errors.iter().any(|error| differ(&error)));
        for message in errors.iter().map(text) {
            assert!(
                message.contains("conv1: mul") && message.contains("draw it in all parties alike"),
                "{message}"
            );
        }
    }
}

/// This holds if all has been compared before a value is opened, and if the program continues
/// meanwhile.
#[test]
fn the_party_whose_public_values_no_other_has_is_named_to_all() {
    for kind in KINDS {
        for (odd, opens) in [(0, true), (1, true), (2, true), (1, false)] {
            let results = parties(kind, 3, LONG, |mesh, party| {
                let mut channel = mesh.channel(0);
                let mut agreement = Count::boxed(&channel, 8);
                agreement.noted = u8::from(party == odd);
                channel.set_agreement(agreement);
                if opens {
                    return channel.begin_opening("reveal", &[]);
                }
                for peer in [1, 2] {
                    channel.begin("multiply");
                    channel.send((party + peer) % 3, vec![1])?;
                    channel.receive((party + 3 - peer) % 3, 1)?;
                }
                Ok(())
            });
            for message in results
                .iter()
                .map(|found| text(found.as_ref().unwrap_err()))
            {
                let found = format!("no other party has those of party {odd}");
                let told = format!("party {odd} failed in step \"conv1: mul\": ");
                let rest = "no other party has its public values";
                let is_told = message.starts_with(&told) && message.contains(rest);
                assert!(message.contains(&found) || is_told, "{message}");
            }
        }
    }
}

#[test]
fn a_rider_that_belongs_nowhere_is_refused() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            if party == 1 {
                let agreement = Count::boxed(&channel, 8);
                channel.set_agreement(agreement);
            }
            channel.begin("multiply");
            exchange(&mut channel)?;
            exchange(&mut channel)
        });
        let told = text(results[0].as_ref().unwrap_err());
        assert!(
            told.contains("party 1 failed in step \"multiply\"") && told.contains("no comparison"),
            "{told}"
        );
        assert!(results[1].is_err());
    }
}

/// A deviation of party 1 before a step of the same name.
type Otherwise = fn(&mut Channel);

#[test]
fn parameters_that_differ_are_named() {
    let ways: [Otherwise; 6] = [
        |channel| channel.begin_with("multiply", &[17]),
        |channel| {
            channel.note(b"scale 20");
            channel.begin_with("multiply", &[16]);
        },
        |channel| {
            channel.note_public("add", b"");
            channel.begin_with("multiply", &[16]);
        },
        |channel| channel.begin_with("multiply", &[]),
        |channel| channel.begin_with("multiply", &[16, 0]),
        |channel| drop(channel.begin_opening("multiply", &[17])),
    ];
    for kind in KINDS {
        for way in ways {
            let results = parties(kind, 2, LONG, |mesh, party| {
                let mut channel = mesh.channel(0);
                match party {
                    0 => channel.begin_with("multiply", &[16]),
                    _ => way(&mut channel),
                }
                exchange(&mut channel)
            });
            for result in &results {
                let message = text(result.as_ref().unwrap_err());
                assert!(
                    message.contains("1 \"multiply\"") && message.contains("other parameters"),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn a_parameter_of_a_step_without_messages_shows_in_a_later_one() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            channel.begin_with("truncate", &[16 + party as u64]);
            channel.begin("multiply");
            exchange(&mut channel)
        });
        for result in &results {
            let message = text(result.as_ref().unwrap_err());
            assert!(message.contains("other parameters"), "{message}");
        }
    }
}

/// Notes within a step count from the next step on, wherever each party is within the first.
#[test]
fn notes_within_a_step_are_parameters_of_the_next() {
    for kind in KINDS {
        let results = parties(kind, 2, LONG, |mesh, party| {
            let mut channel = mesh.channel(0);
            for _ in 0..3 {
                channel.begin("multiply");
                if party == 0 {
                    channel.note(b"scale 20");
                    channel.send(1, vec![1])?;
                } else {
                    channel.receive(0, 1)?;
                    channel.note(b"scale 20");
                }
            }
            mesh.close()
        });
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}
