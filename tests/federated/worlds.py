"""Federations for the tests: their files, and servers as threads of this process."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ports import free_addresses
from tacit import _core
from tacit.federated import Client
from tacit.federated.rounds.steps import Round, Rounds
from tacit.federated.service.report import Report
from tacit.federated.service.round_store import Known, to_bytes
from tacit.federated.service.server import Server

#: Seconds that no operation takes unless it fails.
LONG = 60.0


def written(
    folder: Path, clients: int, *, seconds: float = LONG, rules: str = "", rest: str = ""
) -> Path:
    """Writes the files of a federation on this machine, at free ports."""
    _core.write_certificates([f"server-{number}" for number in range(3)], str(folder))
    _core.write_certificates([f"client-{number}" for number in range(clients)], str(folder))
    addresses = free_addresses(6)
    tables = [
        f'[[server]]\naddress = "{addresses[at]}"\nclients = "{addresses[at + 3]}"\n'
        f'certificate = "server-{at}.pem"\n'
        for at in range(3)
    ]
    path = folder / "federation.toml"
    head = f'name = "test"\ntimeout = 20\n{rest}\n'
    clients_table = f"[clients]\ncount = {clients}\n"
    path.write_text(
        "\n".join([head, *tables, clients_table, f"[round]\nseconds = {seconds}\n{rules}"])
    )
    return path


def known_of(folder: Path, server: int) -> str:
    """Returns what a server's file records of the latest round."""
    return (folder / f"server-{server}.round").read_text().partition("\n")[0]


def write_known(folder: Path, server: int, *numbers: int) -> None:
    """Writes these numbers into that file."""
    (folder / f"server-{server}.round").write_bytes(to_bytes(Known(*numbers)))


def beyond_the_bound(client: Client) -> None:
    """Hands in a vector that no honest client would."""
    assert client._task is not None
    told, task = client._task
    unbounded = replace(task.settings, aggregator="fedavg", bound="none", root=None)
    client._task = told, replace(task, settings=unbounded)
    client.submit(task.model + 10 * task.norm)
    client._task = told, task


class Servers:
    """Three servers in threads that do the same work, with their results or errors. The last one
    may have another configuration."""

    def __init__(
        self,
        config: Path,
        work: Callable[[Server], Any],
        *,
        last: Path | None = None,
        rounds: Rounds = Round.of,
    ) -> None:
        self._rounds = rounds
        self.found: list[Any] = [None] * 3
        configs = [config, config, last or config]
        self._threads = [
            threading.Thread(target=self._run, args=(own, at, work))
            for at, own in enumerate(configs)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, config: Path, at: int, work: Callable[[Server], Any]) -> None:
        try:
            with Server.open(config, at, threads=1, rounds=self._rounds) as server:
                self.found[at] = work(server)
        except Exception as error:
            self.found[at] = error

    def failed(self) -> list[Exception]:
        """Waits for all servers, and returns the error of each."""
        for thread in self._threads:
            thread.join(LONG)
            assert not thread.is_alive()
        assert all(isinstance(found, Exception) for found in self.found)
        for error in self.found:
            # They hold the server's intake, which otherwise ends with the server's process.
            error.__traceback__ = error.__context__ = error.__cause__ = None
        return self.found

    def ended(self) -> list[Report]:
        """Waits for all servers, and returns the reports of each."""
        for thread in self._threads:
            thread.join(LONG)
            assert not thread.is_alive()
        for found in self.found:
            if isinstance(found, Exception):
                raise found
        return self.found
