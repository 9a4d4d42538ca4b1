//! Why a card cannot be opened, or cannot compute. No message contains a value.

use kernels::device::DeviceError;
use std::path::PathBuf;

/// The result of what a card is asked for.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The oldest driver that runs what the libraries of a major version compile, for the remedy.
const DRIVERS: &str = "https://docs.nvidia.com/deploy/cuda-compatibility";

/// Why a card cannot be opened, or cannot compute.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// NVIDIA's libraries are used on Linux alone.
    #[error("device cuda needs Linux, and this is {0}")]
    NotLinux(&'static str),
    /// The driver's library cannot be loaded.
    #[error("no NVIDIA driver: {0}")]
    NoDriver(String),
    /// The driver works, but no card is there.
    #[error("the NVIDIA driver finds no card")]
    NoCard,
    /// There are fewer cards than the chosen number.
    #[error("there is no card {asked}: the driver finds {found}")]
    NoSuchCard {
        /// The number that was asked for.
        asked: u32,
        /// The number of cards.
        found: u32,
    },
    /// The driver is older than the libraries.
    #[error(
        "the NVIDIA driver supports CUDA {}.{}, and {library} needs CUDA {needed}.0",
        driver / 1000,
        driver % 1000 / 10
    )]
    OldDriver {
        /// CUDA's version, as the driver reports it: 1000·major + 10·minor.
        driver: u32,
        /// The library that needs a newer one.
        library: String,
        /// Its major version.
        needed: u32,
    },
    /// A library is in none of the folders.
    #[error("{library} was not found in {}", searched(folders))]
    NoLibrary {
        /// The library, as files are named.
        library: &'static str,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// A library is there, but cannot be loaded.
    #[error("{} cannot be loaded: {cause}", path.display())]
    Unloadable {
        /// The library.
        path: PathBuf,
        /// What the system says.
        cause: String,
    },
    /// A library lacks a function.
    #[error("{} has no {symbol}", path.display())]
    NoSymbol {
        /// The library.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// The card is too old.
    #[error("{card} has compute capability {major}.{minor}, and 8.0 is needed")]
    Capability {
        /// The card's name.
        card: String,
        /// Its capability.
        major: u32,
        /// Its capability, the second number.
        minor: u32,
    },
    /// A card was used by the process that this one was forked from.
    #[error("this process was forked from one that uses a card, which does not survive a fork")]
    AfterFork,
    /// The folder for compiled kernels cannot be used.
    #[error("compiled kernels cannot be kept in {}: {cause}", folder.display())]
    Cache {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// NVRTC does not compile the kernels.
    #[error("NVRTC {version} does not compile tacit's kernels for {architecture}: {log}")]
    Compilation {
        /// NVRTC's version.
        version: String,
        /// The architecture.
        architecture: String,
        /// What NVRTC says.
        log: String,
    },
    /// The card computes something wrong.
    #[error("the card's self-test failed: {product} differs from the processor's")]
    Wrong {
        /// What differs, with its sizes.
        product: String,
    },
    /// The card's memory does not suffice.
    #[error("{needed} bytes of the card's memory are needed, and {free} are free")]
    Memory {
        /// The bytes that were asked for.
        needed: u64,
        /// The bytes that are free.
        free: u64,
    },
    /// Memory does not suffice for what a call needs, on the card or of this machine.
    #[error("{call}: too little memory, on the card or on this machine")]
    Exhausted {
        /// The function.
        call: &'static str,
    },
    /// A call failed, and the card with it.
    #[error("{call}: {cause}")]
    Failed {
        /// The function.
        call: &'static str,
        /// What the library says.
        cause: String,
    },
}

impl Error {
    /// Returns what to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotLinux(_) => "choose device \"cpu\" on this machine".into(),
            Self::NoDriver(_) => "install NVIDIA's driver and load its module (nvidia-smi shows \
                 whether it works), or choose device \"cpu\""
                .into(),
            Self::NoCard | Self::NoSuchCard { .. } => {
                "see which cards nvidia-smi lists, unset CUDA_VISIBLE_DEVICES if it hides them, \
                 or choose device \"cpu\""
                    .into()
            }
            Self::OldDriver { needed, .. } => format!(
                "install a newer driver ({DRIVERS}), or a PyTorch that was built for an older \
                 CUDA than {needed}"
            ),
            Self::NoLibrary { .. } | Self::Unloadable { .. } | Self::NoSymbol { .. } => {
                "install PyTorch's build for CUDA, which brings NVRTC and cublasLt: pip install \
                 --force-reinstall torch"
                    .into()
            }
            Self::Capability { .. } => {
                "use a card of the Ampere generation or later, or choose device \"cpu\"".into()
            }
            Self::AfterFork => "open the session in the process that uses it, and start processes \
                 by multiprocessing's \"spawn\""
                .into(),
            Self::Cache { folder, .. } => format!(
                "remove {} or make it a folder of your own that nobody else may enter: chmod 700",
                folder.display()
            ),
            Self::Compilation { .. } => {
                "install the PyTorch that tacit was tested with, which brings another NVRTC".into()
            }
            Self::Wrong { .. } => {
                "update the card's driver and PyTorch, see whether tacit device passes, and choose \
                 device \"cpu\" until it does"
                    .into()
            }
            Self::Memory { .. } | Self::Exhausted { .. } => {
                "use smaller batches, or free memory that other programs take \
                 on the card (nvidia-smi lists them)"
                    .into()
            }
            Self::Failed { .. } => {
                "start the session again; if it fails again, look for Xid lines in the kernel's \
                 log (dmesg)"
                    .into()
            }
        }
    }

    /// Returns the error of an operation, such as "matrix product of 2 × 3×4 by 4×5".
    #[must_use]
    pub fn of(self, operation: &str) -> DeviceError {
        match self {
            Self::Memory { needed, free } => DeviceError::Memory {
                operation: operation.into(),
                needed,
                free,
            },
            Self::Exhausted { call } => DeviceError::Exhausted {
                operation: operation.into(),
                call,
            },
            Self::Failed { call, cause } => DeviceError::Failed {
                operation: operation.into(),
                cause: format!("{call}: {cause}"),
            },
            other => other.into(),
        }
    }
}

impl From<Error> for DeviceError {
    fn from(error: Error) -> Self {
        Self::Unavailable {
            remedy: error.remedy(),
            what: error.to_string(),
        }
    }
}

fn searched(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return "any folder: none was given".into();
    }
    let all = folders.iter().map(|folder| folder.display().to_string());
    all.collect::<Vec<_>>().join(", ")
}
