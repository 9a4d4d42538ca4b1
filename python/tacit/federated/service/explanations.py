"""What servers tell clients of a round that has no result, and of submissions that do not count."""

from tacit.federated.rounds.metrics import TOO_GREAT
from tacit.federated.rounds.round_state import SERVERS_ROOT, Outcome
from tacit.federated.rounds.steps import TOO_LONG

#: The reason that clients hear if a round with noise has no result.
UNCOUNTED = "too few clients count in this round"

#: The reason if a round has no result because a server deviated.
DISAGREEMENT = "the servers came to different results"

#: Explains to a client why its submission does not count, by the reason in the reports. A reason
#: that a user's own step gives is passed on as it is.
EXPLANATIONS = {
    TOO_LONG: (
        "its norm is above the bound, or above the part of it that its weight allows, or its "
        "weight is not from 0 to 1 (or a server deviates)"
    ),
    TOO_GREAT: "a metric is above the rounds' greatest_metric (or a server deviates)",
}

#: The reason for a client that still waits for a round from before its servers were restarted.
STARTED_AGAIN = (
    "the servers have started again since this round; its result, if it ended, is in the model "
    "of the next round: join that one"
)


def lost(number: int) -> str:
    """Returns the reason for a client that waits for a result of which a server lost its part."""
    return (
        "a server that was started again has lost its part of the result: "
        f"take_up(model, {number}) it from a client that has it; if none has, all clients take_up "
        f"the model that they had before, as that of round {number}"
    )


def refusals_of(outcome: Outcome | None) -> dict[int, str]:
    """Returns by client why its submission does not count, in the words that it hears."""
    return {
        client: f"what this client handed in was refused and does not count: "
        f"{EXPLANATIONS.get(reason, reason)}"
        for client, reason in ({} if outcome is None else outcome.refused).items()
        if client != SERVERS_ROOT
    }
