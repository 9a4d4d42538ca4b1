//! Shared libraries that are loaded at run time, and functions by their names.

use crate::error::{Error, Result};
use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A library that stays loaded until the process ends: NVIDIA's libraries run code at exit.
pub struct Library {
    handle: *mut c_void,
    path: PathBuf,
}

impl Library {
    /// Loads a library. A path without a slash is looked for where the system looks.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name ends with a zero. Loading runs the library's initialisation: the caller
        // chose it to be trusted.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(last_error());
        }
        let path = path.into();
        Ok(Self { handle, path })
    }

    /// Loads the newest version of a library, such as `libnvrtc.so`, from the first folder that has
    /// one.
    pub fn find(name: &'static str, folders: &[PathBuf]) -> Result<Self> {
        let path = folders.iter().find_map(|folder| newest(name, folder));
        let path = path.ok_or_else(|| Error::NoLibrary {
            library: name,
            folders: folders.into(),
        })?;
        Self::open(&path).map_err(|cause| Error::Unloadable { path, cause })
    }

    /// Returns a function's address.
    pub fn symbol(&self, symbol: &'static CStr) -> Result<*mut c_void> {
        // SAFETY: the handle is of a loaded library, and the name ends with a zero.
        let address = unsafe { libc::dlsym(self.handle, symbol.as_ptr()) };
        if address.is_null() {
            return Err(Error::NoSymbol {
                path: self.path.clone(),
                symbol: symbol.to_str().unwrap_or("a function"),
            });
        }
        Ok(address)
    }
}

/// Returns the path of the highest version of a library in a folder, by the numbers after its name.
fn newest(name: &str, folder: &Path) -> Option<PathBuf> {
    let version = |path: &Path| -> Option<Vec<u32>> {
        let rest = path.file_name()?.to_str()?.strip_prefix(name)?;
        let numbers = rest.split('.').skip(1).map(|number| number.parse().ok());
        let is_version = rest.is_empty() || rest.starts_with('.');
        is_version.then(|| numbers.collect())?
    };
    let files = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()));
    let versions = files.filter_map(|path| Some((version(&path)?, path)));
    versions.max().map(|(_, path)| path)
}

fn last_error() -> String {
    // SAFETY: the text is valid until the next call of this thread, and copied before that.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "the system gives no reason".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
