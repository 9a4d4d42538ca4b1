//! Every message of every operation is changed on its way, one in each run.
//!
//! The messages are those of an honest run, so that none is forgotten. The party that sent the
//! changed message is the corrupt one: the two others must get the right result or stop.

use crate::programs::{PROGRAMS, Program};
use mpc::replicated::Replicated;
use mpc::{Protocol, Result};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::Random;

/// Numbers of elements: one run of roles, and three.
const SIZES: [usize; 2] = [3, 1540];

/// A message: who received it and from whom, and which one of this sender it was.
#[derive(Clone, Debug)]
struct Message {
    receiver: usize,
    sender: usize,
    at: usize,
    step: String,
    words: Vec<u64>,
}

/// Changes to a message. The argument is a random word.
const CHANGES: [(&str, fn(&mut Vec<u64>, u64)); 9] = [
    ("lowest bit of the first word", |words, _| words[0] ^= 1),
    ("highest bit of the last word", |words, _| {
        *words.last_mut().expect("a word") ^= 1 << 63;
    }),
    ("a random bit", |words, random| {
        let at = random as usize % words.len();
        words[at] ^= 1 << (random >> 58);
    }),
    ("plus 2^63", |words, random| {
        let at = random as usize % words.len();
        words[at] = words[at].wrapping_add(1 << 63);
    }),
    ("another random word", |words, random| {
        let at = random as usize % words.len();
        words[at] = random;
    }),
    ("zeros", |words, _| words.fill(0)),
    ("swapped", |words, random| {
        let at = random as usize % words.len();
        words.swap(0, at);
    }),
    ("short", |words, _| {
        words.pop();
    }),
    ("long", |words, random| words.push(random)),
];

/// What to do to a message.
#[derive(Clone)]
struct Tampering {
    message: Message,
    change: usize,
    random: u64,
}

/// Runs a program in three parties. Returns what each gets, and all messages.
fn run(
    program: &Program,
    n: usize,
    tampering: Option<&Tampering>,
) -> (Vec<Result<Vec<u64>>>, Vec<Message>) {
    let meshes = net::in_process::mesh(3, Duration::from_secs(20));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let party = |mesh: net::Mesh| {
        let mut channel = mesh.channel(0);
        let (me, seen, tampering) = (mesh.party(), Arc::clone(&seen), tampering.cloned());
        let mut counts = [0; 3];
        channel.set_tap(Box::new(move |sender, step, words| {
            let at = counts[sender];
            counts[sender] += 1;
            match &tampering {
                None => seen.lock().unwrap().push(Message {
                    receiver: me,
                    sender,
                    at,
                    step: step.to_owned(),
                    words: words.clone(),
                }),
                Some(Tampering {
                    message,
                    change,
                    random,
                }) if (message.receiver, message.sender, message.at) == (me, sender, at) => {
                    CHANGES[*change].1(words, *random);
                }
                _ => {}
            }
        }));
        let mut p = Replicated::malicious(channel)?;
        let result = (program.work)(&mut p, n)?;
        p.channel().close()?;
        mesh.close()?;
        Ok(result)
    };
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| scope.spawn(|| party(mesh)))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.map(|result| result.expect("no panic")).collect()
    });
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (results, seen)
}

fn is_right(result: &[u64], right: &[u64], tolerance: u64) -> bool {
    let near = |(one, other): (&u64, &u64)| {
        one.wrapping_sub(*other).wrapping_add(tolerance) <= 2 * tolerance
    };
    result.len() == right.len() && result.iter().zip(right).all(near)
}

/// Runs all cases of which the number is a multiple of `every`. Returns the number of cases, and of
/// those that ended with the right results.
fn tampered(every: usize) -> [usize; 2] {
    let mut random = Random::new(1);
    let (mut case, mut cases, mut harmless) = (0, 0, 0);
    for program in &PROGRAMS {
        for n in SIZES {
            let (honest, messages) = run(program, n, None);
            let honest: Vec<Vec<u64>> = honest.into_iter().map(|found| found.unwrap()).collect();
            for message in messages {
                for change in 0..CHANGES.len() {
                    let random = random.word();
                    case += 1;
                    let mut changed = message.words.clone();
                    if changed.is_empty() || case % every != 0 {
                        continue;
                    }
                    CHANGES[change].1(&mut changed, random);
                    if changed == message.words {
                        continue;
                    }
                    let tampering = Tampering {
                        message: message.clone(),
                        change,
                        random,
                    };
                    let (found, _) = run(program, n, Some(&tampering));
                    cases += 1;
                    let mut stopped = false;
                    for (party, found) in found.iter().enumerate() {
                        let is_honest = party != message.sender;
                        stopped |= is_honest && found.is_err();
                        let wrong = found
                            .as_ref()
                            .is_ok_and(|found| !is_right(found, &honest[party], program.tolerance));
                        assert!(
                            !is_honest || !wrong,
                            "{} of {n}: party {party} accepts what party {} sent in \"{}\": {}",
                            program.name,
                            message.sender,
                            message.step,
                            CHANGES[change].0
                        );
                    }
                    harmless += usize::from(!stopped);
                    if !stopped {
                        println!(
                            "harmless: {} of {n}, \"{}\" from {} to {}: {}",
                            program.name,
                            message.step,
                            message.sender,
                            message.receiver,
                            CHANGES[change].0
                        );
                    }
                }
            }
        }
    }
    [cases, harmless]
}

#[test]
fn no_change_is_missed() {
    let [cases, harmless] = tampered(17);
    println!("{cases} cases, {harmless} harmless");
    assert!(
        harmless * 20 < cases,
        "{harmless} of {cases} changes did nothing"
    );
}

#[test]
#[ignore = "long: minutes"]
fn no_change_of_many_is_missed() {
    let [cases, harmless] = tampered(1);
    println!("{cases} cases, {harmless} harmless");
}
