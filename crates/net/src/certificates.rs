//! Self-signed certificates, one a party.

use crate::error::{Error, Result, cause};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use std::fs;
use std::io::Write;
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// Clocks may differ by that much.
const BACKDATED: Duration = Duration::hours(1);

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

/// When a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// From then.
    pub not_before: u64,
    /// Until then.
    pub not_after: u64,
}

impl Period {
    /// Its first minute, for people.
    #[must_use]
    pub fn begins(&self) -> String {
        date(self.not_before)
    }

    /// Its last minute, for people.
    #[must_use]
    pub fn ends(&self) -> String {
        date(self.not_after)
    }
}

/// A time for people, to the minute.
pub(crate) fn date(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_or_else(
        |_| "an unknown time".to_owned(),
        |at| {
            let (date, hour, minute) = (at.date(), at.hour(), at.minute());
            format!("{date} {hour:02}:{minute:02} UTC")
        },
    )
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
/// `Setup` where a file exists, before any is written, or cannot be written.
pub fn write(names: &[String], directory: &Path) -> Result<()> {
    let failed = |path: &Path, reason: String| {
        let path = path.display();
        Error::setup(format!(
            "cannot write {path}: {reason}; choose another directory"
        ))
    };
    let file = |name: &str, ending: &str| directory.join(format!("{name}.{ending}"));
    fs::create_dir_all(directory).map_err(|error| failed(directory, cause(&error)))?;
    let all = names
        .iter()
        .flat_map(|name| [file(name, "pem"), file(name, "key")]);
    if let Some(path) = all.into_iter().find(|path| path.exists()) {
        return Err(failed(
            &path,
            "it exists, and is not overwritten".to_owned(),
        ));
    }
    for name in names {
        let made = fresh(name, DAYS)?;
        for (ending, text, mode) in [
            ("pem", made.certificate_pem, 0o644),
            ("key", made.key_pem, 0o600),
        ] {
            let path = file(name, ending);
            create(&path, mode)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| failed(&path, cause(&error)))?;
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
