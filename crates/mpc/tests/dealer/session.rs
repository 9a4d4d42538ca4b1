//! Sessions whose members may fail.

use mpc::correlations::dealer::Dealer;
use mpc::{Bilinear, Error, Protocol, Result};
use net::{Channel, DEALER, Mesh};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use testkit::Shared;

/// A timeout for tests in which a member waits for one that never comes.
pub const SHORT: Duration = Duration::from_secs(2);
/// A timeout that only a failing test reaches.
pub const LONG: Duration = Duration::from_secs(60);

/// The work of a member on its end of the mesh, which dies with the work unless it is closed.
pub type Member = Arc<dyn Fn(Mesh) -> Result<()> + Send + Sync>;

/// Runs members on their meshes, the dealer last, and returns how each ended.
///
/// # Panics
/// If a member has not ended within twice the timeout and a few seconds.
pub fn run(meshes: Vec<Mesh>, members: Vec<Member>) -> Vec<Result<()>> {
    let until = Instant::now() + 2 * meshes[0].timeout() + Duration::from_secs(5);
    let ends: Vec<_> = meshes
        .into_iter()
        .zip(members)
        .map(|(mesh, member)| {
            let (sender, end) = channel();
            std::thread::spawn(move || {
                // Nothing receives any more if the test has failed.
                drop(sender.send(member(mesh)));
            });
            end
        })
        .collect();
    ends.into_iter()
        .enumerate()
        .map(|(member, end)| {
            let left = until.saturating_duration_since(Instant::now());
            end.recv_timeout(left).unwrap_or_else(|error| {
                panic!("member {member} does not end, or panicked: {error}")
            })
        })
        .collect()
}

/// Runs members over links in memory.
pub fn in_memory(timeout: Duration, members: Vec<Member>) -> Vec<Result<()>> {
    let parties = members.len() - 1;
    run(net::in_process::mesh_with_dealer(parties, timeout), members)
}

/// Returns a party that computes and closes in order.
pub fn party(program: impl Fn(&mut dyn Protocol) -> Result<()> + Send + Sync + 'static) -> Member {
    Arc::new(move |mesh| {
        let (settings, _) = testkit::setting("additive_2_dealer");
        let mut protocol = mpc::open(&settings, &mesh, &testkit::device(), true)?;
        program(&mut *protocol)?;
        protocol.channel().close()?;
        drop(protocol);
        mesh.close()
    })
}

/// Returns a dealer that works correctly.
pub fn dealer() -> Member {
    Arc::new(|mesh| {
        Dealer::new(&mesh, testkit::device())?.serve()?;
        mesh.close()
    })
}

/// Returns a dealer that answers by this function of its channel.
pub fn odd_dealer(serve: impl Fn(&mut Channel) -> Result<()> + Send + Sync + 'static) -> Member {
    Arc::new(move |mesh| {
        let mut channel = mesh.channel(1);
        channel.begin("key for the dealer");
        for party in 0..channel.parties() {
            channel.receive(party, 2)?;
        }
        serve(&mut channel)
    })
}

/// Returns the next number of products that party 0 requests from an odd dealer, in a program of
/// products only.
pub fn asked(channel: &mut Channel) -> Result<Option<usize>> {
    let job = channel.follow(0, 24)?;
    Ok(job.map(|words| {
        assert_eq!(
            (words[0], words[2]),
            (0, 0),
            "the job is not a batch of triples"
        );
        words[1] as usize
    }))
}

/// Sends each party its message for n triples: as many words as elements for which it is corrected.
pub fn answer(channel: &mut Channel, n: usize) -> Result<()> {
    let parties = channel.parties();
    let from = |party: usize| n / 64 * party / parties * 64;
    for party in 0..parties {
        channel.send(party, vec![0; from(party + 1) - from(party)])?;
    }
    Ok(())
}

/// Computes n products `times` times, and opens them.
pub fn products(p: &mut dyn Protocol, times: usize, n: usize) -> Result<()> {
    let x = Shared::input(p, 0, &vec![3; n])?;
    let y = Shared::input(p, 1, &vec![5; n])?;
    for _ in 0..times {
        x.bilinear(p, &Bilinear::Elementwise { n }, &y, None)?
            .open(p)?;
    }
    Ok(())
}

/// Asserts that this member is at fault, and that the text names it.
pub fn assert_names(result: &Result<()>, fault: usize, who: usize) {
    let error = result.as_ref().err();
    let error = error.unwrap_or_else(|| panic!("member {who} did not fail"));
    let (Error::Peer { party, .. } | Error::Desync { party, .. }) = error else {
        panic!("member {who}: {error}")
    };
    assert_eq!(*party, fault, "member {who}: {error}");
    let name = if fault == DEALER {
        "the dealer".to_owned()
    } else {
        format!("party {fault}")
    };
    assert!(error.to_string().contains(&name), "member {who}: {error}");
}
