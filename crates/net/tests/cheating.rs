//! Tests of what the parties are told when one of them finds that another cheated.

mod links;

use links::{Kind, parties};
use net::Error;
use std::time::Duration;

/// Long timeout: nothing waits for it unless a test fails.
const LONG: Duration = Duration::from_secs(60);

fn cheating(suspects: [usize; 2], first: &str, last: &str) -> Error {
    Error::Cheating {
        suspects,
        first: first.to_owned(),
        last: last.to_owned(),
    }
}

#[test]
fn every_party_suspects_the_two_others_between_the_same_steps() {
    let long = "x".repeat(200);
    let steps = [
        (["fc1: matmul", "reveal"], ["fc1: matmul", "reveal"]),
        (["a\nb", &long], ["a b", &long[..96]]),
    ];
    for kind in [Kind::Memory, Kind::Tcp] {
        for (said, heard) in steps {
            let results = parties(kind, 3, LONG, |mesh, party| {
                let mut channel = mesh.channel(0);
                channel.begin("reveal");
                if party == 1 {
                    return Err::<(), _>(channel.cheated(said[0], said[1]));
                }
                channel.receive(1, 1).map(drop)
            });
            let [first, last] = heard;
            for (party, suspects) in [[1, 2], [0, 2], [0, 1]].into_iter().enumerate() {
                assert_eq!(results[party], Err(cheating(suspects, first, last)));
            }
        }
    }
}

#[test]
fn the_text_names_the_suspects_and_the_steps() {
    let expected = "party 1 or party 2 cheated between \"fc1\" and \"reveal\"; nothing of this was \
                    revealed";
    assert_eq!(cheating([1, 2], "fc1", "reveal").to_string(), expected);
}
