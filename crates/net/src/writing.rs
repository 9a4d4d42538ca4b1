//! Files that appear whole or not at all. A file is written under another name next to its final
//! one, and is renamed when all of it is on the disk.

use crate::error::cause;
use rustix::fs::{FlockOperation, flock, statvfs};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Suffix of the name of a file that is being written.
const UNFINISHED: &str = ".new";

/// A file that is being written. If this is dropped before [`Unfinished::finish`], the file is
/// removed.
pub struct Unfinished {
    path: PathBuf,
    beside: PathBuf,
    finished: bool,
}

impl Unfinished {
    /// Creates the file with mode `mode`, for reading and writing; no file of the final name may
    /// exist. The file belongs to this process until it is closed. Removes what a killed process
    /// left behind.
    ///
    /// # Errors
    /// `AlreadyExists` if a file of that name exists; `WouldBlock` if another process is writing
    /// it; otherwise the error of the operating system.
    pub fn create(path: &Path, mode: u32) -> io::Result<(Self, File)> {
        if path.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(UNFINISHED);
        let beside = path.with_file_name(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(mode);
        loop {
            let file = match options.clone().create_new(true).open(&beside) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    // The process that writes it has it locked.
                    let left = options.open(&beside)?;
                    flock(&left, FlockOperation::NonBlockingLockExclusive)?;
                    fs::remove_file(&beside)?;
                    continue;
                }
                made => made?,
            };
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // Before the lock was taken, another process may have removed the file as left behind.
            if is_named(&file, &beside)? {
                let path = path.to_owned();
                let finished = false;
                return Ok((
                    Self {
                        path,
                        beside,
                        finished,
                    },
                    file,
                ));
            }
        }
    }

    /// Gives the file its final name. All of the file must be on the disk.
    ///
    /// # Errors
    /// `AlreadyExists` if a file of that name exists by now; otherwise the error of the operating
    /// system.
    pub fn finish(mut self) -> io::Result<()> {
        if self.path.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        fs::rename(&self.beside, &self.path)?;
        self.finished = true;
        File::open(folder_of(&self.path))?.sync_all()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            // If it cannot be removed here, the next process that writes it removes it.
            drop(fs::remove_file(&self.beside));
        }
    }
}

fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns why a file was not written, in plain words, and the remedy. If its disk is full, the
/// reason names the disk and the remedy is for that; otherwise the remedy is `otherwise`.
#[must_use]
pub fn why(error: &io::Error, path: &Path, otherwise: &str) -> (String, String) {
    let full = [
        ErrorKind::StorageFull,
        ErrorKind::QuotaExceeded,
        ErrorKind::FileTooLarge,
    ];
    let reason = cause(error);
    if !full.contains(&error.kind()) {
        return (reason, otherwise.to_owned());
    }
    let folder = folder_of(path);
    let remedy = "make room on that disk, or give a path on another one".to_owned();
    let free = statvfs(folder).map(|disk| disk.f_bavail * disk.f_frsize);
    match (mounted(folder), free) {
        (Ok(disk), Ok(free)) => {
            let disk = disk.display();
            let on = format!("{reason} (mounted at {disk}, {free} bytes are free)");
            (on, remedy)
        }
        _ => (reason, remedy),
    }
}

/// Returns the mount point of the disk that a folder lies on.
fn mounted(folder: &Path) -> io::Result<PathBuf> {
    let mut at = folder.canonicalize()?;
    let disk = at.metadata()?.dev();
    while let Some(above) = at.parent().filter(|above| {
        let above = above.metadata();
        above.is_ok_and(|above| above.dev() == disk)
    }) {
        at = above.to_owned();
    }
    Ok(at)
}
