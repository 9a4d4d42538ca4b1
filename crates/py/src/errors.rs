//! The typed errors of the layers below, as Python exceptions by blame.

use ::session::{Voice, Words};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

/// Why the operating system did not do what it was asked for, in plain words, by its error's
/// number.
#[pyfunction]
pub fn cause(number: i32) -> String {
    net::cause(&io::Error::from_raw_os_error(number))
}

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
    RefusedError,
    TacitError,
    "A server does not take what a client asks or hands in."
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
create_exception!(
    tacit._core,
    StoppedError,
    MisuseError,
    "A compiled program stopped before its end, or cannot begin, by what all parties know."
);

/// How errors speak of the parties of a session, and what a program in Python does about them.
pub static PARTIES: Words = Words {
    sharing: " (tacit.share, tacit.share_module)",
    drawing: " (with tacit.public_random():)",
    ..Words::PARTIES
};

/// The same where the parties are the servers of a federation.
static SERVERS: Words = Words {
    member: "server",
    members: "servers",
    own: "server",
    ..PARTIES
};

/// The same where a client of theirs says it.
static CLIENT: Words = Words {
    own: "client",
    ..SERVERS
};

/// What speaks of the members of a session: parties, or a federation's servers.
pub fn members(servers: bool) -> (&'static Words, fn(mpc::Error) -> PyErr) {
    if servers {
        (&SERVERS, raise_at_server)
    } else {
        (&PARTIES, raise)
    }
}

/// The exception for an error of the layers below, outside of any session.
pub fn raise(error: mpc::Error) -> PyErr {
    exception(&error, &PARTIES, None)
}

/// The same at a server of a federation.
pub fn raise_at_server(error: mpc::Error) -> PyErr {
    exception(&error, &SERVERS, None)
}

/// The same at a client of a federation.
pub fn raise_at_client(error: mpc::Error) -> PyErr {
    exception(&error, &CLIENT, None)
}

/// The same in a session.
pub fn raise_in(session: &::session::Session, error: mpc::Error) -> PyErr {
    exception(&error, session.words(), Some(session.party()))
}

/// The attribute of an exception that holds what other parties may read of it: `tacit.errors.told`
/// says why.
const MARK: &str = "_told";

fn exception(error: &mpc::Error, words: &Words, party: Option<usize>) -> PyErr {
    let text = error.text(&Voice::own(words));
    let told = party.map_or_else(
        || text.clone(),
        |party| error.text(&Voice::told(words, party)),
    );
    let raised = match error {
        mpc::Error::Interrupted => return interruption(),
        // It may quote values.
        mpc::Error::Misuse { .. } => return MisuseError::new_err(text),
        mpc::Error::Peer { .. } => PeerError::new_err(text),
        mpc::Error::Desync { .. } | mpc::Error::Differ { .. } => DesyncError::new_err(text),
        mpc::Error::Refused { .. } => RefusedError::new_err(text),
        mpc::Error::Network { .. } => NetworkError::new_err(text),
        mpc::Error::Setup { .. } => SetupError::new_err(text),
        mpc::Error::Stopped { .. } => StoppedError::new_err(text),
    };
    // Without the mark the others read its type alone.
    let blamed: Option<usize> = None;
    Python::attach(|py| drop(raised.value(py).setattr(MARK, (told, blamed))));
    raised
}

/// What a signal's handler raised, until the call that it ends comes back.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// The one thread in which Python's handlers of signals run.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Says that this is Python's main thread, as it is where modules are imported.
pub fn in_main_thread() {
    MAIN.get_or_init(|| thread::current().id());
}

/// Whether a signal has come whose handler raises, such as Ctrl-C: asked by calls that wait without
/// the interpreter. No other thread waits for the interpreter here: whoever has it may be waiting
/// for that thread.
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

/// A misuse that is found here, at the border.
pub fn misuse(message: impl Into<String>) -> PyErr {
    MisuseError::new_err(message.into())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TacitError", py.get_type::<TacitError>())?;
    module.add("PeerError", py.get_type::<PeerError>())?;
    module.add("DesyncError", py.get_type::<DesyncError>())?;
    module.add("RefusedError", py.get_type::<RefusedError>())?;
    module.add("NetworkError", py.get_type::<NetworkError>())?;
    module.add("SetupError", py.get_type::<SetupError>())?;
    module.add("MisuseError", py.get_type::<MisuseError>())?;
    module.add("StoppedError", py.get_type::<StoppedError>())
}
