//! Reader of a file, which hands out each run once.

use super::blocks::{self, BLOCK, DATA, Fields, Keys, MAGIC, Place};
use super::counter::{Count, Counter};
use super::writer::{ENTRY, FINISH};
use super::{
    CHUNK, CHUNK_HEAD, Header, LAST, LONGEST_DESCRIPTOR, MAKE_NEW, MOST_WORDS, TAG, check_secret,
    damaged, error_at, lock,
};
use crate::{Error, Result};
use net::{Process, cause};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Open file, which nothing else can open meanwhile.
pub struct Reader {
    pub(super) file: BufReader<File>,
    path: PathBuf,
    header: Header,
    keys: Keys,
    counter: Counter,
    /// Whether this session is already counted.
    counted: bool,
    /// Offset and number of records of each run, then the end of the last run.
    index: Vec<(u64, u64)>,
    position: Option<Position>,
    buffer: Zeroizing<Vec<u8>>,
    pub(super) process: Process,
}

/// Descriptor and words of a record.
pub type Record = (Vec<u8>, Vec<u64>);

/// Position of the next record in a run.
#[derive(Clone, Copy)]
struct Position {
    run: u32,
    record: u64,
    records: u64,
    chunk: u64,
    at: u64,
    end: u64,
}

/// Reason why a record cannot be read.
enum Failure {
    Damaged,
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}

