"""The cache of operator calls never takes one call for a different one."""

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.operators.dispatch import call_cache


class Listening:
    """A session's core that also records what is noted."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.noted: list[bytes] = []

    def note(self, parameters: bytes) -> None:
        # The identifiers of the tensors come last. They differ in every call, since no tensor is
        # created twice.
        self.noted.append(re.sub(rb"(?<=\])\[[0-9, ]+\]$", b"", parameters))
        self.core.note(parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)


def shared(values: torch.Tensor, **options: Any) -> Any:
    return tacit.share(values, owner=0, **options)


def normalized(x: Any, epsilon: float) -> Any:
    return nn.functional.batch_norm(x, torch.zeros(2), torch.ones(2), eps=epsilon)


#: Calls that must be distinguished, whatever was called before.
CALLS: dict[str, Callable[[], Any]] = {
    "product": lambda: shared(torch.ones(2, 2)) * shared(torch.ones(2, 2)),
    "shape": lambda: shared(torch.ones(4)) * shared(torch.ones(4)),
    "shape of one": lambda: shared(torch.ones(2, 2)) * shared(torch.ones(2)),
    "scale": lambda: shared(torch.ones(2, 2), scale=20) * shared(torch.ones(2, 2)),
    "scale of the other": lambda: shared(torch.ones(2, 2)) * shared(torch.ones(2, 2), scale=20),
    "dtype": lambda: shared(torch.ones(2, 2, dtype=torch.int64)) * shared(torch.ones(2, 2)),
    "public": lambda: shared(torch.ones(2, 2)) * torch.ones(2, 2),
    "public first": lambda: torch.ones(2, 2) * shared(torch.ones(2, 2)),
    "number": lambda: shared(torch.ones(2, 2)) * 3.0,
    "whole number": lambda: shared(torch.ones(2, 2)) * 1,
    "truth": lambda: shared(torch.ones(2, 2)) * True,
    "operator": lambda: shared(torch.ones(2, 2)) + shared(torch.ones(2, 2)),
    "alpha": lambda: torch.add(shared(torch.ones(2, 2)), shared(torch.ones(2, 2)), alpha=2),
    "dimension 0": lambda: shared(torch.ones(2, 2)).sum(0),
    "dimension 1": lambda: shared(torch.ones(2, 2)).sum(1),
    "both dimensions": lambda: shared(torch.ones(2, 2)).sum((0, 1)),
    "kept dimension": lambda: shared(torch.ones(2, 2)).sum(1, keepdim=True),
    "list": lambda: torch.cat([shared(torch.ones(2, 2)), shared(torch.ones(2, 2))]),
    "longer list": lambda: torch.cat([shared(torch.ones(2, 2))] * 3),
    "no constant": lambda: normalized(shared(torch.ones(3, 2)), 0.0),
    "nothing with a sign": lambda: normalized(shared(torch.ones(3, 2)), -0.0),
}


def noted(order: list[str]) -> dict[str, list[bytes]]:
    """Returns what party 0 notes of each call, with all calls in one session."""

    def program() -> dict[str, list[bytes]]:
        session = tacit.session()
        listening: Any = Listening(session.core)
        session.core = listening
        found = {}
        for what in order:
            listening.noted = []
            CALLS[what]()
            found[what] = listening.noted
        return found

    return tacit.launch(program, protocol="plain", parties=2)[0]


def test_calls_that_differ_are_noted_as_they_are_in_any_order() -> None:
    order = list(CALLS)
    call_cache._known.clear()
    first = noted(order)
    assert all(first.values())
    for one, other in combinations(order, 2):
        assert first[one] != first[other], (one, other)
    # Repeat the calls with a full cache, then with an empty cache in the opposite order.
    assert noted(order) == first
    call_cache._known.clear()
    assert noted(order[::-1]) == first


def test_a_call_that_differs_is_found_after_many_equal_ones() -> None:
    def program() -> None:
        x = shared(torch.ones(2, 2))
        for _ in range(3):
            x.sum(0)
            x.sum(1)
        x.sum(tacit.session().party % 2).reveal()

    with pytest.raises(tacit.DesyncError, match="other parameters"):
        tacit.launch(program)


def test_values_are_compared_in_every_call() -> None:
    def program() -> None:
        x = shared(torch.ones(2, 2))
        factor = torch.full((2, 2), 3.0)
        for _ in range(3):
            x * factor
        factor.add_(tacit.session().party)
        (x * factor).reveal()

    with pytest.raises(tacit.DesyncError, match=r"aten\.mul\.Tensor"):
        tacit.launch(program)


def test_a_write_is_seen_by_the_same_call() -> None:
    def program() -> list[Any]:
        x, y = shared(torch.ones(2, 2)), shared(torch.full((2, 2), 3.0))
        found = [(x * y).reveal()]
        x.copy_(y)
        found.append((x * y).reveal())
        x[0] = 0.0
        found.append((x * y).reveal())
        return found

    before, after, last = tacit.launch(program)[0]
    assert torch.equal(before, torch.full((2, 2), 3.0))
    assert torch.equal(after, torch.full((2, 2), 9.0))
    assert torch.equal(last, torch.tensor([[0.0, 0.0], [9.0, 9.0]]))


def test_a_quotient_of_integers_has_the_default_dtype_of_the_moment() -> None:
    def program() -> list[torch.dtype]:
        return [(shared(torch.tensor([4])) / 2).dtype for _ in range(2)]

    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            assert tacit.launch(program, protocol="plain", parties=2) == [[dtype] * 2] * 2
    finally:
        torch.set_default_dtype(torch.float32)


def test_few_calls_are_remembered_and_those_that_are_not_are_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_cache, "MOST", 4)
    call_cache._known.clear()

    def program() -> list[float]:
        x = shared(torch.arange(12.0))
        return [float(x[:size].sum().reveal()) for size in (*range(1, 13), *range(1, 13))]

    sums = [size * (size - 1) / 2 for size in range(1, 13)]
    assert tacit.launch(program, protocol="plain", parties=2) == [sums * 2] * 2
    # The threads of both parties may each be about to add an entry.
    assert len(call_cache._known) <= 4 + 2


def test_gradients_are_on_or_off_as_before() -> None:
    def program() -> list[bool]:
        x = shared(torch.ones(2))
        found = []
        for enabled in (True, False):
            with torch.set_grad_enabled(enabled):
                x * x
                found.append(torch.is_grad_enabled())
                with pytest.raises(tacit.UnsupportedOperatorError):
                    torch.special.bessel_j0(x)
                found.append(torch.is_grad_enabled())
                x + x
                found.append(torch.is_grad_enabled())
        return found

    assert tacit.launch(program, protocol="plain", parties=2) == [[True] * 3 + [False] * 3] * 2
