//! Making files of correlations ahead of time. A source repeats the jobs of a recorded session the
//! requested number of times. Each repetition is one run in every party's file
//! ([`crate::correlations::file`]).
//!
//! Each column of a job is a separate record. No column of any job is larger than a message. So
//! everything that a live session can request from its source can also be made ahead, and is held
//! in memory only once.

use crate::correlations::Demand;
use crate::correlations::file::{self, Place};
use crate::correlations::job::Job;
use crate::sealed::{Header, MOST_RUNS, Writer};
use crate::{Error, Result, Settings};
use kernels::device::Device;
use kernels::stream::random_key;
use net::{Channel, Mesh, Patience};
use std::sync::Arc;

/// The channel on which the parties agree on what to make.
const CHANNEL: u16 = 0;

/// Makes this party's file with `runs` times the demand. All parties call this function; a dealer
/// deals if the settings name one. `progress` is called after every job with the number of finished
/// jobs and the number of all jobs.
///
/// # Errors
/// Network errors. `Setup` for a file that exists or cannot be written, and for demands that
/// differ.
pub fn make(
    settings: &Settings,
    mesh: &Mesh,
    device: &Arc<dyn Device>,
    demand: &Demand,
    runs: u32,
    place: &Place,
    mut progress: impl FnMut(usize, usize),
) -> Result<()> {
    if runs == 0 || runs > MOST_RUNS || demand.is_empty() {
        return Err(Error::misuse(format!(
            "{runs} runs of {} jobs: a file has 1 to {MOST_RUNS} runs of at least one job",
            demand.len()
        )));
    }
    if !demand.serves(mesh.parties()) {
        return Err(Error::misuse(format!(
            "the demand was recorded by two parties, who compare in another way than {}; record it \
             again, with all parties, by `tacit run --record`",
            mesh.parties()
        )));
    }
    let patience = Patience::default();
    patience.set_needed(true);
    let mut source = settings.environment(mesh, device)?.source(patience)?;
    let mut channel = mesh.channel(CHANNEL);
    let header = Header {
        id: agree(&mut channel, demand, runs)?,
        party: channel.party() as u32,
        parties: channel.parties() as u32,
        runs,
        content: demand.version(),
        ahead: demand.most_ahead() as u64,
        note: settings.threat_model(mesh.parties())?.to_string(),
    };
    let mut writer = Writer::create(&place.path, place.secret.as_bytes(), &header)?;
    let all = demand.len() * runs as usize;
    for run in 0..runs as usize {
        for (at, job) in demand.jobs().iter().enumerate() {
            let columns = source.make(job)?;
            // `Forget` is not stored: a session need not forget names where the recorded one did.
            if !matches!(job, Job::Forget { .. }) {
                file::append(&mut writer, job, &columns)?;
            }
            progress(run * demand.len() + at + 1, all);
        }
        writer.end_run()?;
    }
    writer.finish()
}

/// Agrees on the identifier of this making. Party 0 draws it; the others check that they make the
/// same correlations.
fn agree(channel: &mut Channel, demand: &Demand, runs: u32) -> Result<[u8; 16]> {
    channel.begin("agree on what to make");
    let mut mine = vec![0, 0, u64::from(runs)];
    mine.extend(net::bytes::to_words(demand.digest().as_bytes()));
    if channel.party() == 0 {
        mine[..2].copy_from_slice(&random_key()?.to_words());
        for peer in 1..channel.parties() {
            channel.send(peer, mine.clone())?;
        }
    } else {
        let theirs = channel.receive(0, mine.len())?;
        if theirs[2..] != mine[2..] {
            return Err(Error::setup(
                "party 0 makes other correlations: give every party the same demand, or program, \
                 and number of runs",
            ));
        }
        mine = theirs;
    }
    let mut id = [0; 16];
    id.copy_from_slice(&net::bytes::from_words(&mine[..2], 16));
    Ok(id)
}
