//! Tests of silent transfers as a caller sees them: pads, lengths of messages, refills.

mod parties;

use ot::{Pair, Receiver, Refill, Sender};
use parties::{pairs, words};

/// Transfers after which a first refill is due.
const BEGIN: usize = 1 << 18;

/// Exchanges the messages of a refill that is due.
fn refill(sender: &mut Sender, receiver: &mut Receiver, transfers: usize) -> Option<Refill> {
    let due = receiver.refill(transfers);
    assert_eq!(due, sender.refill(transfers));
    let lengths = due?;
    let request = receiver.request();
    let answer = sender.answer(lengths, &request).unwrap();
    assert_eq!(
        (request.len(), answer.len()),
        (lengths.request, lengths.answer)
    );
    receiver.refilled(&answer).unwrap();
    sender.refilled();
    Some(lengths)
}

/// Extends by these choices and checks every pad. Returns the words of the message.
fn check(sender: &mut Sender, receiver: &mut Receiver, choices: &[u64]) -> usize {
    let length = receiver.extension_words(choices.len());
    assert_eq!(length, sender.extension_words(choices.len()));
    let (message, chosen) = receiver.extend(choices);
    assert_eq!(message.len(), length);
    let (zeros, ones) = sender.extend(choices.len(), &message).unwrap().random();
    for (i, pad) in chosen.random().iter().enumerate() {
        let bit = choices[i / 64] >> (i % 64) & 1 == 1;
        assert!(*pad == if bit { ones[i] } else { zeros[i] }, "transfer {i}");
        assert!(zeros[i] != ones[i]);
    }
    length
}

/// Returns both ends after transfers that make a refill due in the first direction.
fn begun() -> (Pair, Pair) {
    let (mut one, mut two) = pairs(4);
    assert_eq!(refill(&mut one.sender, &mut two.receiver, 1 << 20), None);
    let choices = words(BEGIN / 64, 3);
    assert_eq!(
        check(&mut one.sender, &mut two.receiver, &choices),
        32 * choices.len()
    );
    (one, two)
}

#[test]
fn transfers_are_right_before_and_after_refills() {
    let (mut one, mut two) = begun();
    let (sender, receiver) = (&mut one.sender, &mut two.receiver);
    let first = refill(sender, receiver, 1 << 20).unwrap();
    assert!(first.request > 0 && 8 * (first.request + first.answer) < 1_000_000);
    // All lengths around blocks of 64 and of a tree, and all kinds of choices.
    for (w, seed) in [
        (1, 1),
        (2, 2),
        (127, 3),
        (128, 4),
        (129, 5),
        (1000, 6),
        (0, 7),
    ] {
        for choices in [vec![0; w], vec![u64::MAX; w], words(w, seed)] {
            assert_eq!(check(sender, receiver, &choices), w);
        }
    }
    // To the end of the batch and beyond it.
    let mut done = 0;
    let further = loop {
        if let Some(lengths) = refill(sender, receiver, 1 << 20) {
            break lengths;
        }
        assert_eq!(check(sender, receiver, &words(1 << 14, done)), 1 << 14);
        done += 1;
    };
    assert_eq!(further.request, 0);
    let transfers = f64::from(2048 << 10) - 163_840.0;
    assert!((64 * further.answer) as f64 / transfers < 1.36);
    for seed in 0..3 {
        refill(sender, receiver, 2 << 20);
        assert_eq!(
            check(sender, receiver, &words((1 << 14) + 1, seed)),
            (1 << 14) + 1
        );
    }
    // The other direction did not begin.
    assert_eq!(two.sender.refill(1 << 20), None);
}

#[test]
fn without_a_refill_transfers_come_from_trees() {
    let (mut one, mut two) = begun();
    let (sender, receiver) = (&mut one.sender, &mut two.receiver);
    assert_eq!(check(sender, receiver, &words(5, 1)), 160);
    refill(sender, receiver, 64).unwrap();
    assert_eq!(check(sender, receiver, &words(5, 2)), 5);
    // More than a batch has.
    let many = words((2048 << 10) / 64, 3);
    assert_eq!(check(sender, receiver, &many), 32 * many.len());
    assert_eq!(check(sender, receiver, &words(5, 4)), 5);
}

