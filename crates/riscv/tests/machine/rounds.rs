//! Rounds and bytes of whole programs, including the sharing of inputs and the opening of outputs,
//! checked against the project's figures.

use crate::cases::Case;
use mpc::Recipient;
use riscv::secret::Word;
use riscv::secret::evaluation::{cost, reveal};
use riscv::secret::inputs::share;
use riscv::{Plain, Secret, Words};
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

/// Checks the result, and the maximum numbers of rounds and bytes with two parties. With three
/// parties, in replicated sharing, the rounds may be half as many more.
fn takes(name: &str, case: &Case, expected: &[u64], (rounds, bytes): (u64, u64)) {
    for (protocol, rounds) in [(ADDITIVE, rounds), (REPLICATED, rounds * 3 / 2)] {
        let told = case.secret(protocol, &["nonce", "data"]);
        println!(
            "{name}, {protocol}: {} rounds, {} bytes",
            told.rounds, told.bytes
        );
        assert_eq!(told.values, expected, "{name}, {protocol}");
        assert!(
            told.rounds <= rounds,
            "{name}, {protocol}: {} rounds",
            told.rounds
        );
        if protocol == ADDITIVE {
            assert!(told.bytes <= bytes, "{name}: {} bytes", told.bytes);
        }
    }
}

#[test]
fn lists_of_a_thousand() {
    let of = |step: u64| (1..=1000).map(|at| at * step).collect::<Vec<u64>>();
    let mut common: Vec<u64> = of(6).into_iter().filter(|value| *value <= 2000).collect();
    common.resize(1000, 0);
    let case = Case {
        file: include_bytes!("../../programs/psi.elf"),
        told: &[],
        inputs: vec![("a", 8, of(2)), ("b", 8, of(3))],
        output: ("common", 8),
    };
    takes("intersection", &case, &common, (114, 1_810_000));
}

#[test]
fn a_block_of_aes() {
    let case = Case {
        file: include_bytes!("../../programs/aes.elf"),
        told: &[],
        inputs: vec![
            ("key", 1, (0..16).collect()),
            ("blocks", 1, (0..16).collect()),
        ],
        output: ("sealed", 1),
    };
    takes("block", &case, &case.plain(), (40, 60_000));
}

/// A hundred blocks including the padding: 103 permutations of a secret state, of twelve rounds
/// each.
#[test]
fn a_hundred_blocks_of_ascon() {
    let message: Vec<u64> = Random::new(3)
        .words(799)
        .iter()
        .map(|word| word & 255)
        .collect();
    let hash = Case {
        file: include_bytes!("../../programs/ascon.elf"),
        told: &["hash"],
        inputs: vec![("message", 1, message.clone())],
        output: ("out", 1),
    };
    takes("hash", &hash, &hash.plain(), (1237, 100_000));
    // A block of data, a hundred of the message, and two permutations of twelve rounds.
    let sealed = Case {
        told: &[],
        inputs: vec![
            ("message", 1, message),
            ("key", 1, (0..16).collect()),
            ("nonce", 1, (0..16).collect()),
            ("data", 1, (0..7).collect()),
        ],
        ..hash
    };
    takes("sealed", &sealed, &sealed.plain(), (625, 51_000));
}

/// Any number of messages takes the rounds of one.
#[test]
fn many_messages_of_ascon() {
    let message = |count: usize| {
        Random::new(4)
            .words(20 * count)
            .iter()
            .map(|word| word & 255)
            .collect()
    };
    let hashes = |told: &'static [&'static str], count: usize| {
        let case = Case {
            file: include_bytes!("../../programs/ascon.elf"),
            told,
            inputs: vec![("message", 1, message(count))],
            output: ("out", 1),
        };
        let found = case.secret(ADDITIVE, &[]);
        assert_eq!(found.values, case.plain());
        assert_eq!(found.values.len(), 32 * count);
        found
    };
    let (one, all) = (hashes(&["hash"], 1), hashes(&["hash", "64"], 64));
    assert_eq!(one.values, all.values[..32]);
    assert_eq!(one.rounds, all.rounds);
}

/// A network with 784 inputs, 128 hidden units and 10 outputs.
#[test]
fn a_network_for_digits() {
    let mut random = Random::new(7);
    // Numbers from -1/16 to below 1/16.
    let mut numbers = |count| -> Vec<u64> {
        let words = random.words(count).into_iter();
        words
            .map(|word| u64::from((word as i64 >> 51) as u32))
            .collect()
    };
    let case = Case {
        file: include_bytes!("../../programs/net.elf"),
        told: &["784", "128", "10"],
        inputs: vec![
            ("input", 4, numbers(784)),
            ("first", 4, numbers(785 * 128)),
            ("second", 4, numbers(129 * 10)),
        ],
        output: ("output", 4),
    };
    takes("network", &case, &case.plain(), (25, 840_000));
}

/// A computation on 150 words.
type Work<W> = fn(&mut W, &[<W as Words>::Word]) -> Vec<<W as Words>::Word>;

