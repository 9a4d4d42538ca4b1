//! A clients' authority: its certificate, those that it signs for clients, and its list of revoked
//! ones.
//!
//! A client makes its own key, and a request with its public half. Of a request only the public key
//! is taken over; what a certificate says is the authority's.

use crate::certificates::{BACKDATED, File, check_days, write_files};
use crate::config::read_key;
use crate::error::{Error, Fault, Result};
use crate::kinds;
use crate::signing::random;
use crate::tcp::admission::name_of;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams,
    CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, RevokedCertParams, SanType,
    SerialNumber,
};
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeSet;
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// Days for which the certificate of an authority is valid.
const DAYS: u32 = 3650;

/// An authority that signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its name, as certificates and lists that it signed have it.
    subject: Vec<u8>,
}

fn failed(what: &str) -> impl Fn(rcgen::Error) -> Error {
    let what = what.to_owned();
    move |error| Error::setup(format!("cannot make {what}: {error}"))
}

/// Writes NAME.pem and NAME.key of a new authority.
///
/// # Errors
/// `Setup` if a file exists or cannot be written.
pub fn write_authority(name: &str, directory: &Path) -> Result<()> {
    let failed = failed("the certificate of an authority");
    let key = KeyPair::generate().map_err(&failed)?;
    let mut parameters = CertificateParams::default();
    let subject = format!("tacit authority {}", hex(&key.public_key_raw()[1..9]));
    parameters.distinguished_name.remove(DnType::CommonName);
    parameters
        .distinguished_name
        .push(DnType::CommonName, subject);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = OffsetDateTime::now_utc();
    parameters.not_before = now - BACKDATED;
    parameters.not_after = now + Duration::days(i64::from(DAYS));
    let certificate = parameters.self_signed(&key).map_err(&failed)?;
    let files = [
        File::public(format!("{name}.pem"), certificate.pem()),
        File::key(format!("{name}.key"), key.serialize_pem()),
    ];
    write_files(&files, directory)
}

/// Writes client-N.key, a new key, and client-N.request, which an authority signs.
///
/// # Errors
/// `Setup` if a file exists or cannot be written.
pub fn write_request(client: usize, directory: &Path) -> Result<()> {
    let failed = failed("a request");
    let key = KeyPair::generate().map_err(&failed)?;
    let parameters = CertificateParams::new(vec![name_of(client)]).map_err(&failed)?;
    let request = parameters.serialize_request(&key).map_err(&failed)?;
    let files = [
        File::public(
            format!("client-{client}.request"),
            request.pem().map_err(&failed)?,
        ),
        File::key(format!("client-{client}.key"), key.serialize_pem()),
    ];
    write_files(&files, directory)
}

impl Authority {
    /// Reads an authority from its certificate in PEM and the file of its key.
    ///
    /// # Errors
    /// `Setup` for a certificate or key that is not an authority's.
    pub fn read(certificate: &str, key: &Path) -> Result<Self> {
        let unfit = |what: &str| {
            Error::setup(Fault::new(
                format!("the clients' authority cannot sign: {what}"),
                "give the .pem file that `tacit federated authority` made, with its .key beside it",
            ))
        };
        // The parser's error could quote the file, so it is not shown.
        let key = KeyPair::from_pem(&read_key(key)?).map_err(|_| unfit("its key is damaged"))?;
        let der = kinds::certificate(certificate).ok_or_else(|| unfit("no certificate in PEM"))?;
        let anchor = webpki::anchor_from_trusted_cert(&der)
            .map_err(|_| unfit("its certificate is damaged"))?;
        if !anchor
            .subject_public_key_info
            .as_ref()
            .ends_with(key.public_key_raw())
        {
            return Err(unfit("its key is of another certificate"));
        }
        let subject = anchor.subject.as_ref().to_vec();
        let issuer = Issuer::from_ca_cert_der(&der, key);
        let issuer = issuer.map_err(|_| unfit("its certificate is damaged"))?;
        Ok(Self { issuer, subject })
    }

