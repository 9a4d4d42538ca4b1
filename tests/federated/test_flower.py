"""Flower's rounds through a federation give the same models, and no message of Flower holds an
update."""

import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import flowers
import numpy as np
import pytest
import torch
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAdam, FedAvg, FedAvgM, FedYogi, Result, Strategy
from worlds import LONG, Servers, written

from tacit.errors import MisuseError, RefusedError, SetupError, TacitError
from tacit.federated import Client
from tacit.federated.flower import SecureAggregation, secure_mod
from tacit.federated.rounds.settings import Settings
from tacit.federated.rounds.steps import Round
from tacit.federated.service.client import Task
from tacit.federated.service.config import Federation

ROUNDS = 2
NODES = len(flowers.COUNTS)
SIZE = sum(values.size for values in flowers.START.values() if values.dtype.kind == "f")

STRATEGIES = {
    "FedAvg": FedAvg,
    "FedAvgM": partial(FedAvgM, server_learning_rate=0.5, server_momentum=0.9),
    "FedAdam": FedAdam,
    "FedYogi": FedYogi,
}

#: Flower's server is the last client.
RULES = f"norm = 8.0\ngreatest_weight = 100\nminimum_clients = 3\ncoordinator = {NODES}\n"


def strategy(name: str) -> Strategy:
    return STRATEGIES[name](
        min_train_nodes=NODES, min_evaluate_nodes=NODES, min_available_nodes=NODES
    )


class Learned:
    """The models and results of Flower's training with each strategy in turn."""

    def __init__(
        self, mods: list[Any], wrapped: Any = lambda inner: inner, backend: str = "threads"
    ) -> None:
        self.models: list[ArrayRecord] = []
        self.results: dict[str, Result] = {}
        self._wrapped = wrapped
        self.messages = flowers.simulated(flowers.client_app(mods), self._main, backend)

    def _main(self, grid: Grid) -> None:
        for name in STRATEGIES:
            chosen = self._wrapped(strategy(name))
            self.results[name] = chosen.start(grid, flowers.model(), ROUNDS, evaluate_fn=self._seen)

    def _seen(self, _: int, arrays: ArrayRecord) -> MetricRecord | None:
        self.models.append(arrays)
        return None


@pytest.fixture(scope="module")
def plain() -> Learned:
    return Learned([])


def same(found: ArrayRecord, reference: ArrayRecord) -> None:
    """Checks that two models agree within 1e-4, with equal names, kinds and shapes."""
    assert list(found) == list(reference) == list(flowers.START)
    for name, start in flowers.START.items():
        one, other = found[name].numpy(), reference[name].numpy()
        assert one.shape == other.shape == start.shape
        assert np.abs(one - other).max() < 1e-4
        if start.dtype.kind == "f":
            assert one.dtype == start.dtype
            assert np.abs(one - start).max() > 0.01


@pytest.mark.parametrize("result_to", [pytest.param("all", marks=pytest.mark.long), "clients"])
def test_flowers_strategies_come_to_the_same(
    result_to: str, plain: Learned, tmp_path: Path
) -> None:
    config = written(tmp_path, NODES + 1, rules=f'{RULES}result_to = "{result_to}"')
    servers = Servers(
        config,
        lambda server: [server.round(torch.zeros(SIZE)) for _ in range(ROUNDS * len(STRATEGIES))],
    )
    mod = partial(secure_mod, federation=config, metrics=["loss"])
    learned = Learned([mod], lambda inner: SecureAggregation(inner, config))
    for reports in servers.ended():
        assert all(
            report.accepted == list(range(NODES)) and not report.refused for report in reports
        )
        # The coordinator, which hands in nothing, does not count as late.
        assert not any(report.late for report in reports)
        assert all(bool(report.model.any()) == (result_to == "all") for report in reports)
    for name, result in learned.results.items():
        same(result.arrays, plain.results[name].arrays)
        assert [dict(each) for each in result.train_metrics_clientapp.values()] == [
            {"loss": pytest.approx((1 + 1 / 2 + 1 / 3) / 3)}
        ] * ROUNDS
        assert all(dict(each) == {} for each in result.evaluate_metrics_clientapp.values())
    assert flowers.foreign(learned.messages, learned.models) == []
    replies = [
        message.content for message in learned.messages if message.metadata.reply_to_message_id
    ]
    assert len(replies) == 2 * NODES * ROUNDS * len(STRATEGIES)
    for content in replies:
        assert not content.array_records
        assert [set(record) for record in content.metric_records.values()] in ([{"loss"}], [set()])
    # Without the mod the same search finds the updates.
    assert len(flowers.foreign(plain.messages, plain.models)) >= 2 * NODES * ROUNDS * len(
        STRATEGIES
    )


