//! Rounds and bytes of operations on secret words, checked against the project's figures.

use mpc::Recipient;
use riscv::secret::Word;
use riscv::secret::evaluation::{cost, reveal};
use riscv::secret::inputs::share_integers;
use riscv::{Plain, Secret, Signs, Words};
use testkit::{Random, run, usual_parties};

const ADDITIVE: &str = "additive_2_dealer";
const REPLICATED: &str = "replicated";
const PROTOCOLS: [&str; 7] = [
    "plain",
    REPLICATED,
    ADDITIVE,
    "additive_3_dealer",
    "additive_5_dealer",
    "additive_2_ot",
    "additive_2_he",
];

/// A computation on two words.
type Work = fn(&mut Secret, &Word, &Word) -> Word;

/// Returns the rounds, and the bytes of the party that sends most, for `n` results with their
/// opening. Second operands are public if `public` is set.
fn sent(protocol: &str, bytes: u64, n: usize, public: Option<u64>, work: Work) -> (u64, u64) {
    let values = Random::new(5).words(2 * n);
    let readings = run(protocol, usual_parties(protocol), |p| {
        let own = (p.party() == 0).then_some(&values[..]);
        let words = share_integers(p, 0, own, 2 * n, bytes)?;
        let before = p.channel().meter().totals();
        let results: Vec<Word> = words
            .chunks(2)
            .map(|pair| {
                let second = public.map_or_else(|| pair[1].clone(), Word::Public);
                work(&mut Secret, &pair[0], &second)
            })
            .collect();
        reveal(p, &results, Recipient::All)?;
        let after = p.channel().meter().totals();
        Ok((
            after.rounds - before.rounds,
            after.payload_bytes - before.payload_bytes,
        ))
    });
    let rounds = readings.iter().map(|reading| reading.0).max();
    let bytes = readings.iter().map(|reading| reading.1).max();
    (
        rounds.expect("at least one party"),
        bytes.expect("at least one party"),
    )
}

