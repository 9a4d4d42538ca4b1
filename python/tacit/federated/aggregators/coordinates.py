"""Coordinate-wise medians and trimmed means.

A network of comparators orders the values (``operators.network``). Each comparator takes one
maximum: the lesser of two values is their sum less the greater. Unlike ``torch.sort``, the network
carries no indices, and it has only the comparators that affect the wanted places.
"""

import math
from collections.abc import Callable

import torch

from tacit.federated.aggregators.precision import numbers
from tacit.operators.numerics.sorting_network import Network, network
from tacit.sessions import current_session

#: Elements that are sorted at once.
AT_ONCE = 1 << 24

#: The fraction of all clients that is dropped at each end.
TRIMMED = 0.25


def median(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Computes the median of each coordinate (Yin et al. 2018).

    The median of an even number of values is the mean of the middle two.

    Reveals nothing but its result, whose coordinates are those of single clients. At most eight
    rounds for each stage of the network: 50 with 16 clients. Comparators for each coordinate: 16
    with 8 clients, 52 with 16, 156 with 32.

    Domain: elements up to 1. Exact, except for half a unit with an even number of clients.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; ignored.
    """
    count = vectors.shape[0]
    return _by_coordinate(vectors, lambda x: _mean_of_places(x, (count - 1) // 2, count // 2 + 1))


def trimmed_mean(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    trimmed: float = TRIMMED,
) -> torch.Tensor:
    """Computes the mean of each coordinate without its b least and b greatest values (Yin et al.
    2018).

    b = ⌊trimmed·n⌋ for n clients.

    Reveals nothing but its result. Rounds and comparators: those that the middle places need, or
    those of both ends if these are fewer. Domain: elements up to 1. Error: one unit.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; ignored.
        trimmed: the fraction of the clients that is dropped at each end, from 0 to less than ½.
    """
    count = vectors.shape[0]
    dropped = part_of(trimmed, count)
    if 2 * dropped >= count:
        dropped = (count - 1) // 2
    return _by_coordinate(vectors, lambda x: _mean_of_places(x, dropped, count - dropped))


def part_of(part: float, count: int) -> int:
    """Returns ⌊part·count⌋ with the part taken as a decimal: 29 for 0.29 of 100."""
    return math.floor(part * count * (1 + 2.0**-40))


def _by_coordinate(
    vectors: torch.Tensor, combine: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Applies a function to the coordinates block by block, which bounds the memory in use."""
    session = current_session()
    with numbers(16 if session is None else session.scale.bits, 1):
        pieces = torch.split(vectors, AT_ONCE // vectors.shape[0], dim=1)
        return torch.cat([combine(piece) for piece in pieces])


def _mean_of_places(x: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """Averages places ``first`` up to, but not including, ``last`` of each sorted column."""
    count = x.shape[0]
    middle, end = (
        _unordered(network(count, *places), count) for places in ((first, last), (0, first))
    )
    if 2 * _comparators(end) < _comparators(middle):
        # Both ends in one pass: the greatest values are the least of the negated ones.
        least = _placed(torch.stack([x, -x], 1), end).sum(0)
        total = x.sum(0) - least[0] + least[1]
    else:
        total = _placed(x, middle).sum(0)
    return total / (last - first)


def least(x: torch.Tensor, place: int) -> torch.Tensor:
    """Returns the value at the given place, from 0, of each sorted column.

    Eight rounds for each stage of the network.
    """
    return _placed(x, network(x.shape[0], place, place + 1))[0]


def sum_of_least(x: torch.Tensor, count: int) -> torch.Tensor:
    """Sums the ``count`` least values of each column. As many rounds as ``least``."""
    size = x.shape[0]
    return _placed(x, _unordered(network(size, 0, count), size)).sum(0)


def _unordered(comparisons: Network, count: int) -> Network:
    """Removes the comparators that only order values which are added up anyway.

    A comparator leaves the sum of its two values unchanged.
    """
    summed = torch.zeros(count, dtype=torch.bool)
    summed[comparisons.places] = True
    kept = []
    for low, high in reversed(comparisons.stages):
        counts = ~(summed[low] & summed[high])
        low, high = low[counts], high[counts]
        # Comparators before this one can no longer swap its two places freely.
        summed[low] = summed[high] = False
        if len(low):
            kept.append((low, high))
    return Network(tuple(reversed(kept)), comparisons.places)


def _comparators(comparisons: Network) -> int:
    return sum(len(low) for low, _ in comparisons.stages)


def _placed(x: torch.Tensor, comparisons: Network) -> torch.Tensor:
    """Returns the values that the network puts at its places, along the first dimension."""
    for low, high in comparisons.stages:
        left, right = x[low], x[high]
        greater = torch.maximum(left, right)
        x = x.index_copy(0, high, greater).index_copy(0, low, left + right - greater)
    return x[comparisons.places]
