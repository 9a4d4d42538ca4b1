//! Changes to bytes that are right. Random bytes almost never pass a checksum or are a point of a
//! curve; right bytes with a few changes reach what lies behind.

/// Bytes of one change: its kind, where, and what.
const EDIT: usize = 8;

/// `right` with the changes that `data` lists; none if it is empty.
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

/// Words, the last of them padded with zeros.
pub fn words(bytes: &[u8]) -> Vec<u64> {
    net::bytes::to_words(bytes)
}

/// Words as bytes.
pub fn bytes(words: &[u64]) -> Vec<u8> {
    net::bytes::from_words(words, 8 * words.len())
}
