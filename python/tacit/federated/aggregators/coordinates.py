"""Medians and trimmed means of each coordinate by itself.

Values are ordered by a network of comparators (``operators.network``), of which each is one
maximum: the lesser of two is their sum less the greater. What is sorted carries no indices, as
``torch.sort`` would have it do, and only comparators that count for the wanted places are made.
"""

import math
from collections.abc import Callable

import torch

from tacit.federated.aggregators.precision import numbers
from tacit.operators.numerics.sorting_network import Network, network
from tacit.sessions import current_session

#: Elements that are ordered at once.
AT_ONCE = 1 << 24

#: The part of all clients that is dropped at each end.
TRIMMED = 0.25


def median(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """The median of each coordinate (Yin et al. 2018); of an even number the mean of the middle
    two.

    Reveals nothing but its result, whose coordinates are those of single clients. Eight rounds at
    most for
    each stage of the network: 50 with 16 clients.
    Comparators for each coordinate: 16 with 8 clients, 52 with 16, 156 with 32.

    Domain: elements up to 1. Exact, but for half a unit with an even number.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; they do not count.
    """
    count = vectors.shape[0]
    return _by_coordinate(vectors, lambda x: _mean_of_places(x, (count - 1) // 2, count // 2 + 1))


def trimmed_mean(
    vectors: torch.Tensor,
    weights: torch.Tensor,  # noqa: ARG001
    trimmed: float = TRIMMED,
) -> torch.Tensor:
    """The mean of each coordinate without the b least and the b greatest, b = ⌊trimmed·n⌋ (Yin et
    al. 2018).

    Reveals nothing but its result. Rounds and comparators: those of the middle places, or of both
    ends where these are fewer. Domain: elements up to 1. Error: one unit.

    Args:
        vectors: updates [clients, parameters], in units of the bound on their norm; secret or
            plain.
        weights: of the clients, [clients]; they do not count.
        trimmed: the part of the clients that is dropped at each end, from 0 to less than ½.
    """
    count = vectors.shape[0]
    dropped = part_of(trimmed, count)
    if 2 * dropped >= count:
        dropped = (count - 1) // 2
    return _by_coordinate(vectors, lambda x: _mean_of_places(x, dropped, count - dropped))


def part_of(part: float, count: int) -> int:
    """⌊part·count⌋ of a part that is meant in decimals: of 0.29 and 100 it is 29."""
    return math.floor(part * count * (1 + 2.0**-40))


def _by_coordinate(
    vectors: torch.Tensor, combine: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The function of some coordinates after others, which bounds what is held at once."""
    session = current_session()
    with numbers(16 if session is None else session.scale.bits, 1):
        pieces = torch.split(vectors, AT_ONCE // vectors.shape[0], dim=1)
        return torch.cat([combine(piece) for piece in pieces])


def _mean_of_places(x: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """The mean of what stands at places from ``first`` to before ``last`` of each sorted column."""
    count = x.shape[0]
    middle, end = (
        _unordered(network(count, *places), count) for places in ((first, last), (0, first))
    )
    if 2 * _comparators(end) < _comparators(middle):
        # Both ends at once: the greatest are the least of what has the other sign.
        least = _placed(torch.stack([x, -x], 1), end).sum(0)
        total = x.sum(0) - least[0] + least[1]
    else:
        total = _placed(x, middle).sum(0)
    return total / (last - first)


def least(x: torch.Tensor, place: int) -> torch.Tensor:
    """What stands at that place, from 0, of each sorted column. Eight rounds a stage of the
    network."""
    return _placed(x, network(x.shape[0], place, place + 1))[0]


def sum_of_least(x: torch.Tensor, count: int) -> torch.Tensor:
    """Of so many of each column. Rounds as ``least``."""
    size = x.shape[0]
    return _placed(x, _unordered(network(size, 0, count), size)).sum(0)


def _unordered(comparisons: Network, count: int) -> Network:
    """The same without the comparators that only say in which order those stand that are added up:
    a comparator leaves the sum of its two as it is."""
    summed = torch.zeros(count, dtype=torch.bool)
    summed[comparisons.places] = True
    kept = []
    for low, high in reversed(comparisons.stages):
        counts = ~(summed[low] & summed[high])
        low, high = low[counts], high[counts]
        # What these decide is not free any more for those before.
        summed[low] = summed[high] = False
        if len(low):
            kept.append((low, high))
    return Network(tuple(reversed(kept)), comparisons.places)


def _comparators(comparisons: Network) -> int:
    return sum(len(low) for low, _ in comparisons.stages)


def _placed(x: torch.Tensor, comparisons: Network) -> torch.Tensor:
    """What the network finds along the first dimension."""
    for low, high in comparisons.stages:
        left, right = x[low], x[high]
        greater = torch.maximum(left, right)
        x = x.index_copy(0, high, greater).index_copy(0, low, left + right - greater)
    return x[comparisons.places]
