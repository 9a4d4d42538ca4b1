"""The comparison of the servers' results of a round."""

import uuid

import torch

from tacit import _core
from tacit.errors import CheatingError, tellable
from tacit.federated.rounds.round_state import Outcome
from tacit.federated.service.config import SERVERS
from tacit.federated.service.exchange import content_of
from tacit.federated.service.explanations import DISAGREEMENT
from tacit.sessions import Session


def compared(
    session: Session,
    number: int,
    learned: torch.Tensor,
    outcome: Outcome | None,
    failure: str | None,
) -> tuple[str | None, str]:
    """Compares the servers' results. Returns why no server may continue from the round's
    result, if they differ; and the tag of the round, which no server could have chosen alone.

    Results that only clients see cannot be compared. One round.

    If one of three servers deviates, no server can tell which. What a server sends wrongly to
    one server may be correct at the other, and at itself. But each knows that it is not itself.
    """
    if outcome is None or failure is not None:
        own = b"nothing"
    elif outcome.sealed is not None:
        own = b"sealed"
    else:
        own = _core.blake3(content_of(learned).tobytes()).encode()
    told = session.told_by_all(own + b" " + uuid.uuid4().hex.encode())
    # If a server sends different digests to the others, ``confirm`` fails.
    session.core.note_told(b",".join(told))
    tag = _core.blake3(b",".join(told))
    if len({each.partition(b" ")[0] for each in told}) == 1:
        return None, tag
    others = " or ".join(f"server {other}" for other in range(SERVERS) if other != number)
    if session.meter.verification is not None:
        # The result was verified, so that servers that follow the protocol have the same.
        raise tellable(
            CheatingError(
                f"{others} cheated: it says that it has another result of the round; no server "
                "goes on from it"
            )
        )
    return (
        f"{DISAGREEMENT}: {others} deviates, and it is not known which. No server goes on from "
        f"the result",
        tag,
    )
