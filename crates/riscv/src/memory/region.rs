//! A region: consecutive bytes, and pieces of words among them.

use crate::numbers::words::{Signs, Words};
use std::collections::BTreeMap;

/// Consecutive bytes of memory.
pub struct Region<Word> {
    start: u64,
    bytes: Vec<u8>,
    writable: bool,
    /// The pieces by the address of their first byte; they do not overlap.
    pieces: BTreeMap<u64, Piece<Word>>,
}

/// A range of bytes of a word, lowest byte first.
#[derive(Clone)]
struct Piece<Word> {
    word: Word,
    from: u8,
    bytes: u8,
}

impl<Word: Clone> Piece<Word> {
    /// Cuts the piece that begins at `start` to the addresses `from..to`.
    fn between(&self, start: u64, from: u64, to: u64) -> Self {
        let skipped = from.saturating_sub(start);
        let end = (start + u64::from(self.bytes)).min(to);
        Self {
            word: self.word.clone(),
            from: self.from + skipped as u8,
            bytes: (end - start - skipped) as u8,
        }
    }
}

impl<Word: Clone> Region<Word> {
    pub fn new(start: u64, bytes: Vec<u8>, writable: bool) -> Self {
        Self {
            start,
            bytes,
            writable,
            pieces: BTreeMap::new(),
        }
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn end(&self) -> u64 {
        self.start + self.size()
    }

    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn writable(&self) -> bool {
        self.writable
    }

    #[inline]
    pub fn has(&self, address: u64, bytes: u64) -> bool {
        let before = address.wrapping_sub(self.start);
        before < self.size() && bytes <= self.size() - before
    }

    fn public(&self, address: u64, bytes: u64) -> u64 {
        let mut word = [0; 8];
        word[..bytes as usize].copy_from_slice(self.bytes(address, bytes));
        u64::from_le_bytes(word)
    }

    /// Returns the stored bytes; those covered by pieces have no meaning.
    #[inline]
    pub fn bytes(&self, address: u64, bytes: u64) -> &[u8] {
        let place = (address - self.start) as usize;
        &self.bytes[place..place + bytes as usize]
    }

    /// Loads 1 to 8 bytes as a word, extended with zeros.
    #[inline]
    pub fn load<W: Words<Word = Word>>(&self, words: &mut W, address: u64, bytes: u64) -> Word {
        if self.overlapping(address, bytes) {
            self.joined(words, address, bytes)
        } else {
            words.constant(self.public(address, bytes))
        }
    }

    /// Stores the low 1 to 8 bytes of a word.
    #[inline]
    pub fn store<W: Words<Word = Word>>(
        &mut self,
        words: &W,
        address: u64,
        bytes: u64,
        word: &Word,
    ) {
        if let Some(public) = words.public(word) {
            self.write(address, &public.to_le_bytes()[..bytes as usize]);
        } else {
            self.clear(address, bytes);
            let (word, from) = words.source(word, bytes as u32);
            let (from, bytes) = (from as u8, bytes as u8);
            let piece = Piece { word, from, bytes };
            self.pieces.insert(address, piece);
        }
    }

    /// Writes public bytes.
    #[inline]
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        self.clear(address, bytes.len() as u64);
        let place = (address - self.start) as usize;
        self.bytes[place..place + bytes.len()].copy_from_slice(bytes);
    }

    /// Copies a part of the region.
    pub fn part(&self, address: u64, bytes: u64) -> Self {
        let end = address + bytes;
        let mut part = Self::new(address, self.bytes(address, bytes).to_vec(), self.writable);
        let before = self.piece_at(address).map_or(address, |(start, _)| start);
        for (&start, piece) in self.pieces.range(before..end) {
            let piece = piece.between(start, address, end);
            part.pieces.insert(start.max(address), piece);
        }
        part
    }

    /// Writes a part back to the place that it was taken from.
    pub fn put(&mut self, part: &Self) {
        self.write(part.start, &part.bytes);
        let pieces = part.pieces.iter();
        self.pieces
            .extend(pieces.map(|(&start, piece)| (start, piece.clone())));
    }

    /// Moves the region to another address.
    pub fn moved(self, to: u64) -> Self {
        let from = self.start;
        let pieces = self.pieces.into_iter();
        Self {
            start: to,
            pieces: pieces
                .map(|(start, piece)| (to + (start - from), piece))
                .collect(),
            ..self
        }
    }

    /// Resizes the region; new bytes are 0.
    pub fn resize(&mut self, size: u64) {
        let before = self.size();
        if size < before {
            self.clear(self.start + size, before - size);
        }
        self.bytes.resize(size as usize, 0);
    }

