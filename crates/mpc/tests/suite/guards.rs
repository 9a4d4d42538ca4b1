//! Tests of guarded comparisons, whose range is checked.

use super::agreed;
use mpc::{
    Affine, Bilinear, Compared, Flag, Opened, Operand, Protocol, Recipient, Result, SharedFlag,
    Shift, Term, guards,
};
use testkit::{Random, Shared, run, usual_parties};

const WIDTH: usize = 12;

/// Numbers below `CERTAIN` pass, and all numbers that pass are below `END`.
const CERTAIN: i64 = 1 << (WIDTH - 3);
const END: i64 = 3 << (WIDTH - 3);

/// The operation that compares numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    Relu,
    /// On alternating sides of zero.
    OneSided,
    Affine,
    /// Of a narrow sum.
    NarrowAffine,
    /// Without low bits.
    Dropping,
    AffineDropping,
    NarrowAffineDropping,
}

impl By {
    const ALL: [Self; 7] = [
        Self::Relu,
        Self::OneSided,
        Self::Affine,
        Self::NarrowAffine,
        Self::Dropping,
        Self::AffineDropping,
        Self::NarrowAffineDropping,
    ];

    fn is_affine(self) -> bool {
        matches!(self, Self::Affine | Self::AffineDropping) || self.is_narrow()
    }

    fn is_narrow(self) -> bool {
        matches!(self, Self::NarrowAffine | Self::NarrowAffineDropping)
    }

    /// Returns the number of low bits that are not compared.
    fn dropped(self) -> u32 {
        match self {
            Self::Relu | Self::OneSided | Self::Affine | Self::NarrowAffine => 0,
            Self::Dropping | Self::AffineDropping | Self::NarrowAffineDropping => 3,
        }
    }

    /// Returns the bound on magnitudes.
    fn most(self) -> i64 {
        if self.is_narrow() {
            1 << (Shift::NARROW - F)
        } else {
            1 << 50
        }
    }

    /// Returns the rectified number at a place.
    fn of(self, at: usize, x: i64) -> i64 {
        if self == Self::OneSided && at % 2 == 1 {
            x.min(0)
        } else {
            x.max(0)
        }
    }
}

const F: u32 = 9;

fn compared(
    p: &mut dyn Protocol,
    flags: &mut Vec<SharedFlag>,
    label: &str,
    by: By,
    x: &[i64],
    reach: u32,
) -> Result<Shared> {
    let compared = Compared::guarded(WIDTH, reach)?.dropping(by.dropped())?;
    let n = x.len();
    let scaled = |bits: u32| x.iter().map(|x| (x << bits) as u64).collect::<Vec<u64>>();
    Shared::made(p, n, |p, out| {
        let tally = if !by.is_affine() {
            let x = Shared::input(p, 0, &scaled(0))?;
            // The odd bits of every word.
            let planes = vec![0xaaaa_aaaa_aaaa_aaaa; n.div_ceil(64)];
            let sides = p.share_bits(0, (p.party() == 0).then_some(&planes[..]), 1, n)?;
            let sides = (by == By::OneSided).then_some(&sides);
            p.rectify(&x.slices(), sides, compared, out)?
        } else {
            let (x, one) = (
                Shared::input(p, 0, &scaled(F))?,
                Shared::input(p, 1, &vec![1; n])?,
            );
            let (x, one) = (x.slices(), one.slices());
            let terms = [Term {
                map: Bilinear::Elementwise { n },
                x: Operand::once(&x),
                y: Operand::once(&one),
            }];
            let shift = Shift::new(F).filter(|_| !by.is_narrow());
            let narrow = || Shift::new(F).and_then(Shift::of_narrow);
            let shift = shift.or_else(narrow).expect("a valid shift");
            p.rectified_affine(
                &Affine {
                    terms: &terms,
                    addends: &[],
                    shift,
                },
                compared,
                out,
            )?
        };
        flags.extend(tally.map(|tally| Flag::new(label, tally)));
        Ok(())
    })
}

