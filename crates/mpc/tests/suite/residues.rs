//! Tests of residues that checks compute with: their summands add up to what they stand for.

use mpc::{Bilinear, Cost, Hold, Operand, Parts, Protocol, Result, Shift, Summands};
use testkit::{Random, Shared, run, usual_parties};

/// Returns the residues that all parties' summands add up to, and checks that parties that know the
/// same summand have the same.
fn joined(protocol: &str, all: &[Vec<Summands>]) -> Vec<Vec<u64>> {
    let tensors = 0..all[0].len();
    let joined = tensors.map(|tensor| {
        let of = |party: usize| &all[party % all.len()][tensor];
        for party in 0..all.len() {
            if let [_, second] = &of(party)[..] {
                assert_eq!(second, &of(party + 1)[0], "summand {}", party + 1);
            }
        }
        // Plain parties know the whole residue.
        let parties = if protocol == "plain" { 1 } else { all.len() };
        let n = of(0)[0].len();
        let residue = |i: usize| (0..parties).map(|party| of(party)[0][i]).sum::<u64>() % PRIME;
        (0..n).map(residue).collect()
    });
    joined.collect()
}

/// The prime of residues.
const PRIME: u64 = (1 << 31) - 1;

fn residue(x: i128) -> u64 {
    x.rem_euclid(i128::from(PRIME)) as u64
}

/// The edges of what can be lifted, and numbers of all magnitudes, in sharings of all kinds.
pub fn lifts(protocol: &str) {
    let mut generator = Random::new(11);
    let mut numbers: Vec<i64> = vec![0, 1, -1, (1 << 62) - 1, 1 - (1 << 62)];
    for bits in 1..62 {
        numbers.extend([1_i64 << bits, -(1_i64 << bits), generator.signed(bits)]);
    }
    for at in 0..4000 {
        numbers.push(generator.signed(if at % 2 == 0 { 62 } else { 61 }));
    }
    let words: Vec<u64> = numbers.iter().map(|x| *x as u64).collect();
    let found = run(protocol, usual_parties(protocol), |p| {
        let shared = Shared::input(p, 1, &words)?;
        let known = Shared::made(p, words.len(), |p, out| {
            p.trivial(&words, out);
            Ok(())
        })?;
        let few: Vec<&[u64]> = shared.slices().iter().map(|part| &part[..70]).collect();
        let tensors = [&shared.slices()[..], &known.slices(), &few];
        let checking = p.checking().expect("there are checks");
        checking.lift(&tensors)
    });
    let right: Vec<u64> = numbers.iter().map(|x| residue((*x).into())).collect();
    let joined = joined(protocol, &found);
    assert_eq!(joined[0], right);
    assert_eq!(joined[1], right);
    assert_eq!(joined[2], right[..70]);
}

/// Products of residues, of edges and of others.
pub fn products_of_residues(protocol: &str) {
    let mut generator = Random::new(12);
    let half = i64::from(i32::MAX) / 2;
    let mut numbers = vec![0, 1, -1, half, half + 1, -half, 2];
    numbers.extend((0..1600).map(|_| generator.signed(61)));
    let n = numbers.len() - 3;
    // All edges with each other.
    let sides: Vec<&[i64]> = (0..4).map(|from| &numbers[from % 3..][..n]).collect();
    let found = run(protocol, usual_parties(protocol), |p| {
        let mut shared = Vec::new();
        for side in &sides {
            let words: Vec<u64> = side.iter().map(|x| *x as u64).collect();
            shared.push(Shared::input(p, 0, &words)?);
        }
        let slices: Vec<Vec<&[u64]>> = shared.iter().map(Shared::slices).collect();
        let tensors: Vec<Parts> = slices.iter().map(Vec::as_slice).collect();
        let checking = p.checking().expect("there are checks");
        let mut factors = checking.lift(&tensors)?;
        for summands in &mut factors[3] {
            summands.truncate(5);
        }
        checking.multiply(&factors, &[[0, 1], [2, 2], [3, 3], [1, 0]])
    });
    let product = |x: &[i64], y: &[i64]| -> Vec<u64> {
        let pairs = x.iter().zip(y);
        pairs
            .map(|(x, y)| residue(i128::from(*x) * i128::from(*y)))
            .collect()
    };
    let joined = joined(protocol, &found);
    assert_eq!(joined[0], product(sides[0], sides[1]));
    assert_eq!(joined[1], product(sides[2], sides[2]));
    assert_eq!(joined[2], product(&sides[3][..5], &sides[3][..5]));
    assert_eq!(joined[3], joined[0]);
}

/// What operations of checks cost, as docs/internals/protocols.md says: bits for each element, and
/// rounds. They are a lift, a product of residues, what a truncation takes more if it is checked,
/// and a hold. The bits of a hold are without those of all numbers together.
pub fn costs_are_as_written(protocol: &str, written: [[u64; 2]; 4], of_all: u64) {
    const N: usize = 192 * 64;
    // Parties count a round more or less, since they do not begin at once.
    const TIMES: u64 = 10;
    type Work = fn(&mut dyn Protocol, &Shared, &Summands) -> Result<()>;
    fn product(p: &mut dyn Protocol, x: &Shared) -> Result<()> {
        let (x, map) = (x.slices(), Bilinear::Elementwise { n: N });
        let operand = || Operand::once(&x);
        let shift = Shift::new(16);
        Shared::made(p, N, |p, out| {
            p.bilinear(&map, operand(), operand(), shift, out)
        })
        .map(drop)
    }
    let work: [Work; 5] = [
        |p, x, _| {
            let checking = p.checking().expect("there are checks");
            checking.lift(&[&x.slices()]).map(drop)
        },
        |p, _, residues| {
            let checking = p.checking().expect("there are checks");
            let factor = residues.clone();
            checking.multiply(&[factor], &[[0, 0]]).map(drop)
        },
        |p, x, _| product(p, x),
        |p, x, _| {
            p.checking().expect("there are checks").keep();
            product(p, x)
        },
        |p, x, _| {
            let x = x.slices();
            let hold = Hold {
                x: &x,
                width: 40,
                group: 0,
            };
            let checking = p.checking().expect("there are checks");
            checking.tallies(&[hold]).map(drop)
        },
    ];
    let found = run(protocol, usual_parties(protocol), |p| {
        let x = Shared::input(p, 0, &vec![77; N])?;
        let checking = p.checking().expect("there are checks");
        let residues = checking.lift(&[&x.slices()])?.swap_remove(0);
        let mut costs = Vec::new();
        for work in work {
            p.verify()?;
            let before = p.channel().meter().totals();
            for _ in 0..TIMES {
                work(p, &x, &residues)?;
            }
            let after = p.channel().meter().totals();
            costs.push(Cost {
                rounds: (after.rounds - before.rounds) / TIMES,
                bits: 8 * (after.payload_bytes - before.payload_bytes) / TIMES,
            });
        }
        Ok(costs)
    });
    let of = |at: usize| -> [u64; 2] {
        let parties = || found.iter().map(|costs| &costs[at]);
        let rounds = parties().map(|cost| cost.rounds).max();
        [
            parties().map(|cost| cost.bits).sum(),
            rounds.expect("parties"),
        ]
    };
    let [lift, multiply, usual, kept, hold] = [0, 1, 2, 3, 4].map(of);
    let more = [kept[0] - usual[0], kept[1] - usual[1]];
    let hold = [hold[0] - of_all, hold[1]];
    let each = [lift, multiply, more, hold].map(|[bits, rounds]| {
        assert_eq!(bits % N as u64, 0);
        [bits / N as u64, rounds]
    });
    assert_eq!(each, written);
}
