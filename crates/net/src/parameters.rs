//! Running hash of everything that a program asks of a channel except data: steps by name, and
//! their parameters.

/// State of the hash, which is also its value.
///
/// Every word is folded in by a permutation of the state, and every state maps different words to
/// different states. So a single difference persists whatever equal words follow, and several
/// differences cancel only by accident (2^−64). The hash guards against mistakes. Parameters are
/// public, and nothing is hidden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parameters(u64);

impl Default for Parameters {
    fn default() -> Self {
        // Any state except 0, which words that are 0 would leave unchanged.
        Self(0x243f_6a88_85a3_08d3)
    }
}

impl Parameters {
    /// Takes over the state of a peer that is followed.
    pub fn of(value: u64) -> Self {
        Self(value)
    }

    pub fn value(self) -> u64 {
        self.0
    }

    pub fn fold(&mut self, word: u64) {
        // The multiplier is 2^64 over the golden ratio. Both operations are invertible.
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }

    /// Folds in bytes with their number, so that later input cannot be mistaken for them.
    pub fn fold_bytes(&mut self, bytes: &[u8]) {
        self.fold(bytes.len() as u64);
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.fold(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let mut last = [0; 8];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(parts: &[&[u8]]) -> u64 {
        let mut parameters = Parameters::default();
        parts.iter().for_each(|part| parameters.fold_bytes(part));
        parameters.value()
    }

    #[test]
    fn parts_and_their_borders_count() {
        let all = [
            after(&[]),
            after(&[b""]),
            after(&[b"", b""]),
            after(&[b"\0"]),
            after(&[b"ab", b"c"]),
            after(&[b"a", b"bc"]),
            after(&[b"c", b"ab"]),
            after(&[b"12345678"]),
            after(&[b"12345678", b""]),
            after(&[b"123456789"]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| one != other), "{at}");
        }
    }

    #[test]
    fn one_difference_shows_whatever_follows() {
        let pair = |bit: u32| {
            let mut both = [Parameters::default(); 2];
            both[0].fold(5);
            both[1].fold(5 ^ 1 << bit);
            both
        };
        for bit in 0..64 {
            let mut both = pair(bit);
            for word in 0..10_000_u64 {
                both.iter_mut()
                    .for_each(|one| one.fold(word.wrapping_mul(word)));
                assert_ne!(both[0], both[1]);
            }
        }
    }
}
