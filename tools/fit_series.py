"""Writes coefficients.py and shorter.py of python/tacit/operators/numerics/approximation.

They contain Chebyshev series of the functions that are approximated, each fitted by Lawson's
iteration to about the least maximum error on its interval, and the shorter series among which the
model compiler chooses.

The files are part of the project, because parties must hold the same numbers: fits on two machines
may differ in the last digit. Run this by hand after a change. Tests check the functions against
their declared errors."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent.parent / "python/tacit/operators/numerics/approximation"

Values = NDArray[np.float64]

#: Points of the fit, and number of times that their weights are adapted.
POINTS, STEPS = 2000, 300

#: Points and steps of the fits of the shorter series, of which there are many.
FEWER_POINTS, FEWER_STEPS = 300, 60

#: Digits that are written: far more than words hold.
DIGITS = 12

HEAD = '''"""Chebyshev series of the approximated functions, on [−1, 1]; written by tools/fit_series.py."""

'''


def fit(
    function: Callable[[Values], Values],
    weight: Callable[[Values], Values],
    degree: int,
    count: int = POINTS,
    steps: int = STEPS,
) -> Values:
    """Returns the series on [−1, 1] whose weighted error is about the least (Lawson 1961)."""
    points = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    values, weights = function(points), weight(points)
    matrix = chebyshev.chebvander(points, degree)
    importance = np.full(count, 1.0 / count)
    best, least = np.zeros(degree + 1), math.inf
    for _ in range(steps):
        root = np.sqrt(importance) * weights
        series = np.linalg.lstsq(matrix * root[:, None], values * root, rcond=None)[0]
        errors = np.abs((matrix @ series - values) * weights)
        if errors.max() < least:
            best, least = np.asarray(series, np.float64), errors.max()
        importance *= errors
        importance /= importance.sum()
    return best


def between(low: float, high: float) -> Callable[[Values], Values]:
    """Returns the linear map from [−1, 1] to [low, high]."""
    return lambda s: (low + high) / 2 + (high - low) / 2 * s


def of_argument(
    function: Callable[[Values], Values], low: float, high: float, degree: int, relative: bool
) -> Values:
    """Fits a function of x in [low, high], by the absolute error or the relative one."""
    x = between(low, high)
    weight = (lambda s: 1.0 / np.abs(function(x(s)))) if relative else np.ones_like
    return fit(lambda s: function(x(s)), weight, degree)


def of_square(
    function: Callable[[Values], Values], cutoff: float, degree: int, divisor: int, *effort: int
) -> Values:
    """Fits q with function(x) ≈ x^divisor·q((x/cutoff)²), |x| ≤ cutoff."""

    def x(s: Values) -> Values:
        return cutoff * np.sqrt((s + 1) / 2)

    return fit(
        lambda s: function(x(s)) / x(s) ** divisor, lambda s: x(s) ** divisor, degree, *effort
    )


def even(function: Callable[[Values], Values], cutoff: float, degree: int, *effort: int) -> Values:
    """Fits p with function(x) ≈ p((x/cutoff)²), |x| ≤ cutoff, exactly 0 at 0."""
    factor = of_square(function, cutoff, degree - 1, 2, *effort)
    return np.asarray(chebyshev.chebmul(factor, [cutoff**2 / 2, cutoff**2 / 2]), np.float64)


def through_zero(
    function: Callable[[Values], Values], low: float, high: float, degree: int
) -> Values:
    """Fits a function of x in [low, high] that is 0 at 0, exactly there."""
    x = between(low, high)
    # Points near 0 say nothing about the quotient that is left; no point is at 0.
    factor = fit(lambda s: function(x(s)) / x(s), lambda s: x(s), degree - 1)
    return np.asarray(chebyshev.chebmul(factor, [(low + high) / 2, (high - low) / 2]), np.float64)


def root_below_zero(degree: int) -> Values:
    """Fits p with p² ≈ e^x for x in [−16, 0], p = 0 at −16.

    The error is that of the square. It counts the less the smaller e^x is, down to 2^−21."""
    x = between(-16.0, 0.0)

    def weight(s: Values) -> Values:
        allowed = np.maximum(2.0**-15 * np.exp(0.7 * x(s)), 2.0**-21)
        return (s + 1) * 2 * np.exp(x(s) / 2) / allowed

    factor = fit(lambda s: np.exp(x(s) / 2) / (s + 1), weight, degree - 1)
    return np.asarray(chebyshev.chebmul(factor, [1.0, 1.0]), np.float64)


def erf(x: Values) -> Values:
    """The error function."""
    return np.array([math.erf(value) for value in x])


def sigmoid(x: Values) -> Values:
    """Logistic function, minus its value at 0."""
    return np.tanh(x / 2) / 2


def mish(x: Values) -> Values:
    """x·tanh(ln(1 + e^x))."""
    return np.asarray(x * np.tanh(np.logaddexp(0, x)), np.float64)


def gelu_argument(x: Values) -> Values:
    """Argument of tanh in PyTorch's approximation of GELU."""
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def of_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Values], Values]:
    """Returns a function of PyTorch on float64 as one of arrays."""
    return lambda x: np.asarray(function(torch.from_numpy(np.asarray(x, np.float64))), np.float64)


