"""Servers that wait for one another: a server that is never ready is named, one whose machine slept
is not."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from worlds import LONG, Servers, written

import tacit
from tacit import _core
from tacit.errors import PeerError, RefusedError
from tacit.federated import Client
from tacit.federated.service.report import Report


class NeverReady:
    """An intake that waits forever."""

    def __init__(self, intake: _core.Intake) -> None:
        self._intake = intake

    def __getattr__(self, name: str) -> Any:
        return getattr(self._intake, name)

    def wait(self, _: int, most: float) -> bool:
        time.sleep(most)
        return False


def test_a_server_that_is_never_ready_is_named_to_the_clients(tmp_path: Path) -> None:
    config = written(tmp_path, 2, seconds=1.0)
    config.write_text(config.read_text().replace("timeout = 20", "timeout = 4"))

    def work(server: tacit.federated.service.server.Server) -> Report:
        if server.number == 2:
            server._intake = cast(_core.Intake, NeverReady(server._intake))
        return server.round(torch.zeros(3))

    servers = Servers(config, work)
    client = Client(config, 0)
    client.submit(client.join(LONG).model)
    with pytest.raises((RefusedError, PeerError)):
        client.result(LONG)
    assert any(
        "server 2 was not ready after the deadline" in str(error) for error in servers.failed()
    )


class Slept:
    """An intake that reports it is not ready, just before all machines sleep for an hour."""

    def __init__(self, inner: _core.Intake, sleep: Callable[[], None]) -> None:
        self._inner = inner
        self._sleep: Callable[[], None] | None = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def wait(self, enough: int, most: float) -> bool:
        if self._sleep is None:
            return self._inner.wait(enough, most)
        self._sleep()
        self._sleep = None
        return False


def test_machines_that_slept_are_nobodys_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline has passed when the machines wake up, and no server had reported before."""
    slept = {"seconds": 0.0}
    clock = SimpleNamespace(
        monotonic=lambda: time.monotonic() + slept["seconds"], perf_counter=time.perf_counter
    )
    monkeypatch.setattr(tacit.federated.service.server, "time", clock)

    def work(server: tacit.federated.service.server.Server) -> Report:
        server._intake = cast(
            _core.Intake, Slept(server._intake, lambda: slept.update(seconds=3600.0))
        )
        return server.round(torch.zeros(3))

    config = written(tmp_path, 3, seconds=2.0)
    servers = Servers(config, work)
    clients = [Client(config, number) for number in (0, 1)]
    for client in clients:
        client.submit(client.join(LONG).model)
    for report in servers.ended():
        assert (report.accepted, report.failure) == ([0, 1], None)
