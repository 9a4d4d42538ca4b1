//! Copies between a party's slices and the card, in pieces, through the runtime's staging buffers.

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
        range: Range<usize>,
        to: Region,
    ) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let buffer = Staging::In(self.turn);
            self.turn = 1 - self.turn;
            let staging = runtime.staging(buffer)?;
            let len = staging.len().min(range.end - at);
            words.write(at, &mut staging[..len]);
            let to = to.from((at - range.start) * size_of::<u64>());
            runtime.copy_in(buffer, len, to)?;
            at += len;
        }
        self.count(range.len());
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
