"""A service whose links are slow or cut, whose parties stop, and whose disks are full.

Clients ask all the while. No result is wrong, every call ends with a result or an error of its own
type, and no party computes a request twice."""

import contextlib
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from load import TOLERANCE, Load, answered, expected, given
from relays import Relay, between_parties
from services import Parties, wait_for, write

from commands import Command
from tacit.client import Client

#: Seconds of silence after which a session ends.
TIMEOUT = 3


class Service(NamedTuple):
    """A service with a relay in front of each party, for the others."""

    config: Path
    parties: Parties
    relays: list[Relay]
    client: Client


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that every test leaves as it was."""
    config = write(tmp_path_factory.mktemp("faults"), timeout=TIMEOUT, limits={"deadline": 20})
    with contextlib.ExitStack() as stack:
        relays = []
        with Client(config) as reading:
            addresses = [party.address for party in reading.service.parties]
        for address in addresses:
            relays.append(stack.enter_context(Relay(address)))
            between_parties(config, address, relays[-1].address)
        parties = stack.enter_context(Parties(config))
        client = stack.enter_context(Client(config, timeout=40))
        wait_for(client)
        yield Service(config, parties, relays, client)


@contextlib.contextmanager
def load(service: Service) -> Iterator[Load]:
    """Asks all the while, and checks what became of the requests, by party 0, which never ends."""
    before = answered(service.client, 0)
    with Client(service.config, name="other", timeout=40) as other:
        asks = [lambda x, by=by: by.infer("net", x) for by in (service.client, other) * 2]
        with Load(asks) as asking:
            asking.goes_on()
            yield asking
            asking.goes_on()
    assert asking.wrong == []
    computed = answered(service.client, 0) - before
    assert asking.right <= computed <= asking.right + asking.refused, asking.outcomes


def test_slow_links_delay_results_and_nothing_else(service: Service) -> None:
    try:
        for each in service.relays:
            each.delay, each.rate = 0.02, 1e6
        with load(service) as asking:
            asking.goes_on(20)
    finally:
        for each in service.relays:
            each.delay, each.rate = 0.0, float("inf")
    assert asking.errors == []


def test_links_that_are_cut_end_a_session_and_not_the_service(service: Service) -> None:
    with load(service) as asking:
        for each in service.relays:
            each.cut()
            asking.goes_on()


@pytest.mark.parametrize("seconds", [1, 2 * TIMEOUT])
def test_a_party_that_stops_for_a_while(service: Service, seconds: int) -> None:
    """It stops for less than the timeout, or for longer: then the others end the session."""
    with load(service) as asking:
        service.parties.send(1, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            service.parties.send(1, signal.SIGCONT)
        asking.goes_on()


@pytest.mark.parametrize(
    ("old", "new", "said", "said_by_others"),
    [
        ("owner = 0", 'owner = 0\nversion = "0"', "another model than net 0", "than net 1"),
        ("deadline = 20", "deadline = 20\nbatch = 3", "another batch", "another batch"),
    ],
    ids=["an older model", "another batch"],
)
def test_a_party_that_comes_back_with_another_file_ends_alone(
    service: Service, old: str, new: str, said: str, said_by_others: str
) -> None:
    other = service.config.with_name("other.toml")
    other.write_text(service.config.read_text().replace(old, new))
    before = len(service.parties.errors(0))
    with load(service) as asking:
        service.parties.kill(1)
        service.parties.start(1, other)
        code, _, errors = service.parties.ended(1)
        assert (code, said in errors) == (1, True), errors
        until = time.monotonic() + 60
        try:
            # The others see it themselves, or hear it from the party that ends.
            while not any(
                each in (found := service.parties.errors(0)[before:])
                for each in (said, said_by_others)
            ):
                assert time.monotonic() < until, found
                time.sleep(0.02)
        finally:
            service.parties.start(1)
        asking.goes_on()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes are set by prlimit")
def test_a_party_whose_log_has_no_room_serves_on(service: Service) -> None:
    """No file of party 1 may grow, as on a disk that is full, while it has something to log."""
    command = service.parties.commands[1]
    assert command is not None
    before = resource.prlimit(command.id, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        said = service.parties.errors(1)
        with load(service) as asking:
            service.parties.kill(2)
            service.parties.start(2)
            asking.goes_on()
        assert service.parties.errors(1) == said
    finally:
        resource.prlimit(command.id, resource.RLIMIT_FSIZE, before)


def test_a_client_whose_disk_is_full_says_so(service: Service, tmp_path: Path) -> None:
    rows = 400
    np.save(tmp_path / "x.npy", given(1, rows).numpy())
    arguments = ["client", "infer", "--service", service.config, "--input", tmp_path / "x.npy"]
    output = tmp_path / "y.npy"
    code, _, errors = Command(*arguments, "--output", output, entry="on_a_full_disk").ended(120)
    assert code == 1
    assert f"cannot write {output}: " in errors
    assert "no part of it is left" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    code, _, errors = Command(*arguments, "--output", output).ended(120)
    assert code == 0, errors
    found = torch.from_numpy(np.load(output))
    assert (found - expected(given(1, rows))).abs().max() < TOLERANCE
