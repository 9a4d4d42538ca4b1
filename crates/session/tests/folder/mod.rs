//! A folder with the configuration of a session, and with the certificates of its members.

use net::certificates::Generated;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::free_address;

/// A folder with the configuration of a session; removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(head: &str, parties: usize, dealer: bool) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tacit-session-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        let members = parties + usize::from(dealer);
        let mut text = format!("{head}\ntimeout = 60\n");
        for member in 0..members {
            folder.replace(member, &net::certificates::generate(member, 1).unwrap());
            let table = if member == parties {
                "[dealer]"
            } else {
                "[[party]]"
            };
            let address = free_address();
            text += &format!("{table}\naddress = \"{address}\"\ncertificate = \"{member}.pem\"\n");
            if member < parties {
                text += &format!("correlations = \"{member}.correlations\"\n");
            }
        }
        fs::write(folder.config(), text).unwrap();
        folder
    }

    pub fn config(&self) -> PathBuf {
        self.0.join("parties.toml")
    }

    /// Gives a member this certificate and its key.
    pub fn replace(&self, member: usize, made: &Generated) {
        for (ending, pem) in [("pem", &made.certificate_pem), ("key", &made.key_pem)] {
            private(&self.0.join(format!("{member}.{ending}")), pem);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system removes what cannot be removed here.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Writes a file that only its owner may read.
fn private(path: &std::path::Path, text: &str) {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}