#[test]
fn random_choices_take_no_message() {
    let (mut one, mut two) = begun();
    let (sender, receiver) = (&mut one.sender, &mut two.receiver);
    let mut seen = Vec::new();
    for is_silent in [false, true] {
        if is_silent {
            refill(sender, receiver, 1 << 20).unwrap();
        }
        for w in [0, 1, 129, 3] {
            let (message, chosen) = receiver.extend_random(w);
            assert_eq!(message.len(), if is_silent { 0 } else { 32 * w });
            let choices = chosen.choices().to_vec();
            let offered = sender.extend_random(w, &message).unwrap();
            let ((zeros, ones), pads) = (offered.random(), chosen.random());
            for (i, pad) in pads.into_iter().enumerate() {
                let bit = choices[i / 64] >> (i % 64) & 1 == 1;
                assert!(pad == if bit { ones[i] } else { zeros[i] });
            }
            seen.extend(choices);
        }
    }
    let ones: u32 = seen.iter().map(|word| word.count_ones()).sum();
    // Six standard deviations.
    assert!((f64::from(ones) / (32.0 * seen.len() as f64) - 1.0).abs() < 6.0 / 130.0);
    assert!(
        sender.extend_random(1, &[0]).is_err(),
        "a message that is not sent"
    );
    // What was refused has used up nothing.
    assert_eq!(check(sender, receiver, &words(5, 2)), 5);
}

#[test]
fn a_refill_begins_as_many_batches_as_are_needed() {
    let (mut one, mut two) = begun();
    let (sender, receiver) = (&mut one.sender, &mut two.receiver);
    for transfers in [5 << 20, 1, 9 << 20] {
        let due = refill(sender, receiver, transfers);
        assert_eq!(due.is_some(), transfers > 1);
        assert_eq!(refill(sender, receiver, transfers), None);
        let choices = words(transfers.div_ceil(64), 3);
        let length = receiver.extension_words(choices.len());
        assert_eq!(length, choices.len());
    }
    assert_eq!(
        check(sender, receiver, &words((9 << 20) / 64, 4)),
        (9 << 20) / 64
    );
    assert!(refill(sender, receiver, 2 << 20).is_some());
    assert_eq!(
        check(sender, receiver, &words((2 << 20) / 64, 5)),
        (2 << 20) / 64
    );
}

/// Begins a refill ahead of need, which ends after this many transfers. Returns the answer.
fn begin_ahead(sender: &mut Sender, receiver: &mut Receiver, transfers: usize) -> Vec<u64> {
    let ahead = receiver.refill_ahead(transfers, 8 << 20).unwrap();
    assert_eq!(sender.refill_ahead(transfers, 8 << 20), Some(ahead));
    let request = receiver.request();
    assert_eq!((request.len(), ahead.request), (0, 0));
    let answer = sender.answer(ahead, &request).unwrap();
    assert_eq!(answer.len(), ahead.answer);
    answer
}

#[test]
fn refills_may_end_later_than_they_begin() {
    let (mut one, mut two) = begun();
    let (sender, receiver) = (&mut one.sender, &mut two.receiver);
    let of_nothing = receiver.refill_ahead(0, 8 << 20);
    assert_eq!(
        of_nothing, None,
        "the first refill has a request, which is waited for"
    );
    refill(sender, receiver, 1 << 20).unwrap();
    let first = begin_ahead(sender, receiver, 1 << 10);
    assert_eq!(check(sender, receiver, &words(1 << 4, 1)), 1 << 4);
    let second = begin_ahead(sender, receiver, 1 << 10);
    // Every batch ahead takes its seed at once, so that what may be taken meanwhile is limited.
    let most = (1..).take_while(|n| receiver.refill_ahead(n << 16, 8 << 20).is_some());
    let most = most.last().unwrap();
    assert_eq!(sender.refill_ahead((most + 1) << 16, 8 << 20), None);
    // Those under way are for three million transfers.
    assert_eq!(receiver.refill_ahead(1 << 10, 3 << 20), None);
    assert!((most << 16) < (2048 << 10) - 3 * 163_840, "{most}");
    let meanwhile = words((most << 16) / 64, 2);
    assert_eq!(check(sender, receiver, &meanwhile), meanwhile.len());
    // They do not count before they end.
    assert!(receiver.extension_words(1 << 14) > 1 << 14);
    for answer in [first, second] {
        receiver.refilled(&answer).unwrap();
        sender.refilled();
        assert_eq!(check(sender, receiver, &words(1 << 14, 3)), 1 << 14);
    }
    let rest = words((2 << 20) / 64, 4);
    assert_eq!(check(sender, receiver, &rest), rest.len());
    // One that is due begins as many batches as are missing, after those ahead.
    refill(sender, receiver, 5 << 20).unwrap();
    let rest = words((5 << 20) / 64, 5);
    assert_eq!(check(sender, receiver, &rest), rest.len());
}

