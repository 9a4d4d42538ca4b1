//! Tests for a real card, by `make test-gpu`. Without a card they say so; with
//! `TACIT_REQUIRE_GPU=1` they fail. Each is also run with the fake driver, on fewer cases.
//!
//! `TACIT_CUDA_LIBRARIES` lists the folders with NVRTC and cublasLt.

use super::driver::{Folder, places};
use super::maps::{agrees, computed, words};
use crate::card::Card;
use crate::driver::Driver;
use crate::error::Error;
use crate::opening;
use crate::places::Places;
use crate::region::Region;
use crate::runtime::Runtime;
use kernels::bilinear::Bilinear;
use kernels::convolution::Convolution;
use kernels::device::{Cpu, Device, DeviceError, Term};
use std::env;

/// Returns where a real card and its libraries are, if one can be opened.
fn real(folder: &Folder) -> Option<Places> {
    let libraries = env::var_os("TACIT_CUDA_LIBRARIES").unwrap_or_default();
    let libraries = env::split_paths(&libraries).collect();
    let places = Places::new(libraries, folder.path().join("cache"));
    match opening::open(&places) {
        Ok(_) => Some(places),
        Err(error) if env::var_os("TACIT_REQUIRE_GPU").is_some_and(|value| value == "1") => {
            panic!("TACIT_REQUIRE_GPU is 1, and no card can be opened: {error}")
        }
        Err(error) => {
            eprintln!("skipped, since no card can be opened: {error}");
            None
        }
    }
}

/// Opens a card that leaves nothing to the processor, with bands of some bytes.
fn card(places: &Places, band: usize) -> Card<Driver> {
    let (mut driver, _) = Driver::open(places).expect("a card");
    driver.tuning.band = band;
    driver.tuning.crossover = 0;
    Card::new(driver)
}

/// A generator of small numbers.
struct Random(u64);

impl Random {
    /// Returns a number from `least` to `most`.
    fn between(&mut self, least: usize, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        least + (self.0 >> 33) as usize % (most - least + 1)
    }

    fn map(&mut self) -> Bilinear {
        let [batch, m, k, n] =
            [(1, 4), (1, 300), (1, 600), (1, 300)].map(|(least, most)| self.between(least, most));
        match self.between(0, 2) {
            0 => Bilinear::Matrix { batch, m, k, n },
            1 => Bilinear::ByTransposed { batch, m, k, n },
            _ => Bilinear::Convolution(self.convolution()),
        }
    }

    fn convolution(&mut self) -> Convolution {
        loop {
            let groups = self.between(1, 3);
            let mut pair = |least, most| [0, 1].map(|_| self.between(least, most));
            let [input, kernel, stride] = [pair(1, 30), pair(1, 5), pair(1, 3)];
            let [padding, dilation, channels] = [pair(0, 3), pair(1, 3), pair(1, 20)];
            let shape = Convolution {
                batch: self.between(1, 6),
                groups,
                in_channels: channels[0] * groups,
                out_channels: channels[1] * groups,
                input,
                kernel,
                stride,
                padding,
                dilation,
            };
            if shape.validate().is_ok() {
                return shape;
            }
        }
    }
}

fn random_shapes(places: &Places, count: u64) {
    let mut random = Random(1);
    for band in [1 << 16, 1 << 22, 256 << 20] {
        let card = card(places, band);
        for seed in 0..count {
            let (map, terms) = (random.map(), random.between(1, 3));
            agrees(&card, &map, terms, seed);
        }
    }
}

fn repeats(places: &Places, count: u64, size: usize) {
    let map = Bilinear::Matrix {
        batch: 1,
        m: size,
        k: size + 1,
        n: size + 2,
    };
    let (left, right, _) = map.lengths();
    let (x, y) = (words(left, 1), words(right, 2));
    let expected = computed(&Cpu::default(), &map, &[(&x, &y)]);
    let card = card(places, 1 << 20);
    for repeat in 0..count {
        assert!(
            computed(&card, &map, &[(&x, &y)]) == expected,
            "repeat {repeat}"
        );
    }
}

