"""How a process of this machine begins: forked from one that has imported PyTorch already, or
afresh.

Importing PyTorch takes seconds of processor time. So the first request starts a *fork server*
(``forkserver``): a clean process of one thread, which imports once, computes nothing, and forks at
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

#: macOS: the system's frameworks, which PyTorch uses, do not outlive a fork; every process begins
#: afresh.
FORKS = sys.platform == "linux"

#: What PyTorch imports when the shapes of a compiled program, or of what some operators make
#: (``torch.cat``, ``1 - x``), are first computed: a third of its own import again. Where this
#: process has it, those that it starts want it, and would each import it for themselves.
LATE = ("torch._dynamo",)

#: Seconds in which a process ends that has closed its pipes.
GRACE = 5.0

#: What the fork server says of a process that has ended.
EXIT_CODE = struct.Struct("!i")


class Process:
    """A process that runs ``main(receiving, sending)`` of a module, and the other ends of its two
    pipes."""

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
        # One that has ended by now is noticed when it should answer.
        with suppress(BrokenPipeError):
            self.sending.send((dict(environment), list(sys.path)))

    def _begin(
        self, entry: str, environment: Mapping[str, str], ends: tuple[int, int, int, int]
    ) -> None:
        raise NotImplementedError

    def wait(self, seconds: float) -> int | None:
        """The exit code, or a signal's number below zero; ``None`` if it still
        runs after so long."""
        raise NotImplementedError

    def ending(self) -> str:
        """In words, how it ended."""
        return _described(self.wait(GRACE))

    def end(self) -> None:
        """Ends it, whatever it does."""
        self.sending.close()
        self.receiving.close()


class Fresh(Process):
    """With an interpreter of its own."""

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
    """Forked by the fork server, whose child it is."""

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
        # The server kills it: to all others its number may mean another process by now.
        self._life.shutdown(socket.SHUT_WR)
        self.wait(GRACE)
        self._life.close()


def start(entry: str, environment: Mapping[str, str], output: int = 1, errors: int = 2) -> Process:
    """A process that calls ``main(receiving, sending)`` of the module ``entry``, with pipes to this
    one, and files as its output and errors.

    Raises:
        SetupError: it cannot be started.
    """
    kind = Forked if FORKS else Fresh
    return kind(entry, environment, output, errors)


def warm_up() -> None:
    """Has the fork server import, where there is one, while this process does something else."""
    if FORKS:
        _server()


def _described(code: int | None) -> str:
    if code is None:
        return "closed its pipe and went on; it was not ended in order"
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
            # NumPy's matrix products start threads when they are loaded, and threads do not outlive
            # a fork.
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-m", "tacit.parties.forkserver", str(there.fileno()), *late],
                pass_fds=(there.fileno(),),
                stdin=subprocess.DEVNULL,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            )
        atexit.register(self._end)

    def fork(self, entry: str, ends: tuple[int, int, int, int]) -> socket.socket:
        """Asks for a process. What is returned tells its exit code; shutting
        it ends the process."""
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
        """In this process, which may be a fork of the one that started it."""
        return self.owner == os.getpid() and self._process.poll() is None

    def ending(self) -> str:
        """In words, how it ended."""
        try:
            return _described(self._process.wait(GRACE))
        except subprocess.TimeoutExpired:
            return "could not"

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
