"""What a server reports of a round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from tacit.federated.privacy.account import Epsilons


@dataclass(frozen=True)
class Report:
    """The outcome of a round."""

    round: int
    #: The parameters after the round. Those before it, if it has no result or only clients learn
    #: it. If a coordinator has the model: the combined update, or zeros.
    model: torch.Tensor
    #: The clients that count.
    accepted: list[int]
    #: Clients whose submissions this server holds completely and another one does not.
    dropped: list[int]
    #: Clients that heard of the round and submitted nothing until its end.
    late: list[int]
    #: Refusals since the last report: client, reason and how often. The client is None if it is not
    #: known.
    refused: list[tuple[int | None, str, int]]
    #: Why the round has no result, if it has none.
    failure: str | None
    seconds: float
    #: The ε spent so far, including this round; ``None`` if there is no noise and so no account.
    epsilons: Epsilons | None
    #: The bound on the norm of an update.
    norm: float = 0.0
    #: If the bound follows a quantile: the fraction of the clients whose updates were shorter, with
    #: its noise.
    fraction: float | None = None
    #: The bytes of a client's vector as it travels.
    upload: int = 0
    #: The difference of neighbouring values that clients round to, after they multiplied them by
    #: their weight's part of ``greatest_weight``. The rounding error of a value has a standard
    #: deviation of at most half of it. 0 if values travel in 64 or 32 bits.
    step: float = 0.0
    #: The means of what clients report, weighted as their updates are, by name.
    metrics: Mapping[str, float] = field(default_factory=dict)
    #: Whether the round was an evaluation, which leaves the model as it is.
    is_evaluation: bool = False

    def in_a_line(self) -> str:
        """Returns what the log says of the round."""
        ended = "ended" if self.failure is None else "came to nothing"
        return (
            f"round {self.round} {ended} after {self.seconds:.3f} s: {len(self.accepted)} clients "
            f"count, {len(self.dropped)} dropped, {len(self.late)} late, {len(self.refused)} refused"
        )
