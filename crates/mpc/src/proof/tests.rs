use super::challenges::{Seeds, Weights};
use super::*;
use kernels::residues;
use kernels::stream::{Key, Stream};

/// The arithmetic of the equations.
pub(super) trait Case: Ring {
    /// The number of bits of a word of a message.
    const BITS: u32 = u64::BITS;
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

impl Case for Residues {
    const BITS: u32 = residues::BITS;

    fn product(left: u64, right: u64) -> u64 {
        residues::multiply(residues::of_word(left), residues::of_word(right))
    }

    fn sum(left: u64, right: u64) -> u64 {
        residues::add(residues::of_word(left), residues::of_word(right))
    }

    fn difference(left: u64, right: u64) -> u64 {
        residues::subtract(residues::of_word(left), residues::of_word(right))
    }
}

/// Defines a test for all rings.
macro_rules! for_all {
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

            #[test]
            fn of_residues() {
                super::$of::<super::Residues>();
            }
        }
    };
}

for_all!(true_equations, prove_true_equations);
for_all!(one_false_equation, refuse_one_false_equation);
for_all!(errors_of_the_highest_bit, refuse_errors_of_the_highest_bit);
for_all!(another_factor, refuse_another_factor);
for_all!(changed_messages, refuse_changed_messages);
for_all!(
    messages_of_another_length,
    refuse_messages_of_another_length
);
for_all!(another_challenge, notice_another_challenge);
for_all!(masks, mask_all_that_the_right_verifier_sees);
for_all!(blindings, blind_the_right_factors);

/// Equations of one kind, with everybody's part.
#[derive(Clone)]
pub(super) struct Kind {
    left: Vec<Vec<u64>>,
    right: Vec<Vec<u64>>,
    pub(super) constants: [Vec<u64>; 2],
    is_twice: bool,
}

pub(super) fn random(seed: u64, n: usize) -> Vec<u64> {
    let mut words = vec![0; n];
    let mut stream = Stream::new(&Key::from_words([seed, 11]), "tests");
    stream.reserve(n).fill(0, &mut words);
    words
}

/// True equations about random words and the largest and smallest ones. Modulo 2^64, those of every
/// third seed have terms that count twice.
pub(super) fn kind<R: Case>(seed: u64, rows: usize, terms: usize) -> Kind {
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
    let is_twice = R::NAME == Words::NAME && seed % 3 == 0;
    let own = random(seed + 7, count);
    let rest = (0..count).map(|at| {
        let products = left.iter().zip(&right);
        let sum = products.fold(0_u64, |sum, (left, right)| {
            let product = R::product(left[at], right[at]);
            let sum = R::sum(sum, product);
            if is_twice { R::sum(sum, product) } else { sum }
        });
        R::difference(sum, own[at])
    });
    let rest = rest.collect();
    Kind {
        left,
        right,
        constants: [own, rest],
        is_twice,
    }
}

pub(super) const NAME: Name = Name {
    prover: 1,
    number: 5,
};

/// The keys of the prover and the left verifier, the prover and the right one, and both verifiers.
pub(super) struct Keys(pub(super) [Key; 3]);

impl Keys {
    pub(super) fn of(seed: u64) -> Self {
        Self([1, 2, 3].map(|pair| Key::from_words([pair, seed])))
    }

    pub(super) fn of_prover(&self) -> [&Key; 2] {
        [&self.0[0], &self.0[1]]
    }

    pub(super) fn of_left(&self) -> [&Key; 2] {
        [&self.0[0], &self.0[2]]
    }

    pub(super) fn of_right(&self) -> [&Key; 2] {
        [&self.0[1], &self.0[2]]
    }
}

/// A message on its way, as a test changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Left,
    Prover(usize),
}

/// Runs a proof of what the prover believes, before verifiers who believe the other. `change` is
/// called with every message.
fn run<R: Case>(
    prover: &[Kind],
    verifiers: &[Kind],
    change: impl FnMut(Message, &mut Vec<u64>),
) -> Result<(), Refused> {
    run_with::<R>(&Keys::of(1), prover, verifiers, change)
}

pub(super) fn run_with<R: Case>(
    keys: &Keys,
    prover: &[Kind],
    verifiers: &[Kind],
    mut change: impl FnMut(Message, &mut Vec<u64>),
) -> Result<(), Refused> {
    let of_prover = terms(prover);
    let (of_left, of_right) = (known(verifiers, 0), known(verifiers, 1));
    let left = LeftVerifier::<R>::new(&of_left, &[], NAME, keys.of_left());
    let right = RightVerifier::<R>::new(&of_right, &[], NAME, keys.of_right());
    let prover = |openings| Prover::<R>::new(&of_prover, &[], openings, NAME, keys.of_prover());
    converse(prover, left, right, &mut change)
}

