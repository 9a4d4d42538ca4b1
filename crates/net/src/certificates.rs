//! Self-signed certificates, one a party.

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

/// Clocks may differ by that much.
const BACKDATED: Duration = Duration::hours(1);

/// What to do where files of certificates cannot be written.
const OTHER: &str = "choose another directory";

/// Days that [`write`] makes certificates valid for.
const DAYS: u32 = 365;

/// Who a party is and whom it trusts.
pub struct Identity {
    /// The certificate of every party, PEM, by party.
    pub certificates: Vec<String>,
    /// The private key of this party, PEM.
    pub key: String,
}

/// A certificate and its key.
pub struct Generated {
    /// The certificate, for everybody.
    pub certificate_pem: String,
    /// The private key, for its party alone.
    pub key_pem: String,
}

/// A fresh ECDSA P-256 key and its self-signed certificate, valid from an hour ago for that many
/// days.
///
/// # Errors
/// `Misuse` for no days or more than a hundred years; `Setup` where the key cannot be made.
pub fn generate(party: usize, days: u32) -> Result<Generated> {
    if days == 0 || days > 36_500 {
        return Err(Error::misuse(format!(
            "a certificate is valid for 1 to 36500 days, not {days}"
        )));
    }
    fresh(&name_of(party), days)
}

fn name_of(party: usize) -> String {
    format!("party-{party}")
}

fn fresh(name: &str, days: u32) -> Result<Generated> {
    let now = OffsetDateTime::now_utc();
    make(name, now - BACKDATED, now + Duration::days(i64::from(days)))
}

/// As [`generate`], with the period of validity in seconds since 1970: for tests of expiry.
///
/// # Errors
/// `Misuse` for dates that do not exist; `Setup` where the key cannot be made.
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

/// Refuses a certificate that links are not made with, whatever its dates are; `what` it is, errors
/// say.
///
/// # Errors
/// `Setup` for what is no certificate in PEM, for a damaged one, and for one of another kind than
/// tacit's; where it is a client's who hands in to servers, for one whose key does not sign what it
/// hands in.
pub fn check(pem: &str, what: &str, is_client: bool) -> Result<()> {
    let found = kinds::usable(pem);
    let found = found.map_err(|fault| Error::setup(fault.said(what, &Voice::PARTY)))?;
    if is_client && !kinds::can_sign(&found) {
        return Err(Error::setup(Fault::new(
            format!("{what} has a key that cannot sign what clients hand in"),
            KINDS,
        )));
    }
    Ok(())
}

/// Writes party-0.pem, party-0.key and so on, as [`write`] does.
///
/// # Errors
/// `Misuse` for a number of parties that no session has; as [`write`].
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

/// Writes NAME.pem and NAME.key for each name. Keys are readable by their owner alone; nothing is
/// overwritten.
///
/// # Errors
/// `Setup` where a file exists, or cannot be written: then none is there.
pub fn write(names: &[String], directory: &Path) -> Result<()> {
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
    let file = |name: &str, ending: &str| directory.join(format!("{name}.{ending}"));
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let all = names
        .iter()
        .flat_map(|name| [file(name, "pem"), file(name, "key")]);
    if let Some(path) = all.into_iter().find(|path| path.exists()) {
        return Err(failed(&path, &ErrorKind::AlreadyExists.into()));
    }
    let mut written: Vec<(PathBuf, Unfinished)> = Vec::new();
    for name in names {
        let made = fresh(name, DAYS)?;
        for (ending, text, mode) in [
            ("pem", made.certificate_pem, 0o644),
            ("key", made.key_pem, 0o600),
        ] {
            let path = file(name, ending);
            let unfinished = Unfinished::create(&path, mode).and_then(|(unfinished, mut file)| {
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                Ok(unfinished)
            });
            let unfinished = unfinished.map_err(|error| failed(&path, &error))?;
            written.push((path, unfinished));
        }
    }
    // All are on the disk: none is there, or all are.
    let mut named = Vec::new();
    for (path, unfinished) in written {
        if let Err(error) = unfinished.finish() {
            for path in &named {
                // The error below counts more than what keeps it from being removed.
                drop(fs::remove_file(path));
            }
            return Err(failed(&path, &error));
        }
        named.push(path);
    }
    Ok(())
}
