//! Python exceptions, by blame, for the typed errors of the layers below.

use ::session::{Voice, Words};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

/// Returns the cause of an operating system error in plain words, by the error's number.
#[pyfunction]
pub fn cause(number: i32) -> String {
    net::cause(&io::Error::from_raw_os_error(number))
}

create_exception!(
    tacit._core,
    TacitError,
    PyException,
    "Base class of tacit's exceptions; its subclasses say who is to blame."
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
    CheatingError,
    PeerError,
    "One of two other parties sent what does not follow from what it held."
);
create_exception!(
    tacit._core,
    RefusedError,
    TacitError,
    "A server refuses a request or a submission of a client."
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
    "This party's own program asked for something impossible."
);
create_exception!(
    tacit._core,
    StoppedError,
    MisuseError,
    "A compiled program stopped early, or cannot begin, for a reason that all parties know."
);

/// Words that errors use for the parties of a session, and advice for a program in Python.
pub static PARTIES: Words = Words {
    sharing: " (tacit.share, tacit.share_module)",
    drawing: " (with tacit.public_random():)",
    ..Words::PARTIES
};

/// Words that errors use if the parties are the servers of a federation.
static SERVERS: Words = Words {
    member: "server",
    members: "servers",
    own: "server",
    ..PARTIES
};

/// Words that errors of a client of the federation use.
static CLIENT: Words = Words {
    own: "client",
    ..SERVERS
};

/// Words that errors of a client of a service use.
static CALLER: Words = Words {
    own: "client",
    ..PARTIES
};

/// Returns the words for the members of a session, parties or a federation's servers, and the
/// function that makes exceptions with these words.
pub fn members(servers: bool) -> (&'static Words, fn(mpc::Error) -> PyErr) {
    if servers {
        (&SERVERS, raise_at_server)
    } else {
        (&PARTIES, raise)
    }
}

/// Makes the exception for an error of the layers below, outside of any session.
pub fn raise(error: mpc::Error) -> PyErr {
    exception(&error, &PARTIES, None)
}

/// Makes the exception for an error at a server of a federation.
pub fn raise_at_server(error: mpc::Error) -> PyErr {
    exception(&error, &SERVERS, None)
}

/// Makes the exception for an error at a client of a federation.
pub fn raise_at_client(error: mpc::Error) -> PyErr {
    exception(&error, &CLIENT, None)
}

/// Makes the exception for an error at a client of a service.
pub fn raise_at_caller(error: mpc::Error) -> PyErr {
    exception(&error, &CALLER, None)
}

/// Makes the exception for an error in a session.
pub fn raise_in(session: &::session::Session, error: mpc::Error) -> PyErr {
    exception(&error, session.words(), Some(session.party()))
}

/// Name of an exception's attribute that holds what other parties may read of it.
/// `tacit.errors.told` explains why.
const MARK: &str = "_told";

fn exception(error: &mpc::Error, words: &Words, party: Option<usize>) -> PyErr {
    let text = error.text(&Voice::own(words));
    let told = party.map_or_else(
        || text.clone(),
        |party| error.text(&Voice::told(words, party)),
    );
    let raised = match error {
        mpc::Error::Interrupted => return interruption(),
        // A misuse may quote values.
        mpc::Error::Misuse { .. } => return MisuseError::new_err(text),
        mpc::Error::Peer { .. } => PeerError::new_err(text),
        mpc::Error::Desync { .. } | mpc::Error::Differ { .. } => DesyncError::new_err(text),
        mpc::Error::Cheating { .. } => CheatingError::new_err(text),
        mpc::Error::Refused { .. } => RefusedError::new_err(text),
        mpc::Error::Network { .. } => NetworkError::new_err(text),
        mpc::Error::Setup { .. } => SetupError::new_err(text),
        mpc::Error::Stopped { .. } => StoppedError::new_err(text),
    };
    // Without the mark the other parties read only its type.
    let blamed: Option<usize> = None;
    Python::attach(|py| drop(raised.value(py).setattr(MARK, (told, blamed))));
    raised
}

/// Exception that a signal's handler raised, kept until the call that it ends returns.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// The only thread in which Python's signal handlers run.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Records that this is Python's main thread, which it is when modules are imported.
pub fn in_main_thread() {
    MAIN.get_or_init(|| thread::current().id());
}

/// Returns whether a signal has come whose handler raises, such as Ctrl-C. Calls that wait without
/// the interpreter ask this. Only the main thread waits for the interpreter here, because the
/// thread that holds the interpreter may be waiting for another one.
pub fn is_interrupted() -> bool {
    if MAIN.get() != Some(&thread::current().id()) {
        return false;
    }
    let signals = Python::try_attach(|py| py.check_signals());
    let Some(Err(raised)) = signals else {
        return false;
    };
    *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
    true
}

fn interruption() -> PyErr {
    let raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Makes the exception for a misuse that this layer detects.
pub fn misuse(message: impl Into<String>) -> PyErr {
    MisuseError::new_err(message.into())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TacitError", py.get_type::<TacitError>())?;
    module.add("PeerError", py.get_type::<PeerError>())?;
    module.add("DesyncError", py.get_type::<DesyncError>())?;
    module.add("CheatingError", py.get_type::<CheatingError>())?;
    module.add("RefusedError", py.get_type::<RefusedError>())?;
    module.add("NetworkError", py.get_type::<NetworkError>())?;
    module.add("SetupError", py.get_type::<SetupError>())?;
    module.add("MisuseError", py.get_type::<MisuseError>())?;
    module.add("StoppedError", py.get_type::<StoppedError>())
}
