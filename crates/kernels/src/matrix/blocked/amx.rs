//! Products of 32×32 words by the processor's tiles of bytes (Intel AMX, int8).
//!
//! A word is eight bytes, and Σ a·b mod 2^64 = Σ_d 2^(8d)·Σ_(i+j=d) a_i·b_j for d < 8. These are 36
//! products of byte planes. One instruction for each sums up 16×64 by 64×16 bytes, exactly, in 32
//! bits. A pair of planes adds less than 64·255² to a sum, and eight pairs over a block's depth
//! stay below 2^32.
//!
//! **Limit.** 16,384 products of bytes in 16 cycles: 28 products of words per cycle, five times as
//! many as with `vpmullq`.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::{Left, Right};
use crate::shared_slice::SharedSlice;
use std::arch::asm;
use std::arch::x86_64::{
    __cpuid, __cpuid_count, __m512i, _mm256_loadu_si256, _mm512_add_epi64, _mm512_cvtepu32_epi64,
    _mm512_loadu_si512, _mm512_permutexvar_epi8, _mm512_setzero_si512, _mm512_shuffle_i64x2,
    _mm512_slli_epi64, _mm512_storeu_si512, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes of a word, each of which belongs to a plane.
const PLANES: usize = 8;

/// Rows of a left tile, and columns of a right tile.
const TILE: usize = 16;

/// Rows and columns of a result: two tiles in each direction.
pub(super) const SIDE: usize = 2 * TILE;

/// Depth of a tile.
const CHUNK: usize = 64;

/// Bytes of a tile, and of two tiles side by side.
const BYTES: usize = TILE * CHUNK;
const PAIR: usize = 2 * BYTES;

/// Depth of a block. Sums of its products fit 32 bits with room to spare.
const DEPTH: usize = 512;
const _: () = assert!(PLANES * DEPTH * 255 * 255 < 1 << 32);

/// Columns of a block. Its planes stay in the second-level cache.
pub(super) const BLOCK: usize = 256;

/// Tiles are used only if they are less than this many times larger than their contents.
const MOST_PADDING: usize = 2;

/// Returns whether an m×k by k×n product fills the tiles so well that they are faster.
pub(super) fn fits(m: usize, k: usize, n: usize) -> bool {
    let padded = m.next_multiple_of(TILE) * k.next_multiple_of(CHUNK) * n.next_multiple_of(SIDE);
    padded < MOST_PADDING * m * k * n
}

/// Returns whether the processor and the operating system support tiles of bytes. Requests the
/// operating system's permission to use them, once.
pub(super) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && processor_has_tiles()
            && may_use_tiles()
    })
}

/// Returns whether the processor has AMX-TILE and AMX-INT8, and the operating system saves their
/// state.
#[allow(unused_unsafe, reason = "`cpuid` is safe from rustc 1.94 on")]
fn processor_has_tiles() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const TILE_AND_INT8: u32 = 1 << 24 | 1 << 25;
    const TILE_STATE: u32 = 1 << 17 | 1 << 18;
    // SAFETY: every x86-64 processor has the instruction. Leaf 7 is read only if it exists.
    let (leaves, features) = unsafe { (__cpuid(0).eax, __cpuid(1).ecx) };
    if leaves < 7 || features & OSXSAVE == 0 {
        return false;
    }
    let saved: u32;
    // SAFETY: OSXSAVE permits this instruction; it reads a register of the processor.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") saved, out("edx") _, options(nomem, nostack));
    }
    // SAFETY: as above.
    let extended = unsafe { __cpuid_count(7, 0).edx };
    extended & TILE_AND_INT8 == TILE_AND_INT8 && saved & TILE_STATE == TILE_STATE
}

/// Requests permission to use tiles; Linux grants it to processes that ask. From then on, Linux
/// requires stacks of signal handlers (`sigaltstack`) to hold the state of tiles, 11 KiB. It
/// refuses while a thread has a smaller one.
#[cfg(target_os = "linux")]
fn may_use_tiles() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST_PERMISSION: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let refused: i64;
    // SAFETY: the call reads and writes no memory of this process, and `syscall` changes only these
    // registers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => refused,
            in("rdi") REQUEST_PERMISSION,
            in("rsi") TILE_DATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    refused == 0
}

