//! Tests of both sides of a comparison, step by step and without links; of attackers that know all
//! traffic; and of hostile piggybacks.

use super::exchange::{Binding, Side, TAG};
use super::*;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::traits::Identity;
use proptest::prelude::*;

fn pair() -> [PrivateComparison; 2] {
    [0, 1].map(|party| PrivateComparison::new(party, 2).unwrap())
}

/// Passes a piggyback from one side to the other.
fn carry(from: &mut PrivateComparison, to: &mut PrivateComparison) -> Outcome {
    let piggyback = from.piggyback(to.party);
    if piggyback.is_empty() {
        return Ok(());
    }
    arrive(to, from.party, &piggyback)
}

/// The reason why a side does not continue.
#[derive(PartialEq, Eq, Debug)]
enum Refusal {
    /// The values differ, at the earliest in this step.
    Values(String),
    /// The piggyback belongs to no comparison.
    Piggyback,
}

type Outcome = std::result::Result<(), Refusal>;

fn arrive(at: &mut PrivateComparison, from: usize, piggyback: &[u8]) -> Outcome {
    if !at.arrived(from, piggyback) {
        return Err(Refusal::Piggyback);
    }
    match at.disagreement() {
        None => Ok(()),
        Some(found) => Err(Refusal::Values(found.step)),
    }
}

/// Runs a step in which one message goes each way.
fn step([a, b]: &mut [PrivateComparison; 2], number: u64) -> Outcome {
    a.begin(number, false);
    b.begin(number, false);
    carry(a, b)?;
    carry(b, a)
}

/// Runs the comparison before an opening. Returns the number of turns in which a message was sent.
fn open(pair: &mut [PrivateComparison; 2], number: u64) -> std::result::Result<usize, Refusal> {
    pair.iter_mut().for_each(|side| side.begin(number, true));
    let mut turns = 0;
    for turn in 0..2 {
        let owing = [pair[0].owes(1, turn), pair[1].owes(0, turn)];
        let awaiting = [pair[1].awaits(0, turn), pair[0].awaits(1, turn)];
        assert_eq!(owing, awaiting, "the two ends of a link disagree");
        let [a, b] = pair;
        if owing[0] {
            carry(a, b)?;
        }
        if owing[1] {
            carry(b, a)?;
        }
        turns += usize::from(owing[0] || owing[1]);
    }
    assert!(
        pair.iter()
            .all(|side| side.under_way(1 - side.party).is_none())
    );
    Ok(turns)
}

fn note(pair: &mut [PrivateComparison; 2], step: &str, value: &[u8]) {
    pair.iter_mut().for_each(|side| side.note(step, value));
}

#[test]
fn nothing_rides_before_something_public_was_noted_nor_after_it_was_compared() {
    let mut pair = pair();
    for number in 1..5 {
        pair.iter_mut().for_each(|side| side.begin(number, false));
        assert!(pair[0].piggyback(1).is_empty() && pair[1].piggyback(0).is_empty());
    }
    assert_eq!(open(&mut pair, 5), Ok(0));
    note(&mut pair, "mul", b"2.5");
    step(&mut pair, 6).unwrap();
    step(&mut pair, 7).unwrap();
    assert_eq!(pair[0].pairs[1].agreed, 1);
    assert_eq!(pair[1].pairs[0].agreed, 1);
    assert_eq!(open(&mut pair, 8), Ok(0));
}

#[test]
fn an_opening_completes_what_did_not_ride() {
    let mut pair = pair();
    note(&mut pair, "mul", b"2.5");
    assert_eq!(open(&mut pair, 1), Ok(2));
    // One element was sent already: still two turns, with one message less.
    note(&mut pair, "mul", b"2.5");
    pair.iter_mut().for_each(|side| side.begin(20, false));
    let [a, b] = &mut pair;
    carry(a, b).unwrap();
    assert!(!a.owes(1, 0) && b.owes(0, 0));
    assert_eq!(open(&mut pair, 21), Ok(2));
    // An exchange under way that does not cover the last value is replaced by one that does.
    note(&mut pair, "add", b"1");
    step(&mut pair, 40).unwrap();
    note(&mut pair, "add", b"2");
    assert_eq!(open(&mut pair, 41), Ok(2));
    assert_eq!(pair[0].pairs[1].agreed, 4);
}

