//! All inputs are shared in one round, and all outputs are opened in one round, whoever owns or
//! learns them.

use mpc::Recipient;
use riscv::secret::Word;
use riscv::secret::evaluation::{Fate, Learned, cost, settle};
use riscv::secret::inputs::{Input, share_all};
use riscv::{Plain, Secret, Signs, Words};
use testkit::{run, usual_parties};

const PROTOCOLS: [&str; 4] = [
    "plain",
    "replicated",
    "additive_2_dealer",
    "additive_3_dealer",
];

#[test]
fn all_that_parties_have_is_shared_in_one_round() {
    // The owner, the bytes of each word, and the words as load instructions extend them.
    let given: [(usize, u64, Vec<u64>); 6] = [
        (1, 8, vec![u64::MAX, 5, 1 << 63]),
        (0, 1, vec![255, 0]),
        (1, 4, vec![3, u64::MAX]),
        (0, 2, (0..300).collect()),
        (1, 1, vec![]),
        (0, 8, vec![7]),
    ];
    for protocol in PROTOCOLS {
        let parties = usual_parties(protocol);
        let told = run(protocol, parties, |p| {
            let input = |(owner, bytes, values): &(usize, u64, Vec<u64>)| Input {
                // The last party is the second owner.
                owner: owner * (parties - 1),
                count: values.len(),
                bytes: *bytes,
                values: (p.party() == owner * (parties - 1)).then(|| values.clone()),
            };
            let inputs: Vec<Input> = given.iter().map(input).collect();
            let before = p.channel().meter().totals().rounds;
            let words = share_all(p, &inputs)?;
            let rounds = p.channel().meter().totals().rounds - before;
            for ((_, _, values), words) in given.iter().zip(&words) {
                // Uses both forms of the words.
                let doubled: Vec<Word> = words.iter().map(|x| Secret.add(x, x)).collect();
                let turned: Vec<Word> = words
                    .iter()
                    .map(|x| Secret.xor(x, &Word::Public(12)))
                    .collect();
                for (words, value) in [
                    (doubled, (|x: u64| x.wrapping_add(x)) as fn(u64) -> u64),
                    (turned, |x| x ^ 12),
                ] {
                    let expected: Vec<u64> = values.iter().map(|x| value(*x)).collect();
                    let learned = settle(p, &[(&words, Fate::Opened(Recipient::All))], false)?;
                    assert_eq!(learned[0].values(), Some(&expected[..]), "{protocol}");
                }
            }
            Ok(rounds)
        });
        let most = if protocol.starts_with("additive") {
            0
        } else {
            1
        };
        // The reference shares inputs one after the other.
        assert!(
            protocol == "plain" || told.iter().all(|rounds| *rounds <= most),
            "{protocol}: {told:?}"
        );
    }
}

#[test]
fn all_that_is_left_takes_the_rounds_of_the_longest() {
    for protocol in PROTOCOLS {
        let told = run(protocol, usual_parties(protocol), |p| {
            let values = [6, u64::MAX, 1 << 40];
            let input = Input {
                owner: 0,
                count: 3,
                bytes: 8,
                values: (p.party() == 0).then(|| values.to_vec()),
            };
            let words = share_all(p, &[input])?.swap_remove(0);
            // All parties hold the shares.
            settle(p, &[(&words[..1], Fate::Opened(Recipient::All))], false)?;
            let w = &mut Secret;
            let (x, y) = (&words[0], &words[1]);
            let product = w.multiply(x, y);
            let bits = w.xor(x, &Word::Public(5));
            let less = w.less(y, &words[2], Signs::Unsigned);
            let all = [product.clone(), bits.clone(), less.clone(), Word::Public(9)];
            let chain = cost(p, &all, Recipient::All).rounds;
            let left: [(&[Word], Fate); 4] = [
                (&all[..1], Fate::Shared),
                (&all[1..3], Fate::Opened(Recipient::One(0))),
                (&all[..2], Fate::Opened(Recipient::One(1))),
                (&all[3..], Fate::Opened(Recipient::One(1))),
            ];
            let before = p.channel().meter().totals().rounds;
            let learned = settle(p, &left, true)?;
            let rounds = p.channel().meter().totals().rounds - before;
            let has = |at: usize| learned[at].values().map(<[u64]>::to_vec);
            let is = |party| p.party() == party;
            assert_eq!(has(1), is(0).then(|| vec![3, 0]));
            assert_eq!(has(2), is(1).then(|| vec![6_u64.wrapping_neg(), 3]));
            assert_eq!(has(3), is(1).then(|| vec![9]));
            let Learned::Shares(parts) = &learned[0] else {
                panic!("the output was not kept as shares");
            };
            let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
            let kept = p.reveal(&parts, Recipient::All)?;
            assert_eq!(kept, Some(vec![6_u64.wrapping_neg()]));
            Ok((rounds, chain))
        });
        let most = told.iter().map(|(rounds, _)| *rounds).max();
        let (most, chain) = (most.expect("at least one party"), told[0].1);
        match protocol {
            "plain" => assert_eq!(most, 0),
            // Its parties begin and end at different times.
            "replicated" => assert!((chain..=chain + 1).contains(&most), "{most} for {chain}"),
            _ => assert_eq!(most, chain, "{protocol}"),
        }
    }
}

