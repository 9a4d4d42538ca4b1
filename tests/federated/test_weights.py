"""Weights that clients claim: none is ignored or reduced without a report, and no round has a total
weight of 0."""

import re
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from worlds import LONG, Servers, beyond_the_bound, written

import tacit
from tacit.errors import EncodingError, MisuseError, RefusedError, SubmissionWarning
from tacit.federated import Client
from tacit.federated.privacy.account import Account
from tacit.federated.rounds.client_update import Outgoing
from tacit.federated.rounds.round_state import RoundError, Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round, Rounds
from tacit.federated.service.report import Report

#: The initial model, and the updates.
START, UPDATES = torch.arange(4.0), torch.tensor([[0.25, 0.0, -0.5, 1.0], [0.5, 0.25, 0.0, -1.0]])


class Claims(Step):
    """A dishonest client, which changes its weight in the last step."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def client(self, outgoing: Outgoing) -> Outgoing:
        return replace(outgoing, weight=self.weight)


def claiming(weight: float) -> Rounds:
    """Returns rounds of a client that claims this weight."""

    def made(settings: Settings, account: Account | None = None, clients: int = 1) -> Round:
        usual = Round.of(settings, account, clients)
        return replace(usual, steps=(*usual.steps, Claims(weight)))

    return made


def together(work: Callable[[int], object], clients: int = 2) -> list[object]:
    """Runs all clients in parallel and returns their results."""
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(work, range(clients)))


@pytest.mark.parametrize("aggregator", ["fedavg", "median"])
def test_a_count_is_not_ignored_where_nobody_said_what_counts_in_full(aggregator: str) -> None:
    round_ = Round.of(Settings(aggregator=aggregator, norm=2.0))
    said = (
        "an update of weight 60, and the rounds have no greatest_weight: in the federation's "
        "file, under [round], set greatest_weight = the examples of a client that count at most; "
        "or leave the weight out, so that all weigh the same"
    )
    with pytest.raises(MisuseError, match=re.escape(said)):
        round_.client(UPDATES[0], 60)
    assert round_.client(UPDATES[0]).weight == 1.0
    assert round_.client(UPDATES[0], 0.5).weight == 0.5


def test_a_client_with_a_count_and_no_greatest_weight_hands_in_nothing(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules="norm = 4.0")
    servers = Servers(config, lambda server: server.round(START))

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        task = client.join(LONG)
        with pytest.raises(MisuseError, match="weight 60, and the rounds have no greatest_weight"):
            client.submit(task.model + UPDATES[number], weight=60)
        # Nothing was sent that would prevent this.
        assert client.submit(task.model + UPDATES[number]).weight == 1.0
        return client.result(LONG)

    for model in together(learn):
        torch.testing.assert_close(model, START + UPDATES.mean(0), rtol=0, atol=1e-5)
    assert all(report.refused == [] for report in servers.ended())


def test_a_weight_that_counts_for_less_is_told(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules="norm = 4.0\ngreatest_weight = 40")
    servers = Servers(config, lambda server: server.round(START))

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number)
        task = client.join(LONG)
        receipt = client.submit(task.model + UPDATES[number], weight=[60, 20][number])
        assert receipt.weight == [40, 20][number]
        return client.result(LONG)

    with pytest.warns(
        UserWarning, match="a weight of 60 counts as 40, the rounds' greatest_weight"
    ) as told:
        learned = together(learn)
    (warning,) = told
    assert Path(warning.filename) == Path(__file__)
    for model in learned:
        torch.testing.assert_close(
            model, START + (2 * UPDATES[0] + UPDATES[1]) / 3, rtol=0, atol=1e-5
        )
    servers.ended()


def test_an_update_that_counts_for_less_is_told_to_its_client_alone(tmp_path: Path) -> None:
    """Each client is told how its own update counts, and it counts so.

    One update is shortened, and one is so long that the squares of its values exceed doubles. One
    client exceeds the bound.
    """
    config = written(tmp_path, 4, rules="norm = 4.0\nminimum_clients = 3")
    servers = Servers(config, lambda server: server.round(START))
    ways = [UPDATES[0] / UPDATES[0].norm(), torch.eye(len(START))[1].double()]
    lengths = [1000.0, 1e200]

    def learn(number: int) -> tuple[torch.Tensor, Client]:
        client = Client(config, number)
        task = client.join(LONG)
        if number == 3:
            beyond_the_bound(client)
        elif number == 2:
            client.submit(task.model)
        else:
            client.submit(task.model.double() + lengths[number] * ways[number])
        model = client.result(LONG)
        assert client.receipt is not None
        return model, client

    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        found = list(pool.map(learn, range(4)))
    told = sorted(str(each.message) for each in caught if each.category is SubmissionWarning)
    assert told == [
        "an update of norm 1000 is longer than the rounds' bound of 4: it was multiplied by 0.004, "
        "and "
        "counts as one of that norm",
        "an update of norm 1e+200 is longer than the rounds' bound of 4: it was multiplied by "
        "4e-200, and "
        "counts as one of that norm",
        "round 1: what this client handed in was refused and does not count: its norm is above the "
        "bound, or "
        "above the part of it that its weight allows, or its weight is not from 0 to 1 (or a "
        "server "
        "deviates)",
    ]
    receipts = [client.receipt for _, client in found]
    assert [each and each.shortened for each in receipts] == pytest.approx(
        [0.004, 4e-200, 1, 1], rel=1e-6
    )
    assert [bool(each and each.refused) for each in receipts] == [False, False, False, True]
    expected = START + 4 * (ways[0] + ways[1]).float() / 3
    for model, _ in found:
        torch.testing.assert_close(model, expected, rtol=0, atol=1e-5)
    assert all(report.refused == [(3, "norm", 1)] for report in servers.ended())


def test_what_is_too_small_or_too_large_to_be_sent_is_told(tmp_path: Path) -> None:
    """The round has no result, since one client is refused. That client receives both reasons."""
    config = written(tmp_path, 2, rules="norm = 4.0")
    servers = Servers(config, lambda server: server.round(START))
    client, other = Client(config, 0), Client(config, 1)
    task = client.join(LONG)
    huge = torch.full((len(START),), 1.7e308, dtype=torch.float64)
    with pytest.raises(
        EncodingError, match=r"the norm of what was learned is above 1\.8e\+308, so that nothing"
    ):
        client.submit(huge)
    other.join(LONG)
    with pytest.warns(
        SubmissionWarning, match="a weight of 1e-08 is so small a part of the rounds' greatest"
    ):
        client.submit(task.model + UPDATES[0], weight=1e-8)
    beyond_the_bound(other)
    with pytest.raises(RefusedError, match=r"of 1 client count, and a round needs 2$"):
        client.result(LONG)
    with pytest.raises(
        RefusedError, match="a round needs 2; what this client handed in was refused and does"
    ):
        other.result(LONG)
    servers.ended()


@pytest.mark.parametrize("result_to", ["all", "clients"])
@pytest.mark.parametrize("claimed", [-1.0, -1.5])
def test_a_round_of_no_weight_comes_to_nothing_and_the_next_one_goes_on(
    result_to: str, claimed: float, tmp_path: Path
) -> None:
    """If weights are not checked, a client can make the total weight zero or negative."""
    config = written(tmp_path, 2, rules=f'norm = 4.0\nbound = "none"\nresult_to = "{result_to}"')

    def two(
        server: tacit.federated.service.server.Server,
    ) -> list[Report]:
        first = server.round(START)
        return [first, server.round(first.model)]

    servers = Servers(config, two)
    reason = (
        f"the weights of those who count add up to {1 + claimed:g}, so there is no mean of theirs"
    )

    def learn(number: int) -> torch.Tensor:
        client = Client(config, number, rounds=claiming(claimed) if number else Round.of)
        client.submit(client.join(LONG).model + UPDATES[number])
        with pytest.raises(RefusedError, match=re.escape(reason)):
            client.result(LONG)
        client._rounds = Round.of
        task = client.join(LONG)
        assert torch.equal(task.model, START)
        client.submit(task.model + UPDATES[number])
        return client.result(LONG)

    for model in together(learn):
        torch.testing.assert_close(model, START + UPDATES.mean(0), rtol=0, atol=1e-5)
    for first, second in servers.ended():
        # Servers that do not see the sum cannot see that there is none.
        assert first.failure == (reason if result_to == "all" else None)
        assert torch.equal(first.model, START)
        assert second.failure is None


def test_weights_that_pass_and_add_up_to_nothing() -> None:
    """The servers accept a weight of 0."""
    usual = Round.of(Settings(norm=2.0))
    vectors, weights = torch.zeros(3, 4, dtype=torch.float64), torch.tensor([0.0, 0.0, 2.0])
    with pytest.raises(RoundError, match="the weights of those who count add up to 0") as raised:
        usual.plain((1, 4, 6), vectors, weights)
    assert raised.value.refused == {6: "norm"}
