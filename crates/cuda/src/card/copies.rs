//! Copies between a party's slices and the card, in pieces, through the runtime's staging buffers.

use super::plan::Placement;
use super::words::Words;
use crate::error::Result;
use crate::region::Region;
use crate::runtime::{Runtime, Staging};
use std::ops::Range;

/// Counts bytes, and remembers whose turn it is.
#[derive(Default)]
pub struct Copies {
    /// Bytes in both directions.
    pub bytes: u64,
    turn: usize,
}

impl Copies {
    /// Copies some words to the card.
    pub fn upload<R: Runtime>(
        &mut self,
        runtime: &mut R,
        words: &Words,
        place: &Placement,
        to: Region,
    ) -> Result<()> {
        let mut at = 0;
        while at < place.len {
            let buffer = Staging::In(self.turn);
            self.turn = 1 - self.turn;
            let staging = runtime.staging(buffer)?;
            let len = staging.len().min(place.len - at);
            place.runs(at..at + len, |within, from| {
                words.write(from.start, &mut staging[within.start - at..within.end - at]);
            });
            runtime.copy_in(buffer, len, to.from(at * size_of::<u64>()))?;
            at += len;
        }
        self.count(place.len);
        Ok(())
    }

    /// Copies words from the card. Each piece is handed to `take`, while the next one is copied.
    pub fn download<R: Runtime>(
        &mut self,
        runtime: &mut R,
        from: Region,
        words: usize,
        mut take: impl FnMut(Range<usize>, &[u64]),
    ) -> Result<()> {
        let most = runtime.staging(Staging::Out(0))?.len();
        let pieces: Vec<Range<usize>> = (0..words)
            .step_by(most)
            .map(|first| first..words.min(first + most))
            .collect();
        for at in 0..=pieces.len() {
            if let Some(piece) = pieces.get(at) {
                let region = from.from(piece.start * size_of::<u64>());
                runtime.copy_out(region, piece.len(), Staging::Out(at % 2))?;
            }
            if at > 0 {
                let piece = pieces[at - 1].clone();
                let staging = runtime.staging(Staging::Out((at - 1) % 2))?;
                let len = piece.len();
                take(piece, &staging[..len]);
            }
        }
        self.count(words);
        Ok(())
    }

    fn count(&mut self, words: usize) {
        self.bytes += (words * size_of::<u64>()) as u64;
    }
}
