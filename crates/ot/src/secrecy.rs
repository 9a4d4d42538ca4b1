//! Tests of each end's view, each with a mutation that it must catch; and known answers for a whole
//! session.

use crate::binding::Secrets;
use crate::hash::Mutation;
use crate::leaves::WORDS;
use crate::products::{self, ScalarKeys, Scalars};
use crate::{Chosen, Offered, Pair, Receiver, Sender, Setup};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Returns both ends of a session with known secrets.
fn pairs(depth: usize) -> (Pair, Pair, Vec<u64>) {
    let secrets = |byte| Secrets::from_seed(&[byte; 32]);
    let (one, first) = Setup::with_secrets(b"session", true, depth, secrets(1));
    let (two, second) = Setup::with_secrets(b"session", false, depth, secrets(2));
    let mut transcript = [first.as_slice(), &second].concat();
    let ((one, first), (two, second)) = (one.reply(&second).unwrap(), two.reply(&first).unwrap());
    transcript.extend([first.as_slice(), &second].concat());
    let ((one, first), (two, second)) =
        (one.correct(&second).unwrap(), two.correct(&first).unwrap());
    transcript.extend([first.as_slice(), &second].concat());
    (
        one.finish(&second).unwrap(),
        two.finish(&first).unwrap(),
        transcript,
    )
}

/// Tests whether words look uniform: each of the 64 bits separately, and each byte by a chi-square
/// test. A uniform sample fails with probability below 10^-6.
fn uniform(words: &[u64]) -> bool {
    let n = words.len() as f64;
    let lanes = (0..64).all(|bit| {
        let ones = words.iter().filter(|word| *word >> bit & 1 == 1).count() as f64;
        (ones - n / 2.0).abs() < 6.0 * n.sqrt() / 2.0
    });
    let bytes = (0..8).all(|byte| {
        let mut counts = [0.0f64; 256];
        words
            .iter()
            .for_each(|word| counts[(word >> (8 * byte) & 255) as usize] += 1.0);
        let expected = n / 256.0;
        let square: f64 = counts
            .iter()
            .map(|count| (count - expected).powi(2) / expected)
            .sum();
        // 255 degrees of freedom: mean 255, standard deviation 22.6.
        square < 255.0 + 7.0 * 22.6
    });
    lanes && bytes
}

fn words(values: &[u128]) -> Vec<u64> {
    values
        .iter()
        .flat_map(|value| [*value as u64, (value >> 64) as u64])
        .collect()
}

/// Returns the sender's view of choices that are all equal: the message, and what remains of it
/// after subtracting everything that the sender knows, the sums of its leaves.
fn senders_view(depth: usize, choice: u64, unmasked: bool) -> [Vec<u64>; 2] {
    let (mut one, two, _) = pairs(depth);
    one.receiver.unmasked = unmasked;
    let choices = vec![choice; 32 * WORDS];
    let (message, _) = one.receiver.extend(&choices);
    let mut rest = message.clone();
    let trees = two.sender.leaves.trees();
    for (tile, rest) in rest.chunks_mut(trees * WORDS).enumerate() {
        two.sender
            .leaves
            .tile((tile * WORDS / 2) as u64, |tree, _, known, _| {
                for (rest, known) in rest[tree * WORDS..].iter_mut().zip(known) {
                    *rest ^= known;
                }
            });
    }
    [message, rest]
}

#[test]
fn the_sender_does_not_see_the_choices() {
    for depth in [1, 2, 3, 4] {
        for choice in [0, u64::MAX] {
            assert!(
                senders_view(depth, choice, false)
                    .iter()
                    .all(|view| uniform(view))
            );
            assert!(
                !uniform(&senders_view(depth, choice, true)[0]),
                "a missing mask is noticed"
            );
        }
    }
}

/// Makes the transfers that a first batch of silent ones follows, and begins the batch.
pub(crate) fn begin_batch(sender: &mut Sender, receiver: &mut Receiver) {
    let choices = [0x0123_4567_89ab_cdef; 1 << 12];
    let (message, _) = receiver.extend(&choices);
    drop(sender.extend(choices.len(), &message).unwrap());
    let refill = receiver.refill(1).expect("it is due");
    let request = receiver.request();
    let answer = sender.answer(refill, &request).unwrap();
    receiver.refilled(&answer).unwrap();
    sender.refilled();
}

/// Returns both ends, with a batch of silent transfers for `one.receiver`.
fn silent_pairs() -> (Pair, Pair) {
    let (mut one, mut two, _) = pairs(4);
    begin_batch(&mut two.sender, &mut one.receiver);
    (one, two)
}

#[test]
fn the_sender_does_not_see_silent_choices() {
    for choice in [0, u64::MAX] {
        let view = |unmasked| {
            let (mut one, _) = silent_pairs();
            one.receiver.unmasked = unmasked;
            let (message, _) = one.receiver.extend(&[choice; 1 << 13]);
            assert_eq!(message.len(), 1 << 13);
            uniform(&message)
        };
        assert!(view(false));
        assert!(!view(true), "a missing mask is noticed");
    }
}

