//! Everything that a host or a network can do to messages: each has its own refusal.

use super::*;
use crate::frame::step_name;
use ring::signature::KeyPair;

const SENDER: usize = 0;
const RECEIVER: usize = 1;

fn key(member: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[member; 32]).unwrap()
}

fn of(me: usize, session: u8) -> Signing {
    let keys = (0..3).map(|member| {
        let pair = key(member);
        let key = pair.public_key().as_ref().try_into();
        Verifier::of(key.unwrap()).unwrap()
    });
    let exchanged = Exchanged {
        kind: "simulated",
        verified: 2,
        took: Duration::ZERO,
    };
    Signing::new(me, [session; 32], key(me as u8), keys.collect(), exchanged)
}

fn frame(sequence: u64) -> Frame {
    Frame {
        kind: Kind::Data,
        channel: 1,
        depth: 3,
        sequence,
        parameters: 5,
        name: step_name("sign of 64"),
        piggyback: vec![7; 16],
        signature: None,
        payload: vec![1, 2, 3],
    }
}

fn signed(by: &Signing, sequence: u64, to: &[usize]) -> Frame {
    let mut frames: Vec<_> = to.iter().map(|_| frame(sequence)).collect();
    let mut each: Vec<_> = to.iter().copied().zip(&mut frames).collect();
    by.sign(&mut each);
    frames.swap_remove(0)
}

/// Judges frames in the order in which they come; returns the first refusal.
fn judged(frames: &[Frame]) -> Result<(), SignatureFault> {
    let receiver = of(RECEIVER, 9);
    let check = |frame| match check(Some(&receiver), SENDER, frame) {
        Ok(()) => Ok(()),
        Err(PeerFault::Signature(fault)) => Err(fault),
        Err(other) => panic!("{other:?}"),
    };
    frames.iter().try_for_each(check)
}

#[test]
fn messages_in_order_are_accepted() {
    let sender = of(SENDER, 9);
    let frames = [
        signed(&sender, 1, &[RECEIVER]),
        signed(&sender, 1, &[RECEIVER, 2]),
        signed(&sender, 2, &[RECEIVER]),
    ];
    assert_eq!(judged(&frames), Ok(()));
    assert_eq!(sender.made(), 3, "equal messages have one signature");
    assert!(sender.took() > Duration::ZERO);
}

/// What others get in between does not count as missing here.
#[test]
fn messages_to_others_are_no_gap() {
    let sender = of(SENDER, 9);
    let first = signed(&sender, 1, &[RECEIVER]);
    signed(&sender, 1, &[2]);
    let second = signed(&sender, 2, &[RECEIVER]);
    assert_eq!(judged(&[first, second]), Ok(()));
}

#[test]
fn every_flipped_bit_is_found() {
    let sender = of(SENDER, 9);
    let good = signed(&sender, 1, &[RECEIVER, 2]);
    let bytes = [good.head(), bytemuck::cast_slice(&good.payload).to_vec()].concat();
    let mut refused = 0;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            // What is no frame any more, or too short, is refused before.
            let Ok(frame) = Frame::read(&mut &flipped[..]) else {
                continue;
            };
            if !matches!(frame.kind, Kind::Data | Kind::End) {
                continue;
            }
            let fault = judged(&[frame]).expect_err(&format!("bit {bit} of byte {at}"));
            let expected = [SignatureFault::Wrong, SignatureFault::ForOthers];
            let unsigned = at == 3 && bit == 7 && fault == SignatureFault::Missing;
            assert!(expected.contains(&fault) || unsigned, "{fault:?}");
            refused += 1;
        }
    }
    assert!(
        refused > 8 * (bytes.len() - 70),
        "only {refused} were judged"
    );
}

