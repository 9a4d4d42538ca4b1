"""The fork server, from which other processes are forked (``spawn``).

It has imported PyTorch, and computes nothing. It has one thread, no session, no key, and no thread
pool of PyTorch, NumPy or tacit, since threads do not survive a fork. Its arguments are a socket,
and modules to import in addition. A request is the name of a module, with these files: the ends of
two pipes, standard output, standard error, the working directory, and a socket that stands for the
life of the new process. On this socket the server reports how the process ended. It kills the
process when the other end is shut down.
"""

import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch

import tacit.module
import tacit.operators
import tacit.sharing  # noqa: F401
from tacit.parties.entry import begin
from tacit.parties.spawn import EXIT_CODE
from tacit.parties.warmup import prepare

#: Longest name of a module.
LONGEST = 1024

#: Files that come with a request.
FILES = 6


class Server:
    """The loop that serves requests and reports processes that have ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lives: dict[int, socket.socket] = {}
        self._ended, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        # An interrupt from the keyboard is for the processes that compute.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
        signal.set_wakeup_fd(self._wake)

    def serve(self) -> Callable[[], None] | None:
        """Serves requests until the parent has gone, then returns ``None``.

        In each new process it returns the work to do."""
        while True:
            waited: list[Any] = [self._control, self._ended, *self._lives.values()]
            ready = select.select(waited, [], [])[0]
            for process, life in self._lives.items():
                if life in ready:
                    os.kill(process, signal.SIGKILL)
            if self._ended in ready:
                self._tell_of_the_ended()
            if self._control in ready:
                request, files, _, _ = socket.recv_fds(self._control, LONGEST, FILES)
                if not request:
                    for process in self._lives:
                        os.kill(process, signal.SIGKILL)
                    return None
                work = self._fork(request.decode(), files)
                if work is not None:
                    return work

    def _tell_of_the_ended(self) -> None:
        os.read(self._ended, LONGEST)
        for process in list(self._lives):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                # The process that asked for it may have gone.
                with self._lives.pop(process) as life, suppress(OSError):
                    life.send(EXIT_CODE.pack(os.waitstatus_to_exitcode(status)))

    def _fork(self, entry: str, files: list[int]) -> Callable[[], None] | None:
        *ends, folder, life_file = files
        life = socket.socket(fileno=life_file)
        try:
            process = os.fork()
        except OSError:
            life.close()
            process = None
        if process == 0:
            life.close()
            self._leave()
            return partial(_become, entry, ends, folder)
        if process is not None:
            self._lives[process] = life
        for file in (*ends, folder):
            os.close(file)
        return None

    def _leave(self) -> None:
        """Closes the server's files in a new process, and restores its signals."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(self._ended)
        os.close(self._wake)
        self._control.close()
        for life in self._lives.values():
            life.close()


def _become(entry: str, ends: list[int], folder: int) -> None:
    receiving, sending, output, errors = ends
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.fchdir(folder)
    for file in (output, errors, folder):
        os.close(file)
    # All children would inherit the same state of the server's random generators.
    torch.seed()
    np.random.seed()
    begin(entry, receiving, sending)


def main() -> None:
    """Runs the server until the parent has gone, and the work of each new process."""
    server = Server(socket.socket(fileno=int(sys.argv[1])))
    prepare()
    # Frozen objects are not touched by the collector, so their pages stay shared with children.
    gc.freeze()
    # These modules are not frozen, so that they are collected when a process ends: some libraries
    # report objects that are left over then.
    for name in sys.argv[2:]:
        import_module(name)
    work = server.serve()
    if work is not None:
        work()


if __name__ == "__main__":
    main()