impl Reader {
    /// Opens a file for this process alone, and checks all of it except the records. `secret` is
    /// the secret with which the file was made, byte for byte.
    ///
    /// # Errors
    /// `Setup` if the file is in use, not finished, made with another key, damaged, or not a
    /// correlation file.
    pub fn open(path: &Path, secret: &[u8]) -> Result<Self> {
        check_secret(secret)?;
        let unreadable =
            |error: io::Error| error_at(path, &format!("cannot be read: {}", cause(&error)));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| {
                error_at(
                    path,
                    &format!(
                        "cannot be opened: {}; name a file that this user may read and write, \
                         since its use \
                         is recorded in it",
                        cause(&error)
                    ),
                )
            })?;
        lock(&file, path)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let length = metadata.len();
        check_kind(&mut file, metadata.is_file(), path)?;
        if length < DATA {
            return Err(unfinished(path));
        }
        let head = blocks::read_block(&mut file, blocks::HEAD).map_err(unreadable)?;
        let (header, keys) = blocks::decode_head(secret, &head, path)?;
        let finish = blocks::read_block(&mut file, blocks::FINISH).map_err(unreadable)?;
        if finish == [0; BLOCK] {
            return Err(unfinished(path));
        }
        let index = keys
            .verify(FINISH, &finish)
            .map(|content| read_index(&mut file, &content, length, header.runs))
            .transpose()
            .map_err(unreadable)?
            .flatten()
            .ok_or_else(|| damaged(path, "in its index or its length"))?;
        let counter = Counter::read(&mut file, &keys)
            .map_err(unreadable)?
            .filter(|counter| counter.count().used <= header.runs)
            .ok_or_else(|| damaged(path, "in its counter, so that what is used is unknown"))?;
        Ok(Self {
            file: BufReader::with_capacity(1 << 18, file),
            path: path.to_owned(),
            header,
            keys,
            counter,
            counted: false,
            index,
            position: None,
            buffer: Zeroizing::default(),
            process: Process::this(),
        })
    }

    /// Returns the header of the file.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a file of another party, or of another number of parties.
    ///
    /// # Errors
    /// `Setup` for such a file.
    pub fn check_party(&self, party: u32, parties: u32) -> Result<()> {
        let (whose, of) = (self.header.party, self.header.parties);
        if whose != party {
            return Err(error_at(
                &self.path,
                &format!("made for party {whose}, this is party {party}; use its own file"),
            ));
        }
        if of != parties {
            return Err(error_at(
                &self.path,
                &format!("made for {of} parties, these are {parties}; {MAKE_NEW}"),
            ));
        }
        Ok(())
    }

    /// Returns the number of used runs: all below this number are used.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.counter.count().used
    }

    /// Returns the number of sessions that used a run of the file.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        self.counter.count().sessions
    }

    /// Marks the runs up to and including `run` as used, durably, and goes to the first record of
    /// `run`.
    ///
    /// # Errors
    /// `Setup` if the run is used, if none is left, or if the mark cannot be made durable. The run
    /// must then not be used.
    pub fn begin_run(&mut self, run: u32) -> Result<()> {
        self.position = None;
        self.check_process()?;
        let (count, runs) = (self.counter.count(), self.header.runs);
        if run >= runs {
            let reason = if count.used == runs {
                format!("exhausted: all {runs} runs are used; {MAKE_NEW}")
            } else {
                format!("exhausted: it has {runs} runs, and run {run} is wanted; {MAKE_NEW}")
            };
            return Err(error_at(&self.path, &reason));
        }
        if run < count.used {
            return Err(error_at(
                &self.path,
                &format!(
                    "run {run} is used already: each correlation is used once; the next is run {}",
                    count.used
                ),
            ));
        }
        let count = Count {
            used: run + 1,
            sessions: count.sessions.saturating_add(u32::from(!self.counted)),
        };
        self.counted = true;
        let (at, records) = self.index[run as usize];
        let (end, _) = self.index[run as usize + 1];
        self.counter
            .write(self.file.get_mut(), &self.keys, count)
            .and_then(|()| self.file.seek(SeekFrom::Start(at)))
            .map_err(|error| {
                error_at(
                    &self.path,
                    &format!(
                        "cannot record that run {run} is used: {}; the run is lost",
                        cause(&error)
                    ),
                )
            })?;
        self.position = Some(Position {
            run,
            record: 0,
            records,
            chunk: 0,
            at,
            end,
        });
        Ok(())
    }

    /// Returns the next record of the run, its descriptor and words; `None` after the last.
    ///
    /// # Errors
    /// `Setup` for a record that is damaged or cannot be read, which ends the run. `Misuse` if no
    /// run was begun.
    #[expect(clippy::should_implement_trait, reason = "it fails, and borrows")]
    pub fn next(&mut self) -> Result<Option<Record>> {
        self.check_process()?;
        let Some(mut position) = self.position.take() else {
            return Err(Error::misuse(
                "records of correlations can be read only after a run has begun",
            ));
        };
        if position.record == position.records && position.at == position.end {
            self.position = Some(position);
            return Ok(None);
        }
        match self.read_record(&mut position) {
            Ok(record) => {
                position.record += 1;
                self.position = Some(position);
                Ok(Some(record))
            }
            Err(Failure::Damaged) => Err(damaged(
                &self.path,
                &format!("at record {} of run {}", position.record, position.run),
            )),
            Err(Failure::Io(error)) => Err(error_at(
                &self.path,
                &format!("cannot be read: {}", cause(&error)),
            )),
        }
    }

    fn read_record(&mut self, position: &mut Position) -> std::result::Result<Record, Failure> {
        let (mut last, text) = self.read_chunk(position)?;
        let (descriptor, count, text) = parse_prefix(text).ok_or(Failure::Damaged)?;
        // The whole prefix is authenticated now. Memory is allocated once, because growing would
        // leave copies behind.
        let mut words = Zeroizing::new(Vec::with_capacity(count));
        extend(&mut words, count, text)?;
        while !last {
            let text;
            (last, text) = self.read_chunk(position)?;
            extend(&mut words, count, text)?;
        }
        if words.len() != count {
            return Err(Failure::Damaged);
        }
        Ok((descriptor, std::mem::take(&mut *words)))
    }

    /// Returns the next chunk, and whether it is the last of its record.
    fn read_chunk(
        &mut self,
        position: &mut Position,
    ) -> std::result::Result<(bool, &[u8]), Failure> {
        let left = position.end - position.at;
        if left < CHUNK_HEAD as u64 || position.record == position.records {
            return Err(Failure::Damaged);
        }
        let mut head = [0; CHUNK_HEAD];
        self.file.read_exact(&mut head)?;
        let head = u32::from_le_bytes(head);
        let (last, length) = (head & LAST != 0, (head & !LAST) as usize);
        if !(TAG..=CHUNK + TAG).contains(&length) || length as u64 > left - CHUNK_HEAD as u64 {
            return Err(Failure::Damaged);
        }
        if self.buffer.capacity() < length {
            self.buffer = Zeroizing::new(Vec::with_capacity(length));
        }
        self.buffer.resize(length, 0);
        self.file.read_exact(&mut self.buffer)?;
        let place = Place {
            run: position.run,
            record: position.record,
            chunk: position.chunk,
            last,
        };
        position.chunk += 1;
        position.at += (CHUNK_HEAD + length) as u64;
        let text = self.keys.open(place, &mut self.buffer);
        text.map(|text| (last, text)).ok_or(Failure::Damaged)
    }

    /// Refuses to continue in a forked process: a fork shares the lock, and the counter would exist
    /// twice.
    fn check_process(&self) -> Result<()> {
        self.process.check("a correlation file")
    }
}

