//! Tests of every form against plain arithmetic, over lengths, widths and extreme values.

mod parties;

use ot::{Chosen, Offered, Receiver, Sender};
use parties::{edges, pairs, words};

const WORDS: [usize; 12] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 33, 100, 1000];

fn extend(sender: &mut Sender, receiver: &mut Receiver, choices: &[u64]) -> (Offered, Chosen) {
    let (message, chosen) = receiver.extend(choices);
    assert_eq!(message.len(), receiver.extension_words(choices.len()));
    assert_eq!(message.len(), sender.extension_words(choices.len()));
    (sender.extend(choices.len(), &message).unwrap(), chosen)
}

fn bit(choices: &[u64], i: usize) -> bool {
    choices[i / 64] >> (i % 64) & 1 == 1
}

/// Calls `check` for zeros, ones and random choices of each length, in both directions of a setup
/// with this depth.
fn each(depth: usize, lengths: &[usize], mut check: impl FnMut(&[u64], Offered, Chosen)) {
    let (mut one, mut two) = pairs(depth);
    for &w in lengths {
        for choices in [vec![0; w], vec![u64::MAX; w], words(w, 5)] {
            let (offered, chosen) = extend(&mut one.sender, &mut two.receiver, &choices);
            check(&choices, offered, chosen);
            let (offered, chosen) = extend(&mut two.sender, &mut one.receiver, &choices);
            check(&choices, offered, chosen);
        }
    }
}

#[test]
fn the_receiver_has_the_pad_that_it_chose() {
    for depth in 1..=8 {
        let mut seen = std::collections::HashSet::new();
        each(depth, &WORDS, |choices, offered, chosen| {
            assert_eq!(
                (offered.len(), chosen.len()),
                (64 * choices.len(), 64 * choices.len())
            );
            assert_eq!(
                (offered.is_empty(), chosen.is_empty()),
                (choices.is_empty(), choices.is_empty())
            );
            let (zeros, ones) = offered.random();
            let pads = chosen.random();
            assert_eq!(pads.len(), 64 * choices.len());
            for (i, pad) in pads.iter().enumerate() {
                assert!(
                    *pad == if bit(choices, i) { ones[i] } else { zeros[i] },
                    "depth {depth}"
                );
                assert!(
                    seen.insert(zeros[i]) && seen.insert(ones[i]),
                    "a pad occurs twice"
                );
            }
        });
    }
}

#[test]
fn millions_of_transfers() {
    each(ot::DEPTH, &[1 << 14], |choices, offered, chosen| {
        let (zeros, ones) = offered.random();
        let pads = chosen.random();
        assert!(
            (0..pads.len()).all(|i| pads[i] == if bit(choices, i) { ones[i] } else { zeros[i] })
        );
    });
}

#[test]
fn chosen_messages_arrive() {
    each(ot::DEPTH, &WORDS, |choices, offered, chosen| {
        let n = 64 * choices.len();
        let (zeros, ones) = (edges(n, 1), edges(n, 2));
        let message = offered.transfer(&zeros, &ones);
        let received = chosen.receive(&message).unwrap();
        assert!((0..n).all(|i| received[i] == if bit(choices, i) { ones[i] } else { zeros[i] }));
    });
}

fn check_ring(choices: &[u64], offered: Offered, chosen: Chosen, columns: usize, bits: u32) {
    let n = 64 * choices.len();
    let low = u64::MAX >> (64 - bits);
    let values: Vec<_> = (0..columns).map(|column| edges(n, column as u64)).collect();
    let columns: Vec<&[u64]> = values.iter().map(Vec::as_slice).collect();
    let (mine, message) = offered.correlate(&columns, bits);
    assert_eq!(message.len(), ot::correlate_words(n, columns.len(), bits));
    let theirs = chosen.correlate(columns.len(), bits, &message).unwrap();
    assert_eq!((mine.len(), theirs.len()), (columns.len(), columns.len()));
    for ((column, mine), theirs) in columns.iter().zip(&mine).zip(&theirs) {
        for i in 0..n {
            let expected = if bit(choices, i) { column[i] } else { 0 };
            assert_eq!(
                mine[i].wrapping_add(theirs[i]) & low,
                expected & low,
                "{bits} bits"
            );
            assert_eq!(
                (mine[i] | theirs[i]) & !low,
                0,
                "a share has more than {bits} bits"
            );
        }
    }
}

#[test]
fn correlations_over_the_ring() {
    each(ot::DEPTH, &WORDS[..10], |choices, offered, chosen| {
        check_ring(choices, offered, chosen, 1, 64);
    });
    for columns in [0, 1, 2, 3, 5] {
        each(ot::DEPTH, &[0, 1, 9], |choices, offered, chosen| {
            check_ring(choices, offered, chosen, columns, 17);
        });
    }
    for bits in 1..=64 {
        each(ot::DEPTH, &[1, 9], |choices, offered, chosen| {
            check_ring(choices, offered, chosen, 2, bits);
        });
    }
}

