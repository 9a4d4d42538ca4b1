"""Cells of real parties: which requests go to another cell when one fails."""

import contextlib
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from load import Load, answered, given
from relays import Relay
from services import Parties, wait_for, write

from tacit.client import Client, Model
from tacit.errors import LateError, PeerError
from tacit.gateway.backend import Array, ServiceBackend
from tacit.gateway.cells import PATIENCE, Cells

#: Seconds between two questions of a gateway to its cells; the second is longer than any test.
OFTEN, NEVER = 0.2, 600.0


class Elsewhere:
    """A cell that counts its requests, and answers none rightly."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models
        self.asked = 0

    def models(self) -> Mapping[str, Model]:
        return self._models

    def infer(self, *_: Any, **__: Any) -> tuple[Array, ...]:
        self.asked += 1
        return (np.zeros((1, 3), np.float32),)


class Trial:
    """A cell whose party 1 is reached through a relay, and another cell that counts."""

    def __init__(self, stack: contextlib.ExitStack, config: Path, parties: Parties) -> None:
        self.parties = parties
        with Client(config) as direct:
            wait_for(direct)
            self.elsewhere = Elsewhere(direct.models())
            address = direct.service.parties[1].clients
        self.relay = stack.enter_context(Relay(address))
        through = config.with_name("through.toml")
        through.write_text(config.read_text().replace(address, self.relay.address))
        self.client = stack.enter_context(Client(through))
        self.cells = Cells([ServiceBackend(self.client), self.elsewhere], NEVER)
        stack.callback(self.cells.close)
        _until_present(self.cells, 2)

    def ask(self, timeout: float) -> tuple[Array, ...]:
        return self.cells.infer("net", {"input": given(1).numpy()}, timeout=timeout)


def _until_present(cells: Cells, count: int) -> None:
    until = time.monotonic() + 120
    while sum(cell.models is not None for cell in cells._cells) != count:
        assert time.monotonic() < until, [cell.error for cell in cells._cells]
        time.sleep(0.05)


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    config = write(tmp_path)
    with contextlib.ExitStack() as stack:
        parties = stack.enter_context(Parties(config))
        yield Trial(stack, config, parties)


def test_a_request_goes_elsewhere_only_before_all_parties_have_it(trial: Trial) -> None:
    """Party 1 dies twice: after it has had a request, and before."""
    with ThreadPoolExecutor(1) as pool:
        trial.relay.answers.clear()
        asked = pool.submit(trial.ask, 3 * PATIENCE)
        until = time.monotonic() + 30
        while answered(trial.client, 0) < 1:
            assert time.monotonic() < until, "the parties do not compute it"
            time.sleep(0.02)
        # All have computed it, and the client has only the parts of the others.
        trial.parties.kill(1)
        trial.relay.answers.set()
        trial.relay.cut()
        with pytest.raises(PeerError) as failed:
            asked.result(60)
        assert not isinstance(failed.value, LateError)
        assert trial.elsewhere.asked == 0
        # The cell is away now, so make it seem present, as it does until it is asked again.
        trial.cells._cells[0].models = trial.elsewhere.models()
        trial.cells._cells[0].given = -1
        asked = pool.submit(trial.ask, 300.0)
        assert asked.result(60)[0].tolist() == [[0, 0, 0]]
        assert trial.elsewhere.asked == 1
        assert trial.cells._cells[0].models is None


@pytest.mark.long
def test_a_cell_that_fails_loses_its_own_requests_alone(tmp_path: Path) -> None:
    """A party of one cell dies, and one of the other stops, under load."""
    with contextlib.ExitStack() as stack:
        parties, clients = [], []
        for number in range(2):
            folder = tmp_path / str(number)
            folder.mkdir()
            config = write(folder, timeout=3)
            parties.append(stack.enter_context(Parties(config)))
            clients.append(stack.enter_context(Client(config)))
        cells = Cells([ServiceBackend(each, 2.0) for each in clients], OFTEN)
        stack.callback(cells.close)
        _until_present(cells, 2)

        def infer(x: torch.Tensor) -> torch.Tensor:
            (found,) = cells.infer("net", {"input": x.numpy()}, timeout=20)
            return torch.from_numpy(found)

        with Load([infer] * 4) as asking:
            asking.goes_on(20)
            parties[0].kill(1)
            _until_present(cells, 1)
            asking.goes_on(20)
            parties[0].start(1)
            _until_present(cells, 2)
            parties[1].send(2, signal.SIGSTOP)
            try:
                _until_present(cells, 1)
                asking.goes_on(20)
            finally:
                parties[1].send(2, signal.SIGCONT)
            _until_present(cells, 2)
            asking.goes_on(20)
        assert asking.wrong == []
        computed = sum(answered(client, 0) for client in clients)
        assert asking.right <= computed <= asking.right + asking.refused, asking.outcomes
        # At most one request of each thread was with the cell that failed, each time it did.
        assert asking.refused <= 8, asking.errors
