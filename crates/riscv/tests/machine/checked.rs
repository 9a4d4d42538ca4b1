//! Checked mode, for every float operation: fixed-point numbers that leave their range are found. A
//! party that would have learned a value computed from them gets the program line instead of a
//! result, and no other party learns of it.

use crate::secret_floats::operation;
use mpc::{Protocol, Recipient, guards};
use riscv::floats::{fixed, ieee};
use riscv::isa::operation::FloatFunction::{
    self, Add, Compare, Divide, FromInteger, Maximum, Minimum, Multiply, MultiplyAdd, Sign,
    SquareRoot, Subtract, ToInteger,
};
use riscv::isa::operation::Precision::Double;
use riscv::isa::operation::{Comparison, Negations, SignChange};
use riscv::numbers::fixed_point::{Range, Real, float};
use riscv::secret::Word;
use riscv::secret::evaluation::{Fate, Settled, reveal, settle_checked};
use riscv::secret::inputs::share;
use riscv::secret::watch::{Claim, LEFT, Watch};
use riscv::{Secret, Signs, Words};
use testkit::{run, usual_parties};

const PROTOCOLS: [&str; 4] = [
    "plain",
    "replicated",
    "replicated_malicious",
    "additive_2_dealer",
];

/// An operand: a word with the given number of fraction bits, an integer, or a public number.
#[derive(Clone, Copy, Debug)]
enum Given {
    Float(i64, u8),
    Integer(u64),
    Public(f64),
}

use Given::{Float, Integer, Public};

/// A computation on operands.
type Compute = fn(&mut Secret, &[Word]) -> Word;

struct Case {
    name: &'static str,
    compute: Compute,
    /// Operands that stay in range, and the result; integers as they are.
    fits: (Vec<Given>, f64),
    /// Operands that leave the range.
    beyond: Vec<Vec<Given>>,
}

fn of(words: &mut Secret, function: FloatFunction, operands: [&Word; 3]) -> Word {
    let nearest = ieee::rounding(0).expect("0 is a rounding mode");
    let computed = fixed::compute(words, operation(Double, function), nearest, operands);
    computed.expect("the operation is supported")
}

fn two(words: &mut Secret, function: FloatFunction, given: &[Word]) -> Word {
    of(words, function, [&given[0], &given[1], &given[0]])
}

const FUSED: FloatFunction = MultiplyAdd(Negations {
    product: false,
    addend: false,
});

/// One unit of a word with the usual fraction bits, as a number.
const UNIT: f64 = 1.0 / 65536.0;

/// A word with the usual fraction bits.
const fn usual(word: i64) -> Given {
    Float(word, 16)
}

const FAR: i64 = 1 << 62;

fn sums() -> Vec<Case> {
    let many = |word: i64| vec![usual(word); 100];
    vec![
        Case {
            name: "sum",
            compute: |words, given| two(words, Add, given),
            fits: (vec![usual(1 << 59), usual(-5)], (1_u64 << 43) as f64),
            beyond: vec![
                vec![usual(FAR), usual(FAR)],
                vec![usual(-FAR), usual(-FAR - 7)],
                vec![usual(FAR), usual(1)],
            ],
        },
        Case {
            name: "difference",
            compute: |words, given| two(words, Subtract, given),
            fits: (vec![usual(3 << 40), usual(1 << 40)], (1_u64 << 25) as f64),
            beyond: vec![vec![usual(FAR), usual(-FAR)]],
        },
        Case {
            name: "sum of many",
            compute: |words, given| {
                let mut sum = Word::Public(float(0.0, 8));
                for word in given {
                    sum = of(words, Add, [&sum, word, word]);
                }
                sum
            },
            fits: (many(1 << 45), 100.0 * (1_u64 << 29) as f64),
            // Modulo 2^64 their sum is small.
            beyond: vec![
                many(1 << 58),
                [many(1 << 62), vec![usual(7)]].concat()[97..].to_vec(),
            ],
        },
        Case {
            name: "integer and fraction",
            compute: |words, given| {
                let whole = of(words, FromInteger(64, Signs::Signed), [&given[0]; 3]);
                of(words, Add, [&whole, &given[1], &whole])
            },
            fits: (vec![Integer(1 << 40), usual(0)], (1_u64 << 40) as f64),
            beyond: vec![
                vec![Integer(1 << 50), usual(0)],
                vec![Integer(3 << 48), usual(1)],
            ],
        },
    ]
}

