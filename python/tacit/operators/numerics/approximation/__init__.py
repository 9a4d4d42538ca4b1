"""Approximations of functions that are not piecewise linear, on secret numbers.

Each file has one family of functions. The docstring of a function states its method and paper, its
domain, its largest error, and its rounds and bits. Bits are for one number, over all links of
replicated sharing, at the default scale. Tests check the docstrings against the meter, and
docs/accuracy.md is generated from them."""

from tacit import checks, fixed
from tacit.operators.numerics.approximation import (
    exponential,
    gamma,
    quantiles,
    quotients,
    sigmoidal,
    trigonometric,
)
from tacit.operators.numerics.approximation.domains import PASSES, of_fractions, quotient
from tacit.operators.numerics.approximation.series import ARGUMENT

__all__ = [
    "arctan",
    "cos",
    "digamma",
    "divide",
    "erf",
    "erfinv",
    "exp",
    "exp_below_zero",
    "gelu",
    "lgamma",
    "log",
    "mish",
    "ndtri",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "softplus",
    "sqrt",
    "tanh",
]

#: Bits of words of angles at 16 fraction bits. The position in the turn of angles from 2^20 on is
#: unknown.
OF_ANGLES = 34

#: Bits of the results of functions with |f(x)| ≤ max(|x|, 2), up to their error.
NO_LARGER = fixed.ENCODED + 1


def of_reciprocals(argument: fixed.Scale, result: fixed.Scale) -> int:
    """Returns the bits of reciprocals, up to their error: that of the least positive number."""
    return argument.bits + result.bits + 1


def of_poles(argument: fixed.Scale, result: fixed.Scale) -> int:
    """Returns the bits of functions with simple poles, whose results are up to four reciprocals."""
    return of_reciprocals(argument, result) + 2


arctan = of_fractions(trigonometric.arctan, most=NO_LARGER)
cos = of_fractions(trigonometric.cos, OF_ANGLES, most=NO_LARGER)
#: It has no name of its own in PyTorch, so that no page lists it.
cotangent = of_fractions(gamma.cotangent, most=of_poles)
digamma = of_fractions(gamma.digamma, most=of_poles)
divide = quotient(quotients.divide)
erf = of_fractions(sigmoidal.erf, most=NO_LARGER)
erfinv = of_fractions(quantiles.erfinv, most=NO_LARGER)
exp = of_fractions(exponential.exp, result=PASSES)
#: Sums of masks may be beyond all numbers that can be encoded, so the domain is wider.
exp_below_zero = of_fractions(
    exponential.exp_below_zero, checks.WORD - ARGUMENT + fixed.DEFAULT.bits, most=NO_LARGER
)
gelu = of_fractions(sigmoidal.gelu, most=NO_LARGER)
lgamma = of_fractions(gamma.lgamma, result=PASSES)
log = of_fractions(quotients.log, most=NO_LARGER)
mish = of_fractions(sigmoidal.mish, most=NO_LARGER)
ndtri = of_fractions(quantiles.ndtri, most=NO_LARGER)
reciprocal = of_fractions(quotients.reciprocal, most=of_reciprocals)
rsqrt = of_fractions(quotients.rsqrt, most=of_reciprocals)
sigmoid = of_fractions(sigmoidal.sigmoid, most=NO_LARGER)
silu = of_fractions(sigmoidal.silu, most=NO_LARGER)
sin = of_fractions(trigonometric.sin, OF_ANGLES, most=NO_LARGER)
softplus = of_fractions(sigmoidal.softplus, most=NO_LARGER)
sqrt = of_fractions(quotients.sqrt, most=NO_LARGER)
tanh = of_fractions(sigmoidal.tanh, most=NO_LARGER)
