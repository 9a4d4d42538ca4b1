"""Rounds of evaluation: clients report metrics of the new model, and nothing else, of which all
learn the weighted means."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import LONG, Servers, written

from commands import Command
from tacit.errors import EncodingError, MisuseError, SetupError
from tacit.federated import Client, Measured, Task, Trained
from tacit.federated.rounds.settings import Settings
from tacit.federated.service.config import Federation
from tacit.federated.service.server import Server
from tacit.federated.service.terms import Terms

RULES = (
    'norm = 4.0\ngreatest_weight = 4.0\nmetrics = ["loss", "accuracy"]\ngreatest_metric = 20.0\n'
    "evaluate_every = 1\n"
)
WEIGHTS = (1.0, 4.0, 3.0)
START = torch.tensor([0.25, -0.5, 1.0, 0.0])


def measured(task: Task, number: int) -> Measured:
    """Metrics that depend on the model."""
    found = {"loss": float(task.model.sum()) + number, "accuracy": 0.25 * number}
    return Measured(found, WEIGHTS[number])


def expected(model: torch.Tensor, clients: tuple[int, ...] = (0, 1, 2)) -> dict[str, float]:
    weights = torch.tensor([WEIGHTS[each] for each in clients])
    numbers = torch.tensor([float(each) for each in clients])
    mean = float(weights @ numbers / weights.sum())
    return {"loss": float(model.sum()) + mean, "accuracy": 0.25 * mean}


def take_part(config: Path, number: int) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Trains in a round and evaluates its result; returns the new model, the means, and the bytes
    that the evaluation sent."""
    client = Client(config, number)
    task = client.join(LONG)
    assert not task.is_evaluation
    with pytest.raises(MisuseError, match="round 1 is no evaluation: submit"):
        client.report({"loss": 0.0, "accuracy": 0.0})
    client.submit(task.model + 0.5, WEIGHTS[number], {"loss": 0.5, "accuracy": 0.5})
    model = client.result(LONG)
    task = client.join(LONG)
    assert task.is_evaluation
    assert torch.equal(task.model, model)
    with pytest.raises(MisuseError, match="round 2 is an evaluation of the model: report"):
        client.submit(task.model)
    before = client.traffic[0]
    client.report(measured(task, number).metrics, WEIGHTS[number])
    sent = client.traffic[0] - before
    return model, client.result(LONG), sent


@pytest.mark.parametrize(
    "rules",
    [
        'bound = "none"\n',
        'bound = "none"\nword_bits = 32\n',
        "",
        'aggregator = "median"\nchecked = true\n',
        'aggregator = "krum"\nattackers = 0.0\n',
        'protocol = "replicated-malicious"\n',
        "quantile = 0.5\n",
    ],
)
def test_all_learn_the_means_and_the_model_stays(rules: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=RULES + rules)

    def work(server: Server) -> Any:
        trained = server.round(START)
        return trained, server.evaluate(trained.model), server.ended

    servers = Servers(config, work)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda number: take_part(config, number), range(3)))
    for trained, evaluated, ended in servers.ended():
        assert ended == 1
        assert (trained.is_evaluation, evaluated.is_evaluation) == (False, True)
        assert torch.equal(evaluated.model, trained.model)
        assert torch.allclose(trained.model, START + 0.5, atol=1e-3)
        assert evaluated.accepted == [0, 1, 2]
        assert evaluated.metrics == pytest.approx(expected(trained.model), abs=1e-4)
        for model, means, _ in found:
            assert torch.allclose(model, trained.model, atol=1e-6)
            assert means.tolist() == pytest.approx(list(evaluated.metrics.values()))


def test_an_evaluation_sends_no_vector_of_the_models_size(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules=f"{RULES}minimum_clients = 2\n")
    size = 50_000

    def work(server: Server) -> Any:
        return server.evaluate(torch.zeros(size))

    servers = Servers(config, work)

    def one(number: int) -> int:
        client = Client(config, number)
        client.join(LONG)
        before = client.traffic[0]
        client.report({"loss": 1.0, "accuracy": 0.5})
        return client.traffic[0] - before

    with ThreadPoolExecutor(2) as pool:
        assert max(pool.map(one, range(2))) < 4000
    assert all(len(report.model) == size for report in servers.ended())


def test_a_metric_that_is_too_great_is_refused_in_an_evaluation_too(tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=RULES)
    servers = Servers(config, lambda server: server.evaluate(START))

    def one(number: int) -> str | None:
        client = Client(config, number)
        task = client.join(LONG)
        if number == 1:
            told = client._task[0]  # type: ignore[index]
            row = torch.zeros(3, dtype=torch.float64)
            row[2] = 2**40
            client._core.submit(
                told, [row.numpy()], None, factor=1.0, limit=2.0**51, weight=2**22, bits=64
            )
        else:
            client.report(measured(task, number).metrics, WEIGHTS[number])
        return client.refusal(task, LONG)

    with ThreadPoolExecutor(3) as pool:
        refused = list(pool.map(one, range(3)))
    assert refused[0] is refused[2] is None
    assert "a metric is above the rounds' greatest_metric" in str(refused[1])
    for report in servers.ended():
        assert report.accepted == [0, 2]
        assert report.metrics == pytest.approx(expected(START, (0, 2)), abs=1e-4)


