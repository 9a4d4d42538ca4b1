//! Bytes inside payloads of words, little endian.

/// Packs bytes into words; pads the last word with zeros.
#[must_use]
pub fn to_words(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        })
        .collect()
}

/// Returns the first `length` bytes of the words, or fewer if there are not as many.
#[must_use]
pub fn from_words(words: &[u64], length: usize) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .take(length)
        .collect()
}
