//! The devices that parties may choose by name: what they evaluate products on.

use cuda::Places;
use kernels::bilinear::Bilinear;
use kernels::device::{Cpu, Device, DeviceError};
use mpc::{Error, Result};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pub use cuda::{Rate, Report};

/// A device of the table.
pub struct DeviceProvider {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Whom a party must trust that computes on it, for the threat model; empty for nobody else.
    trust: &'static str,
    open: fn() -> std::result::Result<Arc<dyn Device>, DeviceError>,
}

/// All devices. The first is the default.
pub static DEVICES: [DeviceProvider; 3] = [
    DeviceProvider {
        name: "cpu",
        summary: "this machine's processor",
        trust: "",
        open: || Ok(Arc::new(Cpu::default())),
    },
    DeviceProvider {
        name: "cuda",
        summary: "an NVIDIA card",
        trust: "products on a card: its driver, its host and whoever shares it are trusted",
        open: || Ok(Arc::from(cuda::open(&places())?)),
    },
    DeviceProvider {
        name: "simulated",
        summary: "a stand-in for a card, slow, for tests and trials",
        trust: "",
        open: || Ok(Arc::from(cuda::simulated())),
    },
];

/// Folders in which the libraries of a card are looked for.
static LIBRARIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Sets the folders in which the libraries of a card are looked for, such as those of PyTorch's
/// wheels. The first one that has a library is used.
pub fn look_in(folders: Vec<PathBuf>) {
    *LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner) = folders;
}

