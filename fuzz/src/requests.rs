//! Target for messages between the clients and parties of a service.

use crate::Target;
use net::intake::evidence::{SIGNATURE, Shown};
use net::intake::requests::statement::Statement;
use net::intake::requests::wire::{Cause, Question, Refusal, Told};
use std::time::Duration;

/// Messages between clients and parties. The first byte selects the sender.
pub const REQUESTS: Target = Target {
    name: "requests",
    takes,
    seeds,
};

/// Checks that accepted messages are written as they were read.
fn takes(data: &[u8]) -> bool {
    let Some((&of, mut rest)) = data.split_first() else {
        return false;
    };
    let before = rest;
    let mut again = Vec::new();
    if of % 2 == 0 {
        let Ok(question) = Question::read(&mut rest) else {
            return false;
        };
        question.write(&mut again).expect("memory takes all");
    } else {
        let Ok(told) = Told::read(&mut rest) else {
            return false;
        };
        told.write(&mut again).expect("memory takes all");
        // A refusal's text may have had characters that are not printable.
        if matches!(told, Told::Refusal(_)) {
            assert_eq!(Told::read(&mut &again[..]).expect("it was written"), told);
            return true;
        }
    }
    assert_eq!(again, before[..before.len() - rest.len()]);
    true
}

fn seeds() -> Vec<Vec<u8>> {
    let (service, hash) = ([1; 32], [2; 32]);
    let statement = Statement {
        service,
        client: 3,
        number: [4; 16],
        made: 5,
        model: hash,
        words: 6,
        pieces: vec![hash; 3],
    };
    let questions = [
        Question::Describe { service },
        Question::Attest {
            service,
            nonce: hash,
        },
        Question::Ask {
            statement,
            signature: vec![48; 71],
        },
    ];
    let told = [
        Told::Description(b"[]".to_vec()),
        Told::Answer {
            tag: hash,
            words: 7,
        },
        Told::Refusal(Refusal::until(
            Cause::Busy,
            Duration::from_secs(1),
            "4 requests wait",
        )),
        Told::Refusal(Refusal::of(Cause::Unknown, "there is no such model")),
        Told::Evidence(Shown {
            made: 8,
            key: hash,
            policy: hash,
            program: hash,
            signature: [9; SIGNATURE],
            evidence: vec![10; 100],
        }),
    ];
    let mut seeds = Vec::new();
    for question in questions {
        let mut bytes = vec![0];
        question.write(&mut bytes).expect("memory takes all");
        seeds.push(bytes);
    }
    for told in told {
        let mut bytes = vec![1];
        told.write(&mut bytes).expect("memory takes all");
        seeds.push(bytes);
    }
    seeds
}
