//! A published report and published certificates of AMD's, which the crate `sev` ships as its test
//! data. Nothing of its code is used.

use super::super::certificate::Certificate;
use super::super::chain::{Chain, TURIN};
use super::super::collateral::Collateral;
use super::super::report::Unverified;
use super::super::roots::AMD;
use super::registry;
use crate::versions::Generation;
use std::fs;
use std::path::PathBuf;

/// A moment at which all of it is valid, in 2025.
const NOW: u64 = 1_750_000_000;

fn source() -> PathBuf {
    registry::folder_of("sev")
}

/// Returns AMD's certificates of all generations. Revocation lists are not published with them.
fn collateral() -> Collateral {
    let folder = source().join("src/certs/snp/builtin");
    let mut certificates = Vec::new();
    for generation in ["milan", "genoa", "turin"] {
        for name in ["ark.pem", "ask.pem"] {
            let text = fs::read(folder.join(generation).join(name)).unwrap();
            let der = pem::parse(text).unwrap().into_contents();
            certificates.push(Certificate::of(&der).unwrap());
        }
    }
    Collateral {
        certificates,
        lists: Vec::new(),
    }
}

fn leaf(generation: &str) -> Vec<u8> {
    let name = format!("tests/certs_data/vcek_{generation}.der");
    fs::read(source().join(name)).unwrap()
}

#[test]
fn certificates_published_by_amd_lead_to_its_roots() {
    let collateral = collateral();
    for known in &AMD {
        let mut certificates = collateral.certificates.iter();
        assert!(
            certificates.any(|one| *one.fingerprint() == known.fingerprint),
            "{}",
            known.generation
        );
    }
    for (name, generation) in [("milan", Generation::Milan), ("turin", Generation::Turin)] {
        let mut der = leaf(name);
        let certificate = Certificate::of(&der).unwrap();
        let chain = Chain::of(&certificate, &collateral, &AMD).unwrap();
        assert_eq!(chain.generation, generation);
        let refused = chain.check(&collateral, NOW).unwrap_err().to_string();
        assert!(refused.contains("no revocation list"), "{refused}");
        let mut accepted = Vec::new();
        for bit in 0..8 * der.len() {
            der[bit / 8] ^= 1 << (bit % 8);
            let altered = Certificate::of(&der);
            if altered.is_ok_and(|altered| Chain::of(&altered, &collateral, &AMD).is_ok()) {
                accepted.push(bit);
            }
            der[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(
            accepted.is_empty(),
            "altered and accepted: bits {accepted:?}"
        );
    }
    let turin = Certificate::of(&leaf("turin")).unwrap();
    assert_eq!(turin.versions(TURIN), Some([0, 0, 0, 0, 0, 0, 0, 9]));
    assert_eq!(turin.chip().map(<[u8]>::len), Some(8));
}

#[test]
fn a_report_published_by_amd_is_verified() {
    let collateral = collateral();
    let certificate = Certificate::of(&leaf("milan")).unwrap();
    let chain = Chain::of(&certificate, &collateral, &AMD).unwrap();
    let text = fs::read_to_string(source().join("tests/certs_data/report_milan.hex")).unwrap();
    let mut bytes = crate::from_hex(text.trim()).unwrap();
    let report = Unverified::of(&bytes).unwrap();
    assert!(chain.is_of(&report).unwrap());
    report.verify(chain.key().unwrap()).unwrap();
    let mut accepted = Vec::new();
    for bit in 0..8 * bytes.len() {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let judged = Unverified::of(&bytes).and_then(|report| report.verify(chain.key()?));
        if judged.is_ok() {
            accepted.push(bit);
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(
        accepted.is_empty(),
        "altered and accepted: bits {accepted:?}"
    );
}
