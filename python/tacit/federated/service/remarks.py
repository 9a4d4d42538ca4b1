"""What a client is warned of: differences between what it submits and what counts."""

from tacit.federated.messages import counted
from tacit.federated.rounds.client_update import Outgoing
from tacit.federated.validation import VECTOR_BITS


def capped(weight: float, counts: float) -> str:
    """Returns the warning about a weight that counts for less."""
    return f"a weight of {weight:g} counts as {counts:g}, the rounds' greatest_weight"


def lengthened(by_rounding: float, norm: float) -> str:
    """Returns the warning about an update that rounding made longer than the bound."""
    return (
        f"rounding to steps made an update longer than the rounds' bound of {norm:g}: it was "
        f"multiplied by {by_rounding:.3g} for that; a smaller greatest_value avoids it"
    )


def shorter(shortened: float, norm: float) -> str:
    """Returns the warning about an update that was longer than the bound."""
    return (
        f"an update of norm {norm / shortened:.6g} is longer than the rounds' bound of {norm:g}: "
        f"it was multiplied by {shortened:.3g}, and counts as one of that norm"
    )


def remarks(sent: Outgoing, weight: float, counts: float, norm: float) -> list[str]:
    """Returns the warnings about differences between what a client submits and what counts."""
    found = []
    if counts < weight:
        found.append(capped(weight, counts))
    if sent.shortened < 1:
        found.append(shorter(sent.shortened, norm))
    if sent.by_rounding < 1:
        found.append(lengthened(sent.by_rounding, norm))
    if sent.cut:
        found.append(
            f"{counted(sent.cut, 'value')} of the update were beyond the rounds' greatest_value, "
            "and were cut off there: agree on a greater one if that is often so"
        )
    least = 2.0 ** -(VECTOR_BITS + 1)
    if 0 <= sent.weight < least:
        found.append(
            f"a weight of {weight:g} is so small a part of the rounds' greatest_weight that it "
            f"counts as nothing: agree on a smaller greatest_weight"
        )
    if 0 < sent.greatest < least:
        found.append(
            f"no value of the update, times its weight, is above 2^-{VECTOR_BITS + 1} of the "
            f"rounds' bound of {norm:g}, so that zeros are sent: agree on a smaller norm"
        )
    return found
