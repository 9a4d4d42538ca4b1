"""Krum and multi-Krum: the vectors that stand closest to others."""

import torch

from tacit.federated.aggregators.gram import squared_distances
from tacit.federated.aggregators.precision import FINE, numbers

#: The part of all clients that is assumed to attack, at most.
ATTACKERS = 0.25


def krum(vectors: torch.Tensor, weights: torch.Tensor, attackers: float = ATTACKERS) -> torch.Tensor:  # noqa: ARG001
    """Krum (Blanchard et al. 2017): the one vector whose n - f - 2 nearest others are closest, the sum of
    their squared distances being least; f = ⌊attackers·n⌋. The first of equal ones.

    Reveals nothing but its result, which is one client's vector. About 125 rounds with 16 clients; the
    products are n²·d, and one of [1, n] by [n, d].

    Domain: norms up to 1. Sums of squared distances that differ by less than n·2^-28 count as equal.
    """
    return _closest(vectors, attackers, 1)


def multi_krum(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    attackers: float = ATTACKERS,
) -> torch.Tensor:
    """Multi-Krum: the mean of the n - f vectors of least such sums; all else as in ``krum``."""
    count = vectors.shape[0]
    return _closest(vectors, attackers, count - int(attackers * count))


def _closest(vectors: torch.Tensor, attackers: float, chosen: int) -> torch.Tensor:
    count = vectors.shape[0]
    if chosen == count:
        return vectors.mean(0)
    # The vector itself, at distance 0, stands among its neighbours; that adds nothing.
    neighbours = max(2, count - int(attackers * count) - 1)
    with numbers(FINE, 8):
        nearest = squared_distances(vectors).topk(neighbours, largest=False).values
        places = nearest.sum(1).topk(chosen, largest=False).indices
    is_chosen = (places.unsqueeze(1) == torch.arange(count)).to(vectors.dtype).sum(0)
    return (is_chosen.unsqueeze(0) @ vectors).squeeze(0) / chosen
