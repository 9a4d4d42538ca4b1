//! Declared rounds and bits against the meter.

use mpc::{Bilinear, Cost, Operand, Operation, Protocol, Receiver, Result};
use ring::planes::words_of;
use testkit::{Shared, run, usual_parties};

fn perform(p: &mut dyn Protocol, operation: Operation) -> Result<()> {
    let size = |n: u64| usize::try_from(n).expect("a test's size");
    let out = |p: &mut dyn Protocol, n: u64| Shared::zeros(p, size(n));
    let (Operation::Share { n }
    | Operation::Reveal { n, .. }
    | Operation::Bilinear { n, .. }
    | Operation::Truncate { n, .. }
    | Operation::And { n, .. }
    | Operation::Sign { n, .. }
    | Operation::EqualZero { n, .. }
    | Operation::BitMultiply { n }
    | Operation::BitToRing { n }
    | Operation::ToBinary { n, .. }) = operation;
    let (x, y) = (out(p, n), out(p, n));
    let mut result = out(p, n);
    let mut result: Vec<&mut [u64]> = result.0.iter_mut().map(Vec::as_mut_slice).collect();
    let bits = |p: &mut dyn Protocol, width: u64| {
        p.trivial_bits(
            &vec![0; size(width) * words_of(size(n))],
            size(width),
            size(n),
        )
    };
    match operation {
        Operation::Share { n } => {
            let values = vec![1; size(n)];
            p.share(0, (p.party() == 0).then_some(&values), size(n), &mut result)
        }
        Operation::Reveal { to, .. } => p.reveal(&x.slices(), to).map(drop),
        Operation::Bilinear { n, truncate, .. } => {
            let (x, y) = (x.slices(), y.slices());
            let map = Bilinear::Elementwise { n: size(n) };
            p.bilinear(
                &map,
                Operand::once(&x),
                Operand::once(&y),
                truncate,
                &mut result,
            )
        }
        Operation::Truncate { bits, .. } => p.truncate(&x.slices(), bits, &mut result),
        Operation::And { width, .. } => {
            let (a, b) = (bits(p, width), bits(p, width));
            p.and(&a, &b).map(drop)
        }
        Operation::Sign { width, .. } => p.sign(&x.slices(), size(width)).map(drop),
        Operation::EqualZero { width, .. } => p.equal_zero(&x.slices(), size(width)).map(drop),
        Operation::BitMultiply { .. } => {
            let bit = bits(p, 1);
            p.bit_multiply(&bit, &x.slices(), &mut result)
        }
        Operation::BitToRing { .. } => {
            let bit = bits(p, 1);
            p.bit_to_ring(&bit, &mut result)
        }
        Operation::ToBinary { width, .. } => p.to_binary(&x.slices(), size(width)).map(drop),
    }
}

fn product(n: u64, truncate: u32) -> Operation {
    Operation::Bilinear {
        left: n,
        right: n,
        n,
        truncate,
    }
}

fn operations(n: u64) -> Vec<Operation> {
    let mut all = vec![
        Operation::Share { n },
        Operation::Reveal {
            n,
            to: Receiver::All,
        },
        Operation::Reveal {
            n,
            to: Receiver::One(1),
        },
        product(n, 0),
        Operation::BitMultiply { n },
        Operation::BitToRing { n },
    ];
    for bits in [1, 16, 33] {
        all.extend([product(n, bits), Operation::Truncate { n, bits }]);
    }
    for width in [2, 5, 6, 8, 17, 32, 64] {
        all.extend([
            Operation::And { n, width },
            Operation::Sign { n, width },
            Operation::EqualZero { n, width },
            Operation::ToBinary { n, width },
        ]);
    }
    all
}

pub fn declared_is_measured(protocol: &str) {
    for n in [192, 192 * 64] {
        for operation in operations(n) {
            let results = run(protocol, usual_parties(protocol), |p| {
                let before = p.channel().meter().totals();
                perform(p, operation)?;
                let after = p.channel().meter().totals();
                Ok((
                    p.cost(operation),
                    after.rounds - before.rounds,
                    after.payload_bytes - before.payload_bytes,
                ))
            });
            let measured = Cost {
                rounds: results
                    .iter()
                    .map(|(_, rounds, _)| *rounds)
                    .max()
                    .expect("a party"),
                bits: 8 * results.iter().map(|(_, _, bytes)| bytes).sum::<u64>(),
            };
            assert_eq!(measured, results[0].0, "{operation:?} of {protocol}");
        }
    }
}
