//! Evidence and collateral of a root of the test's own, as AMD makes them.

use super::super::report::{BYTES, SIGNED};
use super::super::roots::Root;
use super::super::{SevSnp, chain};
use crate::versions::Generation;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PSS_SHA384, RsaKeyPair,
};
use std::sync::OnceLock;
use std::time::Duration;
use x509_cert::der::Encode;
use x509_cert::der::asn1::{ObjectIdentifier, UtcTime};

/// The moment of all tests, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

pub const DATA: [u8; 64] = [5; 64];
pub const MEASUREMENT: [u8; 48] = [7; 48];

/// Versions of the firmware in the order of a report of Milan, and of Turin.
pub const VERSIONS: [u8; 8] = [3, 1, 0, 0, 0, 0, 8, 115];
pub const OF_TURIN: [u8; 8] = [2, 3, 1, 8, 0, 0, 0, 115];

/// Everything that a test may change.
#[derive(Clone)]
pub struct Plan {
    pub generation: Generation,
    pub is_provider: bool,
    pub is_handed_out: bool,
    pub is_root_known: bool,
    pub dates: [(u64, u64); 4],
    pub signers: [&'static RsaKeyPair; 4],
    pub may_certify: bool,
    pub revoked: Option<u8>,
    pub has_list: bool,
    pub list_extension: Option<bool>,
    /// Whether the entry of what is revoked has an extension that is critical, or one that is not.
    pub entry_extension: Option<bool>,
    /// Whether the list says when the next one comes.
    pub has_next: bool,
    pub certified: [u8; 8],
    pub chip: Vec<u8>,
    pub tagged_chip: bool,
    /// Whether the leaf names its chip twice, or both a chip and a provider.
    pub ambiguous: Option<&'static str>,
    pub leaf_issuer: Option<&'static str>,
    /// Names of the middle key and the leaf, if others than AMD's for the signer.
    pub middle_name: Option<&'static str>,
    pub leaf_name: Option<&'static str>,
    /// Changes the report before it is signed, and after.
    pub before: fn(&mut [u8; BYTES]),
    pub after: fn(&mut [u8; BYTES]),
    pub version: u8,
}

/// What is made by a plan.
pub struct Made {
    pub kind: SevSnp,
    pub body: Vec<u8>,
    /// Certificates of the root, the middle key and, if the host does not hand it out, the leaf.
    pub certificates: Vec<Vec<u8>>,
    pub list: Option<Vec<u8>>,
}

/// Numbers of the keys in `dates` and `signers`; the last is the revocation list.
pub const ROOT: usize = 0;
pub const MIDDLE: usize = 1;
pub const LEAF: usize = 2;
pub const LIST: usize = 3;

/// Serial numbers of the certificates of the root, the middle key and the leaf, as AMD has them.
pub const SERIALS: [u8; 3] = [16, 17, 0];

pub fn key(name: &str) -> &'static RsaKeyPair {
    static KEYS: OnceLock<[RsaKeyPair; 3]> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        [
            include_str!("keys/root.pem"),
            include_str!("keys/middle.pem"),
            include_str!("keys/other.pem"),
        ]
        .map(|text| RsaKeyPair::from_pkcs8(pem::parse(text).unwrap().contents()).unwrap())
    });
    match name {
        "root" => &keys[0],
        "middle" => &keys[1],
        _ => &keys[2],
    }
}

impl Plan {
    /// Returns a plan without a defect.
    pub fn good() -> Self {
        let (root, middle) = (key("root"), key("middle"));
        Self {
            generation: Generation::Milan,
            is_provider: false,
            is_handed_out: true,
            is_root_known: true,
            dates: [(NOW - 1000, NOW + 1000); 4],
            signers: [root, root, middle, root],
            may_certify: true,
            revoked: None,
            has_list: true,
            list_extension: None,
            entry_extension: None,
            has_next: true,
            certified: VERSIONS,
            chip: vec![9; 64],
            tagged_chip: false,
            ambiguous: None,
            leaf_issuer: None,
            middle_name: None,
            leaf_name: None,
            before: |_| (),
            after: |_| (),
            version: 2,
        }
    }

    /// Returns a plan for Turin without a defect.
    pub fn turin() -> Self {
        Self {
            generation: Generation::Turin,
            certified: OF_TURIN,
            chip: vec![9; 8],
            version: 5,
            ..Self::good()
        }
    }

