//! Where a card and its libraries are, and what it is.

use std::path::PathBuf;

/// Where a card and its libraries are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// The driver's library.
    pub driver: PathBuf,
    /// Folders with NVRTC and cublasLt, such as those of PyTorch's wheels. The first one that has a
    /// library is used.
    pub libraries: Vec<PathBuf>,
    /// The folder for compiled kernels. It is created if it is not there.
    pub cache: PathBuf,
    /// The number of the card, from 0.
    pub card: u32,
    /// Products of words below which the processor computes, if it is not the usual number.
    pub crossover: Option<usize>,
}

impl Places {
    /// Returns the places of the first card, with the driver where the system looks for it.
    #[must_use]
    pub fn new(libraries: Vec<PathBuf>, cache: PathBuf) -> Self {
        Self {
            driver: "libcuda.so.1".into(),
            libraries,
            cache,
            card: 0,
            crossover: None,
        }
    }
}

/// What a card is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Description {
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub capability: [u32; 2],
    /// CUDA's version, as the driver reports it: 1000·major + 10·minor.
    pub driver: u32,
    /// NVRTC's version.
    pub compiler: [u32; 2],
}
