"""The state that the steps of a round pass on, and the base class of steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from tacit.errors import TacitError
from tacit.federated.aggregators import Quotient
from tacit.federated.messages import counted
from tacit.federated.rounds.client_update import Outgoing

#: Stands among the clients of a round for a server whose vector is the root.
SERVERS_ROOT = -1


class RoundError(TacitError):
    """A round has no result, for a reason that all servers see alike.

    Servers continue with the next round: only clients are to blame, and no client may end a
    federation.
    """

    def __init__(self, reason: str, refused: Mapping[int, str] | None = None) -> None:
        """Takes the reason, and the clients that were refused until then, with their reasons."""
        super().__init__(reason)
        self.refused = dict(refused or {})


@dataclass(frozen=True)
class Held:
    """The state of a round between two steps at a server.

    It has one row for each client: secret, or plain in the reference.
    """

    clients: tuple[int, ...]
    #: [clients, parameters]
    vectors: torch.Tensor
    #: [clients]
    weights: torch.Tensor
    #: The factors by which the vectors must still be multiplied, [clients].
    factors: torch.Tensor | None = None
    #: What clients report, multiplied by their weights, [clients, metrics].
    metrics: torch.Tensor | None = None
    #: The means of that, once they are revealed.
    means: tuple[float, ...] = ()
    #: The fraction of the clients whose vectors are shorter than the bound, if it is counted.
    fraction: float | None = None
    #: Clients that do not count, with the reasons.
    refused: dict[int, str] = field(default_factory=dict)
    #: The result of combining the vectors.
    combined: torch.Tensor | Quotient | None = None

    def only(self, rows: Sequence[int]) -> "Held":
        """Keeps the given rows only."""
        chosen: slice | torch.Tensor = torch.tensor(list(rows), dtype=torch.long)
        if len(rows) and list(rows) == list(range(rows[0], rows[0] + len(rows))):
            # Consecutive rows, such as all but the last one, need no copy.
            chosen = slice(rows[0], rows[0] + len(rows))
        return replace(
            self,
            clients=tuple(self.clients[row] for row in rows),
            vectors=self.vectors[chosen],
            weights=self.weights[chosen],
            factors=None if self.factors is None else self.factors[chosen],
            metrics=None if self.metrics is None else self.metrics[chosen],
        )

    def passed(self, good: torch.Tensor, reason: str) -> "Held":
        """Removes the clients whose plain bit is not set, and records the reason."""
        refused = {
            client: reason
            for client, is_good in zip(self.clients, good, strict=True)
            if not is_good
        }
        kept = self if bool(good.all()) else self.only(good.nonzero().flatten().tolist())
        return replace(kept, refused={**self.refused, **refused})

    def check_enough(self, minimum: int, root: int | None = None) -> None:
        """Checks that enough clients are left, before anything of them is revealed.

        The root's vector directs others and is none of those that hide each other.

        Args:
            minimum: how many are enough.
            root: the client that is the root, or ``SERVERS_ROOT``; ``None`` if there is none.

        Raises:
            RoundError: there are fewer than ``minimum``.
        """
        left = sum(client != root for client in self.clients)
        if left < minimum:
            raise RoundError(
                f"the vectors of {counted(left, 'client')} count, and a round needs {minimum}",
                self.refused,
            )


class Outcome(NamedTuple):
    """The outcome of a round, at every server."""

    #: The combined update, [parameters]; ``None`` if the servers do not see it.
    vector: torch.Tensor | None
    #: The combined update in secret, to be opened to the clients, if only they see it.
    sealed: torch.Tensor | None
    #: The clients that count in it.
    accepted: tuple[int, ...]
    #: The other clients, with the reasons.
    refused: dict[int, str]
    #: The means of the metrics that clients report.
    means: tuple[float, ...] = ()
    #: The fraction of the clients whose vectors are shorter than the bound, if it is counted.
    fraction: float | None = None


class Step:
    """One step of a round.

    It has a client's half, which runs before a change is sent, and a servers' half, which all
    servers run at the same time. The servers' half has a plain reference. A step inherits from here
    the halves in which it does nothing.
    """

    def client(self, outgoing: Outgoing) -> Outgoing:
        """Runs the client's half.

        A step that reads the values takes them from ``Outgoing.update`` and returns
        ``Outgoing.of``.
        """
        return outgoing

    def secret(self, held: Held) -> Held:
        """Runs the servers' half."""
        return held

    def plain(self, held: Held) -> Held:
        """Runs the reference of the servers' half on plain tensors."""
        return self.secret(held)