    /// Makes evidence and collateral.
    pub fn make(&self) -> Made {
        let random = SystemRandom::new();
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
        let signer =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, document.as_ref(), &random)
                .unwrap();
        let (root_key, middle_key) = (key("root"), key("middle"));
        let root = self.certificate(
            ROOT,
            ["ARK-Own", "ARK-Own"],
            &of_rsa(root_key),
            authority(true),
        );
        let (middle_name, leaf_name) = match self.is_provider {
            true => ("SEV-VLEK-Own", "SEV-VLEK"),
            false => ("SEV-Own", "SEV-VCEK"),
        };
        let middle_name = self.middle_name.unwrap_or(middle_name);
        let leaf_name = self.leaf_name.unwrap_or(leaf_name);
        let middle = self.certificate(
            MIDDLE,
            ["ARK-Own", middle_name],
            &of_rsa(middle_key),
            authority(self.may_certify),
        );
        let leaf = self.certificate(
            LEAF,
            [self.leaf_issuer.unwrap_or(middle_name), leaf_name],
            &of_p384(signer.public_key().as_ref()),
            self.of_leaf(),
        );
        let fingerprint = ring::digest::digest(&ring::digest::SHA256, &root);
        let mut fingerprint: [u8; 32] = fingerprint.as_ref().try_into().unwrap();
        fingerprint[0] ^= u8::from(!self.is_root_known);
        let roots = Box::leak(Box::new([Root {
            generation: self.generation,
            fingerprint,
        }]));
        let mut certificates = vec![root, middle];
        let mut body = self.report(&signer).to_vec();
        match self.is_handed_out {
            true => body.extend(table(self.is_provider, &leaf)),
            false => certificates.push(leaf),
        }
        Made {
            kind: SevSnp { roots },
            body,
            certificates,
            list: self.has_list.then(|| self.list()),
        }
    }

    fn report(&self, signer: &EcdsaKeyPair) -> [u8; BYTES] {
        let mut report = [0; BYTES];
        report[0] = self.version;
        report[8..16].copy_from_slice(&0x30000_u64.to_le_bytes());
        report[0x34] = 1;
        report[0x40] = 1;
        report[0x48] = if self.is_provider { 4 } else { 0 };
        report[0x50..0x90].copy_from_slice(&DATA);
        report[0x90..0xc0].copy_from_slice(&MEASUREMENT);
        let versions = match self.generation {
            Generation::Turin => OF_TURIN,
            _ => VERSIONS,
        };
        for at in [0x38, 0x180, 0x1e0, 0x1f0] {
            report[at..at + 8].copy_from_slice(&versions);
        }
        if self.version >= 3 {
            report[0x188..0x18b].copy_from_slice(&[0x19, 1, 1]);
        }
        if self.version >= 5 {
            report[0x1f8..0x208].copy_from_slice(&[1; 16]);
        }
        let number = if self.generation == Generation::Turin {
            8
        } else {
            64
        };
        report[0x1a0..0x1a0 + number].fill(9);
        (self.before)(&mut report);
        let signature = signer
            .sign(&SystemRandom::new(), &report[..SIGNED])
            .unwrap();
        for (number, half) in signature.as_ref().chunks(48).enumerate() {
            for (at, byte) in half.iter().rev().enumerate() {
                report[SIGNED + 72 * number + at] = *byte;
            }
        }
        (self.after)(&mut report);
        report
    }

    fn of_leaf(&self) -> Vec<Vec<u8>> {
        let numbers = match self.generation {
            Generation::Turin => chain::TURIN,
            _ => chain::EARLIER,
        };
        let versions = numbers.iter().zip(self.certified);
        let mut extensions: Vec<_> = versions
            .map(|(number, version)| {
                let id = format!("1.3.6.1.4.1.3704.1.3.{number}");
                extension(&id, false, &version.to_der().unwrap())
            })
            .collect();
        let named = match (self.is_provider, self.tagged_chip) {
            (true, _) => extension("1.3.6.1.4.1.3704.1.5", false, &tlv(0x16, &[b"cloud"])),
            (_, true) => extension("1.3.6.1.4.1.3704.1.4", false, &tlv(4, &[&self.chip])),
            _ => extension("1.3.6.1.4.1.3704.1.4", false, &self.chip),
        };
        extensions.push(named);
        if let Some(id) = self.ambiguous {
            extensions.extend([
                extension(id, false, &[9; 64]),
                extension(id, false, &[9; 64]),
            ]);
        }
        extensions
    }

    fn certificate(
        &self,
        which: usize,
        [issuer, subject]: [&str; 2],
        key: &[u8],
        extensions: Vec<Vec<u8>>,
    ) -> Vec<u8> {
        let content = sequence(&[
            &tlv(0xa0, &[&[2, 1, 2]]),
            &[2, 1, SERIALS[which]],
            &algorithm(),
            &name(issuer),
            &sequence(&[&time(self.dates[which].0), &time(self.dates[which].1)]),
            &name(subject),
            key,
            &tlv(0xa3, &[&sequence(&[&extensions.concat()])]),
        ]);
        signed(&content, self.signers[which])
    }

    fn list(&self) -> Vec<u8> {
        let (begin, end) = self.dates[LIST];
        let reason = self.entry_extension.map(|critical| {
            let reason = extension("2.5.29.21", critical, &[10, 1, 1]);
            sequence(&[&reason])
        });
        let reason = reason.unwrap_or_default();
        let revoked = self
            .revoked
            .map(|serial| sequence(&[&sequence(&[&[2, 1, serial], &time(begin), &reason])]));
        let next = if self.has_next { time(end) } else { Vec::new() };
        let extensions = self.list_extension.map(|critical| {
            let number = extension("2.5.29.20", critical, &[2, 1, 1]);
            tlv(0xa0, &[&sequence(&[&number])])
        });
        let content = sequence(&[
            &[2, 1, 1],
            &algorithm(),
            &name("ARK-Own"),
            &time(begin),
            &next,
            &revoked.unwrap_or_default(),
            &extensions.unwrap_or_default(),
        ]);
        signed(&content, self.signers[LIST])
    }
}

