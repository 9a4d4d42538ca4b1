//! Encoding of residues on the wire, with as many bits as their prime has. Residues that are not
//! below their prime are refused.

use crate::Error;
use crate::residues::{BITS, basis};
use kernels::pack::{pack_low, packed_words, unpack_low};

/// Returns the number of words of n numbers modulo the first `primes` primes.
pub(crate) fn words(n: usize, primes: usize) -> usize {
    BITS[..primes]
        .iter()
        .map(|bits| packed_words(n, *bits))
        .sum()
}

/// Appends numbers, residue by residue, n for each prime.
pub(crate) fn write(residues: &[u64], n: usize, message: &mut Vec<u64>) {
    for (residues, bits) in residues.chunks_exact(n).zip(BITS) {
        let start = message.len();
        message.resize(start + packed_words(n, bits), 0);
        pack_low(residues, bits, &mut message[start..]);
    }
}

/// Reads the numbers that [`write`] wrote, n for each prime.
pub(crate) fn read(
    what: &'static str,
    words: &[u64],
    n: usize,
    out: &mut [u64],
) -> Result<(), Error> {
    let mut rest = words;
    for ((bits, residues), modulus) in
        (BITS.into_iter().zip(out.chunks_exact_mut(n))).zip(&basis().moduli)
    {
        let (now, later) = rest.split_at(packed_words(n, bits));
        unpack_low(now, bits, residues);
        rest = later;
        let wrong = residues
            .iter()
            .position(|residue| *residue >= modulus.value());
        if let Some(index) = wrong {
            return Err(Error::Residue { what, index });
        }
    }
    Ok(())
}