/// Lets a prover and two verifiers send each other their messages.
pub(super) fn converse<'a, R: Ring>(
    prover: impl FnOnce([Opening; 2]) -> Result<Prover<'a, R>, Refused>,
    left: LeftVerifier<'a, R>,
    mut right: RightVerifier<'a, R>,
    change: &mut dyn FnMut(Message, &mut Vec<u64>),
) -> Result<(), Refused> {
    let mut prover = prover([left.opening(), right.opening()])?;
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
        vec![
            kind::<R>(10, 1, 63),
            kind::<R>(11, 1, 64),
            kind::<R>(12, 1, 49),
        ],
    ] {
        assert_eq!(honest::<R>(&kinds), Ok(()));
    }
}

/// The right-hand side is wrong in one equation, by one bit: the lowest, the highest, any other.
fn refuse_one_false_equation<R: Case>() {
    let kinds = [kind::<R>(1, 3, 2), kind::<R>(3, 1, 1), kind::<R>(2, 1, 70)];
    for (case, bit) in (0..64).chain([63; 40]).chain([0; 20]).enumerate() {
        let mut wrong = kinds.clone();
        let (at, side) = (case % 3, case / 3 % 2);
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

pub(super) fn known(kinds: &[Kind], side: usize) -> Vec<Known<'_>> {
    let known = kinds.iter().map(|kind| Known {
        factors: Equations {
            terms: [&kind.left, &kind.right][side]
                .iter()
                .map(|each| &each[..])
                .collect(),
            count: kind.constants[side].len(),
            is_twice: kind.is_twice,
        },
        constants: &kind.constants[side],
    });
    known.collect()
}

pub(super) fn terms(kinds: &[Kind]) -> Vec<Equations<[&[u64]; 2]>> {
    let terms = kinds.iter().map(|kind| {
        let terms = kind.left.iter().zip(&kind.right);
        Equations {
            terms: terms.map(|(left, right)| [&left[..], &right[..]]).collect(),
            count: kind.constants[0].len(),
            is_twice: kind.is_twice,
        }
    });
    terms.collect()
}

/// The prover compares what verifiers tell, so that none of them gives it another challenge.
fn notice_another_challenge<R: Case>() {
    let kinds = [kind::<R>(8, 300, 1)];
    let keys = Keys::of(1);
    let (of_left, of_right, terms) = (known(&kinds, 0), known(&kinds, 1), terms(&kinds));
    let left = LeftVerifier::<R>::new(&of_left, &[], NAME, keys.of_left()).opening();
    let new = |terms, openings| Prover::<R>::new(terms, &[], openings, NAME, keys.of_prover());
    let mut right = RightVerifier::<R>::new(&of_right, &[], NAME, keys.of_right());
    let of = |change: &dyn Fn(&mut [Opening; 2])| {
        let mut openings = [left.clone(), right.opening()];
        change(&mut openings);
        new(&terms, openings).map(drop)
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
    let openings = [left.clone(), right.opening()];
    assert_eq!(new(&[], openings.clone()).map(drop), Err(Refused::Message));

    // At each level, and once too often.
    let mut prover = new(&terms, openings).unwrap();
    let mut message = prover.begin();
    let mut levels = 0;
    while let Some(seed) = right.take(&message).unwrap() {
        assert_eq!(
            prover.next(&[seed[0] ^ 1, seed[1]]),
            Err(Refused::Challenges)
        );
        // The prover has given up.
        assert_eq!(prover.next(&seed), Err(Refused::Message));
        levels += 1;
        let openings = [left.clone(), right.opening()];
        prover = new(&terms, openings).unwrap();
        let mut again = RightVerifier::<R>::new(&of_right, &[], NAME, keys.of_right());
        message = prover.begin();
        for _ in 0..levels {
            message = prover
                .next(&again.take(&message).unwrap().unwrap())
                .unwrap();
        }
    }
    assert_eq!(levels, 4);
    assert_eq!(prover.next(&[1, 2]), Err(Refused::Message));
    assert_eq!(right.take(&message), Err(Refused::Message));
    let right = RightVerifier::<R>::new(&of_right, &[], NAME, keys.of_right());
    assert_eq!(right.finish(&message), Err(Refused::Message));
}

/// Where all factors are zero, all that the right verifier sees are masks and blindings.
fn mask_all_that_the_right_verifier_sees<R: Case>() {
    let mut kinds = [kind::<R>(9, 20, 1)];
    for words in kinds[0].left.iter_mut().chain(&mut kinds[0].right) {
        words.fill(0);
    }
    kinds[0].constants[1] = kinds[0].constants[0]
        .iter()
        .map(|word| R::difference(0, *word))
        .collect();
    let seen = |seed: u64| {
        let mut found = Vec::new();
        let keys = Keys([
            Key::from_words([1, seed]),
            Key::from_words([2, 1]),
            Key::from_words([3, 1]),
        ]);
        run_with::<R>(&keys, &kinds, &kinds, |_, message| {
            found.extend(message.clone())
        })
        .unwrap();
        found
    };
    let (first, second) = (seen(1), seen(2));
    assert!(
        first
            .iter()
            .zip(&second)
            .all(|(first, second)| first != second)
    );
    let bits: u32 = first.iter().map(|word| word.count_ones()).sum();
    let n = f64::from(R::BITS) * first.len() as f64;
    assert!((f64::from(bits) - n / 2.0).abs() < 5.0 * (n / 4.0).sqrt());
    // No mask is used twice, and none is missing.
    let mut sorted = first.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), first.len());
    assert_ne!(sorted[0], 0);
}