impl Made {
    /// Returns the collateral in PEM.
    pub fn collateral(&self) -> String {
        let certificates = self.certificates.iter().map(|der| ("CERTIFICATE", der));
        let parts = certificates.chain(self.list.iter().map(|der| ("X509 CRL", der)));
        let parts: Vec<_> = parts
            .map(|(tag, der)| pem::Pem::new(tag, der.clone()))
            .collect();
        pem::encode_many(&parts)
    }
}

/// Returns a table as a host hands it out: the leaf, and a root that must not count.
pub fn table(is_provider: bool, leaf: &[u8]) -> Vec<u8> {
    let vcek = *b"\x63\xda\x75\x8d\xe6\x64\x45\x64\xad\xc5\xf4\xb9\x3b\xe8\xac\xcd";
    let vlek = *b"\xa8\x07\x4b\xc2\xa2\x5a\x48\x3e\xaa\xe6\x39\xc0\x45\xa0\xb8\xa1";
    let mut table = if is_provider { vlek } else { vcek }.to_vec();
    table.extend(48_u32.to_le_bytes());
    table.extend((leaf.len() as u32).to_le_bytes());
    table.extend([0; 24]);
    table.extend(leaf);
    table
}

fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    let mut bytes = vec![tag];
    match length {
        0..0x80 => bytes.push(length as u8),
        0x80..0x100 => bytes.extend([0x81, length as u8]),
        _ => bytes.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    bytes.extend(content);
    bytes
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, parts)
}

fn id(text: &str) -> Vec<u8> {
    ObjectIdentifier::new_unwrap(text).to_der().unwrap()
}

fn name(common: &str) -> Vec<u8> {
    let common = sequence(&[&id("2.5.4.3"), &tlv(0x0c, &[common.as_bytes()])]);
    sequence(&[&tlv(0x31, &[&common])])
}

fn time(seconds: u64) -> Vec<u8> {
    let time = UtcTime::from_unix_duration(Duration::from_secs(seconds)).unwrap();
    time.to_der().unwrap()
}

/// RSA-PSS with SHA-384 in both places, and a salt of 48 bytes.
fn algorithm() -> Vec<u8> {
    let hash = sequence(&[&id("2.16.840.1.101.3.4.2.2"), &[5, 0]]);
    let mask = sequence(&[&id("1.2.840.113549.1.1.8"), &hash]);
    let parameters = sequence(&[
        &tlv(0xa0, &[&hash]),
        &tlv(0xa1, &[&mask]),
        &tlv(0xa2, &[&[2, 1, 48]]),
    ]);
    sequence(&[&id("1.2.840.113549.1.1.10"), &parameters])
}

fn signed(content: &[u8], key: &RsaKeyPair) -> Vec<u8> {
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PSS_SHA384,
        &SystemRandom::new(),
        content,
        &mut signature,
    )
    .unwrap();
    sequence(&[content, &algorithm(), &tlv(3, &[&[0], &signature])])
}

fn of_rsa(key: &RsaKeyPair) -> Vec<u8> {
    let kind = sequence(&[&id("1.2.840.113549.1.1.1"), &[5, 0]]);
    sequence(&[&kind, &tlv(3, &[&[0], key.public().as_ref()])])
}

fn of_p384(point: &[u8]) -> Vec<u8> {
    let kind = sequence(&[&id("1.2.840.10045.2.1"), &id("1.3.132.0.34")]);
    sequence(&[&kind, &tlv(3, &[&[0], point])])
}

fn extension(name: &str, critical: bool, content: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if critical { &[1, 1, 0xff] } else { &[] };
    sequence(&[&id(name), critical, &tlv(4, &[content])])
}

fn authority(may_certify: bool) -> Vec<Vec<u8>> {
    let constraints = sequence(&[if may_certify { &[1, 1, 0xff] } else { &[] }]);
    vec![
        extension("2.5.29.19", true, &constraints),
        extension("2.5.29.15", true, &[3, 2, 2, 4]),
    ]
}