def test_a_round_that_comes_to_nothing_leaves_the_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Flower continues with the next round. The reason why the client failed stays with the
    client."""

    def train(msg: Message, ctxt: Context) -> Message:
        if msg.content["config"]["server-round"] == 1 and ctxt.node_config["partition-id"] == 0:
            raise ValueError("a row of data")
        return flowers.train(msg, ctxt)

    config = written(tmp_path, NODES + 1, seconds=5.0, rules=RULES)
    servers = Servers(config, lambda server: [server.round(torch.zeros(SIZE)) for _ in range(2)])
    app = ClientApp(mods=[partial(secure_mod, federation=config)])
    app.train()(train)
    found: list[Result] = []

    def learn(grid: Grid) -> None:
        inner = FedAvg(min_train_nodes=NODES, min_available_nodes=NODES, fraction_evaluate=0.0)
        found.append(SecureAggregation(inner, config).start(grid, flowers.model(), 2))

    messages = flowers.simulated(app, learn)
    first, second = servers.ended()[0]
    assert (first.accepted, second.accepted) == ([], [0, 1, 2])
    assert (first.late, second.late) == ([0], [])
    assert first.failure is not None
    assert first.failure.startswith(
        "the vectors of 2 clients are whole at all servers, and 3 are needed"
    )
    assert "round 1 came to nothing: " in caplog.text
    for name, start in flowers.START.items():
        made = [flowers.trained(client, 2, start) for client in range(NODES)]
        expected = start if name == "steps" else np.average(made, 0, flowers.COUNTS)
        assert np.abs(found[0].arrays[name].numpy() - expected).max() < 1e-4
    reasons = [message.error.reason for message in messages if message.has_error()]
    assert len(reasons) == 1
    assert "this client has handed in nothing; its own log says why" in reasons[0]
    assert "row" not in reasons[0]


def test_a_round_ends_when_all_who_were_asked_have_handed_in_or_failed(tmp_path: Path) -> None:
    """No round waits until the deadline.

    In the first round two of three clients are asked. In the second one of three fails, in the
    third two.
    """
    rules = f"norm = 8.0\ngreatest_weight = 100\nminimum_clients = 2\ncoordinator = {NODES}\n"
    config = written(tmp_path, NODES + 1, seconds=2 * LONG, rules=rules)
    servers = Servers(config, lambda server: [server.round(torch.zeros(SIZE)) for _ in range(3)])

    def train(msg: Message, ctxt: Context) -> Message:
        number, node = msg.content["config"]["server-round"], ctxt.node_config["partition-id"]
        if (number, node) in ((2, 0), (3, 0), (3, 1)):
            raise ValueError("a row of data")
        return flowers.train(msg, ctxt)

    app = ClientApp(mods=[partial(secure_mod, federation=config)])
    app.train()(train)

    class Sampling(FedAvg):
        def configure_train(self, server_round: int, *others: Any) -> Any:
            asked = list(super().configure_train(server_round, *others))
            return asked[:2] if server_round == 1 else asked

    def learn(grid: Grid) -> None:
        inner = Sampling(min_train_nodes=NODES, min_available_nodes=NODES, fraction_evaluate=0.0)
        SecureAggregation(inner, config, timeout=LONG).start(grid, flowers.model(), 3)

    flowers.simulated(app, learn)
    for first, second, third in servers.ended():
        assert len(first.accepted) == 2
        assert second.accepted == [1, 2]
        assert (first.failure, second.failure, third.accepted) == (None, None, [])
        assert third.failure == (
            "the vectors of 1 client are whole at all servers, and 2 are needed; the coordinator "
            "says that "
            "nobody else comes: it has to ask more clients, and the logs of those who failed say "
            "why"
        )
        assert (first.late, second.late, third.late) == ([], [0], [0, 1])


def test_a_node_whose_vector_was_refused_hears_of_it_with_the_next_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node logs the refusal. No one else receives it."""
    rules = f"norm = 8.0\ngreatest_weight = 100\nminimum_clients = 2\ncoordinator = {NODES}\n"
    config = written(tmp_path, NODES + 1, rules=f'{rules}bound = "refuse"\n')
    servers = Servers(config, lambda server: [server.round(torch.zeros(SIZE)) for _ in range(2)])
    honest = Client.submit

    def submit(self: Client, state: Any, weight: float = 1.0, metrics: Any = None) -> Any:
        assert self._task is not None
        told, task = self._task
        if (self.number, task.round) == (1, 1):
            # Disables the client's own check, which would have shortened the vector.
            self._task = told, replace(task, settings=replace(task.settings, bound="none"))
            state = {name: each + 80.0 for name, each in state.items()}
        return honest(self, state, weight, metrics)

    monkeypatch.setattr(Client, "submit", submit)

    def learn(grid: Grid) -> None:
        inner = FedAvg(min_train_nodes=NODES, min_available_nodes=NODES, fraction_evaluate=0.0)
        SecureAggregation(inner, config, timeout=LONG).start(grid, flowers.model(), 2)

    messages = flowers.simulated(
        flowers.client_app([partial(secure_mod, federation=config)]), learn
    )
    for first, second in servers.ended():
        assert (first.accepted, second.accepted) == ([0, 2], [0, 1, 2])
    said = [record.message for record in caplog.records if record.message.startswith("round ")]
    assert len(said) == 1
    assert said[0].startswith(
        "round 1: what this client handed in was refused and does not count: "
    )
    assert not any(
        "refused" in str(message.content) for message in messages if message.has_content()
    )


