//! Tests of orderly ends while unneeded work is under way.

use crate::session::{LONG, Member, dealer, in_memory, party, run};
use kernels::planes::words_of;
use mpc::{Bilinear, Expectation, Operand, Protocol, Result, Shift};
use net::Mesh;
use net::tcp::{Identity, Listener, connect};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::{Random, Shared};

/// Runs a few operations of all kinds, which leave work that was made ahead.
fn some_work(p: &mut dyn Protocol, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    for _ in 0..random.word() % 6 {
        let n = 1 + random.word() as usize % 3000;
        let x = Shared::input(p, 0, &vec![3; n])?;
        let y = Shared::input(p, 1, &vec![5; n])?;
        let bit = p.trivial_bits(&vec![0; words_of(n)], 1, n);
        let map = Bilinear::Elementwise { n };
        match random.word() % 5 {
            0 => drop(x.bilinear(p, &map, &y, Shift::new(16))?),
            1 => drop(p.sign(&x.slices(), 64)?),
            2 => drop(x.times_bit(p, &bit)?),
            3 => drop(p.and(&bit, &bit)?),
            _ => {
                let name = Some(random.word() % 3 + 10 * n as u64);
                for _ in 0..2 {
                    Shared::made(p, n, |p, out| {
                        let (x, y) = (x.slices(), y.slices());
                        p.bilinear(
                            &map,
                            Operand { parts: &x, name },
                            Operand::once(&y),
                            None,
                            out,
                        )
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// Asserts that all members end without an error, and soon.
fn assert_end_in_order(ends: Vec<Result<()>>, started: Instant) {
    for (who, end) in ends.into_iter().enumerate() {
        end.unwrap_or_else(|error| panic!("member {who}: {error}"));
    }
    assert!(
        started.elapsed() < LONG / 6,
        "the end took {:?}",
        started.elapsed()
    );
}

#[test]
fn two_hundred_short_sessions_end_in_order() {
    for seed in 0..200 {
        let parties = 2 + seed as usize % 2;
        let mut members: Vec<Member> = (0..parties)
            .map(|_| party(move |p| some_work(p, seed)))
            .collect();
        members.push(dealer());
        let started = Instant::now();
        assert_end_in_order(in_memory(LONG, members), started);
    }
}

/// Announces work by its shapes. Returns what it takes.
fn expect(p: &mut dyn Protocol, seed: u64) -> Result<Expectation> {
    let correlated = p.correlated().expect("the protocol uses correlations");
    let mut rehearsal = correlated
        .rehearsal()
        .expect("a rehearsal is possible with a dealer");
    some_work(rehearsal.protocol(), seed)?;
    let wanted = rehearsal.wanted();
    let correlated = p.correlated().expect("the protocol uses correlations");
    assert!(correlated.expect(&wanted));
    Ok(wanted)
}

/// The program takes what was announced, half of it, or something else. What follows is right, and
/// no party waits for another.
#[test]
fn sessions_with_expectations_end_in_order_whether_they_come_true_or_not() {
    for seed in 0..60 {
        let parties = 2 + seed as usize % 2;
        let program = move |p: &mut dyn Protocol| {
            let first = expect(p, seed)?;
            some_work(p, seed)?;
            let other = expect(p, seed + 1)?;
            some_work(p, seed + 2)?;
            for (kept, work) in [(&first, seed), (&other, seed + 1), (&first, seed + 1)] {
                let correlated = p.correlated().expect("the protocol uses correlations");
                assert!(correlated.expect(kept) || !kept.is_lasting());
                some_work(p, work)?;
            }
            if seed % 3 > 0 {
                p.correlated()
                    .expect("the protocol uses correlations")
                    .expect_no_more();
            }
            some_work(p, seed + 3)?;
            let n = 100;
            let x = Shared::input(p, 0, &vec![3; n])?;
            let y = Shared::input(p, 1, &vec![5; n])?;
            let product = x.bilinear(p, &Bilinear::Elementwise { n }, &y, None)?;
            assert_eq!(product.open(p)?, vec![15; n]);
            expect(p, seed).map(drop)
        };
        let mut members: Vec<Member> = (0..parties).map(|_| party(program)).collect();
        members.push(dealer());
        let started = Instant::now();
        assert_end_in_order(in_memory(LONG, members), started);
    }
}

/// Creates meshes over TCP; the last is the dealer's.
fn meshes(parties: usize) -> Vec<Mesh> {
    let members = parties + 1;
    let made: Vec<_> = (0..members)
        .map(|member| net::certificates::generate(member, 1).expect("the certificate is generated"))
        .collect();
    let certificates: Vec<String> = made.iter().map(|m| m.certificate_pem.clone()).collect();
    let listeners: Vec<Listener> = (0..members)
        .map(|_| Listener::bind("127.0.0.1:0").expect("a port is free"))
        .collect();
    let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .into_iter()
            .zip(made)
            .enumerate()
            .map(|(member, (listener, made))| {
                let identity = Identity {
                    certificates: certificates.clone(),
                    key: made.key_pem,
                };
                let addresses = &addresses;
                scope.spawn(move || {
                    connect(listener, member, addresses, true, identity, LONG, "test")
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic").expect("no set-up error"))
            .collect()
    })
}

#[test]
fn short_sessions_over_tcp_end_in_order() {
    for seed in 0..20 {
        let parties = 2 + seed as usize % 2;
        let mut members: Vec<Member> = (0..parties)
            .map(|_| party(move |p| some_work(p, seed)))
            .collect();
        members.push(dealer());
        let meshes = meshes(parties);
        let started = Instant::now();
        assert_end_in_order(run(meshes, members), started);
    }
}

/// Work that was ordered ahead arrives after party 0 has finished and left. This is no fault, and
/// the others, who are not done yet, continue.
#[test]
fn what_nobody_awaits_disturbs_nobody() {
    let first: Member = Arc::new(|mesh| mesh.close());
    let second: Member = Arc::new(|mesh| {
        let mut channel = mesh.channel(1);
        channel.begin("news");
        channel.receive(mesh.dealer().expect("the session has a dealer"), 1)?;
        drop(channel);
        mesh.close()
    });
    let dealer: Member = Arc::new(|mesh| {
        let mut channel = mesh.channel(1);
        channel.begin("news");
        // The network accepts the first messages.
        let mut sent = 0;
        while channel.send_unless_finished(0, vec![0; 100_000])? {
            std::thread::sleep(Duration::from_millis(5));
            sent += 1;
            assert!(sent < 2000, "party 0 did not finish");
        }
        channel.send(1, vec![0])?;
        drop(channel);
        mesh.close()
    });
    for _ in 0..5 {
        let members = [&first, &second, &dealer].map(Arc::clone).into();
        let started = Instant::now();
        assert_end_in_order(run(meshes(2), members), started);
    }
}
