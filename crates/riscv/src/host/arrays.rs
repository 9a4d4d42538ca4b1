//! The arrays that programs receive: elements of one length, in memory or in a file.

use crate::floats::fixed::within;
use crate::memory::Memory;
use crate::numbers::fixed_point::{ENCODED, FINEST, Fixed, ROOM, Range, Real, SCALE};
use crate::numbers::words::Words;
use crate::secret::evaluation::of_summands;
use crate::secret::inputs::{Input, share_all};
use crate::secret::size::power;
use crate::secret::{Secret, Word, watch};
use mpc::{Error, Protocol, Result};

/// An array of integers or floats of one length.
pub struct Array {
    /// The name of the array.
    pub name: String,
    /// The number of bytes of an element.
    pub bytes: u64,
    /// Whether the elements are floats. Secret floats are fixed-point words.
    pub floats: bool,
    /// The range that all parties have stated for the elements of a secret array.
    pub range: Option<Range>,
    /// The elements.
    pub content: Content,
}

/// The owner of an array, and its elements.
pub enum Content {
    /// A public array: the bytes of all elements.
    Public(Vec<u8>),
    /// An array that one party owns.
    Secret {
        /// The owner.
        owner: usize,
        /// The number of elements.
        count: usize,
        /// The values, of which the low bytes count; `None` in the parties that do not own the
        /// array.
        values: Option<Vec<u64>>,
    },
    /// A secret-shared integer array: this party's components, which add up to the values, one
    /// column for each component.
    Shared(Vec<Vec<u64>>),
    /// This party's components of floats, as fixed-point words with the given number of fraction
    /// bits.
    Fractions(Vec<Vec<u64>>, u8),
}