/// The low bits of sums and products, with their extension, are opened directly: the highest bits
/// are not read, and a conversion would take rounds.
#[test]
fn low_bits_of_sums_are_opened_without_a_conversion() {
    let values = [u64::MAX - 2, 0x8000_0001, 0x7fff_ffff_8000_0000, 129];
    let kinds = [1, 8, 16, 31, 32, 63].map(|bits| [(bits, Signs::Signed), (bits, Signs::Unsigned)]);
    let kinds: Vec<(u32, Signs)> = kinds.concat();
    fn made<W: Words>(w: &mut W, x: &[W::Word], kinds: &[(u32, Signs)]) -> Vec<W::Word> {
        let mut all = Vec::new();
        for (bits, signs) in kinds {
            let sum = w.add(&x[0], &x[1]);
            let difference = w.subtract(&x[2], &x[3]);
            let product = w.multiply(&x[1], &x[3]);
            // Twice the same word, and once with a conversion that a comparison requires.
            let extended = [sum, difference, product].map(|word| w.extend(&word, *bits, *signs));
            all.push(w.less(&extended[0], &x[3], Signs::Signed));
            all.extend([extended[1].clone()]);
            all.extend(extended);
        }
        all
    }
    let expected = made(&mut Plain, &values, &kinds);
    for protocol in PROTOCOLS {
        run(protocol, usual_parties(protocol), |p| {
            let input = Input {
                owner: 0,
                count: values.len(),
                bytes: 8,
                values: (p.party() == 0).then(|| values.to_vec()),
            };
            let words = share_all(p, &[input])?.swap_remove(0);
            settle(p, &[(&words[..1], Fate::Opened(Recipient::All))], false)?;
            let all = made(&mut Secret, &words, &kinds);
            // Without comparisons: one round of products, and one that opens.
            let of_sums: Vec<Word> = all.chunks(5).flat_map(|each| &each[1..]).cloned().collect();
            let before = p.channel().meter().totals().rounds;
            let learned = settle(p, &[(&of_sums, Fate::Opened(Recipient::All))], false)?;
            let rounds = p.channel().meter().totals().rounds - before;
            assert!(rounds <= 2, "{protocol}: {rounds} rounds");
            let values = expected.chunks(5).flat_map(|each| &each[1..]).copied();
            let values: Vec<u64> = values.collect();
            assert_eq!(learned[0].values(), Some(&values[..]), "{protocol}");
            let learned = settle(p, &[(&all, Fate::Opened(Recipient::All))], false)?;
            assert_eq!(learned[0].values(), Some(&expected[..]), "{protocol}");
            Ok(())
        });
    }
}

/// If all outputs are public, a word is opened anyway, so that each party detects whether others
/// ran differently.
#[test]
fn what_is_public_is_confirmed() {
    for (confirmed, expected) in [(true, 1), (false, 0)] {
        let told = run("replicated", 3, |p| {
            let words = [Word::Public(4)];
            let before = p.channel().meter().totals().rounds;
            settle(p, &[(&words, Fate::Opened(Recipient::All))], confirmed)?;
            Ok(p.channel().meter().totals().rounds - before)
        });
        assert_eq!(told, [expected; 3]);
    }
}
