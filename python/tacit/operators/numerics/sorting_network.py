"""Batcher's odd-even merge sort (1968; Knuth, volume 3, 5.2.2, algorithm M): which places are
compared, and when. It depends on the number of elements alone, so that nothing about them decides
what is done."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch

from tacit.modes import outside_trace

#: Places that are compared with each other at the same time: those that get the lesser, and their
#: partners.
Stage = tuple[torch.Tensor, torch.Tensor]

#: In the place of an element that does not count any more.
NONE = -1


class Network(NamedTuple):
    """Comparisons, stage after stage, and the places where what was asked for is then, in order."""

    stages: tuple[Stage, ...]
    places: torch.Tensor


@outside_trace
@lru_cache(maxsize=32)
def network(size: int, first: int, last: int) -> Network:
    """Finds what belongs at the places from ``first`` to before ``last``. All of n elements take
    log2(n)·(log2(n) + 1)/2 stages of at most n/2 comparisons.

    Where the least k are enough, only they are kept of each sorted run: the others count as greater
    than all, and what is compared with them moves without a comparison. And no comparison is made
    that does not count for what is asked for. So the least alone takes n − 1.
    """
    found: list[Stage] = []
    # Where the element is that belongs at each place of the whole network.
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
    """Only comparisons that count for what is at these places in the end."""
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
    """A run of p elements is sorted; two neighbouring ones are merged by comparisons at distances
    p, p/2, ..., 1, of which those drop out that would leave the pair of runs: p, distance, and the
    lower places."""
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
