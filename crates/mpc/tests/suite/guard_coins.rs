//! Tests of the purpose of guards' coins: numbers out of range are detected even if their summands
//! cancel each other, or those of another comparison.

use super::{agreed, bit};
use mpc::{Compared, Protocol, Recipient, Result, Tally};
use testkit::{Shared, run, usual_parties};

/// A guard inspects the bits from `BELOW` on.
const WIDTH: usize = 12;
const BELOW: u32 = WIDTH as u32 - 2;

/// How many numbers are processed together, with their coins.
const BLOCK: usize = 512;

/// Several blocks in each of three parts. So a coin that repeats at the start of a block or part is
/// found.
const N: usize = 3 * (2 * BLOCK + 64);

/// The number of sums of each comparison.
const SUMS: usize = 48;

/// Returns the number that has this h for every split: no carry comes from bits that add up to
/// ones.
fn number(h: u64) -> u64 {
    (h << BELOW).wrapping_add((1 << (BELOW - 1)) - 1)
}

/// Computes h(h + 1) mod 2^reach.
fn summand(h: u64, reach: u32) -> u64 {
    h.wrapping_mul(h.wrapping_add(1)) & (u64::MAX >> (64 - reach))
}

/// Returns an even h whose summand and that of `other` add up to zero. The map h ↦ h(h + 1) is one
/// to one on even numbers modulo every power of two, so the bits of h follow one after another.
fn opposite(other: u64, reach: u32) -> u64 {
    let wanted = summand(other, reach).wrapping_neg();
    let mut h = 0;
    for at in 1..reach {
        if (summand(h, reach) ^ wanted) >> at & 1 == 1 {
            h |= 1 << at;
        }
    }
    assert_eq!(
        summand(h, reach).wrapping_add(summand(other, reach)) << (64 - reach),
        0
    );
    // The same number modulo 2^reach, with its sign.
    ((h << (64 - reach)) as i64 >> (64 - reach)) as u64
}

/// Returns for each layer whether it is in range, and whether all are.
fn fit(protocol: &str, layers: &[Vec<u64>], reach: u32) -> Vec<u64> {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let compared = Compared::guarded(WIDTH, reach)?;
        let tallies = layers.iter().map(|x| {
            let shared = Shared::input(p, 0, x)?;
            let mut tally = None;
            Shared::made(p, x.len(), |p, out| {
                tally = p.rectify(&shared.slices(), None, compared, out)?;
                Ok(())
            })?;
            Ok(tally.expect("the ReLU is guarded"))
        });
        let tallies = tallies.collect::<Result<Vec<Tally>>>()?;
        judged(p, &tallies)
    }))
}

fn judged(p: &mut dyn Protocol, tallies: &[Tally]) -> Result<Vec<u64>> {
    let fit = p.in_range(&tallies.iter().collect::<Vec<_>>())?;
    let plane = p.reveal_bits(&fit, Recipient::All)?.expect("opened to all");
    Ok((0..=tallies.len()).map(|at| bit(&plane, at)).collect())
}

/// Tests two numbers, at every distance at which coins might be the same, and many equal numbers.
pub fn numbers_do_not_cancel(protocol: &str) {
    for reach in [6, 15, 16, 17, 40, 54] {
        let far = 2 + 5 * (reach as u64 % 3);
        let (x, y) = (number(far), number(opposite(far, reach)));
        let third = N / 3;
        let places = [
            (0, 1),
            (1, 3),
            (0, 16),
            (0, BLOCK / 4),
            (7, 7 + BLOCK / 2),
            (3, 3 + 3 * BLOCK / 4),
            (5, 5 + BLOCK),
            (9, 9 + third),
            (9, 9 + 2 * third),
            (third - 1, N - 1),
            (N - 2, N - 1),
        ];
        let mut layers: Vec<Vec<u64>> = places
            .iter()
            .map(|&(one, other)| {
                let mut layer = vec![0; N];
                (layer[one], layer[other]) = (x, y);
                layer
            })
            .collect();
        // So many that the sum of all is zero.
        layers.push((0..N).map(|at| if at % 2 == 0 { x } else { y }).collect());
        layers.push(vec![number(2); N]);
        let wrong = layers.len();
        layers.push(vec![0; N]);
        layers.push((0..N as u64).map(|x| x % (1 << (BELOW - 1))).collect());
        let found = fit(protocol, &layers, reach);
        let wanted: Vec<u64> = (0..layers.len()).map(|at| u64::from(at >= wrong)).collect();
        assert_eq!(found[..layers.len()], wanted, "reach {reach}");
        assert_eq!(found[layers.len()], 0, "reach {reach}: all layers together");
    }
}

/// Inspected together: a nonzero sum is detected in any sum and bit, whatever the others are.
pub fn looks_do_not_cancel(protocol: &str) {
    let reach = 10;
    let only = |at: usize, word: u64| {
        let mut sums = [0; SUMS];
        sums[at] = word;
        sums
    };
    let top = 1 << (reach - 1);
    let some: [u64; SUMS] = std::array::from_fn(|at| 3 * at as u64 + 1);
    let mut pairs = vec![
        [some, some.map(u64::wrapping_neg)],
        [[top; SUMS]; 2],
        [[1; SUMS], [u64::MAX; SUMS]],
    ];
    for at in 0..SUMS {
        pairs.push([only(at, top); 2]);
        pairs.push([only(at, 1), only(at, u64::MAX)]);
    }
    for pair in pairs {
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            // Party 0 has the whole of each sum.
            let mine = |sums: [u64; SUMS]| if p.party() == 0 { sums } else { [0; SUMS] };
            let [one, other] = pair.map(mine);
            let tallies = [one, [0; SUMS], other].map(|sums| Tally::of(reach, sums));
            judged(p, &tallies)
        }));
        assert_eq!(found, [0, 1, 0, 0], "{pair:?}");
    }
}

/// Inspected together, of a protocol whose parties share one sum of each tally: an element that is
/// not zero is detected in any bit, whatever the others are.
pub fn looks_at_shared_sums_do_not_cancel(protocol: &str) {
    let mut elements: Vec<u64> = (0..64).map(|bit| 1 << bit).collect();
    elements.extend([u64::MAX, 0x1b, 0x9e37_79b9_7f4a_7c15]);
    for element in elements {
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            // Components 0 and 1 of the element are random, and component 2 is the rest.
            let components = |element: u64| {
                let [first, second] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
                [first, second, element ^ first ^ second]
            };
            let tally = |element: u64| {
                let (components, party) = (components(element), p.party());
                let mut sums = [0; SUMS];
                sums[..2].copy_from_slice(&[components[party], components[(party + 1) % 3]]);
                Tally::of(64, sums)
            };
            let tallies = [tally(element), tally(0), tally(element)];
            judged(p, &tallies)
        }));
        assert_eq!(found, [0, 1, 0, 0], "{element:x}");
    }
}
