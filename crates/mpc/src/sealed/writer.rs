//! Writer of a file.

use super::blocks::{self, BLOCK, DATA, Keys, Place};
use super::counter::{self, Count};
use super::{
    BUSY, CHUNK, CHUNK_HEAD, Header, LAST, LONGEST_DESCRIPTOR, MOST_WORDS, TAG, check_secret,
    error_at,
};
use crate::{Error, Result};
use net::writing::{self, Unfinished};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Label of the block that contains the position of the index.
pub(super) const FINISH: &[u8] = b"finish";

/// Bytes of an entry of the index.
pub(super) const ENTRY: usize = 16;

/// Writer that makes a file, run by run.
///
/// It writes under another name in the same folder, and [`Writer::finish`] gives the file its own
/// name. If a writer fails or is dropped before that, nothing is left of the file.
pub struct Writer {
    pub(super) file: BufWriter<File>,
    unfinished: Option<Unfinished>,
    path: PathBuf,
    header: Header,
    keys: Keys,
    /// Offset and number of records of each ended run.
    index: Vec<(u64, u64)>,
    /// Offset at which the current run began.
    start: u64,
    /// Offset of the next chunk.
    end: u64,
    records: u64,
    chunks: u64,
    buffer: Zeroizing<Vec<u8>>,
    failed: bool,
    most_words: usize,
}

impl Writer {
    /// Creates the file, which must not exist, readable by its owner alone. `secret` is the party's
    /// private key in PEM.
    ///
    /// # Errors
    /// `Setup` if the file exists or cannot be created; `Misuse` for an invalid header.
    pub fn create(path: &Path, secret: &[u8], header: &Header) -> Result<Self> {
        check_secret(secret)?;
        if let Some(reason) = header.invalid_reason() {
            return Err(Error::misuse(format!("correlations to make: {reason}")));
        }
        let salt = kernels::stream::random_key()?;
        let made = Unfinished::create(path, 0o600);
        let (unfinished, file) = made.map_err(|error| not_made(path, &error))?;
        let (head, keys) = blocks::encode_head(secret, header, salt.as_bytes());
        let count = counter::block(&keys, Count::default());
        let mut writer = Self {
            file: BufWriter::with_capacity(1 << 18, file),
            unfinished: Some(unfinished),
            path: path.to_owned(),
            header: header.clone(),
            keys,
            index: Vec::new(),
            start: DATA,
            end: DATA,
            records: 0,
            chunks: 0,
            buffer: Zeroizing::default(),
            failed: false,
            most_words: MOST_WORDS,
        };
        writer.written(|file| {
            [head, count, [0; BLOCK], count]
                .iter()
                .try_for_each(|block| file.write_all(block))
        })?;
        Ok(writer)
    }

