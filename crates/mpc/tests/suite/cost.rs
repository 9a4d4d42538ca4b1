//! Tests of declared rounds and bits against the meter.

use super::takes_transfers;
use kernels::planes::words_of;
use mpc::{
    Addend, Affine, Bilinear, Compared, Cost, Join, Opening, Operand, Operation, Parts, Protocol,
    Recipient, Result, Shift, Tally, Term,
};
use testkit::{Shared, run, usual_parties};

pub(super) fn perform(p: &mut dyn Protocol, operation: Operation) -> Result<()> {
    let size = |n: u64| usize::try_from(n).expect("the size fits in usize");
    let out = |p: &mut dyn Protocol, n: u64| Shared::zeros(p, size(n));
    let (Operation::Share { n }
    | Operation::Reveal { n, .. }
    | Operation::ShareBits { n, .. }
    | Operation::RevealBits { n, .. }
    | Operation::Bilinear { n, .. }
    | Operation::Truncate { n, .. }
    | Operation::And { n, .. }
    | Operation::Sign { n, .. }
    | Operation::EqualZero { n, .. }
    | Operation::BitMultiply { n }
    | Operation::BitToRing { n }
    | Operation::Affine { n, .. }
    | Operation::RectifiedAffine { n, .. }
    | Operation::Rectify { n, .. }
    | Operation::InRange { n }
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
        Operation::ShareBits { width, .. } => {
            let planes = vec![1; size(width) * words_of(size(n))];
            let mine = (p.party() == 0).then_some(&planes[..]);
            p.share_bits(0, mine, size(width), size(n)).map(drop)
        }
        Operation::RevealBits { width, to, .. } => {
            let x = bits(p, width);
            p.reveal_bits(&x, to).map(drop)
        }
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
        Operation::Affine { n, shift, .. } => {
            let (x, y) = (x.slices(), y.slices());
            let terms = [elementwise(size(n), &x, &y)];
            p.affine(&sum(&terms, &[Addend::whole(&x)], shift), &mut result)
        }
        Operation::RectifiedAffine {
            n, shift, compared, ..
        } => {
            let (x, y) = (x.slices(), y.slices());
            let terms = [elementwise(size(n), &x, &y)];
            let addends = [Addend::whole(&x)];
            p.rectified_affine(&sum(&terms, &addends, shift), compared, &mut result)
                .map(drop)
        }
        Operation::Rectify { compared, .. } => p
            .rectify(&x.slices(), None, compared, &mut result)
            .map(drop),
        Operation::InRange { n } => {
            let tallies: Vec<Tally> = (0..n).map(|_| Tally::new(7)).collect();
            p.in_range(&tallies.iter().collect::<Vec<_>>()).map(drop)
        }
        Operation::Truncate { shift, .. } => p.truncate(&x.slices(), shift, &mut result),
        Operation::And { width, rights, .. } => {
            let (a, b) = (bits(p, width), bits(p, width));
            p.and_all(&[Join::new(&a, vec![&b; size(rights)])])
                .map(drop)
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

fn elementwise<'a>(n: usize, x: Parts<'a>, y: Parts<'a>) -> Term<'a> {
    let map = Bilinear::Elementwise { n };
    let [x, y] = [x, y].map(Operand::once);
    Term { map, x, y }
}

fn sum<'a>(terms: &'a [Term<'a>], addends: &'a [Addend<'a>], shift: Shift) -> Affine<'a> {
    Affine {
        terms,
        addends,
        shift,
    }
}

fn product(n: u64, truncate: Option<Shift>) -> Operation {
    Operation::Bilinear {
        left: Opening::New(n),
        right: Opening::New(n),
        n,
        truncate,
    }
}

fn compared() -> [Compared; 7] {
    let guarded = |width, reach| Compared::guarded(width, reach).expect("a valid guard");
    let dropping =
        |compared: Compared, bits| compared.dropping(bits).expect("the bits can be dropped");
    [
        dropping(Compared::proved(64), 12),
        dropping(Compared::proved(20), 2),
        dropping(guarded(24, 10), 20),
        Compared::proved(64),
        Compared::proved(20),
        guarded(24, 10),
        guarded(40, 64),
    ]
}

fn operations(n: u64) -> Vec<Operation> {
    let mut all = vec![
        Operation::Share { n },
        Operation::Reveal {
            n,
            to: Recipient::All,
        },
        Operation::Reveal {
            n,
            to: Recipient::One(1),
        },
        product(n, None),
        Operation::BitMultiply { n },
        Operation::BitToRing { n },
    ];
    for bits in [1, 16, 33] {
        let shift = Shift::new(bits).expect("a valid shift");
        all.push(Operation::Truncate { n, shift });
        for shift in [shift, shift.of_narrow().expect("a valid narrow shift")] {
            all.push(product(n, Some(shift)));
            let [left, right] = [Opening::New(n); 2];
            all.push(Operation::Affine {
                left,
                right,
                n,
                shift,
            });
            for compared in compared() {
                all.push(Operation::RectifiedAffine {
                    left,
                    right,
                    n,
                    shift,
                    compared,
                });
            }
        }
    }
    all.extend(compared().map(|compared| Operation::Rectify { n, compared }));
    for width in [2, 5, 6, 8, 17, 32, 64] {
        all.extend([
            Operation::And {
                n,
                width,
                rights: 1,
            },
            Operation::And {
                n,
                width,
                rights: 3,
            },
            Operation::Sign { n, width },
            Operation::EqualZero { n, width },
            Operation::ToBinary { n, width },
            Operation::ShareBits { n, width },
        ]);
        for to in [Recipient::All, Recipient::One(1)] {
            all.push(Operation::RevealBits { n, width, to });
        }
    }
    all
}

/// Declared bits are exact if messages are whole words, and otherwise within a word per message,
/// for every number of elements.
pub fn declared_is_measured(protocol: &str) {
    // Many elements take long where each takes transfers or a proof.
    let is_slow = takes_transfers(protocol) || protocol.ends_with("_malicious");
    let sizes = if is_slow {
        &[1, 3, 64, 65, 192][..]
    } else {
        &[1, 2, 3, 31, 63, 64, 65, 191, 1000, 192 * 64]
    };
    for &n in sizes {
        check(protocol, &operations(n), n % 192 == 0, false);
    }
    if protocol == "additive_2_ot" {
        check(protocol, &[Operation::InRange { n: 63 }], true, true);
    }
    if !is_slow {
        // Together with the AND of all, a whole number of words.
        check(protocol, &[Operation::InRange { n: 191 }], true, true);
        check(protocol, &[Operation::InRange { n: 50 }], false, true);
    }
    // Rounds are counted from the start of a session, where all parties have taken the same rounds.
    // Without rotated roles, some chains are shorter by one.
    for operation in operations(1536) {
        check(protocol, &[operation], true, true);
    }
}

/// Checks the documented cost of a ReLU over all links: with 64 bits, and with 24 and a guard of
/// ten bits above them.
pub fn a_relu_is_as_written(protocol: &str, whole: [u64; 2], guarded: [u64; 2]) {
    const N: u64 = 192 * 64;
    let few = Compared::guarded(24, 10).expect("a valid guard");
    for (compared, [bits, rounds]) in [(Compared::proved(64), whole), (few, guarded)] {
        let operation = Operation::Rectify { n: N, compared };
        check(protocol, &[operation], true, true);
        let declared = run(protocol, usual_parties(protocol), |p| Ok(p.cost(operation)));
        let bits = bits * N;
        assert_eq!(declared[0], Cost { rounds, bits }, "{compared:?}");
    }
}

/// Checks all operations in one session.
fn check(protocol: &str, operations: &[Operation], exactly: bool, rounds_too: bool) {
    let results = run(protocol, usual_parties(protocol), |p| {
        let mut costs = Vec::new();
        for operation in operations {
            // An opening would verify what came before.
            p.verify()?;
            let before = p.channel().meter().totals();
            perform(p, *operation)?;
            let after = p.channel().meter().totals();
            let spent = Cost {
                rounds: after.rounds - before.rounds,
                bits: 8 * (after.payload_bytes - before.payload_bytes),
            };
            costs.push((p.cost(*operation), spent, after.frames - before.frames));
        }
        Ok(costs)
    });
    for (at, operation) in operations.iter().enumerate() {
        let parties = || results.iter().map(|costs| &costs[at]);
        let declared = parties().next().expect("at least one party").0;
        let rounds = parties().map(|(_, spent, _)| spent.rounds).max();
        let bits: u64 = parties().map(|(_, spent, _)| spent.bits).sum();
        let messages: u64 = parties().map(|(_, _, messages)| messages).sum();
        let of = format!("{operation:?} of {protocol}");
        if rounds_too {
            assert_eq!(rounds, Some(declared.rounds), "rounds: {of}");
        }
        if exactly {
            assert_eq!(bits, declared.bits, "bits: {of}");
        }
        let most = declared.bits + 63 * messages;
        let fits = (declared.bits..=most).contains(&bits);
        assert!(fits, "{bits} bits, not {declared:?} in {messages}: {of}");
    }
}
