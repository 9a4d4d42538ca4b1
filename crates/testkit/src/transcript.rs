//! Transcripts of what a party receives, and tests of whether they reveal anything.
//!
//! A transcript covers [`REPETITIONS`] runs of one operation on the *same* secret. All randomness
//! that the party itself knows is set to zero, so that no mask of its own can hide a leak. What
//! remains must look uniform to the party. Bit j of word i over the repetitions is a *lane*. In a
//! transcript of uniform words, no lane is constant or nearly so. No two lanes are equal or
//! complementary, as they are if one mask hides two messages. No word is biased, and no bit
//! position of 64 consecutive words. The odds of a false alarm are below 10^−9 for a million words.

use kernels::planes::split;
use net::Channel;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of runs in a transcript. Each contributes one bit to a lane.
pub const REPETITIONS: usize = 64;

/// A lane is constant if the rarer bit occurs at most this often.
const RARE: u32 = 3;

/// The number of words whose bits at one position are examined together.
const RUN: usize = 64;

/// The largest distance of a number of ones from its expectation, in standard deviations.
const DEVIATIONS: f64 = 8.0;

/// The words that one party receives in each repetition.
#[derive(Default, PartialEq, Eq)]
pub struct Transcript {
    repetitions: Vec<Vec<u64>>,
}

/// The reason why a transcript is not uniform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leak {
    /// A bit of this word hardly ever changes.
    ConstantBit {
        /// Index among the words received.
        word: usize,
    },
    /// This word has too many or too few ones.
    BiasedWord {
        /// Index among the words received.
        word: usize,
    },
    /// This bit of 64 consecutive words, or of the last ones, has too many or too few ones.
    BiasedPosition {
        /// Index of the first word among the words received.
        word: usize,
        /// The bit position in each word.
        bit: usize,
    },
    /// Two bits always agree, or always differ: a mask was used twice.
    RepeatedMask {
        /// Indices among the words received.
        words: [usize; 2],
    },
}

/// A recorder of the words that a party receives, or that it opens.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Transcript>>);

impl Recorder {
    /// Starts to record what arrives on a channel from these senders.
    pub fn attach(&self, channel: &mut Channel, from: impl Fn(usize) -> bool + Send + 'static) {
        let recorder = self.clone();
        channel.set_tap(Box::new(move |sender, _, words| {
            if from(sender) {
                recorder.record(words);
            }
        }));
    }

    /// Records these words, if a repetition has begun.
    pub fn record(&self, words: &[u64]) {
        let mut transcript = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(now) = transcript.repetitions.last_mut() {
            now.extend_from_slice(words);
        }
    }

    /// Begins the next repetition.
    pub fn repeat(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .repetitions
            .push(Vec::new());
    }

    /// Takes the recorded transcript.
    #[must_use]
    pub fn transcript(&self) -> Transcript {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transcript {
    /// Returns the number of words received in each repetition.
    ///
    /// # Panics
    /// Unless the transcript holds [`REPETITIONS`] repetitions of one length.
    #[must_use]
    pub fn words(&self) -> usize {
        assert_eq!(
            self.repetitions.len(),
            REPETITIONS,
            "the transcript does not have {REPETITIONS} repetitions"
        );
        let words = self.repetitions[0].len();
        assert!(
            self.repetitions.iter().all(|now| now.len() == words),
            "the repetitions have different lengths"
        );
        words
    }

    /// Returns the first sign that these words are not uniform.
    ///
    /// # Panics
    /// Unless the transcript holds [`REPETITIONS`] repetitions of one length.
    #[must_use]
    pub fn leak(&self) -> Option<Leak> {
        let words = self.words();
        let mut lanes = Vec::with_capacity(64 * words);
        let mut positions = [0_u32; 64];
        for word in 0..words {
            let column: Vec<u64> = self.repetitions.iter().map(|now| now[word]).collect();
            let mut planes = [0; 64];
            split(&column, 64, &mut planes);
            let ones: u32 = planes.iter().map(|lane| lane.count_ones()).sum();
            if planes
                .iter()
                .any(|lane| lane.count_ones() < RARE || lane.count_zeros() < RARE)
            {
                return Some(Leak::ConstantBit { word });
            }
            // 64·64 fair coins: expectation 2048, standard deviation 32.
            if (f64::from(ones) - 2048.0).abs() > DEVIATIONS * 32.0 {
                return Some(Leak::BiasedWord { word });
            }
            for (ones, lane) in positions.iter_mut().zip(planes) {
                *ones += lane.count_ones();
            }
            let run = word % RUN + 1;
            if run == RUN || word + 1 == words {
                let coins = (REPETITIONS * run) as f64;
                let most = DEVIATIONS * coins.sqrt() / 2.0;
                let biased = |ones: &u32| (f64::from(*ones) - coins / 2.0).abs() > most;
                if let Some(bit) = positions.iter().position(biased) {
                    let word = word + 1 - run;
                    return Some(Leak::BiasedPosition { word, bit });
                }
                positions = [0; 64];
            }
            // A lane and its complement count as one.
            lanes.extend(planes.map(|lane| (if lane & 1 == 0 { lane } else { !lane }, word)));
        }
        lanes.sort_unstable();
        let twice = lanes.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
        Some(Leak::RepeatedMask {
            words: [twice[0].1, twice[1].1],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn uniform(words: usize) -> Vec<Vec<u64>> {
        let mut random = Random::new(5);
        (0..REPETITIONS).map(|_| random.words(words)).collect()
    }

    fn leak(repetitions: Vec<Vec<u64>>) -> Option<Leak> {
        Transcript { repetitions }.leak()
    }

    #[test]
    fn uniform_words_say_nothing() {
        assert_eq!(leak(uniform(20_000)), None);
    }

    #[test]
    fn one_constant_bit_is_found() {
        let mut words = uniform(1000);
        words.iter_mut().for_each(|now| now[700] |= 1 << 33);
        assert_eq!(leak(words), Some(Leak::ConstantBit { word: 700 }));
    }

    #[test]
    fn a_biased_word_is_found() {
        let mut words = uniform(1000);
        let other = Random::new(6).words(REPETITIONS);
        words
            .iter_mut()
            .zip(other)
            .for_each(|(now, other)| now[3] &= other);
        assert_eq!(leak(words), Some(Leak::BiasedWord { word: 3 }));
    }

    #[test]
    fn a_biased_position_is_found() {
        let mut words = uniform(1000);
        let other: Vec<_> = (7..)
            .map(|seed| Random::new(seed).words(1000))
            .take(REPETITIONS)
            .collect();
        for (now, other) in words.iter_mut().zip(other) {
            now.iter_mut()
                .zip(other)
                .skip(960)
                .for_each(|(now, other)| *now &= other | !1);
        }
        assert_eq!(
            leak(words),
            Some(Leak::BiasedPosition { word: 960, bit: 0 })
        );
    }

    #[test]
    fn a_mask_used_twice_is_found() {
        let mut words = uniform(1000);
        words
            .iter_mut()
            .for_each(|now| now[20] = now[10] ^ 0xdead_beef);
        assert_eq!(leak(words), Some(Leak::RepeatedMask { words: [10, 20] }));
    }
}
