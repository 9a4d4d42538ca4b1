//! Runs of programs in three parties, whose messages may be changed on their way.

use crate::programs::Program;
use mpc::agreement::PrivateComparison;
use mpc::replicated::Replicated;
use mpc::{Protocol, Result};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A message as it arrives.
#[derive(Clone, Debug)]
pub struct Message {
    pub receiver: usize,
    pub sender: usize,
    /// Counts the messages of this sender to this receiver.
    pub at: usize,
    pub step: String,
    pub words: Vec<u64>,
}

/// Changes messages on their way.
pub type Change<'a> = &'a (dyn Fn(&Message) -> Option<Vec<u64>> + Sync);

/// What a party gets.
pub struct Found {
    pub result: Result<Vec<u64>>,
    /// What it received, as it was sent.
    pub heard: Vec<Message>,
}

/// Opens a party, and may change it.
pub type Prepare<'a> = &'a (dyn Fn(&mut Replicated) + Sync);

/// What a party does.
pub type Work<'a> = &'a (dyn Fn(&mut Replicated) -> Result<Vec<u64>> + Sync);

/// Runs a program.
pub fn run(program: &Program, n: usize, change: Change, prepare: Prepare) -> Vec<Found> {
    let work = |p: &mut Replicated| {
        prepare(p);
        (program.work)(p, n)
    };
    run_work(&work, change)
}

/// Runs what all parties do.
pub fn run_work(work: Work, change: Change) -> Vec<Found> {
    let meshes = net::in_process::mesh(3, Duration::from_secs(20));
    std::thread::scope(|scope| {
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| scope.spawn(|| run_one(mesh, work, change)))
            .collect();
        let found = threads.into_iter().map(|thread| thread.join());
        found.map(|found| found.expect("no panic")).collect()
    })
}

fn run_one(mesh: net::Mesh, work: Work, change: Change) -> Found {
    // The tap lives as long as the channel, and so must what it uses.
    let asked: Arc<Mutex<Vec<Message>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let receiver = mesh.party();
    let mut counts = [0; 3];
    let (ask, questions) = std::sync::mpsc::channel::<Message>();
    let (answer, answers) = std::sync::mpsc::channel::<Option<Vec<u64>>>();
    let mut channel = mesh.channel(0);
    channel.set_tap(Box::new(move |sender, step, words| {
        let message = Message {
            receiver,
            sender,
            at: counts[sender],
            step: step.to_owned(),
            words: words.clone(),
        };
        counts[sender] += 1;
        asked.lock().expect("no panic").push(message.clone());
        if ask.send(message).is_ok() {
            if let Ok(Some(changed)) = answers.recv() {
                *words = changed;
            }
        }
    }));
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            for message in questions {
                drop(answer.send(change(&message)));
            }
        });
        let run = || {
            channel.set_agreement(Box::new(PrivateComparison::new(receiver, 3)?));
            let mut p = Replicated::malicious(channel, testkit::device())?;
            let result = work(&mut p)?;
            p.verify()?;
            p.channel().close()?;
            mesh.close()?;
            Ok(result)
        };
        run()
    });
    let heard = std::mem::take(&mut *heard.lock().expect("no panic"));
    Found { result, heard }
}

/// Runs a program without changes. Returns the results and all messages.
pub fn honest(program: &Program, n: usize) -> (Vec<Vec<u64>>, Vec<Message>) {
    let (mut results, mut messages) = (Vec::new(), Vec::new());
    for found in run(program, n, &|_| None, &|_| {}) {
        results.push(found.result.expect("an honest run"));
        messages.extend(found.heard);
    }
    (results, messages)
}

/// Checks that the parties other than the corrupt one got the right results or an error. Returns
/// whether one of them stopped.
///
/// # Panics
/// If one of them accepts a wrong result. `of` says what was changed.
pub fn judge(
    program: &Program,
    corrupt: usize,
    found: &[Found],
    right: &[Vec<u64>],
    of: &str,
) -> bool {
    let mut stopped = false;
    for (party, Found { result, .. }) in found.iter().enumerate() {
        if party == corrupt {
            continue;
        }
        match result {
            Err(_) => stopped = true,
            Ok(result) => assert!(
                is_right(result, &right[party], program.tolerance),
                "{}: party {party} accepts {of} of party {corrupt}",
                program.name
            ),
        }
    }
    stopped
}

/// Checks that a program that opens once opened nothing to the corrupt party.
///
/// # Panics
/// If it did.
pub fn nothing_is_opened(program: &Program, corrupt: usize, found: &[Found], of: &str) {
    let is_opening = |message: &&Message| {
        message.step.contains("reveal") && !message.words.is_empty() && program.openings == 1
    };
    let opened = found[corrupt].heard.iter().find(is_opening);
    assert!(
        opened.is_none(),
        "{}: party {corrupt} learns a result in spite of {of}",
        program.name
    );
}

fn is_right(result: &[u64], right: &[u64], tolerance: u64) -> bool {
    let near = |(one, other): (&u64, &u64)| {
        one.wrapping_sub(*other).wrapping_add(tolerance) <= 2 * tolerance
    };
    result.len() == right.len() && result.iter().zip(right).all(near)
}
