//! Components of many words: word by word, and in the layout that protocols take.

use super::node::Components;
use mpc::{PartsMut, Protocol, Result};

/// Returns what an operation writes, word by word.
///
/// # Errors
/// The errors of the operation.
pub fn written(
    protocol: &mut dyn Protocol,
    n: usize,
    write: impl FnOnce(&mut dyn Protocol, PartsMut) -> Result<()>,
) -> Result<Vec<Components>> {
    let mut parts = vec![vec![0; n]; protocol.parts()];
    let mut out: Vec<&mut [u64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
    write(protocol, &mut out)?;
    Ok(rows(&parts))
}

/// Converts from columns by component to components by word.
#[must_use]
pub fn rows(parts: &[Vec<u64>]) -> Vec<Components> {
    let row = |at: usize| {
        let mut row = Components::default();
        for (component, part) in row.iter_mut().zip(parts) {
            *component = part[at];
        }
        row
    };
    (0..parts[0].len()).map(row).collect()
}

/// Converts from components by word to columns by component.
#[must_use]
pub fn columns(protocol: &dyn Protocol, rows: &[Components]) -> Vec<Vec<u64>> {
    let column = |part: usize| rows.iter().map(|row| row[part]).collect();
    (0..protocol.parts()).map(column).collect()
}

/// Borrows columns in the layout that a protocol takes.
#[must_use]
pub fn slices(parts: &[Vec<u64>]) -> Vec<&[u64]> {
    parts.iter().map(Vec::as_slice).collect()
}
