//! Changes to valid bytes. Random bytes almost never pass a checksum or encode a point of a curve.
//! Valid bytes with a few changes reach the code behind such checks.

/// Bytes of one change: its kind, its place, and its value.
const EDIT: usize = 8;

/// Applies the changes that `data` lists to `right`; no changes if `data` is empty.
pub fn edited(right: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = right.to_vec();
    for edit in data.chunks(EDIT) {
        let mut fields = [0; EDIT];
        fields[..edit.len()].copy_from_slice(edit);
        let [kind, a, b, c, values @ ..] = fields;
        if bytes.is_empty() {
            break;
        }
        let at = u32::from_le_bytes([a, b, c, 0]) as usize % bytes.len();
        match kind % 4 {
            0 => bytes[at] ^= values[0],
            1 => {
                let end = (at + values.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&values[..end - at]);
            }
            2 => bytes.truncate(at),
            _ => bytes.extend(values),
        }
    }
    bytes
}

/// Converts bytes to words. The last word is padded with zeros.
pub fn words(bytes: &[u8]) -> Vec<u64> {
    net::bytes::to_words(bytes)
}

/// Converts words to bytes.
pub fn bytes(words: &[u64]) -> Vec<u8> {
    net::bytes::from_words(words, 8 * words.len())
}
