//! Opening a card, and trying it out.

use crate::card::Card;
#[cfg(target_os = "linux")]
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::places::{Description, Places};
use crate::runtime::Runtime;
#[cfg(not(target_os = "linux"))]
use crate::simulated::Simulated;
use kernels::bilinear::Bilinear;
use kernels::device::{Cpu, Device, DeviceError, Name, Operand, Term};
use std::time::Instant;

#[cfg(target_os = "linux")]
fn driver(places: &Places) -> Result<(Driver, Description)> {
    Driver::open(places)
}

/// NVIDIA's libraries are there on Linux alone.
#[cfg(not(target_os = "linux"))]
fn driver(_: &Places) -> Result<(Simulated, Description)> {
    Err(Error::NotLinux(std::env::consts::OS))
}

/// Opens a card.
///
/// # Errors `Unavailable` with what is missing and a remedy; `Memory` or `Failed` if the card
/// cannot be used.
pub fn open(places: &Places) -> Result<Box<dyn Device>, DeviceError> {
    let (driver, _) = driver(places).map_err(opening)?;
    Ok(Box::new(Card::new(driver)))
}

fn opening(error: Error) -> DeviceError {
    error.of("opening the card")
}

/// What a card is, and what it was measured to do.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The card's name.
    pub card: String,
    /// Its compute capability.
    pub capability: [u32; 2],
    /// CUDA's version that the driver supports.
    pub driver: [u32; 2],
    /// NVRTC's version.
    pub compiler: [u32; 2],
    /// Bytes of the card's memory that are free, and all.
    pub memory: [u64; 2],
    /// Whether the card's products were the processor's.
    pub is_right: bool,
    /// Rates of products of square matrices.
    pub rates: Vec<Rate>,
}

/// How fast a product is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    /// Rows and columns of all matrices.
    pub size: usize,
    /// Multiply-adds of words a second, with the right operand on the card, and copies of the left
    /// operand and of the result.
    pub multiply_adds: f64,
    /// Bytes a second that were copied meanwhile.
    pub bytes_copied: f64,
}

/// The sizes of the matrices whose products are timed.
const SIZES: [usize; 3] = [512, 2048, 4096];

/// How often each product is timed. The fastest counts.
const REPEATS: usize = 5;

/// Opens a card, compares its products with this processor's, and times some.
///
/// # Errors
/// As [`open`].
pub fn probe(places: &Places) -> Result<Report, DeviceError> {
    let (driver, description) = driver(places).map_err(opening)?;
    report(&Card::new(driver), description, &SIZES)
}

/// Tries a card out, with products of some sizes.
pub(crate) fn report<R: Runtime>(
    card: &Card<R>,
    description: Description,
    sizes: &[usize],
) -> Result<Report, DeviceError> {
    let memory = card.memory()?.unwrap_or_default();
    let is_right = is_right(card)?;
    let rates = sizes.iter().map(|size| rate(card, *size));
    Ok(Report {
        card: description.name,
        capability: description.capability,
        driver: [description.driver / 1000, description.driver % 1000 / 10],
        compiler: description.compiler,
        memory: [memory.free, memory.total],
        is_right,
        rates: rates.collect::<Result<_, _>>()?,
    })
}

/// Compares a product of two terms, large enough for the card, with the processor's.
fn is_right(card: &dyn Device) -> Result<bool, DeviceError> {
    let (m, k, n) = (301, 517, 263);
    let map = Bilinear::Matrix { batch: 1, m, k, n };
    let [a, b, c, d] = [(m * k, 1), (k * n, 2), (m * k, 3), (k * n, 4)];
    let [a, b, c, d] = [a, b, c, d].map(|(n, seed)| words(n, seed));
    let terms = [Term::of(&a, &b), Term::of(&c, &d)];
    let mut results = [vec![0; m * n], vec![1; m * n]];
    card.bilinear(&map, &mut results[0], &terms)?;
    Cpu::default().bilinear(&map, &mut results[1], &terms)?;
    Ok(results[0] == results[1])
}

fn rate(card: &dyn Device, size: usize) -> Result<Rate, DeviceError> {
    let map = Bilinear::Matrix {
        batch: 1,
        m: size,
        k: size,
        n: size,
    };
    let [x, y] = [5, 6].map(|seed| words(size * size, seed));
    let name = Name {
        operand: 0,
        part: 0,
    };
    let term = Term {
        x: Operand::of(&x),
        y: Operand::of(&y).named(Some(name)),
    };
    let mut out = vec![0; size * size];
    card.bilinear(&map, &mut out, &[term])?;
    let (mut seconds, mut bytes) = (f64::INFINITY, 0);
    for _ in 0..REPEATS {
        let before = card.counters().bytes_copied;
        let start = Instant::now();
        card.bilinear(&map, &mut out, &[term])?;
        seconds = seconds.min(start.elapsed().as_secs_f64());
        bytes = card.counters().bytes_copied - before;
    }
    card.forget(name.operand);
    Ok(Rate {
        size,
        multiply_adds: (size as f64).powi(3) / seconds,
        bytes_copied: bytes as f64 / seconds,
    })
}

/// Returns arbitrary words: odd multiples of a constant.
fn words(n: usize, seed: u64) -> Vec<u64> {
    let words =
        (0..n as u64).map(|i| (2 * (seed << 40 | i) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.collect()
}
