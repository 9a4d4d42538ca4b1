"""Means: the plain weighted mean, and the mean of vectors that are clipped to the median norm."""

import torch

from tacit.federated.aggregators.coordinates import least
from tacit.federated.aggregators.gram import BITS, squared_norms
from tacit.federated.aggregators.magnitude import powers
from tacit.federated.aggregators.precision import FINE, integers, numbers
from tacit.federated.aggregators.quotient import Quotient


def mean(vectors: torch.Tensor, weights: torch.Tensor) -> Quotient:
    """Computes the weighted mean of FedAvg (McMahan et al. 2017).

    The weights are the clients' counts of examples. Clients send vector·weight, so there is no
    product here. Validation checks that product against the weight.

    Reveals the sum of the vectors and the sum of the weights. Everyone divides them afterwards. No
    rounds. Exact, for elements below 2^22 units.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; clients have multiplied their vectors by them.
    """
    if len(weights) == 1:
        # For example a sum that servers have added up before. This avoids a copy of it.
        return Quotient(vectors[0], weights[0])
    return Quotient(vectors.sum(0), weights.sum())


def norm_clipping(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Averages the vectors after clipping them to the median of all norms.

    This is norm clipping (Sun et al. 2019), with the threshold taken from the round. All clients
    have the same weight.

    Reveals nothing but its result. About 150 rounds with 16 clients. The products cost n·d for the
    norms, plus one of [1, n] by [n, d].

    Domain: norms up to 1, of any magnitude. Squares are exact, and each is scaled to its own
    magnitude before its root is taken. Error: 2^-12 of the median norm and two units.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; ignored.
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
