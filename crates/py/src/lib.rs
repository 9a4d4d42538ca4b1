//! `tacit._core`: sessions, buffers and exceptions for Python. It contains no logic: every function
//! converts its arguments, releases the interpreter and calls the layer below.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `session`, `beginning`, `operations` | class `Session`: properties, beginning, operations |
//! | `operands`, `buffer` | Python's arrays as operands of the protocol |
//! | `local` | local products by public operands |
//! | `preprocessing`, `certificates`, `doctor` | files of correlations, keys, examinations |
//! | `intake` | the clients' intake: its two ends, and submissions |
//! | `requests` | requests of a service's clients: its two ends |
//! | `riscv` | compiled programs |
//! | `digest` | hashes of files |
//! | `errors` | exceptions by blame |

mod attestation;
mod beginning;
mod benchmark_programs;
mod buffer;
mod certificates;
mod checks;
mod digest;
mod doctor;
mod errors;
mod flags;
mod intake;
mod kept;
mod local;
mod operands;
mod operations;
mod preprocessing;
mod requests;
mod riscv;
mod session;

use kernels::large_pages::LargePages;
use pyo3::prelude::*;

#[global_allocator]
static MEMORY: LargePages = LargePages;

/// Native part of tacit.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::in_main_thread();
    net::interruption::ask_by(errors::is_interrupted);
    errors::register(module)?;
    module.add_function(wrap_pyfunction!(errors::cause, module)?)?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::Expectation>()?;
    module.add_class::<kept::Residues>()?;
    module.add_class::<kept::Kept>()?;
    module.add_class::<flags::Flag>()?;
    module.add_class::<beginning::Listener>()?;
    module.add_class::<local::Convolution>()?;
    module.add_class::<riscv::Program>()?;
    module.add_class::<riscv::Given>()?;
    module.add_function(wrap_pyfunction!(riscv::riscv_runtime, module)?)?;
    module.add_function(wrap_pyfunction!(riscv::riscv_digest, module)?)?;
    module.add_function(wrap_pyfunction!(riscv::riscv_measured, module)?)?;
    module.add_class::<intake::Intake>()?;
    module.add_class::<intake::Submissions>()?;
    module.add_class::<intake::Client>()?;
    module.add_class::<intake::Task>()?;
    module.add_class::<intake::Content>()?;
    module.add_class::<requests::Requests>()?;
    module.add_class::<requests::ServiceClient>()?;
    module.add_class::<requests::Request>()?;
    module.add_class::<requests::Sealed>()?;
    module.add_function(wrap_pyfunction!(intake::measured, module)?)?;
    module.add_function(wrap_pyfunction!(intake::unseal, module)?)?;
    module.add_function(wrap_pyfunction!(session::threat_model, module)?)?;
    module.add_function(wrap_pyfunction!(session::protocols, module)?)?;
    module.add_function(wrap_pyfunction!(session::sources, module)?)?;
    module.add_function(wrap_pyfunction!(session::devices, module)?)?;
    module.add_function(wrap_pyfunction!(session::look_for_libraries_in, module)?)?;
    module.add_function(wrap_pyfunction!(session::probe_card, module)?)?;
    module.add_function(wrap_pyfunction!(local::rate_of_product, module)?)?;
    module.add_function(wrap_pyfunction!(beginning::refuse, module)?)?;
    module.add_function(wrap_pyfunction!(doctor::examine, module)?)?;
    module.add_function(wrap_pyfunction!(beginning::deal_connected, module)?)?;
    module.add_function(wrap_pyfunction!(beginning::deal_local, module)?)?;
    module.add_function(wrap_pyfunction!(preprocessing::make_correlations, module)?)?;
    module.add_function(wrap_pyfunction!(
        certificates::generate_certificate,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(certificates::write_certificates, module)?)?;
    module.add_function(wrap_pyfunction!(certificates::write_authority, module)?)?;
    module.add_function(wrap_pyfunction!(certificates::write_request, module)?)?;
    module.add_function(wrap_pyfunction!(certificates::admit, module)?)?;
    module.add_function(wrap_pyfunction!(certificates::revoke, module)?)?;
    module.add_function(wrap_pyfunction!(certificates::check_admission, module)?)?;
    module.add_function(wrap_pyfunction!(certificates::read_private_key, module)?)?;
    module.add_function(wrap_pyfunction!(certificates::check_certificate, module)?)?;
    module.add_function(wrap_pyfunction!(local::ring_matmul, module)?)?;
    module.add_function(wrap_pyfunction!(local::ring_convolution, module)?)?;
    module.add("PROJECTIONS", kernels::projection::PROJECTIONS)?;
    module.add_function(wrap_pyfunction!(local::ring_projections, module)?)?;
    module.add_function(wrap_pyfunction!(local::greatest_magnitude, module)?)?;
    module.add_function(wrap_pyfunction!(local::backend, module)?)?;
    module.add_function(wrap_pyfunction!(digest::blake3, module)?)?;
    module.add_class::<attestation::Attestation>()?;
    module.add_function(wrap_pyfunction!(attestation::program_digest, module)?)?;
    module.add_function(wrap_pyfunction!(attestation::federation_digest, module)?)?;
    module.add_function(wrap_pyfunction!(attestation::service_digest, module)?)?;
    module.add_function(wrap_pyfunction!(
        attestation::simulated_measurement,
        module
    )?)?;
    module.add_function(wrap_pyfunction!(attestation::attestation_model, module)?)?;
    module.add_function(wrap_pyfunction!(attestation::make_evidence, module)?)?;
    module.add_function(wrap_pyfunction!(attestation::judge_evidence, module)?)?;
    Ok(())
}
