"""Integers of every size that become fractions: means, quotients, public factors."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit
from tacit.providers import REFERENCE

#: Seconds since 1970, salaries in cents, and words of every size.
TIMES = torch.randint(
    1_600_000_000, 1_700_000_000, (10_000,), generator=torch.Generator().manual_seed(0)
)
CENTS = torch.randint(1_000_000, 9_000_000, (10_000,), generator=torch.Generator().manual_seed(1))
LARGE = torch.tensor([3_000_000_000, -5_000_000_001, 7, 2**40 + 1, -(2**52), 2**61 + 12345, 0])
DIVISORS = torch.tensor([700_001, -3_000_000_000, 2, 2**30 + 1, 2**50, 2**58 + 3, 5])

#: Expressions of programs, and their relative error, in addition to four units.
QUOTIENTS: dict[str, tuple[Callable[..., Any], float]] = {
    "a mean of times": (lambda times, *_: times.double().mean(), 0.0),
    "means of times by rows": (
        lambda times, *_: times.reshape(100, 100).mean(1, dtype=torch.float64),
        0.0,
    ),
    "a sum of cents by their number": (lambda _, cents, *__: cents.sum() / cents.numel(), 0.0),
    "a mean of cents": (lambda _, cents, *__: cents.double().mean(), 0.0),
    "a mean of those who earn more": (
        lambda _, cents, *__: (cents * (cents > 5_000_000)).sum() / (cents > 5_000_000).sum(),
        2.0**-24,
    ),
    "means so far": (lambda _, cents, *__: cents.cumsum(0) / torch.arange(1, 10_001), 0.0),
    "a weighted mean of cents": (lambda _, cents, *__: (cents @ cents) / cents.sum(), 2.0**-24),
    "times scaled": (
        lambda times, *_: (times - times.min()) / (times.max() - times.min()),
        2.0**-24,
    ),
    "words by words": (lambda _, __, large, divisors: large / divisors, 2.0**-24),
    "fractions by words": (lambda _, __, ___, divisors: 1e6 / divisors, 2.0**-24),
    "words by a public number": (lambda _, __, large, ___: large / 3e10, 0.0),
    "words times a fraction": (lambda _, __, large, ___: large * 1e-11, 0.0),
    "cents with interest": (lambda _, cents, *__: cents * 1.05, 0.0),
}


@pytest.mark.parametrize("protocol", [REFERENCE, "replicated", "additive"])
def test_integers_stay_exact_until_they_are_fractions(protocol: str) -> None:
    operands = (TIMES, CENTS, LARGE, DIVISORS)

    def program() -> list[torch.Tensor]:
        shared = [tacit.share(x, owner=0) for x in operands]
        return [function(*shared).to(torch.float64).reveal() for function, _ in QUOTIENTS.values()]

    more = {"parties": 2, "source": "dealer"} if protocol == "additive" else {}
    results = tacit.launch(program, protocol=protocol, **more)[0]
    for (name, (function, relative)), mine in zip(QUOTIENTS.items(), results, strict=True):
        wanted = function(*(x.double() for x in operands)).double()
        off = (mine - wanted).abs() - 4 * 2.0**-16
        assert bool((off <= relative * wanted.abs()).all()), (name, mine, wanted)


def test_a_rehearsal_tells_of_integers_that_are_no_fractions() -> None:
    """Functions of fractions report integers from 2^30 on, and sums with fractions report those
    beyond 2^46."""
    for function, operator in (
        (torch.sqrt, "sqrt"),
        (torch.log, "log"),
        (lambda x: x + 2.0**-1, "add"),
    ):

        def program(function: Callable[..., Any] = function) -> None:
            function(tacit.share(LARGE, owner=0).abs())

        with pytest.warns(tacit.RangeWarning, match=operator):
            tacit.launch(program, protocol=REFERENCE)


def test_whole_quotients_by_zero_and_beyond_what_is_held() -> None:
    x, y = torch.tensor([7, 0, 2**60, -(2**60)]), torch.tensor([0, 0, 3, 3])
    found = tacit.launch(lambda: (tacit.share(x, owner=0) / tacit.share(y, owner=1)).reveal())[0]
    assert abs(found[0] - 7 * 65536) < 1
    assert found[1] == 0
    assert 2**43 <= found[2] <= 2**45
    assert -(2**45) <= found[3] <= -(2**43)
