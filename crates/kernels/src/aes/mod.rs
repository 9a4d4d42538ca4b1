//! AES-128 encryption (FIPS 197) of many blocks at once.
//!
//! Blocks are 128-bit integers in little-endian byte order. Operations of the callers before and
//! after the cipher are done here, so that memory is passed over once.
//!
//! With the AVX-512 kernels, and if the processor has vector AES, one instruction encrypts four
//! blocks. Otherwise the `aes` crate does the work, with the processor's AES instructions if it has
//! them. Neither indexes memory by keys or blocks.

mod portable;
mod sums;
#[cfg(avx512)]
mod vaes512;
#[cfg(avx512)]
mod vaes512_sums;

use crate::dispatch::{Backend, backend};
use portable::Portable;
pub use sums::Place;
#[cfg(avx512)]
use vaes512::Vaes512;

/// The number of keys whose short streams are made together.
const TOGETHER: usize = 4;

/// An expanded AES-128 key, wiped when dropped. Deliberately without `Debug` and `PartialEq`.
#[derive(Clone)]
pub struct Aes128(Engine);

/// The key schedule in the form that a kernel uses.
#[derive(Clone)]
enum Engine {
    /// On the heap, since it is several times as large as the other form.
    Portable(Box<Portable>),
    #[cfg(avx512)]
    Vaes512(Vaes512),
}

/// Calls a method of the key's kernel.
macro_rules! call {
    ($aes:expr, $method:ident($($argument:expr),*)) => {
        match &$aes.0 {
            Engine::Portable(engine) => engine.$method($($argument),*),
            #[cfg(avx512)]
            Engine::Vaes512(engine) => engine.$method($($argument),*),
        }
    };
}

impl Aes128 {
    /// Expands a key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self::with(backend(), key)
    }

    fn with(backend: Backend, key: &[u8; 16]) -> Self {
        match backend.checked() {
            #[cfg(avx512)]
            Backend::Avx512 => match Vaes512::new(key) {
                Some(engine) => Self(Engine::Vaes512(engine)),
                None => Self(Engine::Portable(Box::new(Portable::new(key)))),
            },
            _ => Self(Engine::Portable(Box::new(Portable::new(key)))),
        }
    }

    /// Replaces each block x by AES(x).
    pub fn encrypt(&self, blocks: &mut [u128]) {
        call!(self, encrypt(blocks));
    }

    /// Computes AES(x ⊕ `offset`) for each x of `input`.
    ///
    /// # Panics
    /// If `out` has another length than `input`.
    pub fn permute(&self, input: &[u128], offset: u128, out: &mut [u128]) {
        check(input, out);
        call!(self, permute(input, offset, out));
    }

    /// Computes AES(x ⊕ `tweak`) ⊕ x for each x of `input`.
    ///
    /// # Panics
    /// If `out` has another length than `input`.
    pub fn feed_forward(&self, input: &[u128], tweak: u128, out: &mut [u128]) {
        check(input, out);
        call!(self, feed_forward(input, tweak, 0, out));
    }

    /// Computes AES(x ⊕ t) ⊕ x for each x of `input`. The high half of t is `high`; its low half is
    /// `low`, `low` + 1 and so on, mod 2^64.
    ///
    /// # Panics
    /// If `out` has another length than `input`.
    pub fn feed_forward_counted(&self, input: &[u128], high: u64, low: u64, out: &mut [u128]) {
        check(input, out);
        let tweak = u128::from(high) << 64 | u128::from(low);
        call!(self, feed_forward(input, tweak, 1, out));
    }

    /// Replaces each x of `nodes` by h = AES(s) ⊕ s, where s = (a ⊕ b, a) has the high half a of x
    /// and the low half b. Stores h ⊕ x in `others`. Returns the sum of all h.
    ///
    /// # Panics
    /// If `others` has another length than `nodes`.
    pub fn children(&self, nodes: &mut [u128], others: &mut [u128]) -> u128 {
        check(nodes, others);
        call!(self, children(nodes, others))
    }

    /// Computes AES(`first`), AES(`first` + 1) and so on, with counters mod 2^64, two words per
    /// block.
    pub fn key_stream(&self, first: u64, out: &mut [u64]) {
        call!(self, key_stream(first, out));
    }

    /// Computes key streams of several keys from the same counter. `out` is divided into as many
    /// streams as there are keys.
    ///
    /// # Panics
    /// If the streams do not all have the same length.
    pub fn key_streams(keys: &[Self], first: u64, out: &mut [u64]) {
        if keys.is_empty() {
            return assert!(out.is_empty(), "streams of no keys are empty");
        }
        assert!(out.len() % keys.len() == 0, "streams of one length");
        let len = (out.len() / keys.len()).max(1);
        let pieces = keys.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER * len));
        pieces.for_each(|(keys, out)| {
            #[cfg(avx512)]
            if let [
                Self(Engine::Vaes512(a)),
                Self(Engine::Vaes512(b)),
                Self(Engine::Vaes512(c)),
                Self(Engine::Vaes512(d)),
            ] = keys
            {
                return Vaes512::key_streams([a, b, c, d], first, out);
            }
            for (key, out) in keys.iter().zip(out.chunks_exact_mut(len)) {
                key.key_stream(first, out);
            }
        });
    }
}

fn check(input: &[u128], out: &[u128]) {
    assert!(
        input.len() == out.len(),
        "{} blocks make as many, not {}",
        input.len(),
        out.len()
    );
}

#[cfg(test)]
mod tests;
