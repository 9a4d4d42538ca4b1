//! Making files of correlations: a source does the jobs of a recorded session as often as wanted,
//! each time as one run of every party's file ([`crate::correlations::file`]).
//!
//! Each column of a job is a record of its own. A column is never larger than a message, whatever
//! its job, so that all that a live session can ask of its source can be made ahead too, and is
//! held in memory once.

use crate::correlations::Demand;
use crate::correlations::file::{self, Place};
use crate::correlations::job::Job;
use crate::sealed::{Header, MOST_RUNS, Writer};
use crate::{Error, Result, Settings};
use kernels::stream::random_key;
use net::{Channel, Mesh, Patience};

/// The channel on which makers agree.
const CHANNEL: u16 = 0;

/// Makes this party's file of `runs` times the demand; all parties call it, and a dealer deals if
/// the settings name one. `progress` hears of every job that is done, with the number of all.
///
/// # Errors
/// What the links meet; `Setup` for a file that exists or cannot be written, and for demands that
/// differ.
pub fn make(
    settings: &Settings,
    mesh: &Mesh,
    demand: &Demand,
    runs: u32,
    place: &Place,
    mut progress: impl FnMut(usize, usize),
) -> Result<()> {
    if runs == 0 || runs > MOST_RUNS || demand.is_empty() {
        return Err(Error::misuse(format!(
            "{runs} runs of {} jobs: there are 1 to {MOST_RUNS} runs, of at least one job",
            demand.len()
        )));
    }
    let patience = Patience::default();
    patience.set_needed(true);
    let mut source = settings.environment(mesh)?.source(patience)?;
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
            // Sessions need not forget when the recorded one did.
            if !matches!(job, Job::Forget { .. }) {
                file::append(&mut writer, job, &columns)?;
            }
            progress(run * demand.len() + at + 1, all);
        }
        writer.end_run()?;
    }
    writer.finish()
}

/// The identifier of a making, from party 0; the others check that they make the same.
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
                "party 0 makes other correlations: give every party the same demand, or program, and number of runs",
            ));
        }
        mine = theirs;
    }
    let mut id = [0; 16];
    id.copy_from_slice(&net::bytes::from_words(&mine[..2], 16));
    Ok(id)
}
