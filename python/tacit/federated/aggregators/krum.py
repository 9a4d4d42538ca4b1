"""Krum and multi-Krum: the vectors that stand closest to others."""

import torch

from tacit.federated.aggregators.coordinates import least, part_of, sum_of_least
from tacit.federated.aggregators.gram import BITS, squared_distances
from tacit.federated.aggregators.precision import integers

#: The part of all clients that is assumed to attack, at most.
ATTACKERS = 0.25

#: Sums of as many squared distances as there are clients, and who is which, take so many bits more:
#: 6 each.
_MORE = 12


def krum(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    attackers: float = ATTACKERS,
) -> torch.Tensor:
    """Krum (Blanchard et al. 2017): the one vector whose n - f - 2 nearest others are closest, the
    sum of their squared distances being least; f = ⌊attackers·n⌋. There is one nearest other at the
    least.

    Of equal sums the client of the lowest number is taken. With three or four clients, and wherever
    one other
    counts, that is the rule: the two that are closest to each other have the same sum, always.

    Reveals nothing but its result, which is one client's vector. About 105 rounds with 16 clients;
    the products are n²·d, and one of [1, n] by [n, d].

    Domain: norms up to 1. Sums are exact, whatever the norms are: in units of 2^-44, of vectors as
    they are sent.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; they do not count.
        attackers: the part of the clients that is supposed to attack at most, from 0 to less than
            ½.
    """
    return _closest(vectors, attackers, 1)


def multi_krum(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    attackers: float = ATTACKERS,
    chosen: int | None = None,
) -> torch.Tensor:
    """Multi-Krum: the mean of the ``chosen`` vectors of least such sums, n - f if it is not given,
    and all where there are fewer; about 145 rounds; all else as in ``krum``.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; they do not count.
        attackers: as in ``krum``.
        chosen: of how many vectors it is the mean.
    """
    count = vectors.shape[0]
    return _closest(vectors, attackers, min(count, chosen or count - part_of(attackers, count)))


def _closest(vectors: torch.Tensor, attackers: float, chosen: int) -> torch.Tensor:
    count = vectors.shape[0]
    if chosen == count:
        return vectors.mean(0)
    # The vector itself, at distance 0, stands among its neighbours; that adds nothing.
    neighbours = max(2, count - part_of(attackers, count) - 1)
    with integers(BITS + _MORE):
        sums = sum_of_least(squared_distances(vectors), neighbours)
        # No two of these are equal.
        keys = sums * count + torch.arange(count)
        is_chosen = keys <= least(keys, chosen - 1)
    return (is_chosen.to(vectors.dtype).unsqueeze(0) @ vectors).squeeze(0) / chosen
