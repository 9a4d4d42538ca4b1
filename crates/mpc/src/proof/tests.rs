use super::*;
use kernels::stream::{Key, Stream};

/// The arithmetic of the equations.
trait Case: Ring {
    fn product(left: u64, right: u64) -> u64;
    fn sum(left: u64, right: u64) -> u64;
    fn difference(left: u64, right: u64) -> u64;
}

impl Case for Words {
    fn product(left: u64, right: u64) -> u64 {
        left.wrapping_mul(right)
    }

    fn sum(left: u64, right: u64) -> u64 {
        left.wrapping_add(right)
    }

    fn difference(left: u64, right: u64) -> u64 {
        left.wrapping_sub(right)
    }
}

impl Case for Bits {
    fn product(left: u64, right: u64) -> u64 {
        left & right
    }

    fn sum(left: u64, right: u64) -> u64 {
        left ^ right
    }

    fn difference(left: u64, right: u64) -> u64 {
        left ^ right
    }
}

/// Defines a test for both rings.
macro_rules! for_both {
    ($name:ident, $of:ident) => {
        mod $name {
            #[test]
            fn of_words() {
                super::$of::<super::Words>();
            }

            #[test]
            fn of_bits() {
                super::$of::<super::Bits>();
            }
        }
    };
}

for_both!(true_equations, prove_true_equations);
for_both!(one_false_equation, refuse_one_false_equation);
for_both!(errors_of_the_highest_bit, refuse_errors_of_the_highest_bit);
for_both!(another_factor, refuse_another_factor);
for_both!(changed_messages, refuse_changed_messages);
for_both!(
    messages_of_another_length,
    refuse_messages_of_another_length
);
for_both!(another_challenge, notice_another_challenge);
for_both!(masks, mask_all_that_the_right_verifier_sees);

/// Equations of one kind, with everybody's part.
#[derive(Clone)]
struct Kind {
    left: Vec<Vec<u64>>,
    right: Vec<Vec<u64>>,
    constants: [Vec<u64>; 2],
}

fn random(seed: u64, n: usize) -> Vec<u64> {
    let mut words = vec![0; n];
    let mut stream = Stream::new(&Key::from_words([seed, 11]), "tests");
    stream.reserve(n).fill(0, &mut words);
    words
}

/// True equations about random words and the largest and smallest ones.
fn kind<R: Case>(seed: u64, rows: usize, terms: usize) -> Kind {
    let count = rows * R::ROW;
    let side = |from: u64| -> Vec<Vec<u64>> {
        let term = |term: usize| {
            let mut words = random(100 * seed + from + term as u64, count);
            for (at, word) in words.iter_mut().enumerate() {
                match (at + term) % 13 {
                    2 => *word = 1 << 63,
                    6 => *word = u64::MAX,
                    9 => *word = 0,
                    _ => {}
                }
            }
            words
        };
        (0..terms).map(term).collect()
    };
    let (left, right) = (side(0), side(50));
    let own = random(seed + 7, count);
    let rest = (0..count).map(|at| {
        let products = left.iter().zip(&right);
        let sum = products.fold(0_u64, |sum, (left, right)| {
            R::sum(sum, R::product(left[at], right[at]))
        });
        R::difference(sum, own[at])
    });
    let rest = rest.collect();
    Kind {
        left,
        right,
        constants: [own, rest],
    }
}

fn stream(pair: u64) -> Stream {
    Stream::new(&Key::from_words([pair, 1]), "proof")
}

/// A message on its way, as a test changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    Left,
    Prover(usize),
}

/// Runs a proof of what the prover believes, before verifiers who believe the other. `change` is
/// called with every message.
fn run<R: Case>(
    prover: &[Kind],
    verifiers: &[Kind],
    mut change: impl FnMut(Message, &mut Vec<u64>),
) -> Result<(), Refused> {
    let of_prover: Vec<_> = prover
        .iter()
        .map(|kind| {
            let terms = kind.left.iter().zip(&kind.right);
            Equations {
                terms: terms.map(|(left, right)| [&left[..], &right[..]]).collect(),
                count: kind.constants[0].len(),
            }
        })
        .collect();
    let known = |side: usize| -> Vec<Known> {
        let known = verifiers.iter().map(|kind| Known {
            factors: Equations {
                terms: [&kind.left, &kind.right][side]
                    .iter()
                    .map(|each| &each[..])
                    .collect(),
                count: kind.constants[side].len(),
            },
            constants: &kind.constants[side],
        });
        known.collect()
    };
    let (of_left, of_right) = (known(0), known(1));
    let left = LeftVerifier::<R>::new(&of_left, stream(1), stream(3));
    let mut right = RightVerifier::<R>::new(&of_right, stream(2), stream(3));
    let openings = [left.opening(), right.opening()];
    let mut prover = Prover::<R>::new(&of_prover, openings, stream(1), stream(2))?;
    let mut message = prover.begin();
    let mut at = 0;
    loop {
        change(Message::Prover(at), &mut message);
        let Some(seed) = right.take(&message)? else {
            break;
        };
        message = prover.next(&seed)?;
        at += 1;
    }
    assert!(prover.is_done());
    let mut message = left.finish();
    change(Message::Left, &mut message);
    right.finish(&message)
}

