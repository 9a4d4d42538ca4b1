//! Simulated evidence: the root key is in this file, so anybody can make it. It proves nothing. It
//! lets the whole path be tested and tried without hardware.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..8 | `simulate` |
//! | 8..40 | the platform's key |
//! | 40..48 | serial number of the platform |
//! | 48..56 | end of the platform's certificate, in seconds since 1970 |
//! | 56..120 | the root's signature over 0..56 |
//! | 120..128 | version of the firmware |
//! | 128 | 1 in debug mode, else 0 |
//! | 129..177 | measurement |
//! | 177..241 | data |
//! | 241..305 | the platform's signature over 0..241 |

use crate::binding::DATA;
use crate::error::{Error, Result};
use crate::kind::{Kind, Report};
use crate::policy::Policy;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// Name of the kind.
pub const NAME: &str = "simulated";

/// Bytes of a report.
pub const BYTES: usize = 305;

/// The private key of the root: not secure, and not meant to be.
const ROOT: [u8; 32] = *b"tacit: anybody can sign as this!";

/// The private key of another root, which nobody accepts.
const OTHER_ROOT: [u8; 32] = *b"tacit: nobody accepts this root!";

const PLATFORM: [u8; 32] = *b"tacit: this is no real platform!";
const MAGIC: [u8; 8] = *b"simulate";

/// The newest firmware. The one before is out of date; older ones are revoked.
const FIRMWARE: u64 = 3;

/// Serial number of a platform whose certificate is revoked.
const REVOKED: u64 = 13;

const SERIAL: u64 = 7;

/// End of certificates: the year 2100.
const END: u64 = 4_102_444_800;

/// Simulated evidence.
pub struct Simulated;

/// A single thing that is wrong with a report, for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// Another root has signed the platform's certificate.
    OtherRoot,
    /// The platform's certificate has ended.
    Expired,
    /// The platform's certificate is revoked.
    RevokedPlatform,
    /// The firmware is out of date.
    OldFirmware,
    /// The firmware is revoked.
    RevokedFirmware,
    /// The machine runs in debug mode.
    Debug,
    /// Other software runs.
    Measurement,
    /// The data is another one.
    Data,
    /// The platform's signature is of another key.
    OtherKey,
    /// The last byte is missing.
    Short,
}

impl Defect {
    /// All defects.
    pub const ALL: [Self; 10] = [
        Self::OtherRoot,
        Self::Expired,
        Self::RevokedPlatform,
        Self::OldFirmware,
        Self::RevokedFirmware,
        Self::Debug,
        Self::Measurement,
        Self::Data,
        Self::OtherKey,
        Self::Short,
    ];
}

/// Returns the measurement of this release.
#[must_use]
pub fn measurement() -> [u8; 48] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 simulated measurement");
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    let mut measurement = [0; 48];
    hasher.finalize_xof().fill(&mut measurement);
    measurement
}

/// Makes a report, with exactly one defect if one is named.
#[must_use]
pub fn report(data: &[u8; DATA], defect: Option<Defect>) -> Vec<u8> {
    let is = |this: Defect| defect == Some(this);
    let root = key(if is(Defect::OtherRoot) {
        &OTHER_ROOT
    } else {
        &ROOT
    });
    let platform = key(&PLATFORM);
    let serial = if is(Defect::RevokedPlatform) {
        REVOKED
    } else {
        SERIAL
    };
    let end = if is(Defect::Expired) { 1 } else { END };
    let firmware = match defect {
        Some(Defect::OldFirmware) => FIRMWARE - 1,
        Some(Defect::RevokedFirmware) => FIRMWARE - 2,
        _ => FIRMWARE,
    };
    let (mut measured, mut data) = (measurement(), *data);
    measured[0] ^= u8::from(is(Defect::Measurement));
    data[0] ^= u8::from(is(Defect::Data));
    let mut bytes = MAGIC.to_vec();
    bytes.extend(platform.public_key().as_ref());
    bytes.extend(serial.to_le_bytes());
    bytes.extend(end.to_le_bytes());
    let certified = root.sign(&bytes);
    bytes.extend(certified.as_ref());
    bytes.extend(firmware.to_le_bytes());
    bytes.push(u8::from(is(Defect::Debug)));
    bytes.extend(measured);
    bytes.extend(data);
    let signer = if is(Defect::OtherKey) {
        key(&OTHER_ROOT)
    } else {
        platform
    };
    let signed = signer.sign(&bytes);
    bytes.extend(signed.as_ref());
    bytes.truncate(BYTES - usize::from(is(Defect::Short)));
    bytes
}

fn key(seed: &[u8]) -> Ed25519KeyPair {
    let seed = &seed[..32];
    Ed25519KeyPair::from_seed_unchecked(seed).expect("32 bytes are a seed of Ed25519")
}

fn verify(key: &[u8], message: &[u8], signature: &[u8], whose: &str) -> Result<()> {
    let verified = UnparsedPublicKey::new(&ED25519, key).verify(message, signature);
    verified.map_err(|_| Error::Chain(format!("{whose} signature is wrong")))
}

impl Kind for Simulated {
    fn name(&self) -> &'static str {
        NAME
    }

    fn number(&self) -> u8 {
        0
    }

    fn measurement_bytes(&self) -> usize {
        48
    }

    fn provider(&self) -> &'static str {
        NAME
    }

    fn make(&self, data: &[u8; DATA]) -> Result<Vec<u8>> {
        Ok(report(data, None))
    }

    fn check(&self, evidence: &[u8], policy: &Policy, now: u64) -> Result<Report> {
        let evidence: &[u8; BYTES] = evidence
            .try_into()
            .map_err(|_| Error::Malformed("a simulated report has 305 bytes".to_owned()))?;
        let number =
            |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| evidence[at + byte]));
        if evidence[..8] != MAGIC {
            return Err(Error::Malformed("it is not a simulated report".to_owned()));
        }
        let root = key(&ROOT);
        verify(
            root.public_key().as_ref(),
            &evidence[..56],
            &evidence[56..120],
            "the root's",
        )?;
        verify(
            &evidence[8..40],
            &evidence[..241],
            &evidence[241..],
            "the platform's",
        )?;
        if number(40) == REVOKED {
            return Err(Error::Chain(
                "the platform's certificate is revoked".to_owned(),
            ));
        }
        if number(48) < now {
            return Err(Error::Chain(
                "the platform's certificate has expired".to_owned(),
            ));
        }
        let status = match number(120) {
            FIRMWARE.. => "UpToDate",
            at if at + 1 == FIRMWARE => "OutOfDate",
            _ => "Revoked",
        };
        if !policy.accepts_status(status) {
            return Err(policy.refused_status(status));
        }
        Ok(Report {
            measurement: evidence[129..177].to_vec(),
            data: std::array::from_fn(|at| evidence[177 + at]),
            debug: evidence[128] != 0,
            tcb: status.to_owned(),
        })
    }

    fn check_policy(&self, _: &Policy) -> Result<()> {
        Ok(())
    }
}
