"""Memory of clients' vectors that the next round reuses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from worlds import LONG, Servers, written

import tacit
from tacit.federated import Client
from tacit.federated.service import memory as of_vectors
from tacit.federated.service.memory import Memory
from tacit.federated.service.report import Report
from tacit.federated.service.server import Server
from tacit.sessions import Session

LEAST = 1000


@pytest.fixture(autouse=True)
def _of_small_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_vectors, "LEAST", LEAST)


def _addresses(parts: tuple[torch.Tensor, ...]) -> list[int]:
    return [part.data_ptr() for part in parts]


def _in_a_session(work: Callable[[Session], None]) -> None:
    tacit.launch(lambda: work(tacit.session()))


def test_the_next_vectors_lie_where_the_last_ones_did() -> None:
    def work(session: Session) -> None:
        memory = Memory()
        first = memory.take(session, (4, LEAST))
        assert [part.shape for part in first] == [(4, LEAST)] * session.core.parts
        where = _addresses(first)
        del first
        for shape in ((4, LEAST), (3, LEAST + 7), (2, 2 * LEAST)):
            again = memory.take(session, shape)
            assert _addresses(again) == where
            assert all(part.shape == shape and part.is_contiguous() for part in again)
            del again

    _in_a_session(work)


def test_what_somebody_holds_stays_as_it_is() -> None:
    def work(session: Session) -> None:
        for hold in (
            lambda parts: parts[-1][1, 5:9],
            lambda parts: parts[-1][1, 5:9].numpy(),
            lambda parts: parts[-1].numpy()[1:2].T,
        ):
            memory = Memory()
            parts = memory.take(session, (2, LEAST))
            for part in parts:
                part.fill_(7)
            held = hold(parts)
            del parts
            others = memory.take(session, (2, LEAST))
            for part in others:
                part.fill_(8)
            assert torch.equal(torch.as_tensor(held), torch.full_like(torch.as_tensor(held), 7))

    _in_a_session(work)


def test_memory_that_does_not_fit_goes() -> None:
    def work(session: Session) -> None:
        memory = Memory()
        for words in (2 * LEAST, 2 * LEAST + 1, LEAST):
            parts = memory.take(session, (1, words))
            assert [part.numel() for part in parts] == [words] * session.core.parts
            (kept,) = {array.size for array in memory._arrays}
            assert kept == words
            del parts
        small = memory.take(session, (1, 5))
        assert [part.numel() for part in small] == [5] * session.core.parts

    _in_a_session(work)


def test_validated_rounds_of_clients_lie_where_the_last_one_did(tmp_path: Path) -> None:
    rounds, clients, parameters = 4, 2, 5 * LEAST
    config = written(tmp_path, clients, rules='norm = 4.0\nbound = "refuse"')
    start = torch.zeros(parameters)
    updates = (
        torch.randn(rounds, clients, parameters, generator=torch.Generator().manual_seed(1)) / 50
    )

    def learn(number: int) -> None:
        client = Client(config, number)
        for update in updates:
            task = client.join(LONG)
            client.submit(task.model + update[number])
            client.result(LONG)

    def several(server: Server) -> tuple[list[Report], list[list[NDArray[np.int64]]]]:
        reports, kept = [], []
        for _ in range(rounds):
            reports.append(server.round(start))
            # Keeping these references prevents a new array at the same address.
            kept.append(server._memory._arrays)
        return reports, kept

    servers = Servers(config, several)
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(learn, range(clients)))
    servers.ended()
    for reports, kept in servers.found:
        assert [array.size for array in kept[0]] == [clients * parameters] * 2
        assert all(arrays is kept[0] for arrays in kept)
        for report, update in zip(reports, updates, strict=True):
            assert report.accepted == [0, 1]
            assert torch.allclose(report.model, update.mean(0), atol=1e-5)
