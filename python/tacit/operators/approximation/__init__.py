"""Functions that are not piecewise linear, on secret numbers: a family to a file. Each says its method and
paper, domain, largest error, rounds and bits (of a number, over all links of replicated sharing, at the
default scale); tests hold the docstrings to the meter, and docs/accuracy.md is measured from them."""

from tacit.operators.approximation.exponential import exp, exp_below_zero
from tacit.operators.approximation.quotients import divide, log, reciprocal, rsqrt, sqrt
from tacit.operators.approximation.sigmoidal import erf, gelu, mish, sigmoid, silu, softplus, tanh
from tacit.operators.approximation.trigonometric import arctan, cos, sin

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
