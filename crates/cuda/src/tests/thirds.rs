//! Narrow thirds against their definition, and their sums against products.

use super::maps::{computed, small, words};
use crate::card::Card;
use crate::runtime::Tuning;
use crate::simulated::{Settings, Simulated};
use kernels::bilinear::Bilinear;
use kernels::convolution::{Convolution, unfold};
use kernels::device::{Cpu, Device, Name, Operand, Term};
use kernels::third::{ABOVE, RUN, Summand, Third, Thirds};

/// Three parties' parts of both operands of a map.
fn shared(map: &Bilinear, seed: u64) -> [[Vec<u64>; 2]; 3] {
    let (left, right, _) = map.lengths();
    [0, 1, 2].map(|part: u64| {
        [
            words(left, seed + 2 * part),
            words(right, seed + 2 * part + 1),
        ]
    })
}

fn third(
    device: &dyn Device,
    map: &Bilinear,
    parts: &[[Vec<u64>; 2]; 3],
    party: usize,
) -> Vec<u64> {
    let mut out = vec![7; map.lengths().2];
    let [one, other] = [&parts[party], &parts[(party + 1) % 3]];
    let terms = [one, other].map(|[x, y]| Term::of(x, y));
    let third = Third::of(party).narrow();
    device
        .third(third, map, &mut out, terms)
        .expect("the device computes");
    out
}

/// A third of one inner product, by its definition in numbers of 128 bits.
fn defined(summand: Summand, x: [&[u64]; 2], y: [&[u64]; 2]) -> u64 {
    let factor = |[one, other]: [&[u64]; 2], at: usize| -> i128 {
        let (one, other) = (i128::from(one[at] as i64), i128::from(other[at] as i64));
        match summand {
            Summand::First => 2 * one + other,
            Summand::Second => one + 2 * other,
            Summand::Last => one - other,
        }
    };
    let places: Vec<usize> = (0..x[0].len()).collect();
    let runs = places.chunks(RUN).map(|run| {
        let products = run
            .iter()
            .map(|at| factor(x, *at).wrapping_mul(factor(y, *at)));
        let sum = products.fold(0i128, i128::wrapping_add);
        match summand {
            Summand::First => sum >> 1,
            Summand::Second => sum.wrapping_add(1) >> 1,
            Summand::Last => sum.wrapping_neg(),
        }
    });
    let sum = runs.fold(0i128, i128::wrapping_add);
    (sum as u64) << ABOVE
}

/// Depths around those of runs, and of chunks.
const DEPTHS: [usize; 9] = [1, 16, 255, 256, 257, 272, 512, 700, 18_688 + 300];

#[test]
fn each_third_is_the_defined_one() {
    for (k, band) in DEPTHS
        .into_iter()
        .flat_map(|k| [(k, 1 << 12), (k, 1 << 24)])
    {
        let (m, n) = (7, 8);
        let map = Bilinear::ByTransposed { batch: 2, m, k, n };
        let parts = shared(&map, k as u64);
        let card = small(k as u64, band);
        for party in 0..3 {
            let found = third(&card, &map, &parts, party);
            let summand = Third::of(party).summand();
            for (at, found) in found.iter().enumerate() {
                let (item, row, column) = (at / n / m, at / n % m, at % n);
                let of = |side: usize, row: usize| {
                    [party, (party + 1) % 3].map(|part| &parts[part][side][row * k..][..k])
                };
                let (x, y) = (of(0, item * m + row), of(1, item * n + column));
                assert_eq!(*found, defined(summand, x, y), "{summand:?} of depth {k}");
            }
        }
    }
}