#[test]
fn exchanges_that_ride_are_some_steps_apart() {
    let mut pair = pair();
    let mut numbers = Vec::new();
    for number in 1..=4 * STEPS_BETWEEN {
        note(&mut pair, "mul", &number.to_le_bytes());
        step(&mut pair, number).unwrap();
        numbers.push(pair[0].pairs[1].number);
    }
    assert_eq!(numbers.last(), Some(&4));
}

#[test]
fn values_borders_and_order_count() {
    let lists: [&[&[u8]]; 8] = [
        &[],
        &[b""],
        &[b"", b""],
        &[b"a", b"bc"],
        &[b"ab", b"c"],
        &[b"c", b"ab"],
        &[b"abc", b""],
        &[&[7; LONG]],
    ];
    for (at, left) in lists.iter().enumerate() {
        for (other, right) in lists.iter().enumerate() {
            let mut pair = pair();
            left.iter().for_each(|value| pair[0].note("mul", value));
            right.iter().for_each(|value| pair[1].note("mul", value));
            // The channel compares the number of values; this makes both numbers equal.
            pair.iter_mut().for_each(|side| side.noted = 1);
            assert_eq!(open(&mut pair, 1).is_ok(), at == other, "{at} and {other}");
        }
    }
}

#[test]
fn a_difference_is_named_by_the_first_step_that_was_not_agreed_on() {
    let mut pair = pair();
    note(&mut pair, "first", b"1");
    assert_eq!(open(&mut pair, 1), Ok(2));
    note(&mut pair, "second", b"1");
    pair[0].note("third", b"0");
    pair[1].note("third", b"1");
    note(&mut pair, "fourth", b"1");
    let named = |step: &str| Err(Refusal::Values(step.to_owned()));
    assert_eq!(open(&mut pair, 2), named("second"));
    // If an exchange covered some of the values, the difference is named by the first value after
    // it.
    let mut pair = self::pair();
    note(&mut pair, "first", b"1");
    step(&mut pair, 1).unwrap();
    note(&mut pair, "second", b"1");
    pair[0].note("third", b"0");
    pair[1].note("third", b"1");
    step(&mut pair, 2).unwrap();
    assert_eq!(open(&mut pair, 3), named("second"));
}

/// Returns what three sides know that noted these values, after all piggybacks of an opening.
fn known(values: [&[u8]; 3]) -> [Option<Disagreement>; 3] {
    let mut sides = [0, 1, 2].map(|party| PrivateComparison::new(party, 3).unwrap());
    for (side, value) in sides.iter_mut().zip(values) {
        side.note("mul", value);
        side.begin(1, true);
    }
    for turn in 0..2 {
        // All are sent before any is received, as in the channel.
        let links = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
        let piggybacks = links.map(|(from, to)| {
            assert!(sides[from].owes(to, turn) && sides[to].awaits(from, turn));
            sides[from].piggyback(to)
        });
        for ((from, to), piggyback) in links.into_iter().zip(piggybacks) {
            assert!(sides[to].arrived(from, &piggyback));
        }
    }
    sides.map(|side| side.disagreement())
}

#[test]
fn of_three_the_one_whose_values_no_other_has_is_known_to_all() {
    assert_eq!(known([b"1", b"1", b"1"]), [None, None, None]);
    for odd in 0..3 {
        let mut values: [&[u8]; 3] = [b"1", b"1", b"1"];
        values[odd] = b"2";
        for (party, found) in known(values).into_iter().enumerate() {
            let found = found.expect("one party differs");
            assert!(found.is_complete && found.odd == Some(odd), "{found:?}");
            assert!((found.party == odd) == (party != odd), "{found:?}");
        }
    }
    // If all differ, no other party has the values of this one.
    for (party, found) in known([b"1", b"2", b"3"]).into_iter().enumerate() {
        assert_eq!(found.expect("all parties differ").odd, Some(party));
    }
}

