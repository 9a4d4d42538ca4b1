"""Servers that wait for one another: a server that is never ready is named, one whose machine slept
is not."""

import re
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
from tacit.errors import PeerError, RefusedError, SetupError
from tacit.federated import Client
from tacit.federated.rounds.settings import Settings
from tacit.federated.service.config import Federation
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
    monkeypatch.setattr(tacit.federated.service.waiting, "time", clock)

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


@pytest.mark.parametrize("enough", ["2", "0.5"])
def test_a_round_ends_when_enough_have_submitted(enough: str, tmp_path: Path) -> None:
    """The others are refused as too late, and take part in the next round."""
    config = written(tmp_path, 3, seconds=3600.0, rules=f"norm = 4.0\nenough = {enough}")
    servers = Servers(
        config, lambda server: [server.round(torch.zeros(3)), server.round(torch.zeros(3))]
    )
    clients = [Client(config, number) for number in range(3)]
    tasks = [client.join(LONG) for client in clients]
    for number in (0, 2):
        clients[number].submit(tasks[number].model + 1)
    for number in (0, 2):
        assert torch.allclose(clients[number].result(LONG), torch.ones(3), atol=1e-5)
    with pytest.raises(RefusedError, match="round 1"):
        clients[1].submit(tasks[1].model + 1)
    for client in clients[1:]:
        client.submit(client.join(LONG).model + 2)
    for client in clients[1:]:
        assert torch.allclose(client.result(LONG), torch.full((3,), 2.0), atol=1e-5)
    for first, second in servers.ended():
        assert (first.accepted, first.failure, first.late) == ([0, 2], None, [1])
        assert (second.accepted, second.failure) == ([1, 2], None)


def test_shares_of_clients_are_rounded_up() -> None:
    assert [Settings(enough=share).enough_of(7) for share in (0.01, 0.5, 6 / 7, 1.0)] == [
        1,
        4,
        6,
        7,
    ]
    assert [Settings(enough=count).enough_of(7) for count in (1, 6, None)] == [1, 6, 7]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("enough = 0", "enough = 0: it is a count of clients, such as 12, or a share of them"),
        ("enough = 1.5", "enough = 1.5: it is a count of clients, such as 12, or a share of them"),
        ("enough = nan", "enough = nan: it is a count of clients, such as 12, or a share of them"),
        ("enough = true", "enough = True is not a number"),
        (
            "enough = 4",
            "enough = 4, which is 4 clients of 3: it is from 2, which a round needs, to",
        ),
        (
            "enough = 1",
            "enough = 1, which is 1 client of 3: it is from 2, which a round needs, to 3",
        ),
        ("enough = 0.1", "enough = 0.1, which is 1 client of 3: it is from 2, which a round needs"),
        (
            'aggregator = "fltrust"\nroot = 1\nenough = 2',
            "enough = 2 with client 1 as root: a round could end before the root's vector is there",
        ),
        (
            'noise = "pairs"\nsigma = 1.0\ndivisor = 2.0\nenough = 2',
            "enough = 2 with noise: without one client a round waits for another one, so its sum",
        ),
    ],
)
def test_what_is_not_enough(rules: str, message: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=rules)
    with pytest.raises(SetupError, match=re.escape(message)):
        Federation.read(config)


def test_enough_with_a_server_as_root(tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules='aggregator = "fltrust"\nroot = "server-0"\nenough = 2')
    assert Federation.read(config).settings.enough == 2