#[cfg(not(target_os = "linux"))]
fn may_use_tiles() -> bool {
    false
}

/// The tiles of this thread, of 16 rows of 64 bytes, until the value is dropped. Then their
/// contents are erased.
struct Tiles(PhantomData<*mut ()>);

#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

impl Tiles {
    /// # Safety
    /// The machine has tiles of bytes.
    unsafe fn new() -> Self {
        let mut configuration = Configuration {
            palette: 1,
            start: 0,
            reserved: [0; 14],
            bytes: [0; 16],
            rows: [0; 16],
        };
        configuration.bytes[..8].fill(CHUNK as u16);
        configuration.rows[..8].fill(TILE as u8);
        // SAFETY: the machine has the instruction, and a configuration is 64 bytes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &configuration, options(nostack, readonly)) };
        Self(PhantomData)
    }

    /// Computes the sums of one diagonal, for four tiles of the result one after another: over the
    /// chunks, left planes 0..=diagonal times right planes diagonal..=0. Without `both`, computes
    /// only the upper two tiles.
    ///
    /// # Safety
    /// `left` and `right` are valid for reads of `chunks` chunks, of eight planes of two tiles
    /// each. No other `Tiles` of this thread were dropped since this value was made.
    unsafe fn diagonal(
        &self,
        diagonal: usize,
        left: *const u8,
        right: *const u8,
        chunks: usize,
        both: bool,
        sums: &mut [u32; 4 * TILE * TILE],
    ) {
        assert!(chunks > 0 && diagonal < PLANES, "chunks of planes");
        macro_rules! run {
            ($($upper:literal)*; $($load:literal)*; $($lower:literal)*; $($store:literal)*) => {
                // SAFETY: the caller guarantees the reads; four tiles are written to `sums`, which
                // holds them.
                unsafe { asm!(
                    $($upper,)*
                    "2:",
                    "mov {a}, {left}",
                    "mov {b}, {right}",
                    "mov {pairs}, {pairs_of_chunk}",
                    "3:",
                    "tileloadd tmm4, [{a} + {stride}]",
                    "tileloadd tmm6, [{b} + {stride}]",
                    "tdpbuud tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b} + {stride} + 1024]",
                    "tdpbuud tmm1, tmm4, tmm7",
                    $($load,)*
                    $($lower,)*
                    "add {a}, 2048",
                    "sub {b}, 2048",
                    "dec {pairs}",
                    "jnz 3b",
                    "add {left}, 16384",
                    "add {right}, 16384",
                    "dec {chunks}",
                    "jnz 2b",
                    "tilestored [{sums} + {stride}], tmm0",
                    "tilestored [{sums} + {stride} + 1024], tmm1",
                    $($store,)*
                    left = inout(reg) left => _,
                    right = inout(reg) right.add(diagonal * PAIR) => _,
                    chunks = inout(reg) chunks => _,
                    pairs_of_chunk = in(reg) diagonal + 1,
                    stride = in(reg) CHUNK,
                    sums = in(reg) sums.as_mut_ptr(),
                    a = out(reg) _,
                    b = out(reg) _,
                    pairs = out(reg) _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                ) }
            };
        }
        if both {
            run!(
                "tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3";
                "tileloadd tmm5, [{a} + {stride} + 1024]";
                "tdpbuud tmm2, tmm5, tmm6" "tdpbuud tmm3, tmm5, tmm7";
                "tilestored [{sums} + {stride} + 2048], tmm2" "tilestored [{sums} + {stride} + \
                 3072], tmm3"
            );
        } else {
            run!("tilezero tmm0" "tilezero tmm1"; ; ; );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: tiles exist, since they were configured.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// Computes some columns of the result, for some bands of `SIDE` rows.
pub(super) fn block(
    left: &Left,
    out: &SharedSlice<'_, u64>,
    n: usize,
    columns: Range<usize>,
    bands: Range<usize>,
    right: &[&impl Right],
) {
    assert!(is_available(), "this machine has no tiles of bytes");
    let all = left.columns * left.terms.len();
    let most = DEPTH.min(all).div_ceil(CHUNK);
    let panels = columns.len().div_ceil(SIDE);
    let mut b = vec![0; panels * most * PLANES * PAIR];
    let mut a = vec![0; most * PLANES * PAIR];
    let mut rows = vec![0; 4 * panels * SIDE];
    let right = right.iter().map(|right| right.columns(columns.clone()));
    let mut right: Vec<_> = right.collect();
    let mut sums = [[0; 4 * TILE * TILE]; PLANES];
    // SAFETY: the machine has tiles, as was asserted.
    let tiles = unsafe { Tiles::new() };
    for start in (0..all).step_by(DEPTH) {
        let depth = DEPTH.min(all - start);
        let chunks = depth.div_ceil(CHUNK);
        let of_panel = chunks * PLANES * PAIR;
        let b = &mut b[..panels * of_panel];
        for at in (0..chunks * CHUNK).step_by(4) {
            for (row, words) in rows.chunks_exact_mut(panels * SIDE).enumerate() {
                let words = &mut words[..columns.len()];
                if at + row >= depth {
                    words.fill(0);
                    continue;
                }
                let place = start + at + row;
                for (_, term, row) in left.runs(place..place + 1) {
                    right[term](row, words);
                }
            }
            // SAFETY: the machine has AVX-512 with VBMI, since it has tiles.
            unsafe { pack_right(&rows, at, of_panel, b) };
        }
        for band in bands.clone() {
            let height = SIDE.min(left.rows - band * SIDE);
            let a = &mut a[..chunks * PLANES * PAIR];
            pack_left(left, band * SIDE..band * SIDE + height, start, depth, a);
            for (panel, b) in b.chunks_exact(of_panel).enumerate() {
                let first = columns.start + panel * SIDE;
                for (diagonal, sums) in sums.iter_mut().enumerate() {
                    let (a, b) = (a.as_ptr(), b.as_ptr());
                    // SAFETY: both have that many chunks.
                    unsafe { tiles.diagonal(diagonal, a, b, chunks, height > TILE, sums) };
                }
                for row in 0..height {
                    let place = (band * SIDE + row) * n + first;
                    // SAFETY: blocks of columns and bands of rows are disjoint between the tasks.
                    let out = unsafe { out.part(place..place + SIDE.min(columns.end - first)) };
                    // SAFETY: as for `pack_right`.
                    unsafe { write_row(&sums, row, out, start > 0) };
                }
            }
        }
    }
}

/// Packs planes of some rows of the left operand at depths from `start` on: chunk after chunk, each
/// plane as two tiles of 16 rows of 64 bytes. Missing rows and depths are zeros.
fn pack_left(left: &Left, rows: Range<usize>, start: usize, depth: usize, out: &mut [u8]) {
    if rows.len() < SIDE {
        out.fill(0);
    }
    for (at, row) in rows.enumerate() {
        for (chunk, out) in out.chunks_exact_mut(PLANES * PAIR).enumerate() {
            let mut words = [0; CHUNK];
            let used = CHUNK.min(depth - chunk * CHUNK);
            let first = start + chunk * CHUNK;
            for (at, term, columns) in left.runs(first..first + used) {
                let from = &left.terms[term][row * left.columns..][columns];
                words[at..][..from.len()].copy_from_slice(from);
            }
            // SAFETY: as for `pack_right`.
            let planes = unsafe { planes(&words) };
            for (plane, out) in planes.iter().zip(out.chunks_exact_mut(PAIR)) {
                out[at * CHUNK..][..CHUNK].copy_from_slice(plane);
            }
        }
    }
}

/// The permutation within eight words that moves byte p of word w to byte w of group p.
const BY_PLANE: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = (at % 8 * 8 + at / 8) as u8;
        at += 1;
    }
    places
};

/// The permutation that moves byte n of row k, of four rows of 16, to byte k of group n, as the
/// right tile requires.
const BY_COLUMN: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = (at % 4 * 16 + at / 4) as u8;
        at += 1;
    }
    places
};

