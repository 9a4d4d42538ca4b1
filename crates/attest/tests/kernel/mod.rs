//! A folder that answers requests for reports as the kernel does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A simulated kernel.
pub struct Kernel {
    pub folder: PathBuf,
    over: AtomicBool,
}

impl Kernel {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tacit-tsm-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self {
            folder,
            over: AtomicBool::new(false),
        }
    }

    /// Answers requests until it is over: first the driver's name, then a report on the data, and
    /// certificates if there are any.
    pub fn serve(&self, provider: &str, answer: impl Fn(&[u8; 64]) -> (Vec<u8>, Vec<u8>)) {
        while !self.over.load(Ordering::Relaxed) {
            for entry in fs::read_dir(&self.folder).unwrap().flatten() {
                let request = entry.path();
                if !request.join("provider").exists() {
                    place(&request, "generation", b"1\n");
                    place(&request, "provider", format!("{provider}\n").as_bytes());
                }
                let data = fs::read(request.join("inblob")).unwrap_or_default();
                if let Ok(data) = <&[u8; 64]>::try_from(&data[..]) {
                    let (report, certificates) = answer(data);
                    if !certificates.is_empty() {
                        place(&request, "auxblob", &certificates);
                    }
                    place(&request, "outblob", &report);
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends [`Kernel::serve`].
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Writes a file that appears whole.
fn place(request: &Path, name: &str, content: &[u8]) {
    let beside = request.join(format!("{name}.new"));
    if fs::write(&beside, content).is_ok() {
        drop(fs::rename(&beside, request.join(name)));
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}
