"""A guard that fails denies one client of a batch its result, and tells nobody else."""

from pathlib import Path
from typing import Any

import torch

import tacit
from guarded import COMPILED, layers, with_sum
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights
from tacit.serving.config import Model
from tacit.serving.models import Bound, Loaded
from tacit.sharings import shares

MODEL = Model("net", "1", Path("net.tacit"), None, 0, Path("net.weights"), None, None)


def answer(program: Program, weights: Weights, sums: list[float]) -> tuple[Any, int]:
    """Computes a batch as a party of a service. Returns this party's components of the results, and
    the bytes that it sent."""
    current = tacit.session()
    own = weights if current.party == MODEL.owner else None
    bound = Bound(current, Loaded(MODEL, program.digest, program, own), len(sums))
    (taken,) = bound.described.inputs
    words = torch.stack([taken.encoded(with_sum(each)) for each in sums])
    # The first batch opens the masked weights.
    bound.results(shares.trivial(current, torch.zeros_like(words)), len(sums))
    before = current.meter.total.bytes_sent
    results = bound.results(shares.trivial(current, words), len(sums))
    sent = current.meter.total.bytes_sent - before
    (returned,) = bound.described.outputs
    return [(each, returned) for each in results[0]], sent


def answered(sums: list[float]) -> tuple[list[torch.Tensor | None], list[int]]:
    """Returns what each client gets, or nothing if its numbers left their range, and the bytes that
    each party sent."""
    told = tacit.launch(answer, *COMPILED, sums, parties=2, protocol="additive", source="dealer")
    results: list[torch.Tensor | None] = []
    for row in zip(*(each for each, _ in told), strict=True):
        words = sum(part for part, _ in row)
        *numbers, marker = words
        assert marker in (0, 1)
        if not marker:
            assert not any(numbers)
        results.append(row[0][1].decoded(torch.stack(numbers)) if marker else None)
    return results, [sent for _, sent in told]


def test_a_client_whose_numbers_are_out_of_range_is_alone() -> None:
    results, sent = answered([3.0, 400.0, 5.0])
    assert results[1] is None
    for total, found in ((3.0, results[0]), (5.0, results[2])):
        assert found is not None
        with torch.no_grad():
            assert (found - layers()(with_sum(total))).abs().max() < 0.01
    # Nobody sees it from what is sent.
    others, usually = answered([3.0, 4.0, 5.0])
    assert None not in others
    assert sent == usually
