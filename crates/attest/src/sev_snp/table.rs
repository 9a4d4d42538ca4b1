//! The table of certificates that a host may hand to its guest with a report: entries of a name
//! (GUID, 16 bytes), an offset and a length (4 bytes each, little-endian), and one of zeros last.
//!
//! The host can put anything there. Only keys that sign reports are taken from it: what is needed
//! to check them comes from collateral.

use crate::error::{Error, Result};

const ENTRY: usize = 24;

/// Most entries of a table.
const MOST: usize = 64;

/// Names of the certificates of keys that sign reports, of a chip and of a cloud's provider.
const SIGNERS: [[u8; 16]; 2] = [
    [
        0x63, 0xda, 0x75, 0x8d, 0xe6, 0x64, 0x45, 0x64, 0xad, 0xc5, 0xf4, 0xb9, 0x3b, 0xe8, 0xac,
        0xcd,
    ],
    [
        0xa8, 0x07, 0x4b, 0xc2, 0xa2, 0x5a, 0x48, 0x3e, 0xaa, 0xe6, 0x39, 0xc0, 0x45, 0xa0, 0xb8,
        0xa1,
    ],
];

/// Returns the certificates of keys that sign reports, in DER. An empty table has none.
///
/// # Errors
/// `Malformed` for a table without an end, or entries that are not inside of it.
pub fn signers(table: &[u8]) -> Result<Vec<&[u8]>> {
    let malformed = |what: &str| Error::Malformed(format!("its table of certificates {what}"));
    let mut found = Vec::new();
    if table.is_empty() {
        return Ok(found);
    }
    for entry in table.chunks_exact(ENTRY).take(MOST) {
        let number = |at: usize| {
            let bytes = std::array::from_fn(|byte| entry[at + byte]);
            u32::from_le_bytes(bytes) as usize
        };
        let (name, offset, length) = (&entry[..16], number(16), number(20));
        if entry.iter().all(|byte| *byte == 0) {
            return Ok(found);
        }
        let content = offset
            .checked_add(length)
            .and_then(|end| table.get(offset..end))
            .ok_or_else(|| malformed("points outside of itself"))?;
        if SIGNERS.iter().any(|known| known == name) {
            found.push(content);
        }
    }
    Err(malformed("has no end"))
}
