"""Approximations of functions that are not piecewise linear, on secret numbers.

Each file has one family of functions. The docstring of a function states its method and paper, its
domain, its largest error, and its rounds and bits. Bits are for one number, over all links of
replicated sharing, at the default scale. Tests check the docstrings against the meter, and
docs/accuracy.md is generated from them."""

from tacit import checks, fixed
from tacit.operators.numerics.approximation import exponential, quotients, sigmoidal, trigonometric
from tacit.operators.numerics.approximation.domains import PASSES, of_fractions, quotient
from tacit.operators.numerics.approximation.series import ARGUMENT

__all__ = [
    "arctan",
    "cos",
    "divide",
    "erf",
    "exp",
    "exp_below_zero",
    "gelu",
    "log",
    "mish",
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

arctan = of_fractions(trigonometric.arctan)
cos = of_fractions(trigonometric.cos, OF_ANGLES)
divide = quotient(quotients.divide)
erf = of_fractions(sigmoidal.erf)
exp = of_fractions(exponential.exp, result=PASSES)
#: Sums of masks may be beyond all numbers that can be encoded, so the domain is wider.
exp_below_zero = of_fractions(
    exponential.exp_below_zero, checks.WORD - ARGUMENT + fixed.DEFAULT.bits
)
gelu = of_fractions(sigmoidal.gelu)
log = of_fractions(quotients.log)
mish = of_fractions(sigmoidal.mish)
reciprocal = of_fractions(quotients.reciprocal)
rsqrt = of_fractions(quotients.rsqrt)
sigmoid = of_fractions(sigmoidal.sigmoid)
silu = of_fractions(sigmoidal.silu)
sin = of_fractions(trigonometric.sin, OF_ANGLES)
softplus = of_fractions(sigmoidal.softplus)
sqrt = of_fractions(quotients.sqrt)
tanh = of_fractions(sigmoidal.tanh)
