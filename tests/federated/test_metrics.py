"""Metrics that clients report with their updates, of which servers learn means only."""

import math
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import LONG, Servers, written

import tacit
from tacit import fixed
from tacit.errors import EncodingError, MisuseError, SetupError, SubmissionWarning
from tacit.federated import Client
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.metrics import Measure, with_metrics
from tacit.federated.rounds.round_state import SERVERS_ROOT, Held, RoundError, Step
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.rounds.submission import Submitted
from tacit.federated.service.config import Federation
from tacit.federated.service.server import Server
from tacit.federated.validation import VECTOR_BITS, metrics_fit
from tacit.sessions import session

WEIGHTS = (1.0, 4.0, 3.0)
METRICS = [
    {"loss": 2.5, "accuracy": 0.125},
    {"loss": 0.5, "accuracy": 0.75},
    {"loss": 0, "accuracy": 1},
]
RULES = 'norm = 4.0\ngreatest_weight = 4.0\nmetrics = ["loss", "accuracy"]\ngreatest_metric = 5.0\n'
UPDATES = torch.tensor([[0.5, -1.0, 0.25, 0.0], [1.0, 0.5, 0.0, -0.5], [-0.5, 0.25, 1.0, 0.5]])


def mean_of(name: str, clients: tuple[int, ...] = (0, 1, 2), weights: Any = WEIGHTS) -> float:
    total = sum(weights[client] for client in clients)
    return sum(weights[client] * METRICS[client][name] for client in clients) / total


def learned(config: Path, clients: range = range(3)) -> list[torch.Tensor]:
    def one(number: int) -> torch.Tensor:
        client = Client(config, number)
        task = client.join(LONG)
        client.submit(task.model + UPDATES[number], WEIGHTS[number], METRICS[number])
        return client.result(LONG)

    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(one, clients))


@pytest.mark.parametrize(
    "rules",
    [
        'bound = "none"\n',
        'bound = "none"\nword_bits = 32\nresult_to = "clients"\n',
        "",
        'bound = "clip"\nresult_to = "clients"\n',
        'aggregator = "median"\n',
        'protocol = "replicated-malicious"\n',
        "checked = true\n",
    ],
)
def test_servers_learn_means_and_the_model_is_as_without(rules: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=RULES + rules)
    servers = Servers(config, lambda server: server.round(torch.zeros(4)))
    found = learned(config)
    weights = torch.tensor(WEIGHTS)
    expected = UPDATES.median(0).values if "median" in rules else weights @ UPDATES / weights.sum()
    for model in found:
        assert torch.allclose(model, expected, atol=1e-3)
    for report in servers.ended():
        assert list(report.metrics) == ["loss", "accuracy"]
        for name, value in report.metrics.items():
            assert value == pytest.approx(mean_of(name), abs=1e-5)


def test_a_root_reports_nothing(tmp_path: Path) -> None:
    """Neither a server's vector nor its weight counts among the metrics."""
    config = written(tmp_path, 3, rules=f'{RULES}aggregator = "fltrust"\nroot = "server-1"\n')

    def work(server: Server) -> Any:
        root = torch.ones(4) if server.number == 1 else None
        return server.round(torch.zeros(4), root)

    servers = Servers(config, work)
    learned(config)
    for report in servers.ended():
        assert report.accepted == [0, 1, 2]
        assert report.metrics["loss"] == pytest.approx(mean_of("loss"), abs=1e-5)


class Watched(Step):
    """A step that records when it has ended."""

    def __init__(self, step: Step, ended: list[str]) -> None:
        self._step, self._ended = step, ended

    def secret(self, held: Held) -> Held:
        held = self._step.secret(held)
        self._ended.append(type(self._step).__name__)
        return held