/// Packs four rows of the right operand, at a depth that is a multiple of four from the block's
/// start. For each panel of `SIDE` columns, chunk after chunk, each plane becomes two tiles of 16
/// rows of four depths by 16 columns.
///
/// # Safety
/// The processor has AVX-512 F, BW and VBMI.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn pack_right(rows: &[u64], depth: usize, of_panel: usize, out: &mut [u8]) {
    let width = rows.len() / 4;
    let (chunk, line) = (depth / CHUNK, depth % CHUNK / 4);
    for first in (0..width).step_by(TILE) {
        let mut words = [0; CHUNK];
        for (row, words) in words.chunks_exact_mut(TILE).enumerate() {
            words.copy_from_slice(&rows[row * width + first..][..TILE]);
        }
        // SAFETY: as for this function; 64 bytes are loaded from, and stored to, arrays of 64.
        let planes = unsafe { planes(&words) };
        let place = first / SIDE * of_panel + chunk * PLANES * PAIR + first % SIDE / TILE * BYTES;
        for (at, plane) in planes.iter().enumerate() {
            let out: &mut [u8; 64] = (&mut out[place + at * PAIR + line * 64..][..64])
                .try_into()
                .expect("64 bytes");
            // SAFETY: as above.
            unsafe {
                let turned = _mm512_permutexvar_epi8(load(&BY_COLUMN), load(plane));
                _mm512_storeu_si512(out.as_mut_ptr().cast(), turned);
            }
        }
    }
}

