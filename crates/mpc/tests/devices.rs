//! Devices that fail: the party's own error, and what the others are told. Names of operands on
//! devices.

use kernels::bilinear::Bilinear;
use kernels::device::{Counters, Cpu, Device, DeviceError, Memory, Name, Term};
use mpc::correlations::dealer::Dealer;
use mpc::{Error, Operand, Protocol, Settings};
use net::{DEALER, Mesh};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use testkit::Shared;

const MAP: Bilinear = Bilinear::Matrix {
    batch: 1,
    m: 2,
    k: 3,
    n: 4,
};

/// The party whose device fails. Without it, the dealer's fails.
const FAILS: usize = 1;

/// A device without memory for anything.
struct Full;

impl Device for Full {
    fn kind(&self) -> &'static str {
        "full"
    }

    fn bilinear(&self, map: &Bilinear, _: &mut [u64], _: &[Term]) -> Result<(), DeviceError> {
        Err(DeviceError::Memory {
            operation: format!("{} of 2 × 3 × 4", map.name()),
            needed: 4711,
            free: 42,
        })
    }

    fn forget(&self, _: u64) {}

    fn memory(&self) -> Result<Option<Memory>, DeviceError> {
        Ok(None)
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

fn device(is_full: bool) -> Arc<dyn Device> {
    if is_full {
        Arc::new(Full)
    } else {
        testkit::device()
    }
}

/// Multiplies two shared matrices, and opens the product.
fn product(p: &mut dyn Protocol) -> mpc::Result<Vec<u64>> {
    let (left, right, _) = MAP.lengths();
    let x = Shared::input(p, 0, &vec![1; left])?;
    let y = Shared::input(p, 0, &vec![1; right])?;
    x.bilinear(p, &MAP, &y, None)?.open(p)
}

/// Runs a product with one full device, and returns the error of each party, and of the dealer.
fn errors(protocol: &str, source: Option<&str>, parties: usize, fails: usize) -> Vec<Error> {
    let settings = Settings {
        protocol: protocol.to_owned(),
        source: source.map(str::to_owned),
        ..Settings::default()
    };
    let timeout = Duration::from_secs(60);
    let meshes = match source {
        Some("dealer") => net::in_process::mesh_with_dealer(parties, timeout),
        _ => net::in_process::mesh(parties, timeout),
    };
    let member = |(member, mesh): (usize, Mesh)| {
        let device = device(member == fails);
        let ended = if member == parties {
            Dealer::new(&mesh, device).and_then(Dealer::serve)
        } else {
            mpc::open(&settings, &mesh, &device, true)
                .and_then(|mut protocol| product(&mut *protocol).map(drop))
        };
        ended.expect_err("a device failed")
    };
    thread::scope(|scope| {
        let members = meshes.into_iter().enumerate();
        let threads: Vec<_> = members
            .map(|each| scope.spawn(move || member(each)))
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.expect("no member panics")).collect()
    })
}

#[test]
fn a_device_that_fails_ends_the_session_and_all_learn_whose_it_was() {
    for (protocol, source, parties) in [
        ("replicated", None, 3),
        ("replicated-malicious", None, 3),
        ("additive", Some("dealer"), 2),
        ("additive", Some("dealer"), 3),
        ("additive", Some("ot"), 2),
    ] {
        for (party, error) in errors(protocol, source, parties, FAILS).iter().enumerate() {
            let text = error.to_string();
            let is_told = match error {
                Error::Device { .. } => party == FAILS,
                Error::Peer { party: whose, .. } => party != FAILS && *whose == FAILS,
                _ => false,
            };
            assert!(is_told, "{protocol}, party {party}: {text}");
            let sizes = "matrix product of 2 × 3 × 4 needs 4711 bytes of the card's memory, and 42 \
                         are free";
            assert!(text.contains(sizes), "{protocol}, party {party}: {text}");
            assert!(text.contains("choose device \"cpu\""), "{text}");
        }
    }
}

