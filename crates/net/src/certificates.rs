//! Self-signed certificates, one a party.

use crate::error::{Error, Result};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use std::fs;
use std::io::Write;
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// Clocks may differ by that much.
const BACKDATED: Duration = Duration::hours(1);

/// Days that [`write_directory`] makes certificates valid for.
const DAYS: u32 = 365;

/// A certificate and its key.
pub struct Generated {
    /// The certificate, for everybody.
    pub certificate_pem: String,
    /// The private key, for its party alone.
    pub key_pem: String,
}

/// A fresh ECDSA P-256 key and its self-signed certificate, valid from an hour ago for that many days.
///
/// # Errors
/// `Misuse` for no days or more than a hundred years; `Setup` where the key cannot be made.
pub fn generate(party: usize, days: u32) -> Result<Generated> {
    if days == 0 || days > 36_500 {
        return Err(Error::misuse(format!(
            "a certificate is valid for 1 to 36500 days, not {days}"
        )));
    }
    let now = OffsetDateTime::now_utc();
    make(
        party,
        now - BACKDATED,
        now + Duration::days(i64::from(days)),
    )
}

/// As [`generate`], with the period of validity in seconds since 1970: for tests of expiry.
///
/// # Errors
/// `Misuse` for dates that do not exist; `Setup` where the key cannot be made.
pub fn generate_for_period(party: usize, not_before: i64, not_after: i64) -> Result<Generated> {
    let date = |seconds| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|error| Error::misuse(format!("no such date: {error}")))
    };
    make(party, date(not_before)?, date(not_after)?)
}

fn make(party: usize, not_before: OffsetDateTime, not_after: OffsetDateTime) -> Result<Generated> {
    let failed = |error: rcgen::Error| Error::setup(format!("cannot make a certificate ({error})"));
    let key = KeyPair::generate().map_err(failed)?;
    let mut parameters =
        CertificateParams::new(vec![format!("party-{party}.tacit")]).map_err(failed)?;
    parameters
        .distinguished_name
        .push(DnType::CommonName, format!("tacit party {party}"));
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

/// Writes party-0.pem, party-0.key and so on. Keys are readable by their owner alone; nothing is
/// overwritten.
///
/// # Errors
/// `Misuse` for a number of parties that no session has; `Setup` where a file exists or cannot be
/// written.
pub fn write_directory(parties: usize, directory: &Path) -> Result<()> {
    if !(2..=crate::MOST_PARTIES).contains(&parties) {
        return Err(Error::misuse(format!(
            "a session has 2 to {} parties, not {parties}",
            crate::MOST_PARTIES
        )));
    }
    let failed = |path: &Path, error: std::io::Error| {
        Error::setup(format!(
            "cannot write {}: {error}; choose an empty directory",
            path.display()
        ))
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for party in 0..parties {
        let Generated {
            certificate_pem,
            key_pem,
        } = generate(party, DAYS)?;
        for (ending, text, mode) in [("pem", certificate_pem, 0o644), ("key", key_pem, 0o600)] {
            let path = directory.join(format!("party-{party}.{ending}"));
            create(&path, mode)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn create(path: &Path, mode: u32) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
}

#[cfg(not(unix))]
fn create(path: &Path, _mode: u32) -> std::io::Result<fs::File> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
}
