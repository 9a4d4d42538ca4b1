//! Convolutions with few filters per group, depthwise ones above all, where packing does not pay.
//! The taps of a channel are accumulated in registers, and the result is written once per channel.
//!
//! A channel is first copied with its padding, so that no tap needs a border case. With stride s,
//! the copy is split into the s×s planes ("phases") of rows and columns that are equal mod s. A tap
//! then meets one phase at a fixed distance, for all pixels of a row. Rows of the result are spaced
//! like those of the phase, so the distance is the same for all rows: the whole plane is one long
//! row, however small it is. The columns between the result's rows are computed too, and dropped.

use super::Convolution;
use crate::dispatch::Backend;

/// The most words of the phases per word of image and result. Larger copies cost too much.
const LARGEST_COPY: usize = 4;

/// A tap of the filter in a channel.
struct Tap {
    weight: u64,
    /// The place, among the phases, of the word that the tap meets at the first pixel.
    place: usize,
}

/// One thread's buffers: a channel's phases, the result's long row, and the taps.
pub(super) struct Scratch {
    copy: Vec<u64>,
    sums: Vec<u64>,
    taps: Vec<Tap>,
}

/// The layout of a channel's phases. The used phases lie one after another.
pub(super) struct Phases {
    /// Rows and columns of one phase.
    size: [usize; 2],
    /// The phases that some tap meets, on each axis.
    used: [Vec<usize>; 2],
    /// Words of the result when its rows are spaced like those of a phase.
    run: usize,
}

impl Phases {
    /// Lays out the phases; `None` if the copy would be much larger than image and result, as with
    /// vast dilations.
    pub(super) fn of(shape: &Convolution) -> Option<Self> {
        let output = shape.output();
        let size = [0, 1].map(|axis| {
            output[axis] + shape.dilation[axis] * (shape.kernel[axis] - 1) / shape.stride[axis]
        });
        let used = [0, 1].map(|axis| {
            let stride = shape.stride[axis];
            let mut used: Vec<usize> = (0..shape.kernel[axis].min(stride))
                .map(|tap| tap * (shape.dilation[axis] % stride) % stride)
                .collect();
            used.sort_unstable();
            used.dedup();
            used
        });
        let words = used[0]
            .len()
            .checked_mul(used[1].len())?
            .checked_mul(size[0])?
            .checked_mul(size[1])?;
        let around = shape.input[0] * shape.input[1] + output[0] * output[1];
        (words <= LARGEST_COPY * around).then(|| Self {
            size,
            used,
            run: (output[0] - 1) * size[1] + output[1],
        })
    }

    fn words(&self) -> usize {
        self.used[0].len() * self.used[1].len() * self.size[0] * self.size[1]
    }

    /// Returns whether a copy would equal the channel.
    fn is_image(&self, shape: &Convolution) -> bool {
        shape.stride == [1, 1] && shape.padding == [0, 0] && self.size == shape.input
    }

    /// Returns the place of the word that the filter's word (y, x) meets at the first pixel.
    fn place(&self, shape: &Convolution, position: [usize; 2]) -> usize {
        let at = [0, 1].map(|axis| position[axis] * shape.dilation[axis]);
        let [y, x] = [0, 1].map(|axis| {
            let phase = at[axis] % shape.stride[axis];
            self.used[axis]
                .binary_search(&phase)
                .expect("the taps' phases are used")
        });
        let [rows, columns] = self.size;
        ((y * self.used[1].len() + x) * rows + at[0] / shape.stride[0]) * columns
            + at[1] / shape.stride[1]
    }

    /// Copies a channel. Words outside the image stay zero.
    fn copy(&self, shape: &Convolution, channel: &[u64], out: &mut [u64]) {
        let [rows, columns] = self.size;
        let mut planes = out.chunks_exact_mut(rows * columns);
        for y in &self.used[0] {
            for x in &self.used[1] {
                let plane = planes.next().expect("a plane for each phase");
                for (row, line) in plane.chunks_exact_mut(columns).enumerate() {
                    let from = (row * shape.stride[0] + y).wrapping_sub(shape.padding[0]);
                    if from >= shape.input[0] {
                        continue;
                    }
                    let source = &channel[from * shape.input[1]..][..shape.input[1]];
                    // Word j of the line is word j·stride + x − padding of the image.
                    let (stride, padding) = (shape.stride[1], shape.padding[1]);
                    let first = padding.saturating_sub(*x).div_ceil(stride);
                    let Some(source) = source.get(first * stride + x - padding..) else {
                        continue;
                    };
                    let line = line.get_mut(first..).unwrap_or_default();
                    if stride == 1 {
                        let words = line.len().min(source.len());
                        line[..words].copy_from_slice(&source[..words]);
                    } else {
                        line.iter_mut()
                            .zip(source.iter().step_by(stride))
                            .for_each(|(out, word)| *out = *word);
                    }
                }
            }
        }
    }

    /// Allocates the buffers of one thread.
    pub(super) fn scratch(&self, shape: &Convolution) -> Scratch {
        let [rows, columns] = shape.kernel;
        let tap = |tap| Tap {
            weight: 0,
            place: self.place(shape, [tap / columns, tap % columns]),
        };
        Scratch {
            copy: vec![0; self.words()],
            sums: vec![0; self.run],
            taps: (0..rows * columns).map(tap).collect(),
        }
    }