fn products() -> Vec<Case> {
    let squares = |word: i64| vec![usual(word); 40];
    vec![
        Case {
            name: "product",
            compute: |words, given| two(words, Multiply, given),
            fits: (vec![usual(300 << 16), usual(-(7 << 15))], -1050.0),
            beyond: vec![
                vec![usual(1 << 40), usual(1 << 40)],
                vec![usual(1 << 32), usual(1 << 32)],
                vec![usual(1 << 31), usual(-(1 << 33))],
                vec![usual(FAR), usual(4)],
                vec![usual(4), usual(FAR)],
                // The product fits a word but is too large to be truncated; or it is small, but a
                // factor is too large.
                vec![usual(3 << 30), usual(1 << 31)],
                vec![usual(FAR), usual(0)],
            ],
        },
        Case {
            name: "square",
            compute: |words, given| of(words, Multiply, [&given[0]; 3]),
            fits: (vec![usual(-(300 << 16))], 90_000.0),
            beyond: vec![vec![usual(1 << 32)], vec![usual(3 << 31)]],
        },
        Case {
            name: "product of three",
            compute: |words, given| {
                let two = two(words, Multiply, given);
                of(words, Multiply, [&two, &given[2], &two])
            },
            fits: (vec![usual(3 << 16), usual(5 << 16), usual(7 << 16)], 105.0),
            beyond: vec![vec![usual(1 << 33), usual(1 << 33), usual(0)]],
        },
        Case {
            name: "product of whole numbers",
            compute: |words, given| two(words, Multiply, given),
            fits: (vec![Float(300, 0), Float(-7, 0)], -2100.0),
            beyond: vec![vec![Float(1 << 32, 0), Float(1 << 32, 0)]],
        },
        Case {
            name: "sum of squares",
            compute: |words, given| {
                let mut sum = Word::Public(float(0.0, 8));
                for word in given {
                    sum = of(words, FUSED, [word, word, &sum]);
                }
                sum
            },
            fits: (squares(100 << 16), 400_000.0),
            beyond: vec![squares(1 << 31), squares(1 << 32)],
        },
        Case {
            name: "fused",
            compute: |words, given| of(words, FUSED, [&given[0], &given[1], &given[2]]),
            fits: (
                vec![usual(6 << 16), usual(7 << 16), usual(-(2 << 16))],
                40.0,
            ),
            beyond: vec![
                vec![usual(1 << 35), usual(1 << 35), usual(0)],
                vec![usual(1 << 16), usual(1 << 16), usual(1 << 49)],
                vec![usual(1 << 16), usual(1 << 16), usual(3 << 46)],
                // Both terms pass, but the sum that is truncated does not.
                vec![usual(5 << 29), usual(1 << 30), usual(5 << 43)],
            ],
        },
        Case {
            name: "by a public number",
            compute: |words, given| two(words, Multiply, given),
            fits: (vec![usual(2 << 16), Public(1.5)], 3.0),
            beyond: vec![
                vec![usual(1 << 50), Public(1000.7)],
                vec![usual(1 << 60), Public(-3.0)],
                vec![usual(1 << 45), Public(65536.0 * 16.0)],
            ],
        },
    ]
}

fn quotients() -> Vec<Case> {
    vec![
        Case {
            name: "quotient",
            compute: |words, given| two(words, Divide, given),
            fits: (vec![usual(6 << 16), usual(4 << 16)], 1.5),
            beyond: vec![
                vec![usual(1 << 16), usual(3 << 44)],
                vec![usual(1 << 16), usual(-(1 << 60))],
                vec![usual(1 << 40), usual(4)],
                vec![usual(FAR), usual(1 << 44)],
            ],
        },
        Case {
            name: "of a public number",
            compute: |words, given| two(words, Divide, given),
            fits: (vec![Public(6.0), usual(4 << 16)], 1.5),
            beyond: vec![
                vec![Public(1.0), usual(3 << 44)],
                vec![Public(30_000_001.5), usual(9)],
            ],
        },
        Case {
            name: "root",
            compute: |words, given| of(words, SquareRoot, [&given[0]; 3]),
            fits: (vec![usual(9 << 14)], 1.5),
            beyond: vec![vec![usual(3 << 44)], vec![usual(1 << 50)]],
        },
        Case {
            name: "root of a whole number",
            compute: |words, given| of(words, SquareRoot, [&given[0]; 3]),
            fits: (vec![Float(144, 0)], 12.0),
            beyond: vec![vec![Float(3 << 28, 0)]],
        },
    ]
}