/// A side that has found a difference behaves, until the other side has found it, as if it had not.
#[test]
fn a_difference_that_one_end_knows_changes_nothing_of_what_rides() {
    let mut pair = pair();
    pair[0].note("mul", b"1");
    pair[1].note("mul", b"2");
    pair.iter_mut().for_each(|side| side.begin(1, false));
    let [a, b] = &mut pair;
    carry(a, b).unwrap();
    assert_eq!(carry(b, a), Err(Refusal::Values("mul".to_owned())));
    assert_eq!(b.disagreement(), None);
    note(&mut pair, "add", b"3");
    pair.iter_mut().for_each(|side| side.begin(2, true));
    for turn in 0..2 {
        let [a, b] = &mut pair;
        assert!(a.owes(1, turn) && b.owes(0, turn));
        let piggybacks = [a.piggyback(1), b.piggyback(0)];
        assert!(b.arrived(0, &piggybacks[0]) && a.arrived(1, &piggybacks[1]));
    }
    for side in &mut pair {
        let peer = 1 - side.party;
        assert_eq!(side.disagreement().expect("the parties differ").step, "mul");
        side.begin(40, true);
        assert!(!side.owes(peer, 0) && !side.awaits(peer, 0));
    }
}

const BINDING: Binding = Binding {
    party: 0,
    peer: 1,
    number: 3,
};
const MIRRORED: Binding = Binding {
    party: 1,
    peer: 0,
    number: 3,
};

/// All points that an attacker can compute from what it knows, without solving Diffie–Hellman.
fn candidates(points: &[RistrettoPoint], scalars: &[Scalar]) -> Vec<RistrettoPoint> {
    let mut found = points.to_vec();
    for point in points {
        for scalar in scalars {
            found.extend([scalar * point, scalar.invert() * point]);
        }
        found.extend(
            points
                .iter()
                .flat_map(|other| [point + other, point - other]),
        );
    }
    found
}

/// Returns whether one of these keys, used as K, gives a tag that was sent.
fn tests(keys: &[RistrettoPoint], elements: [[u8; ELEMENT]; 2], sent: &[[u8; TAG]]) -> bool {
    keys.iter().any(|key| {
        let mut hasher = BINDING.hasher("tacit agreement tags, version 1");
        hasher.update(&elements[0]);
        hasher.update(&elements[1]);
        hasher.update(key.compress().as_bytes());
        let mut bytes = hasher.finalize_xof();
        let mut tag = || {
            let mut tag = [0; TAG];
            bytes.fill(&mut tag);
            tag
        };
        let both = [tag(), tag()];
        sent.iter().any(|sent| both.contains(sent))
    })
}

/// Returns whether an attacker finds a key that fits. It took part with `guess` while the other
/// party's digest is `digest`; afterwards it tries the right digest on everything that it saw.
fn attack(digest: u8, guess: u8, secrets: &mut Secrets) -> bool {
    let [digest, guess] = [digest, guess].map(|byte| Zeroizing::new([byte; 32]));
    let y = secrets.scalar();
    let honest = Side::new(BINDING, &digest, secrets.scalar());
    let attacker = Side::new(MIRRORED, &guess, y.clone());
    let elements = [honest.element(), attacker.element()];
    let sent = honest.tags(&elements[1]).unwrap().mine;
    let seen = elements.map(|bytes| CompressedRistretto(bytes).decompress().unwrap());
    let tried = BINDING.generator(&digest);
    let used = BINDING.generator(&guess);
    let keys = candidates(&[seen[0], seen[1], tried, used], &[*y]);
    tests(&keys, elements, &[sent])
}

#[test]
fn one_guess_is_answered_in_an_exchange_and_none_after_it() {
    let mut secrets = Secrets::new().unwrap();
    for round in 0..20 {
        assert!(!attack(round, round + 1, &mut secrets));
        // With a right guess, this attacker finds the key: so the search is able to find one.
        assert!(attack(round, round, &mut secrets));
    }
}

#[test]
fn who_listens_and_knows_the_digest_finds_nothing_to_test() {
    let mut secrets = Secrets::new().unwrap();
    for byte in 0..20 {
        let digest = Zeroizing::new([byte; 32]);
        let sides = [BINDING, MIRRORED].map(|side| Side::new(side, &digest, secrets.scalar()));
        let elements = [sides[0].element(), sides[1].element()];
        let sent = [
            sides[0].tags(&elements[1]).unwrap().mine,
            sides[1].tags(&elements[0]).unwrap().mine,
        ];
        let seen = elements.map(|bytes| CompressedRistretto(bytes).decompress().unwrap());
        let known = [seen[0], seen[1], BINDING.generator(&digest)];
        assert!(!tests(&candidates(&known, &[]), elements, &sent));
    }
}

