"""Numbers that travel in 16 or 8 bits: rounding at clients, sums in few bits, and conversion to
words."""

import math
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from worlds import LONG, Servers, written

from tacit.errors import MisuseError, SetupError, SubmissionWarning
from tacit.federated import Client
from tacit.federated.rounds import width
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.rounding import Rounding, rounded, rounded_weight, within
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.service.config import Federation
from tacit.federated.service.report import Report
from tacit.federated.service.terms import Terms
from tacit.federated.validation import UNIT, slack

BITS = (16, 8)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rounding_is_to_neighbours_and_right_on_average() -> None:
    steps = torch.tensor([0.0, 3.0, -2.0, 0.25, -0.75, 7.5, 1e-4]).double()
    draws = torch.stack([rounded(steps, generator(seed)) for seed in range(4000)])
    assert bool(((draws - steps).abs() < 1).all())
    assert torch.equal(draws[:, :3], steps[:3].expand(4000, 3))
    # Five standard deviations, of at most a half, of a mean of 4,000.
    assert float((draws.mean(0) - steps).abs().max()) < 5 * 0.5 / math.sqrt(4000)
    weights = torch.tensor([rounded_weight(0.3, 4) for _ in range(4000)])
    assert set(weights.tolist()) == {0.25, 0.5}
    assert abs(float(weights.mean()) - 0.3) < 5 * 0.125 / math.sqrt(4000)
    assert rounded_weight(1.0, 7) == 1.0


