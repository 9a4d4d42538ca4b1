"""The geometric median: the point with the least sum of distances to all vectors.

Distances differ by orders of magnitude. Updates late in training are far shorter than the bound,
honest clients are close to each other, and attackers are far away. So everything is measured from
the *pivot*, the vector whose ball around more than half of all vectors is the smallest, in units of
the *radius* r of that ball. More than half of the vectors are then at most r from the pivot.
Therefore the median is close to the pivot too, wherever the other vectors are: at less than 5·r
with 64 clients.

Symbols: v_i = y_i - pivot; t_i ≤ 1 is the power of two that brings v_i/r to a length of at most 1,
and is 1 within the ball; u_i = t_i·v_i/r. For x = pivot + r·Σ b_j·u_j with Σ t_j·b_j = 1,

    δ_i² = (t_i·|x - y_i|/r)² = |u_i|² - 2·t_i·(Gb)_i + t_i²·b'Gb,      G = the products of the u,

is of moderate size whether y_i is near or far. A step of Weiszfeld's iteration sets
b_i = (1/δ_i) / Σ t_j/δ_j. Only the first products and the last one have operands of the length of a
vector.
"""

from collections.abc import Iterator

import torch

from tacit.federated.aggregators.coordinates import least
from tacit.federated.aggregators.gram import BITS, squared_distances
from tacit.federated.aggregators.magnitude import WIDTH, fraction, powers
from tacit.federated.aggregators.precision import WIDE, integers, numbers

#: The default number of steps: at least the first, and the second plus half the number of clients.
LEAST_STEPS, MORE_STEPS = 16, 8

#: Distances below this fraction of the radius count as this fraction.
SMOOTHING = 2.0**-8

#: The mean of this many vectors, or fewer, is a geometric median of them.
_FEW = 2

#: The most of a step that is repeated in the next one.
_MOMENTUM = 0.8


def geometric_median(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    steps: int | None = None,
) -> torch.Tensor:
    """Computes RFA's geometric median (Pillutla et al. 2022).

    Runs the smoothed Weiszfeld iteration, and adds to each step a part of the one before (Nesterov
    1983). It starts from the mean of the vectors after they are brought to the radius. All clients
    have the same weight.

    Reveals nothing but its result. About 190 rounds with 16 clients, and 97 for each step. The
    products cost n²·d, plus one of [1, n] by [n, d].

    Domain: norms up to 1, of any magnitude and at any distances. Error: r/16, if less than half of
    the clients attack, where r is the radius of the smallest ball around a vector that holds more
    than half of them. The sum of all distances exceeds the least possible by at most n·r/1000.
    Rounding adds two units. If the median is not unique, as between two halves, the result is any
    of the medians. The default is 16 steps with up to 16 clients, and 40 with 64. Fewer steps take
    less time and leave a larger error.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; ignored.
        steps: number of iterations; ``None`` for the default.
    """
    count = vectors.shape[0]
    if count <= _FEW:
        return vectors.mean(0)
    with integers(BITS + 6):
        distances = squared_distances(vectors)
        radii = least(distances, count // 2)
        keys = radii * count + torch.arange(count)
        is_pivot = (keys <= least(keys, 0)).to(torch.int64)
        square = (is_pivot * radii).sum()
        away = (is_pivot.unsqueeze(0) @ distances).squeeze(0)
        # All vectors within the ball are brought to the same magnitude.
        lengths = torch.maximum(away, square)
    with numbers(WIDE, 8):
        every = powers(torch.cat([lengths, square.unsqueeze(0)]))
        own, radius = every[:-1], every[-1]
        # 2·v_i·v_j = |v_i|² + |v_j|² - |v_i - v_j|²
        twice = away.unsqueeze(0) + away.unsqueeze(1) - distances
        products = fraction(twice * own.power.unsqueeze(0) * own.power.unsqueeze(1), WIDTH + 1)
        scales = own.over(radius)
        factors = _median(products, scales, steps or usual_steps(count)) * scales
        # Rounding leaves the factors' sum slightly off 1. The pivot gets the remainder, and so
        # moves nothing by more than that error.
        factors = factors + is_pivot.to(factors.dtype) * (1.0 - factors.sum())
    return (factors.to(vectors.dtype).unsqueeze(0) @ vectors).squeeze(0)


def usual_steps(clients: int) -> int:
    """Returns the default number of iterations for the given number of clients.

    With more clients the fraction of attackers may come closer to a half, which slows the
    iteration.
    """
    return max(LEAST_STEPS, MORE_STEPS + clients // 2)


def _median(products: torch.Tensor, scales: torch.Tensor, steps: int) -> torch.Tensor:
    """Computes the factors b of the median from G (``products``) and t (``scales``)."""
    own, squares = products.diagonal(), scales * scales
    found = at = _divided(torch.ones_like(scales), scales)
    for momentum in _momenta(steps):
        along = products @ at
        distances = own - 2 * scales * along + squares * (at * along).sum()
        inverse = torch.rsqrt(distances.clamp(min=SMOOTHING**2)) * SMOOTHING
        last, found = found, _divided(inverse, scales)
        at = found + momentum * (found - last)
    return found


def _divided(inverse: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Scales the factors so that their sum, weighted by ``scales``, is 1."""
    factors = inverse * torch.reciprocal((inverse * scales).sum())
    # Corrects the reciprocal's error: small distances would magnify it.
    return factors * (2 - (factors * scales).sum())


def _momenta(steps: int) -> Iterator[float]:
    for step in range(steps):
        yield min(_MOMENTUM, step / (step + 3))