#[test]
fn the_receiver_does_not_see_the_other_silent_pads() {
    let view = |mutation| {
        let (mut one, mut two) = silent_pairs();
        let (message, _) = one.receiver.extend(&[0x0f0f; 256]);
        let mut offered = two.sender.extend(256, &message).unwrap();
        // Now only the transfers hold their family.
        drop((one, two));
        Arc::get_mut(&mut offered.family).unwrap().mutation = mutation;
        let (zeros, ones) = offered.random();
        let both: Vec<u128> = zeros
            .iter()
            .zip(&ones)
            .map(|(zero, one)| zero ^ one)
            .collect();
        uniform(&words(&both))
    };
    assert!(view(Mutation::None));
    // Without a hash, both pads of a transfer differ by the secret.
    assert!(!view(Mutation::NoHash));
}

/// Returns transfers with these choices, from a session with a mutated hash and, if `no_secret` is
/// set, a secret of zero.
fn transfers(choices: &[u64], mutation: Mutation, no_secret: bool) -> (Offered, Chosen) {
    let (mut one, mut two, _) = pairs(2);
    let (message, mut chosen) = one.receiver.extend(choices);
    let mut offered = two.sender.extend(choices.len(), &message).unwrap();
    // Now only the transfers hold their families.
    drop((one, two));
    for family in [&mut offered.family, &mut chosen.family] {
        Arc::get_mut(family).unwrap().mutation = mutation;
    }
    if no_secret {
        offered.delta = Zeroizing::new(0);
    }
    (offered, chosen)
}

/// Returns the pads that the receiver lacks, these pads combined with those that it has, and with
/// the next pads that it lacks.
fn receivers_view(mutation: Mutation, no_secret: bool) -> [Vec<u64>; 3] {
    let choices: Vec<u64> = (0..256)
        .map(|i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let (offered, chosen) = transfers(&choices, mutation, no_secret);
    let (zeros, ones) = offered.random();
    let own = chosen.random();
    let other: Vec<u128> = zeros
        .iter()
        .zip(&ones)
        .zip(&own)
        .map(|((zero, one), own)| zero ^ one ^ own)
        .collect();
    let combined: Vec<u128> = other
        .iter()
        .zip(&own)
        .map(|(other, own)| other ^ own)
        .collect();
    let successive: Vec<u128> = other.windows(2).map(|pair| pair[0] ^ pair[1]).collect();
    [other, combined, successive].map(|pads| words(&pads))
}

#[test]
fn the_receiver_does_not_see_the_other_pads() {
    assert!(
        receivers_view(Mutation::None, false)
            .iter()
            .all(|view| uniform(view))
    );
    // Without a hash, rows differ by the secret, which one other pad reveals.
    assert!(!uniform(&receivers_view(Mutation::NoHash, false)[1]));
    assert!(!uniform(&receivers_view(Mutation::None, true)[1]));
}

#[test]
fn equal_rows_give_unrelated_pads() {
    let view = |mutation| {
        let (mut offered, _) = transfers(&[0; 256], mutation, false);
        offered.rows.fill(12345);
        let (zeros, ones) = offered.random();
        uniform(&words(&zeros)) && uniform(&words(&ones))
    };
    assert!(view(Mutation::None));
    assert!(!view(Mutation::NoIndex));
}

/// Returns the receiver's view of columns that are all equal: the message, minus what it can
/// subtract.
fn correlation_view(value: u64, choice: u64) -> Vec<u64> {
    let (offered, chosen) = transfers(&[choice; 256], Mutation::None, false);
    let column = vec![value; offered.len()];
    let (_, message) = offered.correlate(&[&column], 64);
    let own = chosen.random();
    message
        .iter()
        .zip(&own)
        .map(|(word, own)| match choice {
            0 => word.wrapping_sub(*own as u64),
            _ => word.wrapping_add(*own as u64),
        })
        .collect()
}

#[test]
fn the_receiver_does_not_see_the_columns() {
    for value in [0, u64::MAX] {
        for choice in [0, u64::MAX] {
            assert!(uniform(&correlation_view(value, choice)));
        }
    }
    for (value, choice) in [(0, 0), (u64::MAX, u64::MAX)] {
        let (offered, chosen) = transfers(&[choice; 256], Mutation::None, false);
        let column = vec![value; 256];
        let (_, message) = offered.correlate_bits(&[&column]);
        let own: Vec<u64> = chosen
            .random()
            .chunks(64)
            .map(|pads| {
                pads.iter()
                    .rev()
                    .fold(0, |word, pad| word << 1 | *pad as u64 & 1)
            })
            .collect();
        let message: Vec<u64> = message
            .iter()
            .zip(&own)
            .map(|(word, own)| word ^ own)
            .collect();
        let ones: u32 = message.iter().map(|word| word.count_ones()).sum();
        assert!(ones.abs_diff(64 * 128) < 6 * 64, "{ones} of {}", 64 * 256);
    }
    // Without a secret, the other pad equals the own one, and the message is the column.
    let (offered, _) = transfers(&[0; 256], Mutation::None, true);
    let column = vec![7; offered.len()];
    assert!(!uniform(&offered.correlate(&[&column], 64).1));
}

/// Returns what a receiver could learn of tables of 4 entries: each entry that it lacks, with its
/// own, and the sum of all entries.
fn tables_view(choice: u64, mutation: Mutation) -> [Vec<u64>; 4] {
    let (offered, chosen) = transfers(&[choice; 512], mutation, false);
    let columns = 64;
    let tables = offered.tables(2, columns);
    let own = chosen.look_up(2, columns);
    let entries: Vec<&[u64]> = tables.chunks(own.len()).collect();
    let plus = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a ^ b).collect::<Vec<_>>();
    let lacks = (0..4).filter(|entry| *entry as u64 != choice & 3);
    let mut views: Vec<Vec<u64>> = lacks.map(|entry| plus(entries[entry], &own)).collect();
    views.push((1..4).fold(entries[0].to_vec(), |sum, entry| plus(&sum, entries[entry])));
    views.try_into().expect("three entries and their sum")
}