/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
unsafe fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: an unaligned load of 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Splits 64 words into their eight planes: byte p of each word, in order.
///
/// # Safety
/// The processor has AVX-512 F, BW and VBMI.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn planes(words: &[u64; CHUNK]) -> [[u8; 64]; PLANES] {
    // SAFETY: loads of eight words each, and stores of 64 bytes.
    unsafe {
        let by_plane = load(&BY_PLANE);
        let z: [__m512i; 8] = std::array::from_fn(|at| {
            let words = _mm512_loadu_si512(words.as_ptr().add(8 * at).cast());
            _mm512_permutexvar_epi8(by_plane, words)
        });
        // Transposes 8×8 groups of eight bytes: first pairs of rows, then halves, then quarters.
        let [a0, a2, a4, a6] =
            std::array::from_fn(|at| _mm512_unpacklo_epi64(z[2 * at], z[2 * at + 1]));
        let [a1, a3, a5, a7] =
            std::array::from_fn(|at| _mm512_unpackhi_epi64(z[2 * at], z[2 * at + 1]));
        let quarters = |a: __m512i, b: __m512i, c: __m512i, d: __m512i| {
            let (low, high) = (
                _mm512_shuffle_i64x2::<0x88>(a, b),
                _mm512_shuffle_i64x2::<0xdd>(a, b),
            );
            let (low_2, high_2) = (
                _mm512_shuffle_i64x2::<0x88>(c, d),
                _mm512_shuffle_i64x2::<0xdd>(c, d),
            );
            [
                _mm512_shuffle_i64x2::<0x88>(low, low_2),
                _mm512_shuffle_i64x2::<0x88>(high, high_2),
                _mm512_shuffle_i64x2::<0xdd>(low, low_2),
                _mm512_shuffle_i64x2::<0xdd>(high, high_2),
            ]
        };
        let even = quarters(a0, a2, a4, a6);
        let odd = quarters(a1, a3, a5, a7);
        let mut planes = [[0; 64]; PLANES];
        for (at, plane) in planes.iter_mut().enumerate() {
            let groups = if at % 2 == 0 { even } else { odd }[at / 2];
            _mm512_storeu_si512(plane.as_mut_ptr().cast(), groups);
        }
        planes
    }
}

