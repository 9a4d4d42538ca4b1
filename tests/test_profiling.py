"""PyTorch's profiler around a program: if parties are threads, it records one party."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import profiler

import tacit

PROFILERS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "torch.profiler": lambda: profiler.profile(activities=[profiler.ProfilerActivity.CPU]),
    "torch.autograd.profiler": torch.autograd.profiler.profile,
}


def computed() -> Any:
    x = tacit.share(torch.ones(4, 4), owner=0)
    return (x @ x).relu().sum().reveal()


@pytest.mark.parametrize("name", PROFILERS)
def test_one_party_is_profiled_and_several_are_refused(name: str) -> None:
    def profiled(party: int | None) -> tuple[Any, list[str]]:
        is_it = party in (None, tacit.session().party)
        with PROFILERS[name]() if is_it else nullcontext() as recorded:
            found = computed()
        return found, [event.key for event in recorded.key_averages()] if is_it else []

    with pytest.raises(
        tacit.MisuseError, match=r"a second profiler: .* `if tacit\.session\(\)\.party == 0:`"
    ):
        tacit.launch(profiled, None)
    found = tacit.launch(profiled, 1)
    assert [value for value, _ in found] == [64.0, 64.0, 64.0]
    assert [bool(events) for _, events in found] == [False, True, False]


def test_parties_are_profiled_one_after_another() -> None:
    def program() -> list[bool]:
        found = []
        for party in range(3):
            with (
                PROFILERS["torch.profiler"]()
                if party == tacit.session().party
                else nullcontext() as recorded
            ):
                computed()
            found.append(recorded is not None and bool(recorded.key_averages()))
            # All parties wait here, so that this recording ends before the next one begins.
            tacit.session().told_by_all(b"")
        return found

    assert tacit.launch(program) == [[party == own for party in range(3)] for own in range(3)]


def test_a_profiler_around_a_launch_records_and_none_begins_within() -> None:
    def within() -> None:
        with PROFILERS["torch.profiler"]():
            computed()

    with PROFILERS["torch.profiler"]() as recorded:
        assert tacit.launch(computed)[0] == 64
        with pytest.raises(tacit.MisuseError, match="a second profiler"):
            tacit.launch(within)
    assert recorded.key_averages()
