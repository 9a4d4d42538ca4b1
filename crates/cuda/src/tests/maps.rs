//! Maps of all kinds against this processor, in bands and pieces of all sizes.

use crate::card::Card;
use crate::runtime::Tuning;
use crate::simulated::{Settings, Simulated};
use kernels::bilinear::Bilinear;
use kernels::convolution::Convolution;
use kernels::device::{Counters, Cpu, Device, Operand, Term};
use proptest::prelude::*;

/// Returns a card whose staging buffers are small, with bands of some bytes.
pub fn small(seed: u64, band: usize) -> Card<Simulated> {
    Card::new(Simulated::new(Settings {
        seed,
        staging: 37,
        tuning: Tuning { band, crossover: 0 },
        ..Settings::default()
    }))
}

/// Returns arbitrary words.
pub fn words(n: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(seed | 1);
            state ^ state >> 29
        })
        .collect()
}

/// Returns what a device computes.
pub fn computed(device: &dyn Device, map: &Bilinear, terms: &[(&[u64], &[u64])]) -> Vec<u64> {
    let mut out = vec![1; map.lengths().2];
    let terms: Vec<Term> = terms.iter().map(|(x, y)| Term::of(x, y)).collect();
    device
        .bilinear(map, &mut out, &terms)
        .expect("the device computes");
    out
}

/// Compares a card with the processor on arbitrary words.
pub fn agrees(card: &dyn Device, map: &Bilinear, terms: usize, seed: u64) {
    let (left, right, result) = map.lengths();
    let operands: Vec<[Vec<u64>; 2]> = (0..terms as u64)
        .map(|term| {
            [
                words(left, seed + 2 * term),
                words(right, seed + 2 * term + 1),
            ]
        })
        .collect();
    let terms: Vec<Term> = operands.iter().map(|[x, y]| Term::of(x, y)).collect();
    let (mut out, mut expected) = (vec![1; result], vec![2; result]);
    card.bilinear(map, &mut out, &terms)
        .expect("the card computes");
    let cpu = Cpu::default();
    cpu.bilinear(map, &mut expected, &terms)
        .expect("the processor computes");
    assert!(out == expected, "{map:?} of {} terms", terms.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn matrices_of_any_sizes(
        (batch, m, k, n) in (1usize..5, 1usize..40, 1usize..70, 1usize..40),
        terms in 1usize..=3,
        is_transposed: bool,
        band in 10u32..22,
        seed: u64,
    ) {
        let map = match is_transposed {
            true => Bilinear::ByTransposed { batch, m, k, n },
            false => Bilinear::Matrix { batch, m, k, n },
        };
        agrees(&small(seed, 1 << band), &map, terms, seed);
    }

    #[test]
    fn convolutions_of_any_shapes(
        batch in 1usize..4,
        groups in 1usize..4,
        channels in [1usize..4, 1usize..5],
        input in [1usize..12, 1usize..12],
        kernel in [1usize..5, 1usize..5],
        stride in [1usize..4, 1usize..4],
        padding in [0usize..4, 0usize..4],
        dilation in [1usize..4, 1usize..4],
        terms in 1usize..=3,
        band in 10u32..22,
        seed: u64,
    ) {
        let shape = Convolution {
            batch,
            groups,
            in_channels: channels[0] * groups,
            out_channels: channels[1] * groups,
            input,
            kernel,
            stride,
            padding,
            dilation,
        };
        prop_assume!(shape.validate().is_ok());
        agrees(&small(seed, 1 << band), &Bilinear::Convolution(shape), terms, seed);
    }
}

/// Gradients are convolutions of the shapes that `python/tacit/operators/convolution_gradient.py`
/// makes. Here they are computed by those, and by their definitions.
#[test]
fn both_gradients_of_a_convolution() {
    let (batch, channels, filters, size, kernel, stride, padding) = (3, 4, 5, 9, 3, 2, 1);
    let out = (size + 2 * padding - kernel) / stride + 1;
    let images = words(batch * channels * size * size, 1);
    let weights = words(filters * channels * kernel * kernel, 2);
    let gradient = words(batch * filters * out * out, 3);
    let (mut of_images, mut of_weights) = (vec![0u64; images.len()], vec![0u64; weights.len()]);
    let all = |n: usize| 0..n;
    for ((((((image, filter), channel), y), x), i), j) in all(batch)
        .flat_map(|a| all(filters).map(move |b| (a, b)))
        .flat_map(|a| all(channels).map(move |b| (a, b)))
        .flat_map(|a| all(out).map(move |b| (a, b)))
        .flat_map(|a| all(out).map(move |b| (a, b)))
        .flat_map(|a| all(kernel).map(move |b| (a, b)))
        .flat_map(|a| all(kernel).map(move |b| (a, b)))
    {
        let (line, column) = (y * stride + i, x * stride + j);
        let inside = padding..size + padding;
        if !inside.contains(&line) || !inside.contains(&column) {
            continue;
        }
        let pixel =
            ((image * channels + channel) * size + line - padding) * size + column - padding;
        let weight = ((filter * channels + channel) * kernel + i) * kernel + j;
        let slope = gradient[((image * filters + filter) * out + y) * out + x];
        of_images[pixel] = of_images[pixel].wrapping_add(slope.wrapping_mul(weights[weight]));
        of_weights[weight] = of_weights[weight].wrapping_add(slope.wrapping_mul(images[pixel]));
    }

    // Of the weights: channels are the batch, and the gradient is the filters.
    let exchanged = |words: &[u64], outer: usize, inner: usize| -> Vec<u64> {
        let plane = words.len() / outer / inner;
        let planes = all(inner).flat_map(|i| all(outer).map(move |o| (o * inner + i) * plane));
        planes
            .flat_map(|first| words[first..first + plane].to_vec())
            .collect()
    };
    let shape = Convolution {
        batch: channels,
        groups: 1,
        in_channels: batch,
        out_channels: filters,
        input: [size; 2],
        kernel: [out; 2],
        stride: [1; 2],
        padding: [padding; 2],
        dilation: [stride; 2],
    };
    let x = exchanged(&images, batch, channels);
    let y = exchanged(&gradient, batch, filters);
    assert_eq!(shape.output(), [kernel; 2]);
    for band in [1 << 10, 1 << 24] {
        let result = computed(&small(1, band), &Bilinear::Convolution(shape), &[(&x, &y)]);
        assert!(exchanged(&result, channels, filters) == of_weights);
    }

    // Of the images: the gradient with zeros between its elements, and filters end to end.
    let wide = (out - 1) * stride + 1 + 2 * (kernel - 1 - padding);
    let mut spread = vec![0; batch * filters * wide * wide];
    for (at, slope) in gradient.iter().enumerate() {
        let (plane, y, x) = (at / out / out, at / out % out, at % out);
        let [line, column] = [y, x].map(|place| place * stride + kernel - 1 - padding);
        spread[(plane * wide + line) * wide + column] = *slope;
    }
    let mut turned = exchanged(&weights, filters, channels);
    turned
        .chunks_exact_mut(kernel * kernel)
        .for_each(<[u64]>::reverse);
    let shape = Convolution {
        batch,
        groups: 1,
        in_channels: filters,
        out_channels: channels,
        input: [wide; 2],
        kernel: [kernel; 2],
        stride: [1; 2],
        padding: [0; 2],
        dilation: [1; 2],
    };
    assert_eq!(shape.output(), [size; 2]);
    for band in [1 << 10, 1 << 24] {
        let map = Bilinear::Convolution(shape);
        assert!(computed(&small(2, band), &map, &[(&spread, &turned)]) == of_images);
    }
}

#[test]
fn sums_are_added_before_the_product() {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 9,
        k: 50,
        n: 21,
    };
    let (left, right, result) = map.lengths();
    let [x, more, y, rest] =
        [(left, 1), (left, 2), (right, 3), (right, 4)].map(|(n, seed)| words(n, seed));
    let term = Term {
        x: Operand::sum(&x, &more),
        y: Operand::sum(&y, &rest),
    };
    let (mut out, mut expected) = (vec![1; result], vec![2; result]);
    small(1, 1 << 12)
        .bilinear(&map, &mut out, &[term])
        .expect("the card computes");
    Cpu::default()
        .bilinear(&map, &mut expected, &[term])
        .expect("the processor computes");
    assert!(out == expected);
}

