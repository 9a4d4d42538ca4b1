//! `tacit._core`: sessions, buffers and exceptions for Python. No logic lives here: every method
//! checks its buffers, releases the interpreter and calls the layer below.

mod buffer;
mod errors;
mod kernels;
mod links;
mod operands;
mod session;

use pyo3::prelude::*;

/// The native part of tacit.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    module.add_class::<session::Session>()?;
    module.add_class::<links::Listener>()?;
    module.add_function(wrap_pyfunction!(links::generate_certificate, module)?)?;
    module.add_function(wrap_pyfunction!(links::write_certificates, module)?)?;
    module.add_function(wrap_pyfunction!(links::deal_connected, module)?)?;
    module.add_function(wrap_pyfunction!(links::deal_local, module)?)?;
    module.add_function(wrap_pyfunction!(links::make_correlations, module)?)?;
    module.add_function(wrap_pyfunction!(session::threat_model, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::ring_matmul, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::ring_convolution, module)?)?;
    module.add_function(wrap_pyfunction!(kernels::kernels, module)?)?;
    Ok(())
}