    /// Returns whether two versions of a place are identical: the same words and bytes, which is
    /// more than equal values.
    pub fn is_same<W: Words<Word = Word>>(&self, words: &W, other: &Self) -> bool {
        let mut pairs = self.pieces.iter().zip(&other.pieces);
        self.pieces.len() == other.pieces.len()
            && pairs.all(|((start, x), (other_start, y))| {
                start == other_start
                    && (x.from, x.bytes) == (y.from, y.bytes)
                    && words.are_one(&x.word, &y.word)
            })
            && (self.start..self.end())
                .all(|at| self.piece_at(at).is_some() || self.bytes(at, 1) == other.bytes(at, 1))
    }

    /// Returns the piece that covers an address, and where it begins.
    fn piece_at(&self, address: u64) -> Option<(u64, &Piece<Word>)> {
        let (&start, piece) = self.pieces.range(..=address).next_back()?;
        (address - start < piece.bytes.into()).then_some((start, piece))
    }

    #[inline]
    pub fn overlapping(&self, address: u64, bytes: u64) -> bool {
        !self.pieces.is_empty()
            && (self.piece_at(address).is_some()
                || self.pieces.range(address..address + bytes).next().is_some())
    }

    /// Removes all pieces from a range; pieces that reach into it from outside are cut.
    fn clear(&mut self, address: u64, bytes: u64) {
        if !self.overlapping(address, bytes) {
            return;
        }
        let end = address + bytes;
        let reaching = self
            .piece_at(address)
            .map(|(start, piece)| (start, piece.clone()));
        let inside: Vec<u64> = self
            .pieces
            .range(address..end)
            .map(|(&start, _)| start)
            .collect();
        let mut cut = Vec::new();
        for start in inside {
            cut.extend(self.pieces.remove(&start).map(|piece| (start, piece)));
        }
        if let Some((start, piece)) = reaching.filter(|(start, _)| *start < address) {
            self.pieces.remove(&start);
            cut.push((start, piece));
        }
        for (start, piece) in cut {
            let after = start + u64::from(piece.bytes);
            if start < address {
                let before = piece.between(start, start, address);
                self.pieces.insert(start, before);
            }
            if after > end {
                self.pieces.insert(end, piece.between(start, end, after));
            }
        }
    }

    /// Loads bytes of which some are secret.
    fn joined<W: Words<Word = Word>>(&self, words: &mut W, address: u64, bytes: u64) -> Word {
        let end = address + bytes;
        let mut at = address;
        let mut joined: Option<Word> = None;
        while at < end {
            let (part, length) = match self.piece_at(at) {
                Some((start, _)) => {
                    let piece = self.run(words, at, start, end);
                    (cut(words, &piece), u64::from(piece.bytes))
                }
                None => {
                    let next = self.pieces.range(at..end).next();
                    let length = next.map_or(end, |(&start, _)| start) - at;
                    (words.constant(self.public(at, length)), length)
                }
            };
            let places = words.constant(8 * (at - address));
            let placed = words.shift_left(&part, &places);
            joined = Some(match joined {
                Some(before) => words.or(&before, &placed),
                None => placed,
            });
            at += length;
        }
        joined.expect("a load has at least one byte")
    }

    /// Returns the longest run of bytes from `at` to `end` that are consecutive in one word.
    /// `start` is where the first piece of the run begins.
    fn run<W: Words<Word = Word>>(&self, words: &W, at: u64, start: u64, end: u64) -> Piece<Word> {
        let first = &self.pieces[&start];
        let skipped = (at - start) as u8;
        let mut run = Piece {
            word: first.word.clone(),
            from: first.from + skipped,
            bytes: first.bytes - skipped,
        };
        while let Some(next) = self.pieces.get(&(at + u64::from(run.bytes))) {
            if next.from != run.from + run.bytes || !words.are_one(&next.word, &run.word) {
                break;
            }
            run.bytes += next.bytes;
        }
        run.bytes = run.bytes.min((end - at) as u8);
        run
    }
}

/// Extracts a piece as a word, extended with zeros.
fn cut<W: Words>(words: &mut W, piece: &Piece<W::Word>) -> W::Word {
    let mut word = piece.word.clone();
    if piece.from > 0 {
        let places = words.constant(8 * u64::from(piece.from));
        word = words.shift_right(&word, &places, Signs::Unsigned);
    }
    if piece.bytes < 8 {
        word = words.extend(&word, 8 * u32::from(piece.bytes), Signs::Unsigned);
    }
    word
}