    /// Computes the result of one filter on one image.
    pub(super) fn filter(
        &self,
        backend: Backend,
        shape: &Convolution,
        Scratch { copy, sums, taps }: &mut Scratch,
        out: &mut [u64],
        [image, filter]: [usize; 2],
        terms: &[(&[u64], &[u64])],
    ) {
        let (backend, width) = (backend.checked(), shape.output()[1]);
        let channels = shape.in_channels / shape.groups;
        let first = filter / (shape.out_channels / shape.groups) * channels;
        let area = shape.input[0] * shape.input[1];
        let of_filter = filter * channels * taps.len()..(filter + 1) * channels * taps.len();
        // The rows of the result follow each other as those of the image do, as with kernels of one
        // word.
        let dense = self.run == out.len();
        let totals = if dense { &mut *out } else { &mut **sums };
        totals.fill(0);
        for (images, filters) in terms {
            let weights = filters[of_filter.clone()].chunks_exact(taps.len());
            for (channel, weights) in weights.enumerate() {
                let words = (image * shape.in_channels + first + channel) * area;
                let image = &images[words..][..area];
                let words = if self.is_image(shape) {
                    image
                } else {
                    self.copy(shape, image, copy);
                    &*copy
                };
                for (tap, weight) in taps.iter_mut().zip(weights) {
                    tap.weight = *weight;
                }
                add_taps(backend, totals, taps, words);
            }
        }
        if dense {
            return;
        }
        for (out, sums) in out.chunks_exact_mut(width).zip(sums.chunks(self.size[1])) {
            out.copy_from_slice(&sums[..width]);
        }
    }
}

/// sums[j] += Σ weight · words[place + j] over the taps.
fn add_taps(backend: Backend, sums: &mut [u64], taps: &[Tap], words: &[u64]) {
    #[inline(always)]
    fn body<const LANES: usize>(sums: &mut [u64], taps: &[Tap], words: &[u64]) {
        let whole = sums.len() / LANES * LANES;
        let (blocks, rest) = sums.split_at_mut(whole);
        for (block, sums) in blocks.chunks_exact_mut(LANES).enumerate() {
            let mut lanes = [0_u64; LANES];
            lanes.copy_from_slice(sums);
            for tap in taps {
                let words = &words[tap.place + block * LANES..][..LANES];
                for (sum, word) in lanes.iter_mut().zip(words) {
                    *sum = sum.wrapping_add(tap.weight.wrapping_mul(*word));
                }
            }
            sums.copy_from_slice(&lanes);
        }
        for (at, sum) in rest.iter_mut().enumerate() {
            for tap in taps {
                let word = words[tap.place + whole + at];
                *sum = sum.wrapping_add(tap.weight.wrapping_mul(word));
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(sums: &mut [u64], taps: &[Tap], words: &[u64]) {
        body::<16>(sums, taps, words);
    }
    #[cfg(avx512)]
    #[target_feature(enable = "avx512f,avx512dq")]
    #[allow(
        clippy::incompatible_msrv,
        reason = "the build script checked the compiler"
    )]
    unsafe fn avx512(sums: &mut [u64], taps: &[Tap], words: &[u64]) {
        use std::arch::x86_64::{
            _mm512_add_epi64, _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi64,
            _mm512_mullo_epi64, _mm512_set1_epi64,
        };
        const VECTORS: usize = 4;
        for (block, sums) in sums.chunks_mut(8 * VECTORS).enumerate() {
            let used = sums.len();
            let masks: [u8; VECTORS] =
                std::array::from_fn(|at| ((1_u16 << used.saturating_sub(8 * at).min(8)) - 1) as u8);
            // SAFETY: a mask covers only words of the slice, and no others are touched.
            let mut lanes: [_; VECTORS] = std::array::from_fn(|at| unsafe {
                _mm512_maskz_loadu_epi64(masks[at], sums.as_ptr().wrapping_add(8 * at).cast())
            });
            for tap in taps {
                let words = &words[tap.place + block * 8 * VECTORS..][..used];
                let weight = _mm512_set1_epi64(tap.weight as i64);
                for (at, sum) in lanes.iter_mut().enumerate() {
                    let words = words.as_ptr().wrapping_add(8 * at).cast();
                    // SAFETY: as above; this slice has as many words.
                    let word = unsafe { _mm512_maskz_loadu_epi64(masks[at], words) };
                    *sum = _mm512_add_epi64(*sum, _mm512_mullo_epi64(weight, word));
                }
            }
            for (at, sum) in lanes.into_iter().enumerate() {
                let place = sums.as_mut_ptr().wrapping_add(8 * at).cast();
                // SAFETY: as above.
                unsafe { _mm512_mask_storeu_epi64(place, masks[at], sum) };
            }
        }
    }
    match backend {
        // SAFETY: `Phases::filter` checked that the processor has the backend.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2(sums, taps, words) },
        // SAFETY: as above.
        #[cfg(avx512)]
        Backend::Avx512 => unsafe { avx512(sums, taps, words) },
        _ => body::<8>(sums, taps, words),
    }
}
