"""The process that others are forked from (``spawn``): it has imported PyTorch and computed
nothing.

It has one thread, no session, no key, and no pool of threads of PyTorch, NumPy or tacit, since a
fork carries none of them over. Its arguments are a socket, and modules that are imported besides. A
request is the name of a module, and as files the ends of two pipes, output, errors, the folder to
be in, and a socket that stands for the new process's life: there the server says how the process
ended, and kills it when the other end is shut.
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
    """The loop of requests and endings."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lives: dict[int, socket.socket] = {}
        self._ended, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        # An interrupt from the keyboard is for those that compute.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
        signal.set_wakeup_fd(self._wake)

    def serve(self) -> Callable[[], None] | None:
        """In each new process what it has to do; ``None`` in the server, when
        its parent has gone."""
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
                # Whoever asked for it may have gone.
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
        """In a new process: what is the server's is given up."""
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
    # What the server's generators would draw is known to all its children.
    torch.seed()
    np.random.seed()
    begin(entry, receiving, sending)


def main() -> None:
    """Serves until the parent has gone; in each new process, does its work."""
    server = Server(socket.socket(fileno=int(sys.argv[1])))
    prepare()
    # What is there now is not touched again, and stays shared with the processes to come.
    gc.freeze()
    # These are collected at the end of each process: some libraries tell of what is left over then.
    for name in sys.argv[2:]:
        import_module(name)
    work = server.serve()
    if work is not None:
        work()


if __name__ == "__main__":
    main()
