"""Two cells of real parties: one party of one cell is killed under load."""

import contextlib
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import torch

from tacit.client import Client
from tacit.demo.service import MODEL, TOLERANCE, Parties, write_service
from tacit.errors import PeerError, RequestRefusedError
from tacit.gateway.backend import ServiceBackend
from tacit.gateway.cells import Cells
from tacit.serving import example


def until(cells: Cells, present: int) -> None:
    deadline = time.monotonic() + 180
    while sum(cell.models is not None for cell in cells._cells) != present:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.long
def test_a_cell_that_fails_loses_its_own_requests_alone(tmp_path: Path) -> None:
    """Every request has a right result or a typed error; those of the other cell have results."""
    module = example.module()
    outcomes: Counter[str] = Counter()
    names, stop = ["a", "b"], threading.Event()
    with contextlib.ExitStack() as stack:
        parties, clients = [], []
        for number in range(2):
            folder = tmp_path / str(number)
            folder.mkdir()
            config = write_service(folder, names)
            parties.append(stack.enter_context(Parties(config)))
            clients.append(stack.enter_context(Client(config, name="a", timeout=30)))
        cells = Cells([ServiceBackend(client) for client in clients], 0.2)
        stack.callback(cells.close)
        until(cells, 2)

        def ask(seed: int) -> None:
            while not stop.is_set():
                seed += 100
                x = torch.rand(example.SHAPE, generator=torch.Generator().manual_seed(seed))
                try:
                    (found,) = cells.infer(MODEL, {"input": x.numpy()}, timeout=30)
                except (PeerError, RequestRefusedError) as error:
                    outcomes[type(error).__name__] += 1
                    continue
                with torch.no_grad():
                    is_right = (module(x) - torch.from_numpy(found)).abs().max() < TOLERANCE
                outcomes["right" if is_right else "wrong"] += 1

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        before = time.monotonic()
        while outcomes["right"] < 20:
            assert time.monotonic() < before + 60
            time.sleep(0.05)
        parties[0].kill(1)
        until(cells, 1)
        answered = outcomes["right"]
        while outcomes["right"] < answered + 20:
            assert time.monotonic() < before + 120
            time.sleep(0.05)
        parties[0].start(1)
        until(cells, 2)
        stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        given = [cell.given for cell in cells._cells]
    assert outcomes["wrong"] == 0
    assert sum(outcomes.values()) == sum(given)
    # At most one request of each thread was with the cell that failed, for each time it did.
    assert outcomes["PeerError"] + outcomes["RequestRefusedError"] <= 8
