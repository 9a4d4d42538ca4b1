//! Leak tests of additive sharing with a dealer, with all parties except one corrupt.
//!
//! **What the corrupt parties know:** their keys with the dealer, and every key of two parties, as
//! one of the two is corrupt. All these streams are zero. Only the honest party's stream with the
//! dealer hides its secret. The honest party holds the secret whole, since nothing random was
//! subtracted from it.
//!
//! **What they see:** the honest party's share of every opened value, the same at each of them; and
//! the dealer's messages to them, of which one party's are examined. Their own shares of an opened
//! value follow from what they saw before. So seeing the honest share is seeing the opened value,
//! and the latter is examined. Without a mask, the opened value is the secret itself, while the
//! honest share might still hide behind other randomness. The residues of opened values, modulo the
//! prime of checks, are examined too. A residue that hides nothing agrees with them in its upper
//! bits, and with no bits of the words.
//!
//! **Which ranges matter: all.** The honest party's share of a uniform column masks what it opens.
//! Its share of a derived column masks the corrections that the dealer sends to the others. If it
//! is itself corrected, the stream's part is not used.

use crate::operations::{Inputs, OPERATIONS, Operation, PRIME, PRIME_BITS, SECRETS, side_by_side};
use kernels::pack::{pack_low, packed_words};
use mpc::additive::Additive;
use mpc::correlations::dealer::Dealer;
use mpc::{Bits, Protocol, Recipient, Result, SUMS};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use testkit::{Leak, REPETITIONS, Recorder, Shared, Transcript, run_opened};

const PARTIES: [usize; 2] = [2, 3];

/// Operations that two parties carry out by tables and by selections between them.
const BY_TABLES: [&str; 10] = [
    "sign",
    "sign of 32 bits",
    "sign of 2 bits",
    "sign of 5 bits",
    "equal to zero",
    "to binary",
    "bit product",
    "rectify, guarded, by a bit to one side or the other",
    "rectify, without low bits",
    "rectified affine map, guarded",
];

/// Returns how many ranges the honest party takes for an operation of [`BY_TABLES`]: for its own
/// columns and for derived ones.
fn ranges_by_tables(operation: &str) -> (usize, usize) {
    let (one, two) = ((2, 1), (3, 2));
    let (look_ups, selection) = ((2, 2), (2, 2));
    let sum = |parts: &[(usize, usize)]| parts.iter().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    // 21 spans.
    let sign = sum(&[look_ups, one, two, one, two, one, two, one, one]);
    match operation {
        "sign" => sign,
        // 11 spans.
        "sign of 32 bits" => sum(&[look_ups, one, two, one, two, one, one]),
        "sign of 2 bits" => look_ups,
        "sign of 5 bits" => sum(&[look_ups, one]),
        // 22 spans.
        "equal to zero" => sum(&[look_ups, one, one, one, one, one]),
        // The carries of single positions, and six levels above.
        "to binary" => sum(&[one, one, two, one, two, one, two, one, two, one, two, one]),
        "bit product" => selection,
        // Without guards, 64 bits are compared.
        "rectify, guarded, by a bit to one side or the other" => sum(&[sign, selection]),
        // 5 spans of 15 bits.
        "rectify, without low bits" => sum(&[look_ups, one, two, one, one, selection]),
        "rectified affine map, guarded" => sum(&[(2, 1), (1, 1), sign, selection]),
        other => panic!("no count is known for {other}"),
    }
}

