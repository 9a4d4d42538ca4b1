"""Which operators are approximated functions, of which a program may choose other series than the
usual ones, and what a choice is off by."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from tacit.operators.numerics.approximation.fits import FITS, USUAL, Fit

aten = torch.ops.aten

#: Of a function the key of its series; what has the usual one is left out.
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

#: Those that divide exponentials of differences to the greatest by their sum.
_SOFTMAX = (aten._softmax.default, aten.softmax.int)

#: What a softmax is off by beside its exponentials and its reciprocal.
_OF_SUMS = 2.0**-9


def functions_of(node: fx.Node) -> tuple[str, ...]:
    """The functions of which an operator may have another series; none of others than these."""
    if node.op != "call_function":
        return ()
    if node.target is aten.gelu.default:
        return ("gelu_tanh" if node.kwargs.get("approximate") == "tanh" else "gelu",)
    if node.target in _SOFTMAX:
        return "exp_below_zero", "reciprocal"
    if node.target not in _ALONE or len(node.args) != 1 or node.kwargs:
        return ()
    return (_ALONE[node.target],)


def looks_at_sides(node: fx.Node) -> bool:
    """Whether it compares its argument with cutoffs or with zero, and nothing else."""
    fits = fits_in(node, node.meta.get("fits") or {})
    return len(fits) == 1 and fits[0].is_everywhere


def fits_in(node: fx.Node, choice: Choice) -> list[Fit]:
    """The series of all functions of an operator, chosen or usual."""
    return [FITS[function][choice.get(function, USUAL)] for function in functions_of(node)]


def fits_of(choice: Choice) -> dict[str, Fit]:
    """The series of a choice."""
    return {function: FITS[function][key] for function, key in choice.items()}


def error_of(node: fx.Node, choice: Choice) -> float:
    """What results are off by at most, relative where these are above 1."""
    found = fits_in(node, choice)
    if node.target in _SOFTMAX:
        # e^a/Σ with errors of e^a and of Σ that are averages of such: p·(1 − p)·2ε, and that of
        # 1/Σ.
        exponential, reciprocal = found
        return _OF_SUMS + exponential.error / 2 + reciprocal.error
    return found[0].error
