//! Flags of guarded comparisons, as Python keeps them beside what depends on them.

use mpc::{Bits, SharedFlag, Tally};
use pyo3::prelude::*;

/// Whether a comparison kept its range, which no party knows until it is opened.
#[pyclass(frozen, module = "tacit._core")]
pub struct Flag {
    inner: SharedFlag,
}

impl Flag {
    /// Of a comparison.
    pub fn new(label: &str, tally: Tally) -> Self {
        Self {
            inner: mpc::Flag::new(label, tally),
        }
    }

    /// Of a bit that is shared.
    pub fn of_bit(label: &str, bit: Bits) -> Self {
        Self {
            inner: mpc::Flag::of_bit(label, bit),
        }
    }
}

impl Flag {
    /// As the protocol has it.
    pub fn of(inner: SharedFlag) -> Self {
        Self { inner }
    }

    /// As the protocol takes it.
    pub fn shared(&self) -> SharedFlag {
        self.inner.clone()
    }
}

#[pymethods]
impl Flag {
    /// Of an operator whose checks are still to come: they must have been settled before it is
    /// looked at.
    #[staticmethod]
    fn promised(label: &str) -> Self {
        Self {
            inner: mpc::Flag::promised(label),
        }
    }

    /// Its checks have ended without an answer, for that reason.
    fn abandon(&self, cause: &str) {
        self.inner.abandon(cause);
    }

    /// Where in the program it stands.
    #[getter]
    fn label(&self) -> &str {
        self.inner.label()
    }

    /// Whether all parties know that it holds.
    #[getter]
    fn is_over(&self) -> bool {
        self.inner.known() == Some(true)
    }
}

/// Python's flags as the protocol takes them.
pub fn shared(flags: &[PyRef<Flag>]) -> Vec<SharedFlag> {
    flags.iter().map(|flag| flag.shared()).collect()
}
