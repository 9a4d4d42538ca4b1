"""Start of processes on this machine: forked from one that has imported PyTorch, or new ones.

An import of PyTorch takes seconds of processor time. So the first request starts a *fork server*
(``forkserver``): a clean process of one thread that imports once, computes nothing, and forks at
each request. It ends with this process.
"""

import atexit
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection

from tacit.errors import cause, setup_error

#: Whether processes are forked. On macOS, the system's frameworks that PyTorch uses do not survive
#: a fork, so every process is a new one.
FORKS = sys.platform == "linux"

#: Modules that PyTorch imports when it first computes the shapes of a compiled program, or of some
#: operators (``torch.cat``, ``1 - x``). They take a third of its own import time. If this process
#: has imported them, its children need them too, and each would import them on its own.
LATE = ("torch._dynamo",)

#: Seconds in which a process must end after it has closed its pipes.
GRACE = 5.0

#: Format of the exit code that the fork server sends for a process.
EXIT_CODE = struct.Struct("!i")


class Process:
    """A process that runs ``main(receiving, sending)`` of a module, with the parent's pipe ends."""

    def __init__(
        self, entry: str, environment: Mapping[str, str], output: int, errors: int
    ) -> None:
        here_read, there_write = os.pipe()
        there_read, here_write = os.pipe()
        self.receiving = Connection(here_read, writable=False)
        self.sending = Connection(here_write, readable=False)
        try:
            self._begin(entry, environment, (there_read, there_write, output, errors))
        finally:
            os.close(there_read)
            os.close(there_write)
        # A process that has ended by now is detected when it should answer.
        with suppress(BrokenPipeError):
            self.sending.send((dict(environment), list(sys.path)))

    def _begin(
        self, entry: str, environment: Mapping[str, str], ends: tuple[int, int, int, int]
    ) -> None:
        raise NotImplementedError

    def wait(self, seconds: float) -> int | None:
        """Waits for the process, and returns its exit code, or the negative number of a signal.

        Returns ``None`` if it still runs after ``seconds``."""
        raise NotImplementedError

    def ending(self) -> str:
        """Returns a text that says how the process ended."""
        return _described(self.wait(GRACE))

    def end(self) -> None:
        """Ends the process, whatever it does."""
        self.sending.close()
        self.receiving.close()


class Fresh(Process):
    """A process that is started with a new interpreter."""

    def _begin(
        self, entry: str, environment: Mapping[str, str], ends: tuple[int, int, int, int]
    ) -> None:
        receiving, sending, output, errors = ends
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tacit.parties.entry", entry, str(receiving), str(sending)],
            pass_fds=(receiving, sending),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=environment,
        )

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        super().end()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class Forked(Process):
    """A process that the fork server forked."""

    def _begin(
        self, entry: str, _environment: Mapping[str, str], ends: tuple[int, int, int, int]
    ) -> None:
        self._server = _server()
        self._life = self._server.fork(entry, ends)
        self._code: int | None = None
        self._lost = False

    def wait(self, seconds: float) -> int | None:
        if (
            self._code is None
            and not self._lost
            and select.select([self._life], [], [], seconds)[0]
        ):
            message = self._life.recv(EXIT_CODE.size)
            if message:
                (self._code,) = EXIT_CODE.unpack(message)
            else:
                self._lost = True
        return self._code

    def ending(self) -> str:
        ending = super().ending()
        return f"was lost: the one that starts it {self._server.ending()}" if self._lost else ending

    def end(self) -> None:
        super().end()
        # Only its parent, the server, may kill it: the process id may be reused once it is reaped.
        self._life.shutdown(socket.SHUT_WR)
        self.wait(GRACE)
        self._life.close()


def start(entry: str, environment: Mapping[str, str], output: int = 1, errors: int = 2) -> Process:
    """Starts a process that calls ``main(receiving, sending)`` of the module ``entry``.

    Args:
        entry: name of the module.
        environment: environment variables of the process.
        output: file descriptor of its standard output.
        errors: file descriptor of its standard error.

    Raises:
        SetupError: the process cannot be started.
    """
    kind = Forked if FORKS else Fresh
    return kind(entry, environment, output, errors)


def warm_up() -> None:
    """Starts the fork server, if processes are forked, so that it imports in the background."""
    if FORKS:
        _server()


def _described(code: int | None) -> str:
    if code is None:
        return "closed its pipe but still runs"
    if code < 0:
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    return f"ended with exit code {code} before its program did; look at its own output"


class _Server:
    """The fork server, as its parent sees it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._control, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        late = [name for name in LATE if name in sys.modules]
        with there:
            # OpenBLAS starts threads when NumPy is loaded, and threads do not survive a fork.
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-m", "tacit.parties.forkserver", str(there.fileno()), *late],
                pass_fds=(there.fileno(),),
                stdin=subprocess.DEVNULL,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            )
        atexit.register(self._end)

    def fork(self, entry: str, ends: tuple[int, int, int, int]) -> socket.socket:
        """Requests a process, and returns a socket that stands for its life.

        The server sends the exit code there, and ends the process when the socket is shut down."""
        here, there = socket.socketpair()
        folder = os.open(".", os.O_PATH)
        try:
            socket.send_fds(self._control, [entry.encode()], [*ends, folder, there.fileno()])
        except OSError as error:
            here.close()
            raise setup_error(f"cannot start a process on this machine ({cause(error)})") from None
        finally:
            os.close(folder)
            there.close()
        return here

    def runs(self) -> bool:
        """Whether the server runs and belongs to this process, which may be a fork of another."""
        return self.owner == os.getpid() and self._process.poll() is None

    def ending(self) -> str:
        """Returns a text that says how the server ended."""
        try:
            return _described(self._process.wait(GRACE))
        except subprocess.TimeoutExpired:
            return "still runs"

    def _end(self) -> None:
        if self.owner == os.getpid():
            self._control.close()
            self._process.kill()
            self._process.wait()


_lock = threading.Lock()
_latest: _Server | None = None


def _server() -> _Server:
    global _latest
    with _lock:
        if _latest is None or not _latest.runs():
            _latest = _Server()
        return _latest