/// Returns how many ranges the honest party takes for an operation: for uniform and for derived
/// columns.
fn ranges(operation: &str, honest: Honest) -> (usize, usize) {
    if honest.by_tables {
        return ranges_by_tables(operation);
    }
    let parties = honest.parties;
    // A bit of each, or r; then the product, or r >> f and r's highest bit.
    let truncation = if parties == 2 { (1, 1) } else { (1, 2) };
    let (one, two) = ((2, 1), (3, 2));
    let sum = |parts: &[(usize, usize)]| parts.iter().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    let product = (2, 1);
    let mask = (1, 1);
    // 6 spans; then the columns of a selection and those of the guard.
    let sign_of_24 = sum(&[mask, one, two, one, one]);
    let guarded_selection = (2, 2 + 2);
    // 4 spans of 15 bits, and among three parties of 16 bits.
    let sign_without_9 = sum(&[mask, one, two, one]);
    match operation {
        "share" | "share bits" => (0, 0),
        "multiply" | "matrix product" | "convolution" | "AND" => product,
        "multiply and truncate by 16"
        | "multiply and truncate by 40"
        | "multiply and truncate a narrow product" => sum(&[product, truncation]),
        // Also eight residues of the masks and their products; then those of r, of r >> f and of
        // the highest bit.
        "multiply and truncate by 16, for a check" if parties > 2 => (2 + 1, 9 + 2 + 3),
        "multiply and truncate by 16, for a check" => sum(&[product, truncation]),
        "inner products, for a check" if parties > 2 => (2, 1 + 8),
        "matrix product, for a check" if parties > 2 => (2, 1 + 2 * 2),
        "inner products, for a check" | "matrix product, for a check" => product,
        "square, for a check" if parties > 2 => (1, 1 + 4),
        "square, for a check" => mask,
        "square" | "bit to ring" | "sign of 2 bits" | "sign of 5 bits" => mask,
        // The kept mask once, and another one three times.
        "three products with a named operand" | "three fibers with a named operand" => (1 + 3, 3),
        "truncate" => truncation,
        // 16 and 8 spans. Each level of the tree has one join with one product, and all levels
        // except the last have some joins with two.
        "sign" => sum(&[mask, one, two, one, two, one, two, one]),
        "sign of 32 bits" => sum(&[mask, one, two, one, two, one]),
        // 16 spans, joined in halves.
        "equal to zero" => sum(&[mask, one, one, one, one]),
        // 63 carries: six levels, the last with one product each.
        "to binary" => sum(&[mask, one, two, one, two, one, two, one, two, one, two, one]),
        "bit product" => (2, 2),
        "affine map of two terms and an addend"
        | "narrow affine map of two terms and an addend" => sum(&[product, product, truncation]),
        "rectify, guarded" | "rectify, guarded, by a bit to one side or the other" => {
            sum(&[sign_of_24, guarded_selection])
        }
        "rectified affine map, guarded" | "narrow rectified affine map, guarded" => {
            sum(&[product, truncation, sign_of_24, guarded_selection])
        }
        "rectify, without low bits" => sum(&[sign_without_9, (2, 2)]),
        "rectified affine map, guarded and without low bits" => {
            sum(&[product, truncation, sign_without_9, guarded_selection])
        }
        // 48 words of 16 spans.
        "look at guards" => sum(&[mask, one, one, one, one, one, one, one, one, one, one]),
        "lift to integers" => truncation,
        "multiply residues" if parties > 2 => (2, 1),
        "multiply residues" => sum(&[product, truncation]),
        // One number each, and their product; or r, and c and c(c + 1) of its upper bits.
        "hold to a range" => truncation,
        other => panic!("no count is known for {other}"),
    }
}

/// The honest party, the number of parties, and whether they compare by tables.
#[derive(Clone, Copy, Debug)]
struct Honest {
    party: usize,
    parties: usize,
    by_tables: bool,
}

/// The view of the corrupt parties.
struct Finding {
    /// The honest party's messages.
    heard: Transcript,
    /// The dealer's messages to the corrupt party that is examined.
    dealt: Transcript,
    /// Everything that is opened, its residues, and what is dealt.
    seen: Transcript,
    /// The number of words of residues among them.
    residues: usize,
    /// The number of ranges that one run takes of the honest party's stream with the dealer.
    ranges: usize,
}

/// Range `muted.0` of every `muted.1` is zeros.
type Muted = Option<(usize, usize)>;

fn is_muted(muted: Muted, range: usize) -> bool {
    muted.is_some_and(|(at, period)| range % period == at)
}

fn deal(mesh: &net::Mesh, honest: Honest, muted: Muted) -> Result<()> {
    let mut dealer = Dealer::new(mesh, testkit::device())?;
    for (party, stream) in dealer.streams().iter_mut().enumerate() {
        stream.mute(move |range| party != honest.party || is_muted(muted, range));
    }
    dealer.serve()
}

/// Packs the residues of words, without a last word that they do not fill.
fn packed_residues(words: &[u64]) -> Vec<u64> {
    let residues: Vec<u64> = words.iter().map(|word| word % PRIME).collect();
    let mut packed = vec![0; packed_words(residues.len(), PRIME_BITS)];
    pack_low(&residues, PRIME_BITS, &mut packed);
    packed.truncate(residues.len() * PRIME_BITS as usize / 64);
    packed
}

