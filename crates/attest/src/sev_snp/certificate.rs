//! Certificates of AMD: of the root, of the keys that it certifies, and of those that sign
//! reports.

use super::signed::Signed;
use crate::error::{Error, Result};
use ring::digest::{SHA256, digest};
use x509_cert::TbsCertificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::{ObjectIdentifier, OctetStringRef};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage};
use x509_cert::name::Name;

const BASIC_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.19");
const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// Extensions of AMD: the parent of those with versions, the chip's number, the cloud's name.
const VERSIONS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.3");
const CHIP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.4");
const PROVIDER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.5");

/// A certificate that could be read. Its signature has not been verified.
#[derive(Clone)]
pub struct Certificate {
    signed: Signed,
    fingerprint: [u8; 32],
    content: TbsCertificate,
}

impl Certificate {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// `Chain` if it is none, or has critical extensions that are unknown here.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        let signed = Signed::of(bytes, "a certificate")?;
        let wrong = |why: &str| Error::Chain(format!("a certificate cannot be read: {why}"));
        let content =
            TbsCertificate::from_der(&signed.content).map_err(|_| wrong("it is not X.509"))?;
        if *content.signature() != signed.algorithm {
            return Err(wrong("it names two algorithms"));
        }
        let found = digest(&SHA256, bytes);
        let certificate = Self {
            fingerprint: std::array::from_fn(|at| found.as_ref()[at]),
            signed,
            content,
        };
        for extension in certificate.extensions() {
            let known = [BASIC_CONSTRAINTS, KEY_USAGE].contains(&extension.extn_id);
            if extension.critical && !known {
                return Err(wrong("it has a critical extension that is unknown"));
            }
        }
        Ok(certificate)
    }

    /// Returns SHA-256 of the certificate.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Returns whose key this is of.
    pub fn subject(&self) -> &Name {
        self.content.subject()
    }

    /// Returns the common name of whose key this is of, if there is one alone.
    pub fn common_name(&self) -> Option<&str> {
        let mut found = self.subject().iter().filter(|one| one.oid == COMMON_NAME);
        let first = found.next().filter(|_| found.next().is_none())?;
        std::str::from_utf8(first.value.value()).ok()
    }

    /// Returns who has signed this.
    pub fn issuer(&self) -> &Name {
        self.content.issuer()
    }

    /// Returns the serial number in its shortest form.
    pub fn serial(&self) -> &[u8] {
        self.content.serial_number().as_bytes()
    }

    /// Checks that a moment, in seconds since 1970, is between the certificate's dates.
    ///
    /// # Errors
    /// `Chain` if it is not.
    pub fn check_dates(&self, now: u64) -> Result<()> {
        let validity = self.content.validity();
        let begin = validity.not_before.to_unix_duration().as_secs();
        let end = validity.not_after.to_unix_duration().as_secs();
        match (begin..=end).contains(&now) {
            true => Ok(()),
            false => Err(Error::Chain(format!(
                "the certificate of {} is not valid at this time",
                self.subject()
            ))),
        }
    }

    /// Returns whether that certificate's key may sign certificates, and has signed this one.
    pub fn is_signed_by(&self, signer: &Self) -> bool {
        self.issuer() == signer.subject()
            && signer.may_certify()
            && signer
                .rsa_key()
                .is_some_and(|key| self.signed.is_signed_by(key))
    }

    /// Returns the key of RSA, if the certificate is of one.
    pub fn rsa_key(&self) -> Option<&[u8]> {
        let key = self.content.subject_public_key_info();
        key.subject_public_key
            .as_bytes()
            .filter(|_| key.algorithm.oid == RSA)
    }

    /// Returns the point of P-384, if the certificate is of one.
    pub fn point(&self) -> Option<&[u8]> {
        let key = self.content.subject_public_key_info();
        let parameters = key.algorithm.parameters.as_ref();
        let curve = parameters.and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
        key.subject_public_key
            .as_bytes()
            .filter(|_| key.algorithm.oid == ELLIPTIC && curve == Some(P384))
    }

    fn extensions(&self) -> &[Extension] {
        let extensions = self.content.extensions();
        extensions.map_or(&[], Vec::as_slice)
    }

    /// Returns the content of an extension that is there once.
    fn extension(&self, id: ObjectIdentifier) -> Option<&[u8]> {
        let mut found = self.extensions().iter().filter(|each| each.extn_id == id);
        let first = found.next()?;
        found.next().is_none().then(|| first.extn_value.as_bytes())
    }

    fn may_certify(&self) -> bool {
        let constraints = self.extension(BASIC_CONSTRAINTS);
        let usage = self.extension(KEY_USAGE);
        constraints.is_some_and(|der| BasicConstraints::from_der(der).is_ok_and(|read| read.ca))
            && usage
                .is_some_and(|der| KeyUsage::from_der(der).is_ok_and(|usage| usage.key_cert_sign()))
    }

    /// Returns the version in each of eight extensions, by their last numbers.
    pub fn versions(&self, numbers: [u32; 8]) -> Option<[u8; 8]> {
        let mut versions = [0; 8];
        for (version, number) in versions.iter_mut().zip(numbers) {
            let id = VERSIONS.push_arc(number).ok()?;
            *version = u8::from_der(self.extension(id)?).ok()?;
        }
        Some(versions)
    }

    fn has(&self, id: ObjectIdentifier) -> bool {
        self.extensions().iter().any(|each| each.extn_id == id)
    }

    /// Returns the chip's number, which older certificates have without a tag of its own. The key
    /// of a cloud's provider is of no chip.
    pub fn chip(&self) -> Option<&[u8]> {
        let content = self.extension(CHIP).filter(|_| !self.has(PROVIDER))?;
        match <&OctetStringRef>::from_der(content) {
            Ok(tagged) if [10, 66].contains(&content.len()) => Some(tagged.as_bytes()),
            _ => Some(content),
        }
    }

    /// Returns whether this is of a key of a cloud's provider.
    pub fn is_of_provider(&self) -> bool {
        self.extension(PROVIDER).is_some() && !self.has(CHIP)
    }
}