fn honest<R: Case>(kinds: &[Kind]) -> Result<(), Refused> {
    run::<R>(kinds, kinds, |_, _| {})
}

fn prove_true_equations<R: Case>() {
    for kinds in [
        vec![],
        vec![kind::<R>(1, 1, 1)],
        vec![kind::<R>(2, 1, 2), kind::<R>(3, 2, 1), kind::<R>(4, 1, 4)],
        vec![kind::<R>(5, 9, 2)],
        vec![kind::<R>(6, 100, 2), kind::<R>(7, 1, 3)],
        vec![kind::<R>(8, 150, 2)],
        vec![kind::<R>(9, 1025, 2)],
    ] {
        assert_eq!(honest::<R>(&kinds), Ok(()));
    }
}

/// The right-hand side is wrong in one equation, by one bit: the lowest, the highest, any other.
fn refuse_one_false_equation<R: Case>() {
    let kinds = [kind::<R>(1, 3, 2), kind::<R>(2, 1, 1)];
    for (case, bit) in (0..64).chain([63; 40]).chain([0; 20]).enumerate() {
        let mut wrong = kinds.clone();
        let (at, side) = (case % 2, case / 2 % 2);
        let constants = &mut wrong[at].constants[side];
        let place = (case * 977) % constants.len();
        constants[place] ^= 1 << bit;
        assert_eq!(
            run::<R>(&kinds, &wrong, |_, _| {}),
            Err(Refused::Wrong),
            "bit {bit}"
        );
    }
}

/// Errors of 2^63 in several equations, which random words as weights would let cancel.
fn refuse_errors_of_the_highest_bit<R: Case>() {
    let kinds = [kind::<R>(3, 4, 1)];
    for case in 1..30 {
        let mut wrong = kinds.to_vec();
        for word in wrong[0].constants[1].iter_mut().step_by(case) {
            *word ^= 1 << 63;
        }
        assert_eq!(run::<R>(&kinds, &wrong, |_, _| {}), Err(Refused::Wrong));
    }
}

/// A prover that holds another factor than a verifier: it proves what it believes, in vain.
fn refuse_another_factor<R: Case>() {
    let kinds = [kind::<R>(4, 2, 2), kind::<R>(5, 1, 1)];
    for (case, bit) in [0, 1, 31, 62, 63].into_iter().cycle().take(40).enumerate() {
        let mut believed = kinds.clone();
        let of = &mut believed[case % 2];
        let terms = if case / 2 % 2 == 0 {
            &mut of.left
        } else {
            &mut of.right
        };
        let term = case % terms.len();
        let place = (case * 131) % terms[term].len();
        terms[term][place] ^= 1 << bit;
        assert_eq!(run::<R>(&believed, &kinds, |_, _| {}), Err(Refused::Wrong));
    }
}

/// Every element of every message, with its lowest and its highest bit.
fn refuse_changed_messages<R: Case>() {
    let kinds = [kind::<R>(6, 20, 1)];
    let mut lengths = Vec::new();
    run::<R>(&kinds, &kinds, |which, message| {
        lengths.push((which, message.len()))
    })
    .unwrap();
    assert_eq!(lengths.len(), 5);
    let mut cases = 0;
    for (which, length) in lengths {
        for element in 0..length / R::WORDS {
            for bit in [0, 63] {
                let place = R::WORDS * element + (element * 7 + bit) % R::WORDS;
                let found = run::<R>(&kinds, &kinds, |each, message| {
                    if each == which {
                        message[place] ^= 1 << bit;
                    }
                });
                assert_eq!(found, Err(Refused::Wrong), "{which:?}, word {place}");
                cases += 1;
            }
        }
    }
    assert!(cases > 800);
}

fn refuse_messages_of_another_length<R: Case>() {
    let kinds = [kind::<R>(7, 2, 1)];
    let changes: [fn(&mut Vec<u64>); 4] = [
        |message| message.clear(),
        |message| message.truncate(message.len() - 1),
        |message| message.push(0),
        |message| message.extend([0; 48]),
    ];
    for which in [
        Message::Left,
        Message::Prover(0),
        Message::Prover(1),
        Message::Prover(2),
    ] {
        for change in changes {
            let found = run::<R>(&kinds, &kinds, |each, message| {
                if each == which {
                    change(message);
                }
            });
            assert_eq!(found, Err(Refused::Message), "{which:?}");
        }
    }
}

