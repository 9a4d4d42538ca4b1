//! The memory of a program: bytes that everybody knows, and beside them pieces of words that nobody does.
//!
//! A piece is some bytes of a word. Storing a word makes one piece; storing over a part of it leaves pieces of
//! the rest, and nothing is computed. Loading joins what lies there; pieces of one word that are in order again,
//! as after a copy by bytes, are that word.

use crate::fault::{Fault, Result};
use crate::words::{Signs, Words};
use std::collections::BTreeMap;

/// All of a program's memory at most.
pub const MOST: u64 = 1 << 28;

/// Memory with words of that kind.
pub struct Memory<Word> {
    regions: Vec<Region<Word>>,
    /// Where was looked last.
    last: usize,
}

struct Region<Word> {
    start: u64,
    bytes: Vec<u8>,
    writable: bool,
    /// By the address of their first byte; they do not overlap.
    pieces: BTreeMap<u64, Piece<Word>>,
}

/// Some bytes of a word, lowest first.
#[derive(Clone)]
struct Piece<Word> {
    word: Word,
    from: u8,
    bytes: u8,
}

impl<Word: Clone> Memory<Word> {
    /// Memory without a byte.
    #[must_use]
    pub fn new() -> Self {
        Self {
            regions: Vec::new(),
            last: 0,
        }
    }

    /// Adds bytes from an address on.
    ///
    /// # Errors
    /// `TooLarge` where all would be more than [`MOST`]; `NoProgram` where they would overlap.
    pub fn map(&mut self, start: u64, bytes: Vec<u8>, writable: bool) -> Result<()> {
        let size = |bytes: &Vec<u8>| bytes.len() as u64;
        let wanted = self
            .regions
            .iter()
            .map(|region| size(&region.bytes))
            .sum::<u64>()
            + size(&bytes);
        if wanted > MOST {
            return Err(Fault::TooLarge { wanted, most: MOST });
        }
        let end = start.checked_add(size(&bytes));
        let clear = |end: u64| {
            let apart = |region: &Region<Word>| end <= region.start || start >= region.end();
            self.regions.iter().all(apart)
        };
        if !end.is_some_and(clear) {
            return Err(Fault::NoProgram("its segments overlap".to_owned()));
        }
        self.regions.push(Region {
            start,
            bytes,
            writable,
            pieces: BTreeMap::new(),
        });
        Ok(())
    }

    /// The word that so many bytes are, 1 to 8, with zeros before it.
    ///
    /// # Errors
    /// `Unmapped`.
    #[inline]
    pub fn load<W: Words<Word = Word>>(
        &mut self,
        words: &mut W,
        address: u64,
        bytes: u64,
    ) -> Result<Word> {
        let region = self.region(address, bytes)?;
        if !region.overlapping(address, bytes) {
            return Ok(words.constant(region.public(address, bytes)));
        }
        Ok(region.joined(words, address, bytes))
    }

    /// Writes the low bytes of a word, 1 to 8.
    ///
    /// # Errors
    /// `Unmapped`, `ReadOnly`.
    #[inline]
    pub fn store<W: Words<Word = Word>>(
        &mut self,
        words: &W,
        address: u64,
        bytes: u64,
        word: &Word,
    ) -> Result<()> {
        let region = self.region(address, bytes)?;
        if !region.writable {
            return Err(Fault::ReadOnly { address });
        }
        region.clear(address, bytes);
        if let Some(public) = words.public(word) {
            let place = (address - region.start) as usize;
            let low = &public.to_le_bytes()[..bytes as usize];
            region.bytes[place..place + low.len()].copy_from_slice(low);
        } else {
            let (word, from) = words.source(word, bytes as u32);
            let (from, bytes) = (from as u8, bytes as u8);
            let piece = Piece { word, from, bytes };
            region.pieces.insert(address, piece);
        }
        Ok(())
    }

    /// Bytes that everybody knows.
    ///
    /// # Errors
    /// `Unmapped`; `SecretArgument` where one of them is secret.
    pub fn read(&mut self, address: u64, bytes: u64) -> Result<&[u8]> {
        let region = self.region(address, bytes)?;
        if region.overlapping(address, bytes) {
            return Err(Fault::SecretArgument);
        }
        let place = (address - region.start) as usize;
        Ok(&region.bytes[place..place + bytes as usize])
    }

    /// Writes bytes that everybody knows.
    ///
    /// # Errors
    /// `Unmapped`, `ReadOnly`.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let region = self.region(address, bytes.len() as u64)?;
        if !region.writable {
            return Err(Fault::ReadOnly { address });
        }
        region.clear(address, bytes.len() as u64);
        let place = (address - region.start) as usize;
        region.bytes[place..place + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn region(&mut self, address: u64, bytes: u64) -> Result<&mut Region<Word>> {
        if !self
            .regions
            .get(self.last)
            .is_some_and(|region| region.has(address, bytes))
        {
            let found = self
                .regions
                .iter()
                .position(|region| region.has(address, bytes));
            self.last = found.ok_or(Fault::Unmapped { address, bytes })?;
        }
        Ok(&mut self.regions[self.last])
    }
}

impl<Word: Clone> Default for Memory<Word> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Word: Clone> Region<Word> {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    #[inline]
    fn has(&self, address: u64, bytes: u64) -> bool {
        let before = address.wrapping_sub(self.start);
        let size = self.bytes.len() as u64;
        before < size && bytes <= size - before
    }

    fn public(&self, address: u64, bytes: u64) -> u64 {
        let (place, mut word) = ((address - self.start) as usize, [0; 8]);
        let bytes = bytes as usize;
        word[..bytes].copy_from_slice(&self.bytes[place..place + bytes]);
        u64::from_le_bytes(word)
    }

    /// The piece that has the byte at the address, and where it begins.
    fn piece_at(&self, address: u64) -> Option<(u64, &Piece<Word>)> {
        let (&start, piece) = self.pieces.range(..=address).next_back()?;
        (address - start < piece.bytes.into()).then_some((start, piece))
    }

    #[inline]
    fn overlapping(&self, address: u64, bytes: u64) -> bool {
        !self.pieces.is_empty()
            && (self.piece_at(address).is_some()
                || self.pieces.range(address..address + bytes).next().is_some())
    }

    /// Leaves no piece there; what reaches in from outside is cut.
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
                let before = Piece {
                    bytes: (address - start) as u8,
                    ..piece.clone()
                };
                self.pieces.insert(start, before);
            }
            if after > end {
                let gone = (end - start) as u8;
                let rest = Piece {
                    from: piece.from + gone,
                    bytes: piece.bytes - gone,
                    ..piece
                };
                self.pieces.insert(end, rest);
            }
        }
    }

    /// What lies there, of which some is secret.
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

    /// The bytes from `at` on that follow each other in one word, to the end at most; `start` is where the
    /// first piece of them begins.
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

/// A piece as a word, with zeros before it.
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