def test_arrays_that_do_not_travel_stay_at_each_node(tmp_path: Path) -> None:
    """They replace those of Flower's server before the app sees a message, and are in no message.
    What travels is learned as it is without them."""
    rules = f'{RULES}exclude = ["*.bias"]\nmetrics = ["loss"]'
    config = written(tmp_path, NODES + 1, rules=rules)
    size = flowers.START["layer.weight"].size
    servers = Servers(config, lambda server: [server.round(torch.zeros(size)) for _ in range(2)])
    seen: dict[int, list[Any]] = {client: [] for client in range(NODES)}

    def watch(msg: Message, ctxt: Context, call_next: Any) -> Message:
        arrays = msg.content["arrays"]
        seen[int(ctxt.node_config["partition-id"])].append(arrays["layer.bias"].numpy())
        return call_next(msg, ctxt)

    mods = [partial(secure_mod, federation=config), watch]
    found: list[Result] = []

    def learn(grid: Grid) -> None:
        inner = strategy("FedAvg")
        chosen = SecureAggregation(inner, config, timeout=LONG)
        found.append(chosen.start(grid, flowers.model(), 2))

    messages = flowers.simulated(flowers.client_app(mods), learn)
    for reports in servers.ended():
        assert all(report.accepted == list(range(NODES)) for report in reports)
        # Servers learn a mean of what the apps report, and Flower's server learns nothing of it.
        losses = [1 / (1 + client) for client in range(NODES)]
        mean = np.average(losses, weights=flowers.COUNTS)
        assert all(report.metrics["loss"] == pytest.approx(mean, abs=1e-5) for report in reports)
    assert not any(
        dict(record)
        for message in messages
        if message.has_content() and message.metadata.reply_to_message_id
        for record in message.content.metric_records.values()
    )
    weight, bias = flowers.START["layer.weight"], flowers.START["layer.bias"]
    for number in range(2):
        steps = [flowers.trained(client, number + 1, weight) for client in range(NODES)]
        weight = np.average(steps, axis=0, weights=flowers.COUNTS)
    assert np.abs(found[0].arrays["layer.weight"].numpy() - weight).max() < 1e-4
    assert np.array_equal(found[0].arrays["layer.bias"].numpy(), bias)
    for client, saw in seen.items():
        # Training and evaluation of two rounds.
        own = [bias]
        for number in range(2):
            own.append(flowers.trained(client, number + 1, own[-1]))
        wanted = [own[0], own[1], own[1], own[2]]
        assert len(saw) == len(wanted)
        assert all(np.array_equal(*each) for each in zip(saw, wanted, strict=True))
    own_bytes = {Array(saw[-1]).data for saw in seen.values()}
    assert not any(
        array.data in own_bytes
        for message in messages
        if message.has_content()
        for arrays in message.content.array_records.values()
        for array in arrays.values()
    )