#[test]
fn correlations_of_bits() {
    for columns in [0, 1, 2, 63, 64, 65, 127, 128, 129, 300] {
        each(ot::DEPTH, &WORDS[..11], |choices, offered, chosen| {
            let w = choices.len();
            let values: Vec<_> = (0..columns).map(|column| edges(w, column)).collect();
            let columns: Vec<&[u64]> = values.iter().map(Vec::as_slice).collect();
            let (mine, message) = offered.correlate_bits(&columns);
            assert_eq!(message.len(), columns.len() * w);
            let theirs = chosen.correlate_bits(columns.len(), &message).unwrap();
            assert_eq!((mine.len(), theirs.len()), (columns.len(), columns.len()));
            for ((column, mine), theirs) in columns.iter().zip(&mine).zip(&theirs) {
                assert!((0..w).all(|i| mine[i] ^ theirs[i] == choices[i] & column[i]));
            }
        });
    }
}

/// Makes transfers with random choices, in both directions of a setup.
fn each_random(lengths: &[usize], mut check: impl FnMut(Offered, Chosen)) {
    let (mut one, mut two) = pairs(ot::DEPTH);
    for &w in lengths {
        for (sender, receiver) in [
            (&mut one.sender, &mut two.receiver),
            (&mut two.sender, &mut one.receiver),
        ] {
            let (message, chosen) = receiver.extend_random(w);
            assert_eq!(message.len(), sender.random_words(w));
            assert_eq!(chosen.choices().len(), w);
            check(sender.extend_random(w, &message).unwrap(), chosen);
        }
    }
}

#[test]
fn random_correlations_of_bits() {
    for columns in [0, 1, 2, 3, 64, 127, 128] {
        each_random(&WORDS, |offered, chosen| {
            let choices = chosen.choices().to_vec();
            let (values, mine) = offered.random_bits(columns);
            let theirs = chosen.random_bits(columns);
            assert_eq!([&values, &mine, &theirs].map(Vec::len), [columns; 3]);
            for ((value, mine), theirs) in values.iter().zip(&mine).zip(&theirs) {
                let right =
                    (0..choices.len()).all(|i| mine[i] ^ theirs[i] == choices[i] & value[i]);
                assert!(right && value.len() == choices.len());
            }
        });
    }
}

#[test]
fn random_correlations_of_words() {
    each_random(&WORDS, |offered, chosen| {
        let choices = chosen.choices().to_vec();
        let (values, mine) = offered.random_words();
        let theirs = chosen.random_words();
        assert_eq!(
            [&values, &mine, &theirs].map(Vec::len),
            [64 * choices.len(); 3]
        );
        for (i, value) in values.iter().enumerate() {
            let expected = if bit(&choices, i) { *value } else { 0 };
            assert_eq!(mine[i].wrapping_add(theirs[i]), expected);
        }
    });
}

#[test]
fn the_receiver_has_the_entry_of_its_digit() {
    for digits in 1..=6 {
        for columns in [1, 2, 3, 64] {
            let lengths = [1, 7, 8, 9, 40].map(|w| w * digits);
            each_random(&lengths, |offered, chosen| {
                let n = offered.len() / digits;
                let choices = chosen.choices().to_vec();
                let tables = offered.tables(digits, columns);
                let entries = chosen.look_up(digits, columns);
                assert_eq!(tables.len(), (columns << digits) * n / 64);
                assert_eq!(entries.len(), columns * n / 64);
                for i in 0..n {
                    let bits = (0..digits).map(|l| usize::from(bit(&choices, l * n + i)) << l);
                    let entry: usize = bits.sum();
                    for column in 0..columns {
                        let plane = &tables[(entry * columns + column) * n / 64..];
                        assert_eq!(bit(plane, i), bit(&entries[column * n / 64..], i));
                    }
                }
            });
        }
    }
}

#[test]
#[should_panic(expected = "128 transfers make no whole words of tables of 3 digits")]
fn tables_of_part_of_the_transfers_are_refused() {
    let (mut one, _) = pairs(1);
    let _ = one.receiver.extend_random(2).1.look_up(3, 1);
}

#[test]
#[should_panic(expected = "64 transfers take columns of 64 values")]
fn a_column_of_another_length_is_refused() {
    let (mut one, mut two) = pairs(1);
    let (offered, _) = extend(&mut one.sender, &mut two.receiver, &[0]);
    let _ = offered.correlate(&[&[1, 2]], 64);
}

#[test]
#[should_panic(expected = "trees have a depth of 1 to 8, not 9")]
fn too_deep_trees_are_refused() {
    let _ = ot::Setup::with_depth(b"", true, 9);
}
