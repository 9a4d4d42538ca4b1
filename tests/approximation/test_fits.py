"""Series that a compiled program may choose keep their declared errors and costs.

The errors hold on each series' interval. The costs are compared with those of the usual series.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import declared
import pytest
import torch
from torch.nn import functional

import tacit
from tacit.compilation.passes.choose_approximations import Cost
from tacit.operators.numerics import approximation
from tacit.operators.numerics.approximation.fits import FITS, USUAL, Fit

#: Each function, for secret tensors and for plain tensors.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "sigmoid": (approximation.sigmoid, torch.sigmoid),
    "tanh": (approximation.tanh, torch.tanh),
    "erf": (approximation.erf, torch.erf),
    "gelu": (approximation.gelu, functional.gelu),
    "gelu_tanh": (
        lambda x: approximation.gelu(x, by_tanh=True),
        lambda x: functional.gelu(x, approximate="tanh"),
    ),
    "silu": (approximation.silu, functional.silu),
    "softplus": (approximation.softplus, functional.softplus),
    "exp": (approximation.exp, torch.exp),
    "exp_below_zero": (approximation.exp_below_zero, torch.exp),
    "reciprocal": (approximation.reciprocal, torch.reciprocal),
    "rsqrt": (approximation.rsqrt, torch.rsqrt),
    "sqrt": (approximation.sqrt, torch.sqrt),
    "log": (approximation.log, torch.log),
}

ALL = [(function, key) for function, found in FITS.items() for key in found]


def grid(function: str, fit: Fit) -> torch.Tensor:
    """Returns a dense grid over the interval on which a series holds."""
    if function == "exp":
        return declared.encoded(declared.line(-16, 20))
    if function == "exp_below_zero":
        return torch.cat([declared.encoded(declared.line(-20, 0)), -declared.FAR])
    if not fit.cutoff:
        x = declared.powers(-12, 24)
        x = declared.both_signs(x) if function == "reciprocal" and fit.is_everywhere else x
        return declared.encoded(x)
    # One unit less, so that the encoded points stay within the interval.
    most = min(fit.high, 4 * fit.cutoff) - 2**-16
    x = declared.encoded(declared.line(-most, most))
    return torch.cat([x, declared.FAR, -declared.FAR]) if fit.is_everywhere else x


def off(function: str, x: torch.Tensor, found: torch.Tensor) -> float:
    """Returns the largest error.

    The error is relative where results are above 1, except for functions with a cutoff, which are
    linear far away: their error is absolute everywhere.
    """
    plain = FUNCTIONS[function][1](x)
    errors = (found.double() - plain).abs()
    return float(
        (errors if FITS[function][USUAL].cutoff else errors / plain.abs().clamp_min(1)).max()
    )


def given(cases: list[tuple[str, str]], grids: list[torch.Tensor]) -> list[torch.Tensor]:
    """Runs in a party. Returns the result of each series on its grid."""

    def each() -> Iterator[torch.Tensor]:
        for (function, key), x in zip(cases, grids, strict=True):
            with tacit.session().using(fits={} if key == USUAL else {function: key}):
                yield FUNCTIONS[function][0](tacit.share(x, owner=0)).reveal()

    return list(each())


@pytest.fixture(scope="module")
def on_the_reference() -> dict[tuple[str, str], torch.Tensor]:
    grids = [grid(function, FITS[function][key]) for function, key in ALL]
    return dict(
        zip(ALL, tacit.launch(given, ALL, grids, parties=2, protocol="plain")[0], strict=True)
    )


@pytest.mark.filterwarnings("error::tacit.RangeWarning")
@pytest.mark.parametrize(("function", "key"), ALL, ids=" ".join)
def test_error_on_a_dense_grid(
    function: str, key: str, on_the_reference: dict[tuple[str, str], torch.Tensor]
) -> None:
    fit = FITS[function][key]
    x = grid(function, fit)
    assert off(function, x, on_the_reference[function, key]) <= fit.error


@pytest.mark.parametrize("setting", [("replicated", 3, None), ("additive", 2, "dealer")], ids=str)
def test_error_on_shares(setting: tuple[str, int, str | None]) -> None:
    protocol, parties, source = setting
    grids = [
        grid(function, FITS[function][key])[at % 80 :: 80] for at, (function, key) in enumerate(ALL)
    ]
    found = tacit.launch(given, ALL, grids, parties=parties, protocol=protocol, source=source)[0]
    for (function, key), x, values in zip(ALL, grids, found, strict=True):
        assert off(function, x, values) <= FITS[function][key].error, (function, key)


@pytest.mark.parametrize("bits", [10, 12, 20])
def test_other_scales_add_units(bits: int) -> None:
    """A coarser scale adds at most two units to the error.

    The test covers only functions that are linear far away. Other functions magnify the rounding of
    their argument.
    """
    cases = [(function, key) for function, key in ALL if FITS[function][key].cutoff]
    grids = [
        (grid(function, FITS[function][key])[::20] * 2**10).trunc() / 2**10
        for function, key in cases
    ]

    def run() -> list[torch.Tensor]:
        with tacit.fraction_bits(bits):
            return given(cases, grids)

    found = tacit.launch(run, parties=2, protocol="plain")[0]
    for (function, key), x, values in zip(cases, grids, found, strict=True):
        assert off(function, x, values) <= FITS[function][key].error + 2 * 2.0**-bits, (
            function,
            key,
        )


def test_without_knowledge_of_its_numbers_a_series_of_some_is_off() -> None:
    """A series is inaccurate beyond its cutoff, so the tests of errors are able to fail."""
    x = declared.line(2.5, 4.0, 51)
    found = tacit.launch(given, [("gelu", "degree 4 within 2")], [x], parties=2, protocol="plain")[
        0
    ]
    assert off("gelu", x, found[0]) > 2**-6


#: The count of numbers in a metered run.
COUNT = 2048


def metered(cases: list[tuple[str, str]]) -> list[tuple[int, float]]:
    """Runs in a party. Returns the rounds of each series, and its bits for each number."""
    found, totals = [], tacit.session().core.totals
    x = tacit.share(torch.rand(COUNT) / 2 + 0.25, owner=0)
    for function, key in cases:
        before = totals()
        with tacit.session().using(fits={} if key == USUAL else {function: key}):
            FUNCTIONS[function][0](x)
        after = totals()
        bits = 8 * (after["payload_bytes"] - before["payload_bytes"]) / COUNT
        found.append((int(after["rounds"] - before["rounds"]), bits))
    return found


@pytest.mark.parametrize("setting", [("replicated", 3, None), ("additive", 2, "dealer")], ids=str)
def test_what_is_declared_to_be_cheaper_is(setting: tuple[str, int, str | None]) -> None:
    protocol, parties, source = setting
    parts = tacit.launch(metered, ALL, parties=parties, protocol=protocol, source=source)
    found = {
        case: (max(part[at][0] for part in parts), max(part[at][1] for part in parts))
        for at, case in enumerate(ALL)
    }
    for function, fits in FITS.items():
        for key, fit in fits.items():
            declared_cost, usual = Cost.of(fit), Cost.of(fits[USUAL])
            rounds, bits = found[function, key]
            if declared_cost.rounds < usual.rounds or declared_cost.bits < usual.bits:
                assert rounds <= found[function, USUAL][0], (function, key)
                assert bits <= found[function, USUAL][1] * (1 + 1e-9), (function, key)


def test_declared_costs_are_near_the_meter() -> None:
    """Declared cost differences from the usual series match the meter in replicated sharing.

    A comparison of positive numbers takes as many rounds as a comparison with a cutoff, or two
    more, and half of its bits.
    """
    parts = tacit.launch(metered, ALL)
    for at, (function, key) in enumerate(ALL):
        usual = ALL.index((function, USUAL))
        own, other = Cost.of(FITS[function][key]), Cost.of(FITS[function][USUAL])
        rounds = max(part[at][0] for part in parts) - max(part[usual][0] for part in parts)
        bits = parts[0][at][1] - parts[0][usual][1]
        assert abs(rounds - (own.rounds - other.rounds)) <= 3, (function, key, rounds)
        assert abs(bits - (own.bits - other.bits)) <= 220, (function, key, bits)


def test_series_of_all_functions_are_known_and_end() -> None:
    assert FUNCTIONS.keys() == FITS.keys()
    assert all(0 < fit.error <= 2**-6 for found in FITS.values() for fit in found.values())
    assert all(
        math.isfinite(c) for found in FITS.values() for fit in found.values() for c in fit.series
    )