def test_an_own_array_without_a_place_is_refused_in_the_own_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = context(**{"tacit-federation": str(tmp_path / "none.toml"), "tacit-client": 0})
    own.state["tacit-personal"] = ArrayRecord({"layer.bias": Array(np.zeros(4))})
    with pytest.raises(TacitError, match="its own log says why"):
        secure_mod(asked("evaluate"), own, flowers.evaluate)
    assert "own array 'layer.bias' of shape [4] has no place in the model" in caplog.text


def test_a_message_without_a_model_is_answered_beside_own_arrays() -> None:
    own = context()
    own.state["tacit-personal"] = ArrayRecord({"layer.bias": Array(np.zeros(4))})
    reply = RecordDict({"metrics": MetricRecord({"loss": 0.5})})
    query = Message(RecordDict(), 2, "query")
    answered = secure_mod(query, own, lambda msg, _: Message(reply, reply_to=msg), metrics=["loss"])
    assert answered.content["metrics"] == MetricRecord({"loss": 0.5})


def test_own_arrays_are_kept_if_what_was_learned_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = written(tmp_path, NODES + 1, rules=f'{RULES}exclude = ["*.bias"]')
    settings = Federation.read(config).settings
    size = flowers.START["layer.weight"].size
    task = Task(3, torch.zeros(size), settings, 1.0, NODES + 1)
    monkeypatch.setattr(Client, "join", lambda *_: task)

    def refused(*_: Any) -> None:
        raise RefusedError("too late")

    monkeypatch.setattr(Client, "submit", refused)
    own = context(**{"tacit-federation": str(config), "tacit-client": 0, "partition-id": 0})
    with pytest.raises(TacitError, match="its own log says why"):
        secure_mod(asked("train", round_=3), own, flowers.train)
    assert "too late" in caplog.text
    kept = own.state.array_records["tacit-personal"]
    assert list(kept) == ["layer.bias"]
    assert not np.array_equal(kept["layer.bias"].numpy(), flowers.START["layer.bias"])


def context(**node: Any) -> Context:
    return Context(run_id=1, node_id=2, node_config=node, state=RecordDict(), run_config={})


def asked(kind: str, *, round_: int | None = None) -> Message:
    content = RecordDict({"arrays": flowers.model(), "config": ConfigRecord({"server-round": 1})})
    if round_ is not None:
        content["tacit"] = ConfigRecord({"round": round_})
    return Message(content, 2, kind)


def test_a_reply_has_the_metrics_that_are_named_and_nothing_else() -> None:
    def answer(msg: Message, _: Context) -> Message:
        records = {
            "arrays": flowers.model(),
            "metrics": MetricRecord({"loss": 0.5, "secret": 3, "each": [1.0, 2.0]}),
            "config": ConfigRecord({"bytes": b"what was learned"}),
        }
        return Message(RecordDict(records), reply_to=msg)

    for kind in (MessageType.EVALUATE, MessageType.QUERY, "query.mine"):
        for names in ((), ("loss",), ("loss", "other")):
            reply = secure_mod(asked(kind), context(), answer, metrics=names)
            assert dict(reply.content) == {"metrics": MetricRecord({"loss": 0.5} if names else {})}
    with pytest.raises(TacitError, match="its own log says why"):
        secure_mod(asked(MessageType.EVALUATE), context(), answer, metrics=["each"])


