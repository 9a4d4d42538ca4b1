"""Functions that are not piecewise linear, on secret numbers: a family to a file. Each says its
method and paper, domain, largest error, rounds and bits (of a number, over all links of replicated
sharing, at the default scale); tests hold the docstrings to the meter, and docs/accuracy.md is
measured from them."""

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

#: Of 16 fraction bits: of angles from 2^20 on nothing is known.
OF_ANGLES = 34

arctan = of_fractions(trigonometric.arctan)
cos = of_fractions(trigonometric.cos, OF_ANGLES)
divide = quotient(quotients.divide)
erf = of_fractions(sigmoidal.erf)
exp = of_fractions(exponential.exp, result=PASSES)
#: Where masks are added up, they are beyond all numbers.
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
