//! Tests of messages that no honest peer sends: each is refused with its error, or does no harm.

mod parties;

use ot::{CORRECTION_WORDS, Error, FIRST_WORDS, REPLY_WORDS, Replied, Setup, products};
use parties::{pairs, words};
use proptest::prelude::*;

/// Encodings that RFC 9496, appendix A.3, requires to be refused: not canonical, negative, or of no
/// square; and the identity, which this crate refuses.
const INVALID: [[u64; 4]; 8] = [
    [0xffff_ffff_ffff_ff00, u64::MAX, u64::MAX, u64::MAX],
    [u64::MAX, u64::MAX, u64::MAX, 0x7fff_ffff_ffff_ffff],
    [
        0xffff_ffff_ffff_ffed,
        u64::MAX,
        u64::MAX,
        0x7fff_ffff_ffff_ffff,
    ],
    [1, 0, 0, 0],
    [
        0x20fb_14c9_d8ff_57ed,
        0x3cce_45d2_c3d1_7114,
        0xd579_363a_e6cb_6f74,
        0x200e_bebe_6e51_6a1b,
    ],
    [
        0x43e6_62ca_358d_9426,
        0xb6e6_3273_1783_6ae2,
        0x658b_26e4_089d_ebaf,
        0x71d3_818d_bd5b_1f0f,
    ],
    [
        0xb457_3c71_7a07_ac4e,
        0x8259_14a4_2976_39f4,
        0x963f_dd44_80f4_61c6,
        0x2f74_d947_b140_7d42,
    ],
    [0, 0, 0, 0],
];

fn begin(first: bool) -> (Setup, Vec<u64>) {
    Setup::begin(b"session", first).unwrap()
}

fn replied() -> (Replied, Vec<u64>) {
    let (one, first) = begin(true);
    let (two, second) = begin(false);
    let (_, reply) = two.reply(&first).unwrap();
    (one.reply(&second).unwrap().0, reply)
}

/// Returns the message cut, emptied and lengthened.
fn lengths(message: &[u64]) -> Vec<Vec<u64>> {
    let longer = [message, &[0]].concat();
    let mut lengths = vec![longer, [message, message, &[1]].concat()];
    if let Some(cut) = message.len().checked_sub(1) {
        lengths.push(message[..cut].to_vec());
        lengths.push(Vec::new());
    }
    lengths
}

