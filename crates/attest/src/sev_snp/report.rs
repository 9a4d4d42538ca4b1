//! Reports of SEV-SNP, of versions 2 to 5. Numbers are little-endian.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0x000 | version |
//! | 0x008 | policy of the guest |
//! | 0x030 | privilege level, "VMPL", of the software that asked |
//! | 0x034 | algorithm of the signature: 1, ECDSA with P-384 and SHA-384 |
//! | 0x038 | versions of the firmware that runs |
//! | 0x040 | flags of the platform |
//! | 0x048 | which key signs, and whether none does |
//! | 0x050 | 64 bytes of data |
//! | 0x090 | measurement, 48 bytes |
//! | 0x180 | versions of the firmware by which the key was derived |
//! | 0x1a0 | number of the chip, 64 bytes |
//! | 0x1e0 | versions of the firmware that it cannot go back behind |
//! | 0x1f0 | versions of the firmware that started the guest |
//! | 0x2a0 | signature over all before: two numbers of 72 bytes |
//!
//! Fields that say nothing about what is accepted, such as the family of an image, are not read.
//! The signature covers them.

use crate::binding::DATA;
use crate::error::{Error, Result};
use ring::signature::{ECDSA_P384_SHA384_FIXED, UnparsedPublicKey};
use std::ops::Range;

/// Bytes of a report.
pub const BYTES: usize = 0x4a0;

/// Bytes that the signature covers.
pub const SIGNED: usize = 0x2a0;

/// Bytes of each of the two numbers of a signature, and those of them that P-384 uses.
const NUMBER: usize = 72;
const USED: usize = 48;

/// Bits of a guest's policy that this release knows; bit 17 is always set.
const POLICY_BITS: u64 = (1 << 26) - 1;
const POLICY_ONE: u64 = 1 << 17;

/// A guest's policy: cores may run two threads; the guest may move; it may be debugged; its memory
/// may lie in devices on CXL.
pub const SMT_ALLOWED: u64 = 1 << 16;
pub const MIGRATION_ALLOWED: u64 = 1 << 18;
pub const DEBUG_ALLOWED: u64 = 1 << 19;
pub const CXL_ALLOWED: u64 = 1 << 21;

/// Flags of the platform: cores run two threads; since it was started, its firmware has found that
/// no two addresses are of the same memory.
const SMT_ENABLED: u64 = 1;
const ALIAS_CHECKED: u64 = 1 << 5;

/// The key that signs a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signer {
    /// Of a chip.
    Vcek,
    /// Of the provider of a cloud.
    Vlek,
}

/// A report whose form has been checked, and whose signature has not.
pub struct Unverified<'a>(&'a [u8; BYTES]);

impl<'a> Unverified<'a> {
    /// Checks the form of a report.
    ///
    /// # Errors
    /// `Malformed` for another length, version or algorithm, or if reserved bytes are not zero.
    pub fn of(bytes: &'a [u8]) -> Result<Self> {
        let malformed = |what: String| Err(Error::Malformed(what));
        let Ok(bytes) = bytes.try_into() else {
            return malformed(format!(
                "a report of SEV-SNP has {BYTES} bytes, and this one {}",
                bytes.len()
            ));
        };
        let report = Self(bytes);
        let version = report.word(0);
        if !(2..=5).contains(&version) {
            return malformed(format!(
                "the report is of version {version}, and this release knows 2 to 5"
            ));
        }
        if report.word(0x34) != 1 {
            return malformed("it is not signed by ECDSA with P-384 and SHA-384".to_owned());
        }
        for reserved in reserved(version) {
            if bytes[reserved.clone()].iter().any(|byte| *byte != 0) {
                return malformed(format!(
                    "bytes {:#x} to {:#x} of the report are reserved, and not zero",
                    reserved.start,
                    reserved.end - 1
                ));
            }
        }
        let policy = report.guest_policy();
        if policy & !POLICY_BITS != 0 || policy & POLICY_ONE == 0 {
            return malformed(format!(
                "the guest's policy, {policy:#x}, is of no known form"
            ));
        }
        report.signer()?;
        Ok(report)
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|byte| self.0[at + byte])
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.field(at))
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.field(at))
    }

    /// Returns the key that says it has signed the report.
    ///
    /// # Errors
    /// `Malformed` if none has, or an unknown one.
    pub fn signer(&self) -> Result<Signer> {
        // Bit 0 concerns the author's key, bit 1 leaves reports unsigned, bits 2 to 4 name the key.
        match self.word(0x48) & !1 {
            0b00000 => Ok(Signer::Vcek),
            0b00100 => Ok(Signer::Vlek),
            other => Err(Error::Malformed(format!(
                "no key that this release knows has signed the report: {other:#x}"
            ))),
        }
    }

    /// Returns the guest's policy.
    pub fn guest_policy(&self) -> u64 {
        self.long(0x08)
    }

    /// Returns whether cores may run, or do run, two threads.
    pub fn has_smt(&self) -> bool {
        self.guest_policy() & SMT_ALLOWED != 0 || self.long(0x40) & SMT_ENABLED != 0
    }

    /// Returns whether the firmware has checked that no two addresses are of the same memory.
    pub fn is_alias_checked(&self) -> bool {
        self.long(0x40) & ALIAS_CHECKED != 0
    }

    /// Returns the privilege level of the software that asked; 0 is the highest.
    pub fn level(&self) -> u32 {
        self.word(0x30)
    }

    /// Returns the data that the software chose.
    pub fn data(&self) -> [u8; DATA] {
        self.field(0x50)
    }

    /// Returns the measurement of what was started.
    pub fn measurement(&self) -> [u8; 48] {
        self.field(0x90)
    }

    /// Returns the number of the chip; zeros if the host hides it.
    pub fn chip(&self) -> [u8; 64] {
        self.field(0x1a0)
    }

    /// Returns the versions by which the key was derived that signs.
    pub fn reported(&self) -> [u8; 8] {
        self.field(0x180)
    }

    /// Returns all versions of the firmware, each with what it is of.
    pub fn versions(&self) -> [(&'static str, [u8; 8]); 4] {
        [
            ("reported", self.reported()),
            ("committed", self.field(0x1e0)),
            ("running", self.field(0x38)),
            ("at the guest's start", self.field(0x1f0)),
        ]
    }

    /// Verifies the signature by a key, a point of P-384.
    ///
    /// # Errors
    /// `Chain` if it is wrong.
    pub fn verify(&self, key: &[u8]) -> Result<()> {
        let mut signature = [0; 2 * USED];
        for (number, big_endian) in signature.chunks_mut(USED).enumerate() {
            let at = SIGNED + number * NUMBER;
            big_endian.copy_from_slice(&self.0[at..at + USED]);
            big_endian.reverse();
        }
        UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, key)
            .verify(&self.0[..SIGNED], &signature)
            .map_err(|_| Error::Chain("the signature of the report is wrong".to_owned()))
    }
}

/// Returns the bytes that a report of a version leaves zero.
fn reserved(version: u32) -> Vec<Range<usize>> {
    let after_processor = if version < 3 { 0x188 } else { 0x18b };
    let after_launch = if version < 5 { 0x1f8 } else { 0x208 };
    let second = SIGNED + NUMBER;
    vec![
        0x4c..0x50,
        after_processor..0x1a0,
        0x1eb..0x1ec,
        0x1ef..0x1f0,
        after_launch..SIGNED,
        SIGNED + USED..second,
        second + USED..second + NUMBER,
        second + NUMBER..BYTES,
    ]
}