fn comparisons() -> Vec<Case> {
    let apart = || vec![vec![usual(FAR), usual(-FAR)], vec![usual(-FAR), usual(FAR)]];
    let integer = |of: Compute, holds: bool| Case {
        name: "comparison",
        compute: of,
        fits: (vec![usual(5), usual(9)], f64::from(u8::from(holds))),
        beyond: apart(),
    };
    vec![
        integer(
            |words, given| two(words, Compare(Comparison::Less), given),
            true,
        ),
        integer(
            |words, given| two(words, Compare(Comparison::LessOrEqual), given),
            true,
        ),
        integer(
            |words, given| two(words, Compare(Comparison::Equal), given),
            false,
        ),
        Case {
            name: "less than a whole number",
            compute: |words, given| two(words, Compare(Comparison::Less), given),
            fits: (vec![usual(5), Float(9, 0)], 1.0),
            beyond: vec![vec![usual(5), Float(1 << 50, 0)]],
        },
        Case {
            name: "the lesser",
            compute: |words, given| two(words, Minimum, given),
            fits: (vec![usual(5 << 16), usual(9 << 16)], 5.0),
            beyond: apart(),
        },
        Case {
            name: "the greatest of many",
            compute: |words, given| {
                let mut most = given[0].clone();
                for word in given {
                    most = of(words, Maximum, [&most, word, word]);
                }
                most
            },
            fits: (
                vec![usual(5 << 16), usual(9 << 16), usual(-1), usual(7)],
                9.0,
            ),
            beyond: vec![vec![usual(FAR), usual(1), usual(2), usual(-FAR), usual(3)]],
        },
        Case {
            name: "sign of another",
            compute: |words, given| two(words, Sign(SignChange::Copy), given),
            // The intermediate double of the number leaves the range, but no result depends on it.
            fits: (vec![usual(1 << 61), usual(-5)], -((1_u64 << 45) as f64)),
            beyond: Vec::new(),
        },
        Case {
            name: "choice among far ones, in a sum",
            compute: |words, given| {
                let is_less = words.less(&given[0], &Word::Public(5), Signs::Unsigned);
                let [x, y] = [1, 2].map(|at| of(words, Add, [&given[at]; 3]));
                let chosen = words.select(&is_less, &x, &y);
                of(words, Add, [&chosen, &given[3], &chosen])
            },
            fits: (
                vec![
                    Integer(4),
                    usual((1 << 59) - 1),
                    usual(1 - (1 << 59)),
                    usual(-(1 << 59)),
                ],
                (1_u64 << 43) as f64,
            ),
            beyond: Vec::new(),
        },
        Case {
            name: "choice",
            compute: |words, given| {
                let is_less = words.less(&given[0], &Word::Public(5), Signs::Unsigned);
                words.select(&is_less, &given[1], &given[2])
            },
            fits: (vec![Integer(4), Float(3, 0), usual(1)], 3.0),
            beyond: vec![vec![Integer(4), Float(1 << 50, 0), usual(1)]],
        },
    ]
}

fn conversions() -> Vec<Case> {
    let integer = |bits, compute: Compute| Case {
        name: "integer of a float",
        compute,
        fits: (vec![usual(9 << 15)], 4.0 + f64::from(bits) * 0.0),
        beyond: vec![vec![usual(FAR)], vec![usual(i64::MAX)], vec![usual(-FAR)]],
    };
    vec![
        Case {
            name: "float of an integer",
            compute: |words, given| of(words, FromInteger(64, Signs::Signed), [&given[0]; 3]),
            fits: (vec![Integer(1 << 59)], (1_u64 << 59) as f64),
            beyond: vec![vec![Integer(1 << 62)], vec![Integer(5 << 61)]],
        },
        Case {
            name: "float of an integer without sign",
            compute: |words, given| of(words, FromInteger(64, Signs::Unsigned), [&given[0]; 3]),
            fits: (vec![Integer(1 << 61)], (1_u64 << 61) as f64),
            beyond: vec![vec![Integer(u64::MAX)], vec![Integer(1 << 62)]],
        },
        integer(64, |words, given| {
            of(words, ToInteger(64, Signs::Signed), [&given[0]; 3])
        }),
        integer(32, |words, given| {
            of(words, ToInteger(32, Signs::Unsigned), [&given[0]; 3])
        }),
    ]
}