impl Array {
    /// Checks an array for errors before anything is sent.
    ///
    /// # Errors
    /// `Stopped`: a party or a length that does not exist, or a number of values that differs from
    /// it.
    pub fn check(&self, parties: usize, components: usize) -> Result<()> {
        check_length(self.bytes, &self.name)?;
        if self.floats && self.bytes < 4 {
            return Err(Error::stopped(format!(
                "{} has floats of {} bytes: only 4 and 8 are possible",
                self.name, self.bytes
            )));
        }
        let refuse = |why: &str| Err(Error::stopped(format!("{} {why}", self.name)));
        match &self.content {
            Content::Public(bytes) if bytes.len() as u64 % self.bytes != 0 => {
                refuse("has a length that is not a multiple of its element size")
            }
            Content::Public(_) if self.range.is_some() => {
                refuse("has a range, but is public: leave the range out")
            }
            _ if self
                .range
                .is_some_and(|range| !self.floats && range.least.ceil() > range.most.floor()) =>
            {
                refuse("has integers, but its range contains none")
            }
            Content::Secret { owner, .. } if *owner >= parties => {
                refuse("belongs to a party that does not exist")
            }
            Content::Secret { count, values, .. }
                if values.as_ref().is_some_and(|values| values.len() != *count) =>
            {
                refuse("has a number of values that differs from its length")
            }
            Content::Fractions(_, scale) if *scale > FINEST => refuse(&format!(
                "has {scale} fraction bits, and programs take at most {FINEST}"
            )),
            Content::Fractions(_, scale) if self.is_wide(*scale) => {
                refuse("has too many fraction bits for its range: give a narrower range, or none")
            }
            Content::Shared(_) if self.floats => refuse("has floats without a scale"),
            Content::Fractions(..) if !self.floats => refuse("has integers with a scale"),
            Content::Shared(parts) | Content::Fractions(parts, _)
                if parts.len() != components
                    || parts.iter().any(|part| part.len() != parts[0].len()) =>
            {
                refuse("has components of different sizes")
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn count(&self) -> usize {
        match &self.content {
            Content::Public(bytes) => bytes.len() / self.bytes as usize,
            Content::Secret { count, .. } => *count,
            Content::Shared(parts) | Content::Fractions(parts, _) => {
                parts.first().map_or(0, Vec::len)
            }
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.saturating_mul(self.count() as u64)
    }

    /// Returns whether words with the given number of fraction bits may exceed the available bits.
    fn is_wide(&self, scale: u8) -> bool {
        self.range
            .is_some_and(|range| range.places() + i32::from(scale) > ROOM)
    }

    fn real(&self) -> Option<Real> {
        let bytes = self.bytes as u8;
        let real = match (&self.content, self.range) {
            (Content::Fractions(_, scale), range) => Real {
                bytes,
                fixed: Fixed {
                    range,
                    ..Fixed::of_scale(*scale)
                },
            },
            (_, Some(range)) => Real::within(bytes, range),
            (_, None) => Real::of_scale(bytes, SCALE),
        };
        self.floats.then_some(real)
    }

    /// Encodes values as the words that are shared.
    fn encoded(&self, values: &[u64]) -> Result<Vec<u64>> {
        let Some(real) = self.real() else {
            return Ok(values.to_vec());
        };
        let words: Option<Vec<u64>> = values.iter().map(|bits| real.encode(*bits)).collect();
        // Only the owner sees this error.
        words.ok_or_else(|| {
            let what = match self.range {
                Some(Range { least, most }) => {
                    format!("outside the range from {least:?} to {most:?}")
                }
                None => {
                    "that does not fit fixed point: its magnitude must be below 2^30".to_owned()
                }
            };
            Error::misuse(format!("{} has a float {what}", self.name))
        })
    }

    /// Prepares the words that are laid in memory. In checked mode, words that arrived as shares
    /// are checked against their range. The owner of other words has checked them locally.
    fn decoded(&self, words: Vec<Word>) -> Vec<Word> {
        if let Some(real) = self.real() {
            let is_owned = matches!(self.content, Content::Secret { .. });
            let word = |word: Word| match real.fixed.range {
                None if is_owned => word.sized(power(ENCODED)),
                Some(_) if !is_owned => within(&mut Secret, &word, real.fixed),
                _ => word,
            };
            return words
                .into_iter()
                .map(|each| Secret.float(&word(each), real))
                .collect();
        }
        let bounded = |(least, most)| move |word: &Word| Secret.bounded(word, least, most);
        match self.range.and_then(|range| self.ends(range)) {
            Some(ends) => words.iter().map(bounded(ends)).collect(),
            None => words,
        }
    }

    /// Returns the bounds on the elements as memory words, if they hold. Shorter elements than four
    /// bytes are loaded with zeros, and unsigned elements with the top bit set are negative as
    /// signed words. Their bounds would be wrong, so none is stated.
    fn ends(&self, Range { least, most }: Range) -> Option<(i64, i64)> {
        let beyond = f64::from(8 * self.bytes as u32 - 1).exp2();
        let is_there = if least < 0.0 {
            self.bytes >= 4
        } else {
            most < beyond
        };
        is_there.then(|| (least.ceil() as i64, most.floor() as i64))
    }

    /// Returns what is to be shared of the array, if one party owns it.
    fn input(&self) -> Result<Option<Input>> {
        let Content::Secret {
            owner,
            count,
            values,
        } = &self.content
        else {
            return Ok(None);
        };
        let values = values.as_deref().map(|values| self.encoded(values));
        Ok(Some(Input {
            owner: *owner,
            count: *count,
            // A fixed-point float takes a whole word.
            bytes: if self.floats { 8 } else { self.bytes },
            values: values.transpose()?,
        }))
    }

    /// Maps the array into memory as its own region. `shared` holds its words if it was shared;
    /// `at` is its index among the program's arrays.
    ///
    /// # Errors
    /// `Stopped` if there is no room.
    pub fn lay(
        &self,
        memory: &mut Memory<Word>,
        place: u64,
        shared: Option<Vec<Word>>,
        at: usize,
    ) -> Result<()> {
        let stopped = |fault: crate::Fault| Error::stopped(format!("{}: {fault}", self.name));
        let words = match &self.content {
            Content::Public(bytes) => {
                return memory.map(place, bytes.clone(), true).map_err(stopped);
            }
            Content::Secret { .. } => self.decoded(shared.expect("it was shared")),
            Content::Shared(parts) | Content::Fractions(parts, _) => {
                watch::at_given(at);
                let claimed = watch::set(true);
                let words = self.decoded(of_summands(parts));
                watch::set(claimed);
                words
            }
        };
        let room = vec![0; self.size() as usize];
        memory.map(place, room, true).map_err(stopped)?;
        for (at, word) in (0..).zip(words) {
            let address = place + self.bytes * at;
            let stored = memory.store(&Secret, address, self.bytes, &word);
            stored.map_err(stopped)?;
        }
        Ok(())
    }
}

/// Shares all owned arrays in one round. Returns the words of each array, or `None` if it is not
/// owned by one party.
///
/// # Errors
/// `Misuse` for a float without a fixed-point encoding. Errors of the network links are passed on.
pub fn share_arrays(
    protocol: &mut dyn Protocol,
    arrays: &[&Array],
) -> Result<Vec<Option<Vec<Word>>>> {
    let inputs: Vec<Option<Input>> = arrays
        .iter()
        .map(|array| array.input())
        .collect::<Result<_>>()?;
    let is_shared: Vec<bool> = inputs.iter().map(Option::is_some).collect();
    let inputs: Vec<Input> = inputs.into_iter().flatten().collect();
    let mut shared = share_all(protocol, &inputs)?.into_iter();
    let words = |is_shared: bool| is_shared.then(|| shared.next().expect("one for each"));
    Ok(is_shared.into_iter().map(words).collect())
}

/// Checks that elements have 1, 2, 4 or 8 bytes.
///
/// # Errors
/// `Stopped` if they do not.
pub fn check_length(bytes: u64, name: &str) -> Result<()> {
    if matches!(bytes, 1 | 2 | 4 | 8) {
        return Ok(());
    }
    Err(Error::stopped(format!(
        "{name} has elements of {bytes} bytes: only 1, 2, 4 and 8 are possible"
    )))
}
