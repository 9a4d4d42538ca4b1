"""The half of Flower's server: a strategy that gets one reply, the servers' combined update."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from tacit.errors import MisuseError, RefusedError, TacitError
from tacit.federated.flower.records import RECORD, WEIGHT, as_number, moved, of_kinds, tensors
from tacit.federated.rounds.states import in_a_row
from tacit.federated.service.client import PATIENCE, Client
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
    ) -> None:
        """Reads the federation's file. Connects to no server yet.

        Args:
            inner: the strategy.
            federation: the path of the file, which must name this client as ``coordinator``.
            weighted_by: as the inner strategy has it.
            timeout: seconds to wait for the servers to begin a round, or for its result.

        Raises:
            SetupError: configuration, certificates or key are wrong.
            MisuseError: the federation has no coordinator.
        """
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
        self._weighted_by = weighted_by
        self._timeout, self._patience = timeout, rules.timeout
        self._began: tuple[int, str, ArrayRecord] | None = None

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
        messages = list(self.inner.configure_train(server_round, arrays, config, grid))
        if not messages:
            return messages
        task = self._client.join(self._timeout)
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
            return None, None
        content = RecordDict(
            {key: moved(arrays, combined, self._travelling), "metrics": self._mean(contents)}
        )
        # The reply has node 0 as its source: it is of no client.
        made, metrics = self.inner.aggregate_train(
            server_round, [Message(content, 0, MessageType.TRAIN)]
        )
        return None if made is None else of_kinds(made, arrays), metrics

    def _close(self, number: int) -> None:
        try:
            self._client.close(min(self._timeout, self._patience))
        except TacitError as error:
            # If that is why the round has no result, the result says so.
            _log.warning("aggregate_train: round %d lasts until its deadline: %s", number, error)

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
        """Returns the inner strategy's messages."""
        return self.inner.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Returns the inner strategy's metrics; weights replies equally if counts of examples are
        secret."""
        replies = list(replies)
        records = [
            record
            for reply in replies
            if not reply.has_error()
            for record in reply.content.metric_records.values()
        ]
        if not all(self._weighted_by in record for record in records):
            for record in records:
                record[self._weighted_by] = 1.0
        return self.inner.aggregate_evaluate(server_round, replies)
