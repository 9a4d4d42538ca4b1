//! The messages of every bilinear operation, and of a training step of a small convolutional
//! network, under fixed keys: the same words on every device and with every kernel.
//!
//! `stored.txt` has the BLAKE3 of what each party sends, and of its shares of the results.
//! [`testkit::DEVICE`] and `TACIT_KERNELS` choose what computes them.

mod parties;
mod programs;

use kernels::bilinear::Bilinear;
use kernels::device::{Counters, Cpu, Device, DeviceError, Memory, Term};
use kernels::dispatch::{Backend, VARIABLE};
use parties::{FAMILIES, Family, sent};
use programs::{PROGRAMS, Program};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const STORED: &str = include_str!("stored.txt");

/// Returns the line of a program in the file: its name, and a digest for each party.
fn line(family: &Family, (name, program): &(&str, Program), open: parties::OpenDevice) -> String {
    let digests = sent(family, *program, open);
    let digests: Vec<String> = digests
        .iter()
        .map(|digest| digest.to_hex()[..32].to_owned())
        .collect();
    format!("{} / {name}: {}", family.name, digests.join(" "))
}

fn lines(open: parties::OpenDevice) -> Vec<String> {
    let families = FAMILIES.iter();
    families
        .flat_map(|family| PROGRAMS.iter().map(|program| line(family, program, open)))
        .collect()
}

#[test]
fn messages_are_those_stored() {
    let found = lines(&testkit::device).join("\n");
    assert!(
        found == STORED.trim_end(),
        "messages differ from those stored; now they are\n{found}"
    );
}

#[test]
fn messages_do_not_depend_on_the_kernels() {
    let this = std::env::current_exe().expect("the path of this test");
    for backend in Backend::ALL.into_iter().filter(|it| it.is_available()) {
        let run = Command::new(&this)
            .args(["--exact", "messages_are_those_stored"])
            .env(VARIABLE, backend.name())
            .output()
            .expect("this test runs again");
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(
            run.status.success() && told.contains("1 passed"),
            "{backend}: {told}"
        );
    }
}

#[test]
fn messages_do_not_depend_on_the_device() {
    let simulated = lines(&|| testkit::device_named("simulated"));
    assert_eq!(simulated.join("\n"), STORED.trim_end());
}

#[test]
#[ignore = "needs a card: make test-gpu"]
fn card_sends_the_messages_that_are_stored() {
    if let Err(error) = testkit::card() {
        eprintln!("skipped, since no card can be opened: {error}");
        return;
    }
    let found = lines(&|| testkit::card().expect("a card"));
    assert_eq!(found.join("\n"), STORED.trim_end());
}

/// Parties with and without a card, by turns as they open.
#[test]
#[ignore = "needs a card: make test-gpu"]
fn card_of_every_other_party() {
    if let Err(error) = testkit::card() {
        eprintln!("skipped, since no card can be opened: {error}");
        return;
    }
    let opened = AtomicUsize::new(0);
    let found = lines(&|| match opened.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => testkit::card().expect("a card"),
        _ => Arc::new(Cpu::default()),
    });
    assert_eq!(found.join("\n"), STORED.trim_end());
}

/// A processor that gets one bit of each map wrong: of the first result of a convolution, and of
/// the last one of others, so that no two wrong bits meet in a sum.
#[derive(Default)]
struct Wrong(Cpu);

impl Device for Wrong {
    fn kind(&self) -> &'static str {
        "wrong"
    }

    fn bilinear(&self, map: &Bilinear, out: &mut [u64], terms: &[Term]) -> Result<(), DeviceError> {
        self.0.bilinear(map, out, terms)?;
        let wrong = match map {
            Bilinear::Convolution(_) => out.first_mut(),
            _ => out.last_mut(),
        };
        if let Some(wrong) = wrong {
            *wrong ^= 1 << 40;
        }
        Ok(())
    }

    fn forget(&self, operand: u64) {
        self.0.forget(operand);
    }

    fn memory(&self) -> Result<Option<Memory>, DeviceError> {
        self.0.memory()
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }
}

/// Every program of every family would show a device with one wrong bit, except for the elementwise
/// products that a family computes as it masks them.
#[test]
fn one_wrong_bit_of_a_device_changes_the_messages() {
    let wrong = lines(&|| Arc::new(Wrong::default()));
    assert_eq!(wrong.len(), STORED.lines().count(), "programs");
    for (line, stored) in wrong.iter().zip(STORED.lines()) {
        let is_masked_at_once = line.contains("/ elementwise");
        assert_eq!(line == stored, is_masked_at_once, "{line}");
    }
}