/// A name, the bytes of the words, a public second operand, the work, and the maximum number of
/// rounds in additive sharing, including the opening. Replicated sharing takes at most half as many
/// more.
type Case = (&'static str, u64, Option<u64>, Work, u64);

const UNSIGNED: (Signs, Signs) = (Signs::Unsigned, Signs::Unsigned);

fn cases() -> Vec<Case> {
    let thousand = Some(1000);
    vec![
        ("product", 8, None, |w, x, y| w.multiply(x, y), 2),
        (
            "64 / 64",
            8,
            None,
            |w, x, y| w.divide(x, y, Signs::Unsigned),
            58,
        ),
        (
            "signed 64 / 64",
            8,
            None,
            |w, x, y| w.divide(x, y, Signs::Signed),
            67,
        ),
        (
            "64 mod 64",
            8,
            None,
            |w, x, y| w.remainder(x, y, Signs::Unsigned),
            59,
        ),
        (
            "signed 32 / 32",
            4,
            None,
            |w, x, y| w.divide(x, y, Signs::Signed),
            43,
        ),
        (
            "16 / 16",
            2,
            None,
            |w, x, y| w.divide(x, y, Signs::Unsigned),
            26,
        ),
        (
            "64 / 1000",
            8,
            thousand,
            |w, x, y| w.divide(x, y, Signs::Unsigned),
            16,
        ),
        (
            "signed 32 / 1000",
            4,
            thousand,
            |w, x, y| w.divide(x, y, Signs::Signed),
            12,
        ),
        (
            "upper half",
            8,
            None,
            |w, x, y| w.multiply_high(x, y, UNSIGNED),
            17,
        ),
        (
            "upper half by what is public",
            8,
            Some(u64::MAX / 5 * 4 + 1),
            |w, x, y| w.multiply_high(x, y, UNSIGNED),
            16,
        ),
        (
            "shift",
            8,
            None,
            |w, x, y| w.shift_right(x, y, Signs::Signed),
            5,
        ),
        (
            "sum, then shift",
            8,
            None,
            |w, x, y| {
                let sum = w.add(x, y);
                w.shift_left(&sum, y)
            },
            6,
        ),
        ("less", 8, None, |w, x, y| w.less(x, y, Signs::Unsigned), 7),
        (
            "less, of sums",
            8,
            None,
            |w, x, y| {
                let sum = w.add(x, y);
                w.less(&sum, y, Signs::Signed)
            },
            7,
        ),
        (
            "less, bit by bit",
            8,
            None,
            |w, x, y| {
                let differ = w.xor(x, y);
                w.less(&differ, y, Signs::Unsigned)
            },
            8,
        ),
        (
            "less, 32 bits",
            4,
            None,
            |w, x, y| w.less(x, y, Signs::Signed),
            5,
        ),
        ("leading zeros", 8, None, |w, x, _| w.leading_zeros(x), 8),
        ("ones", 8, None, |w, x, _| w.population(x), 2),
    ]
}

#[test]
fn rounds_are_few_and_the_same_for_many() {
    for (name, bytes, public, work, most) in cases() {
        for (protocol, most) in [(ADDITIVE, most), (REPLICATED, most * 3 / 2)] {
            for n in [1, 1000] {
                let (rounds, _) = sent(protocol, bytes, n, public, work);
                assert!(rounds <= most, "{name} of {n}, {protocol}: {rounds} rounds");
            }
        }
    }
}

#[test]
fn bytes_of_many_are_those_of_their_bits() {
    let product: Work = |words, x, y| words.multiply(x, y);
    assert_eq!(sent(ADDITIVE, 8, 10_000, None, product), (2, 240_000));
    // The opening of 100 results takes 800 bytes.
    let bits: Work = |words, x, y| {
        let sum = words.add(x, y);
        words.and(&sum, &Word::Public(u64::MAX - 1))
    };
    let number: Work = |words, x, y| {
        let differ = words.xor(x, y);
        words.multiply(&differ, &Word::Public(3))
    };
    for (work, most) in [(product, 1700), (bits, 8000), (number, 1000)] {
        let (_, bytes) = sent(ADDITIVE, 8, 100, None, work);
        assert!(bytes <= most + 800, "{bytes}");
    }
    // A comparison of 32 bits: 50 bits in four messages of whole words, and one message that opens
    // it.
    let less: Work = |words, x, y| words.less(x, y, Signs::Signed);
    let (_, bytes) = sent(ADDITIVE, 4, 1, None, less);
    assert!(bytes <= 5 * 8, "{bytes}");
}

/// Chains as loops build them, of 64 words that are available at once, take six rounds, and one
/// that opens the result.
#[test]
fn long_chains_are_trees() {
    type Plainly = fn(u64, u64) -> u64;
    let joins: [(Work, Plainly); 3] = [
        (|words, x, y| words.and(x, y), |x, y| x & y),
        (|words, x, y| words.or(x, y), |x, y| x | y),
        (|words, x, y| words.multiply(x, y), u64::wrapping_mul),
    ];
    // No result is all zeros or all ones.
    let mut values: Vec<u64> = Random::new(8)
        .words(64)
        .iter()
        .map(|word| word | 0xff)
        .collect();
    for (join, plain) in joins {
        // In replicated sharing the owner may have sent shares that have not all arrived.
        for (protocol, most) in [(ADDITIVE, 7), (REPLICATED, 8)] {
            let expected = values
                .iter()
                .copied()
                .reduce(plain)
                .expect("at least one value");
            let rounds = run(protocol, usual_parties(protocol), |p| {
                let own = (p.party() == 0).then_some(&values[..]);
                let words = share_integers(p, 0, own, 64, 8)?;
                let before = p.channel().meter().totals().rounds;
                let all = words
                    .into_iter()
                    .reduce(|all, word| join(&mut Secret, &all, &word));
                let all = [all.expect("at least one value")];
                let opened = reveal(p, &all, Recipient::All)?;
                assert_eq!(opened, Some(vec![expected]));
                Ok(p.channel().meter().totals().rounds - before)
            });
            assert!(
                rounds.iter().all(|rounds| *rounds <= most),
                "{protocol}: {rounds:?}"
            );
        }
        values.iter_mut().for_each(|value| *value = !*value);
    }
    chains_of_choices();
    // Links that the program still holds are computed as they stand.
    let values = [7, 6, 12, 5];
    run(ADDITIVE, 2, |p| {
        let own = (p.party() == 0).then_some(&values[..]);
        let words = share_integers(p, 0, own, 4, 8)?;
        let first = Secret.and(&words[0], &words[1]);
        let second = Secret.and(&first, &words[2]);
        let third = Secret.and(&second, &words[3]);
        let opened = reveal(p, &[third, second, first], Recipient::All)?;
        assert_eq!(opened, Some(vec![4, 4, 6]));
        Ok(())
    });
}

/// The minimum or maximum of 64 words takes six times the rounds of two words.
fn chains_of_choices() {
    fn least<W: Words>(w: &mut W, x: &W::Word, y: &W::Word, signs: Signs) -> W::Word {
        let less = w.less(x, y, signs);
        w.select(&less, x, y)
    }
    // Selects by the negated condition, in the opposite order.
    fn most<W: Words>(w: &mut W, x: &W::Word, y: &W::Word, signs: Signs) -> W::Word {
        let less = w.less(y, x, signs);
        let not = w.is_zero(&less);
        w.select(&not, y, x)
    }
    fn in_turn<W: Words>(w: &mut W, words: &[W::Word], signs: Signs) -> [W::Word; 2] {
        [least, most].map(|join| {
            let all = words.iter().cloned();
            let all = all.reduce(|all, word| join(w, &all, &word, signs));
            all.expect("at least one value")
        })
    }
    for signs in [Signs::Signed, Signs::Unsigned] {
        let all = PROTOCOLS
            .into_iter()
            .flat_map(|protocol| [(protocol, 8), (protocol, 4)]);
        for (protocol, bytes) in all {
            let long = |word: u64| if bytes == 4 { word as i32 as u64 } else { word };
            let values = Random::new(8 + bytes).words(64).into_iter().map(long);
            let values: Vec<u64> = values.collect();
            let rounds = |count: usize| {
                let values = &values[..count];
                let expected = in_turn(&mut Plain, values, signs).to_vec();
                let readings = run(protocol, usual_parties(protocol), |p| {
                    let own = (p.party() == 0).then_some(values);
                    let words = share_integers(p, 0, own, count, bytes)?;
                    reveal(p, &words[..1], Recipient::All)?;
                    let all = in_turn(&mut Secret, &words, signs);
                    // Excludes the opening; the reference sends nothing.
                    let chain = cost(p, &all, Recipient::All).rounds.saturating_sub(1);
                    let before = p.channel().meter().totals().rounds;
                    let opened = reveal(p, &all, Recipient::All)?;
                    assert_eq!(opened.as_ref(), Some(&expected));
                    Ok((chain, p.channel().meter().totals().rounds - before))
                });
                readings[0]
            };
            let ((two, _), (many, taken)) = (rounds(2), rounds(64));
            // After a bitwise selection the comparison is bitwise too, which takes up to two more
            // rounds.
            assert!(
                many <= 6 * two + 5 * 2,
                "{protocol}, {bytes} bytes, {signs:?}: {many} rounds, and {two} of two"
            );
            assert!(
                5 * taken <= 6 * (many + 1),
                "{protocol}: {taken} rounds for {many}"
            );
        }
    }
}

/// Appends words that are computed from each other at random.
fn made_at_random(words: &mut Vec<Word>, random: &mut Random) {
    let w = &mut Secret;
    for _ in 0..40 {
        let drawn = random.words(4);
        let of = |at: usize| words[drawn[at] as usize % words.len()].clone();
        let (x, y) = (of(0), of(1));
        let made = match drawn[2] % 15 {
            0 => w.add(&x, &y),
            1 => w.subtract(&x, &y),
            2 => w.multiply(&x, &y),
            3 => w.and(&x, &y),
            4 => w.or(&x, &y),
            5 => w.xor(&x, &y),
            6 => w.less(&x, &y, Signs::Signed),
            7 => w.less(&x, &y, Signs::Unsigned),
            8 => w.is_zero(&x),
            9 => {
                let less = w.less(&x, &y, Signs::Signed);
                let z = of(3);
                w.select(&less, &y, &z)
            }
            10 => w.shift_right(&x, &Word::Public(drawn[3] % 64), Signs::Signed),
            11 => w.extend(&x, 1 + (drawn[3] % 64) as u32, Signs::Signed),
            12 => w.divide(
                &x,
                &Word::Public(drawn[3] >> (drawn[3] % 64)),
                Signs::Signed,
            ),
            13 if drawn[3] % 4 == 0 => w.divide(&x, &y, Signs::Unsigned),
            _ => w.population(&x),
        };
        words.push(made);
    }
}

/// The rounds are those of the longest chain of operations, whatever their kinds, and of the
/// opening. In replicated sharing, whose parties begin and end at different times, they are at most
/// a fifth more.
#[test]
fn kinds_share_rounds() {
    for (protocol, graphs) in [(ADDITIVE, 100), ("additive_3_dealer", 20), (REPLICATED, 50)] {
        let (mut chains, mut taken) = (0, 0);
        for seed in 0..graphs {
            let readings = run(protocol, usual_parties(protocol), |p| {
                let mut random = Random::new(seed);
                let values = random.words(6);
                let own = (p.party() == 0).then_some(&values[..]);
                let mut words = share_integers(p, 0, own, 6, 8)?;
                // All parties hold the shares.
                reveal(p, &words[..1], Recipient::All)?;
                made_at_random(&mut words, &mut random);
                let last = words.split_off(words.len() - 8);
                drop(words);
                let chain = cost(p, &last, Recipient::All).rounds;
                let before = p.channel().meter().totals().rounds;
                reveal(p, &last, Recipient::All)?;
                Ok((chain, p.channel().meter().totals().rounds - before))
            });
            let most = readings
                .iter()
                .map(|reading| reading.1)
                .max()
                .expect("at least one party");
            let chain = readings[0].0;
            assert!(
                5 * most <= 6 * chain,
                "{protocol}, {seed}: {most} rounds for {chain}"
            );
            assert!(
                protocol == REPLICATED || most == chain,
                "{protocol}, {seed}: {most} rounds for {chain}"
            );
            chains += chain;
            taken += most;
        }
        println!("{protocol}: {taken} rounds for chains of {chains}");
    }
}
