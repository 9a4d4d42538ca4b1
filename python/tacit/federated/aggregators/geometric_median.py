"""The geometric median: the point whose distances to all vectors have the least sum.

Distances differ by orders of magnitude: updates are far shorter than the bound late in training,
clients are close to each other, and attackers far away. So all is measured from the *pivot*, the
vector whose ball of more than half of all vectors is the smallest, in units of the *radius* r of
that ball. More than half are no farther than r from the pivot then, and so is the median not far,
wherever the others are: at less than 5·r of 64 clients.

Symbols: v_i = y_i - pivot; t_i ≤ 1 the power of two that brings v_i/r to a length of 1 at most, 1
within the ball; u_i = t_i·v_i/r. For x = pivot + r·Σ b_j·u_j with Σ t_j·b_j = 1,

    δ_i² = (t_i·|x - y_i|/r)² = |u_i|² - 2·t_i·(Gb)_i + t_i²·b'Gb,      G = the products of the u,

is of moderate size, be y_i near or far, and a step of Weiszfeld's iteration makes b_i = (1/δ_i) / Σ
t_j/δ_j. Nothing here has the length of a vector but the first products and the last.
"""

from collections.abc import Iterator

import torch

from tacit.federated.aggregators.coordinates import least
from tacit.federated.aggregators.gram import BITS, squared_distances
from tacit.federated.aggregators.magnitude import WIDTH, fraction, powers
from tacit.federated.aggregators.precision import WIDE, integers, numbers

#: Steps of the iteration at the least, and beside half of the number of clients, where nobody says
#: otherwise.
LEAST_STEPS, MORE_STEPS = 16, 8

#: Distances count as at least this part of the radius.
SMOOTHING = 2.0**-8

#: Up to two vectors' mean is a geometric median of theirs.
_FEW = 2

#: How much of a step is taken once more, at most.
_MOMENTUM = 0.8


def geometric_median(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    steps: int | None = None,
) -> torch.Tensor:
    """RFA (Pillutla et al. 2022): smoothed Weiszfeld iteration, each step with a part of the one
    before (Nesterov 1983), from the mean of the vectors that are brought to the radius. All clients
    weigh the same.

    Reveals nothing but its result. About 190 rounds with 16 clients and 97 for each step; the
    products are n²·d, and one of [1, n] by [n, d].

    Domain: norms up to 1, of any magnitude and at any distances. Error: r/16, however many less
    than half of the clients attack, where r is the radius of the smallest ball around a vector that
    holds more than half of them; the sum of all distances is above the least by n·r/1000 at most;
    and two units besides. Where a median is not one point, as between two halves, it is any. Fewer
    steps than the usual ones, 16 with up to 16 clients and 40 with 64, take less time and leave
    more: ``steps``.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; they do not count.
        steps: of the iteration; the usual ones if not given.
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
        # Within the ball all are brought to the same magnitude.
        lengths = torch.maximum(away, square)
    with numbers(WIDE, 8):
        every = powers(torch.cat([lengths, square.unsqueeze(0)]))
        own, radius = every[:-1], every[-1]
        # 2·v_i·v_j = |v_i|² + |v_j|² - |v_i - v_j|²
        twice = away.unsqueeze(0) + away.unsqueeze(1) - distances
        products = fraction(twice * own.power.unsqueeze(0) * own.power.unsqueeze(1), WIDTH + 1)
        brought = own.over(radius)
        factors = _median(products, brought, steps or usual_steps(count)) * brought
        # What rounding leaves of a sum of 1 is the pivot's, and so moves nothing by more than it is
        # off.
        factors = factors + is_pivot.to(factors.dtype) * (1.0 - factors.sum())
    return (factors.to(vectors.dtype).unsqueeze(0) @ vectors).squeeze(0)


def usual_steps(clients: int) -> int:
    """With more clients attackers may come closer to a half of them, and the iteration is slower
    then."""
    return max(LEAST_STEPS, MORE_STEPS + clients // 2)


def _median(products: torch.Tensor, brought: torch.Tensor, steps: int) -> torch.Tensor:
    """The b of the median, of G and t."""
    own, squares = products.diagonal(), brought * brought
    found = at = _divided(torch.ones_like(brought), brought)
    for momentum in _momenta(steps):
        along = products @ at
        distances = own - 2 * brought * along + squares * (at * along).sum()
        inverse = torch.rsqrt(distances.clamp(min=SMOOTHING**2)) * SMOOTHING
        last, found = found, _divided(inverse, brought)
        at = found + momentum * (found - last)
    return found


def _divided(inverse: torch.Tensor, brought: torch.Tensor) -> torch.Tensor:
    """Brought to a sum of 1, in which they count as often as they were brought nearer."""
    factors = inverse * torch.reciprocal((inverse * brought).sum())
    # Of factors whose sum is off as a reciprocal is, small distances would be off by far more.
    return factors * (2 - (factors * brought).sum())


def _momenta(steps: int) -> Iterator[float]:
    for step in range(steps):
        yield min(_MOMENTUM, step / (step + 3))
