"""The half of Flower's server: a strategy that gets one reply, the servers' combined update."""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from tacit.errors import MisuseError, RefusedError, TacitError
from tacit.federated.flower.kept import Kept
from tacit.federated.flower.records import RECORD, WEIGHT, as_number, moved, of_kinds, tensors
from tacit.federated.rounds.states import in_a_row
from tacit.federated.service.client import PATIENCE, Client, Task
from tacit.federated.service.config import Federation

_log = logging.getLogger("flwr")


class SecureAggregation(Strategy):
    """A Flower strategy around another one, which gets one reply a round.

    The reply has the model moved by the servers' combined update, and the mean of each metric that
    was sent.

    So ``FedAvg``, ``FedAvgM``, ``FedAdam``, ``FedYogi``, ``FedAdagrad`` and ``FedProx`` work as
    they do without it. Strategies that compare replies (``Krum``, ``FedMedian``) have nothing to
    compare: use the federation's own aggregators instead. A round without a result leaves the model
    as it was.
    """

    def __init__(
        self,
        inner: Strategy,
        federation: str | Path,
        *,
        weighted_by: str = WEIGHT,
        timeout: float = PATIENCE,
        kept: str | Path | None = None,
    ) -> None:
        """Reads the federation's file. Connects to no server yet.

        Args:
            inner: the strategy.
            federation: the path of the file, which must name this client as ``coordinator``.
            weighted_by: as the inner strategy has it.
            timeout: seconds to wait for the servers to begin a round, or for its result.
            kept: a file that has the model and the inner strategy's arrays, such as the moments of
                ``FedAdam``, after each round. If it exists, ``start`` goes on from it.

        Raises:
            SetupError: configuration, certificates or key are wrong.
            MisuseError: the federation has no coordinator; or ``kept`` is given for a strategy that
                has another one inside, whose arrays would be lost.
        """
        within = [type(value) for value in vars(inner).values() if isinstance(value, Strategy)]
        if kept is not None and within:
            raise MisuseError(
                f"kept is for the arrays of one strategy, and {type(inner).__name__} has "
                f"{within[0].__name__} inside, whose arrays would be lost: give "
                f"{within[0].__name__} itself, or leave kept out"
            )
        rules = Federation.read(federation)
        coordinator = rules.settings.coordinator
        if coordinator is None:
            raise MisuseError(
                f"{federation} has no coordinator: under [round], coordinator = the number of the "
                f"client that is Flower's server"
            )
        self.inner = inner
        self._client = Client(federation, coordinator)
        self._travelling = rules.settings.travelling
        self._metrics = rules.settings.metrics if rules.settings.evaluate_every else ()
        #: The servers' round of the evaluation that Flower has begun.
        self._evaluating: int | None = None
        self._weighted_by = weighted_by
        self._timeout, self._patience = timeout, rules.timeout
        self._began: tuple[int, str, ArrayRecord] | None = None
        self._kept = None if kept is None else Kept(kept, rules.name)
        #: The number of rounds that ended before this process began.
        self._before = 0

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Runs the rounds, as Flower does: ``num_rounds`` in all, with those before a restart.

        Raises:
            SetupError: the file of ``kept`` is damaged, or of another strategy or model.
        """
        known = None if self._kept is None else self._kept.read(initial_arrays, self.inner)
        self._before, arrays = (0, initial_arrays) if known is None else known
        if self._before:
            _log.info("start: goes on after round %d of %d", self._before, num_rounds)
        before = self._before

        def seen(number: int, model: ArrayRecord) -> MetricRecord | None:
            assert evaluate_fn is not None
            return evaluate_fn(before + number, model)

        result = super().start(
            grid,
            arrays,
            max(0, num_rounds - before),
            timeout,
            train_config,
            evaluate_config,
            None if evaluate_fn is None else seen,
        )
        if not result.arrays:
            result.arrays = arrays
        for name in ("train_metrics_clientapp", "evaluate_metrics_clientapp"):
            setattr(result, name, _later(getattr(result, name), before))
        result.evaluate_metrics_serverapp = _later(result.evaluate_metrics_serverapp, before)
        return result

    def summary(self) -> None:
        """Logs the inner strategy's summary."""
        self.inner.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Returns the inner strategy's messages with the number of the servers' round.

        Waits until the servers begin one.

        Raises:
            MisuseError: the servers' rounds are for models of another size; or a pattern of
                ``include`` or ``exclude`` matches no array of the model.
        """
        self._began = None
        number = self._before + server_round
        messages = list(self.inner.configure_train(number, arrays, config, grid))
        if not messages:
            return messages
        task = self._joined(is_evaluation=False)
        found = len(in_a_row(tensors(arrays, self._travelling)))
        if found != len(task.model):
            raise MisuseError(
                f"a model of {found} floating-point values; the servers' rounds are for "
                f"{len(task.model)}"
            )
        key = next(iter(messages[0].content.array_records), "arrays")
        self._began = (task.round, key, arrays)
        _log.info("configure_train: round %d of the federation, %.0f s", task.round, task.deadline)
        for message in messages:
            message.content[RECORD] = ConfigRecord({"round": task.round})
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Returns the inner strategy's results for the combined update.

        By now all clients that Flower asked have replied or failed, or Flower no longer waits for
        them. This tells the servers so, and they stop waiting, too.

        Raises:
            MisuseError: no client has the mod.
        """
        replies = list(replies)
        if self._began is not None:
            self._close(self._began[0])
        contents = self._receipts(replies)
        if self._began is None:
            return None, None
        number, key, arrays = self._began
        try:
            combined = self._client.result(self._timeout)
        except RefusedError as error:
            _log.warning("aggregate_train: round %d came to nothing: %s", number, error)
            self._keep(server_round, arrays)
            return None, None
        content = RecordDict(
            {key: moved(arrays, combined, self._travelling), "metrics": self._mean(contents)}
        )
        # The reply has node 0 as its source: it is of no client.
        made, metrics = self.inner.aggregate_train(
            self._before + server_round, [Message(content, 0, MessageType.TRAIN)]
        )
        learned = None if made is None else of_kinds(made, arrays)
        self._keep(server_round, arrays if learned is None else learned)
        return learned, metrics

    def _keep(self, server_round: int, model: ArrayRecord) -> None:
        if self._kept is not None:
            self._kept.write(self._before + server_round, model, self.inner)

    def _joined(self, *, is_evaluation: bool) -> Task:
        """Joins the servers' next round of that kind. It ends one of the other kind, for which
        Flower asks nobody."""
        task = self._client.join(self._timeout)
        while task.is_evaluation != is_evaluation:
            self._close(task.round)
            task = self._client.join(self._timeout)
        return task

    def _close(self, number: int) -> None:
        try:
            self._client.close(min(self._timeout, self._patience))
        except TacitError as error:
            # If that is why the round has no result, the result says so.
            _log.warning("round %d lasts until its deadline: %s", number, error)

    def _receipts(self, replies: Iterable[Message]) -> list[RecordDict]:
        """Returns the replies of the clients that have submitted their vectors."""
        contents, bare = [], []
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error():
                _log.warning("aggregate_train: node %d: %s", node, reply.error.reason)
            elif RECORD in reply.content.config_records and not reply.content.array_records:
                contents.append(reply.content)
            else:
                bare.append(node)
        if bare and not contents:
            raise MisuseError(
                "replies have arrays and no receipts: the ClientApp lacks mods=[secure_mod], and "
                "what its clients learned came here in the clear"
            )
        for node in bare:
            _log.warning(
                "aggregate_train: node %d has no secure_mod; its reply does not count", node
            )
        return contents

    def _mean(self, contents: list[RecordDict]) -> MetricRecord:
        """Averages each metric that all replies have, weighted by the count of examples if that was
        sent."""
        rows = [
            {name: as_number(name, value) for name, value in record.items()}
            for content in contents
            for record in content.metric_records.values()
        ]
        names = set.intersection(*map(set, rows)) if rows else set()
        counts = [row[self._weighted_by] if self._weighted_by in names else 1.0 for row in rows]
        total = sum(counts) or 1.0
        mean: dict[str, Any] = {self._weighted_by: total}
        for name in names - {self._weighted_by}:
            mean[name] = (
                sum(count * row[name] for count, row in zip(counts, rows, strict=True)) / total
            )
        return MetricRecord(mean)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Returns the inner strategy's messages; with ``evaluate_every``, with the number of the
        servers' round, and after they have begun it."""
        self._evaluating = None
        number = self._before + server_round
        messages = list(self.inner.configure_evaluate(number, arrays, config, grid))
        if not messages or not self._metrics:
            return messages
        task = self._joined(is_evaluation=True)
        self._evaluating = task.round
        for message in messages:
            message.content[RECORD] = ConfigRecord({"round": task.round})
        return messages

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Returns the inner strategy's metrics; weights replies equally if counts of examples are
        secret.

        With ``evaluate_every`` it gets one reply, with the means that the servers computed.
        """
        replies = list(replies)
        if self._evaluating is not None:
            for reply in filter(Message.has_error, replies):
                node = reply.metadata.src_node_id
                _log.warning("aggregate_evaluate: node %d: %s", node, reply.error.reason)
            replies = self._means(self._evaluating)
        records = [
            record
            for reply in replies
            if not reply.has_error()
            for record in reply.content.metric_records.values()
        ]
        if not all(self._weighted_by in record for record in records):
            for record in records:
                record[self._weighted_by] = 1.0
        return self.inner.aggregate_evaluate(self._before + server_round, replies)

    def _means(self, number: int) -> list[Message]:
        """Returns one reply with the servers' means, or none if the evaluation has no result."""
        self._close(number)
        try:
            means = self._client.result(self._timeout)
        except RefusedError as error:
            _log.warning("aggregate_evaluate: round %d came to nothing: %s", number, error)
            return []
        found: dict[str, Any] = dict(zip(self._metrics, means.tolist(), strict=True))
        content = RecordDict({"metrics": MetricRecord({self._weighted_by: 1.0, **found})})
        return [Message(content, 0, MessageType.EVALUATE)]


def _later(found: Mapping[int, MetricRecord], by: int) -> dict[int, MetricRecord]:
    return {by + number: each for number, each in found.items()}