#[test]
fn a_dealers_device_that_fails_is_the_dealers() {
    let all = errors("additive", Some("dealer"), 2, 2);
    let (dealer, parties) = all.split_last().expect("a dealer");
    assert!(matches!(dealer, Error::Device { .. }), "{dealer}");
    for error in parties {
        let is_told = matches!(error, Error::Peer { party: DEALER, .. });
        assert!(is_told && error.to_string().contains("4711"), "{error}");
    }
}

/// A processor that checks that a name stands for the same words until it is forgotten.
#[derive(Default)]
struct Remembering {
    cpu: Cpu,
    words: Mutex<HashMap<Name, Vec<u64>>>,
    /// How often words were there already.
    again: AtomicUsize,
}

impl Device for Remembering {
    fn kind(&self) -> &'static str {
        "remembering"
    }

    fn bilinear(&self, map: &Bilinear, out: &mut [u64], terms: &[Term]) -> Result<(), DeviceError> {
        let mut kept = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        for operand in terms.iter().flat_map(|term| [term.x, term.y]) {
            let Some(name) = operand.name() else { continue };
            let (words, plus) = operand.slices();
            let zero = vec![0; words.len()];
            let both = words.iter().zip(plus.unwrap_or(&zero));
            let now: Vec<u64> = both.map(|(a, b)| a.wrapping_add(*b)).collect();
            let known = usize::from(kept.contains_key(&name));
            self.again.fetch_add(known, Ordering::Relaxed);
            assert_eq!(kept.entry(name).or_insert_with(|| now.clone()), &now);
        }
        self.cpu.bilinear(map, out, terms)
    }

    fn forget(&self, operand: u64) {
        let mut kept = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|name, _| name.operand != operand);
    }

    fn memory(&self) -> Result<Option<Memory>, DeviceError> {
        self.cpu.memory()
    }

    fn counters(&self) -> Counters {
        self.cpu.counters()
    }
}

/// A named operand is on the device by name, part by part, and gone once it is forgotten.
#[test]
fn named_operands_have_names_on_the_device() {
    for (protocol, source, parties, parts) in [
        ("replicated", None, 3, 2),
        ("replicated-malicious", None, 3, 2),
        ("additive", Some("dealer"), 2, 2),
        ("plain", None, 2, 1),
    ] {
        let settings = Settings {
            protocol: protocol.to_owned(),
            source: source.map(str::to_owned),
            ..Settings::default()
        };
        let of_dealer = Arc::new(Remembering::default());
        let deal = |mesh: &Mesh| {
            let held = Arc::clone(&of_dealer) as Arc<dyn Device>;
            Dealer::new(mesh, held)?.serve()
        };
        let kept: Vec<[usize; 2]> = testkit::run_opened(
            parties,
            source.map(|_| &deal as testkit::Dealing),
            |mesh| {
                let device = Arc::new(Remembering::default());
                let held = Arc::clone(&device) as Arc<dyn Device>;
                Ok((mpc::open(&settings, mesh, &held, true)?, device))
            },
            |(p, device)| {
                let (left, right, n) = MAP.lengths();
                let x = Shared::input(&mut **p, 0, &vec![3; left])?;
                let mut kept = [0; 2];
                for value in 0..2 {
                    let y = Shared::input(&mut **p, 0, &vec![5 + value; right])?;
                    for _ in 0..2 {
                        let (x, y) = (x.slices(), y.slices());
                        let named = Operand {
                            parts: &y,
                            name: Some(7),
                        };
                        let product = Shared::made(&mut **p, n, |p, out| {
                            p.bilinear(&MAP, Operand::once(&x), named, None, out)
                        })?;
                        assert_eq!(product.open(&mut **p)?, vec![9 * (5 + value); n]);
                    }
                    let words = || device.words.lock().unwrap_or_else(PoisonError::into_inner);
                    kept[0] = words().len();
                    p.forget(7);
                    kept[1] = words().len();
                }
                Ok(kept)
            },
        );
        assert_eq!(kept, vec![[parts, 0]; parties], "{protocol}");
        // Of each value, at least the second product uses the mask that the dealer has kept.
        let again = of_dealer.again.load(Ordering::Relaxed);
        assert!(again >= 2 || source.is_none(), "{protocol}: {again}");
    }
}
