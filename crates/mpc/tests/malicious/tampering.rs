//! Every message of every operation is changed on its way, one in each run.
//!
//! The messages are those of an honest run, so that none is forgotten. The party that sent the
//! changed message is the corrupt one: the two others must get the right result or stop. If they
//! stop because an operation's message was changed, they do so before they open anything to anyone.

use crate::parties::{Message, honest, judge, nothing_is_opened, run};
use crate::programs::PROGRAMS;
use testkit::Random;

/// Numbers of elements: one run of roles, and three.
const SIZES: [usize; 2] = [3, 1540];

/// A change to a message, with a random word.
type Change = fn(&mut Vec<u64>, u64);

const CHANGES: [(&str, Change); 9] = [
    ("the lowest bit of the first word", |words, _| words[0] ^= 1),
    ("the highest bit of the last word", |words, _| {
        *words.last_mut().expect("a word") ^= 1 << 63;
    }),
    ("a random bit", |words, random| {
        let at = random as usize % words.len();
        words[at] ^= 1 << (random >> 58);
    }),
    ("2^63 more", |words, random| {
        let at = random as usize % words.len();
        words[at] = words[at].wrapping_add(1 << 63);
    }),
    ("another word", |words, random| {
        let at = random as usize % words.len();
        words[at] = random;
    }),
    ("zeros", |words, _| words.fill(0)),
    ("two words swapped", |words, random| {
        let at = random as usize % words.len();
        words.swap(0, at);
    }),
    ("a word less", |words, _| {
        words.pop();
    }),
    ("a word more", |words, random| words.push(random)),
];

/// Runs the cases of which the number is a multiple of `every`. Returns the number of cases, and of
/// those that ended with the right results.
fn tampered(every: usize, seed: u64) -> [usize; 2] {
    let mut random = Random::new(seed);
    let (mut case, mut cases, mut harmless) = (0, 0, 0);
    for program in &PROGRAMS {
        for n in SIZES {
            let (right, messages) = honest(program, n);
            for message in messages {
                for (name, change) in CHANGES {
                    let random = random.word();
                    case += 1;
                    if message.words.is_empty() || case % every != 0 {
                        continue;
                    }
                    let Message {
                        receiver,
                        sender,
                        at,
                        step,
                        words,
                    } = &message;
                    let mut changed = words.clone();
                    change(&mut changed, random);
                    if changed == *words {
                        continue;
                    }
                    let found = run(
                        program,
                        n,
                        &|other| {
                            let is_it = (other.receiver, other.sender, other.at)
                                == (*receiver, *sender, *at);
                            is_it.then(|| {
                                let mut words = other.words.clone();
                                change(&mut words, random);
                                words
                            })
                        },
                        &|_| {},
                    );
                    cases += 1;
                    let of = format!("{name} in \"{step}\" of {n} to {receiver}");
                    let stopped = judge(program, *sender, &found, &right, &of);
                    // The first message is about a key of two parties, which may be unused.
                    assert!(stopped || step != "agree on keys" || *at == 0, "{of}");
                    harmless += usize::from(!stopped);
                    // What an operation sends is proven before anything is opened.
                    let others = ["agree on keys", "share", "verify", "reveal", "the end"];
                    let is_proven = !others.iter().any(|other| step.starts_with(other));
                    if stopped && is_proven && changed.len() == words.len() {
                        nothing_is_opened(program, *sender, &found, &of);
                    }
                }
            }
        }
    }
    [cases, harmless]
}

#[test]
fn no_change_is_missed() {
    let [cases, harmless] = tampered(97, 1);
    assert!(cases > 150, "{cases} cases");
    assert!(harmless * 20 < cases, "{harmless} of {cases} did nothing");
}

#[test]
#[ignore = "long: an hour"]
fn no_change_of_a_hundred_thousand_is_missed() {
    let (mut cases, mut seed) = (0, 2);
    while cases < 100_000 {
        let [more, harmless] = tampered(1, seed);
        cases += more;
        seed += 1;
        println!("{cases} cases; of the last {more}, {harmless} did nothing");
    }
}