/// Statements about the ranges of secrets.
fn said() -> Vec<Case> {
    vec![
        Case {
            name: "range of an integer",
            compute: |words, given| {
                let is_claimed = words.claim(true);
                let bounded = words.bounded(&given[0], -3, 1000);
                words.claim(is_claimed);
                words.add(&bounded, &Word::Public(1))
            },
            fits: (vec![Integer(1000)], 1001.0),
            beyond: vec![
                vec![Integer(1001)],
                vec![Integer(-4_i64 as u64)],
                vec![Integer(1 << 63)],
            ],
        },
        Case {
            name: "range of a double",
            compute: |words, given| {
                let (word, _) = words.fixed(&given[0], 8).expect("a fixed-point word");
                let said = Range::of(0.5, 4.0).expect("the range is valid");
                let real = Real::of_scale(8, 16);
                let bounded = fixed::bounded(words, &word, real, said);
                bounded.expect("the ranges overlap")
            },
            fits: (vec![usual(1 << 15)], 0.5),
            beyond: vec![
                vec![usual((1 << 15) - 1)],
                vec![usual((4 << 16) + 1)],
                vec![usual(-FAR)],
            ],
        },
    ]
}

fn cases() -> Vec<Case> {
    [
        sums(),
        products(),
        quotients(),
        comparisons(),
        conversions(),
        said(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns operands as party 0 shares them.
fn given(p: &mut dyn Protocol, all: &[Given]) -> Vec<Word> {
    let words: Vec<u64> = all
        .iter()
        .map(|given| match given {
            Float(word, _) => *word as u64,
            Integer(word) => *word,
            Public(_) => 0,
        })
        .collect();
    let own = (p.party() == 0).then_some(words.as_slice());
    let shared = share(p, 0, own, words.len()).expect("no party fails");
    let word = |(given, word): (&Given, Word)| match given {
        Float(_, scale) => Secret.float(&word, Real::of_scale(8, *scale)),
        Integer(_) => word,
        Public(number) => Word::Public(float(*number, 8)),
    };
    all.iter().zip(shared).map(word).collect()
}

fn name(claim: Claim) -> String {
    format!("line {claim}")
}

fn settled(p: &mut dyn Protocol, left: &[(&[Word], Fate)]) -> Settled {
    settle_checked(p, left, true, Some(&name)).expect("no party fails")
}

fn is_integer(word: &Word) -> bool {
    !Secret.has_float(word)
}

#[test]
fn what_stays_in_range_is_right() {
    for protocol in PROTOCOLS {
        let found = run(protocol, usual_parties(protocol), |p| {
            let _watch = Watch::begin(true);
            let mut words = Vec::new();
            for (line, case) in (1..).zip(cases()) {
                let given = given(p, &case.fits.0);
                Secret.at(0, line);
                words.push((case.compute)(&mut Secret, &given));
            }
            let are_integers: Vec<bool> = words.iter().map(is_integer).collect();
            let settled = settled(p, &[(&words, Fate::Opened(Recipient::All))]);
            assert_eq!(settled.failed, [""; 0], "{protocol}");
            let values = settled.learned[0].values().expect("opened to all").to_vec();
            Ok((values, are_integers))
        });
        for (values, are_integers) in found {
            for (case, (value, is_integer)) in cases().iter().zip(values.iter().zip(are_integers)) {
                let number = if is_integer {
                    *value as f64
                } else {
                    f64::from_bits(*value)
                };
                let expected = case.fits.1;
                let error = 3.0 * UNIT + expected.abs() / 2_f64.powi(26);
                assert!(
                    (number - expected).abs() <= error,
                    "{protocol}: {}: {number}, not {expected}",
                    case.name
                );
            }
        }
    }
}

/// Each case has its own line. One recipient gets a value out of range, and the other one a value
/// of the same line that is in range.
#[test]
fn what_leaves_its_range_is_told_to_its_receiver_alone() {
    for protocol in PROTOCOLS {
        let told = run(protocol, usual_parties(protocol), |p| {
            let _watch = Watch::begin(true);
            let mut told = Vec::new();
            for (line, case) in (1..).zip(cases()) {
                for beyond in &case.beyond {
                    let (bad, good) = (given(p, beyond), given(p, &case.fits.0));
                    Secret.at(0, line);
                    let bad = [(case.compute)(&mut Secret, &bad)];
                    let good = [(case.compute)(&mut Secret, &good)];
                    let to = |party| Fate::Opened(Recipient::One(party));
                    let settled = settled(p, &[(&bad, to(1)), (&good, to(0))]);
                    let values = settled.learned.iter();
                    let values: Vec<_> = values
                        .map(|learned| learned.values().map(|values| values[0]))
                        .collect();
                    told.push((settled.failed, values));
                }
            }
            Ok(told)
        });
        let lines = (1..).zip(cases()).flat_map(|(line, case)| {
            let of = move |beyond: &Vec<Given>| (line, case.name, format!("{beyond:?}"));
            case.beyond.iter().map(of).collect::<Vec<_>>()
        });
        for (at, (line, name, beyond)) in lines.enumerate() {
            for (party, told) in told.iter().enumerate() {
                let (failed, values) = &told[at];
                let expected = if party == 1 {
                    vec![format!("line {line}")]
                } else {
                    Vec::new()
                };
                assert_eq!(
                    *failed, expected,
                    "{protocol}: {name} of {beyond}, party {party}"
                );
                // Zeros replace the result.
                assert_eq!(values[0], (party == 1).then_some(0), "{protocol}: {name}");
                assert_eq!(values[1].is_some(), party == 0, "{protocol}: {name}");
            }
        }
    }
}

/// Kept floats get the usual fraction bits, for which an integer may be too large.
#[test]
fn what_is_kept_has_its_flags() {
    for protocol in PROTOCOLS {
        let told = run(protocol, usual_parties(protocol), |p| {
            let _watch = Watch::begin(true);
            let whole = given(p, &[Float(1 << 50, 0), Float(1 << 20, 0)]);
            let kept = |at: usize| (&whole[at..=at], Fate::Fractions(8));
            let settled = settled(p, &[kept(0), kept(1)]);
            assert!(settled.failed.is_empty());
            let mut told = Vec::new();
            for flags in &settled.flags {
                assert_eq!(flags.len(), 1);
                told.push(guards::report(p, Recipient::One(0), flags)?);
            }
            Ok(told)
        });
        for (party, told) in told.into_iter().enumerate() {
            let line = if party == 0 {
                vec![name(LEFT)]
            } else {
                Vec::new()
            };
            assert_eq!(told, [line, Vec::new()], "{protocol}");
        }
    }
}

/// A computation on a fraction, an integer, and a fraction of known range.
type Chain = fn(&mut Secret, [&Word; 3]) -> Word;

fn products_of_fractions(words: &mut Secret, x: &Word, count: usize) -> Word {
    let mut last = x.clone();
    for _ in 0..count {
        last = of(words, Multiply, [&last, x, x]);
    }
    last
}

/// Checks run right before an opening. Their rounds do not depend on the length of the program.
/// Without claims, as for integers and numbers of known range, there are none.
#[test]
fn checks_take_rounds_before_an_opening_alone() {
    let chains: [Chain; 4] = [
        |words, [x, ..]| products_of_fractions(words, x, 2),
        |words, [x, ..]| products_of_fractions(words, x, 12),
        |words, [_, x, _]| {
            (0..12).fold(x.clone(), |last, _| {
                let product = words.multiply(&last, x);
                words.xor(&product, &Word::Public(1))
            })
        },
        |words, [.., x]| {
            let product = products_of_fractions(words, x, 3);
            let sum = of(words, Add, [&product, x, x]);
            of(words, Divide, [&sum, x, x])
        },
    ];
    for protocol in ["replicated", "additive_2_dealer"] {
        let rounds = run(protocol, usual_parties(protocol), |p| {
            let mut taken = Vec::new();
            for chain in chains {
                for is_checked in [false, true] {
                    let _watch = Watch::begin(is_checked);
                    let given = given(p, &[usual(1 << 16), Integer(3), Integer(1 << 44)]);
                    let known = Real::within(8, Range::of(0.5, 1.0).expect("the range is valid"));
                    let known = Secret.float(&given[2], known);
                    let last = [chain(&mut Secret, [&given[0], &given[1], &known])];
                    // All parties have reached this point.
                    reveal(p, &given[1..2], Recipient::All)?;
                    let before = p.channel().meter().totals().rounds;
                    let checks: Option<&dyn Fn(Claim) -> String> = Some(&name);
                    let fates: [(&[Word], Fate); 1] = [(&last, Fate::Opened(Recipient::All))];
                    let told = settle_checked(p, &fates, true, checks.filter(|_| is_checked))?;
                    assert!(told.failed.is_empty());
                    taken.push(p.channel().meter().totals().rounds - before);
                }
            }
            Ok(taken)
        });
        let most = |at: usize| rounds.iter().map(|taken| taken[at]).max().expect("a party");
        let more = [0, 2, 4, 6].map(|at| most(at + 1) - most(at));
        println!("{protocol}: {more:?} rounds");
        // Parties count each other's rounds slightly differently; ten more products take twenty
        // rounds.
        assert!(more[0].abs_diff(more[1]) <= 2, "{protocol}");
        assert!(more[0] <= 30, "{protocol}");
        assert_eq!(more[2..], [0, 0], "{protocol}");
    }
}
