"""Krum and multi-Krum: the vectors that are closest to others."""

import torch

from tacit.federated.aggregators.coordinates import least, part_of, sum_of_least
from tacit.federated.aggregators.gram import BITS, squared_distances
from tacit.federated.aggregators.precision import integers

#: The largest fraction of all clients that is assumed to attack.
ATTACKERS = 0.25

#: Extra bits of the sums: 6 for adding as many squared distances as there are clients, and 6 for
#: the client's number.
_EXTRA_BITS = 12


def krum(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    attackers: float = ATTACKERS,
) -> torch.Tensor:
    """Selects the vector whose n - f - 2 nearest others are closest: Krum (Blanchard et al. 2017).

    It is the vector with the least sum of squared distances to those others. f = ⌊attackers·n⌋, and
    at least one nearest other counts.

    If sums are equal, the client with the lowest number wins. This always happens when only one
    other counts, as with three or four clients: the two vectors that are closest to each other have
    the same sum.

    Reveals nothing but its result, which is one client's vector. About 105 rounds with 16 clients.
    The products cost n²·d, plus one of [1, n] by [n, d].

    Domain: norms up to 1. Sums are exact whatever the norms: they are in units of 2^-44 and
    computed from the vectors as sent.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; ignored.
        attackers: the largest fraction of the clients that is assumed to attack, from 0 to less
            than ½.
    """
    return _closest(vectors, attackers, 1)


def multi_krum(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    attackers: float = ATTACKERS,
    chosen: int | None = None,
) -> torch.Tensor:
    """Averages the ``chosen`` vectors with the least sums of ``krum``: multi-Krum.

    About 145 rounds. Everything else is as in ``krum``.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; ignored.
        attackers: as in ``krum``.
        chosen: the number of vectors to average; n - f if not given, and all if there are fewer.
    """
    count = vectors.shape[0]
    return _closest(vectors, attackers, min(count, chosen or count - part_of(attackers, count)))


def _closest(vectors: torch.Tensor, attackers: float, chosen: int) -> torch.Tensor:
    count = vectors.shape[0]
    if chosen == count:
        return vectors.mean(0)
    # Each vector is among its own neighbours, at distance 0, which adds nothing to the sum.
    neighbours = max(2, count - part_of(attackers, count) - 1)
    with integers(BITS + _EXTRA_BITS):
        sums = sum_of_least(squared_distances(vectors), neighbours)
        # No two of these are equal.
        keys = sums * count + torch.arange(count)
        is_chosen = keys <= least(keys, chosen - 1)
    return (is_chosen.to(vectors.dtype).unsqueeze(0) @ vectors).squeeze(0) / chosen