@pytest.mark.parametrize(
    ("node", "change", "reason"),
    [
        ({}, {}, "a node needs tacit-federation"),
        ({"partition-id": 0}, {"round": None}, "Flower's server has no SecureAggregation"),
        (
            {"partition-id": 0},
            {"round": 5},
            "Flower's server is at round 5, and the servers are at round 1",
        ),
        ({"tacit-client": 7, "partition-id": 0}, {}, "client 7 does not exist"),
        ({"partition-id": 0}, {"reply": {"arrays": ArrayRecord()}}, "other names or shapes"),
        ({"partition-id": 0}, {"reply": {}}, "a reply with 0 records of arrays"),
        ({"partition-id": 0}, {"weight": "loss"}, "no metric 'loss', the count of examples"),
        ({"partition-id": 0}, {}, "an update of weight 3, and the rounds have no greatest_weight"),
    ],
)
def test_what_goes_wrong_is_in_a_clients_own_log(
    node: dict[str, Any],
    change: dict[str, Any],
    reason: str,
    opened: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Flower's server receives the error's text, but not the reason."""

    def answer(msg: Message, _: Context) -> Message:
        usual = {"arrays": flowers.model(), "metrics": MetricRecord({"num-examples": 3})}
        return Message(RecordDict(change.get("reply", usual)), reply_to=msg)

    path = {"federation": opened} if node else {}
    with pytest.raises(
        TacitError, match="this client has handed in nothing; its own log says why"
    ) as raised:
        secure_mod(
            asked(MessageType.TRAIN, round_=change.get("round", 1)),
            context(**node),
            answer,
            weighted_by=change.get("weight", "num-examples"),
            **path,
        )
    assert raised.value.__context__ is None
    assert reason in caplog.text


def test_a_count_that_counts_for_less_is_in_a_clients_own_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = written(tmp_path, 3, rules="norm = 8.0\ngreatest_weight = 2\ncoordinator = 2\n")
    servers = Servers(config, lambda server: server.round(torch.zeros(SIZE)))

    def take_part(number: int) -> Message:
        def answer(msg: Message, _: Context) -> Message:
            records = {
                "arrays": flowers.model(),
                "metrics": MetricRecord({"num-examples": [3, 1][number]}),
            }
            return Message(RecordDict(records), reply_to=msg)

        node = context(**{"partition-id": number})
        return secure_mod(asked(MessageType.TRAIN, round_=1), node, answer, federation=config)

    with (
        pytest.warns(UserWarning, match="a weight of 3 counts as 2"),
        ThreadPoolExecutor(2) as pool,
    ):
        assert all("tacit" in reply.content for reply in pool.map(take_part, range(2)))
    said = [record.message for record in caplog.records if record.name == "flwr"]
    assert said == ["num-examples: a weight of 3 counts as 2, the rounds' greatest_weight"]
    servers.ended()


def test_what_an_app_raises_or_replies_stays_with_it(
    opened: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(msg: Message, _: Context) -> Message:
        raise ValueError(f"a row of data: {msg.metadata.message_type}")

    def failed(msg: Message, _: Context) -> Message:
        return Message(Error(1, "another row"), reply_to=msg)

    def not_finite(msg: Message, _: Context) -> Message:
        arrays = flowers.model()
        arrays["layer.bias"] = Array(np.array([1.0, np.nan, 2.0]))
        metrics = MetricRecord({"num-examples": 3})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=msg)

    for app, reason in (
        (broken, "a row of data: train"),
        (failed, "another row"),
        (not_finite, "finite number"),
    ):
        with pytest.raises(TacitError) as raised:
            secure_mod(
                asked(MessageType.TRAIN, round_=1),
                context(**{"partition-id": 0}),
                app,
                federation=opened,
            )
        assert str(raised.value) == "this client has handed in nothing; its own log says why"
        assert reason in caplog.text
        # The log's records keep the client's connections alive, and a server accepts only a few.
        caplog.clear()


def test_an_app_without_the_mod_is_noticed(opened: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = asked(MessageType.TRAIN)
    records = {"arrays": flowers.model(), "metrics": MetricRecord({"num-examples": 3})}
    bare = Message(RecordDict(records), reply_to=task)
    receipt = ConfigRecord({"round": 1, "digest": ""})
    told = Message(RecordDict({"metrics": MetricRecord(), "tacit": receipt}), reply_to=task)
    outer = SecureAggregation(FedAvg(), opened)
    with pytest.raises(MisuseError, match=r"the ClientApp lacks mods=\[secure_mod\]"):
        outer.aggregate_train(1, [bare, bare])
    # A single reply with the mod proves that the app has it. The other reply does not count.
    assert outer.aggregate_train(1, [bare, told]) == (None, None)
    assert "node 2 has no secure_mod; its reply does not count" in caplog.text


class Asking(FedAvg):
    """Sends one message with its arrays."""

    def configure_train(self, _: int, arrays: ArrayRecord, *_others: Any) -> list[Message]:
        return [Message(RecordDict({"arrays": arrays}), 0, MessageType.TRAIN)]


def test_a_model_of_another_size_is_refused_before_anybody_is_asked(opened: Path) -> None:
    grid: Any = None
    outer = SecureAggregation(Asking(), opened, timeout=LONG)
    larger = ArrayRecord({**flowers.model(), "more": Array(np.zeros(2, np.float32))})
    with pytest.raises(
        MisuseError,
        match=f"a model of {SIZE + 2} floating-point values; the servers' rounds are for {SIZE}",
    ):
        outer.configure_train(1, larger, ConfigRecord(), grid)
    # No round has begun that could be aggregated.
    assert outer.aggregate_train(1, []) == (None, None)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A federation with an open round, until the fixture is released; then two clients hand in."""
    folder = tmp_path_factory.mktemp("opened")
    config = written(folder, 3, rules="norm = 8.0\nminimum_clients = 2\ncoordinator = 2\n")
    servers = Servers(config, lambda server: server.round(torch.zeros(SIZE)))
    coordinator = Client(config, 2)
    coordinator.join(LONG)
    yield config
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: handed_in(Client(config, number)), range(2)))
    assert torch.allclose(coordinator.result(LONG), torch.ones(SIZE), atol=1e-5)
    assert all(report.accepted == [0, 1] for report in servers.ended())


