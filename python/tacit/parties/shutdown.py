"""Shutdown of parties' threads when the launching thread is interrupted.

Before Python 3.14, a thread that asks for the interpreter's lock after the interpreter has ended is
terminated by unwinding its stack. Frames of Python and of the C library can be unwound. Frames of
C++ and Rust, through which an operator passes from PyTorch to the core and back, crash the process.
So the interpreter must not end while such a thread runs. The thread is interrupted like the main
thread, and the interpreter waits for it while code of PyTorch or tacit is on its stack. It does not
wait for other work of a program, such as sleeping.

Code of PyTorch that calls nothing back, such as a product of plain tensors, is not visible on the
stack. So if an error or an interrupt ends the interpreter while a thread that was left behind still
runs, the process ends at once, with the same status, and skips the rest of the interpreter's
shutdown."""

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

#: Seconds that ``interrupt`` waits for the threads; seconds that the end of the interpreter then
#: waits for threads that are inside PyTorch or tacit; and seconds that a thread must be outside
#: before it is no longer waited for.
FAREWELL, LINGER, OUTSIDE = 2.0, 60.0, 1.0

#: Modules that call a program without frames of C++ in between.
CALLERS = ("tacit.parties.launch", "tacit.trace.spans")

#: Threads that were left behind.
_left: list[threading.Thread] = []


def interrupt(workers: Sequence[threading.Thread]) -> None:
    """Raises a KeyboardInterrupt in each thread, and waits for the threads a little."""
    for worker in workers:
        if worker.ident is not None:
            interrupted = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), interrupted)
    until = time.monotonic() + FAREWELL
    while any(map(is_there, workers)) and time.monotonic() < until:
        time.sleep(0.01)
    leave_behind(workers)


def leave_behind(workers: Sequence[threading.Thread]) -> None:
    """Stops waiting for threads. Only the end of the interpreter still waits for them."""
    _left.extend(filter(is_there, workers))


@atexit.register
def _wait() -> None:
    """Waits for threads at the end of the interpreter.

    If a thread is still running that would crash the process, the process ends at once."""
    try:
        _wait_outside()
    finally:
        has_failed = getattr(sys, "last_type", None) is not None
        if any(is_inside(at) or (has_failed and is_there(at)) for at in _left):
            _end()


def _wait_outside() -> None:
    now = time.monotonic()
    until, inside = now + LINGER, dict.fromkeys(_left, now)
    while now < until and any(is_there(at) and now - last < OUTSIDE for at, last in inside.items()):
        inside.update(dict.fromkeys(filter(is_inside, _left), now))
        time.sleep(0.02)
        now = time.monotonic()


def is_there(worker: threading.Thread) -> bool:
    """Whether a thread still runs.

    Before 3.13, Python considers a thread ended once a join of it was interrupted (bpo-45274)."""
    return worker.ident in sys._current_frames()


def is_inside(worker: threading.Thread) -> bool:
    """Whether code of PyTorch or tacit, which C++ or Rust may have called, is on a stack."""
    frame = sys._current_frames().get(worker.ident or 0)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.split(".")[0] in ("tacit", "torch") and module not in CALLERS:
            return True
        frame = frame.f_back
    return False


def _end() -> None:
    """Ends the process with the status of an interrupt from the keyboard, or of a failure."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if getattr(sys, "last_type", KeyboardInterrupt) is not KeyboardInterrupt:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