/// Runs the operation repeatedly. `muted` is the range of the honest party's stream that is zeroed.
fn observe(operation: Operation, n: usize, honest: Honest, secret: u64, muted: Muted) -> Finding {
    let [heard, dealt, seen] = [(); 3].map(|()| Recorder::default());
    let echoes = [(); 3].map(|()| Recorder::default());
    let [taken, residues] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    // The corrupt party that is examined.
    let looking = usize::from(honest.party == 0);
    run_opened(
        honest.parties,
        Some(&|mesh| deal(mesh, honest, muted)),
        |mesh| {
            let me = mesh.party();
            mpc::open_exactly(mesh, testkit::device(), |channel, stream| {
                if me == honest.party {
                    let taken = Arc::clone(&taken);
                    stream.mute(move |range| {
                        taken.fetch_add(1, Ordering::Relaxed);
                        is_muted(muted, range)
                    });
                } else {
                    stream.mute(|_| true);
                }
                if me == looking {
                    let (dealt, seen) = (dealt.clone(), seen.clone());
                    channel.set_tap(Box::new(move |_, _, words| {
                        dealt.record(words);
                        seen.record(words);
                    }));
                }
            })
        },
        |p: &mut Additive| {
            let me = p.party();
            if honest.by_tables {
                p.compare_by_tables();
            }
            let pairs = p.streams().iter_mut().flatten();
            pairs.for_each(|pair| pair.mute(|_| true));
            let inputs = Inputs::share(p, honest.party, secret, n)?;
            let from_honest = move |from| from == honest.party;
            let recorders = if me == looking {
                heard.attach(p.channel(), from_honest);
                let (opened, counted) = (seen.clone(), Arc::clone(&residues));
                p.watch(Box::new(move |words| {
                    let residues = packed_residues(words);
                    counted.fetch_add(residues.len(), Ordering::Relaxed);
                    opened.record(words);
                    opened.record(&residues);
                }));
                vec![&heard, &dealt, &seen]
            } else {
                echoes[me].attach(p.channel(), from_honest);
                vec![&echoes[me]]
            };
            for _ in 0..REPETITIONS {
                recorders.iter().for_each(|recorder| recorder.repeat());
                operation(p, &inputs)?;
            }
            Ok(())
        },
    );
    let heard = heard.transcript();
    for party in (0..honest.parties).filter(|party| ![looking, honest.party].contains(party)) {
        assert!(
            echoes[party].transcript() == heard,
            "the honest party sends different words"
        );
    }
    let taken = taken.load(Ordering::Relaxed);
    assert_eq!(taken % REPETITIONS, 0, "the runs use different amounts");
    Finding {
        heard,
        dealt: dealt.transcript(),
        seen: seen.transcript(),
        residues: residues.load(Ordering::Relaxed) / REPETITIONS,
        ranges: taken / REPETITIONS,
    }
}

/// Lists every operation with every honest party.
fn views() -> Vec<(&'static str, Operation, Honest)> {
    let honest = |(parties, by_tables)| {
        (0..parties).map(move |party| Honest {
            party,
            parties,
            by_tables,
        })
    };
    let ways = [(2, false), (3, false), (2, true)];
    let all = ways.into_iter().flat_map(honest);
    let of = |(name, operation)| {
        let fits = move |honest: &Honest| !honest.by_tables || BY_TABLES.contains(&name);
        let all = all.clone().filter(fits);
        all.map(move |honest| (name, operation, honest))
    };
    OPERATIONS.into_iter().flat_map(of).collect()
}

/// Returns a number of elements of which every party has a word corrected in each column. A look-up
/// is for two elements, one of each party.
fn enough(honest: Honest) -> usize {
    64 * honest.parties * if honest.by_tables { 2 } else { 1 }
}

/// Returns a number of elements with which dropping a range is detected. An inspection of guards is
/// long, and its columns have more bits than rows, except for the last. So this returns as many
/// words of rows as give the column of this range a word for each party.
fn elements(name: &str, range: usize, honest: Honest) -> usize {
    if name != "look at guards" {
        return enough(honest);
    }
    // The mask and its monomials, then three columns for each level of the tree.
    let level = range.saturating_sub(2) / 3;
    let mut planes = 16 * SUMS;
    for _ in 0..level {
        planes = planes.div_ceil(2);
    }
    enough(honest).div_ceil(planes / 2).next_multiple_of(64)
}

