"""Batcher's odd-even merge sort (1968; Knuth, volume 3, 5.2.2, algorithm M) as a sorting network.

Which places are compared, and when, depends on the number of elements alone, never on their
values."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch

from tacit.modes import outside_trace

#: Places that are compared at the same time: those that get the lesser element, and their partners.
Stage = tuple[torch.Tensor, torch.Tensor]

#: Marks a place whose element is no longer needed.
NONE = -1


class Network(NamedTuple):
    """Comparisons in stages, and the places that then hold the requested elements, in order."""

    stages: tuple[Stage, ...]
    places: torch.Tensor


@outside_trace
@lru_cache(maxsize=32)
def network(size: int, first: int, last: int) -> Network:
    """Returns the network that finds the sorted elements from ``first`` to before ``last``.

    All n elements take log2(n)·(log2(n) + 1)/2 stages of at most n/2 comparisons.

    If the least k elements are enough, only k elements are kept of each sorted run. The others
    count as greater than all, and an element that would be compared with one of them moves without
    a comparison. Comparisons that do not affect the requested elements are left out. So the least
    element alone takes n − 1 comparisons.
    """
    found: list[Stage] = []
    # The place that now holds the element of each place of the whole network.
    holds = torch.arange(size)
    for run, distance, low in _comparisons(size):
        high = low + distance
        one, other = holds[low], holds[high]
        both, moves = (one != NONE) & (other != NONE), (one == NONE) & (other != NONE)
        found.append((one[both], other[both]))
        holds[low[moves]], holds[high[moves]] = other[moves], NONE
        if distance == 1:
            holds[torch.arange(size) % (2 * run) >= last] = NONE
    places = holds[first:last]
    return Network(_counting(found, size, places), places)


def _counting(stages: list[Stage], size: int, places: torch.Tensor) -> tuple[Stage, ...]:
    """Keeps only the comparisons that affect the elements at ``places`` in the end."""
    wanted = torch.zeros(size, dtype=torch.bool)
    wanted[places] = True
    found = []
    for low, high in reversed(stages):
        counts = wanted[low] | wanted[high]
        low, high = low[counts], high[counts]
        if low.numel():
            wanted[low] = wanted[high] = True
            found.append((low, high))
    return tuple(reversed(found))


def _comparisons(size: int) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Yields the stages of the whole network: run length p, distance, and the lower places.

    Two neighbouring sorted runs of p elements are merged by comparisons at distances p, p/2, ...,
    1. Comparisons that would reach outside the pair of runs are left out."""
    run = 1
    while run < size:
        distance = run
        while distance:
            place = torch.arange(size - distance)
            offset = distance % run
            compares = (place >= offset) & ((place - offset) // distance % 2 == 0)
            compares &= place // (2 * run) == (place + distance) // (2 * run)
            yield run, distance, place[compares]
            distance //= 2
        run *= 2