/// Returns the labels that are revealed to all, and the revealed words.
fn revealed(protocol: &str, by: By, layers: &[Vec<i64>], reach: u32) -> (Vec<String>, Vec<u64>) {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let mut flags = Vec::new();
        let mut last = None;
        for (at, x) in layers.iter().enumerate() {
            last = Some(compared(
                p,
                &mut flags,
                &format!("layer {at}"),
                by,
                x,
                reach,
            )?);
        }
        let last = last.expect("at least one layer");
        let (words, failed) = guards::reveal(p, &last.slices(), Recipient::All, &flags)?;
        Ok((failed, words.expect("opened to all")))
    }))
}

/// Tests all numbers that must pass, in one layer; then layers with one further number that must
/// not, at any place.
pub fn boundaries(protocol: &str) {
    for by in By::ALL {
        // A truncation may be off by a unit.
        let spare = i64::from(by.is_affine());
        let inside: Vec<i64> = (spare - CERTAIN..CERTAIN - spare).collect();
        for reach in [2, 5, 10, 64] {
            let (failed, words) = revealed(protocol, by, std::slice::from_ref(&inside), reach);
            assert!(failed.is_empty(), "{by:?}: {failed:?}");
            for (at, (word, x)) in words.iter().zip(&inside).enumerate() {
                let is_lost = *word == 0 && (0..1 << by.dropped()).contains(x);
                assert!(*word as i64 == by.of(at, *x) || is_lost, "{by:?}: {x}");
            }
        }
        let most = 1_i64 << (WIDTH - 1);
        let outside = [
            END,
            -END - 1 - spare,
            most - 1,
            1 - most,
            most,
            -most,
            most + 1,
            -most - 1,
            2 * END,
            -2 * END,
            1 << 20,
            -(1 << 20),
            (1 << 40) + 1,
            -(1 << 40),
            (1 << 40) - 1,
            1 - (1 << 40),
        ];
        let outside = outside.iter().filter(|x| x.abs() < by.most());
        let outside: Vec<i64> = outside.copied().collect();
        let layers: Vec<Vec<i64>> = outside
            .iter()
            .enumerate()
            .flat_map(|(at, x)| {
                let mut with = inside.clone();
                with.insert(at * 37, *x);
                [with, inside.clone()]
            })
            .collect();
        let (failed, words) = revealed(protocol, by, &layers, 40);
        let wanted: Vec<String> = (0..outside.len())
            .map(|at| format!("layer {}", 2 * at))
            .collect();
        assert_eq!(failed, wanted, "{by:?}");
        assert!(
            words.iter().all(|word| *word == 0),
            "{by:?}: a result was revealed"
        );
    }
}

/// Numbers between those that must pass and those that must not either pass with the right result,
/// or fail: around 2^(w − 2), and at both ends.
pub fn in_between(protocol: &str) {
    let middle = 1_i64 << (WIDTH - 2);
    let near = [middle - 1, middle, middle + 1, CERTAIN, END - 1];
    // What is secret is drawn anew each time.
    let times = if protocol.ends_with("_malicious") {
        1
    } else {
        4
    };
    for by in By::ALL {
        for x in near.iter().flat_map(|x| [*x, -*x, -*x - 1]) {
            for _ in 0..times {
                let (failed, words) = revealed(protocol, by, &[vec![x; 40]], 10);
                for (at, word) in words.iter().enumerate() {
                    let wanted = if failed.is_empty() { by.of(at, x) } else { 0 };
                    assert!(*word as i64 == wanted, "{by:?}: {x}, {failed:?}");
                }
            }
        }
    }
}

