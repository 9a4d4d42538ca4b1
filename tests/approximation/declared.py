"""Approximated functions, with the domain and the maximum error that are declared of each."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tacit.operators.numerics import approximation as secret

#: Relative errors are ignored if the absolute error is below this: eight units of the default
#: scale.
ALLOWED = 2.0**-13

#: Numbers far outside every approximation interval.
FAR = torch.tensor([0.0, 1.0, 30.0, 1e3, 3e4, 1e6, 1e9], dtype=torch.float64)


@dataclass(frozen=True)
class Function:
    """A function with its exact counterpart, the grid of its test, and its declared error."""

    name: str
    domain: str
    approximate: Callable[[Any], Any]
    exact: Callable[[torch.Tensor], torch.Tensor]
    grid: torch.Tensor
    error: float
    relative: bool = False

    def off(self, found: torch.Tensor) -> float:
        """Returns the largest error on the grid, relative if the declared error is relative.

        The exact function is evaluated at the grid as it is encoded.
        """
        plain = self.exact(encoded(self.grid))
        errors = (found.double() - plain).abs()
        if self.relative:
            errors = torch.where(errors < ALLOWED, torch.zeros(()), errors / plain.abs())
        return float(errors.max())

    def off_absolutely(self, found: torch.Tensor) -> float:
        """Returns the largest absolute error, even if the declared error is relative."""
        return float((found.double() - self.exact(encoded(self.grid))).abs().max())


def encoded(x: torch.Tensor) -> torch.Tensor:
    """Rounds numbers to 16 fraction bits, as encoding at the default scale does."""
    return (x * 2.0**16).round() * 2.0**-16


def line(low: float, high: float, points: int = 4001) -> torch.Tensor:
    """Returns evenly spaced points from low to high."""
    return torch.linspace(low, high, points, dtype=torch.float64)


def powers(low: int, high: int, points: int = 4001) -> torch.Tensor:
    """Returns points from 2^low to 2^high that are evenly spaced in magnitude."""
    return torch.logspace(low, high, points, base=2, dtype=torch.float64)


def everywhere(cutoff: float) -> torch.Tensor:
    """Returns points up to twice the cutoff and the largest numbers, of both signs."""
    return torch.cat([line(-2 * cutoff, 2 * cutoff), FAR, -FAR])


def both_signs(x: torch.Tensor) -> torch.Tensor:
    """Returns x followed by −x."""
    return torch.cat([x, -x])


def between_poles(low: float, high: float) -> torch.Tensor:
    """Returns points from low to high that are at least 2^−10 away from every whole number."""
    x = encoded(line(low, high))
    return x[(x - x.round()).abs() >= 2.0**-10]


def open_interval(low: float) -> torch.Tensor:
    """Returns points between low and 1, down to the encodable numbers nearest to both."""
    near = 2.0 ** -torch.arange(1.0, 17.0, dtype=torch.float64)
    return torch.cat([line(low + 2.0**-16, 1 - 2.0**-16), low + near, 1 - near])


gelu = torch.nn.functional.gelu

FUNCTIONS = [
    Function("exp", "[−16, 20.5]", secret.exp, torch.exp, line(-16, 20.5), 2**-12, relative=True),
    Function(
        "exp_below_zero",
        "(−2^30, 0]",
        secret.exp_below_zero,
        torch.exp,
        torch.cat([line(-20, 0), -FAR]),
        2**-13,
    ),
    Function(
        "2^x",
        "[−16, 29]",
        lambda x: secret.exp(x, base=2.0),
        torch.exp2,
        line(-16, 29),
        2**-12,
        True,
    ),
    Function("log", "[2^−16, 2^30)", secret.log, torch.log, powers(-16, 29), 2**-14),
    Function(
        "log2",
        "[2^−16, 2^30)",
        lambda x: secret.log(x, base=2.0),
        torch.log2,
        powers(-16, 29),
        2**-14,
    ),
    Function(
        "reciprocal",
        "±[2^−16, 2^30)",
        secret.reciprocal,
        torch.reciprocal,
        both_signs(powers(-16, 29)),
        2**-13,
        relative=True,
    ),
    Function(
        "rsqrt", "[2^−16, 2^30)", secret.rsqrt, torch.rsqrt, powers(-16, 29), 2**-13, relative=True
    ),
    Function(
        "sqrt",
        "[0, 2^30)",
        secret.sqrt,
        torch.sqrt,
        torch.cat([FAR, powers(-16, 29)]),
        2**-13,
        True,
    ),
    Function(
        "divide",
        "quotients below 2^30",
        lambda x: secret.divide(x, 3.0 - x),
        lambda x: x / (3.0 - x),
        both_signs(powers(-10, 28)),
        2**-12,
        relative=True,
    ),
    Function("sigmoid", "all", secret.sigmoid, torch.sigmoid, everywhere(7.5), 2**-10.7),
    Function("tanh", "all", secret.tanh, torch.tanh, everywhere(4.0), 2**-10.4),
    Function("erf", "all", secret.erf, torch.erf, everywhere(2.75), 2**-12),
    Function("gelu", "all", secret.gelu, gelu, everywhere(3.75), 2**-10.7),
    Function(
        "gelu by tanh",
        "all",
        lambda x: secret.gelu(x, by_tanh=True),
        lambda x: gelu(x, approximate="tanh"),
        everywhere(3.75),
        2**-10.7,
    ),
    Function("silu", "all", secret.silu, torch.nn.functional.silu, everywhere(9.25), 2**-10),
    Function(
        "softplus", "all", secret.softplus, torch.nn.functional.softplus, everywhere(10.0), 2**-13
    ),
    Function("mish", "all", secret.mish, torch.nn.functional.mish, everywhere(12.5), 2**-13),
    Function("sin", "[−64, 64]", secret.sin, torch.sin, line(-64, 64), 2**-13),
    Function("cos", "[−64, 64]", secret.cos, torch.cos, line(-64, 64), 2**-13),
    Function("arctan", "all", secret.arctan, torch.arctan, everywhere(4.0), 2**-13),
    Function(
        "lgamma",
        "results below 2^30",
        secret.lgamma,
        torch.lgamma,
        torch.cat([powers(-16, 25), line(2**-16, 20), between_poles(-40.0, -(2.0**-8))]),
        2**-13,
        relative=True,
    ),
    Function(
        "digamma",
        "[2^−16, 2^30)",
        secret.digamma,
        torch.digamma,
        torch.cat([powers(-16, 29), line(2**-16, 20)]),
        2**-13,
        relative=True,
    ),
    Function("erfinv", "(−1, 1)", secret.erfinv, torch.erfinv, open_interval(-1.0), 2**-14),
    Function("ndtri", "(0, 1)", secret.ndtri, torch.special.ndtri, open_interval(0.0), 2**-14),
]

#: Quotients with stated rounds: the dtype of the dividend, and the divisor, or None for a secret
#: divisor.
QUOTIENTS: dict[str, tuple[torch.dtype, int | None]] = {
    "int64 by a secret": (torch.int64, None),
    "int32 by a secret": (torch.int32, None),
    "int16, int8 and uint8 by a secret": (torch.int16, None),
    "fractions by a secret": (torch.float32, None),
    "int64 by 3": (torch.int64, 3),
    "int64 by 1,000": (torch.int64, 1000),
    "int64 by 2^62": (torch.int64, 1 << 62),
    "int32 by 3": (torch.int32, 3),
    "int32 by 1,000": (torch.int32, 1000),
    "int8 by 3": (torch.int8, 3),
    "fractions by 3": (torch.float32, 3),
    "fractions by 1,000": (torch.float32, 1000),
}

#: The count of numbers that costs are measured for. It is a multiple of 192, so that the measured
#: bits for each number are exactly the declared ones.
DIVIDED = 4032

#: The least result of exp where it saturates, 3 per cent below 2^30; exp(20.79...) is the largest
#: that can be encoded.
LARGEST = 2.0**30 * math.exp(-0.03)