fn unfinished(path: &Path) -> Error {
    error_at(
        path,
        "was not finished: making it was interrupted, or it was cut off; delete it and make new \
         correlations with `tacit correlations make`",
    )
}

fn check_kind(file: &mut File, regular: bool, path: &Path) -> Result<()> {
    let mut magic = [0; MAGIC.len()];
    if !regular || file.read_exact(&mut magic).is_err() || magic != *MAGIC {
        return Err(error_at(
            path,
            "not a correlation file; name one that `tacit correlations make` made",
        ));
    }
    Ok(())
}

/// Reads the index, with an entry for the end. Returns `None` if it is not what was written.
fn read_index(
    file: &mut File,
    finish: &blocks::Content,
    length: u64,
    runs: u32,
) -> io::Result<Option<Vec<(u64, u64)>>> {
    let mut fields = Fields(finish);
    let (end, whole) = (fields.u64(), fields.u64());
    let expected = blake3::Hash::from_bytes(fields.bytes());
    // The header bounds the number of runs.
    let mut bytes = vec![0; ENTRY * runs as usize];
    if whole != length || end.checked_add(bytes.len() as u64) != Some(whole) {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut bytes)?;
    if blake3::hash(&bytes) != expected {
        return Ok(None);
    }
    let mut index: Vec<(u64, u64)> = bytes
        .chunks_exact(ENTRY)
        .map(|entry| {
            let mut fields = Fields(entry);
            (fields.u64(), fields.u64())
        })
        .collect();
    index.push((end, 0));
    let ascending = index[0].0 == DATA && index.windows(2).all(|pair| pair[0].0 <= pair[1].0);
    Ok(ascending.then_some(index))
}

/// Parses the descriptor, the number of words, and the bytes of the first words.
fn parse_prefix(text: &[u8]) -> Option<(Vec<u8>, usize, &[u8])> {
    let (length, text) = text.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (descriptor, text) = text.split_at_checked(length)?;
    let (count, text) = text.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let fits = length <= LONGEST_DESCRIPTOR && count <= MOST_WORDS;
    fits.then_some((descriptor.to_vec(), count, text))
}

/// Appends words to a record that will have `count` words in the end.
fn extend(words: &mut Vec<u64>, count: usize, text: &[u8]) -> std::result::Result<(), Failure> {
    if text.len() % 8 != 0 || text.len() / 8 > count - words.len() {
        return Err(Failure::Damaged);
    }
    words.extend(
        text.chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of eight bytes"))),
    );
    Ok(())
}