/// A name, the work on secret and on plain words, and the maximum number of 64-bit words that it
/// sends without the opening, in additive and in replicated sharing.
type Sums = (&'static str, Work<Secret>, Work<Plain>, u64, u64);

fn inner<W: Words>(w: &mut W, x: &[W::Word], y: &[W::Word]) -> W::Word {
    let mut sum = w.constant(5);
    for (at, (x, y)) in x.iter().zip(y).enumerate() {
        let product = w.multiply(x, y);
        sum = if at % 5 == 3 {
            w.subtract(&sum, &product)
        } else {
            w.add(&sum, &product)
        };
    }
    sum
}

/// A sum of 64 products, of which every fifth is subtracted; these form a second sum.
fn of_two<W: Words>(w: &mut W, x: &[W::Word]) -> Vec<W::Word> {
    vec![inner(w, &x[..64], &x[64..128])]
}

/// A matrix times a vector.
fn by_rows<W: Words>(w: &mut W, x: &[W::Word]) -> Vec<W::Word> {
    let rows = x[10..150].chunks(10);
    rows.map(|row| {
        let products: Vec<_> = row.iter().zip(x).map(|(x, y)| w.multiply(x, y)).collect();
        products
            .into_iter()
            .reduce(|sum, product| w.add(&sum, &product))
            .expect("at least one product")
    })
    .collect()
}

/// Each of ten words times each of others, and one word squared.
fn by_each<W: Words>(w: &mut W, x: &[W::Word]) -> Vec<W::Word> {
    let mut all = vec![w.multiply(&x[149], &x[149])];
    for x_of in &x[..10] {
        all.extend(x[10..30].iter().map(|y| w.multiply(y, x_of)));
    }
    all
}

/// Sums of one to twenty products, and a product that is itself opened.
fn of_unlike_lengths<W: Words>(w: &mut W, x: &[W::Word]) -> Vec<W::Word> {
    let mut all: Vec<W::Word> = (1..=20)
        .map(|n| inner(w, &x[..n], &x[50..50 + n]))
        .collect();
    let product = w.multiply(&x[0], &x[1]);
    all.push(w.add(&product, &all[3]));
    all.push(product);
    all
}

#[test]
fn sums_of_products_are_inner_products() {
    let all: [Sums; 4] = [
        ("of two", of_two, of_two, 128, 2),
        ("by rows", by_rows, by_rows, 10 + 140, 14),
        ("by each", by_each, by_each, 10 + 20 + 2, 201),
        (
            "of unlike lengths",
            of_unlike_lengths,
            of_unlike_lengths,
            421,
            90,
        ),
    ];
    let values = Random::new(21).words(150);
    for (name, work, plainly, additive, replicated) in all {
        let expected = plainly(&mut Plain, &values);
        for protocol in PROTOCOLS {
            let sent = run(protocol, usual_parties(protocol), |p| {
                let own = (p.party() == 0).then_some(&values[..]);
                let words: Vec<Word> = share(p, 0, own, values.len())?;
                reveal(p, &words[..1], Recipient::All)?;
                let results = work(&mut Secret, &words);
                let before = p.channel().meter().totals();
                let opened = reveal(p, &results, Recipient::All)?.expect("opened to all");
                assert_eq!(opened, expected, "{name}, {protocol}");
                let after = p.channel().meter().totals();
                assert!(after.rounds - before.rounds <= 2, "{name}, {protocol}");
                let words = (after.payload_bytes - before.payload_bytes) / 8;
                Ok(words.saturating_sub(results.len() as u64))
            });
            let sent = *sent.iter().max().expect("at least one party");
            println!("{name}, {protocol}: {sent} words");
            match protocol {
                ADDITIVE => assert_eq!(sent, additive, "{name}"),
                REPLICATED => assert!(sent <= replicated, "{name}: {sent} words"),
                _ => {}
            }
        }
    }
}

/// Fixed-point numbers with 16 fraction bits: a sum of a hundred products, with or without fused
/// instructions, takes the rounds of one product and is rounded once.
#[test]
fn sums_of_fractions_are_rounded_once() {
    fn added<W: Words>(w: &mut W, x: &[W::Word], fused: bool) -> W::Word {
        let mut sum = w.constant(0);
        for pair in x.chunks(2) {
            let product = w.multiply(&pair[0], &pair[1]);
            sum = if fused {
                let before = {
                    let places = w.constant(16);
                    w.shift_left(&sum, &places)
                };
                let both = w.add(&before, &product);
                w.truncate_product(&both, 16)
            } else {
                let rounded = w.truncate_product(&product, 16);
                w.add(&sum, &rounded)
            };
        }
        sum
    }
    let values: Vec<u64> = Random::new(22)
        .words(200)
        .iter()
        .map(|word| (*word as i64 >> 42) as u64)
        .collect();
    let of_products = values
        .chunks(2)
        .map(|pair| (pair[0] as i64) * (pair[1] as i64));
    let exact = of_products.sum::<i64>() as f64 / 65536.0;
    for protocol in PROTOCOLS {
        run(protocol, usual_parties(protocol), |p| {
            let own = (p.party() == 0).then_some(&values[..]);
            let words: Vec<Word> = share(p, 0, own, values.len())?;
            let one = [added(&mut Secret, &words[..2], false)];
            let one = cost(p, &one, Recipient::All).rounds;
            for fused in [false, true] {
                let sum = [added(&mut Secret, &words, fused)];
                assert_eq!(cost(p, &sum, Recipient::All).rounds, one, "{protocol}");
                let opened = reveal(p, &sum, Recipient::All)?.expect("opened to all");
                let error = (opened[0] as i64 as f64 - exact).abs();
                assert!(error < 1.0 + 1e-9, "{protocol}: {error} units");
            }
            Ok(())
        });
    }
}
