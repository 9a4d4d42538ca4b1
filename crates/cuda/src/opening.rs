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
use kernels::device::{Device, DeviceError, Name, Operand, Term};
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

/// Opens a card, and compares small products of every kind with this processor's.
///
/// # Errors
/// `Unavailable` with what is missing or wrong, and a remedy; `Memory` or `Failed` if the card
/// cannot be used.
pub fn open(places: &Places) -> Result<Box<dyn Device>, DeviceError> {
    let (driver, _) = driver(places).map_err(opening)?;
    let card = Card::new(driver);
    match card.self_test()? {
        None => Ok(Box::new(card)),
        Some(product) => Err(Error::Wrong { product }.into()),
    }
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
    /// What of the self-test differed from the processor's first, if anything.
    pub wrong: Option<String>,
    /// Rates of products of square matrices, each with its rows.
    pub rates: Vec<(usize, Rate)>,
}

/// How fast a map is evaluated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    /// The least seconds that one evaluation took: with the right operand on the card, and copies
    /// of the left operand and of the result.
    pub seconds: f64,
    /// Multiply-adds of words a second.
    pub multiply_adds: f64,
    /// Bytes a second that were copied meanwhile.
    pub bytes_copied: f64,
}

/// The sizes of the matrices whose products are timed.
const SIZES: [usize; 3] = [512, 2048, 4096];

/// How often each product is timed. The fastest counts.
const REPEATS: usize = 5;

/// Opens a card, tests it as [`open`] does, and times some products.
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
    let wrong = card.self_test()?;
    let rates = sizes.iter().map(|size| {
        let map = Bilinear::Matrix {
            batch: 1,
            m: *size,
            k: *size,
            n: *size,
        };
        rate(card, &map).map(|rate| (*size, rate))
    });
    Ok(Report {
        card: description.name,
        capability: description.capability,
        driver: [description.driver / 1000, description.driver % 1000 / 10],
        compiler: description.compiler,
        memory: [memory.free, memory.total],
        wrong,
        rates: rates.collect::<Result<_, _>>()?,
    })
}

/// Measures how fast a device evaluates a map. The right operand is named, so it may stay there.
///
/// # Errors
/// If the device cannot compute it.
pub fn rate(device: &dyn Device, map: &Bilinear) -> Result<Rate, DeviceError> {
    let (left, right, result) = map.lengths();
    let (x, y) = (words(left, 5), words(right, 6));
    let name = Name {
        operand: 0,
        part: 0,
    };
    let term = Term {
        x: Operand::of(&x),
        y: Operand::of(&y).named(Some(name)),
    };
    let mut out = vec![0; result];
    device.bilinear(map, &mut out, &[term])?;
    let (mut seconds, mut bytes) = (f64::INFINITY, 0);
    for _ in 0..REPEATS {
        let before = device.counters().bytes_copied;
        let start = Instant::now();
        device.bilinear(map, &mut out, &[term])?;
        seconds = seconds.min(start.elapsed().as_secs_f64());
        bytes = device.counters().bytes_copied - before;
    }
    device.forget(name.operand);
    Ok(Rate {
        seconds,
        multiply_adds: map.multiply_adds() / seconds,
        bytes_copied: bytes as f64 / seconds,
    })
}

/// Returns arbitrary words: odd multiples of a constant.
fn words(n: usize, seed: u64) -> Vec<u64> {
    let words =
        (0..n as u64).map(|i| (2 * (seed << 40 | i) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.collect()
}
