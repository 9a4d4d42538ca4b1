"""Order within a round: the account before the result, and all servers before any client."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from views import watch
from worlds import LONG, Servers, written

import tacit
from tacit.errors import TacitError
from tacit.federated import Client
from tacit.federated.privacy.account import Account
from tacit.federated.rounds.settings import Settings, mechanism_of
from tacit.federated.rounds.steps import Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.service.server import Server
from tacit.federated.validation import COIN, VECTOR_BITS
from tacit.fixed import Scale
from tacit.tensor import SecretTensor

START = torch.linspace(-1, 1, 6)


class Full(Account):
    """An account on a full disk."""

    def spend(self) -> None:
        """Raises an error of the full disk."""
        raise OSError("no space left on device")


def test_a_round_that_cannot_be_spent_shows_nothing_of_its_result(tmp_path: Path) -> None:
    """The account is written first, so that no failure makes a round free."""
    clients, size, sigma = 2, 50, 1.5

    def program() -> list[Any]:
        session = tacit.session()
        vectors, weights = (
            SecretTensor(
                tuple(torch.zeros(shape, dtype=torch.int64) for _ in range(2)),
                Scale(VECTOR_BITS),
                session,
                torch.float64,
            )
            for shape in ((clients, size), (clients,))
        )
        settings = Settings(noise="pairs", sigma=sigma, divisor=2.0)
        account = Full(tmp_path / str(session.party), mechanism_of(settings, 1e-5))
        round_, watched = Round.of(settings, account), watch(components=False)
        with pytest.raises(OSError, match="no space left"):
            round_.secret(Submitted([3, 5], vectors, weights))
        return watched.shown

    for coin, verdicts in tacit.launch(program):
        assert isinstance(coin, bytes)
        assert len(coin) == COIN
        assert isinstance(verdicts, np.ndarray)
        assert verdicts.size == clients


def test_no_client_is_told_a_result_that_not_all_servers_stand_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server has another public value at the very end, after the result has been opened."""
    usual = Server._keep

    def keep(server: Server, *args: Any) -> None:
        server._session.core.note_public("the result", bytes([server.number == 2]))
        usual(server, *args)

    monkeypatch.setattr(Server, "_keep", keep)
    config = written(tmp_path, 2, rules='norm = 2.0\nbound = "clip"\n')

    def learn(number: int) -> torch.Tensor | TacitError:
        client = Client(config, number)
        client.submit(client.join(LONG).model + 0.1)
        try:
            return client.result(LONG)
        except TacitError as error:
            return error

    servers = Servers(config, lambda server: server.round(START))
    with ThreadPoolExecutor(2) as pool:
        assert all(isinstance(found, TacitError) for found in pool.map(learn, range(2)))
    assert all(isinstance(found, TacitError) for found in servers.failed())