/// Writes or adds a row of the result: Σ_d 2^(8d) times the sums of diagonal d.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
unsafe fn write_row(
    sums: &[[u32; 4 * TILE * TILE]; PLANES],
    row: usize,
    out: &mut [u64],
    add: bool,
) {
    let mut words = [0_u64; SIDE];
    for (group, words) in words.chunks_exact_mut(8).enumerate() {
        // The tiles follow each other: two of the upper rows, then two of the lower rows.
        let place = (row / TILE * 2 + group / 2) * TILE * TILE + row % TILE * TILE + group % 2 * 8;
        let mut total = _mm512_setzero_si512();
        for sums in sums.iter().rev() {
            let sums: &[u32; 8] = sums[place..place + 8].try_into().expect("eight sums");
            // SAFETY: an unaligned load of eight sums.
            let sums = unsafe { _mm256_loadu_si256(sums.as_ptr().cast()) };
            total = _mm512_add_epi64(_mm512_slli_epi64::<8>(total), _mm512_cvtepu32_epi64(sums));
        }
        // SAFETY: an unaligned store of eight words.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), total) };
    }
    for (out, word) in out.iter_mut().zip(words) {
        *out = if add { out.wrapping_add(word) } else { word };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Matrix, values};
    use super::*;
    use crate::dispatch::Backend;

    /// Checks the detection against the operating system, which may still refuse tiles.
    #[test]
    #[cfg(target_os = "linux")]
    fn tiles_are_found_where_the_processor_has_them() {
        let text = std::fs::read_to_string("/proc/cpuinfo").expect("/proc/cpuinfo is readable");
        let has = |flag: &str| text.split_whitespace().any(|word| word == flag);
        let has_all = ["amx_tile", "amx_int8", "avx512bw", "avx512vbmi"]
            .iter()
            .all(|flag| has(flag));
        println!("tiles of bytes: {}", is_available());
        assert_eq!(processor_has_tiles(), has("amx_tile") && has("amx_int8"));
        assert!(has_all || !is_available());
    }

    /// Tests the largest words at every depth up to beyond a block, half-empty tiles, and terms
    /// that end within a chunk.
    #[test]
    fn agree_with_words_bit_for_bit() {
        if !is_available() {
            return;
        }
        for [m, k, n] in [
            [16, 64, 32],
            [32, 40, 31],
            [31, 100, 50],
            [15, 63, 64],
            [33, 512, 32],
            [70, 513, 300],
            [64, 2000, 257],
        ] {
            for largest in [true, false] {
                let operand = |n: usize, seed: u64| {
                    if largest {
                        vec![u64::MAX; n]
                    } else {
                        values(n, seed)
                    }
                };
                let a = [1, 2].map(|seed| operand(m * k, seed));
                let b = [3, 4].map(|seed| operand(k * n, seed));
                let right = [Matrix(&b[0], n), Matrix(&b[1], n)];
                let (a, right) = ([&a[0][..], &a[1]], [&right[0], &right[1]]);
                let mut left = Left::new(Backend::Avx512, m, k, &a, None);
                assert!(fits(m, 2 * k, n), "{m}×{k}×{n}");
                let (mut found, mut expected) = (vec![3; m * n], vec![5; m * n]);
                left.multiply(&mut found, n, &right);
                left.by_bytes = false;
                left.multiply(&mut expected, n, &right);
                assert!(found == expected, "{m}×{k}×{n}");
            }
        }
    }

    #[test]
    fn what_would_leave_tiles_empty_does_not_fit() {
        for [m, k, n] in [
            [0, 64, 32],
            [7, 64, 32],
            [16, 31, 32],
            [16, 64, 15],
            [1, 1, 1],
        ] {
            assert!(!fits(m, k, n), "{m}×{k}×{n}");
        }
        assert!(fits(16, 64, 32) && fits(14, 55, 110));
    }
}
