"""Means: of what clients send, and of that with long vectors shortened."""

import torch

from tacit.federated.aggregators.gram import squared_norms
from tacit.federated.aggregators.precision import COARSE, FINE, numbers
from tacit.federated.aggregators.quotient import Quotient

#: Squares of norms count as at least this, so that inverse roots stay below 2^10.
LEAST_SQUARE = 2.0**-20


def mean(vectors: torch.Tensor, weights: torch.Tensor) -> Quotient:
    """FedAvg (McMahan et al. 2017): the mean, weighted by the clients' counts of examples. Clients send
    vector·weight, so that there is no product here. Validation holds that product against the weight.

    Reveals the sum of the vectors and the sum of the weights, which are divided afterwards, by everybody.
    Rounds: none. Exact; elements below 2^22 units.
    """
    if len(weights) == 1:
        # Such as what servers have added up before: no copy of it is made.
        return Quotient(vectors[0], weights[0])
    return Quotient(vectors.sum(0), weights.sum())


def norm_clipping(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """The mean of vectors of which those that are longer than the median of all norms are shortened to it
    (Sun et al. 2019, with the threshold taken from the round). All clients weigh the same.

    Reveals nothing but its result. About 165 rounds with 16 clients; the products are n·d for the norms, and
    one of [1, n] by [n, d].

    Domain: norms up to 1; those below 2^-10 count as that. Error: 2^-12 relative and two units.
    """
    count = vectors.shape[0]
    with numbers(FINE, 2):
        squares = squared_norms(vectors).clamp(min=LEAST_SQUARE)
        median = squares.sort().values[(count - 1) // 2]
        shorter = torch.minimum(squares, median)
        inverse = torch.rsqrt(squares)
        norms = shorter * torch.rsqrt(shorter)
    with numbers(COARSE, 2):
        factors = norms * inverse / count
        return (factors.unsqueeze(0) @ vectors).squeeze(0)
