//! Demand: what a session asked of its source of correlations, to be made ahead of later sessions.

use super::Comparisons;
use super::job::{ENCODED, Job, VERSIONS};
use crate::{Error, Result};
use std::fmt::Write as _;

/// Parts of the first line before and after the version of the encoded jobs.
const TITLE: [&str; 2] = ["tacit demand, version ", ", ahead "];

/// Largest number of jobs of a demand.
const MOST_JOBS: usize = 1 << 20;

/// Jobs that make up a complete run.
#[derive(Clone, Debug)]
pub struct Demand {
    most_ahead: usize,
    comparisons: Comparisons,
    jobs: Vec<Job>,
}

impl Demand {
    pub(crate) fn new(most_ahead: usize, comparisons: Comparisons) -> Self {
        Self {
            most_ahead,
            comparisons,
            jobs: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, job: &Job) {
        self.jobs.push(*job);
    }

    /// Returns the number of jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Returns whether there are no jobs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns the version of the encoding. It decides how a session with the demand's file
    /// compares: as the recorded session did.
    pub(crate) fn version(&self) -> u32 {
        self.comparisons.version()
    }

    /// Writes the demand as text: a line for each job.
    #[must_use]
    pub fn to_text(&self) -> String {
        let [title, ahead] = TITLE;
        let mut text = format!("{title}{}{ahead}{}\n", self.version(), self.most_ahead);
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

    /// Parses text, which may be malformed.
    ///
    /// # Errors
    /// `Setup`, naming the line.
    pub fn parse(text: &str) -> Result<Self> {
        let error_in_line = |line: usize, what: &str| {
            Error::setup(format!(
                "line {line} of the demand {what}; make it again with `tacit run --record`"
            ))
        };
        let mut lines = text.lines();
        let (version, ahead) = lines
            .next()
            .and_then(parse_title)
            .ok_or_else(|| error_in_line(1, "is not its title"))?;
        let comparisons = Comparisons::of_version(version).ok_or_else(|| {
            let (first, last) = (VERSIONS.start(), VERSIONS.end());
            error_in_line(
                1,
                &format!("says version {version}, but this release reads {first} to {last}"),
            )
        })?;
        let mut demand = Self::new(ahead, comparisons);
        for (at, line) in lines.enumerate() {
            let mut words = line
                .split(' ')
                .map(|word| u64::from_str_radix(word, 16).ok())
                .collect::<Option<Vec<u64>>>()
                .filter(|words| words.len() <= ENCODED)
                .ok_or_else(|| error_in_line(at + 2, "is not a row of hexadecimal numbers"))?;
            words.resize(ENCODED, 0);
            let job = Job::decode(&words)
                .ok()
                .filter(|job| job.belongs_to(comparisons))
                .ok_or_else(|| error_in_line(at + 2, "is not a valid job"))?;
            if demand.jobs.len() == MOST_JOBS {
                return Err(error_in_line(at + 2, "is one job too many"));
            }
            demand.jobs.push(job);
        }
        Ok(demand)
    }

    /// Returns a hash of the jobs, for parties to compare.
    pub(crate) fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.version().to_le_bytes());
        hasher.update(&(self.most_ahead as u64).to_le_bytes());
        for word in self.jobs.iter().flat_map(Job::encode) {
            hasher.update(&word.to_le_bytes());
        }
        hasher.finalize()
    }

    /// Returns whether sessions of this many parties can use what is made for the demand.
    pub(crate) fn serves(&self, parties: usize) -> bool {
        self.comparisons.serve(parties)
    }

    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    pub(crate) fn most_ahead(&self) -> usize {
        self.most_ahead
    }
}

/// Parses the version and the words made ahead.
fn parse_title(line: &str) -> Option<(u32, usize)> {
    let (version, ahead) = line.strip_prefix(TITLE[0])?.split_once(TITLE[1])?;
    let ahead = ahead.parse().ok().filter(|ahead| *ahead <= 1 << 27)?;
    Some((version.parse().ok()?, ahead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlations::kind::Kind;

    #[test]
    fn a_demand_is_read_as_it_was_written() {
        let mut demand = Demand::new(77, Comparisons::Masked);
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
    fn a_demand_of_guards_is_of_the_version_that_has_them() {
        let text = "tacit demand, version 2, ahead 9\n0 40 8\n0 40 9 16 a\n";
        let read = Demand::parse(text).unwrap();
        assert_eq!((read.to_text(), read.version()), (text.to_owned(), 2));
        // Without any guarded job, the version still says that the source has guards.
        let without = text.replace("0 40 9 16 a\n", "");
        let read = Demand::parse(&without).unwrap();
        assert_eq!(read.to_text(), without);
    }

    #[test]
    fn a_demand_of_tables_is_of_the_version_that_has_them() {
        let text = "tacit demand, version 3, ahead 9\n0 40 12 1 3f\n0 40 13\n0 40 8\n";
        let read = Demand::parse(text).unwrap();
        assert_eq!((read.to_text(), read.version()), (text.to_owned(), 3));
    }

    #[test]
    fn what_is_no_demand_is_refused_with_its_line() {
        let good = "tacit demand, version 1, ahead 9\n0 40 8\n".to_owned();
        assert!(Demand::parse(&good).is_ok());
        for (text, expected) in [
            (String::new(), "line 1"),
            (good.replace("ahead 9", "ahead x"), "line 1"),
            (
                good.replace("version 1", "version 4"),
                "version 4, but this release reads 1 to 3",
            ),
            (good.replace("0 40 8", "0 41 8"), "line 2"),
            (good.replace("0 40 8", "0 40 g"), "line 2"),
            (format!("{good}{}\n", "0 ".repeat(30)), "line 3"),
            (format!("{good}7\n"), "line 3"),
            (format!("{good}0 40 9 16 a\n"), "line 3"),
            (format!("{good}0 40 13\n"), "line 3"),
            (
                good.replace("version 1", "version 3") + "0 40 9 16 a\n",
                "line 3",
            ),
        ] {
            let message = Demand::parse(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
