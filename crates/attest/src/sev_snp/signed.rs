//! What certificates and revocation lists have in common: content, an algorithm, and a signature
//! by RSA-PSS with SHA-384, which is what AMD signs with.

use crate::error::{Error, Result};
use ring::signature::{RSA_PSS_2048_8192_SHA384, UnparsedPublicKey};
use x509_cert::der::asn1::{BitStringRef, ObjectIdentifier};
use x509_cert::der::{Decode, Reader, SliceReader};
use x509_cert::spki::AlgorithmIdentifierOwned;

const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");

/// Signed content in DER. The signature has not been verified.
#[derive(Clone)]
pub struct Signed {
    /// The content, as it is signed.
    pub content: Vec<u8>,
    /// The algorithm that stands beside the signature. The content must name the same.
    pub algorithm: AlgorithmIdentifierOwned,
    signature: Vec<u8>,
}

impl Signed {
    /// Takes content, algorithm and signature apart. `what` names them in an error.
    ///
    /// # Errors
    /// `Chain` for anything else, another algorithm, or more bytes after it.
    pub fn of(bytes: &[u8], what: &str) -> Result<Self> {
        let parts = || {
            let mut reader = SliceReader::new(bytes)?;
            let parts = reader.sequence(|inside| {
                let content = inside.tlv_bytes()?.to_vec();
                let algorithm = AlgorithmIdentifierOwned::decode(inside)?;
                let signature = BitStringRef::decode(inside)?;
                Ok::<_, x509_cert::der::Error>((content, algorithm, signature.as_bytes()))
            })?;
            reader.finish()?;
            Ok::<_, x509_cert::der::Error>(parts)
        };
        let wrong = |why: &str| Error::Chain(format!("{what} cannot be read: {why}"));
        let (content, algorithm, signature) = parts().map_err(|_| wrong("it is not X.509"))?;
        if algorithm.oid != RSA_PSS {
            return Err(wrong("it is not signed by RSA-PSS"));
        }
        let signature = signature.ok_or_else(|| wrong("its signature is not whole bytes"))?;
        Ok(Self {
            content,
            algorithm,
            signature: signature.to_vec(),
        })
    }

    /// Returns whether a key of RSA has signed this, with SHA-384 and a salt of as many bytes.
    #[must_use]
    pub fn is_signed_by(&self, key: &[u8]) -> bool {
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA384, key)
            .verify(&self.content, &self.signature)
            .is_ok()
    }
}
