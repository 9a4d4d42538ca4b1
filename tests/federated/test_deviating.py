"""A server that changes its shares: no server continues from the result, and no honest server is
blamed alone."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import LONG, Servers, beyond_the_bound, written

import tacit
from tacit.errors import PeerError, RefusedError
from tacit.federated import Client, validation
from tacit.federated.aggregators import Quotient
from tacit.federated.privacy.account import Account
from tacit.federated.rounds.round_state import Held, Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Reveal, Round, Rounds
from tacit.federated.service.report import Report
from tacit.federated.service.server import Server
from tacit.tensor import SecretTensor

START, CLIENTS = torch.arange(4.0), 2


class Adds(Step):
    """A step in which server w adds to its component c of the tensor ``of``, in its round number
    2·w + c."""

    def __init__(self, of: Callable[[Held], SecretTensor]) -> None:
        self._of, self._calls = of, [0] * 3

    def secret(self, held: Held) -> Held:
        party = tacit.session().party
        who, component = divmod(self._calls[party], 2)
        self._calls[party] += 1
        if party == who:
            self._of(held)._parts[component].add_(1 << 30)
        return held


def before(kind: type[Step], adds: Adds) -> Rounds:
    """Returns rounds with this step inserted before the first step of the given kind."""

    def made(settings: Settings, account: Account | None = None, clients: int = 1) -> Round:
        usual = Round.of(settings, account, clients)
        place = next(at for at, step in enumerate(usual.steps) if isinstance(step, kind))
        return replace(usual, steps=(*usual.steps[:place], adds, *usual.steps[place:]))

    return made


def combined(held: Held) -> SecretTensor:
    found = held.combined.numerator if isinstance(held.combined, Quotient) else held.combined
    assert isinstance(found, SecretTensor)
    return found


def test_nobody_goes_on_from_results_that_are_not_one(tmp_path: Path) -> None:
    """Any server adds to any of its shares before the reveal. Then follows a round without
    changes."""
    config, count = written(tmp_path, CLIENTS, rules="norm = 4.0"), 7

    def rounds(server: Server) -> list[Report]:
        return [server.round(START) for _ in range(count)]

    def learn(number: int) -> list[str | torch.Tensor]:
        client, found = Client(config, number), []
        for _ in range(count):
            task = client.join(LONG)
            assert torch.equal(task.model, START)
            client.submit(task.model + 1)
            try:
                found.append(client.result(LONG))
            except RefusedError as error:
                found.append(str(error).split(": ")[-1])
        return found

    servers = Servers(config, rounds, rounds=before(Reveal, Adds(combined)))
    with ThreadPoolExecutor(CLIENTS) as pool:
        told = list(pool.map(learn, range(CLIENTS)))
    for server, reports in enumerate(servers.ended()):
        one, other = (each for each in range(3) if each != server)
        for report in reports[:-1]:
            assert report.failure == (
                f"the servers came to different results: server {one} or server {other} deviates, "
                "and it is not known which. No server goes on from the result"
            )
            assert torch.equal(report.model, START)
            assert report.accepted == []
        assert reports[-1].failure is None
        torch.testing.assert_close(reports[-1].model, START + 1, rtol=0, atol=1e-5)
    for found in told:
        assert all("the servers came to different results" in str(each) for each in found[:-1])
        assert isinstance(found[-1], torch.Tensor)
        torch.testing.assert_close(found[-1], START + 1, rtol=0, atol=1e-5)


def test_of_unlike_lists_of_who_is_refused_nothing_is_revealed_and_no_client_hears_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server is shown that another client is too long.

    It is left with an equal number of rows, of other clients. The other two servers have the same
    list and may open what both hold.
    """
    config = written(tmp_path, 3, rules="norm = 4.0")
    within, revealed = validation.within_bound, []

    def shown(*given: Any, **named: Any) -> torch.Tensor:
        good = within(*given, **named)
        assert good.tolist() == [True, True, False]
        return good.flip(0) if tacit.session().party == 1 else good

    class Noted(Step):
        def secret(self, held: Held) -> Held:
            revealed.append(held)
            return held

    def rounds(settings: Settings, account: Account | None = None, clients: int = 1) -> Round:
        usual = Round.of(settings, account, clients)
        return replace(usual, steps=(*usual.steps, Noted()))

    monkeypatch.setattr(validation, "within_bound", shown)
    servers = Servers(config, lambda server: server.round(START), rounds=rounds)

    def learn(number: int) -> None:
        client = Client(config, number)
        task = client.join(LONG)
        if number == 2:
            beyond_the_bound(client)
        else:
            client.submit(task.model + 1)
        with pytest.raises((RefusedError, PeerError)):
            client.result(LONG)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(learn, range(3)))
    # Two honest servers differ because of what the third one did: no server is blamed alone.
    for error in servers.failed():
        assert isinstance(error, PeerError)
        assert "need not be one of these two" in str(error)
    for held in revealed:
        assert (list(held.clients), held.refused) == ([0, 1], {2: "norm"})
