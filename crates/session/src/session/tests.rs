//! A session in another process than its own, as in a fork.

use super::*;
use crate::{Options, local};
use kernels::bilinear::Bilinear;
use kernels::device::{self, Cpu, Device, DeviceError};
use mpc::{Flag, Recipient, guards};
use net::in_process;
use std::sync::Arc;
use std::thread;

/// Two parties, of which the first believes that it is a fork.
fn forked(timeout: Duration) -> [Session; 2] {
    let options = Options::new("additive", Some("dealer".to_owned()), timeout).unwrap();
    let mut sessions = local::in_memory(2, &options).unwrap();
    sessions[0].process = Process::another();
    sessions.try_into().ok().expect("there are two parties")
}

fn refused<T>(result: Result<T>) {
    let Err(error) = result else {
        panic!("the session worked in a process that did not create it")
    };
    let text = error.to_string();
    assert!(matches!(error, Error::Misuse { .. }), "{text}");
    assert!(text.contains("this session belongs to process"), "{text}");
}

#[test]
fn every_operation_is_refused() {
    let [fork, _other] = forked(Duration::from_secs(60));
    // This also holds if another thread held the lock when the process was forked.
    let _held = fork.open.as_ref().unwrap().work.lock().unwrap();
    refused(fork.work(|_| Ok(())));
    refused(fork.broadcast(0, Some(b"x")));
    refused(fork.set_label("x"));
    refused(fork.readings());
    refused(fork.totals());
    refused(fork.demand());
    refused(fork.correlations());
    refused(fork.side_by_side(Vec::new()));
    refused(fork.close());
    assert_eq!((fork.party(), fork.parties(), fork.parts()), (0, 2, 1));
}

/// A processor that says that it is a card.
struct Card(Cpu);

impl Device for Card {
    fn kind(&self) -> &'static str {
        "cuda"
    }

    fn bilinear(
        &self,
        map: &Bilinear,
        out: &mut [u64],
        terms: &[device::Term],
    ) -> std::result::Result<(), DeviceError> {
        self.0.bilinear(map, out, terms)
    }

    fn forget(&self, operand: u64) {
        self.0.forget(operand);
    }

    fn memory(&self) -> std::result::Result<Option<device::Memory>, DeviceError> {
        self.0.memory()
    }

    fn counters(&self) -> device::Counters {
        self.0.counters()
    }
}

#[test]
fn the_threat_model_says_whom_a_card_trusts() {
    let options = Options::new("plain", None, Duration::from_secs(60)).unwrap();
    let members = options.members().unwrap();
    let meshes = in_process::mesh_of(2, members, options.timeout);
    let devices: [Arc<dyn Device>; 2] = [Arc::new(Card(Cpu::default())), Arc::new(Cpu::default())];
    let models: Vec<String> = thread::scope(|scope| {
        let open = |(mesh, device)| {
            let session = Session::open(mesh, &options.settings, device, Transport::Memory);
            session.unwrap().threat_model().to_owned()
        };
        let parties = meshes.into_iter().zip(devices);
        let threads: Vec<_> = parties
            .map(|party| scope.spawn(move || open(party)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.collect()
    });
    let trusted = "; products on a card: its driver, its host and whoever shares it are trusted";
    assert_eq!(models[0].strip_suffix(trusted), Some(&*models[1]));
}

#[test]
fn work_side_by_side_has_its_part_of_the_session() {
    let options = Options::new("replicated", None, Duration::from_secs(60)).unwrap();
    let sessions = local::in_memory(3, &options).unwrap();
    let each = |session: Session| {
        let session = Arc::new(session);
        let found = Arc::new(Mutex::new(Vec::new()));
        let flags = Arc::new(Mutex::new(Vec::new()));
        let work = |at: usize| -> Stream {
            let (session, found) = (Arc::clone(&session), Arc::clone(&found));
            let flags = Arc::clone(&flags);
            Box::new(move || {
                session.set_label(&format!("layer {at}"))?;
                let x = [vec![3; 400], vec![4; 400]];
                let x: Vec<&[u64]> = x.iter().map(Vec::as_slice).collect();
                session.work(|protocol| {
                    let mut out = [vec![0; 400], vec![0; 400]];
                    let mut out: Vec<&mut [u64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
                    let compared = mpc::Compared::guarded(24, 10).unwrap();
                    let tally = protocol.rectify(&x, None, compared, &mut out)?;
                    let tally = tally.expect("the comparison is guarded");
                    let flag = Flag::new(protocol.channel().meter().label(), tally);
                    flags.lock().unwrap().push(flag);
                    Ok(())
                })?;
                refused_inside(session.side_by_side(Vec::new()));
                found.lock().unwrap().push(at);
                Ok(())
            })
        };
        session.side_by_side((0..3).map(work).collect()).unwrap();
        assert_eq!(*found.lock().unwrap(), [0, 1, 2]);
        let readings = session.readings().unwrap();
        let sent = |at: usize| {
            let line = readings.iter().find(|line| line.0 == format!("layer {at}"));
            line.unwrap().1.payload_bytes
        };
        assert!(sent(0) > 0 && sent(0) == sent(1) && sent(1) == sent(2));
        // The numbers are small, so no guard fails; all guards are checked.
        let x: Vec<&[u64]> = vec![&[0], &[0]];
        let flags = mem::take(&mut *flags.lock().unwrap());
        assert_eq!(flags.len(), 3);
        let reveal =
            |protocol: &mut dyn Protocol| guards::reveal(protocol, &x, Recipient::All, &flags);
        let (_, failed) = session.work(reveal).unwrap();
        assert_eq!(failed, Vec::<String>::new());
        let steps = session.totals().unwrap();
        session.close().unwrap();
        steps.rounds
    };
    let rounds: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .map(|session| scope.spawn(|| each(session)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    // Rounds of one ReLU, and of one check of all guards, with coins tossed for it; the rest
    // belongs to the set-up and the opening.
    assert!(
        rounds.iter().all(|rounds| *rounds <= 7 + 7 + 1 + 1 + 4),
        "{rounds:?}"
    );
}

fn refused_inside(result: Result<()>) {
    let told = result.unwrap_err().to_string();
    assert!(told.contains("side by side"), "{told}");
}

/// Returns what the other party hears of this one, which does nothing more.
fn heard(other: &Session) -> String {
    other.broadcast(0, None).unwrap_err().to_string()
}

#[test]
fn what_a_fork_ends_is_not_ended_for_the_others() {
    let [fork, other] = forked(Duration::from_secs(1));
    fork.abort("nothing that concerns the others");
    drop(fork);
    assert!(
        heard(&other).contains("nothing came from it"),
        "{}",
        heard(&other)
    );
}

#[test]
fn what_its_own_process_ends_is_ended_for_the_others() {
    let [mut session, other] = forked(Duration::from_secs(60));
    session.process = Process::this();
    drop(session);
    assert!(
        heard(&other).contains("ended without a goodbye"),
        "{}",
        heard(&other)
    );
}
