"""Starts tacit's commands for the tests, in forked processes, so that PyTorch is imported only
once."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

from tacit import cli
from tacit.parties import spawn

#: Seconds that a command may take.
LONGEST = 300.0


class Command:
    """A command that has been started."""

    def __init__(
        self, *arguments: object, folder: Path | None = None, entry: str = "commands"
    ) -> None:
        self._written = tempfile.TemporaryDirectory()
        self._output, self._errors = (
            Path(self._written.name) / name for name in ("output", "errors")
        )
        with (
            self._output.open("a") as output,
            self._errors.open("a") as errors,
            contextlib.chdir(folder or "."),
        ):
            files = output.fileno(), errors.fileno()
            self._process = spawn.start(entry, os.environ, *files)
        self._process.sending.send(list(map(str, arguments)))
        self._code: int | None = None
        self._id: int | None = None

    def begun(self) -> None:
        """Waits for the first line of its output."""
        while not self._output.read_text():
            assert self._process.wait(0.01) is None, self._errors.read_text()

    def warned(self) -> None:
        """Waits for the first line of its errors."""
        while not self._errors.read_text():
            assert self._process.wait(0.01) is None, self._output.read_text()

    def errors(self) -> str:
        """Returns what it has written as errors so far."""
        return self._errors.read_text()

    @property
    def id(self) -> int:
        """The process's id, for signals."""
        if self._id is None:
            self._id = self._process.receiving.recv()
        return self._id

    def kill(self) -> None:
        """Kills the process at once."""
        if self._code is None:
            self._process.end()
            self._code = self._process.wait(0)

    def ended(self, seconds: float = LONGEST) -> tuple[int, str, str]:
        """Waits for the end; returns exit code, output and errors."""
        if self._code is None:
            self._code = self._process.wait(seconds)
            assert self._code is not None, f"it still runs; {self._errors.read_text()}"
            self._process.end()
        return self._code, self._output.read_text(), self._errors.read_text()


def tacit(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end.

    Commands that start parties themselves run in this process, whose fork server they use.
    """
    words = list(map(str, arguments))
    ended = (
        _here(words)
        if words[0] in ("bench", "demo", "federated", "inspect", "riscv", "try")
        else Command(*words, folder=folder).ended()
    )
    return subprocess.CompletedProcess(words, *ended)


def _here(arguments: Sequence[str]) -> tuple[int, str, str]:
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "output", Path(folder) / "errors"
        with (
            paths[0].open("a") as output,
            paths[1].open("a") as errors,
            _standing_for(output, errors),
        ):
            code = cli.main(arguments)
        return code, paths[0].read_text(), paths[1].read_text()


@contextlib.contextmanager
def _standing_for(output: TextIO, errors: TextIO) -> Iterator[None]:
    """Redirects what this process and its children write to the given files."""
    saved = os.dup(1), os.dup(2)
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            yield
    finally:
        for descriptor, before in zip((1, 2), saved, strict=True):
            os.dup2(before, descriptor)
            os.close(before)


def main(receiving: Connection, sending: Connection) -> None:
    """Runs a command in its own process."""
    sending.send(os.getpid())
    arguments = receiving.recv()
    sys.argv = ["tacit", *arguments]
    sys.exit(cli.main(arguments))
