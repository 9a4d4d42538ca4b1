//! Measurement of the traffic on each link, including the dealer's.

use mpc::additive::Additive;
use mpc::correlations::dealer::Dealer;
use mpc::{Protocol, Result};
use std::sync::Mutex;
use testkit::run_opened;

/// Words of payload that are made and sent for one run only.
pub struct Links {
    /// Words sent from each party to the others.
    pub sent: Vec<u64>,
    /// Words sent from the dealer to each party.
    pub dealt: Vec<u64>,
    /// Words of party 0's requests to the dealer, the same for any number of elements.
    pub asked: u64,
}

impl Links {
    /// The number of bits between the parties and from the dealer.
    pub fn bits(&self) -> u64 {
        64 * (self.sent.iter().sum::<u64>() + self.dealt.iter().sum::<u64>())
    }
}

/// Measures a program of additive sharing with a dealer.
pub fn measured(parties: usize, program: impl Fn(&mut dyn Protocol) -> Result<()> + Sync) -> Links {
    let dealt = Mutex::new(vec![0; parties]);
    let dealt = std::sync::Arc::new(dealt);
    let readings = run_opened(
        parties,
        Some(&|mesh| Dealer::new(mesh, testkit::device())?.serve()),
        |mesh| {
            let (me, dealt) = (mesh.party(), std::sync::Arc::clone(&dealt));
            mpc::open_exactly(mesh, testkit::device(), move |channel, _| {
                channel.set_tap(Box::new(move |_, _, words| {
                    dealt.lock().expect("no party panicked")[me] += words.len() as u64;
                }));
            })
        },
        |p: &mut Additive| {
            let asked = |p: &mut Additive| {
                let correlated = p.correlated().expect("additive sharing uses correlations");
                correlated.reading().payload_bytes / 8
            };
            let before = (p.channel().meter().totals().payload_bytes, asked(p));
            program(p)?;
            let sent = p.channel().meter().totals().payload_bytes - before.0;
            Ok((sent / 8, asked(p) - before.1))
        },
    );
    let dealt = dealt.lock().expect("no party panicked").clone();
    assert!(readings[1..].iter().all(|(_, asked)| *asked == 0));
    Links {
        sent: readings.iter().map(|(sent, _)| *sent).collect(),
        dealt,
        asked: readings[0].1,
    }
}

mod tests {
    use super::measured;
    use mpc::{Bilinear, Compared, Protocol, Result, Shift};
    use testkit::Shared;

    /// Runs operations of all kinds, `times` times, on n elements.
    fn work(p: &mut dyn Protocol, times: usize, n: usize) -> Result<()> {
        let (x, y) = (Shared::input(p, 0, &vec![3; n])?, Shared::zeros(p, n));
        for _ in 0..times {
            let map = Bilinear::Elementwise { n };
            x.bilinear(p, &map, &y, Shift::new(16))?;
            let map = Bilinear::Matrix {
                batch: 1,
                m: 1,
                k: n,
                n: 1,
            };
            x.bilinear(p, &map, &y, None)?;
            Shared::made(p, n, |p, out| {
                let compared = Compared::guarded(24, 10)?;
                p.rectify(&x.slices(), None, compared, out).map(drop)
            })?;
            p.equal_zero(&x.slices(), 64)?;
            p.to_binary(&x.slices(), 64)?;
        }
        Ok(())
    }

    /// Of what once went to one party, the dealer's busiest link carries one n-th, plus a job's
    /// rounding: 64 elements of a batch, one of a product.
    #[test]
    fn the_dealers_links_carry_as_much_each() {
        for parties in [2, 3, 5] {
            for (times, n) in [(1, 64), (3, 1000), (1, 9600)] {
                let links = measured(parties, |p| work(p, times, n));
                let all: u64 = links.dealt.iter().sum();
                let busiest = *links.dealt.iter().max().expect("at least one party");
                // All columns of a batch of 64 for each operation, and one element of the product.
                let one = measured(parties, |p| work(p, times, 64));
                let rounding: u64 = one.dealt.iter().sum();
                assert!(all > 0);
                assert!(
                    busiest <= all / parties as u64 + rounding,
                    "{busiest} of {all} among {parties}, rounding {rounding}"
                );
                if n == 9600 {
                    let most = all.div_ceil(parties as u64) + all / 100;
                    assert!(busiest <= most, "{busiest} of {all} among {parties}");
                }
            }
        }
    }
}