/// Takes the memory but about `left` bytes, in pieces: cards may have none that is as large.
fn fill(driver: &mut Driver, left: usize) -> Vec<Region> {
    let _current = driver.enter().expect("a usable context");
    let (mut taken, mut piece) = (Vec::new(), 1usize << 30);
    loop {
        let (free, _) = driver.memory().expect("memory");
        let rest = (free as usize).saturating_sub(left);
        if piece.min(rest) < 1 << 16 {
            return taken;
        }
        match driver.allocate(piece.min(rest)) {
            Ok(region) => taken.push(region),
            Err(Error::Memory { .. }) => piece /= 2,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Leaves `left` bytes, and tries a product that needs more, and one that does not.
fn memory_that_does_not_suffice(places: &Places, left: usize, large: usize) {
    let (mut driver, _) = Driver::open(places).expect("a card");
    driver.tuning.crossover = 0;
    let taken = fill(&mut driver, left);
    let mut card = Card::new(driver);
    let map = |size| Bilinear::Matrix {
        batch: 1,
        m: size,
        k: size,
        n: size,
    };
    let (x, mut out) = (vec![1; large * large], vec![0; large * large]);
    match card.bilinear(&map(large), &mut out, &[Term::of(&x, &x)]) {
        Err(DeviceError::Memory { needed, free, .. }) => assert!(needed > free),
        other => panic!("memory, not {other:?}"),
    }
    agrees(&card, &map(100), 1, 1);
    card.give_back(taken);
}

/// Runs a test with the fake driver.
fn faked(test: impl FnOnce(&Places)) {
    let folder = Folder::new();
    test(&places(&folder, ""));
}

/// Runs a test with a real card, if there is one.
fn on_a_card(test: impl FnOnce(&Places)) {
    let folder = Folder::new();
    if let Some(places) = real(&folder) {
        test(&places);
    }
}

#[test]
fn random_shapes_with_the_fake_driver() {
    faked(|places| random_shapes(places, 1));
}

#[test]
#[ignore = "needs a card: make test-gpu"]
fn card_1000_random_shapes() {
    on_a_card(|places| random_shapes(places, 334));
}

#[test]
fn many_small_matrices_with_the_fake_driver() {
    faked(|places| {
        let batch = (1 << 15) + 3;
        let map = Bilinear::Matrix {
            batch,
            m: 1,
            k: 2,
            n: 1,
        };
        agrees(&card(places, 256 << 20), &map, 1, 1);
    });
}

#[test]
fn repeats_with_the_fake_driver() {
    faked(|places| repeats(places, 3, 60));
}

/// What compute-sanitizer watches: it makes everything some hundred times slower.
fn few_shapes(places: &Places) {
    let mut random = Random(2);
    let card = card(places, 1 << 18);
    for seed in 0..8 {
        agrees(&card, &random.map(), 2, seed);
    }
}

#[test]
fn few_shapes_with_the_fake_driver() {
    faked(few_shapes);
}

#[test]
#[ignore = "needs a card: make test-gpu"]
fn card_few_shapes() {
    on_a_card(few_shapes);
}

#[test]
#[ignore = "needs a card: make test-gpu"]
fn card_100_repeats() {
    on_a_card(|places| repeats(places, 100, 1000));
}

#[test]
fn memory_that_does_not_suffice_with_the_fake_driver() {
    faked(|places| memory_that_does_not_suffice(places, 1 << 20, 300));
}

#[test]
#[ignore = "needs a card: make test-gpu"]
fn card_whose_memory_does_not_suffice() {
    on_a_card(|places| memory_that_does_not_suffice(places, 64 << 20, 4096));
}

#[test]
fn a_report_with_the_fake_driver() {
    faked(|places| {
        let (driver, description) = Driver::open(places).expect("a card");
        let report = opening::report(&Card::new(driver), description, &[20, 30]).expect("a report");
        assert_eq!(report.card, "Fake card 0");
        assert_eq!(
            (report.capability, report.driver, report.compiler),
            ([9, 0], [13, 0], [13, 0])
        );
        assert_eq!(report.memory[1], 1 << 30);
        assert_eq!(report.wrong, None);
        let sizes: Vec<usize> = report.rates.iter().map(|(size, _)| *size).collect();
        assert_eq!(sizes, [20, 30]);
        for (size, rate) in &report.rates {
            let all = (*size as f64).powi(3);
            assert!((rate.multiply_adds * rate.seconds / all - 1.0).abs() < 1e-9);
        }
    });
}