#[track_caller]
fn refuses_length<T>(result: Result<T, Error>, name: &str, words: usize, sent: usize) {
    match result {
        Err(Error::Length(wrong)) => {
            assert_eq!(
                (wrong.what, wrong.expected, wrong.found),
                (name, words, sent)
            );
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("{sent} words for {words} were accepted"),
    }
}

#[test]
fn lengths_of_the_set_up_are_checked() {
    let (_, message) = begin(false);
    assert_eq!(message.len(), FIRST_WORDS);
    for wrong in lengths(&message) {
        let result = begin(true).0.reply(&wrong);
        refuses_length(
            result,
            "the point of base transfers",
            FIRST_WORDS,
            wrong.len(),
        );
    }
    let (_, reply) = replied();
    assert_eq!(reply.len(), REPLY_WORDS);
    for wrong in lengths(&reply) {
        let result = replied().0.correct(&wrong);
        refuses_length(
            result,
            "the points of base transfers",
            REPLY_WORDS,
            wrong.len(),
        );
    }
    let corrections = vec![0; CORRECTION_WORDS];
    for wrong in lengths(&corrections) {
        let (one, reply) = replied();
        let (one, own) = one.correct(&reply).unwrap();
        assert_eq!(own.len(), CORRECTION_WORDS);
        let result = one.finish(&wrong);
        refuses_length(
            result,
            "the corrections of a set-up",
            CORRECTION_WORDS,
            wrong.len(),
        );
    }
}

#[test]
fn points_are_checked() {
    for invalid in INVALID {
        let result = begin(true).0.reply(&invalid);
        assert!(
            matches!(result, Err(Error::Point { index: 0 })),
            "{invalid:x?}"
        );
        for at in [0, 1, 77, 127] {
            let (one, mut reply) = replied();
            reply[4 * at..][..4].copy_from_slice(&invalid);
            let result = one.correct(&reply);
            assert!(
                matches!(result, Err(Error::Point { index }) if index == at),
                "{invalid:x?} at {at}"
            );
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let text = |error: Option<Error>| error.unwrap().to_string();
    assert_eq!(
        text(begin(true).0.reply(&[1]).err()),
        "the point of base transfers takes 4 words; the peer sent 1"
    );
    assert_eq!(
        text(begin(true).0.reply(&[0; 4]).err()),
        "point 0 of the peer's base oblivious transfers is not a valid group element"
    );
}

#[test]
fn lengths_of_extensions_and_forms_are_checked() {
    let (mut one, mut two) = pairs(ot::DEPTH);
    let choices = words(3, 1);
    let (message, _) = one.receiver.extend(&choices);
    assert_eq!(message.len(), one.receiver.extension_words(3));
    for wrong in lengths(&message) {
        let result = two.sender.extend(3, &wrong);
        refuses_length(result, "an extension", message.len(), wrong.len());
    }
    // A refused message has used nothing up.
    let _ = two.sender.extend(3, &message).unwrap();

    let mut chosen = || one.receiver.extend(&choices).1;
    for wrong in lengths(&[0; 2 * 192]) {
        refuses_length(
            chosen().receive(&wrong),
            "a transfer of messages",
            384,
            wrong.len(),
        );
    }
    for wrong in lengths(&[0; 2 * 3 * 17]) {
        let result = chosen().correlate(2, 17, &wrong);
        refuses_length(result, "a correlation over the ring", 102, wrong.len());
    }
    for wrong in lengths(&[0; 15]) {
        let result = chosen().correlate_bits(5, &wrong);
        refuses_length(result, "a correlation of bits", 15, wrong.len());
    }
}

#[test]
fn lengths_of_products_are_checked() {
    let (mut one, _) = pairs(ot::DEPTH);
    let scalars = words(6, 1);
    let mut chosen = || one.receiver.extend(&products::choices(&scalars)).1;
    let expected = products::message_words(6);
    for wrong in lengths(&vec![0; expected]) {
        let result = products::receive(chosen(), 6, &wrong);
        refuses_length(result, "masked values of products", expected, wrong.len());
    }
    for bits in [1, 2, 3, 8] {
        let expected = products::digit_words(6, bits);
        for wrong in lengths(&vec![0; expected]) {
            let result = products::Scalars::new(chosen(), &scalars).in_digits(bits, &wrong);
            refuses_length(result, "the corrections of digits", expected, wrong.len());
        }
    }
    let mut set = products::Scalars::new(chosen(), &scalars);
    for n in [0, 5] {
        let expected = products::rows_words(3, 2, n);
        for wrong in lengths(&vec![0; expected]) {
            let result = set.multiply_rows(3, 0..2, n, &mut vec![0; 2 * n], &wrong);
            refuses_length(result, "masked values of products", expected, wrong.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any words give a result or an error.
    #[test]
    fn nothing_panics(message in prop::collection::vec(any::<u64>(), 0..700)) {
        let _ = begin(true).0.reply(&message);
        let (one, reply) = replied();
        let _ = one.correct(&message);
        let (one, _) = replied().0.correct(&reply).map_err(|error| error.to_string()).unwrap();
        let exact: Vec<u64> = message.iter().copied().cycle().take(CORRECTION_WORDS).collect();
        let _ = one.finish(if message.is_empty() { &message } else { &exact });
    }

    /// Random words instead of points: about every sixteenth is one, and the others are refused by
    /// index.
    #[test]
    fn random_points_are_points_or_refused(reply in prop::collection::vec(any::<u64>(), REPLY_WORDS)) {
        let result = replied().0.correct(&reply);
        let refused = matches!(result, Err(Error::Point { index }) if index < 128);
        prop_assert!(refused);
    }

    /// Hostile words of the right length give wrong values, not a panic.
    #[test]
    fn garbage_of_the_right_length_is_computed_with(seed in any::<u64>(), bits in 1..=64u32) {
        let (mut one, mut two) = pairs(1);
        let n = 3;
        let offered = two.sender.extend(n, &words(128 * n, seed)).unwrap();
        prop_assert_eq!(offered.random().0.len(), 64 * n);
        let mut chosen = || one.receiver.extend(&words(n, seed)).1;
        let garbage = |n: usize| words(n, seed.wrapping_add(1));
        let length = ot::correlate_words(64 * n, 2, bits);
        let shares = chosen().correlate(2, bits, &garbage(length)).unwrap();
        prop_assert!(shares.concat().iter().all(|share| share >> (bits - 1) <= 1));
        prop_assert!(chosen().receive(&garbage(128 * n)).is_ok());
        prop_assert!(chosen().correlate_bits(4, &garbage(4 * n)).is_ok());
    }
}
