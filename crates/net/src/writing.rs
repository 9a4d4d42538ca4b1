//! Files that are there whole or not at all: written under another name beside, which they leave
//! for their own when all is on the disk.

use crate::error::cause;
use rustix::fs::{FlockOperation, flock, statvfs};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What ends the name of a file that is being written.
const UNFINISHED: &str = ".new";

/// The name of a file that is being written. What lies there is removed when this is dropped before
/// [`Unfinished::finish`].
pub struct Unfinished {
    path: PathBuf,
    beside: PathBuf,
    finished: bool,
}

impl Unfinished {
    /// Makes the file, of which there is none of that name yet, with those rights, for reading and
    /// writing; it is this process's alone until it is closed. What a process left behind that was
    /// killed is removed.
    ///
    /// # Errors
    /// `AlreadyExists` where there is one of that name; `WouldBlock` where another process is
    /// writing it; what the operating system says.
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
                    // Who writes it has it locked.
                    let left = options.open(&beside)?;
                    flock(&left, FlockOperation::NonBlockingLockExclusive)?;
                    fs::remove_file(&beside)?;
                    continue;
                }
                made => made?,
            };
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // Before it was locked, another one may have taken it for left behind.
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

    /// Gives the file its own name, for good. All of it is to be on the disk.
    ///
    /// # Errors
    /// `AlreadyExists` where there is one of that name by now; what the operating system says.
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
            // What cannot be removed is removed by whoever writes it next.
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

/// Why a file was not written, in plain words; where its disk is full, which one that is. The
/// remedy is what helps there, and `otherwise` elsewhere.
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

/// Where the disk is mounted that a folder lies on.
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