def test_no_chance_rounds_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of a great number and the greatest chance is the next integer, as floats are."""
    monkeypatch.setattr("tacit.federated.rounds.rounding.os.urandom", lambda count: b"\xff" * count)
    monkeypatch.setattr(
        "tacit.federated.rounds.rounding.torch.rand",
        lambda shape, **_: torch.full(shape, 1 - 2.0**-53, dtype=torch.float64),
    )
    assert rounded_weight(1.0, 7) == 1.0
    grid = width.grid(8, is_lifted=False, clients=3)
    vector = torch.tensor([5.0, -5.0, 0.5], dtype=torch.float64)
    sent = Rounding(grid, False, True).client(Outgoing.of(Update(vector, 1.0)))
    steps = sent.update().vector * grid.steps
    assert float(steps.abs().max()) == grid.limit


def test_a_receipt_has_the_weight_that_was_rounded(tmp_path: Path) -> None:
    rules = 'norm = 1.0\nbound = "none"\nword_bits = 8\ngreatest_weight = 10.0\n'
    config = written(tmp_path, 2, rules=rules)
    servers = Servers(config, lambda server: server.round(torch.zeros(3)))
    for client in [Client(config, number) for number in range(2)]:
        model = client.join(LONG).model
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            receipt = client.submit(model + 0.25, 4.0)
        # Of 63 steps, these are the neighbours of 4 of 10.
        assert receipt.weight in (pytest.approx(250 / 63), pytest.approx(260 / 63))
    assert all(report.accepted == [0, 1] for report in servers.ended())


def test_a_rounded_vector_keeps_to_its_norm() -> None:
    """It is shortened only if several draws are too long."""
    long = torch.full((400,), 0.5, dtype=torch.float64)
    assert float(long.norm()) == 10.0
    # About 200 of 400 values become 1, so norms are about 14.
    found, factor = within(long.clone(), 11.0, generator())
    assert 0 < float(found.norm()) <= 11.0
    assert 0.5 < factor < 1
    found, factor = within(long.clone(), 20.0, generator())
    assert factor == 1.0
    assert torch.equal(found, rounded(long, generator()))
    # Nothing but zeros is short enough here.
    found, _ = within(long.clone(), 0.5, generator())
    assert not bool(found.any())


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("clients", [1, 3, 100])
def test_sums_of_steps_do_not_wrap(bits: int, clients: int) -> None:
    found = width.grid(bits, is_lifted=False, clients=clients, reach=0.25)
    assert 1 <= clients * found.limit < 2 ** (bits - 1) <= clients * (found.limit + 1)
    assert found.steps * 0.25 == found.limit == found.weight_steps


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("reach", [1.0, 0.3, 1e-3, 1e-9, 50.0])
def test_lifted_steps_are_whole_words(bits: int, reach: float) -> None:
    found = width.grid(bits, is_lifted=True, clients=3, reach=reach)
    step, weight_step = found.factors
    assert step >= 1
    assert step * found.steps == UNIT == weight_step * found.weight_steps
    assert found.weight_steps <= found.limit == 2 ** (bits - 1) - 1
    # Whatever is in reach is sent, and the next smaller step would not do.
    assert found.limit * step >= min(reach, 1.0) * UNIT > found.limit * (step - 1)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("is_sum", [True, False])
def test_a_client_sends_what_keeps_to_the_bound(bits: int, is_sum: bool) -> None:
    """Rounding lengthens vectors, and the servers compare their words exactly."""
    settings = Settings(
        aggregator="fedavg" if is_sum else "median", word_bits=bits, greatest_value=0.2
    )
    grid = settings.grid(3)
    assert grid is not None
    rules = Round.of(replace(settings, greatest_weight=9.0), clients=3)
    for seed in range(20):
        vector = torch.randn(600, generator=generator(seed), dtype=torch.float64)
        sent = rules.client(vector, weight=4.0)
        steps = sent.vector * grid.steps
        assert torch.allclose(steps, steps.round(), atol=1e-6, rtol=0)
        words, weight = steps.round().long() * grid.factors[0], round(sent.weight * UNIT)
        assert weight % grid.factors[1] == 0
        allowed = weight + slack(600) if is_sum else UNIT
        assert int((words**2).sum()) <= min(allowed, UNIT) ** 2
        assert float(sent.vector.norm()) > 0.5 * (sent.weight if is_sum else 1)


def up(client: Client, update: torch.Tensor, weight: float) -> tuple[torch.Tensor, int]:
    task = client.join(LONG)
    before = client.traffic[0]
    client.submit(task.model + update, weight)
    sent = client.traffic[0] - before
    return client.result(LONG), sent


def federated(
    folder: Path, updates: torch.Tensor, weights: list[float], rules: str
) -> tuple[torch.Tensor, Report, int]:
    """Runs a round; returns its result, a server's report, and a client's bytes."""
    folder.mkdir()
    config = written(folder, len(updates), rules=f"greatest_weight = 4.0\n{rules}")
    servers = Servers(config, lambda server: server.round(torch.zeros(updates.shape[1])))
    clients = [Client(config, number) for number in range(len(updates))]
    with ThreadPoolExecutor(len(updates)) as pool:
        found = list(pool.map(up, clients, updates, weights))
    reports = servers.ended()
    assert all(torch.equal(result, found[0][0]) for result, _ in found)
    return found[0][0], reports[0], max(sent for _, sent in found)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("result_to", ["all", "clients"])
def test_a_sum_in_few_bits_is_the_mean_but_for_rounding(
    bits: int, result_to: str, tmp_path: Path
) -> None:
    """Includes values at the greatest that all clients send with one sign."""
    size, weights = 8001, [1.0, 4.0, 4.0]
    updates = torch.randn(3, size, generator=generator(4)).clamp(-2, 2) / 8
    updates[:, 0], updates[:, 1] = 0.25, -0.25
    rules = f'bound = "none"\nnorm = 0.5\nresult_to = "{result_to}"\n'
    _, _, whole = federated(tmp_path / "whole", updates, weights, rules)
    narrow = f"{rules}word_bits = {bits}\ngreatest_value = 0.25\n"
    found, report, sent = federated(tmp_path / "narrow", updates, weights, narrow)
    limit = (2 ** (bits - 1) - 1) // 3
    assert report.step == pytest.approx(0.25 / limit)
    assert report.upload == 8 * math.ceil((size + 1) * bits / 64)
    assert sent < whole * bits / 64 + 4000
    # A weight of a quarter has one of two numbers of steps.
    possible = [torch.tensor([first / limit, 1, 1]) for first in {limit // 4, math.ceil(limit / 4)}]
    errors = [(found - (each @ updates) / each.sum()).abs() for each in possible]
    # At most a step of each client, divided by the sum of the weights.
    assert min(float(error.max()) for error in errors) <= 3 * report.step / 2.2
    # Errors are random: the mean over all values has far less.
    means = [(found - (each @ updates) / each.sum()).mean().abs() for each in possible]
    assert min(map(float, means)) < 5 * 0.5 * math.sqrt(3) * report.step / 2.2 / math.sqrt(size)
    assert min(float(error.max()) for error in errors) > 0


@pytest.mark.parametrize("protocol", ["replicated", "replicated-malicious"])
@pytest.mark.parametrize(
    ("bits", "aggregator", "bound"),
    [(16, "fedavg", "refuse"), (8, "fedavg", "clip"), (16, "median", "refuse")],
)
def test_servers_convert_numbers_that_they_validate(
    bits: int, aggregator: str, bound: str, protocol: str, tmp_path: Path
) -> None:
    updates = torch.randn(3, 37, generator=generator(7)) / 10
    rules = (
        f'aggregator = "{aggregator}"\nbound = "{bound}"\nnorm = 2.0\nword_bits = {bits}\n'
        f'greatest_value = 0.5\nprotocol = "{protocol}"\n'
    )
    found, report, _ = federated(tmp_path / "narrow", updates, [4.0] * 3, rules)
    expected = updates.mean(0) if aggregator == "fedavg" else updates.median(0).values
    assert report.accepted == [0, 1, 2]
    assert report.upload == 8 * math.ceil(38 * bits / 64)
    # A whole number of words of 2^-22 bounds.
    assert report.step == 2.0 * math.ceil(0.25 * UNIT / (2 ** (bits - 1) - 1)) / UNIT
    assert float((found - expected).abs().max()) <= 1.01 * report.step
    assert not torch.allclose(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("bits", BITS)
def test_whatever_a_client_sends_is_a_number(bits: int, tmp_path: Path) -> None:
    """The least and the greatest numbers are converted exactly, and validated."""
    config = written(tmp_path, 3, rules=f"norm = 2.0\nword_bits = {bits}\nminimum_clients = 2\n")
    servers = Servers(config, lambda server: server.round(torch.zeros(40)))
    numbers = torch.tensor([-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1] * 20)

    def hand_in(number: int) -> str | None:
        client = Client(config, number)
        task = client.join(LONG)
        if number:
            client.submit(task.model + 0.1)
        else:
            told = client._task[0]  # type: ignore[index]
            client._core.submit(
                told, [numbers.numpy()], None, factor=1.0, limit=2.0**40, weight=-1, bits=bits
            )
        return client.refusal(task, LONG)

    with ThreadPoolExecutor(3) as pool:
        refused = list(pool.map(hand_in, range(3)))
    assert refused[0] is not None
    assert "norm is above the bound" in refused[0]
    assert refused[1:] == [None, None]
    for report in servers.ended():
        assert report.accepted == [1, 2]
        assert report.refused == [(0, "norm", 1)]
        assert float((report.model - 0.1).abs().max()) <= report.step


def test_noise_is_accounted_for_as_without_rounding(tmp_path: Path) -> None:
    """The bound holds for what was rounded, so σ bounds have the same ε."""
    spent = []
    for bits in (64, 16):
        rules = f'norm = 2.0\nword_bits = {bits}\nnoise = "pairs"\nsigma = 0.001\ndivisor = 3.0\n'
        found, report, _ = federated(
            tmp_path / str(bits), torch.full((3, 50), 0.1), [4.0] * 3, rules
        )
        assert float((found - 0.1).abs().max()) < 0.01
        spent.append(report.epsilons)
    assert spent[0] == spent[1] is not None


def test_values_beyond_the_greatest_are_cut_and_told(tmp_path: Path) -> None:
    updates = torch.zeros(2, 9)
    updates[:, 3], updates[:, 5] = 5.0, -0.5
    rules = 'bound = "none"\nnorm = 8.0\nword_bits = 16\ngreatest_value = 0.5\n'
    with pytest.warns(SubmissionWarning, match="1 value of the update were beyond the rounds'"):
        found, report, _ = federated(tmp_path / "cut", updates, [4.0] * 2, rules)
    assert float((found[[3, 5]] - torch.tensor([0.5, -0.5])).abs().max()) <= report.step


def test_what_rounding_shortened_is_told(tmp_path: Path) -> None:
    """Not as if the update itself had been too long."""
    config = written(tmp_path, 2, rules="norm = 1.0\nword_bits = 8\ngreatest_value = 0.4\n")
    servers = Servers(config, lambda server: server.round(torch.zeros(60_000)))
    for client in [Client(config, number) for number in range(2)]:
        model = client.join(LONG).model
        with pytest.warns(SubmissionWarning) as told:
            receipt = client.submit(model + 0.99 / math.sqrt(60_000))
        assert [str(each.message)[:41] for each in told] == [
            "rounding to steps made an update longer th"[:41]
        ]
        assert 0.5 < receipt.by_rounding < 1 == receipt.shortened
    assert all(report.accepted == [0, 1] for report in servers.ended())


def test_steps_that_are_too_long_for_a_vector_are_refused() -> None:
    """The remedy is a smaller greatest value."""
    settings = Settings(word_bits=8, greatest_value=1.0)
    vector = torch.full((100_000,), 1 / math.sqrt(100_000), dtype=torch.float64)
    with pytest.raises(MisuseError, match="agree on a smaller greatest_value"):
        Round.of(settings, clients=3).client(vector)
    assert Round.of(replace(settings, greatest_value=0.01), clients=3).client(vector).weight == 1


@pytest.mark.parametrize(
    ("settings", "clients", "message"),
    [
        (Settings(word_bits=12), 2, "word_bits = 12: numbers travel in 64, 32, 16 or 8 bits"),
        (
            Settings(word_bits=8, bound="none"),
            128,
            "word_bits = 8 with 128 clients: the sum of that many numbers does not fit; at most "
            "127 clients are possible: take word_bits = 16",
        ),
        (
            Settings(greatest_value=0.5),
            2,
            "greatest_value = 0.5 is for word_bits = 16 or 8, to whose steps clients round",
        ),
        (Settings(word_bits=16, greatest_value=-1.0), 2, "greatest_value = -1.0: it is a finite"),
        (
            Settings(aggregator="fltrust", root="server-1", word_bits=16),
            3,
            "word_bits = 16 with root = 'server-1': a server's own vector does not travel",
        ),
    ],
)
def test_what_few_bits_are_not_for(settings: Settings, clients: int, message: str) -> None:
    with pytest.raises(MisuseError, match=re.escape(message)):
        Round.of(settings, clients=clients)


def test_what_follows_a_remedy_is_taken(tmp_path: Path) -> None:
    Round.of(Settings(word_bits=16, bound="none"), clients=128)
    Round.of(Settings(word_bits=8), clients=128)
    Round.of(Settings(aggregator="fltrust", root=1, word_bits=16), clients=3)
    config = written(tmp_path, 128, rules='bound = "none"\nword_bits = 8')
    with pytest.raises(SetupError, match=r"\[round\]: word_bits = 8 with 128 clients"):
        Federation.read(config)
    small = Terms(Settings(word_bits=16), 3, clients=2)
    with pytest.raises(MisuseError, match=r"for a model of 3 values, .*: take word_bits = 64"):
        small.check_words()
    replace(small, settings=Settings(word_bits=64)).check_words()
    replace(small, settings=Settings(word_bits=16, bound="none")).check_words()
