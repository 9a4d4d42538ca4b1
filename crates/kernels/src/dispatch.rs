//! Selection of kernels: by the processor's features, found once, or forced by `TACIT_KERNELS`.
//!
//! Inner kernels take a [`Backend`] as an argument, so that tests can compare all of them in one
//! process.

use std::fmt;
use std::sync::OnceLock;

/// The environment variable that forces a backend: `portable`, `avx2` or `avx512`.
pub const VARIABLE: &str = "TACIT_KERNELS";

/// A family of kernels for one instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Backend {
    /// Portable Rust, for every processor.
    Portable,
    /// x86-64 with AVX2 and AES instructions.
    Avx2,
    /// x86-64 with AVX2 and AES instructions and AVX-512 F, DQ, BW and VL. Vector AES, tiles of
    /// bytes (AMX) and multiply-adds of 52 bits (IFMA) are used if the processor has them.
    Avx512,
}

/// The error for a value of `TACIT_KERNELS` that this build or processor does not support.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KernelError {
    /// The value is not the name of a backend.
    #[error(
        "TACIT_KERNELS is {0:?}: set it to portable, avx2 or avx512, or unset it to choose by the processor"
    )]
    Unknown(String),
    /// The named backend is not available on this machine.
    #[error(
        "TACIT_KERNELS is {0}, which this processor (or a build by rustc before 1.89, for avx512) \
         lacks: the best here is {1}"
    )]
    Unavailable(Backend, Backend),
}

impl Backend {
    /// All backends, from the slowest to the fastest.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Returns the name of the backend in `TACIT_KERNELS`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Returns whether this build and this processor support the backend.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Avx2 => has_avx2(),
            Self::Avx512 => has_avx512(),
        }
    }

    /// Returns `self` if the machine supports it. The soundness of every kernel relies on this
    /// check.
    ///
    /// # Panics
    /// If the machine does not support it.
    pub(crate) fn checked(self) -> Self {
        assert!(self.is_available(), "this machine has no {self} kernels");
        self
    }

    /// Calls `work`, compiled for this backend's instructions. This applies to everything inlined
    /// into it, and to `work` itself if it is a closure with `#[inline(always)]`.
    ///
    /// # Panics
    /// If the machine does not support the backend.
    pub fn call<R>(self, work: impl FnOnce() -> R) -> R {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn avx2<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        #[cfg(avx512)]
        #[target_feature(enable = "avx2,avx512f,avx512dq,avx512bw,avx512vl")]
        #[allow(
            clippy::incompatible_msrv,
            reason = "the build script checked the compiler"
        )]
        unsafe fn avx512<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        match self.checked() {
            // SAFETY: the machine supports the backend.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2(work) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Self::Avx512 => unsafe { avx512(work) },
            _ => work(),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the backend of this process.
///
/// # Panics
/// With the text of [`KernelError`] if `TACIT_KERNELS` requests an unavailable backend. Use
/// [`try_backend`] to get the error instead.
#[must_use]
pub fn backend() -> Backend {
    match try_backend() {
        Ok(backend) => backend,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the backend of this process, which the first call determines.
///
/// # Errors
/// If `TACIT_KERNELS` requests an unavailable backend.
pub fn try_backend() -> Result<Backend, KernelError> {
    static CHOICE: OnceLock<Result<Backend, KernelError>> = OnceLock::new();
    CHOICE
        .get_or_init(|| {
            choose(std::env::var_os(VARIABLE).map(|value| value.to_string_lossy().into_owned()))
        })
        .clone()
}

fn choose(wish: Option<String>) -> Result<Backend, KernelError> {
    let best = Backend::ALL
        .into_iter()
        .rev()
        .find(|backend| backend.is_available())
        .unwrap_or(Backend::Portable);
    let Some(wish) = wish.filter(|wish| !wish.is_empty()) else {
        return Ok(best);
    };
    match Backend::ALL
        .into_iter()
        .find(|backend| backend.name() == wish)
    {
        None => Err(KernelError::Unknown(wish)),
        Some(backend) if backend.is_available() => Ok(backend),
        Some(backend) => Err(KernelError::Unavailable(backend, best)),
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("aes")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(avx512)]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(not(avx512))]
fn has_avx512() -> bool {
    false
}

/// Lists the backends that this machine supports, for tests that compare them. The portable one is
/// always included.
#[cfg(test)]
pub(crate) fn backends() -> impl Iterator<Item = Backend> {
    Backend::ALL
        .into_iter()
        .filter(|backend| backend.is_available())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without this check, comparisons of kernels could pass without comparing anything. The
    /// operating system reports the processor's features here, not the detection under test.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn tests_run_every_backend_that_the_processor_has() {
        let text = std::fs::read_to_string("/proc/cpuinfo").expect("/proc/cpuinfo is readable");
        let flags = text.lines().find_map(|line| line.strip_prefix("flags"));
        let flags: Vec<&str> = flags
            .expect("/proc/cpuinfo lists flags")
            .split_whitespace()
            .collect();
        let has = |needed: &[&str]| needed.iter().all(|flag| flags.contains(flag));
        let mut expected = vec![Backend::Portable];
        if has(&["avx2", "aes"]) {
            expected.push(Backend::Avx2);
            if cfg!(avx512) && has(&["avx512f", "avx512dq", "avx512bw", "avx512vl"]) {
                expected.push(Backend::Avx512);
            }
        }
        let ran: Vec<Backend> = backends().collect();
        println!("kernels that tests compare on this machine: {ran:?}");
        assert_eq!(
            ran, expected,
            "the compared kernels are not those that this processor supports"
        );
    }

    #[test]
    fn every_backend_calls_to_the_same_words() {
        let (x, y): (Vec<u64>, Vec<u64>) = (0..1003_u64)
            .map(|i| {
                let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (x, x.rotate_left(29) ^ i)
            })
            .unzip();
        let expected: Vec<u64> = (0..x.len())
            .map(|i| (u128::from(x[i]) * u128::from(y[i])) as u64 ^ x[i] >> 16)
            .collect();
        for backend in backends() {
            let mut out = vec![0; x.len()];
            let worked = backend.call(
                #[inline(always)]
                || {
                    for ((out, x), y) in out.iter_mut().zip(&x).zip(&y) {
                        *out = x.wrapping_mul(*y) ^ x >> 16;
                    }
                    out.len()
                },
            );
            assert_eq!(worked, x.len());
            assert_eq!(out, expected, "{backend}");
        }
    }

    #[test]
    fn the_best_is_chosen_unless_forced() {
        let best = choose(None).unwrap();
        assert!(
            Backend::ALL
                .iter()
                .all(|other| !other.is_available() || *other <= best)
        );
        assert_eq!(choose(Some(String::new())), Ok(best));
        for backend in Backend::ALL {
            let chosen = choose(Some(backend.name().into()));
            if backend.is_available() {
                assert_eq!(chosen, Ok(backend));
            } else {
                assert_eq!(chosen, Err(KernelError::Unavailable(backend, best)));
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_remedy() {
        let error = choose(Some("sse9".into())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "TACIT_KERNELS is \"sse9\": set it to portable, avx2 or avx512, or unset it to choose by the processor"
        );
    }

    #[test]
    fn a_missing_backend_is_named_with_the_best() {
        let text = KernelError::Unavailable(Backend::Avx512, Backend::Avx2).to_string();
        assert!(
            text.contains("avx512") && text.ends_with("the best here is avx2"),
            "{text}"
        );
    }
}
