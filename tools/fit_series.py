"""Writes python/tacit/operators/approximation/coefficients.py: Chebyshev series of the functions that are
approximated, each by Lawson's iteration close to the least largest error on its interval.

The file is part of the project, since parties must hold the same numbers: fits on two machines may differ in
the last digit. Run this by hand after a change; tests hold the functions to their declared errors.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

TARGET = Path(__file__).resolve().parent.parent / "python/tacit/operators/approximation/coefficients.py"

Values = NDArray[np.float64]

#: Points of the fit, and how often their weights are adapted.
POINTS, STEPS = 2000, 300

#: Digits that are written: far more than words take.
DIGITS = 12

HEAD = '''"""Chebyshev series of the approximated functions, on [−1, 1]; written by tools/fit_series.py."""

'''


def fit(function: Callable[[Values], Values], weight: Callable[[Values], Values], degree: int) -> Values:
    """The series on [−1, 1] whose weighted error is about the least (Lawson 1961)."""
    points = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    values, weights = function(points), weight(points)
    matrix = chebyshev.chebvander(points, degree)
    importance = np.full(POINTS, 1.0 / POINTS)
    best, least = np.zeros(degree + 1), math.inf
    for _ in range(STEPS):
        root = np.sqrt(importance) * weights
        series = np.linalg.lstsq(matrix * root[:, None], values * root, rcond=None)[0]
        errors = np.abs((matrix @ series - values) * weights)
        if errors.max() < least:
            best, least = np.asarray(series, np.float64), errors.max()
        importance *= errors
        importance /= importance.sum()
    return best


def between(low: float, high: float) -> Callable[[Values], Values]:
    """[−1, 1] to [low, high]."""
    return lambda s: (low + high) / 2 + (high - low) / 2 * s


def of_argument(
    function: Callable[[Values], Values], low: float, high: float, degree: int, relative: bool
) -> Values:
    """A function of x in [low, high], by the absolute error or the relative one."""
    x = between(low, high)
    weight = (lambda s: 1.0 / np.abs(function(x(s)))) if relative else np.ones_like
    return fit(lambda s: function(x(s)), weight, degree)


def of_square(function: Callable[[Values], Values], cutoff: float, degree: int, divisor: int) -> Values:
    """q with function(x) ≈ x^divisor·q((x/cutoff)²), |x| ≤ cutoff."""

    def x(s: Values) -> Values:
        return cutoff * np.sqrt((s + 1) / 2)

    return fit(lambda s: function(x(s)) / x(s) ** divisor, lambda s: x(s) ** divisor, degree)


def even(function: Callable[[Values], Values], cutoff: float, degree: int) -> Values:
    """p with function(x) ≈ p((x/cutoff)²), |x| ≤ cutoff, exactly 0 at 0."""
    factor = of_square(function, cutoff, degree - 1, 2)
    return np.asarray(chebyshev.chebmul(factor, [cutoff**2 / 2, cutoff**2 / 2]), np.float64)


def erf(x: Values) -> Values:
    """The error function."""
    return np.array([math.erf(value) for value in x])


def sigmoid(x: Values) -> Values:
    """The logistic function, less its value at 0."""
    return np.tanh(x / 2) / 2


def gelu_argument(x: Values) -> Values:
    """What PyTorch's approximation of GELU takes tanh of."""
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def series() -> dict[str, tuple[str, Values]]:
    """Name → what it is, and the series."""
    return {
        "POWER_OF_TWO": ("2^x on [−1/32, 33/32]", of_argument(np.exp2, -1 / 32, 33 / 32, 4, True)),
        "RECIPROCAL": ("1/x on [1/2, 1]", of_argument(lambda x: 1 / x, 0.5, 1, 6, True)),
        "INVERSE_ROOT": ("1/√x on [1/4, 1]", of_argument(lambda x: x**-0.5, 0.25, 1, 9, True)),
        "LOGARITHM": ("ln x on [1/2, 1]", of_argument(np.log, 0.5, 1, 6, False)),
        "SIGMOID": ("σ(x) = 1/2 + x·q((x/7.5)²)", of_square(sigmoid, 7.5, 9, 1)),
        "TANH": ("tanh x = x·q((x/4)²)", of_square(np.tanh, 4.0, 12, 1)),
        "ERF": ("erf x = x·q((x/2.75)²)", of_square(erf, 2.75, 6, 1)),
        "GELU": ("x·Φ(x) = x/2 + p((x/3.75)²)", even(lambda x: x * erf(x / math.sqrt(2)) / 2, 3.75, 6)),
        "GELU_TANH": ("the same by tanh", even(lambda x: x * np.tanh(gelu_argument(x)) / 2, 3.75, 6)),
        "SILU": ("x·σ(x) = x/2 + p((x/9.25)²)", even(lambda x: x * sigmoid(x), 9.25, 12)),
        "SOFTPLUS": (
            "ln(1 + e^x) = x/2 + q((x/7.5)²)",
            of_square(lambda x: np.log(2 * np.cosh(x / 2)), 7.5, 9, 0),
        ),
        "SINE": ("sin πx = x·q(x²)", of_square(lambda x: np.sin(np.pi * x), 1.0, 6, 1)),
        "ARC_TANGENT": ("arctan x = x·q(x²)", of_square(np.arctan, 1.0, 6, 1)),
    }


def main() -> None:
    """Writes the file."""
    lines = [HEAD]
    for name, (what, coefficients) in series().items():
        lines.append(f"#: {what}\n{name} = (\n")
        lines += [f"    {float(f'{coefficient:.{DIGITS}g}')!r},\n" for coefficient in coefficients]
        lines.append(")\n\n")
    TARGET.write_text("".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