#[test]
fn each_attack_has_its_refusal() {
    let sender = of(SENDER, 9);
    let (one, two, three) = (
        signed(&sender, 1, &[RECEIVER]),
        signed(&sender, 1, &[RECEIVER]),
        signed(&sender, 2, &[RECEIVER]),
    );
    let other_channel = Frame {
        channel: 2,
        ..one.clone()
    };
    let other_step = Frame {
        name: step_name("sign of 65"),
        ..one.clone()
    };
    let mut for_another = signed(&of(SENDER, 9), 1, &[2]);
    let elsewhere = for_another.clone();
    // The signature of another receiver's message, said to be for this one.
    for_another.signature.as_mut().unwrap().receivers = 1 << RECEIVER;
    let forged = signed(&of(2, 9), 1, &[RECEIVER]);
    let cases = [
        (
            "replayed",
            vec![one.clone(), one.clone()],
            SignatureFault::Again,
        ),
        (
            "late replay",
            vec![one.clone(), two.clone(), one.clone()],
            SignatureFault::Again,
        ),
        (
            "left out",
            vec![one.clone(), three.clone()],
            SignatureFault::Gap,
        ),
        (
            "swapped",
            vec![two.clone(), one.clone()],
            SignatureFault::Gap,
        ),
        (
            "of another session",
            vec![signed(&of(SENDER, 8), 1, &[1])],
            SignatureFault::Wrong,
        ),
        (
            "of another channel",
            vec![other_channel],
            SignatureFault::Wrong,
        ),
        ("of another step", vec![other_step], SignatureFault::Wrong),
        ("by another member", vec![forged], SignatureFault::Wrong),
        ("for others", vec![elsewhere], SignatureFault::ForOthers),
        (
            "for others, renamed",
            vec![for_another],
            SignatureFault::Wrong,
        ),
        ("unsigned", vec![frame(1)], SignatureFault::Missing),
    ];
    for (attack, frames, fault) in cases {
        assert_eq!(judged(&frames), Err(fault), "{attack}");
    }
}

/// Two messages of one step to different receivers, swapped on their way to the same one.
#[test]
fn messages_to_different_receivers_cannot_be_swapped() {
    let sender = of(SENDER, 9);
    let alone = signed(&sender, 1, &[RECEIVER]);
    let equal = signed(&sender, 1, &[RECEIVER, 2]);
    let swapped = [equal.clone(), alone.clone()];
    assert_eq!(judged(&swapped), Err(SignatureFault::Gap));
    assert_eq!(judged(&[alone, equal]), Ok(()));
}

/// A message that is left out is missed at the next one, whoever else gets that one.
#[test]
fn a_message_left_out_before_one_to_all_is_missed() {
    let sender = of(SENDER, 9);
    for (first, second) in [
        (&[RECEIVER][..], &[RECEIVER, 2][..]),
        (&[RECEIVER, 2], &[RECEIVER]),
    ] {
        signed(&sender, 1, &[2]);
        let received = signed(&sender, 1, &[RECEIVER]);
        signed(&sender, 1, first);
        let next = signed(&sender, 1, second);
        let receiver = of(RECEIVER, 9);
        // What came before in this loop has come.
        let place = received.signature.as_ref().unwrap().places[0];
        receiver.received[SENDER]
            .lock()
            .unwrap()
            .insert(1, place - 1);
        assert_eq!(check(Some(&receiver), SENDER, &received), Ok(()));
        let gap = PeerFault::Signature(SignatureFault::Gap);
        assert_eq!(check(Some(&receiver), SENDER, &next), Err(gap));
    }
}

#[test]
fn a_session_without_attestation_takes_no_signatures() {
    let signed = signed(&of(SENDER, 9), 1, &[RECEIVER]);
    let refused = check(None, SENDER, &signed);
    assert_eq!(
        refused,
        Err(PeerFault::Signature(SignatureFault::Unexpected))
    );
    assert_eq!(check(None, SENDER, &frame(1)), Ok(()));
}

#[test]
fn long_payloads_are_covered_to_their_end() {
    let sender = of(SENDER, 9);
    let mut long = Frame {
        payload: vec![1; 1 << 17],
        ..frame(1)
    };
    sender.sign(&mut [(RECEIVER, &mut long)]);
    assert_eq!(judged(std::slice::from_ref(&long)), Ok(()));
    *long.payload.last_mut().unwrap() ^= 1;
    assert_eq!(judged(&[long]), Err(SignatureFault::Wrong));
}
