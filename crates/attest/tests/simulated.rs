//! Reports of the crate's own root, with exactly one defect each, and the whole path from a
//! simulated tree of the kernel's reports.

mod kernel;

use attest::simulated::{BYTES, Defect, Simulated, report};
use attest::{Error, Evidence, Policy, judge, now, tsm};
use kernel::Kernel;
use std::path::Path;
use std::thread;

const DATA: [u8; 64] = [5; 64];

fn policy() -> Policy {
    Policy::simulated([1; 32])
}

fn judged(report: Vec<u8>) -> attest::Result<attest::Verdict> {
    let evidence = Evidence::of(&Simulated, report).encode();
    judge(&evidence, &policy(), Some(&DATA), now())
}

#[test]
fn a_report_without_a_defect_is_accepted() {
    let verdict = judged(report(&DATA, None)).unwrap();
    assert_eq!(
        (verdict.kind, verdict.tcb.as_str()),
        ("simulated", "UpToDate")
    );
}

#[test]
fn each_defect_has_its_refusal() {
    for defect in Defect::ALL {
        let refused = judged(report(&DATA, Some(defect))).expect_err(&format!("{defect:?}"));
        let right = match defect {
            Defect::Short => matches!(refused, Error::Malformed(_)),
            Defect::OldFirmware | Defect::RevokedFirmware => matches!(refused, Error::Tcb { .. }),
            Defect::Debug => refused == Error::Debug,
            Defect::Measurement => matches!(refused, Error::Measurement(_)),
            Defect::Data => refused == Error::Data,
            Defect::OtherRoot | Defect::Expired | Defect::RevokedPlatform | Defect::OtherKey => {
                matches!(refused, Error::Chain(_))
            }
        };
        assert!(right, "{defect:?}: {refused}");
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    let good = Evidence::of(&Simulated, report(&DATA, None)).encode();
    let mut accepted = 0;
    for bit in 0..8 * good.len() {
        let mut flipped = good.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        accepted += usize::from(judge(&flipped, &policy(), Some(&DATA), now()).is_ok());
    }
    assert_eq!(accepted, 0, "of {} alterations", 8 * good.len());
    for length in 0..good.len() {
        assert!(judge(&good[..length], &policy(), Some(&DATA), now()).is_err());
    }
    let long = vec![0; attest::LONGEST + 1];
    assert!(matches!(Evidence::decode(&long), Err(Error::Malformed(_))));
}

/// Reads a report from such a kernel.
fn read(name: &str, provider: &str, defect: Option<Defect>) -> attest::Result<Vec<u8>> {
    let kernel = Kernel::new(name);
    thread::scope(|scope| {
        scope.spawn(|| kernel.serve(provider, |data| (report(data, defect), Vec::new())));
        let read = tsm::read(&kernel.folder, "simulated", "simulated", &DATA);
        kernel.end();
        read.map(|answer| answer.report)
    })
}

#[test]
fn reports_of_the_kernel_take_the_whole_path() {
    let read = read("whole", "simulated", None).unwrap();
    assert_eq!(read.len(), BYTES);
    judged(read).unwrap();
}

#[test]
fn a_defect_in_a_report_of_the_kernel_is_refused() {
    let read = read("debug", "simulated", Some(Defect::Debug)).unwrap();
    assert_eq!(judged(read), Err(Error::Debug));
}

#[test]
fn a_machine_without_such_reports_says_so() {
    let error = read("other", "sev_guest", None).unwrap_err().to_string();
    assert!(
        error.contains("its reports come from \"sev_guest\""),
        "{error}"
    );
    let error = tsm::read(Path::new("nowhere"), "simulated", "simulated", &DATA).unwrap_err();
    assert!(matches!(error, Error::Machine(_)));
    assert!(error.to_string().contains("there is no nowhere"), "{error}");
}