@pytest.mark.parametrize(
    ("settings", "root", "worst", "is_enough"),
    [
        ({"root": 1}, 1, 0.5, False),
        ({"root": "server-0"}, SERVERS_ROOT, 0.5, False),
        ({"root": "server-0", "minimum_clients": 2}, SERVERS_ROOT, 0.5, True),
        # One client's metric is too great, so that one fewer counts.
        ({"root": "server-0", "minimum_clients": 2}, SERVERS_ROOT, 1.5, False),
        ({"root": 1, "quantile": 0.5, "metrics": ()}, 1, 0.5, False),
        ({"root": 1, "quantile": 0.5, "metrics": (), "minimum_clients": 2}, 1, 0.5, True),
    ],
)
def test_nothing_is_opened_of_too_few_clients(
    settings: dict[str, Any], root: int, worst: float, is_enough: bool
) -> None:
    """The root is none of them, whoever owns it."""
    rules = {"minimum_clients": 3, "metrics": ("a", "b", "c"), **settings}
    values = torch.full((3, 3), 0.5, dtype=torch.float64)
    values[2, 1] = worst

    def program() -> tuple[str, list[str]]:
        is_first = session().party == 0
        with tacit.fraction_bits(VECTOR_BITS):
            rows, weights, metrics = (
                tacit.share(each if is_first else None, owner=0)
                for each in (values / 2, torch.ones(3, dtype=torch.float64), values)
            )
        usual = Round.of(Settings(aggregator="fltrust", **rules), clients=3)
        ended: list[str] = []
        round_ = replace(usual, steps=[Watched(step, ended) for step in usual.steps])
        sent = Submitted([0, root, 2], rows, weights, metrics if rules["metrics"] else None)
        try:
            round_.secret(sent)
        except RoundError as error:
            return str(error), ended
        return "", ended

    opens = "Count" if "quantile" in settings else "Measure"
    for failure, ended in tacit.launch(program):
        assert ("count, and a round needs" in failure) is not is_enough
        assert (opens in ended) is is_enough


def test_there_are_no_means_of_weights_that_add_up_to_nothing() -> None:
    """What servers saw is in their next message, means or not."""

    def program() -> tuple[tuple[float, ...], bool]:
        current = session()
        is_first = current.party == 0
        with tacit.fraction_bits(VECTOR_BITS), current.using(scale=fixed.Scale(VECTOR_BITS)):
            rows = tacit.share(torch.zeros(2, 2) if is_first else None, owner=0)
            held = Held((0, 1), rows, rows[:, 0], metrics=rows)
            found = Measure(5.0, False).secret(held)
        return found.means, found.metrics is None

    assert tacit.launch(program) == [((), True)] * 3


@pytest.mark.parametrize("word", [2**22 + 2, -(2**22) - 2, 2**50, -(2**50)])
def test_a_metric_beyond_the_greatest_is_refused_unseen(word: int, tmp_path: Path) -> None:
    """Whatever the word is; the round goes on without its client."""
    config = written(tmp_path, 3, rules=RULES)
    servers = Servers(config, lambda server: server.round(torch.zeros(4)))

    def hand_in(number: int) -> str | None:
        client = Client(config, number)
        task = client.join(LONG)
        if number == 1:
            told = client._task[0]  # type: ignore[index]
            _submitted(client, told, word)
        else:
            client.submit(task.model + UPDATES[number], WEIGHTS[number], METRICS[number])
        return client.refusal(task, LONG)

    with ThreadPoolExecutor(3) as pool:
        refused = list(pool.map(hand_in, range(3)))
    assert refused[0] is refused[2] is None
    assert "a metric is above the rounds' greatest_metric" in str(refused[1])
    for report in servers.ended():
        assert report.accepted == [0, 2]
        assert report.refused == [(1, "metric", 1)]
        assert report.metrics["loss"] == pytest.approx(mean_of("loss", (0, 2)), abs=1e-5)


def _submitted(client: Client, told: Any, word: int) -> None:
    """Hands in a vector of zeros of weight 1 with this word as its last metric."""
    row = torch.zeros(6, dtype=torch.float64)
    row[5] = word
    client._core.submit(told, [row.numpy()], None, factor=1.0, limit=2.0**51, weight=2**22, bits=64)