def test_served_rounds_are_evaluated(tmp_path: Path) -> None:
    """By the command, after every second of four rounds, with clients that take part by
    themselves."""
    rules = RULES.replace("evaluate_every = 1", "evaluate_every = 2")
    config = written(tmp_path, 3, rules=rules)
    torch.save(START, tmp_path / "start.pt")
    served = [
        Command(
            *("federated", "serve", "--config", config, "--server", at, "--rounds", 4),
            *("--out", tmp_path / f"model-{at}.pt", "--threads", 1),
        )
        for at in range(3)
    ]

    def one(number: int) -> int:
        evaluated: list[int] = []

        def train(task: Task) -> Trained:
            return Trained(task.model + 0.5, WEIGHTS[number], {"loss": 0.0, "accuracy": 0.0})

        def evaluate(task: Task) -> Measured:
            evaluated.append(task.round)
            return measured(task, number)

        client = Client(config, number)
        client.take_part(train, 4, 4 * LONG, evaluate)
        # The last evaluation comes after the last round.
        task = client.join(LONG)
        client.report(*evaluate(task))
        client.result(LONG)
        return len(evaluated)

    try:
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(one, range(3))) == [2, 2, 2]
        for command in served:
            code, output, errors = command.ended()
            assert code == 0, errors
            evaluations = [line for line in output.splitlines() if "evaluated by 3 clients" in line]
            assert [line.partition(":")[0] for line in evaluations] == ["round 3", "round 6"]
            # The weighted mean of the clients' numbers is 1.25, and the model adds up to 8.75.
            assert "mean loss 10; mean accuracy 0.3125" in evaluations[1]
    finally:
        for command in served:
            command.kill()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("evaluate_every = 1", "evaluate_every = 1 without metrics, which are what an evaluation"),
        ('metrics = ["a"]\nevaluate_every = -1', "evaluate_every = -1: it is a count of rounds"),
        (
            'metrics = ["a"]\nevaluate_every = 1\nresult_to = "clients"',
            'evaluate_every with result_to = "clients": a client that is late',
        ),
        (
            'metrics = ["a"]\nevaluate_every = 2\ncoordinator = 2',
            "evaluate_every = 2 with a coordinator, which asks for an evaluation after each round",
        ),
    ],
)
def test_evaluations_that_cannot_be(rules: str, message: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=rules)
    with pytest.raises(SetupError, match=re.escape(message)):
        Federation.read(config)


def test_evaluations_without_their_setting_are_refused(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules=RULES.replace("evaluate_every = 1\n", ""))
    failed = Servers(config, lambda server: server.evaluate(START)).failed()
    # Another server may hear of the first failure before it has its own.
    own = [error for error in failed if isinstance(error, MisuseError)]
    assert own
    assert all("an evaluation needs evaluate_every under [round]" in str(each) for each in own)


def test_what_clients_report(tmp_path: Path) -> None:
    config = written(tmp_path, 2, rules=RULES)
    servers = Servers(config, lambda server: server.evaluate(START))
    clients = [Client(config, number) for number in range(2)]
    with pytest.raises(MisuseError, match="no round was joined"):
        clients[0].report({"loss": 1.0, "accuracy": 0.0})
    for client in clients:
        client.join(LONG)
    with pytest.raises(MisuseError, match="metrics of the names"):
        clients[0].report({"loss": 1.0})
    with pytest.raises(EncodingError, match="the metric loss is nan"):
        clients[0].report({"loss": float("nan"), "accuracy": 0.0})
    with pytest.raises(MisuseError, match="weight is of type str"):
        clients[0].report({"loss": 1.0, "accuracy": 0.0}, "2")  # type: ignore[arg-type]
    for client in clients:
        client.report({"loss": 1.0, "accuracy": 0.5}, 2.0)
    for report in servers.ended():
        assert report.metrics == pytest.approx({"loss": 1.0, "accuracy": 0.5}, abs=1e-5)


def test_terms_of_an_evaluation() -> None:
    settings = Settings(metrics=("a",), evaluate_every=1, aggregator="median", include=("x*",))
    terms = Terms(settings, 1000, 3, is_evaluation=True)
    assert (terms.numbers, terms.rules.aggregator, terms.rules.include) == (3, "fedavg", ())
    assert Terms.from_bytes(terms.to_bytes()) == terms
    broken = terms.to_bytes().replace(b'"is_evaluation": true', b'"is_evaluation": 1')
    with pytest.raises(Exception, match="the servers sent terms that are not of this release"):
        Terms.from_bytes(broken)
