use super::{SIZES, agreed, bit, specified};
use kernels::planes::words_of;
use mpc::Recipient;
use testkit::{Random, Shared, run, usual_parties};

pub fn shares_and_reveals(protocol: &str) {
    let parties = usual_parties(protocol);
    for n in SIZES {
        let values = Random::new(n as u64).words(n);
        for owner in 0..parties {
            let opened = run(protocol, parties, |p| {
                let x = Shared::input(p, owner, &values)?;
                let all = x.open(p)?;
                let one = p.reveal(&x.slices(), Recipient::One(n % parties))?;
                assert_eq!(
                    one.is_some(),
                    p.party() == n % parties,
                    "the recipient alone must receive the value"
                );
                assert!(one.is_none_or(|one| one == all));
                Ok(all)
            });
            assert_eq!(agreed(opened), values);
        }
    }
}

pub fn public_values(protocol: &str) {
    let values = Random::new(1).words(100);
    let opened = run(protocol, usual_parties(protocol), |p| {
        let x = Shared::made(p, values.len(), |p, out| {
            p.trivial(&values, out);
            Ok(())
        })?;
        let planes = p.reveal_bits(&p.trivial_bits(&values[..6], 3, 128), Recipient::All)?;
        assert_eq!(planes.as_deref(), Some(&values[..6]));
        x.open(p)
    });
    assert_eq!(agreed(opened), values);
}

pub fn bits(protocol: &str) {
    for n in SIZES {
        for width in [1, 3, 64] {
            let planes = Random::new(n as u64).words(width * words_of(n));
            let opened = run(protocol, usual_parties(protocol), |p| {
                let owner = n % p.parties();
                let mut x =
                    p.share_bits(owner, (p.party() == owner).then_some(&planes), width, n)?;
                let y = p.share_bits(0, (p.party() == 0).then_some(&planes), width, n)?;
                let opened = p.reveal_bits(&x, Recipient::All)?.expect("opened to all");
                x.xor_assign(&y);
                let zero = p.reveal_bits(&x, Recipient::All)?.expect("opened to all");
                assert!(
                    (0..n).all(|i| bit(&zero, i) == 0),
                    "a value XOR itself is not zero"
                );
                Ok(opened)
            });
            assert_eq!(specified(agreed(opened), n), specified(planes, n));
        }
    }
}