#[test]
fn elements_and_tags_are_new_each_time_and_no_tag_serves_the_other_direction() {
    let mut secrets = Secrets::new().unwrap();
    let digest = Zeroizing::new([1; 32]);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let sides = [BINDING, MIRRORED].map(|side| Side::new(side, &digest, secrets.scalar()));
        let tags = [
            sides[0].tags(&sides[1].element()).unwrap(),
            sides[1].tags(&sides[0].element()).unwrap(),
        ];
        assert!(tags[0].fit(&tags[1].mine) && tags[1].fit(&tags[0].mine));
        assert!(
            !tags[0].fit(&tags[0].mine),
            "a party's own tag was accepted when it was sent back"
        );
        assert!(
            sides
                .iter()
                .all(|side| seen.insert(side.element().to_vec()))
        );
        assert!(tags.iter().all(|tags| seen.insert(tags.mine.to_vec())));
    }
}

#[test]
fn what_is_bound_counts() {
    let digest = Zeroizing::new([1; 32]);
    let generator = BINDING.generator(&digest);
    assert_eq!(generator, MIRRORED.generator(&digest));
    for other in [
        Binding {
            number: 4,
            ..BINDING
        },
        Binding { peer: 2, ..BINDING },
        Binding {
            party: 2,
            ..BINDING
        },
    ] {
        assert_ne!(generator, other.generator(&digest));
    }
}

#[test]
fn what_belongs_to_no_comparison_is_refused() {
    let identity = RistrettoPoint::identity().compress().to_bytes();
    let element = RistrettoPoint::mul_base(&Scalar::from(7_u64))
        .compress()
        .to_bytes();
    let refused = |pair: &mut [PrivateComparison; 2], piggyback: &[u8]| {
        assert!(!pair[0].arrived(1, piggyback));
    };
    // No exchange is under way.
    refused(&mut pair(), &element);
    let begun = || {
        let mut pair = pair();
        note(&mut pair, "mul", b"1");
        pair.iter_mut().for_each(|side| side.begin(1, false));
        pair
    };
    refused(&mut begun(), &identity);
    refused(&mut begun(), &[0xff; ELEMENT]);
    refused(&mut begun(), &[1; TAG]);
    for length in [1, TAG - 1, TAG + 1, ELEMENT + 1, ELEMENT + TAG - 1, 64] {
        refused(&mut begun(), &vec![1; length]);
    }
    // A second element, and a tag that comes before this party's element was sent.
    let mut twice = begun();
    assert!(twice[0].arrived(1, &element));
    refused(&mut twice, &element);
    let early = [&element[..], &[1; TAG]].concat();
    refused(&mut begun(), &early);
    assert!(!begun()[0].arrived(9, &element));
}

proptest! {
    #[test]
    fn no_altered_rider_ends_in_agreement(
        which in 0_usize..3,
        at in any::<prop::sample::Index>(),
        change in 1_u8..,
        cut in any::<bool>(),
    ) {
        let mut pair = pair();
        note(&mut pair, "mul", b"1");
        pair.iter_mut().for_each(|side| side.begin(1, false));
        let mut outcome = Ok(());
        // Element; element and tag; tag.
        for (turn, from) in [0, 1, 0].into_iter().enumerate() {
            let mut piggyback = pair[from].piggyback(1 - from);
            if turn == which {
                let place = at.index(piggyback.len());
                if cut {
                    piggyback.truncate(place.max(1));
                } else {
                    piggyback[place] ^= change;
                }
            }
            outcome = outcome.and_then(|()| arrive(&mut pair[1 - from], from, &piggyback));
        }
        let whole = cut && outcome.is_ok();
        prop_assert!(whole || outcome.is_err());
        let agreed = pair.iter().map(|side| side.pairs[1 - side.party].agreed).min();
        prop_assert_eq!(agreed, Some(0));
    }

    #[test]
    fn random_piggybacks_never_panic(piggybacks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..65), 1..8)) {
        let mut pair = pair();
        note(&mut pair, "mul", b"1");
        pair.iter_mut().for_each(|side| side.begin(1, false));
        for piggyback in piggybacks {
            let _ = pair[0].piggyback(1);
            let _ = pair[0].arrived(1, &piggyback);
        }
        prop_assert_eq!(pair[0].pairs[1].agreed, 0);
    }
}
