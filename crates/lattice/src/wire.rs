//! Residues on the wire: 50 bits each, and refused where they are not below their prime.

use crate::Error;
use crate::residues::{BITS, basis};
use ring::pack::{pack_low, packed_words, unpack_low};

/// Words of n numbers modulo the first `primes` primes.
pub(crate) fn words(n: usize, primes: usize) -> usize {
    primes * packed_words(n, BITS)
}

/// Appends numbers, residue by residue, n of each prime.
pub(crate) fn write(residues: &[u64], n: usize, message: &mut Vec<u64>) {
    for residues in residues.chunks_exact(n) {
        let start = message.len();
        message.resize(start + packed_words(n, BITS), 0);
        pack_low(residues, BITS, &mut message[start..]);
    }
}

/// The numbers that [`write`] wrote, n of each prime.
pub(crate) fn read(
    what: &'static str,
    words: &[u64],
    n: usize,
    out: &mut [u64],
) -> Result<(), Error> {
    let each = packed_words(n, BITS);
    for ((words, residues), modulus) in
        (words.chunks_exact(each).zip(out.chunks_exact_mut(n))).zip(&basis().moduli)
    {
        unpack_low(words, BITS, residues);
        let wrong = residues
            .iter()
            .position(|residue| *residue >= modulus.value());
        if let Some(index) = wrong {
            return Err(Error::Residue { what, index });
        }
    }
    Ok(())
}

/// Refuses a message of another length.
pub(crate) fn unless_length(
    what: &'static str,
    expected: usize,
    message: &[u64],
) -> Result<(), Error> {
    let found = message.len();
    if found == expected {
        return Ok(());
    }
    Err(Error::Length {
        what,
        expected,
        found,
    })
}
