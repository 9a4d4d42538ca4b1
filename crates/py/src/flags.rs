//! Flags of guarded comparisons, which Python keeps next to the values that depend on them.

use mpc::{Bits, SharedFlag, Tally};
use pyo3::prelude::*;

/// Whether a comparison kept its range, which is secret until it is opened.
#[pyclass(frozen, module = "tacit._core")]
pub struct Flag {
    inner: SharedFlag,
}

impl Flag {
    /// Makes the flag of a comparison.
    pub fn new(label: &str, tally: Tally) -> Self {
        Self {
            inner: mpc::Flag::new(label, tally),
        }
    }

    /// Makes the flag of a shared bit.
    pub fn of_bit(label: &str, bit: Bits) -> Self {
        Self {
            inner: mpc::Flag::of_bit(label, bit),
        }
    }
}

impl Flag {
    /// Wraps a flag of the protocol.
    pub fn of(inner: SharedFlag) -> Self {
        Self { inner }
    }

    /// Returns the protocol's flag.
    pub fn shared(&self) -> SharedFlag {
        self.inner.clone()
    }
}

#[pymethods]
impl Flag {
    /// Makes the flag of an operator whose checks have not run yet. They must be settled before the
    /// flag is used.
    #[staticmethod]
    fn promised(label: &str) -> Self {
        Self {
            inner: mpc::Flag::promised(label),
        }
    }

    /// Records that its checks ended without a result, for the given reason.
    fn abandon(&self, cause: &str) {
        self.inner.abandon(cause);
    }

    /// Label of the place in the program.
    #[getter]
    fn label(&self) -> &str {
        self.inner.label()
    }

    /// Whether all parties know that the flag holds.
    #[getter]
    fn is_over(&self) -> bool {
        self.inner.known() == Some(true)
    }
}

/// Returns the protocol's flags for Python's flags.
pub fn shared(flags: &[PyRef<Flag>]) -> Vec<SharedFlag> {
    flags.iter().map(|flag| flag.shared()).collect()
}
