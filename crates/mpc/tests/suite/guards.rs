//! Comparisons that are held against their range.

use super::agreed;
use mpc::{Affine, Bilinear, Compared, Guards, Operand, Protocol, Recipient, Result, Shift, Term};
use testkit::{Random, Shared, run, usual_parties};

const WIDTH: usize = 12;

/// What passes lies below it, and what passes is below `END`.
const CERTAIN: i64 = 1 << (WIDTH - 3);
const END: i64 = 3 << (WIDTH - 3);

/// How numbers come to be compared.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    Relu,
    /// On the one side of zero or the other, by turns.
    OneSided,
    Affine,
    /// Of a narrow sum.
    NarrowAffine,
    /// The same without low bits.
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

    /// Low bits that are not compared.
    fn dropped(self) -> u32 {
        match self {
            Self::Relu | Self::OneSided | Self::Affine | Self::NarrowAffine => 0,
            Self::Dropping | Self::AffineDropping | Self::NarrowAffineDropping => 3,
        }
    }

    /// Magnitudes are less.
    fn most(self) -> i64 {
        if self.is_narrow() {
            1 << (Shift::NARROW - F)
        } else {
            1 << 50
        }
    }

    /// What is left of a number at that place.
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
    guards: &mut Guards,
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
            // Of every word of bits the odd ones.
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
            let shift = shift.or_else(narrow).expect("1 to 61 bits");
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
        guards.push(label, tally);
        Ok(())
    })
}

/// The labels that are told to all, and what is revealed.
fn revealed(protocol: &str, by: By, layers: &[Vec<i64>], reach: u32) -> (Vec<String>, Vec<u64>) {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let mut guards = Guards::default();
        let mut last = None;
        for (at, x) in layers.iter().enumerate() {
            last = Some(compared(
                p,
                &mut guards,
                &format!("layer {at}"),
                by,
                x,
                reach,
            )?);
        }
        let last = last.expect("a layer");
        let (words, failed) = guards.reveal(p, &last.slices(), Recipient::All)?;
        Ok((failed, words.expect("all learn it")))
    }))
}

/// All numbers that must pass, in a layer; then each layer with one number more that must not, wherever it stands.
pub fn boundaries(protocol: &str) {
    for by in By::ALL {
        // Truncation takes a unit.
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
        assert!(words.iter().all(|word| *word == 0), "{by:?}: no result");
    }
}

/// What lies between what must pass and what must not passes with the right result, or fails: about
/// 2^(w − 2), and at both ends.
pub fn in_between(protocol: &str) {
    let middle = 1_i64 << (WIDTH - 2);
    let near = [middle - 1, middle, middle + 1, CERTAIN, END - 1];
    for by in By::ALL {
        for x in near.iter().flat_map(|x| [*x, -*x, -*x - 1]) {
            for _ in 0..4 {
                let (failed, words) = revealed(protocol, by, &[vec![x; 40]], 10);
                for (at, word) in words.iter().enumerate() {
                    let wanted = if failed.is_empty() { by.of(at, x) } else { 0 };
                    assert!(*word as i64 == wanted, "{by:?}: {x}, {failed:?}");
                }
            }
        }
    }
}

/// As far as a reach goes, nothing outside passes.
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

/// Whoever receives is told, and nobody twice.
pub fn everybody_is_told_once(protocol: &str) {
    let told = run(protocol, usual_parties(protocol), |p| {
        let mut guards = Guards::default();
        let mut told = Vec::new();
        let x = compared(p, &mut guards, "first", By::Relu, &[END], 20)?;
        let plain = Shared::input(p, 0, &[5])?;
        for to in [0, 0, 1] {
            told.push(guards.reveal(p, &plain.slices(), Recipient::One(to))?);
        }
        let y = compared(p, &mut guards, "second", By::Relu, &[1, 2], 20)?;
        told.push(guards.reveal(p, &y.slices(), Recipient::One(0))?);
        let negative = p.sign(&x.slices(), 64)?;
        told.push(guards.reveal_bits(p, &negative, Recipient::All)?);
        told.push(guards.reveal(p, &plain.slices(), Recipient::All)?);
        Ok(told)
    });
    for (party, told) in told.iter().enumerate() {
        let failed = |at: usize| told[at].1.clone();
        let first = vec!["first".to_owned()];
        let only = |is: bool| if is { first.clone() } else { Vec::new() };
        assert_eq!(failed(0), only(party == 0));
        assert_eq!(told[0].0, (party == 0).then(|| vec![0]));
        assert_eq!(
            told[1],
            ((party == 0).then(|| vec![5]), Vec::new()),
            "told before"
        );
        assert_eq!(failed(2), only(party == 1));
        assert_eq!(told[3], ((party == 0).then(|| vec![1, 2]), Vec::new()));
        // A third party has not been told, and what is opened to all says it to all.
        assert_eq!(failed(4), only(usual_parties(protocol) > 2));
        assert_eq!(
            told[5],
            (Some(vec![5]), Vec::new()),
            "everybody has been told"
        );
    }
}

/// None of them is missed: each stands alone among numbers that fit, in a layer of its own.
pub fn overflows(protocol: &str, layers: usize) {
    for by in [By::Relu, By::NarrowAffine] {
        overflows_by(protocol, layers, by);
    }
}

fn overflows_by(protocol: &str, layers: usize, by: By) {
    let mut random = Random::new(3);
    // Truncation takes a unit.
    let spare = i64::from(by.is_affine());
    let mut left = layers;
    while left > 0 {
        let some = left.min(500);
        let layers: Vec<Vec<i64>> = (0..some)
            .map(|_| {
                let mut x: Vec<i64> = (0..5)
                    .map(|_| random.signed(WIDTH as u32 - 3) >> spare)
                    .collect();
                // Every magnitude from the end on, by its number of bits.
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
