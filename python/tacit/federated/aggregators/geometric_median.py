"""The geometric median: the point whose distances to all vectors have the least sum."""

import torch

from tacit.federated.aggregators.gram import squared_distances
from tacit.federated.aggregators.precision import FINE, numbers

#: Steps of Weiszfeld's iteration. Each takes a distance's excess over the median's to about a third.
STEPS = 8

#: Distances count as at least this.
SMOOTHING = 2.0**-8


def geometric_median(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """RFA (Pillutla et al. 2022): smoothed Weiszfeld iteration. All clients weigh the same.

    It never leaves the space of the vectors, so it works on their squared distances alone: for factors c that
    add up to 1, |x - Σ c y|^2 = (Dc) - ½ c'Dc. Only the last step has the length of a vector.

    Reveals nothing but its result. About 87 rounds a step, of which there are eight; the products are n²·d,
    and one of [1, n] by [n, d].

    Domain: norms up to 1. Distances below 2^-8 count as that. Error: 2^-15 of the largest norm, in the
    direction of the vectors.
    """
    count = vectors.shape[0]
    with numbers(FINE, 7):
        # A quarter of each, which is at most 1: so are all products.
        quarters = squared_distances(vectors) * 0.25
        factors = torch.full((count,), 1.0 / count, dtype=vectors.dtype)
        for _ in range(STEPS):
            spread = quarters @ factors
            squares = spread - 0.5 * (factors * spread).sum()
            inverse = torch.rsqrt(squares.clamp(min=SMOOTHING**2 / 4)) * (SMOOTHING / 2)
            factors = inverse * torch.reciprocal(inverse.sum())
            # Of factors whose sum is off as a reciprocal is, small distances would be off by far more.
            factors = factors * (2 - factors.sum())
    return (factors.unsqueeze(0) @ vectors).squeeze(0)