/// The prover compares what verifiers tell, so that none of them gives it another challenge.
fn notice_another_challenge<R: Case>() {
    let kinds = [kind::<R>(8, 3, 1)];
    let known: Vec<_> = kinds
        .iter()
        .map(|kind| Known {
            factors: Equations {
                terms: kind.left.iter().map(|each| &each[..]).collect(),
                count: kind.constants[0].len(),
            },
            constants: &kind.constants[0],
        })
        .collect();
    let left = LeftVerifier::<R>::new(&known, stream(1), stream(3)).opening();
    let mut right = RightVerifier::<R>::new(&known, stream(2), stream(3));
    let new = |openings| Prover::<R>::new(&[], openings, stream(1), stream(2)).map(drop);
    let of = |change: &dyn Fn(&mut [Opening; 2])| {
        let mut openings = [left.clone(), right.opening()];
        change(&mut openings);
        let terms = [Equations {
            terms: vec![[&kinds[0].left[0][..], &kinds[0].right[0][..]]],
            count: 3 * R::ROW,
        }];
        Prover::<R>::new(&terms, openings, stream(1), stream(2)).map(drop)
    };
    assert_eq!(of(&|_| {}), Ok(()));
    for side in 0..2 {
        assert_eq!(
            of(&|both| both[side].seed[1] ^= 1),
            Err(Refused::Challenges)
        );
        assert_eq!(
            of(&|both| both[side].others[0][5] ^= 1),
            Err(Refused::Challenges)
        );
        assert_eq!(
            of(&|both| both[side].others.truncate(0)),
            Err(Refused::Message)
        );
        assert_eq!(
            of(&|both| both[side].others.push([0; 32])),
            Err(Refused::Message)
        );
    }
    // Those of a proof with other levels.
    assert_eq!(new([left.clone(), right.opening()]), Err(Refused::Message));

    let terms = [Equations {
        terms: vec![[&kinds[0].left[0][..], &kinds[0].right[0][..]]],
        count: 3 * R::ROW,
    }];
    let mut prover =
        Prover::<R>::new(&terms, [left, right.opening()], stream(1), stream(2)).unwrap();
    let seed = right.take(&prover.begin()).unwrap().unwrap();
    assert_eq!(
        prover.next(&[seed[0] ^ 1, seed[1]]),
        Err(Refused::Challenges)
    );
}

/// The right verifier sees no value that depends on secrets alone. A value is the same with other
/// secrets under the same keys only if it depends on keys alone: the last polynomial at 1, where the
/// blinding is, and the left verifier's shares of all claims but the first, which has its constants.
fn mask_all_that_the_right_verifier_sees<R: Case>() {
    // As many rows as a fold has chunks, so that no chunk is filled with zeros.
    let messages = |seed| {
        let kinds = [kind::<R>(seed, 16, 1)];
        let mut found = Vec::new();
        run::<R>(&kinds, &kinds, |_, message| found.push(message.clone())).unwrap();
        found
    };
    let (first, second) = (messages(9), messages(10));
    assert_eq!(first.len(), 4);
    for (at, (first, second)) in first.iter().zip(&second).enumerate() {
        assert_eq!(first.len(), second.len());
        let equal = first.iter().zip(second).filter(|(x, y)| x == y).count();
        assert_eq!(equal, [0, 0, R::WORDS, 3 * R::WORDS][at]);
        let bits: u32 = first.iter().map(|word| word.count_ones()).sum();
        let n = 64.0 * first.len() as f64;
        assert!((f64::from(bits) - n / 2.0).abs() < 5.0 * (n / 4.0).sqrt());
    }
}

#[test]
#[should_panic(expected = "at most 8192 rows")]
fn too_many_rows_panic() {
    let kinds = [Equations {
        terms: vec![(); MOST_ROWS + 1],
        count: Words::ROW,
    }];
    rows_of::<Words, _>(&kinds, |()| Words::ROW);
}

#[test]
fn levels_leave_one_block() {
    for rows in [0, 1, 2, 16, 17, 256, 257, 2048, 2049, MOST_ROWS] {
        let left = levels(rows).iter().fold(rows, |left, level| match level {
            Level::Fold(variables) => left.div_ceil(1 << variables),
            _ => left,
        });
        assert!(left <= 1, "{rows} rows");
        assert!(levels(rows).len() <= 6);
        let words: usize = levels(rows)
            .iter()
            .map(|level| Words::WORDS * level.values())
            .sum();
        assert!(8 * words < 200_000);
    }
}