/// Up to the limit of a reach, no number outside passes.
pub fn reaches(protocol: &str) {
    let unit = 1_i64 << (WIDTH - 2);
    for reach in [3, 4, 9] {
        let farthest = unit * ((1 << reach) - 2) - unit / 2 - 1;
        let layers: Vec<Vec<i64>> = [farthest, unit / 2 - farthest, (farthest / 2) | (unit << 1)]
            .map(|x| vec![x.max(-farthest); 3])
            .into();
        let (failed, _) = revealed(protocol, By::Relu, &layers, reach);
        assert_eq!(failed.len(), layers.len(), "reach {reach}: {failed:?}");
    }
}

/// Vectors of sizes with and without rotated roles, in which only the last number is out of range.
pub fn sizes(protocol: &str) {
    for n in [1, 63, 511, 513, 1535, 1536, 1537, 1665, 1666, 1793, 3330] {
        for reach in [10, 40] {
            let mut x = vec![1; n];
            let (failed, _) = revealed(protocol, By::Relu, &[x.clone()], reach);
            assert!(failed.is_empty(), "{n} numbers");
            x[n - 1] = END;
            let (failed, _) = revealed(protocol, By::Relu, &[x], reach);
            assert_eq!(failed.len(), 1, "{n} numbers");
        }
    }
}

/// A failed flag stops every value that depends on it, at every opening and for every receiver, and
/// nothing else. A receiver of another value learns nothing.
pub fn flags_stop_what_depends_on_them(protocol: &str) {
    let parties = usual_parties(protocol);
    let told = run(protocol, parties, |p| {
        let (mut bad, mut good) = (Vec::new(), Vec::new());
        let x = compared(p, &mut bad, "bad", By::Relu, &[END], 20)?;
        let y = compared(p, &mut good, "good", By::Relu, &[1, 2], 20)?;
        let both: Vec<SharedFlag> = bad.iter().chain(&good).cloned().collect();
        let negative = p.sign(&x.slices(), 64)?;
        let (x, y) = (x.slices(), y.slices());
        let (all, one) = (Recipient::All, Recipient::One);
        let mut told = Vec::new();
        for to in [one(1), one(0), one(1)] {
            told.push(guards::reveal(p, &x, to, &bad)?);
            told.push(guards::reveal(p, &y, to, &good)?);
            told.push(guards::reveal_bits(p, &negative, to, &bad)?);
            told.push(guards::reveal(p, &y, to, &both)?);
            told.push(guards::reveal(p, &y, to, &[])?);
            told.push((None, guards::report(p, to, &both)?));
        }
        for _ in 0..2 {
            told.push(guards::reveal(p, &y, all, &good)?);
            told.push(guards::reveal(p, &x, all, &both)?);
            told.push(guards::reveal_bits(p, &negative, all, &bad)?);
            told.push((None, guards::report(p, all, &both)?));
        }
        // After all know the flag, also for one receiver.
        told.push(guards::reveal(p, &x, one(0), &bad)?);
        told.push(guards::reveal(p, &y, one(0), &good)?);
        Ok(told)
    });
    let bad = vec!["bad".to_owned()];
    let refused = |words: usize| (Some(vec![0; words]), bad.clone());
    let right = (Some(vec![1, 2]), Vec::new());
    let nothing: Opened = (None, Vec::new());
    for (party, told) in told.into_iter().enumerate() {
        let mut wanted = Vec::new();
        for to in [1, 0, 1] {
            let each = [
                refused(1),
                right.clone(),
                refused(1),
                refused(2),
                right.clone(),
                (None, bad.clone()),
            ];
            wanted.extend(each.map(|each| if party == to { each } else { nothing.clone() }));
        }
        for _ in 0..2 {
            wanted.extend([right.clone(), refused(1), refused(1), (None, bad.clone())]);
        }
        let last = [refused(1), right.clone()];
        wanted.extend(last.map(|each| if party == 0 { each } else { nothing.clone() }));
        assert_eq!(told, wanted, "party {party}");
    }
}

