//! Bits of words packed without gaps, so that only bits that may be one are sent.

use super::node::Components;
use mpc::{Bits, Protocol};

/// The selected bits of several words.
pub struct Places {
    masks: Vec<u64>,
    bits: usize,
}

impl Places {
    /// Selects the ones of a mask for each word.
    #[must_use]
    pub fn of(masks: Vec<u64>) -> Self {
        let bits = masks.iter().map(|mask| mask.count_ones() as usize).sum();
        Self { masks, bits }
    }

    /// Returns the number of selected bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Packs the selected bits of words into a plane.
    #[must_use]
    pub fn pack(&self, words: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut plane = vec![0; self.bits.div_ceil(64)];
        let mut at = 0;
        for (word, mask) in words.into_iter().zip(&self.masks) {
            let (bits, count) = (gathered(word, *mask), mask.count_ones() as usize);
            if count == 0 {
                continue;
            }
            plane[at / 64] |= bits << (at % 64);
            if at % 64 + count > 64 {
                plane[at / 64 + 1] |= bits >> (64 - at % 64);
            }
            at += count;
        }
        plane
    }

    /// Unpacks words from a plane; unselected bits are zero.
    #[must_use]
    pub fn unpack_plane(&self, plane: &[u64]) -> Vec<u64> {
        let mut at = 0;
        let mut next = |mask: &u64| {
            let count = mask.count_ones() as usize;
            if count == 0 {
                return 0;
            }
            let mut bits = plane[at / 64] >> (at % 64);
            if at % 64 + count > 64 {
                bits |= plane[at / 64 + 1] << (64 - at % 64);
            }
            at += count;
            scattered(bits, *mask)
        };
        self.masks.iter().map(&mut next).collect()
    }

    /// Packs the selected bits of shared words.
    #[must_use]
    pub fn pack_shares(&self, protocol: &dyn Protocol, words: &[Components]) -> Bits {
        let component = |part: usize| self.pack(words.iter().map(|word| word[part]));
        let parts = (0..protocol.parts()).map(component).collect();
        Bits::new(1, self.bits, parts)
    }

    /// Unpacks shared words; unselected bits are zero.
    #[must_use]
    pub fn unpack(&self, bits: &Bits) -> Vec<Components> {
        let mut words = vec![Components::default(); self.masks.len()];
        for (part, plane) in bits.parts().iter().enumerate() {
            for (word, found) in words.iter_mut().zip(self.unpack_plane(plane)) {
                word[part] = found;
            }
        }
        words
    }

    /// Returns the word and the place within it of each bit, word by word.
    pub fn each(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let of_word = |(at, mask): (usize, &u64)| places(*mask).map(move |place| (at, place));
        self.masks.iter().enumerate().flat_map(of_word)
    }
}

/// Returns the positions of a mask's ones, from the lowest.
fn places(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let place = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some(place)
    })
}

/// Gathers the bits under a mask into adjacent low bits.
fn gathered(word: u64, mask: u64) -> u64 {
    let run = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
    if run & run.wrapping_add(1) == 0 {
        return (word & mask)
            .checked_shr(mask.trailing_zeros())
            .unwrap_or(0);
    }
    let bits = places(mask).enumerate();
    bits.map(|(to, from)| (word >> from & 1) << to).sum()
}

/// Scatters adjacent low bits to the ones of a mask.
fn scattered(bits: u64, mask: u64) -> u64 {
    let run = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
    if run & run.wrapping_add(1) == 0 {
        return bits.checked_shl(mask.trailing_zeros()).unwrap_or(0) & mask;
    }
    let places = places(mask).enumerate();
    places.map(|(from, to)| (bits >> from & 1) << to).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_to_their_places() {
        let masks = vec![
            0,
            1,
            u64::MAX,
            1 << 63,
            0x00f0_0000_0000_0000,
            0x8000_0000_0000_0001,
            0x5555_5555_5555_5555,
            u64::MAX - 1,
        ];
        let words: Vec<u64> = (1..=8_u64)
            .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let places = Places::of(masks.clone());
        assert_eq!(places.bits(), 1 + 64 + 1 + 4 + 2 + 32 + 63);
        let plane = places.pack(words.iter().copied());
        assert_eq!(plane.len(), 3);
        let expected: Vec<u64> = words
            .iter()
            .zip(&masks)
            .map(|(word, mask)| word & mask)
            .collect();
        assert_eq!(places.unpack_plane(&plane), expected);
        let each = places.each().enumerate();
        for (at, (word, place)) in each {
            assert_eq!(plane[at / 64] >> (at % 64) & 1, words[word] >> place & 1);
        }
    }
}