def of_quantile(w: Values) -> Values:
    """erfinv(x) / x as a function of w = −ln(1 − x²)."""
    w = np.maximum(w, 1e-9)
    x = np.sqrt(-np.expm1(-w))
    # 1 − x, which double precision would lose near x = 1.
    rest = np.exp(-w) / (1 + x)
    near, far = of_torch(torch.erfinv)(x), -of_torch(torch.special.ndtri)(rest / 2) / math.sqrt(2)
    return np.asarray(np.where(w < 1, near, far) / x, np.float64)


def of_cotangent(square: Values) -> Values:
    """πx·cot πx as a function of x²."""
    angle = np.pi * np.sqrt(np.maximum(square, 1e-14))
    return np.asarray(angle / np.tan(angle), np.float64)


def series() -> dict[str, tuple[str, Values]]:
    """Returns the series by name, each with its description."""
    return {
        "POWER_OF_TWO": ("2^x on [−1/32, 33/32]", of_argument(np.exp2, -1 / 32, 33 / 32, 4, True)),
        "ROOT_BELOW_ZERO": ("e^(x/2) on [−16, 0]", root_below_zero(9)),
        "RECIPROCAL": ("1/x on [1/2, 1]", of_argument(lambda x: 1 / x, 0.5, 1, 6, True)),
        "INVERSE_ROOT": ("1/√x on [1/4, 1]", of_argument(lambda x: x**-0.5, 0.25, 1, 9, True)),
        "LOGARITHM": ("ln x on [1/2, 1]", of_argument(np.log, 0.5, 1, 6, False)),
        "SIGMOID": ("σ(x) = 1/2 + x·q((x/7.5)²)", of_square(sigmoid, 7.5, 9, 1)),
        "TANH": ("tanh x = x·q((x/4)²)", of_square(np.tanh, 4.0, 12, 1)),
        "ERF": ("erf x = x·q((x/2.75)²)", of_square(erf, 2.75, 6, 1)),
        "GELU": (
            "x·Φ(x) = x/2 + p((x/3.75)²)",
            even(lambda x: x * erf(x / math.sqrt(2)) / 2, 3.75, 6),
        ),
        "GELU_TANH": (
            "GELU by PyTorch's approximation with tanh, x/2 + p((x/3.75)²)",
            even(lambda x: x * np.tanh(gelu_argument(x)) / 2, 3.75, 6),
        ),
        "SILU": ("x·σ(x) = x/2 + p((x/9.25)²)", even(lambda x: x * sigmoid(x), 9.25, 12)),
        "SOFTPLUS": (
            "ln(1 + e^x) = x/2 + q((x/10)²)",
            of_square(lambda x: np.log(2 * np.cosh(x / 2)), 10.0, 14, 0),
        ),
        "MISH": ("x·tanh(ln(1 + e^x)) on [−12.5, 6.25]", through_zero(mish, -12.5, 6.25, 36)),
        "SINE": ("sin πx = x·q(x²)", of_square(lambda x: np.sin(np.pi * x), 1.0, 6, 1)),
        "ARC_TANGENT": ("arctan x = x·q(x²)", of_square(np.arctan, 1.0, 6, 1)),
        "LOG_GAMMA": (
            "ln Γ(1 + x) / 2 on [0, 8]",
            of_argument(lambda x: of_torch(torch.lgamma)(1 + x) / 2, 0, 8, 14, False),
        ),
        "DIGAMMA": (
            "ψ(1 + x) on [0, 8]",
            of_argument(lambda x: of_torch(torch.digamma)(1 + x), 0, 8, 16, False),
        ),
        "COTANGENT": ("πx·cot πx of x² on [0, 1/4]", of_argument(of_cotangent, 0, 0.25, 5, False)),
        "QUANTILE": (
            "erfinv(x)/x of −ln(1 − x²) on [0, 17]",
            of_argument(of_quantile, 0, 17, 12, False),
        ),
    }


