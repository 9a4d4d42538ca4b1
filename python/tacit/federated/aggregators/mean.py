"""Means: of what clients send, and of that with long vectors shortened."""

import torch

from tacit.federated.aggregators.coordinates import least
from tacit.federated.aggregators.gram import BITS, squared_norms
from tacit.federated.aggregators.magnitude import powers
from tacit.federated.aggregators.precision import FINE, integers, numbers
from tacit.federated.aggregators.quotient import Quotient


def mean(vectors: torch.Tensor, weights: torch.Tensor) -> Quotient:
    """FedAvg (McMahan et al. 2017): the mean, weighted by the clients' counts of examples. Clients
    send vector·weight, so that there is no product here. Validation holds that product against the
    weight.

    Reveals the sum of the vectors and the sum of the weights, which are divided afterwards, by
    everybody.
    Rounds: none. Exact; elements below 2^22 units.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; clients have multiplied their vectors by them.
    """
    if len(weights) == 1:
        # Such as what servers have added up before: no copy of it is made.
        return Quotient(vectors[0], weights[0])
    return Quotient(vectors.sum(0), weights.sum())


def norm_clipping(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """The mean of vectors of which those that are longer than the median of all norms are shortened
    to it (Sun et al. 2019, with the threshold taken from the round). All clients weigh the same.

    Reveals nothing but its result. About 150 rounds with 16 clients; the products are n·d for the
    norms, and one of [1, n] by [n, d].

    Domain: norms up to 1, of any magnitude: squares are exact, and each is brought to a magnitude
    of its own before its root is taken. Error: 2^-12 of the median norm and two units.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; they do not count.
    """
    count = vectors.shape[0]
    with integers(BITS):
        squares = squared_norms(vectors)
        shorter = torch.minimum(squares, least(squares, (count - 1) // 2))
    with numbers(FINE, 2):
        both = powers(torch.stack([squares, shorter]))
        own, other = both[0], both[1]
        mantissa = other.mantissas()
        inverses = torch.rsqrt(torch.stack([own.mantissas(), mantissa]))
        factors = inverses[0] * (mantissa * inverses[1]) * own.over(other) / count
    return (factors.to(vectors.dtype).unsqueeze(0) @ vectors).squeeze(0)
