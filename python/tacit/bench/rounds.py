"""Rounds by number of parties. They are counted, so links in memory suffice."""

from collections.abc import Callable, Sequence

import torch

import tacit
from tacit.providers import CONSUMING, QUICKEST

PARTIES = range(2, 9)
ELEMENTS = 1000
OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mul": lambda x, y: x * y,
    "less": lambda x, y: x < y,
    "relu": lambda x, _: torch.relu(x),
}


def rounds_by_parties(parties: Sequence[int] = PARTIES) -> dict[int, dict[str, int]]:
    """Returns the rounds of each operation by number of parties, under additive sharing with a
    dealer."""
    counted = {}
    for number in parties:
        results = tacit.launch(_count, parties=number, protocol=CONSUMING, source=QUICKEST)
        counted[number] = {name: max(result[name] for result in results) for name in OPERATIONS}
    return counted


def _count() -> dict[str, int]:
    """Counts rounds in a party.

    Each operation runs ten times, because a party may start a message ahead of another."""
    session = tacit.session()
    x, y = (tacit.share(torch.ones(ELEMENTS), owner=0) for _ in range(2))
    counted = {}
    for name, operation in OPERATIONS.items():
        before = session.meter.total.rounds
        for _ in range(10):
            operation(x, y)
        counted[name] = round((session.meter.total.rounds - before) / 10)
    return counted
