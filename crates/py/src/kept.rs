//! What operations keep for their checks, which Python passes on to the checks.

use crate::buffer::Words;
use crate::local::expect_length;
use mpc::Protocol;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// Residues of a tensor: of one that is multiplied repeatedly, kept once it has been lifted, or of
/// the result of a truncation.
#[pyclass(frozen, module = "tacit._core")]
#[derive(Default)]
pub struct Residues(pub Arc<mpc::checks::Residues>);

#[pymethods]
impl Residues {
    /// Makes an empty place for the residues of a tensor.
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

/// What an operation keeps for its check. It is empty until the operation has run, and after a
/// rehearsal, which computes nothing.
#[pyclass(frozen, module = "tacit._core")]
#[derive(Default)]
pub struct Kept(OnceLock<(mpc::Kept, Arc<mpc::checks::Residues>)>);

impl Kept {
    /// Runs an operation, and takes what it keeps.
    pub fn during<T>(
        &self,
        protocol: &mut dyn Protocol,
        work: impl FnOnce(&mut dyn Protocol) -> mpc::Result<T>,
    ) -> mpc::Result<T> {
        if let Some(checking) = protocol.checking() {
            checking.keep();
        }
        let done = work(protocol)?;
        if let Some(mut kept) = protocol.checking().and_then(|checking| checking.kept()) {
            let residues = mpc::checks::Residues::of(std::mem::take(&mut kept.residues));
            // An object that is passed to a second operation keeps what it has.
            let _ = self.0.set((kept, Arc::new(residues)));
        }
        Ok(done)
    }

    /// Returns what was kept, without the residues of the truncated value.
    pub fn get(&self) -> Option<&mpc::Kept> {
        self.0.get().map(|(kept, _)| kept)
    }
}

#[pymethods]
impl Kept {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Returns the residues of the truncated value, if the protocol gives them.
    #[getter]
    fn residues(&self) -> Option<Residues> {
        let (_, residues) = self.0.get()?;
        (!residues.is_empty()).then(|| Residues(Arc::clone(residues)))
    }

    /// Whether the operation continued with the truncated value and returned another one.
    #[getter]
    fn has_truncated(&self) -> bool {
        self.get().is_some_and(|kept| !kept.truncated.is_empty())
    }

    /// Writes the components of the truncated value.
    fn truncated(&self, mut out: Vec<Words>) -> PyResult<()> {
        let truncated = self.get().map_or(&[][..], |kept| &kept.truncated);
        for (component, out) in truncated.iter().zip(Words::outputs(&mut out, &[])?) {
            expect_length("the truncated value", out.len(), component.len())?;
            out.copy_from_slice(component);
        }
        Ok(())
    }
}
