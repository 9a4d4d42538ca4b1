//! Traffic for making correlations, by the meter. Products are encrypted if that sends less, and
//! only then.

use kernels::convolution::Convolution;
use lattice::{
    Layout, PUBLIC_KEY_WORDS, Prices, Tiling, answer_words, ciphertext_words, packing_key_words,
};
use mpc::{Bilinear, Name, Operand, Protocol, Result};
use testkit::{Shared, run};

fn matrix(m: usize, k: usize, n: usize) -> Bilinear {
    Bilinear::Matrix { batch: 1, m, k, n }
}

fn convolution(groups: usize, channels: usize, side: usize) -> Bilinear {
    Bilinear::Convolution(Convolution {
        batch: 2,
        groups,
        in_channels: channels,
        out_channels: channels,
        input: [side, side],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
    })
}

/// Returns the bytes that this party's source has sent so far.
fn sent(p: &mut dyn Protocol) -> u64 {
    let correlated = p.correlated().expect("additive sharing uses correlations");
    correlated.reading().payload_bytes
}

/// Computes a product, whose left operand may have a name.
fn multiply(p: &mut dyn Protocol, map: &Bilinear, name: Option<Name>) -> Result<()> {
    let (left, right, n) = map.lengths();
    let (x, y) = (Shared::zeros(p, left), Shared::zeros(p, right));
    let product = Shared::made(p, n, |p, out| {
        let (x, y) = (x.slices(), y.slices());
        p.bilinear(
            map,
            Operand { parts: &x, name },
            Operand::once(&y),
            None,
            out,
        )
    })?;
    product.open(p).map(drop)
}

/// Returns what each party sends for one product after another, for a source.
fn each(source: &str, parties: usize, steps: &[(Bilinear, Option<Name>)]) -> Vec<Vec<u64>> {
    run(&format!("additive_{parties}_{source}"), parties, |p| {
        let mut before = sent(p);
        let mut costs = Vec::new();
        for (map, name) in steps {
            multiply(p, map, *name)?;
            let after = sent(p);
            costs.push(after - before);
            before = after;
        }
        Ok(costs)
    })
}

/// Returns what each party sends for one product, which is the same for all.
fn of_one(source: &str, parties: usize, map: Bilinear) -> u64 {
    let costs = each(source, parties, &[(map, None)]);
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
    costs[0][0]
}

/// Returns the bytes of a message each way, with keys for packing that are missing, with scalars
/// and with results. The keys are not missing any more.
fn encrypted(m: usize, k: usize, n: usize, prices: &mut Prices) -> [u64; 3] {
    let layout = Layout::Matrices(Tiling::new(m, k, n, prices), [m, k, n]);
    let results = answer_words(&layout, 0..layout.columns());
    let missing = layout.missing(prices, layout.rows() * layout.columns());
    prices.exchanged(&missing);
    let keys = match missing.len() {
        0 => 0,
        steps => packing_key_words(steps),
    };
    [keys, ciphertext_words(&layout), results].map(|words| 8 * words as u64)
}

#[test]
fn large_products_are_encrypted() {
    for map in [
        matrix(64, 256, 64),
        matrix(300, 256, 20),
        convolution(1, 16, 12),
        convolution(2, 16, 12),
    ] {
        let (transferred, encrypted) = (of_one("ot", 2, map), of_one("he", 2, map));
        assert!(4 * encrypted < transferred, "{map:?}");
    }
}

#[test]
fn small_products_are_transferred() {
    for map in [
        matrix(1, 1, 1),
        matrix(3, 5, 7),
        matrix(1, 100, 1),
        matrix(100, 1, 2),
        convolution(1, 1, 4),
        Bilinear::Elementwise { n: 10_000 },
    ] {
        let (transferred, sent) = (of_one("ot", 2, map), of_one("he", 2, map));
        assert!(sent > 0);
        assert_eq!(sent, transferred, "{map:?}");
    }
}

#[test]
fn an_encrypted_product_is_a_message_each_way_to_every_other_party() {
    let prices = Prices::of(None);
    for (m, k, n) in [(64, 256, 64), (8, 128, 64)] {
        let [keys, scalars, results] = encrypted(m, k, n, &mut prices.clone());
        assert_eq!(keys > 0, m == 64, "keys that few answers do not repay");
        for parties in [2, 3] {
            let links = parties as u64 - 1;
            let cost = of_one("he", parties, matrix(m, k, n));
            assert_eq!(cost, links * (keys + scalars + results));
        }
    }
}

#[test]
fn keys_for_packing_are_exchanged_once() {
    let sizes = [(64, 256, 64), (128, 256, 64), (64, 256, 64)];
    let steps = sizes.map(|(m, k, n)| (matrix(m, k, n), None));
    let mut prices = Prices::of(None);
    let expected = sizes.map(|(m, k, n)| encrypted(m, k, n, &mut prices));
    assert!(expected[0][0] > 0 && expected[2][0] == 0);
    for costs in each("he", 2, &steps) {
        assert_eq!(costs, expected.map(|parts| parts.iter().sum::<u64>()));
    }
}

#[test]
fn encryption_is_set_up_by_one_public_key() {
    for parties in [2, 3] {
        let set_up = |source| {
            run(&format!("additive_{parties}_{source}"), parties, |p| {
                Ok(sent(p))
            })
        };
        for (encrypting, transferring) in set_up("he").into_iter().zip(set_up("ot")) {
            let keys = (parties - 1) * (PUBLIC_KEY_WORDS + 1);
            assert_eq!(encrypting - transferring, 8 * keys as u64);
        }
    }
}

#[test]
fn kept_scalars_are_encrypted_once() {
    let (m, k, n) = (64, 256, 64);
    let mut prices = Prices::of(None);
    let [keys, scalars, results] = encrypted(m, k, n, &mut prices);
    let [_, others, of_others] = encrypted(m, k, n, &mut prices);
    let steps = [Some(1), Some(1), Some(1), Some(2)].map(|name| (matrix(m, k, n), name));
    for costs in each("he", 2, &steps) {
        assert_eq!(costs[0], keys + scalars + results);
        // The next product is made ahead, and may be counted already.
        let by_then = |products: u64| keys + scalars + products * results;
        let sent: u64 = costs[..2].iter().sum();
        assert!([by_then(2), by_then(3)].contains(&sent), "{costs:?}");
        let sent: u64 = costs[..3].iter().sum();
        assert!([by_then(3), by_then(4)].contains(&sent), "{costs:?}");
        // All of that comes before another mask, whose scalars are sent.
        let sent: u64 = costs.iter().sum();
        assert_eq!(sent, by_then(4) + others + of_others, "{costs:?}");
    }
}