#[test]
fn what_all_but_one_see_is_uniform() {
    let words = AtomicUsize::new(0);
    side_by_side(&views(), |(name, operation, honest)| {
        for (n, secrets) in [(enough(*honest), SECRETS.len()), (320, 1)] {
            for secret in SECRETS.into_iter().rev().take(secrets) {
                let found = observe(*operation, n, *honest, secret, None);
                let shown = format!("{name} of {n} shows {secret:#x} of {honest:?}");
                assert_eq!(found.heard.leak(), None, "{shown}: shares");
                assert_eq!(found.seen.leak(), None, "{shown}");
                let (heard, dealt) = (found.heard.words(), found.dealt.words());
                assert_eq!(
                    found.seen.words(),
                    heard + found.residues + dealt,
                    "{name}: other words arrive"
                );
                let (free, derived) = ranges(name, *honest);
                assert_eq!(dealt > 0, derived > 0, "{name}: corrections");
                assert_eq!(found.ranges, free + derived, "{name} of {honest:?}");
                words.fetch_add(found.seen.words(), Ordering::Relaxed);
            }
        }
    });
    let words = words.into_inner();
    assert!(words > 100_000, "only {words} words were checked");
}

/// Each operation has one honest party here, among two and among three, and each party has some.
#[test]
fn without_any_one_range_the_test_fails() {
    let place = |name: &str| OPERATIONS.iter().position(|(other, _)| *other == name);
    let mut views = views();
    views.retain(|(name, _, honest)| {
        Some(honest.party) == place(name).map(|at| at % honest.parties)
    });
    without_any_one_range_of(views);
}

#[test]
#[ignore = "long: minutes"]
fn without_any_one_range_of_any_party_the_test_fails() {
    without_any_one_range_of(views());
}

