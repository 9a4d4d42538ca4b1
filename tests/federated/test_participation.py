"""Clients that decide by a secret coin whether they count in a round."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from worlds import LONG, Servers, written

from tacit.errors import RefusedError
from tacit.federated import Client
from tacit.federated.privacy.account import Mechanism, epsilons
from tacit.federated.rounds import participation
from tacit.federated.rounds.client_update import Change, Outgoing
from tacit.federated.rounds.participation import is_drawn, zeroed
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.service.report import Report

SIGMA, SAMPLING = 0.001, 0.25
NOISE = f'noise = "pairs"\nsigma = {SIGMA}\ndivisor = 2.0\nnorm = 4.0\nminimum_clients = 3\n'
RULES = f"{NOISE}sampling = {SAMPLING}\n"
UPDATES = torch.tensor([[0.5, 0.0, 1.0, 0.0], [0.0, -0.5, 1.0, 0.0], [0.25, 0.0, -1.0, 2.0]])


@pytest.mark.parametrize("sampling", [0.01, 0.25, 0.75])
def test_coins_have_their_chance(sampling: float) -> None:
    """Frequencies are within six standard deviations over 10^5 tosses, and tosses are
    independent."""
    count = 100_000
    coins = torch.tensor([is_drawn(sampling) for _ in range(count)], dtype=torch.float64)
    assert abs(float(coins.mean()) - sampling) < 6 * math.sqrt(sampling * (1 - sampling) / count)
    centred = (coins - sampling) / math.sqrt(sampling * (1 - sampling))
    assert abs(float((centred[1:] * centred[:-1]).mean())) < 6 / math.sqrt(count)


def test_who_always_counts_and_who_hardly_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probability never exceeds the declared one."""
    for coin, expected in ((b"\xff" * 8, [True, False]), (b"\0" * 8, [True, True])):
        monkeypatch.setattr(participation.os, "urandom", lambda _, coin=coin: coin)
        assert [is_drawn(sampling) for sampling in (1.0, 1 - 2.0**-53)] == expected
    assert not is_drawn(2.0**-54)


def test_who_is_not_drawn_sends_zeros_that_pass() -> None:
    sent = zeroed(Outgoing(Change({"x": torch.tensor([3.0, -1e30])}), 1.0)).update()
    assert sent.vector.tolist() == [0.0, 0.0]
    assert sent.weight == 0.0
    found = Round.of(Settings()).plain(
        (1, 2), torch.stack([sent.vector, torch.tensor([0.5, 0.5])]), torch.tensor([0.0, 1.0])
    )
    assert found.refused == {}
    assert found.accepted == (1, 2)


def test_those_who_are_drawn_count_and_nobody_is_told_who(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All clients send equal amounts, all are accepted, and receipts are alike. The sum covers the
    drawn clients."""
    config = written(tmp_path, 3, rules=RULES)
    monkeypatch.setattr("tacit.federated.service.client.is_drawn", lambda _: False)
    drawn = {1: [0, 2], 2: []}

    def two(server) -> list[Report]:  # type: ignore[no-untyped-def]
        first = server.round(torch.zeros(4))
        return [first, server.round(first.model)]

    def learn(number: int) -> list[tuple[torch.Tensor, int, float]]:
        client, found = Client(config, number), []
        for at in (1, 2):
            task = client.join(LONG)
            assert client._is_drawn is False
            client._is_drawn = number in drawn[at]
            before = client.traffic[0]
            receipt = client.submit(task.model + UPDATES[number])
            up = client.traffic[0] - before
            found.append((client.result(LONG), up, receipt.weight))
        return found

    servers = Servers(config, two)
    with ThreadPoolExecutor(3) as pool:
        learned = list(pool.map(learn, range(3)))
    expected = UPDATES[[0, 2]].sum(0) / 2
    for rounds in learned:
        for model, _, weight in rounds:
            assert weight == 1.0
            # More than five standard deviations of three parts of noise.
            torch.testing.assert_close(model, expected, rtol=0, atol=0.03)
    # Signatures differ in length by a few bytes.
    sizes = [up for rounds in learned for _, up, _ in rounds]
    assert max(sizes) - min(sizes) < 64
    for first, second in servers.ended():
        assert (first.accepted, second.accepted) == ([0, 1, 2], [0, 1, 2])
        assert first.refused == second.refused == []
        assert second.epsilons == epsilons(Mechanism.of(SIGMA, 3, SAMPLING), 2)
        assert second.epsilons.to_others < second.epsilons.to_server


def test_a_coin_is_tossed_once_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that hands in again uses the same coin, so that no failure causes a new toss."""
    config = written(tmp_path, 3, rules=RULES, seconds=4.0)
    tossed: list[float] = []
    monkeypatch.setattr(
        "tacit.federated.service.client.is_drawn", lambda sampling: tossed.append(sampling) or True
    )
    servers = Servers(config, lambda server: server.round(torch.zeros(4)))
    client = Client(config, 0)
    task = client.join(LONG)
    client.submit(task.model + UPDATES[0])
    with pytest.raises(RefusedError, match="client 0 has submitted something else in round 1"):
        client.submit(task.model + UPDATES[0])
    with pytest.raises(RefusedError, match="too few clients count"):
        client.result(LONG)
    assert tossed == [SAMPLING]
    servers.ended()