#[test]
fn vectors_together_are_vectors_one_by_one() {
    let (mut one, mut two) = begun();
    let (sender, receiver) = (&mut one.sender, &mut two.receiver);
    refill(sender, receiver, (1 << 20) + (1 << 19)).unwrap();
    // The last vectors find too few silent transfers.
    let words_of = 1 << 13;
    let choices: Vec<Vec<u64>> = (0..6).map(|seed| words(words_of, seed)).collect();
    let choices: Vec<&[u64]> = choices.iter().map(Vec::as_slice).collect();
    let lengths = sender.words_of_each(words_of, choices.len());
    let silent = lengths.iter().filter(|length| **length == words_of).count();
    assert_eq!(lengths[silent..], vec![32 * words_of; 6 - silent]);
    assert!((3..6).contains(&silent), "{silent}");
    let (messages, chosen): (Vec<_>, Vec<_>) = receiver.extend_each(&choices).into_iter().unzip();
    assert!(messages.iter().map(Vec::len).eq(lengths));
    let pads = sender
        .extend_each(words_of, &messages, |_, offered| offered.random())
        .unwrap();
    for ((chosen, (zeros, ones)), choices) in chosen.into_iter().zip(pads).zip(choices) {
        for (i, pad) in chosen.random().into_iter().enumerate() {
            let bit = choices[i / 64] >> (i % 64) & 1 == 1;
            assert!(pad == if bit { ones[i] } else { zeros[i] });
        }
    }
}

#[test]
fn wrong_lengths_are_refused() {
    let (mut one, mut two) = begun();
    let lengths = two.receiver.refill(1 << 20).unwrap();
    let request = two.receiver.request();
    let refused = |error: ot::Error, what: &str| {
        assert!(error.to_string().contains(what), "{error}");
    };
    for wrong in [0, 1, lengths.request - 1, lengths.request + 1] {
        let error = one.sender.answer(lengths, &vec![0; wrong]).unwrap_err();
        refused(error, "a request for silent transfers");
    }
    let answer = one.sender.answer(lengths, &request).unwrap();
    for wrong in [0, lengths.answer - 1, lengths.answer + 1] {
        let (_, mut other) = begun();
        let _ = other.receiver.request();
        let error = other.receiver.refilled(&vec![0; wrong]).unwrap_err();
        refused(error, "a refill of silent transfers");
    }
    // A message of the right length does no harm, whatever it says.
    let (_, mut other) = begun();
    let _ = other.receiver.request();
    other.receiver.refilled(&words(lengths.answer, 9)).unwrap();
    assert_eq!(other.receiver.extend(&[5; 3]).1.random().len(), 192);
    two.receiver.refilled(&answer).unwrap();
    one.sender.refilled();
    // A second refill has no request.
    let lengths = one.sender.refill(4 << 20).unwrap();
    let error = one.sender.answer(lengths, &[1]).unwrap_err();
    refused(error, "a request for silent transfers");
    let (message, _) = two.receiver.extend(&[5]);
    assert!(one.sender.extend(1, &message).is_ok());
    assert!(one.sender.extend(1, &[0; 32]).is_err());
}
