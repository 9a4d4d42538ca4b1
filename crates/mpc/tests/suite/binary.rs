use super::{SIZES, agreed, bit, specified, values};
use kernels::planes::words_of;
use mpc::{Bits, Join, Protocol, Recipient};
use testkit::{Random, Shared, run, usual_parties};

pub fn ands(protocol: &str) {
    for n in SIZES {
        let mut random = Random::new(n as u64);
        let (x, y) = (random.words(5 * words_of(n)), random.words(5 * words_of(n)));
        let expected: Vec<u64> = x.iter().zip(&y).map(|(x, y)| x & y).collect();
        let opened = run(protocol, usual_parties(protocol), |p| {
            let x = p.share_bits(0, (p.party() == 0).then_some(&x), 5, n)?;
            let y = p.share_bits(1, (p.party() == 1).then_some(&y), 5, n)?;
            let z = p.and(&x, &y)?;
            Ok(p.reveal_bits(&z, Recipient::All)?.expect("opened to all"))
        });
        assert_eq!(specified(agreed(opened), n), specified(expected, n));
    }
}

/// Products of several shapes in one round, where each factor has none to three others.
pub fn joins(protocol: &str) {
    let shapes = [
        (1, 1, 1),
        (5, 3, 2),
        (64, 1, 3),
        (2, 64, 0),
        (3, 1000, 1),
        (1, 130, 2),
        (7, 1536, 1),
    ];
    let mut random = Random::new(12);
    let mut values = |(width, n, _): (usize, usize, usize)| random.words(width * words_of(n));
    let lefts = shapes.map(&mut values);
    let rights = shapes.map(|shape| (0..shape.2).map(|_| values(shape)).collect::<Vec<_>>());
    let opened = run(protocol, usual_parties(protocol), |p| {
        let mut share = |planes: &[u64], width, n| {
            let mine = (p.party() == 1).then_some(planes);
            p.share_bits(1, mine, width, n)
        };
        let mut shared = Vec::new();
        for ((left, rights), (width, n, _)) in lefts.iter().zip(&rights).zip(shapes) {
            let left = share(left, width, n)?;
            let rights = rights.iter().map(|right| share(right, width, n));
            shared.push((left, rights.collect::<mpc::Result<Vec<_>>>()?));
        }
        let joins: Vec<Join> = shared
            .iter()
            .map(|(left, rights)| Join::new(left, rights.iter().collect()))
            .collect();
        let messages = |p: &mut dyn Protocol| p.channel().meter().totals().frames;
        let before = messages(p);
        let products = p.and_all(&joins)?;
        let most = p.parties() as u64 - 1;
        assert!(
            messages(p) - before <= most,
            "the products need more than one message to each peer"
        );
        let open = |bits: &Bits| Ok(p.reveal_bits(bits, Recipient::All)?.expect("opened to all"));
        products.iter().map(open).collect::<mpc::Result<Vec<_>>>()
    });
    let mut found = agreed(opened).into_iter();
    for ((left, rights), (_, n, _)) in lefts.iter().zip(&rights).zip(shapes) {
        for right in rights {
            let expected = left.iter().zip(right).map(|(a, b)| a & b).collect();
            let found = found.next().expect("each pair has a product");
            assert_eq!(specified(found, n), specified(expected, n));
        }
    }
    assert_eq!(found.next(), None);
}

pub fn takes_apart(protocol: &str) {
    for width in [1, 2, 3, 4, 5, 8, 16, 31, 33, 64] {
        let x = values(63, 3000, width as u64);
        let planes = agreed(run(protocol, usual_parties(protocol), |p| {
            let x = Shared::input(p, 0, &x)?;
            let bits = p.to_binary(&x.slices(), width)?;
            Ok(p.reveal_bits(&bits, Recipient::All)?
                .expect("opened to all"))
        }));
        let stride = words_of(x.len());
        for (i, x) in x.iter().enumerate() {
            for j in 0..width {
                assert_eq!(
                    bit(&planes[j * stride..], i),
                    x >> j & 1,
                    "bit {j} of {x} at width {width}"
                );
            }
        }
    }
}

pub fn puts_together(protocol: &str) {
    for (width, n) in [(1, 1), (64, 1), (3, 21), (8, 100), (5, 128), (64, 130)] {
        let planes = Random::new(8).words(width * words_of(n));
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let bits = p.share_bits(0, (p.party() == 0).then_some(&planes), width, n)?;
            Shared::made(p, n, |p, out| {
                mpc::functions::binary_to_additive(p, &bits, out)
            })?
            .open(p)
        }));
        let stride = words_of(n);
        for (i, found) in found.iter().enumerate() {
            let expected = (0..width).fold(0, |sum, j| sum | bit(&planes[j * stride..], i) << j);
            assert_eq!(*found, expected);
        }
    }
}

pub fn bit_products(protocol: &str) {
    for n in SIZES.into_iter().chain([300_000]) {
        let mut random = Random::new(n as u64);
        let (bits, x) = (random.words(words_of(n)), random.words(n));
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let bits = p.share_bits(1, (p.party() == 1).then_some(&bits), 1, n)?;
            Shared::input(p, 0, &x)?.times_bit(p, &bits)?.open(p)
        }));
        for i in 0..n {
            assert_eq!(found[i], bit(&bits, i) * x[i]);
        }
    }
}

pub fn bits_to_ring(protocol: &str) {
    for n in SIZES {
        let bits = Random::new(n as u64).words(words_of(n));
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let bits = p.share_bits(1, (p.party() == 1).then_some(&bits), 1, n)?;
            Shared::made(p, n, |p, out| p.bit_to_ring(&bits, out))?.open(p)
        }));
        for (i, found) in found.iter().enumerate() {
            assert_eq!(*found, bit(&bits, i));
        }
    }
}