fn without_any_one_range_of(views: Vec<(&'static str, Operation, Honest)>) {
    let mutants: Vec<_> = views
        .into_iter()
        .flat_map(|view @ (name, _, honest)| {
            let (free, derived) = ranges(name, honest);
            (0..free + derived).map(move |at| (view, (at, free + derived)))
        })
        // The product of two uniform residues is uniform itself, so it shows nothing alone: only
        // with what is opened does it give the factors. The dealer masks it as all residues.
        .filter(|((name, _, honest), (at, _))| {
            let product = match *name {
                "multiply residues" => 2,
                "square, for a check" => 4,
                "inner products, for a check" | "multiply and truncate by 16, for a check" => 7,
                _ => return true,
            };
            honest.parties == 2 || *at != product
        })
        .collect();
    side_by_side(&mutants, |((name, operation, honest), muted)| {
        let n = elements(name, muted.0, *honest);
        // Which secret reveals the missing mask depends on the operation: at least one must.
        let seen = SECRETS.iter().any(|secret| {
            let found = observe(*operation, n, *honest, *secret, Some(*muted));
            found.seen.leak().is_some()
        });
        assert!(
            seen,
            "{name} of {honest:?}: no leak is detected although range {} is zero",
            muted.0
        );
    });
    let mutants = mutants.len();
    assert!(mutants > 100, "only {mutants} masks were dropped");
}

/// A named operand is opened once; later openings contain only the other operand.
#[test]
fn a_named_operand_is_opened_once() {
    let named = |(name, _): &(&str, _)| name.ends_with("with a named operand");
    let operations: Vec<_> = OPERATIONS.into_iter().filter(named).collect();
    assert_eq!(
        operations.len(),
        2,
        "expected a sequential operation and one in fibers"
    );
    for (_, thrice) in operations {
        for parties in PARTIES {
            let honest = Honest {
                party: 1,
                parties,
                by_tables: false,
            };
            let n = 64 * parties;
            let found = observe(thrice, n, honest, SECRETS[2], None);
            assert_eq!(
                found.heard.words(),
                n * (1 + 3),
                "unexpected number of words received"
            );
            let corrected = n / parties;
            assert_eq!(
                found.dealt.words(),
                corrected * 3,
                "expected one product in each run"
            );
        }
    }
}

/// Returns the leaks in what one corrupt party of three receives when a result is revealed: uniform
/// words from each of the others, with the keys that it knows and all correlations zero. If `muted`
/// is set, the others' common key is zero too.
fn revealed(corrupt: usize, to: Recipient, secret: u64, muted: bool) -> [Option<Leak>; 2] {
    let from: [Recorder; 3] = [(); 3].map(|()| Recorder::default());
    run_opened(
        3,
        Some(&|mesh| {
            let mut dealer = Dealer::new(mesh, testkit::device())?;
            dealer.streams().iter_mut().for_each(|s| s.mute(|_| true));
            dealer.serve()
        }),
        |mesh| mpc::open_exactly(mesh, testkit::device(), |_, stream| stream.mute(|_| true)),
        |p: &mut Additive| {
            let me = p.party();
            for (peer, pair) in p.streams().iter_mut().enumerate() {
                if let Some(pair) = pair {
                    pair.mute(move |_| muted || me == corrupt || peer == corrupt);
                }
            }
            let inputs = Inputs::share(p, (corrupt + 1) % 3, secret, 64)?;
            if me == corrupt {
                let from = from.clone();
                p.channel().set_tap(Box::new(move |sender, _, words| {
                    from[sender].record(words);
                }));
            }
            for _ in 0..REPETITIONS {
                if me == corrupt {
                    from.iter().for_each(Recorder::repeat);
                }
                if let Some(words) = p.reveal(&inputs.x.slices(), to)? {
                    assert!(words == inputs.secret, "the words differ from the inputs");
                }
                let bits = p.reveal_bits(&inputs.bit, to)?;
                assert!(
                    bits.is_none_or(|bits| bits[0] == secret),
                    "the bits differ from the inputs"
                );
            }
            Ok(())
        },
    );
    [1, 2].map(|after| {
        let transcript = from[(corrupt + after) % 3].transcript();
        assert_eq!(transcript.words(), 65, "expected 64 words and a bit plane");
        transcript.leak()
    })
}

#[test]
fn a_result_shows_nothing_but_itself() {
    for corrupt in 0..3 {
        for to in [Recipient::All, Recipient::One(corrupt)] {
            for secret in SECRETS {
                assert_eq!(revealed(corrupt, to, secret, false), [None; 2]);
                let without = revealed(corrupt, to, secret, true);
                assert!(
                    without.iter().all(Option::is_some),
                    "no leak is detected without the sharing of zero"
                );
            }
        }
    }
}

/// Unused bits of a plane may hold anything, such as other elements' shares. No mask covers them.
#[test]
fn what_lies_beyond_the_last_element_is_not_opened() {
    let n = 3;
    run_opened(
        2,
        Some(&testkit::deal),
        |mesh| mpc::open_exactly(mesh, testkit::device(), |_, _| ()),
        |p: &mut Additive| {
            let opened = Arc::new(Mutex::new(Vec::new()));
            let watched = Arc::clone(&opened);
            p.watch(Box::new(move |words| {
                watched.lock().expect("no party panicked").push(words[0]);
            }));
            let beyond = if p.party() == 0 { u64::MAX << n } else { 0 };
            let bit = Bits::new(1, n, vec![vec![beyond]]);
            let x = Shared::zeros(p, n);
            x.times_bit(p, &bit)?;
            Shared::made(p, n, |p, out| p.bit_to_ring(&bit, out))?;
            p.and(&bit, &bit)?;
            let revealed = p.reveal_bits(&bit, Recipient::All)?;
            assert_eq!(revealed, Some(vec![0]));
            let opened = opened.lock().expect("no party panicked");
            assert_eq!(opened.len(), 3);
            // Both factors of an AND are opened.
            for (word, bits) in opened.iter().zip([n, n, 2 * n]) {
                assert_eq!(word >> bits, 0, "bits beyond the last one are not zero");
            }
            Ok(())
        },
    );
}

/// A corrupt party receives nothing when a result is revealed to an honest party only.
#[test]
fn who_is_no_receiver_hears_nothing() {
    let heard = Recorder::default();
    let opened = testkit::run("additive_3_dealer", 3, |p| {
        let x = Shared::input(p, 0, &[7; 64])?;
        if p.party() == 1 {
            heard.attach(p.channel(), |_| true);
            heard.repeat();
        }
        p.reveal(&x.slices(), Recipient::One(2))
    });
    assert!(
        heard.transcript() == {
            let nothing = Recorder::default();
            nothing.repeat();
            nothing.transcript()
        }
    );
    assert_eq!(opened, [None, None, Some(vec![7; 64])]);
}