/// Runs of a convolution are those of taps, in the order of the unfolded images.
#[test]
fn thirds_of_a_convolution_are_those_of_unfolded_images() {
    let shape = Convolution {
        batch: 2,
        groups: 2,
        in_channels: 64,
        out_channels: 14,
        input: [6, 5],
        kernel: [3, 3],
        stride: [2, 1],
        padding: [1, 1],
        dilation: [1, 1],
    };
    let map = Bilinear::Convolution(shape);
    let (taps, filters) = (32 * 9, 7);
    let [height, width] = shape.output();
    let pixels = height * width;
    let parts = shared(&map, 3);
    for band in [1 << 12, 1 << 24] {
        let card = small(1, band);
        for party in 0..3 {
            let found = third(&card, &map, &parts, party);
            let summand = Third::of(party).summand();
            let held = [party, (party + 1) % 3];
            for group in 0..2 {
                let columns = held.map(|part| {
                    let mut block = vec![0; taps * 2 * pixels];
                    unfold(
                        &shape,
                        &parts[part][0],
                        group,
                        0..taps,
                        0..2 * pixels,
                        &mut block,
                    );
                    block
                });
                for (filter, column) in
                    (0..filters).flat_map(|f| (0..2 * pixels).map(move |c| (f, c)))
                {
                    let y = held
                        .map(|part| &parts[part][1][(group * filters + filter) * taps..][..taps]);
                    let x = [0, 1].map(|at: usize| -> Vec<u64> {
                        columns[at]
                            .iter()
                            .skip(column)
                            .step_by(2 * pixels)
                            .copied()
                            .collect()
                    });
                    let (image, pixel) = (column / pixels, column % pixels);
                    let at = (image * 14 + group * filters + filter) * pixels + pixel;
                    assert_eq!(found[at], defined(summand, [&x[0], &x[1]], y));
                }
            }
        }
    }
}

/// Parties with and without a card evaluate thirds of one product.
#[test]
fn thirds_of_all_parties_add_up_to_the_product() {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 20,
        k: 600,
        n: 30,
    };
    let parts = shared(&map, 5);
    let all = |side: usize| -> Vec<u64> {
        let places = 0..parts[0][side].len();
        places
            .map(|at| {
                parts
                    .iter()
                    .fold(0, |sum, part| part[side][at].wrapping_add(sum))
            })
            .collect()
    };
    let product = computed(&Cpu::default(), &map, &[(&all(0), &all(1))]);
    let card = small(1, 1 << 14);
    let cpu = Cpu::default();
    for on_cpu in 0..8 {
        let mut sum = vec![0u64; product.len()];
        for party in 0..3 {
            let is_cpu = on_cpu >> party & 1 != 0;
            let device: &dyn Device = if is_cpu { &cpu } else { &card };
            let third = third(device, &map, &parts, party);
            sum.iter_mut()
                .zip(third)
                .for_each(|(sum, word)| *sum = sum.wrapping_add(word));
        }
        assert!(
            sum.iter()
                .zip(&product)
                .all(|(sum, word)| *sum == word << ABOVE)
        );
    }
}

#[test]
fn a_card_evaluates_narrow_thirds_alone() {
    let expected = Thirds {
        whole: false,
        narrow: true,
    };
    assert_eq!(small(1, 1 << 12).thirds(), expected);
}

/// Also where the processor has no kernel for them.
#[test]
fn small_thirds_are_left_to_the_processor() {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 9,
        k: 300,
        n: 8,
    };
    let parts = shared(&map, 5);
    for crossover in [9 * 300 * 8, 9 * 300 * 8 + 1] {
        let card = Card::new(Simulated::new(Settings {
            tuning: Tuning {
                band: 1 << 20,
                crossover,
            },
            ..Settings::default()
        }));
        for party in 0..3 {
            assert!(
                third(&card, &map, &parts, party) == third(&small(1, 1 << 20), &map, &parts, party)
            );
        }
        let products = if crossover > 9 * 300 * 8 { 0 } else { 3 };
        assert_eq!(card.counters().products, products);
    }
}

/// What stays of a third is other words than the operand's own.
#[test]
fn thirds_and_products_of_one_name() {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 20,
        k: 50,
        n: 30,
    };
    let parts = shared(&map, 9);
    let card = small(1, 1 << 14);
    let cpu = Cpu::default();
    let name = |part| Some(Name { operand: 1, part });
    for party in [0, 1, 2, 0] {
        let [one, other] = [&parts[party], &parts[(party + 1) % 3]];
        let [one, other] = [(one, party), (other, (party + 1) % 3)].map(|([x, y], part)| Term {
            x: Operand::of(x),
            y: Operand::of(y).named(name(part as u8)),
        });
        let mut out = vec![1; map.lengths().2];
        let narrow = Third::of(party).narrow();
        card.third(narrow, &map, &mut out, [one, other])
            .expect("a third");
        assert!(out == third(&card, &map, &parts, party));
        let mut expected = out.clone();
        card.bilinear(&map, &mut out, &[one, other])
            .expect("a product");
        cpu.bilinear(&map, &mut expected, &[one, other])
            .expect("a product");
        assert!(out == expected);
    }
}