# Shorter ones
# ----------------------------------------------------------------------------

#: Degrees that are tried: no other degree takes less work and is better.
DEGREES = (2, 4, 6, 8)

#: Bounds within which numbers may be known to be.
REACHES = (1.0, 2.0, 4.0, 8.0)

#: Cutoffs that are tried if nothing is known of the numbers.
CUTOFFS = np.arange(2.0, 9.1, 0.5)

#: Errors of a series that are useful: no one chooses a smaller one, and few choose a greater one.
LEAST, MOST = 2.0**-12, 2.0**-6.1

#: Allowance for rounding, which is added to the error of a series.
ROUNDED = 2.0**-13

#: Digits of the shorter series, and columns of the lines that they are written in.
FEWER_DIGITS, LINE = 9, 96

SHORTER_HEAD = '''"""Shorter series that the compiler may choose; written by tools/fit_series.py."""

# fmt: off

#: Series of each function: the degree, the cutoff, whether all numbers must be known to be within
#: it, the declared error, and the coefficients.
SHORTER: dict[str, tuple[tuple[int, float, bool, float, tuple[float, ...]], ...]] = {
'''


@dataclass(frozen=True)
class Sided:
    """A function that approaches one line far to the left and another far to the right."""

    #: Function that the series approximates: the function, minus its line through 0.
    inner: Callable[[Values], Values]
    #: Distance of that from the function's lines at a cutoff.
    beyond: Callable[[float], float]
    #: Power of the argument by which the series is multiplied. With 2 it is exactly 0 at 0.
    divisor: int

    def fitted(self, cutoff: float, degree: int) -> tuple[Values, float]:
        """Fits a series of the square, and returns it with its largest error up to the cutoff."""
        x, effort = np.linspace(1e-3, cutoff, POINTS // 2), (FEWER_POINTS, FEWER_STEPS)
        if self.divisor == 2:
            series, factor = even(self.inner, cutoff, degree, *effort), np.ones_like(x)
        else:
            series = of_square(self.inner, cutoff, degree, self.divisor, *effort)
            factor = x**self.divisor
        values = factor * chebyshev.chebval(2 * (x / cutoff) ** 2 - 1, series)
        return series, float(np.abs(values - self.inner(x)).max())


def sided() -> dict[str, Sided]:
    """Returns all such functions by name."""
    by_erf = lambda x: x * erf(x / math.sqrt(2)) / 2  # noqa: E731
    by_tanh = lambda x: x * np.tanh(gelu_argument(x)) / 2  # noqa: E731

    def below(inner: Callable[[Values], Values], slope: float) -> Callable[[float], float]:
        return lambda x: abs(slope * x - float(inner(np.array([x]))[0]))

    def under(inner: Callable[[Values], Values], limit: float) -> Callable[[float], float]:
        return lambda x: abs(limit - float(inner(np.array([x]))[0]))

    softplus = lambda x: np.log(2 * np.cosh(x / 2))  # noqa: E731
    return {
        "sigmoid": Sided(sigmoid, under(sigmoid, 0.5), 1),
        "tanh": Sided(np.tanh, under(np.tanh, 1.0), 1),
        "erf": Sided(erf, under(erf, 1.0), 1),
        "gelu": Sided(by_erf, below(by_erf, 0.5), 2),
        "gelu_tanh": Sided(by_tanh, below(by_tanh, 0.5), 2),
        "silu": Sided(lambda x: x * sigmoid(x), below(lambda x: x * sigmoid(x), 0.5), 2),
        "softplus": Sided(softplus, below(softplus, 0.5), 0),
    }


Row = tuple[int, float, bool, float, Values]


def of_sided(function: Sided) -> list[Row]:
    """Returns the series of a function on all numbers, and within each bound."""
    rows: list[Row] = []
    for degree in DEGREES:
        best: Row | None = None
        for cutoff in CUTOFFS:
            series, error = function.fitted(cutoff, degree)
            error = max(error, function.beyond(cutoff))
            if best is None or error < best[3]:
                best = degree, float(cutoff), False, error, series
        assert best is not None
        rows.append(best)
        if best[3] < LEAST:
            break
    for reach in REACHES:
        for degree in DEGREES:
            series, error = function.fitted(reach, degree)
            rows.append((degree, reach, True, error, series))
            if error < LEAST:
                break
    return [row for row in rows if row[3] < MOST]


def of_normal(
    function: Callable[[Values], Values], low: float, high: float, degrees: list[int]
) -> list[Row]:
    """Returns the series of a function whose argument is brought to one interval, by the relative
    error.

    For a logarithm, which is 0 at 1, the absolute error counts."""
    rows: list[Row] = []
    for degree in degrees:
        is_relative = function is not np.log
        series = of_argument(function, low, high, degree, is_relative)
        s = np.linspace(-1, 1, POINTS)
        exact = function(between(low, high)(s))
        errors = (chebyshev.chebval(s, series) - exact) / (np.abs(exact) if is_relative else 1.0)
        rows.append((degree, 0.0, False, float(np.abs(errors).max()), series))
    return [row for row in rows if row[3] < MOST]


def of_root_below_zero(degree: int) -> list[Row]:
    """Returns a series that is judged by the error of its square."""
    series, s = root_below_zero(degree), np.linspace(-1, 1, POINTS)
    errors = np.abs(chebyshev.chebval(s, series) ** 2 - np.exp(between(-16.0, 0.0)(s)))
    return [(degree, 0.0, False, float(errors.max()), series)]


def shorter() -> str:
    """Returns the content of the file of shorter series."""
    found = {name: of_sided(function) for name, function in sided().items()}
    found["exp"] = of_normal(np.exp2, -1 / 32, 33 / 32, [2])
    found["exp_below_zero"] = of_root_below_zero(6)
    found["reciprocal"] = of_normal(lambda x: 1 / x, 0.5, 1, [2, 4])
    found["rsqrt"] = of_normal(lambda x: x**-0.5, 0.25, 1, [4, 6])
    found["log"] = of_normal(np.log, 0.5, 1, [2, 4])
    lines = [SHORTER_HEAD]
    for name, rows in found.items():
        lines.append(f'    "{name}": (\n')
        for degree, cutoff, is_known, error, series in rows:
            # The exponent of the declared error is rounded up to a quarter.
            declared = f"2**{math.ceil(4 * math.log2(error + ROUNDED)) / 4}"
            numbers = ", ".join(f"{float(f'{number:.{FEWER_DIGITS}g}')!r}" for number in series)
            lines.append(f"        ({degree}, {cutoff}, {is_known}, {declared}, (\n")
            lines.append(textwrap.indent(textwrap.fill(f"{numbers})),", LINE), " " * 12) + "\n")
        lines.append("    ),\n")
    return "".join([*lines, "}\n"])


def main() -> None:
    """Writes both files."""
    lines = [HEAD]
    for name, (what, coefficients) in series().items():
        lines.append(f"#: {what}\n{name} = (\n")
        lines += [f"    {float(f'{coefficient:.{DIGITS}g}')!r},\n" for coefficient in coefficients]
        lines.append(")\n\n")
    (FOLDER / "coefficients.py").write_text("".join(lines).rstrip() + "\n")
    (FOLDER / "shorter.py").write_text(shorter())


if __name__ == "__main__":
    main()
