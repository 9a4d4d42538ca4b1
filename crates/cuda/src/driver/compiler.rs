//! Kernels compiled by NVRTC, and the folder that they are kept in.

use super::functions::{Handle, Nvrtc};
use super::library::Library;
use crate::error::{Error, Result};
use crate::launch::SOURCE;
use std::ffi::{CString, c_char, c_int};
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr;

/// NVRTC's file name, without a version.
const NAME: &str = "libnvrtc.so";

/// The compiler.
pub struct Compiler {
    functions: Nvrtc,
    /// Its major and minor version.
    pub version: [u32; 2],
}

impl Compiler {
    /// Loads NVRTC from one of some folders.
    pub fn load(folders: &[PathBuf]) -> Result<Self> {
        let functions = Nvrtc::load(&Library::find(NAME, folders)?)?;
        let mut version: [c_int; 2] = [0; 2];
        let [major, minor] = &mut version;
        // SAFETY: both numbers are written.
        let status = unsafe { (functions.version)(major, minor) };
        done("nvrtcVersion", status)?;
        let version = version.map(|number| u32::try_from(number).unwrap_or(0));
        Ok(Self { functions, version })
    }

    /// Returns the kernels for a compute capability, from the folder if they are there.
    pub fn cubin(&self, capability: [u32; 2], folder: &Path) -> Result<Vec<u8>> {
        let cache = |cause: io::Error| Error::Cache {
            folder: folder.into(),
            // Without the system's number.
            cause: cause
                .to_string()
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .into(),
        };
        open_folder(folder).map_err(cache)?;
        let file = folder.join(format!("{}.cubin", self.key(capability)));
        if let Some(cubin) = read(&file).map_err(cache)? {
            return Ok(cubin);
        }
        let cubin = self.compile(capability)?;
        write(&file, &cubin).map_err(cache)?;
        Ok(cubin)
    }

    /// Compiles the kernels for a compute capability.
    pub fn compile(&self, capability: [u32; 2]) -> Result<Vec<u8>> {
        let architecture = architecture(capability);
        let source = CString::new(SOURCE).expect("a source without zeros");
        let option = CString::new(format!("--gpu-architecture={architecture}"));
        let option = option.expect("an option without zeros");
        let mut program: Handle = ptr::null_mut();
        let (name, none) = (c"tacit.cu".as_ptr(), ptr::null());
        // SAFETY: source and name end with zeros, and there are no headers.
        let status =
            unsafe { (self.functions.create)(&mut program, source.as_ptr(), name, 0, none, none) };
        done("nvrtcCreateProgram", status)?;
        // SAFETY: the program was created, and the option ends with a zero.
        let status = unsafe { (self.functions.compile)(program, 1, &option.as_ptr()) };
        let functions = &self.functions;
        let result = match status {
            0 => read_program(program, functions.cubin_size, functions.cubin),
            _ => read_program(program, functions.log_size, functions.log).and_then(|log| {
                Err(Error::Compilation {
                    version: self.version.map(|number| number.to_string()).join("."),
                    architecture,
                    log: String::from_utf8_lossy(&log)
                        .trim_matches(['\0', '\n'])
                        .into(),
                })
            }),
        };
        // SAFETY: the program was created, and is not used any more.
        unsafe { (self.functions.destroy)(&mut program) };
        result
    }

    /// Returns a name for the compiled kernels: a digest of all that they depend on.
    fn key(&self, capability: [u32; 2]) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("tacit compiled kernels v1");
        let [major, minor] = self.version;
        hasher.update(format!("{major}.{minor} {}\n", architecture(capability)).as_bytes());
        hasher.update(SOURCE.as_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

/// Returns a capability as compilers name it.
fn architecture([major, minor]: [u32; 2]) -> String {
    format!("sm_{major}{minor}")
}

type Size = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Copy = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

/// Returns what a program was compiled to, or the compiler's log.
fn read_program(program: Handle, size: Size, copy: Copy) -> Result<Vec<u8>> {
    let mut len = 0;
    // SAFETY: the program exists, and the length is written.
    done("nvrtcGetCUBINSize", unsafe { size(program, &mut len) })?;
    let mut bytes = vec![0; len];
    // SAFETY: the program exists, and there are as many bytes as it asked for.
    done("nvrtcGetCUBIN", unsafe {
        copy(program, bytes.as_mut_ptr().cast())
    })?;
    Ok(bytes)
}

fn done(call: &'static str, status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(Error::Failed {
            call,
            cause: format!("NVRTC's status {status}"),
        }),
    }
}

/// Creates a folder that only this user may enter, or checks that it is one.
fn open_folder(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    // SAFETY: the call has no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    if !found.is_dir() {
        return Err(io::Error::other("it is no folder"));
    }
    if found.uid() != user {
        let owner = found.uid();
        return Err(io::Error::other(format!(
            "it belongs to user {owner}, and this is {user}"
        )));
    }
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        return Err(io::Error::other(format!(
            "other users may enter it (mode {mode:o})"
        )));
    }
    Ok(())
}

/// Returns what a file holds; `None` if it is not there, or damaged. Its first bytes are the digest
/// of the others.
fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let bytes = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let whole = bytes.split_first_chunk::<{ blake3::OUT_LEN }>();
    let whole = whole.filter(|(digest, cubin)| blake3::hash(cubin) == **digest);
    Ok(whole.map(|(_, cubin)| cubin.to_vec()))
}

/// Writes a file as a whole: processes that start at once write the same. The name of what is not
/// yet whole cannot be guessed, and is never one that was there before.
fn write(file: &Path, cubin: &[u8]) -> io::Result<()> {
    let random = RandomState::new().build_hasher().finish();
    let new = file.with_extension(format!("{random:016x}.new"));
    let options = &mut OpenOptions::new();
    let mut open = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let written = open
        .write_all(blake3::hash(cubin).as_bytes())
        .and_then(|()| open.write_all(cubin))
        .and_then(|()| open.sync_all())
        .and_then(|()| fs::rename(&new, file));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}