    /// Makes the limit of records smaller from here on, so that a test of the limit needs no
    /// gigabytes.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, most_words: usize) {
        self.most_words = most_words;
    }

    /// Appends a record to the current run.
    ///
    /// # Errors
    /// `Setup` if the file cannot be written; `Misuse` for a record that is too large, or after the
    /// last run.
    pub fn append(&mut self, descriptor: &[u8], words: &[u64]) -> Result<()> {
        self.check_room()?;
        let length = descriptor.len();
        if length > LONGEST_DESCRIPTOR {
            return Err(Error::misuse(format!(
                "a descriptor of {length} bytes; it has at most {LONGEST_DESCRIPTOR}"
            )));
        }
        if words.len() > self.most_words {
            let (found, most) = (words.len(), self.most_words);
            return Err(Error::misuse(format!(
                "a record of {found} words; it has at most {most}: append several"
            )));
        }
        let prefix = 2 + length + 8;
        let largest = (prefix + 8 * words.len()).min(CHUNK) + TAG;
        if self.buffer.capacity() < largest {
            // Allocated anew, because growing would leave a copy behind.
            self.buffer = Zeroizing::new(Vec::with_capacity(largest));
        }
        self.buffer.clear();
        self.buffer
            .extend_from_slice(&(length as u16).to_le_bytes());
        self.buffer.extend_from_slice(descriptor);
        self.buffer
            .extend_from_slice(&(words.len() as u64).to_le_bytes());
        let mut rest = words;
        loop {
            let room = (CHUNK - self.buffer.len()) / 8;
            let (now, later) = rest.split_at(room.min(rest.len()));
            let start = self.buffer.len();
            self.buffer.resize(start + 8 * now.len(), 0);
            for (bytes, word) in self.buffer[start..].chunks_exact_mut(8).zip(now) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            rest = later;
            self.put_chunk(rest.is_empty())?;
            if rest.is_empty() {
                self.records += 1;
                return Ok(());
            }
        }
    }

    /// Seals and writes the content of the buffer, and empties it.
    fn put_chunk(&mut self, last: bool) -> Result<()> {
        let place = Place {
            run: self.index.len() as u32,
            record: self.records,
            chunk: self.chunks,
            last,
        };
        self.keys.seal(place, &mut self.buffer);
        self.chunks += 1;
        self.end += (CHUNK_HEAD + self.buffer.len()) as u64;
        let head = self.buffer.len() as u32 | if last { LAST } else { 0 };
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.written(|file| {
            file.write_all(&head.to_le_bytes())?;
            file.write_all(&buffer)
        });
        buffer.clear();
        self.buffer = buffer;
        result
    }

    /// Ends the current run, which may be empty.
    ///
    /// # Errors
    /// `Misuse` after the last run.
    pub fn end_run(&mut self) -> Result<()> {
        self.check_room()?;
        self.index.push((self.start, self.records));
        (self.start, self.records, self.chunks) = (self.end, 0, 0);
        Ok(())
    }

    /// Writes the index and makes everything durable: file and folder.
    ///
    /// # Errors
    /// `Misuse` unless exactly the header's runs were written; `Setup` if the file cannot be
    /// written.
    pub fn finish(mut self) -> Result<()> {
        self.check_whole()?;
        let (runs, written) = (self.header.runs as usize, self.index.len());
        if written < runs || self.records > 0 {
            return Err(Error::misuse(format!(
                "{written} of {runs} runs of correlations were written and ended"
            )));
        }
        let index: Vec<u8> = self
            .index
            .iter()
            .flat_map(|(offset, records)| [offset.to_le_bytes(), records.to_le_bytes()])
            .flatten()
            .collect();
        let content = blocks::content(&[
            &self.end.to_le_bytes(),
            &(self.end + index.len() as u64).to_le_bytes(),
            blake3::hash(&index).as_bytes(),
        ]);
        let block = self.keys.authenticate(FINISH, &content);
        self.written(|file| {
            file.write_all(&index)?;
            file.flush()?;
            file.get_ref().sync_all()?;
            // Written last, so that a file is complete if it says that it is finished.
            blocks::write_block(file.get_mut(), blocks::FINISH, &block)?;
            file.get_ref().sync_all()
        })?;
        let unfinished = self.unfinished.take().map(Unfinished::finish);
        unfinished
            .unwrap_or(Ok(()))
            .map_err(|error| not_made(&self.path, &error))
    }

    /// Writes to the file. After a failure, nothing more is written.
    fn written(
        &mut self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<()> {
        write(&mut self.file).map_err(|error| {
            self.failed = true;
            // The partial file is useless, and other files on the disk may need the space.
            self.unfinished = None;
            let (reason, remedy) = writing::why(&error, &self.path, "make it again");
            let reason = format!("cannot be written: {reason}; no part of it is left: {remedy}");
            error_at(&self.path, &reason)
        })
    }

    fn check_whole(&self) -> Result<()> {
        if self.failed {
            return Err(error_at(
                &self.path,
                "could not be written; no part of it is left: make it again",
            ));
        }
        Ok(())
    }

    fn check_room(&self) -> Result<()> {
        self.check_whole()?;
        let runs = self.header.runs;
        if self.index.len() == runs as usize {
            return Err(Error::misuse(format!(
                "all {runs} runs of correlations were written already"
            )));
        }
        Ok(())
    }
}

fn not_made(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => error_at(
            path,
            "exists already; use it up, delete it, or name another",
        ),
        io::ErrorKind::WouldBlock => error_at(path, BUSY),
        _ => {
            let (reason, remedy) = writing::why(error, path, "check its folder and its rights");
            error_at(path, &format!("cannot be made: {reason}; {remedy}"))
        }
    }
}
