//! Reports of this machine, from configfs-tsm of Linux 6.7 and later: a folder for each request.
//! The data is written to its file `inblob`, and the report read from `outblob`. Some drivers hand
//! out certificates of the host's in `auxblob`.

use crate::binding::DATA;
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The kernel's folder.
pub const FOLDER: &str = "/sys/kernel/config/tsm/report";

/// Longest report, and longest table of certificates, in bytes.
const LONGEST: usize = 1 << 15;

/// Longest wait for a report. A kernel may be asked by several programs, one after another.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the kernel answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The report.
    pub report: Vec<u8>,
    /// Certificates that the host handed out with it, as its driver has them. Often there are none.
    pub certificates: Vec<u8>,
}

/// A request to the kernel, which is removed with it.
struct Request<'a> {
    folder: std::path::PathBuf,
    under: &'a Path,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        // The kernel removes the files of a request with its folder.
        drop(fs::remove_dir(&self.folder));
    }
}

/// Returns whether the kernel offers reports.
#[must_use]
pub fn is_here(folder: &Path) -> bool {
    folder.is_dir()
}

/// Returns the name of the driver that makes this machine's reports.
///
/// # Errors
/// `Machine` without one.
pub fn provider(folder: &Path) -> Result<String> {
    Request::begin(folder)?.provider()
}

/// Reads a report with that data, from the driver of the named kind.
///
/// # Errors
/// `Machine` if there is no such driver, or it gives no report.
pub fn read(folder: &Path, kind: &str, driver: &str, data: &[u8; DATA]) -> Result<Answer> {
    let request = Request::begin(folder)?;
    let provider = request.provider()?;
    if provider != driver {
        return Err(Error::Machine(format!(
            "its reports come from \"{}\", and those of kind \"{}\" from \"{}\": set the kind that \
             this machine has",
            provider.escape_default(),
            kind,
            driver
        )));
    }
    // Another program that wrote to the same request would show in its generation.
    fs::write(request.folder.join("inblob"), data)
        .map_err(|error| request.failed("inblob", &error))?;
    let generation = request.read("generation", 64)?;
    let report = request.read("outblob", LONGEST)?;
    let certificates = request.read_optional("auxblob", LONGEST)?;
    if request.read("generation", 64)? != generation {
        return Err(Error::Machine(
            "another program changed the request while its report was made; try again".to_owned(),
        ));
    }
    Ok(Answer {
        report,
        certificates,
    })
}

impl<'a> Request<'a> {
    fn begin(under: &'a Path) -> Result<Self> {
        if !is_here(under) {
            return Err(Error::Machine(format!(
                "there is no {}: it has no trusted execution environment, or its kernel is older \
                 than Linux 6.7 or has no configfs; run this in a guest of TDX or SEV-SNP",
                under.display()
            )));
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| Error::Machine(format!("it gives no random numbers: {error}")))?;
        let folder = under.join(format!("tacit-{:016x}", u64::from_le_bytes(random)));
        fs::create_dir(&folder).map_err(|error| {
            let (what, remedy) = match error.kind() {
                ErrorKind::PermissionDenied => ("permission denied", "run this as root"),
                _ => ("the kernel refuses the request", "see the kernel's log"),
            };
            Error::Machine(format!(
                "cannot make {}: {what}; {remedy}",
                folder.display()
            ))
        })?;
        Ok(Self { folder, under })
    }

    fn provider(&self) -> Result<String> {
        let name = self.read("provider", 64)?;
        Ok(String::from_utf8_lossy(&name).trim().to_owned())
    }

    fn failed(&self, file: &str, error: &std::io::Error) -> Error {
        Error::Machine(format!("{} of {}: {error}", file, self.under.display()))
    }

    /// Reads a file that may be missing or empty.
    fn read_optional(&self, file: &str, most: usize) -> Result<Vec<u8>> {
        self.patiently(file, || match self.read_once(file, most) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        })
    }

    /// Reads a file, again while the kernel is busy with another request.
    fn read(&self, file: &str, most: usize) -> Result<Vec<u8>> {
        self.patiently(file, || self.read_once(file, most))
    }

    fn patiently(
        &self,
        file: &str,
        mut read: impl FnMut() -> std::io::Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let began = Instant::now();
        loop {
            match read() {
                Ok(bytes) => return Ok(bytes),
                Err(error) if is_busy(&error) && began.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(self.failed(file, &error)),
            }
        }
    }

    fn read_once(&self, file: &str, most: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let opened = File::open(self.folder.join(file))?;
        opened.take(most as u64 + 1).read_to_end(&mut bytes)?;
        match bytes.len() {
            0 => Err(std::io::Error::new(ErrorKind::NotFound, "it is empty")),
            length if length > most => Err(std::io::Error::other("it is longer than a report")),
            _ => Ok(bytes),
        }
    }
}

/// Returns whether the kernel may still answer.
fn is_busy(error: &std::io::Error) -> bool {
    let busy = [
        ErrorKind::NotFound,
        ErrorKind::WouldBlock,
        ErrorKind::Interrupted,
    ];
    busy.contains(&error.kind()) || error.kind() == ErrorKind::ResourceBusy
}
