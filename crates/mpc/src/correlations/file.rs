//! Correlations from a file that was made ahead, by any other source, in a session of its own.
//!
//! **Demand.** A program asks for the same jobs whenever it runs on the same shapes. A session can record
//! them ([`Demand`]); [`make`] then has a source do them as often as wanted, each time as one *run* of the
//! parties' files ([`crate::sealed`]), and a later session takes a run in place of the source's work.
//! Nobody declares anything by hand, and a program that asks for something else is told so.
//!
//! **Once.** At the start of a session the parties compare their files: they must be of one making, and
//! the run that all begin is after the last that any of them used. It is recorded as used before
//! anything of it is read. A crash between comparing and recording may leave files one run apart; a
//! file that is further behind was put back from a copy and is refused.
//!
//! **Trust.** What the source that made the file was trusted with; and that nobody reads a party's file
//! together with its private key.

use super::Source;
use super::job::{ENCODED, Job};
use crate::open::OFFLINE;
use crate::sealed::{Header, MOST_RUNS, Reader, Writer};
use crate::{Error, Result, Settings};
use net::{Channel, Mesh, Reading};
use ring::stream::random_key;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// First line of a recorded demand.
const TITLE: &str = "tacit demand, version 1";

/// Most jobs of a demand.
const MOST_JOBS: usize = 1 << 20;

/// Jobs at the end of which a run is complete.
#[derive(Clone, Debug)]
pub struct Demand {
    most_ahead: usize,
    jobs: Vec<Job>,
}

/// Where a party's file lies, and what it is sealed with.
#[derive(Clone)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The party's private key, PEM.
    pub secret: String,
}

impl Demand {
    pub(super) fn new(most_ahead: usize) -> Self {
        Self {
            most_ahead,
            jobs: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, job: &Job) {
        self.jobs.push(*job);
    }

    /// Number of jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether nothing was asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// As text: a line for each job.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{TITLE}, ahead {}\n", self.most_ahead);
        for job in &self.jobs {
            let words = job.encode();
            let used = words.iter().rposition(|word| *word != 0).unwrap_or(0) + 1;
            let line: Vec<String> = words[..used]
                .iter()
                .map(|word| format!("{word:x}"))
                .collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", line.join(" "));
        }
        text
    }

    /// From text, which may be anything.
    ///
    /// # Errors
    /// `Setup`, naming the line.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |line: usize, what: &str| {
            Error::setup(format!(
                "line {line} of the demand {what}; record it again with `tacit run --record`"
            ))
        };
        let mut lines = text.lines();
        let ahead = lines
            .next()
            .and_then(|first| first.strip_prefix(TITLE))
            .and_then(|rest| rest.strip_prefix(", ahead "))
            .and_then(|ahead| ahead.parse().ok())
            .filter(|ahead| *ahead <= 1 << 27);
        let mut demand = Self::new(ahead.ok_or_else(|| wrong(1, "is not its title"))?);
        for (at, line) in lines.enumerate() {
            let mut words = line
                .split(' ')
                .map(|word| u64::from_str_radix(word, 16).ok())
                .collect::<Option<Vec<u64>>>()
                .filter(|words| words.len() <= ENCODED)
                .ok_or_else(|| wrong(at + 2, "is not a row of numbers"))?;
            words.resize(ENCODED, 0);
            let job = Job::decode(&words).map_err(|_| wrong(at + 2, "asks for what cannot be"))?;
            if demand.jobs.len() == MOST_JOBS {
                return Err(wrong(at + 2, "is one too many"));
            }
            demand.jobs.push(job);
        }
        Ok(demand)
    }
}

/// Makes this party's file of `runs` times the demand; all parties call it, and a dealer deals if the
/// settings name one. `progress` hears of every job that is done, with the number of all.
///
/// # Errors
/// What the links meet; `Setup` for a file that exists or cannot be written, and for demands that differ.
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
    let patience = net::Patience::default();
    patience.set_needed(true);
    let mut source = settings.source(mesh, patience)?;
    let mut channel = mesh.channel(MAKING);
    let id = agree(&mut channel, demand, runs)?;
    let header = Header {
        id,
        party: channel.party() as u32,
        parties: channel.parties() as u32,
        runs,
        note: format!("{}, ahead {}", settings.trust()?, demand.most_ahead),
    };
    let mut writer = Writer::create(&place.path, place.secret.as_bytes(), &header)?;
    let all = demand.len() * runs as usize;
    for run in 0..runs as usize {
        for (at, job) in demand.jobs.iter().enumerate() {
            let words = source.make(job)?.concat();
            // Sessions need not forget when the recorded one did.
            if !matches!(job, Job::Forget { .. }) {
                writer.append(&job.describe(), &words)?;
            }
            progress(run * demand.len() + at + 1, all);
        }
        writer.end_run()?;
    }
    writer.finish()
}

/// The channel on which makers agree.
const MAKING: u16 = 0;

/// The identifier of a making, from party 0; the others check that they make the same.
fn agree(channel: &mut Channel, demand: &Demand, runs: u32) -> Result<[u8; 16]> {
    channel.begin("agree on what to make");
    let digest = blake3::hash(demand.to_text().as_bytes());
    let digest = net::bytes::to_words(digest.as_bytes());
    let mut mine = vec![0, 0, u64::from(runs)];
    mine.extend(digest);
    if channel.party() == 0 {
        mine[..2].copy_from_slice(&random_key()?.to_words());
        for peer in 1..channel.parties() {
            channel.send(peer, mine.clone())?;
        }
    } else {
        let theirs = channel.receive(0, mine.len())?;
        if theirs[2..] != mine[2..] {
            return Err(Error::setup(
                "party 0 makes other correlations: give every party the same demand and number of runs",
            ));
        }
        mine = theirs;
    }
    let mut id = [0; 16];
    id.copy_from_slice(&net::bytes::from_words(&mine[..2], 16));
    Ok(id)
}

