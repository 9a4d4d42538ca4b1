"""Flower's evaluation through a federation: its server gets means, and no node's own metrics."""

from functools import partial
from pathlib import Path
from typing import Any

import flowers
import pytest
import torch
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from worlds import Servers, written

from tacit.federated import Client, Receipt
from tacit.federated.flower import SecureAggregation, secure_mod
from tacit.federated.service.server import Server

NODES, SIZE, ROUNDS = len(flowers.COUNTS), 15, 2

RULES = (
    f"coordinator = {NODES}\nnorm = 20.0\ngreatest_weight = 100\n"
    'metrics = ["accuracy"]\nevaluate_every = 1\n'
)


def train(msg: Message, ctxt: Context) -> Message:
    """As Flower's users train; the reply has the metric, too."""
    reply = flowers.train(msg, ctxt)
    record = MetricRecord({**reply.content["metrics"], "accuracy": 0.5})
    return Message(RecordDict({**reply.content, "metrics": record}), reply_to=msg)


def evaluate(msg: Message, ctxt: Context) -> Message:
    """A metric that depends on the model that was sent."""
    client = int(ctxt.node_config["partition-id"])
    mean = float(msg.content["arrays"]["layer.weight"].numpy().mean())
    metrics = {"accuracy": mean / 10 + client / 10, "num-examples": flowers.COUNTS[client]}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)


def app(mods: list[Any]) -> ClientApp:
    made = ClientApp(mods=mods)
    made.train()(train)
    made.evaluate()(evaluate)
    return made


def strategy(**more: Any) -> FedAvg:
    return FedAvg(
        min_train_nodes=NODES, min_evaluate_nodes=NODES, min_available_nodes=NODES, **more
    )


def served(server: Server) -> list[Any]:
    """Runs the rounds as the command does."""
    reports, model = [], torch.zeros(SIZE)
    for _ in range(ROUNDS):
        reports.append(server.round(model))
        reports.append(server.evaluate(model))
    return reports


def results(mods: list[Any], wrapped: Any, **more: Any) -> tuple[Any, list[Message]]:
    found: list[Any] = []

    def main(grid: Grid) -> None:
        found.append(wrapped(strategy(**more)).start(grid, flowers.model(), ROUNDS))

    messages = flowers.simulated(app(mods), main)
    return found[0], messages


def test_flowers_server_gets_the_means_alone(tmp_path: Path) -> None:
    config = written(tmp_path, NODES + 1, rules=RULES)
    servers = Servers(config, served)
    mod = partial(secure_mod, federation=config)
    found, messages = results([mod], lambda inner: SecureAggregation(inner, config))
    reports = servers.ended()
    plain, seen = results([], lambda inner: inner)
    for number in range(1, ROUNDS + 1):
        mine, theirs = (each.evaluate_metrics_clientapp[number] for each in (found, plain))
        assert dict(mine) == {"accuracy": pytest.approx(theirs["accuracy"], abs=1e-4)}
    for each in reports:
        assert [report.is_evaluation for report in each] == [False, True] * ROUNDS
        assert [report.accepted for report in each] == [list(range(NODES))] * 2 * ROUNDS
        means = [report.metrics["accuracy"] for report in each[1::2]]
        wanted = [plain.evaluate_metrics_clientapp[at]["accuracy"] for at in (1, 2)]
        assert means == pytest.approx(wanted, abs=1e-4)

    def own(messages: list[Message]) -> list[float]:
        """What nodes told Flower's server of their own accuracy."""
        return [
            record["accuracy"]
            for message in messages
            if message.metadata.reply_to_message_id
            for record in message.content.metric_records.values()
            if "accuracy" in record
        ]

    assert own(messages) == []
    assert len(own(seen)) == 2 * NODES * ROUNDS


def test_evaluations_that_flower_does_not_ask_for_end_at_once(tmp_path: Path) -> None:
    """With half a minute for a round, these would last until then."""
    config = written(tmp_path, NODES + 1, rules=RULES, seconds=30.0)
    servers = Servers(config, served)
    mod = partial(secure_mod, federation=config)
    found, _ = results([mod], lambda inner: SecureAggregation(inner, config), fraction_evaluate=0.0)
    assert dict(found.evaluate_metrics_clientapp) == {}
    for each in servers.ended():
        assert [report.is_evaluation for report in each] == [False, True] * ROUNDS
        assert all(report.accepted == [] for report in each[1::2])
        # The last one is ended by nobody.
        assert "the coordinator says that nobody else comes" in str(each[1].failure)


def test_a_refused_metric_and_a_failure_are_in_own_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first evaluation one client cheats, and in the second one fails."""
    config = written(tmp_path, NODES + 1, rules=f'{RULES}result_to = "clients"\n')
    servers = Servers(config, served)
    honest = Client.report

    def report(self: Client, metrics: Any, weight: float = 1.0) -> Receipt:
        assert self._task is not None
        told, task = self._task
        if (self.number, task.round) != (1, 2):
            return honest(self, metrics, weight)
        # More than greatest_metric permits, which honest clients cut off.
        row = torch.tensor([0.0, 2.0**40], dtype=torch.float64).numpy()
        self._core.submit(told, [row], None, factor=1.0, limit=2.0**51, weight=2**22, bits=64)
        return Receipt(task.round, "", 1.0)

    def failing(msg: Message, ctxt: Context) -> Message:
        if msg.content["config"]["server-round"] == 2 and ctxt.node_config["partition-id"] == 0:
            raise ValueError("a row of data")
        return evaluate(msg, ctxt)

    monkeypatch.setattr(Client, "report", report)
    made = ClientApp(mods=[partial(secure_mod, federation=config)])
    made.train()(train)
    made.evaluate()(failing)
    found: list[Any] = []

    def main(grid: Grid) -> None:
        chosen = SecureAggregation(strategy(), config)
        found.append(chosen.start(grid, flowers.model(), ROUNDS))

    messages = flowers.simulated(made, main)
    for reports in servers.ended():
        assert [report.accepted for report in reports] == [[0, 1, 2], [0, 2], [0, 1, 2], [1, 2]]
    said = [each.message for each in caplog.records if "and does not count" in each.message]
    assert len(said) == 1
    assert said[0].startswith("round 2: what this client handed in was refused and does not count")
    assert "a metric is above the rounds' greatest_metric" in said[0]
    # Flower's server says which node failed, and not why.
    failed = [each.message for each in caplog.records if "aggregate_evaluate: node" in each.message]
    assert len(failed) == 1
    assert "its own log says why" in failed[0]
    assert not any(
        "row" in str(message.error.reason) for message in messages if message.has_error()
    )
    assert list(found[0].evaluate_metrics_clientapp) == [1, 2]
