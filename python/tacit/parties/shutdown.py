"""How the threads of parties end when whoever launched them is interrupted, and what if they do
not.

Before Python 3.14 a thread that asks for the interpreter's lock when the interpreter has ended is
ended where it stands, by unwinding its stack. Frames of Python and of the C library bear that;
those of C++ and Rust, through which an operator goes from PyTorch to the core and back, bring the
process down. So the interpreter
does not end under such a thread: it is interrupted like the main one, and waited for while there is
code of PyTorch or tacit on its stack. What a program does besides, such as sleeping, nobody waits
for.

Code of PyTorch is not seen where a program calls it and it calls nothing back, as in a product of
plain tensors. So where an error or an interrupt ends the interpreter, and a thread that was left
behind is still there, the process ends at once, as it would have ended, without what else the
interpreter does at its end."""

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

#: How long whoever interrupts waits for the threads, in seconds; how long the end of the
#: interpreter then waits for those that are inside PyTorch or tacit; and how long they have to be
#: outside.
FAREWELL, LINGER, OUTSIDE = 2.0, 60.0, 1.0

#: These call a program, with nothing of C++ between.
CALLERS = ("tacit.parties.launch", "tacit.trace.spans")

#: Threads that were left behind.
_left: list[threading.Thread] = []


def interrupt(workers: Sequence[threading.Thread]) -> None:
    """Has each of them raise what the main thread raised, and waits for them a little."""
    for worker in workers:
        if worker.ident is not None:
            interrupted = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), interrupted)
    until = time.monotonic() + FAREWELL
    while any(map(is_there, workers)) and time.monotonic() < until:
        time.sleep(0.01)
    leave_behind(workers)


def leave_behind(workers: Sequence[threading.Thread]) -> None:
    """Nobody waits for them any more, but the end of the interpreter."""
    _left.extend(filter(is_there, workers))


@atexit.register
def _wait() -> None:
    """At the end of the interpreter, which ends by a signal in its place where that would bring it
    down."""
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
    """Whether a thread has not ended. Python takes it for ended, before 3.13, once whoever waited
    for it was interrupted (bpo-45274)."""
    return worker.ident in sys._current_frames()


def is_inside(worker: threading.Thread) -> bool:
    """Whether a thread has code of PyTorch or tacit on its stack, which C++ or Rust may have
    called."""
    frame = sys._current_frames().get(worker.ident or 0)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.split(".")[0] in ("tacit", "torch") and module not in CALLERS:
            return True
        frame = frame.f_back
    return False


def _end() -> None:
    """As a process ends that an interrupt from the keyboard has ended, or that has failed."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if getattr(sys, "last_type", KeyboardInterrupt) is not KeyboardInterrupt:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
