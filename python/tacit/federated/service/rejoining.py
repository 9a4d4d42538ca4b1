"""Taking part in several rounds, through breaks of servers and links.

A round that breaks off is lost, and the client joins the next one. That is safe: a client submits
one vector to a round, and a round that broke off has no result, or the client gets it again.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

import torch

from tacit.errors import CheatingError, DesyncError, PeerError, RefusedError
from tacit.federated.rounds.states import State

_log = logging.getLogger(__name__)

#: Seconds between two attempts after a break.
RETRY = 1.0


class OfRound(Protocol):
    """A task, as far as it matters here."""

    @property
    def is_evaluation(self) -> bool: ...


Task = TypeVar("Task", bound=OfRound)
Joined = TypeVar("Joined", bound=OfRound, covariant=True)


class Trained(NamedTuple):
    """What a client submits to a round: the arguments of :meth:`Client.submit`."""

    state: State
    weight: float = 1.0
    metrics: Mapping[str, float] | None = None


class Measured(NamedTuple):
    """What a client reports to an evaluation: the arguments of :meth:`Client.report`."""

    metrics: Mapping[str, float]
    weight: float = 1.0


class Rounds(Protocol[Joined]):
    """The client, as far as it takes part."""

    def join(self, timeout: float) -> Joined: ...
    def submit(
        self, state: State, weight: float, metrics: Mapping[str, float] | None
    ) -> object: ...
    def report(self, metrics: Mapping[str, float], weight: float) -> object: ...
    def result(self, timeout: float) -> torch.Tensor: ...


def rounds_of(
    client: Rounds[Task],
    train: Callable[[Task], Trained],
    rounds: int,
    patience: float,
    evaluate: Callable[[Task], Measured] | None = None,
) -> torch.Tensor | None:
    """Takes part until ``rounds`` rounds have had results; returns the last one.

    Raises:
        RefusedError: the servers do not let this client join.
        PeerError: no round had a result for ``patience`` seconds, with the last reason; or servers
            contradict each other.
    """
    result, until = None, time.monotonic() + patience
    while rounds > 0:
        task = None
        try:
            task = client.join(_left(until))
            if task.is_evaluation:
                if evaluate is not None:
                    client.report(*evaluate(task))
                    client.result(_left(until))
                continue
            client.submit(*train(task))
            result = client.result(_left(until))
            rounds, until = rounds - 1, time.monotonic() + patience
        except (CheatingError, DesyncError):
            raise
        except (PeerError, RefusedError) as error:
            # Who is refused before it joins will be refused again.
            is_final = task is None and isinstance(error, RefusedError)
            if is_final or time.monotonic() + RETRY >= until:
                raise
            _log.warning("joins the next round after a break: %s", error)
            time.sleep(RETRY)
    return result


def _left(until: float) -> float:
    return max(RETRY, until - time.monotonic())
