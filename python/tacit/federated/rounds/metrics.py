"""Metrics: numbers that clients report with their updates, of which servers learn means.

A client sends each number times its weight, in units of the greatest metric, after its vector. The
servers add these up in secret, as they add up weights, and reveal both sums.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real

import torch

from tacit import checks
from tacit.errors import EncodingError, MisuseError
from tacit.federated import validation
from tacit.federated.rounds.client_update import Outgoing, Update
from tacit.federated.rounds.round_state import SERVERS_ROOT, Held, Step
from tacit.sessions import session
from tacit.tensor import SecretTensor

#: The reason in reports if the secret check refuses a client's metrics.
TOO_GREAT = "metric"


@dataclass(frozen=True)
class Measure(Step):
    """The means of what clients report, weighted as their updates are."""

    #: The greatest magnitude of a metric.
    greatest: float
    #: Whether servers check that no metric is greater.
    is_validated: bool
    minimum: int = 1
    #: The client that is the root, or ``SERVERS_ROOT``.
    root: int | None = None

    def secret(self, held: Held) -> Held:
        """Reveals the sums of the metrics and of the weights. One round, and those of the check,
        which reveals one bit of each client. There are no means if the weights add up to nothing.
        """
        if held.metrics is None:
            return held
        every = self._checked(held) if self.is_validated else held
        # A server that is the root reports nothing.
        those = every.only(_clients(every)) if self.root == SERVERS_ROOT else every
        assert those.metrics is not None
        sums = torch.cat([those.metrics.sum(0), those.weights.sum().reshape(1)])
        assert isinstance(sums, SecretTensor)
        found = sums.reveal().to(torch.float64)
        # The next message detects a server that saw other sums.
        session().core.note(json.dumps(found.tolist()).encode())
        if not bool(found[-1] > 0):
            return replace(every, metrics=None)
        means = found[:-1] / found[-1] * self.greatest
        return replace(every, means=tuple(means.tolist()), metrics=None)

    def _checked(self, held: Held) -> Held:
        assert isinstance(held.metrics, SecretTensor)
        assert isinstance(held.weights, SecretTensor)
        with checks.proved(session()):
            good = validation.metrics_fit(held.metrics, held.weights)
        session().core.note(json.dumps(good.tolist()).encode())
        held = held.passed(good, TOO_GREAT)
        held.check_enough(self.minimum, self.root)
        return held

    def plain(self, held: Held) -> Held:
        """Does nothing: the reference has no metrics."""
        return held


def _clients(held: Held) -> list[int]:
    return [row for row, client in enumerate(held.clients) if client >= 0]


def with_metrics(
    sent: Outgoing, given: Mapping[str, float] | None, names: tuple[str, ...], greatest: float
) -> tuple[Outgoing, list[str]]:
    """Appends metrics to what a client sends.

    Returns:
        What is sent, and the names of the metrics that were cut off at the greatest one.

    Raises:
        MisuseError: the metrics have other names, or are not numbers.
        EncodingError: one is NaN or infinite.
    """
    given = {} if given is None else given
    if set(given) != set(names):
        raise MisuseError(
            f"metrics of the names {sorted(given)}; the rounds have {sorted(names)}: give each of "
            "these as submit(..., metrics={...}), or change metrics under [round], in all files"
        )
    for name, value in given.items():
        if not isinstance(value, Real):
            raise MisuseError(f"the metric {name} is of type {type(value).__name__}, not a number")
        if not math.isfinite(value):
            raise EncodingError(f"the metric {name} is {value}, which is no finite number")
    if not names:
        return sent, []
    values = torch.tensor([float(given[name]) for name in names], dtype=torch.float64) / greatest
    cut = [name for name, value in zip(names, values, strict=True) if abs(value) > 1]
    row = torch.cat([sent.update().vector, values.clamp(-1, 1) * sent.weight])
    return replace(Outgoing.of(Update(row, sent.weight)), shortened=sent.shortened), cut