    /// Signs a client's request, in PEM; returns its certificate, valid for `days` days, in PEM.
    ///
    /// # Errors
    /// `Setup` for a request that is damaged, of another client, or of a key that cannot sign
    /// submissions; `Misuse` for impossible days.
    pub fn admit(&self, request: &str, client: usize, days: u32) -> Result<String> {
        check_days(days)?;
        let unfit = |what: String| {
            Error::setup(Fault::new(
                what,
                format!("the client makes it by `tacit federated request --client {client}`"),
            ))
        };
        let asked = CertificateSigningRequestParams::from_pem(request);
        let asked = asked.map_err(|_| unfit("this is no request, or it is damaged".to_owned()))?;
        let name = name_of(client);
        let is_named =
            |known: &SanType| matches!(known, SanType::DnsName(found) if found.as_str() == name);
        if !matches!(&asked.params.subject_alt_names[..], [found] if is_named(found)) {
            return Err(unfit(format!("the request is not of client {client}")));
        }
        let raw = asked.public_key.der_bytes();
        if asked.public_key.algorithm() != &PKCS_ECDSA_P256_SHA256 || raw.len() != 65 {
            return Err(unfit(format!(
                "the key of client {client} is no ECDSA P-256 key"
            )));
        }
        let failed = failed("a certificate");
        let mut parameters = CertificateParams::new(vec![name]).map_err(&failed)?;
        parameters.distinguished_name.remove(DnType::CommonName);
        parameters
            .distinguished_name
            .push(DnType::CommonName, format!("tacit client-{client}"));
        parameters.is_ca = IsCa::ExplicitNoCa;
        parameters.use_authority_key_identifier_extension = true;
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        // A second certificate of the same key is another one, which may be revoked by itself.
        parameters.serial_number = Some(SerialNumber::from_slice(&serial()?));
        let now = OffsetDateTime::now_utc();
        parameters.not_before = now - BACKDATED;
        parameters.not_after = now + Duration::days(i64::from(days));
        let signed = parameters.signed_by(&asked.public_key, &self.issuer);
        let pem = signed.map_err(&failed)?.pem();
        let usable = kinds::certificate(&pem).is_some_and(|it| kinds::can_sign(&it));
        if usable {
            return Ok(pem);
        }
        Err(unfit(format!(
            "the key of client {client} cannot sign submissions"
        )))
    }

    /// Checks that something was signed in this authority's name.
    fn check_own(&self, what: &str, issuer: &[u8]) -> Result<()> {
        if issuer == self.subject {
            return Ok(());
        }
        Err(Error::setup(Fault::new(
            format!("{what} is another authority's"),
            "give one that this authority signed",
        )))
    }

    /// Returns the list of revoked certificates, in PEM: those of the list so far, and these. The
    /// next list is due after `days` days.
    ///
    /// # Errors
    /// `Setup` for a list or a certificate that is damaged, or another authority's; `Misuse` for
    /// impossible days.
    pub fn revoke(&self, list: Option<&str>, certificates: &[String], days: u32) -> Result<String> {
        check_days(days)?;
        let damaged = |what: &str| Error::setup(format!("{what} is not one in PEM, or is damaged"));
        let mut revoked = list.map_or_else(
            || Ok(BTreeSet::new()),
            |pem| -> Result<_> {
                let (issuer, serials) =
                    serials(pem).ok_or_else(|| damaged("the list of revoked certificates"))?;
                self.check_own("the list of revoked certificates", &issuer)?;
                Ok(serials)
            },
        )?;
        for pem in certificates {
            let certificate = kinds::certificate(pem);
            let found = certificate.as_ref().and_then(|it| {
                let entity = webpki::EndEntityCert::try_from(it).ok()?;
                Some((entity.issuer().to_vec(), entity.serial().to_vec()))
            });
            let (issuer, serial) = found.ok_or_else(|| damaged("a certificate to be revoked"))?;
            self.check_own("a certificate to be revoked", &issuer)?;
            revoked.insert(serial);
        }
        let now = OffsetDateTime::now_utc();
        let number = u64::try_from(now.unix_timestamp()).unwrap_or(0);
        let entry = |serial: Vec<u8>| RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: now,
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: now - BACKDATED,
            next_update: now + Duration::days(i64::from(days)),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: revoked.into_iter().map(entry).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let failed = failed("the list of revoked certificates");
        let signed = list.signed_by(&self.issuer).map_err(&failed)?;
        signed.pem().map_err(&failed)
    }
}

/// Draws a serial number.
fn serial() -> Result<[u8; 16]> {
    let mut serial: [u8; 16] = std::array::from_fn({
        let drawn = random()?;
        move |at| drawn[at]
    });
    // Positive, and of full length.
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

/// Returns the issuer of a list of revoked certificates, and the serial numbers in it.
fn serials(pem: &str) -> Option<(Vec<u8>, BTreeSet<Vec<u8>>)> {
    let der = CertificateRevocationListDer::from_pem_slice(pem.as_bytes()).ok()?;
    let list = webpki::BorrowedCertRevocationList::from_der(&der).ok()?;
    let serial = |entry: std::result::Result<webpki::BorrowedRevokedCert<'_>, _>| {
        Some(entry.ok()?.serial_number.to_vec())
    };
    let serials = (&list).into_iter().map(serial).collect::<Option<_>>()?;
    let list = webpki::CertRevocationList::from(list);
    Some((list.issuer().to_vec(), serials))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
