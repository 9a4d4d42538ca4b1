//! Self-signed certificates, one for each party.

use crate::error::{Error, Fault, Result};
pub use crate::kinds::Period;
use crate::kinds::{self, KINDS};
use crate::wording::Voice;
use crate::writing::{self, Unfinished};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// Allowed difference between clocks: certificates are valid from this long ago.
pub(crate) const BACKDATED: Duration = Duration::hours(1);

/// Remedy if files of certificates cannot be written.
const OTHER: &str = "choose another directory";

/// Days for which [`write`] makes certificates valid.
const DAYS: u32 = 365;

/// Identity of a party, and the certificates it trusts.
pub struct Identity {
    /// Certificate of every party in PEM, by party.
    pub certificates: Vec<String>,
    /// Private key of this party in PEM.
    pub key: String,
}

/// A certificate and its key.
pub struct Generated {
    /// Certificate, which is public.
    pub certificate_pem: String,
    /// Private key, for its party only.
    pub key_pem: String,
}

/// Generates an ECDSA P-256 key and its self-signed certificate, valid from an hour ago for `days`
/// days.
///
/// # Errors
/// `Misuse` for no days or more than a hundred years; `Setup` if the key cannot be made.
pub fn generate(party: usize, days: u32) -> Result<Generated> {
    check_days(days)?;
    fresh(&name_of(party), days)
}

/// Refuses an impossible period of validity.
pub(crate) fn check_days(days: u32) -> Result<()> {
    if (1..=36_500).contains(&days) {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "a certificate is valid for 1 to 36500 days, not {days}"
    )))
}

fn name_of(party: usize) -> String {
    format!("party-{party}")
}

fn fresh(name: &str, days: u32) -> Result<Generated> {
    let now = OffsetDateTime::now_utc();
    make(name, now - BACKDATED, now + Duration::days(i64::from(days)))
}

/// Generates a key and a certificate with a period of validity in seconds since 1970, for tests of
/// expiry.
///
/// # Errors
/// `Misuse` for dates that do not exist; `Setup` if the key cannot be made.
pub fn generate_for_period(party: usize, not_before: i64, not_after: i64) -> Result<Generated> {
    let date = |seconds| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|_| Error::misuse(format!("there is no date {seconds} s from 1970 on")))
    };
    make(&name_of(party), date(not_before)?, date(not_after)?)
}

fn make(name: &str, not_before: OffsetDateTime, not_after: OffsetDateTime) -> Result<Generated> {
    let failed = |error: rcgen::Error| Error::setup(format!("cannot make a certificate: {error}"));
    let key = KeyPair::generate().map_err(failed)?;
    let mut parameters = CertificateParams::new(vec![format!("{name}.tacit")]).map_err(failed)?;
    parameters
        .distinguished_name
        .push(DnType::CommonName, format!("tacit {name}"));
    parameters.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    parameters.not_before = not_before;
    parameters.not_after = not_after;
    let certificate = parameters.self_signed(&key).map_err(failed)?;
    Ok(Generated {
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
    })
}

/// Refuses a certificate of a kind that links do not use, whatever its dates are. Errors call it
/// `what`.
///
/// # Errors
/// `Setup` if the text is not a certificate in PEM, or if the certificate is damaged or of another
/// kind than tacit's. For a client that submits to servers, also if the key cannot sign
/// submissions.
pub fn check(pem: &str, what: &str, is_client: bool) -> Result<()> {
    let found = kinds::usable(pem);
    let found = found.map_err(|fault| Error::setup(fault.said(what, &Voice::PARTY)))?;
    if is_client && !kinds::can_sign(&found) {
        return Err(Error::setup(Fault::new(
            format!("{what} has a key that cannot sign submissions"),
            KINDS,
        )));
    }
    Ok(())
}

/// Writes party-0.pem, party-0.key and so on, as [`write`] does.
///
/// # Errors
/// `Misuse` for an impossible number of parties; otherwise as [`write`].
pub fn write_directory(parties: usize, directory: &Path) -> Result<()> {
    if !(2..=crate::MOST_PARTIES).contains(&parties) {
        return Err(Error::misuse(format!(
            "a session has 2 to {} parties, not {parties}",
            crate::MOST_PARTIES
        )));
    }
    let names: Vec<String> = (0..parties).map(name_of).collect();
    write(&names, directory)
}

/// Writes NAME.pem and NAME.key for each name. Keys are readable by their owner only; nothing is
/// overwritten.
///
/// # Errors
/// `Setup` if a file exists or cannot be written. Then no file is left.
pub fn write(names: &[String], directory: &Path) -> Result<()> {
    let mut files = Vec::new();
    for name in names {
        let made = fresh(name, DAYS)?;
        files.push(File::public(format!("{name}.pem"), made.certificate_pem));
        files.push(File::key(format!("{name}.key"), made.key_pem));
    }
    write_files(&files, directory)
}

/// A file that is to be written.
pub(crate) struct File {
    name: String,
    text: String,
    mode: u32,
}

impl File {
    /// A file that everybody may read.
    pub(crate) fn public(name: String, text: String) -> Self {
        let mode = 0o644;
        Self { name, text, mode }
    }

    /// A private key.
    pub(crate) fn key(name: String, text: String) -> Self {
        let mode = 0o600;
        Self { name, text, mode }
    }
}

/// Writes files in a directory; nothing is overwritten.
///
/// # Errors
/// `Setup` if a file exists or cannot be written. Then no file is left.
pub(crate) fn write_files(files: &[File], directory: &Path) -> Result<()> {
    let failed = |path: &Path, error: &io::Error| {
        let (reason, remedy) = match error.kind() {
            ErrorKind::AlreadyExists => (
                "it exists, and is not overwritten".to_owned(),
                OTHER.to_owned(),
            ),
            _ => writing::why(error, path, OTHER),
        };
        let path = path.display();
        Error::setup(Fault::new(format!("cannot write {path}: {reason}"), remedy))
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let mut all = files.iter().map(|file| directory.join(&file.name));
    if let Some(path) = all.find(|path| path.exists()) {
        return Err(failed(&path, &ErrorKind::AlreadyExists.into()));
    }
    let mut written: Vec<(PathBuf, Unfinished)> = Vec::new();
    for File { name, text, mode } in files {
        let path = directory.join(name);
        let unfinished = Unfinished::create(&path, *mode).and_then(|(unfinished, mut file)| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(unfinished)
        });
        let unfinished = unfinished.map_err(|error| failed(&path, &error))?;
        written.push((path, unfinished));
    }
    // All files are on the disk. From here on, either all of them get their names or none does.
    let mut named = Vec::new();
    for (path, unfinished) in written {
        if let Err(error) = unfinished.finish() {
            for path in &named {
                // The error below matters more than a failure to remove a file.
                drop(fs::remove_file(path));
            }
            return Err(failed(&path, &error));
        }
        named.push(path);
    }
    Ok(())
}
