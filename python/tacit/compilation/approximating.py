"""Operators that are approximated functions, the series that a program may choose for them instead
of the usual ones, and the error of each choice."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from tacit.operators.numerics.approximation.fits import FITS, USUAL, Fit

aten = torch.ops.aten

#: Key of the chosen series of each function; functions with the usual series are left out.
Choice = Mapping[str, str]

#: Operators that are one function of their first argument alone.
_ALONE: dict[Any, str] = {
    aten.erf.default: "erf",
    aten.exp.default: "exp",
    aten.log.default: "log",
    aten.reciprocal.default: "reciprocal",
    aten.rsqrt.default: "rsqrt",
    aten.sigmoid.default: "sigmoid",
    aten.silu.default: "silu",
    aten.softplus.default: "softplus",
    aten.sqrt.default: "sqrt",
    aten.tanh.default: "tanh",
}

#: Operators that divide exponentials of the differences to the maximum by their sum.
_SOFTMAX = (aten._softmax.default, aten.softmax.int)

#: Error of a softmax in addition to the errors of its exponentials and of its reciprocal.
_OF_SUMS = 2.0**-9


def functions_of(node: fx.Node) -> tuple[str, ...]:
    """Returns the functions of an operator whose series can be chosen; empty for other
    operators."""
    if node.op != "call_function":
        return ()
    if node.target is aten.gelu.default:
        return ("gelu_tanh" if node.kwargs.get("approximate") == "tanh" else "gelu",)
    if node.target in _SOFTMAX:
        return "exp_below_zero", "reciprocal"
    if node.target not in _ALONE or len(node.args) != 1 or node.kwargs:
        return ()
    return (_ALONE[node.target],)


def compares_with_cutoffs(node: fx.Node) -> bool:
    """Returns whether an operator compares its argument with cutoffs or with zero, and nothing
    else."""
    fits = fits_in(node, node.meta.get("fits") or {})
    return len(fits) == 1 and fits[0].is_everywhere


def fits_in(node: fx.Node, choice: Choice) -> list[Fit]:
    """Returns the series of all functions of an operator, chosen or usual."""
    return [FITS[function][choice.get(function, USUAL)] for function in functions_of(node)]


def fits_of(choice: Choice) -> dict[str, Fit]:
    """Returns the series that a choice selects, by function."""
    return {function: FITS[function][key] for function, key in choice.items()}


def error_of(node: fx.Node, choice: Choice) -> float:
    """Returns a bound on the error of an operator's results, relative where these are above 1."""
    found = fits_in(node, choice)
    if node.target in _SOFTMAX:
        # The softmax is p = e^a/Σ. The error ε of e^a, and that of Σ, which is an average of such
        # errors, change it by p·(1 − p)·2ε at most. The error of 1/Σ is added.
        exponential, reciprocal = found
        return _OF_SUMS + exponential.error / 2 + reciprocal.error
    return found[0].error