#[test]
fn maps_without_products_are_left_to_the_processor() {
    let card = small(1, 1 << 12);
    agrees(&card, &Bilinear::Elementwise { n: 40 }, 2, 1);
    agrees(
        &card,
        &Bilinear::Matrix {
            batch: 1,
            m: 3,
            k: 0,
            n: 3,
        },
        1,
        1,
    );
    agrees(
        &card,
        &Bilinear::Matrix {
            batch: 0,
            m: 3,
            k: 3,
            n: 3,
        },
        1,
        1,
    );
    assert_eq!(
        (card.counters().products, card.counters().bytes_copied),
        (0, 0)
    );
}

#[test]
#[should_panic(expected = "words of a right operand")]
fn operands_of_other_lengths_are_refused() {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 2,
        k: 2,
        n: 2,
    };
    let _ = small(1, 1 << 12).bilinear(&map, &mut [0; 4], &[Term::of(&[0; 4], &[0; 5])]);
}

/// Each operand is copied to the card once, and the result from it.
#[test]
fn copies_are_counted() {
    for (band, image_words) in [(1 << 24, 64), (1 << 12, (3 + 4 + 4 + 3) * 8)] {
        let card = small(1, band);
        let map = Bilinear::Matrix {
            batch: 1,
            m: 30,
            k: 40,
            n: 20,
        };
        agrees(&card, &map, 2, 1);
        let words = 2 * (30 * 40 + 40 * 20) + 30 * 20;
        assert_eq!(
            card.counters(),
            Counters {
                products: 1,
                bytes_copied: 8 * words
            }
        );
        // Of an image that is cut into bands, each takes the lines that it needs: two, and those
        // next to them.
        let shape = Convolution {
            batch: 1,
            groups: 1,
            in_channels: 1,
            out_channels: 4,
            input: [8, 8],
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1, 1],
            dilation: [1, 1],
        };
        agrees(&card, &Bilinear::Convolution(shape), 1, 1);
        let words = words + image_words + 36 + 4 * 64;
        assert_eq!(
            card.counters(),
            Counters {
                products: 2,
                bytes_copied: 8 * words
            }
        );
    }
}