def handed_in(client: Client) -> None:
    assert not client.join(LONG).model.any()
    client.submit(torch.ones(SIZE))


def test_the_coordinator_hands_in_nothing(opened: Path) -> None:
    coordinator = Client(opened, 2)
    with pytest.raises(MisuseError, match="no round was joined"):
        coordinator.close(LONG)
    coordinator.join(LONG)
    with pytest.raises(MisuseError, match="client 2 is the coordinator, who hands in nothing"):
        coordinator.submit(torch.zeros(SIZE))
    other = Client(opened, 1)
    other.join(LONG)
    with pytest.raises(
        MisuseError, match="client 1 is not the coordinator, who alone ends a round"
    ):
        other.close(LONG)


def test_what_a_coordinator_cannot_be(opened: Path, tmp_path: Path) -> None:
    other = tmp_path / "federation.toml"
    for wrong, reason in (
        ("coordinator = 3", "coordinator = 3; the clients are 0 to 2"),
        ('coordinator = "2"', "coordinator = '2' is not a whole number"),
    ):
        other.write_text(opened.read_text().replace("coordinator = 2", wrong))
        with pytest.raises(SetupError, match=reason):
            Federation.read(other)
    other.write_text(opened.read_text().replace("coordinator = 2\n", ""))
    with pytest.raises(MisuseError, match="has no coordinator: under"):
        SecureAggregation(FedAvg(), other)
    with pytest.raises(
        MisuseError, match="a root hands in a vector, which the coordinator does not"
    ):
        Round.of(Settings(aggregator="fltrust", root=1, coordinator=1))


def test_without_flower_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tacit.federated.flower")
    monkeypatch.setitem(sys.modules, "flwr.app", None)
    with pytest.raises(
        SetupError, match=r"Flower needs flwr: pip install 'tacit-mpc\[federated\]'"
    ):
        importlib.import_module("tacit.federated.flower")
