//! The typed errors of the layers below, as Python exceptions by blame.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    tacit._core,
    TacitError,
    PyException,
    "What tacit raises; its subclasses say who is to blame."
);
create_exception!(
    tacit._core,
    PeerError,
    TacitError,
    "Another party failed, stalled or deviated."
);
create_exception!(
    tacit._core,
    DesyncError,
    PeerError,
    "Two parties run different programs, shapes, parameters or public values."
);
create_exception!(
    tacit._core,
    NetworkError,
    TacitError,
    "The links between the parties failed."
);
create_exception!(
    tacit._core,
    SetupError,
    TacitError,
    "Configuration, addresses or certificates are wrong."
);
create_exception!(
    tacit._core,
    MisuseError,
    TacitError,
    "This party's own program asked for what cannot be."
);

/// The exception for an error of the layers below.
pub fn raise(error: mpc::Error) -> PyErr {
    let message = error.to_string();
    match error {
        mpc::Error::Peer { .. } => PeerError::new_err(message),
        mpc::Error::Desync { .. } | mpc::Error::Differ { .. } => DesyncError::new_err(message),
        mpc::Error::Network { .. } => NetworkError::new_err(message),
        mpc::Error::Setup { .. } => SetupError::new_err(message),
        mpc::Error::Misuse { .. } => MisuseError::new_err(message),
    }
}

/// A misuse that is found here, at the border.
pub fn misuse(message: impl Into<String>) -> PyErr {
    MisuseError::new_err(message.into())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TacitError", py.get_type::<TacitError>())?;
    module.add("PeerError", py.get_type::<PeerError>())?;
    module.add("DesyncError", py.get_type::<DesyncError>())?;
    module.add("NetworkError", py.get_type::<NetworkError>())?;
    module.add("SetupError", py.get_type::<SetupError>())?;
    module.add("MisuseError", py.get_type::<MisuseError>())
}