/// Flags converted to bits, and rebuilt from these, stop the same values.
pub fn flags_are_bits(protocol: &str) {
    let told = agreed(run(protocol, usual_parties(protocol), |p| {
        let mut flags = Vec::new();
        let x = compared(p, &mut flags, "bad", By::Relu, &[END], 20)?;
        let y = compared(p, &mut flags, "good", By::Relu, &[7], 20)?;
        let bits = guards::bits(p, &flags)?;
        let again: Vec<SharedFlag> = bits
            .into_iter()
            .zip(&flags)
            .map(|(bit, flag)| Flag::of_bit(flag.label(), bit))
            .collect();
        let zeros = guards::checked(p, &y.slices(), &again)?;
        let same = guards::checked(p, &y.slices(), &again[1..])?;
        let zeros: Vec<&[u64]> = zeros.iter().map(Vec::as_slice).collect();
        let same: Vec<&[u64]> = same.iter().map(Vec::as_slice).collect();
        Ok([
            guards::reveal(p, &x.slices(), Recipient::All, &again[..1])?,
            guards::reveal(p, &y.slices(), Recipient::All, &again[1..])?,
            (p.reveal(&zeros, Recipient::All)?, Vec::new()),
            (p.reveal(&same, Recipient::All)?, Vec::new()),
        ])
    }));
    let right = (Some(vec![7]), Vec::new());
    let refused = (Some(vec![0]), vec!["bad".to_owned()]);
    assert_eq!(
        told,
        [refused, right.clone(), (Some(vec![0]), Vec::new()), right]
    );
}

/// If a flag's checks ended without an answer, every use reports that before anything is sent.
/// Earlier answers stay.
pub fn flags_without_an_answer_say_why(protocol: &str) {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let mut flags = Vec::new();
        let x = compared(p, &mut flags, "good", By::Relu, &[7], 20)?;
        let (x, lost) = (x.slices(), Flag::promised("lost"));
        lost.abandon("a link broke");
        flags.push(lost);
        let told = [
            guards::reveal(p, &x, Recipient::All, &flags).map(drop),
            guards::reveal(p, &x, Recipient::One(1), &flags).map(drop),
            guards::report(p, Recipient::All, &flags).map(drop),
            guards::checked(p, &x, &flags).map(drop),
            guards::bits(p, &flags).map(drop),
        ];
        for each in told {
            let said = each.expect_err("the reveal fails").to_string();
            assert!(said.contains("the checks of \"lost\" ended"), "{said}");
            assert!(said.ends_with("a link broke"), "{said}");
        }
        let answered = Flag::promised("answered");
        answered.keep(guards::bits(p, &flags[..1])?.remove(0));
        answered.abandon("a link broke");
        flags[1] = answered;
        guards::reveal(p, &x, Recipient::All, &flags)
    }));
}

/// No overflow is missed: each is alone among numbers that fit, in a separate layer.
pub fn overflows(protocol: &str, layers: usize) {
    for by in [By::Relu, By::NarrowAffine] {
        overflows_by(protocol, layers, by);
    }
}

fn overflows_by(protocol: &str, layers: usize, by: By) {
    let mut random = Random::new(3);
    // A truncation may be off by a unit.
    let spare = i64::from(by.is_affine());
    let mut left = layers;
    while left > 0 {
        let some = left.min(500);
        let layers: Vec<Vec<i64>> = (0..some)
            .map(|_| {
                let mut x: Vec<i64> = (0..5)
                    .map(|_| random.signed(WIDTH as u32 - 3) >> spare)
                    .collect();
                // Every magnitude from `END` on, by its number of bits.
                let bits = random.word() % u64::from(by.most().ilog2());
                let far = END + (random.word() & ((1 << bits) - 1)) as i64;
                let far = far.min(by.most() - 2);
                x[random.word() as usize % 5] = if random.word() & 1 == 0 {
                    far
                } else {
                    -far - 1 - spare
                };
                x
            })
            .collect();
        let (failed, _) = revealed(protocol, by, &layers, 64);
        assert_eq!(failed.len(), some, "{by:?}");
        left -= some;
    }
}
