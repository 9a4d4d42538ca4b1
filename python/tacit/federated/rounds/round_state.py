"""What goes from step to step of a round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from tacit.errors import TacitError
from tacit.federated.aggregators import Quotient
from tacit.federated.messages import counted
from tacit.federated.rounds.client_update import Outgoing


class RoundError(TacitError):
    """A round comes to nothing for a reason that all servers see alike, so that they go on with the
    next: nobody but clients is to blame, and none of them may end a federation."""

    def __init__(self, reason: str, refused: Mapping[int, str] | None = None) -> None:
        """With the clients that were refused until then, and why."""
        super().__init__(reason)
        self.refused = dict(refused or {})


@dataclass(frozen=True)
class Held:
    """What a server holds of a round between two steps: rows of clients, secret or, in the
    reference, plain."""

    clients: tuple[int, ...]
    #: [clients, parameters]
    vectors: torch.Tensor
    #: [clients]
    weights: torch.Tensor
    #: By how much each vector is still to be multiplied, [clients].
    factors: torch.Tensor | None = None
    #: Clients that do not count, and why.
    refused: dict[int, str] = field(default_factory=dict)
    #: What the vectors were combined to.
    combined: torch.Tensor | Quotient | None = None

    def only(self, rows: Sequence[int]) -> "Held":
        """The same with these rows."""
        chosen: slice | torch.Tensor = torch.tensor(list(rows), dtype=torch.long)
        if len(rows) and list(rows) == list(range(rows[0], rows[0] + len(rows))):
            # Such as all but the last one: nothing is copied.
            chosen = slice(rows[0], rows[0] + len(rows))
        return replace(
            self,
            clients=tuple(self.clients[row] for row in rows),
            vectors=self.vectors[chosen],
            weights=self.weights[chosen],
            factors=None if self.factors is None else self.factors[chosen],
        )

    def passed(self, good: torch.Tensor, reason: str) -> "Held":
        """The same without the clients whose plain bit is not set."""
        refused = {
            client: reason
            for client, is_good in zip(self.clients, good, strict=True)
            if not is_good
        }
        kept = self if bool(good.all()) else self.only(good.nonzero().flatten().tolist())
        return replace(kept, refused={**self.refused, **refused})

    def check_enough(self, minimum: int) -> None:
        """Goes on only with enough clients.

        Raises:
            RoundError: there are fewer.
        """
        if len(self.clients) < minimum:
            raise RoundError(
                f"the vectors of {counted(len(self.clients), 'client')} count, and a round needs "
                f"{minimum}",
                self.refused,
            )


class Outcome(NamedTuple):
    """What a round ends with, in every server."""

    #: The combined update, [parameters]; ``None`` where the servers do not see it.
    vector: torch.Tensor | None
    #: What stands for it where only clients see it: secret, to be opened to them.
    sealed: torch.Tensor | None
    #: The clients that it is made of.
    accepted: tuple[int, ...]
    #: The others, and why.
    refused: dict[int, str]


class Step:
    """One step of a round: what a client does with its change before it is sent, what every server
    does, all at the same time, and the same on plain tensors. What a step does not do in a half it
    inherits from here."""

    def client(self, outgoing: Outgoing) -> Outgoing:
        """A client's half. One that looks at values writes them out: ``Outgoing.update``,
        ``Outgoing.of``."""
        return outgoing

    def secret(self, held: Held) -> Held:
        """The servers' half."""
        return held

    def plain(self, held: Held) -> Held:
        """The reference of the servers' half."""
        return self.secret(held)
