//! Tests of declared rounds and bits of compositions against the meter.

use kernels::planes::words_of;
use mpc::integers::{self, Composition, Number};
use mpc::{Bits, Cost, Protocol, Result};
use testkit::{Shared, run, usual_parties};

fn perform(p: &mut dyn Protocol, composition: Composition) -> Result<()> {
    let size = |n: u64| usize::try_from(n).expect("the size fits in usize");
    let (Composition::Less { n, .. }
    | Composition::IsZero { n, .. }
    | Composition::Divide { n, .. }
    | Composition::DivideBy { n, .. }) = composition;
    let n = size(n);
    let bits = |p: &mut dyn Protocol, width: u64| -> Bits {
        p.trivial_bits(&vec![0; size(width) * words_of(n)], size(width), n)
    };
    let (x, y) = (Shared::zeros(p, n), Shared::zeros(p, n));
    let mut result = Shared::zeros(p, n);
    let mut result: Vec<&mut [u64]> = result.0.iter_mut().map(Vec::as_mut_slice).collect();
    match composition {
        Composition::Less { width, .. } => {
            let (x, y) = (bits(p, width), bits(p, width));
            integers::less(p, &x, &y).map(drop)
        }
        Composition::IsZero { width, .. } => {
            let x = bits(p, width);
            integers::is_zero(p, &x).map(drop)
        }
        Composition::Divide { width, signed, .. } => {
            let [x_bits, y_bits] = [bits(p, width), bits(p, width)];
            let [x, y] = [(&x, &x_bits), (&y, &y_bits)].map(|(words, bits)| (words.slices(), bits));
            let x = Number {
                words: &x.0,
                bits: x.1,
            };
            let y = Number {
                words: &y.0,
                bits: y.1,
            };
            integers::divide(p, x, y, signed, &mut result)
        }
        Composition::DivideBy {
            width,
            divisor,
            signed,
            ..
        } => integers::divide_by(p, &x.slices(), size(width), divisor, signed, &mut result),
    }
}

/// Lists all kinds, with every number of stages.
fn compositions(n: u64) -> Vec<Composition> {
    let mut all = Vec::new();
    for width in [1, 2, 3, 8, 33, 64] {
        all.extend([
            Composition::Less { n, width },
            Composition::IsZero { n, width },
        ]);
    }
    for (width, signed) in [
        (1, false),
        (8, false),
        (8, true),
        (23, false),
        (32, true),
        (62, false),
        (63, false),
        (64, false),
        (64, true),
    ] {
        all.push(Composition::Divide { n, width, signed });
    }
    let minus_three = 3_u64.wrapping_neg();
    for (width, divisor, signed) in [
        (8, 3, false),
        (8, 200, false),
        (32, 1, false),
        (32, 0, true),
        (32, 1000, true),
        (61, 3, false),
        (62, (1 << 59) - 1, false),
        (64, 1000, false),
        (64, minus_three, true),
        (64, 1 << 63, false),
        (64, 1 << 63, true),
    ] {
        all.push(Composition::DivideBy {
            n,
            width,
            divisor,
            signed,
        });
    }
    all
}

/// Declared bits are exact if messages are whole words, and otherwise within a word per message,
/// for every number of elements.
pub fn declared_is_measured(protocol: &str) {
    for n in [1, 65] {
        check(protocol, &compositions(n), false, false);
    }
    // Rounds are counted from the start of a session, where all parties have taken the same rounds.
    // Without rotated roles, some chains are shorter; additive sharing has no roles.
    let has_roles = protocol.contains("replicated");
    let n = if has_roles { 1536 } else { 192 };
    for composition in compositions(n) {
        check(protocol, &[composition], true, true);
    }
}

/// Checks all compositions in one session.
fn check(protocol: &str, compositions: &[Composition], exactly: bool, rounds_too: bool) {
    let results = run(protocol, usual_parties(protocol), |p| {
        let mut costs = Vec::new();
        for composition in compositions {
            let before = p.channel().meter().totals();
            perform(p, *composition)?;
            let after = p.channel().meter().totals();
            let spent = Cost {
                rounds: after.rounds - before.rounds,
                bits: 8 * (after.payload_bytes - before.payload_bytes),
            };
            let declared = integers::cost(p, *composition);
            costs.push((declared, spent, after.frames - before.frames));
        }
        Ok(costs)
    });
    for (at, composition) in compositions.iter().enumerate() {
        let parties = || results.iter().map(|costs| &costs[at]);
        let declared = parties().next().expect("at least one party").0;
        let rounds = parties().map(|(_, spent, _)| spent.rounds).max();
        let bits: u64 = parties().map(|(_, spent, _)| spent.bits).sum();
        let messages: u64 = parties().map(|(_, _, messages)| messages).sum();
        let of = format!("{composition:?} of {protocol}");
        if rounds_too {
            assert_eq!(rounds, Some(declared.rounds), "rounds: {of}");
        }
        let most = declared.bits + if exactly { 0 } else { 63 * messages };
        let fits = (declared.bits..=most).contains(&bits);
        assert!(fits, "{bits} bits, not {declared:?} in {messages}: {of}");
    }
}
