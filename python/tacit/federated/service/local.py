"""The three servers of a federation as processes of this machine; clients connect over TLS.

They work as servers do elsewhere: with certificates, a configuration in a folder, and accounts next
to it. Two things differ: each chooses a free port and reports where it listens, and each reports
every round to its parent."""

import os
import pickle
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from tacit import _core
from tacit.errors import PeerError, TacitError, cause, peer_error, setup_error
from tacit.federated.rounds.settings import Settings
from tacit.federated.service.attesting import add_trial
from tacit.federated.service.config import SERVERS, text_of
from tacit.federated.service.report import Report
from tacit.meter import Reading, Verification
from tacit.parties import processes
from tacit.parties.launch import first_cause, named
from tacit.parties.processes import Child

#: Seconds in which servers that fail report why, after their clients have learned of the failure.
PARTING = 15.0


@dataclass(frozen=True)
class Plan:
    """The task of the servers: rounds, settings, and the number of clients."""

    clients: int
    settings: Settings
    #: The initial parameters, in a row.
    start: torch.Tensor
    rounds: int
    #: The time in which clients may submit.
    seconds: float
    delta: float = 1e-5
    #: The kind of evidence that servers show each other and their clients; ``None`` for none.
    attestation: str | None = None


@dataclass(frozen=True)
class ServerReport:
    """A round as one server reports it."""

    report: Report
    #: Communication between the servers.
    cost: Reading
    threat_model: str
    #: What verification has taken since the server opened, if its protocol verifies.
    verification: Verification | None
    #: What attestation among the servers has done since the server opened, if they attest.
    attestation: dict[str, Any] | None = None


class Servers:
    """The three processes, from when they are entered until they are left.

    with Servers(folder, plan) as servers:
        client = Client(servers.config, number=0)
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Takes a folder for certificates, configuration and accounts."""
        self.config = folder / "federation.toml"
        self._plan = plan
        self._children: list[Child] = []
        #: Reports of each server that have not been asked for yet.
        self._reports: list[deque[ServerReport]] = [deque() for _ in range(SERVERS)]

    def __enter__(self) -> Self:
        """Starts the processes.

        Raises:
            SetupError: a process does not start, or the folder cannot be written to.
        """
        threads = max(1, (os.cpu_count() or 1) // SERVERS)
        try:
            for number in range(SERVERS):
                self._children.append(
                    Child(number, f"server {number}", threads, "tacit.federated.service.worker")
                )
            self._write([processes.begun(child) for child in self._children])
            start = self._plan.start.detach().to(torch.float32).contiguous().numpy().tobytes()
            for child in self._children:
                child.send((str(self.config), child.party, threads, start, self._plan.rounds))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Ends the processes. If clients failed because a server did, raises that server's
        error."""
        try:
            known = [child.result[1] for child in self._children if child.result is not None]
            if isinstance(error, TacitError) and error not in known:
                self._raise_cause()
        finally:
            self._end()

    def reports(self) -> list[ServerReport]:
        """Waits until the next round is over, and returns each server's report of it.

        Raises:
            Exception: the first error of a server that failed, with the server's name.
        """
        for child, reports in zip(self._children, self._reports, strict=True):
            while not reports:
                self._receive_report(child)
        return [reports.popleft() for reports in self._reports]

    def check(self) -> None:
        """Raises the error of a server that has failed, if any has.

        Raises:
            Exception: the first error of a server that failed, with the server's name.
        """
        for child in self._children:
            if child.process.receiving.poll():
                self._receive_report(child)

    def _write(self, addresses: Sequence[tuple[str, str]]) -> None:
        """Writes the folder's files."""
        plan, folder = self._plan, self.config.parent
        names = [f"server-{number}" for number in range(SERVERS)]
        names += [f"client-{number}" for number in range(plan.clients)]
        _core.write_certificates(names, str(folder))
        privacy = None if plan.settings.noise is None else {"delta": plan.delta}
        text = text_of(
            "on one machine",
            addresses,
            plan.clients,
            plan.settings,
            seconds=plan.seconds,
            privacy=privacy,
        )
        try:
            self.config.write_text(text)
        except OSError as error:
            raise setup_error(f"cannot write {self.config}: {cause(error)}") from None
        if plan.attestation is not None:
            add_trial(self.config, plan.attestation)

    def _receive_report(self, child: Child) -> None:
        """Waits for the next report of a process."""
        if not self._receive(child):
            self._raise_cause()
            raise peer_error(f"{child.name} ended before its rounds were over")

    def _receive(self, child: Child) -> bool:
        """Receives one message of a process, and keeps it; returns whether the process still
        runs."""
        if child.result is not None:
            return False
        try:
            message: Any = child.receive()
        except PeerError as error:
            # This precedes all reports of the other servers: their errors are its consequences.
            child.result = None, error, 0.0
            return False
        if isinstance(message, bytes):
            self._reports[child.party].append(pickle.loads(message))
            return True
        succeeded, at, payload = message
        child.result = (None, None if succeeded else _error(*payload), at)
        return False

    def _raise_cause(self) -> None:
        """Raises the error that ended the first server, if any server fails soon."""
        until = time.monotonic() + PARTING
        while (
            running := [child for child in self._children if child.result is None]
        ) and not self._own():
            ready = wait(
                [child.process.receiving for child in running], max(0.0, until - time.monotonic())
            )
            if not ready:
                break
            for child in running:
                if child.process.receiving in ready:
                    self._receive(child)
        results = [child.result or (None, None, 0.0) for child in self._children]
        blamed = first_cause([error for _, error, _ in results], [at for _, _, at in results])
        if blamed is not None:
            error = results[blamed][1]
            assert error is not None
            raise named(error, f"server {blamed}")

    def _own(self) -> bool:
        """Tells whether a server failed on its own, and not because another one did."""
        results = [child.result for child in self._children if child.result is not None]
        return any(
            error is not None and not isinstance(error, PeerError) for _, error, _ in results
        )

    def _end(self) -> None:
        for child in self._children:
            child.process.end()


def _error(error: BaseException | str, trace: str) -> BaseException:
    """Returns the error that a server raised, with its traceback as a note."""
    if not isinstance(error, BaseException):
        error = RuntimeError(error)
    error.add_note(trace)
    return error