/// The left verifier cannot find out, by a wrong value of its own, whether the right factors are
/// zero: they are blinded.
fn blind_the_right_factors<R: Case>() {
    let mut kinds = [kind::<R>(10, 1, 1)];
    kinds[0].right[0].fill(0);
    kinds[0].constants[1] = kinds[0].constants[0]
        .iter()
        .map(|word| R::difference(0, *word))
        .collect();
    assert_eq!(honest::<R>(&kinds), Ok(()));
    for lane in 0..R::LANES {
        let found = run::<R>(&kinds, &kinds, |which, message| {
            if which == Message::Left {
                let at = message.len() - R::WORDS * (R::LANES - lane);
                message[at] ^= 1;
            }
        });
        assert_eq!(found, Err(Refused::Wrong), "lane {lane}");
    }
}

/// No proof has a challenge, a mask or a blinding of another one, and a proof has none twice.
#[test]
fn seeds_differ() {
    let key = Key::from_words([1, 2]);
    let names = [(0, 0), (1, 0), (0, 1)].map(|(prover, number)| Name { prover, number });
    let mut words = Vec::new();
    for name in names {
        for seeds in [
            Seeds::draw::<Words>(name, &key, 6),
            Seeds::draw::<Bits>(name, &key, 6),
            Seeds::draw::<Residues>(name, &key, 6),
        ] {
            words.extend(seeds.weights.iter().chain(&seeds.levels).flatten().copied());
            // What a verifier tells says nothing of what the other one tells.
            let openings = [seeds.opening_of_left(), seeds.opening_of_right()];
            for (opening, other) in openings.iter().zip([1, 0]) {
                assert_ne!(opening.seed, seeds.weights[other]);
                for hash in &opening.others {
                    for seed in seeds.weights.iter().chain(&seeds.levels).flatten() {
                        let bytes = seed.to_le_bytes();
                        assert!(!hash.windows(8).any(|each| each == bytes));
                    }
                }
            }
        }
        for purpose in [Purpose::Masks, Purpose::Blinding] {
            let mut found = [0; 64];
            name.stream::<Words>(&key, purpose)
                .reserve(64)
                .fill(0, &mut found);
            words.extend(found);
        }
    }
    let count = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), count);
    // Both seeds of the weights count.
    let rows = |seeds: [Seed; 2]| Weights::<Bits>::draw(&seeds, 1, &[]).rows[0];
    let all = [[[1, 2], [3, 4]], [[1, 2], [3, 5]], [[9, 2], [3, 4]]].map(rows);
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
}

#[test]
#[should_panic(expected = "at most 131072 rows")]
fn too_many_rows_panic() {
    let kinds = [Equations {
        terms: vec![(); MOST_ROWS + 1],
        count: Words::ROW,
        is_twice: false,
    }];
    levels(rows_of::<Words, _>(&kinds, |()| Words::ROW));
}

#[test]
fn levels_leave_one_block() {
    let enough = super::ENOUGH_ROWS;
    for rows in [
        0,
        1,
        2,
        16,
        17,
        256,
        257,
        2048,
        2049,
        enough / 2,
        enough / 2 + 1,
        enough,
        enough + 1,
        MOST_ROWS,
    ] {
        let left = levels(rows).iter().fold(rows, |left, level| match level {
            Level::Fold(variables) => left.div_ceil(1 << variables),
            _ => left,
        });
        assert!(left <= 1, "{rows} rows");
        let most = if rows <= enough { 6 } else { 7 };
        assert!(levels(rows).len() <= most);
        let words: usize = levels(rows)
            .iter()
            .map(|level| Words::WORDS * level.values())
            .sum();
        assert!(8 * words < if rows <= enough { 200_000 } else { 220_000 });
    }
}