/// Returns where the card's libraries are, and where what was compiled for it is kept.
pub fn places() -> Places {
    let libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = cache(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"));
    Places::new(libraries.clone(), cache.join("tacit-kernels"))
}

/// Returns the user's folder for what can be made again. By the XDG specification, a path that is
/// not absolute is ignored.
fn cache(of_caches: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let path = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let of_user = || home.and_then(path).map(|home| home.join(".cache"));
    let found = of_caches.and_then(path).or_else(of_user);
    found.unwrap_or_else(env::temp_dir)
}

/// Measures how fast a device, by name, evaluates a map.
///
/// # Errors
/// `Misuse` for an unknown name; `Setup` if this machine has no such device; `Device` if it cannot
/// compute the map.
pub fn rate(name: &str, map: &Bilinear) -> Result<Rate> {
    Ok(cuda::rate(&*open(name)?, map)?)
}

/// Opens the card, compares its products with this processor's, and measures it.
///
/// # Errors
/// `Setup` if this machine has no card that can be used: what is missing, and the remedy.
pub fn probe() -> Result<Report> {
    Ok(cuda::probe(&places())?)
}

/// The devices of a session's parties: one that all choose, or one for each party.
#[derive(Clone)]
pub struct Devices(Vec<&'static DeviceProvider>);

impl Default for Devices {
    fn default() -> Self {
        Self(vec![&DEVICES[0]])
    }
}

impl Devices {
    /// Finds devices by name: one for all parties, or one for each.
    ///
    /// # Errors
    /// `Misuse` for an unknown name, or no name.
    pub fn named(names: &[String]) -> Result<Self> {
        let found: Result<Vec<_>> = names.iter().map(|name| provider(name)).collect();
        let found = found?;
        if found.is_empty() {
            return Err(Error::misuse("a list of devices names at least one"));
        }
        Ok(Self(found))
    }

    /// Checks that there is a device for each of `parties`, and perhaps one for a dealer.
    ///
    /// # Errors
    /// `Misuse` for another number of names.
    pub fn check(&self, parties: usize, has_dealer: bool) -> Result<()> {
        match self.0.len() {
            1 => Ok(()),
            n if n == parties || has_dealer && n == parties + 1 => Ok(()),
            n => Err(Error::misuse(format!(
                "{n} devices for {parties} parties: name one for all parties, or one for each"
            ))),
        }
    }

    /// Opens the device of a dealer: the one that all members choose, or the one after those of the
    /// parties; this processor if none is named.
    ///
    /// # Errors
    /// `Setup` if this machine has no such device.
    pub fn open_for_dealer(&self, parties: usize) -> Result<Arc<dyn Device>> {
        match &self.0[..] {
            each if each.len() > 1 && each.len() <= parties => Ok(Arc::new(Cpu::default())),
            _ => self.open(parties),
        }
    }

    /// Opens the device of a party.
    ///
    /// # Errors
    /// `Setup` if this machine has no such device. `Misuse` for a party without one.
    pub fn open(&self, party: usize) -> Result<Arc<dyn Device>> {
        let chosen = match &self.0[..] {
            [all] => Some(all),
            each => each.get(party),
        };
        let none = || Error::misuse(format!("party {party} has no device in the list"));
        Ok((chosen.ok_or_else(none)?.open)()?)
    }
}

/// Opens a device by name.
///
/// # Errors
/// `Misuse` for an unknown name; `Setup` if this machine has no such device.
pub fn open(name: &str) -> Result<Arc<dyn Device>> {
    Ok((provider(name)?.open)()?)
}

/// Returns whom a party must trust that computes on a device of this kind, for the threat model;
/// empty for nobody else.
pub(crate) fn trust(kind: &str) -> &'static str {
    let found = DEVICES.iter().find(|known| known.name == kind);
    found.map_or("", |known| known.trust)
}

fn provider(name: &str) -> Result<&'static DeviceProvider> {
    let found = DEVICES.iter().find(|known| known.name == name);
    found.ok_or_else(|| {
        let known: Vec<String> = DEVICES
            .iter()
            .map(|known| format!("{:?}", known.name))
            .collect();
        Error::misuse(format!(
            "unknown device {name:?}; known are {}",
            known.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{Devices, cache, open, trust};
    use mpc::Error;
    use std::env;
    use std::path::PathBuf;

    fn named(names: &[&str]) -> mpc::Result<Devices> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Devices::named(&names)
    }

    #[test]
    fn one_name_serves_all_parties() {
        let one = named(&["cpu"]).unwrap();
        one.check(5, false).unwrap();
        assert_eq!(one.open(4).unwrap().kind(), "cpu");
    }

    #[test]
    fn a_list_names_a_device_for_each_party() {
        let three = named(&["cpu"; 3]).unwrap();
        three.check(3, false).unwrap();
        let text = three.check(2, false).unwrap_err().to_string();
        assert!(text.contains("3 devices for 2 parties"), "{text}");
        assert!(three.open(2).is_ok() && three.open(3).is_err());
    }

    /// A dealer has the device that all members choose, or one of its own.
    #[test]
    fn dealers_have_devices() {
        let kind = |names: &[&str]| named(names).unwrap().open_for_dealer(2).unwrap().kind();
        assert_eq!(kind(&["simulated"]), "simulated");
        assert_eq!(kind(&["cpu", "cpu", "simulated"]), "simulated");
        assert_eq!(kind(&["simulated", "simulated"]), "cpu");
        let three = named(&["cpu"; 3]).unwrap();
        three.check(2, true).unwrap();
        assert!(three.check(1, true).is_err());
    }

    #[test]
    fn a_cache_is_at_an_absolute_path() {
        let found = |caches: Option<&str>, home: Option<&str>| {
            cache(caches.map(Into::into), home.map(Into::into))
        };
        assert_eq!(found(Some("/c"), Some("/h")), PathBuf::from("/c"));
        for caches in [None, Some(""), Some("c"), Some("./c")] {
            assert_eq!(found(caches, Some("/h")), PathBuf::from("/h/.cache"));
            assert_eq!(found(caches, Some("h")), env::temp_dir());
            assert_eq!(found(caches, None), env::temp_dir());
        }
    }

    #[test]
    fn a_card_is_trusted_with_shares_and_nothing_else_is() {
        assert!(trust("cuda").contains("driver, its host and whoever shares it"));
        assert_eq!([trust("cpu"), trust("simulated")], ["", ""]);
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let Err(Error::Misuse { reason }) = open("gpu") else {
            panic!("there is no such device");
        };
        assert!(
            reason.starts_with("unknown device \"gpu\"; known are \"cpu\""),
            "{reason}"
        );
        assert!(named(&["cpu", "gpu"]).is_err() && named(&[]).is_err());
    }
}