#[test]
fn the_receiver_does_not_see_the_other_entries() {
    for choice in [0, u64::MAX] {
        let views = tables_view(choice, Mutation::None);
        assert!(views.iter().all(|view| uniform(view)));
        for mutation in [Mutation::NoHash, Mutation::NoPowers] {
            let views = tables_view(choice, mutation);
            assert!(
                !uniform(&views[3]),
                "entries that depend on each other are noticed"
            );
        }
    }
}

/// Random choices of transfers that are not silent are the choices of an extension.
#[test]
fn the_sender_does_not_see_random_choices() {
    let view = |unmasked| {
        let (mut one, _, _) = pairs(2);
        one.receiver.unmasked = unmasked;
        let (message, chosen) = one.receiver.extend_random(32 * WORDS);
        let both = message.chunks(one.receiver.leaves.trees() * WORDS);
        let rest: Vec<u64> = both
            .zip(chosen.choices().chunks(WORDS))
            .flat_map(|(message, choices)| message.iter().zip(choices).map(|(m, b)| m ^ b))
            .collect();
        assert!(uniform(chosen.choices()));
        uniform(&rest)
    };
    assert!(view(false));
    assert!(!view(true), "a missing mask is noticed");
}

/// Returns the messages of two products of equal values by one set of scalars, and their
/// difference.
fn products_view(bits: usize, value: u64) -> [Vec<u64>; 2] {
    let (mut one, mut two, _) = pairs(2);
    let scalars: Vec<u64> = vec![0x0123_4567_89ab_cdef; 64];
    let choices = products::choices(&scalars);
    let (message, chosen) = one.receiver.extend(&choices);
    let offered = two.sender.extend(choices.len(), &message).unwrap();
    let (mut keys, corrections) = ScalarKeys::new(offered, 64).in_digits(bits);
    let _ = Scalars::new(chosen, &scalars)
        .in_digits(bits, &corrections)
        .unwrap();
    let [first, second] =
        [(); 2].map(|()| keys.multiply_rows(1, 0..64, &[value; 64], 64, &mut [0; 4096]));
    let difference = first.iter().zip(&second).map(|(a, b)| a ^ b).collect();
    [first, difference]
}

#[test]
fn products_are_masked_afresh_in_every_call() {
    for bits in [1, 2, 4] {
        for value in [0, u64::MAX] {
            assert!(
                products_view(bits, value).iter().all(|view| uniform(view)),
                "digits of {bits}"
            );
        }
    }
}

#[test]
fn known_answers() {
    let mut digests = Vec::new();
    for depth in 1..=4 {
        let (mut one, mut two, mut transcript) = pairs(depth);
        let choices = [0x0123_4567_89ab_cdef, 0, u64::MAX];
        let (message, chosen) = one.receiver.extend(&choices);
        let (zeros, ones) = two.sender.extend(3, &message).unwrap().random();
        transcript.extend(
            message
                .iter()
                .copied()
                .chain(words(&zeros))
                .chain(words(&ones))
                .chain(words(&chosen.random())),
        );
        let mut hasher = blake3::Hasher::new();
        transcript.iter().for_each(|word| {
            hasher.update(&word.to_le_bytes());
        });
        digests.push(hasher.finalize().to_hex()[..16].to_owned());
    }
    let (mut one, mut two) = silent_pairs();
    let (message, chosen) = one.receiver.extend(&[0x0123_4567_89ab_cdef; 40]);
    let offered = two.sender.extend(40, &message).unwrap();
    let mut hasher = blake3::Hasher::new();
    for word in [message, words(&offered.rows), words(&chosen.rows)].concat() {
        hasher.update(&word.to_le_bytes());
    }
    digests.push(hasher.finalize().to_hex()[..16].to_owned());
    assert_eq!(
        digests,
        [
            "624a0f2b6bd9ec24",
            "0578ac3715799084",
            "c65560ec40b3948b",
            "2c30d0e2cd260bfe",
            "0ea57d4bdd658467"
        ]
    );
}