def test_any_word_that_does_not_fit_is_found() -> None:
    """At the edges of what fits, and where differences wrap around."""
    weight = 2**20
    fits = [0, weight, -weight, weight + 1, -weight - 1]
    others = [weight + 2, -weight - 2, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63 - 1 - weight]
    words = torch.tensor([[0, word] for word in fits + others])

    def judged() -> torch.Tensor:
        current = session()
        first = current.party == 0
        with current.using(scale=fixed.Scale(VECTOR_BITS)):
            shared = tacit.share(words if first else None, owner=0)
            weights = tacit.share(torch.full((len(words),), weight) if first else None, owner=0)
            return metrics_fit(shared, weights)

    found = tacit.launch(judged)[0]
    assert found.tolist() == [True] * len(fits) + [False] * len(others)


def sent(weight: float = 0.5) -> Outgoing:
    return Outgoing.of(Update(torch.ones(2, dtype=torch.float64), weight))


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (None, MisuseError, "metrics of the names []; the rounds have ['accuracy', 'loss']: give"),
        ({"loss": 1.0}, MisuseError, "metrics of the names ['loss']; the rounds have"),
        ({"loss": 1.0, "accuracy": "1"}, MisuseError, "the metric accuracy is of type str, not a"),
        ({"loss": math.nan, "accuracy": 1.0}, EncodingError, "the metric loss is nan, which is no"),
        ({"loss": math.inf, "accuracy": 1.0}, EncodingError, "the metric loss is inf, which is no"),
    ],
)
def test_what_is_no_metric(
    given: Mapping[str, Any] | None, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        with_metrics(sent(), given, ("loss", "accuracy"), 5.0)


def test_metrics_are_sent_times_the_weight(tmp_path: Path) -> None:
    found, cut = with_metrics(
        replace(sent(), shortened=0.75), {"accuracy": -2.5, "loss": 7.0}, ("loss", "accuracy"), 5.0
    )
    assert found.update().vector.tolist() == [1.0, 1.0, 0.5, -0.25]
    assert (cut, found.weight, found.shortened) == (["loss"], 0.5, 0.75)
    with pytest.raises(MisuseError, match="metrics of the names"):
        with_metrics(sent(), {"loss": 1.0}, (), 5.0)
    config = written(tmp_path, 2, rules=RULES)
    servers = Servers(config, lambda server: server.round(torch.zeros(4)))
    clients = [Client(config, number) for number in range(2)]
    for client in clients:
        model = client.join(LONG).model
        with pytest.warns(SubmissionWarning, match="the metric loss is beyond the rounds' greates"):
            client.submit(model, 4.0, {"loss": 17.0, "accuracy": 0.5})
    for report in servers.ended():
        assert report.metrics == pytest.approx({"loss": 5.0, "accuracy": 0.5}, abs=1e-5)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('metrics = "loss"', "metrics = 'loss' is not a list of texts"),
        ("metrics = [1]", "metrics has a name that is not made of letters, digits and underscores"),
        ('metrics = ["a b"]', "metrics has a name that is not made of letters, digits and undersc"),
        ('metrics = ["a", "a"]', "metrics has 2 names: give at most 64, each once"),
        (f"metrics = {[f'm{at}' for at in range(65)]}", "metrics has 65 names: give at most 64"),
        ("greatest_metric = 0", "greatest_metric = 0: it is a finite number above 0"),
        (
            'metrics = ["a"]\nnoise = "pairs"\nsigma = 1.0\ndivisor = 2.0',
            "metrics with noise: means of metrics are revealed without noise, so no ε covers them",
        ),
        (
            'metrics = ["a"]\nword_bits = 16',
            "metrics with word_bits = 16: metrics travel as numbers",
        ),
    ],
)
def test_metrics_that_do_not_go_together(rules: str, message: str, tmp_path: Path) -> None:
    config = written(tmp_path, 3, rules=rules)
    with pytest.raises(SetupError, match=re.escape(message)):
        Federation.read(config)