/// A run of a file.
pub(crate) struct Stored {
    channel: Channel,
    reader: Reader,
    most_ahead: usize,
}

impl Stored {
    /// Compares the parties' files, and begins a run that none of them has used.
    pub fn new(mesh: &Mesh, place: &Place) -> Result<Self> {
        let mut channel = mesh.channel(OFFLINE);
        let mut reader = Reader::open(&place.path, place.secret.as_bytes())?;
        reader.check_party(channel.party() as u32, channel.parties() as u32)?;
        let ahead = reader.header().note.rsplit_once(", ahead ");
        let most_ahead = ahead
            .and_then(|(_, ahead)| ahead.parse().ok())
            .ok_or_else(|| unfit(&place.path, "its note is not that of correlations"))?;
        let run = next_run(&mut channel, &reader, &place.path)?;
        reader.begin_run(run)?;
        Ok(Self {
            channel,
            reader,
            most_ahead,
        })
    }
}

/// The first run that no party has used.
fn next_run(channel: &mut Channel, reader: &Reader, path: &Path) -> Result<u32> {
    channel.begin("compare correlation files");
    let (me, parties) = (channel.party(), channel.parties());
    let mut mine = net::bytes::to_words(&reader.header().id);
    mine.push(u64::from(reader.used()));
    for peer in (0..parties).filter(|peer| *peer != me) {
        channel.send(peer, mine.clone())?;
    }
    let mut used = vec![(me, reader.used())];
    for peer in (0..parties).filter(|peer| *peer != me) {
        let theirs = channel.receive(peer, mine.len())?;
        if theirs[..2] != mine[..2] {
            return Err(unfit(
                path,
                &format!(
                    "party {peer} has a file of another making; use the files that were made together"
                ),
            ));
        }
        let count = u32::try_from(theirs[2])
            .ok()
            .filter(|used| *used <= MOST_RUNS);
        let impossible =
            || Error::peer(peer, channel.step(), "claims an impossible number of runs");
        used.push((peer, count.ok_or_else(impossible)?));
    }
    let most = used.iter().map(|(_, used)| *used).max().unwrap_or(0);
    if let Some((party, behind)) = used.iter().find(|(_, used)| used + 1 < most) {
        return Err(unfit(
            path,
            &format!(
                "party {party}'s file counts {behind} used runs where another counts {most}: it was put back from a \
                 copy, and would be used again; nothing was revealed; make new correlations with \
                 `tacit correlations make`"
            ),
        ));
    }
    Ok(most)
}

fn unfit(path: &Path, reason: &str) -> Error {
    Error::setup(format!("{}: {reason}", path.display()))
}

impl Source for Stored {
    fn make(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        if let Job::Forget { .. } = job {
            return Ok(Vec::new());
        }
        let Some((descriptor, words)) = self.reader.next()? else {
            return Err(Error::misuse(format!(
                "the correlations of this run are exhausted: the program asks for more ({}) than when its \
                 demand was recorded; record it again with `tacit run --record`, and make new correlations",
                job.describe()
            )));
        };
        if descriptor != job.describe() {
            return Err(Error::misuse(format!(
                "the correlations were made for another program or other shapes: it asked for {descriptor}, \
                 this one asks for {}; record its demand with `tacit run --record`, and make new correlations",
                job.describe()
            )));
        }
        let (free, derived) = job.columns();
        let mut rest = &words[..];
        let mut columns = Vec::with_capacity(free.len() + derived.len());
        for (shape, n) in free.iter().chain(&derived) {
            let Some((column, after)) = rest.split_at_checked(shape.words(*n)) else {
                return Err(Error::misuse(
                    "a record of the file is too short for what it is",
                ));
            };
            columns.push(column.to_vec());
            rest = after;
        }
        Ok(columns)
    }

    fn reading(&self) -> Reading {
        self.channel.meter().totals()
    }

    fn most_ahead(&self) -> usize {
        self.most_ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlations::kind::Kind;

    #[test]
    fn a_demand_is_read_as_it_was_written() {
        let mut demand = Demand::new(77);
        for n in [64, 128] {
            demand.add(&Job::Batch {
                kind: Kind::Selections,
                n,
            });
        }
        demand.add(&Job::Forget { name: 0 });
        let read = Demand::parse(&demand.to_text()).unwrap();
        assert_eq!(read.to_text(), demand.to_text());
        assert_eq!((read.len(), read.most_ahead), (3, 77));
    }

    #[test]
    fn what_is_no_demand_is_refused_with_its_line() {
        let good = format!("{TITLE}, ahead 9\n0 40 8\n");
        assert!(Demand::parse(&good).is_ok());
        for (text, expected) in [
            (String::new(), "line 1"),
            (good.replace("ahead 9", "ahead x"), "line 1"),
            (good.replace("0 40 8", "0 41 8"), "line 2"),
            (good.replace("0 40 8", "0 40 g"), "line 2"),
            (format!("{good}{}\n", "0 ".repeat(30)), "line 3"),
            (format!("{good}7\n"), "line 3"),
        ] {
            let message = Demand::parse(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
