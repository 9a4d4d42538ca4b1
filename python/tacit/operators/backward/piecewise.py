"""Gradients of piecewise linear activations: comparisons and a selection.

Two comparisons run in parallel. At the bounds the gradients are those of PyTorch.
"""

from typing import Any

import torch

from tacit.operators.dispatch.operands import Number, beside, in_full, lifted, session_of
from tacit.operators.dispatch.scales import of_session, of_target
from tacit.operators.dispatch.table import implements
from tacit.operators.numerics.bounds import bound_of
from tacit.operators.piecewise import positive_of
from tacit.sharings import shares
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def within(x: Any, low: Number, high: Number) -> Any:
    """Returns whether low < x < high."""
    if not isinstance(x, SecretTensor):
        return (x > low) & (x < high)
    above, below = _sides(x, low, high)
    return above & below


def _outside(x: Any, bound: Number) -> Any:
    """Returns whether |x| > bound."""
    if not isinstance(x, SecretTensor):
        return x.abs() > bound
    below, above = (~each for each in _sides(x, -bound, bound, least=1))
    return below | above


def _sides(x: SecretTensor, low: Number, high: Number, *, least: int = 0) -> tuple[Any, Any]:
    """Returns whether x > low and whether x < high, both compared in parallel.

    With ``least`` = 1 the comparisons are x ≥ low and x ≤ high. A result is public if its bound is
    beyond all secrets.
    """
    ends = [bound_of(x._session, float(bound), x) for bound in (low, high)]
    is_open = [not (end.is_above or end.is_below) for end in ends]
    open_ends, found = [end for end, is_it in zip(ends, is_open, strict=True) if is_it], []
    if open_ends:
        words = [lifted(x._session, x, end.scale) for end in open_ends]
        bounds = [shares.trivial(x._session, end.words) for end in open_ends]
        differences = [
            shares.subtract(*((one, bound) if end is ends[0] else (bound, one)))
            for end, one, bound in zip(open_ends, words, bounds, strict=True)
        ]
        stacked = x.like(
            tuple(torch.stack(parts) for parts in zip(*differences, strict=True)), ends[0].scale
        )
        found = list((stacked >= 0 if least else stacked > 0).unbind(0))
    known = (ends[0].is_below, ends[1].is_above)
    sides = [
        found.pop(0) if is_it else torch.full(x.shape, is_true)
        for is_it, is_true in zip(is_open, known, strict=True)
    ]
    return sides[0], sides[1]


@implements(aten.threshold_backward.default, scale=of_target)
def threshold_backward(gradient: Any, x: Any, bound: Number) -> Any:
    """Returns the gradient where x > bound, else zero. Exact.

    Eight rounds, or two if x is the result of a ReLU.
    """
    known = positive_of(x) if bound == 0 else None
    return gradient * (x > bound if known is None else known)


@implements(aten.hardtanh_backward.default, scale=of_target)
def hardtanh_backward(gradient: Any, x: Any, low: Number, high: Number) -> Any:
    """Returns the gradient where low < x < high, else zero. Nine rounds, exact."""
    return gradient * within(x, low, high)


@implements(aten.hardshrink_backward.default, aten.softshrink_backward.default, scale=of_target)
def shrink_backward(gradient: Any, x: Any, bound: Number) -> Any:
    """Returns the gradient where |x| > bound, else zero. Nine rounds, exact."""
    return gradient * _outside(x, bound)


@implements(aten.hardsigmoid_backward.default, scale=of_session)
def hardsigmoid_backward(gradient: Any, x: Any) -> Any:
    """Returns a sixth of the gradient where −3 < x < 3, else zero. Eleven rounds."""
    with beside(session_of(gradient, x), 3.0):
        inside = within(x, -3.0, 3.0)
    return (gradient * inside) * (1.0 / 6.0)


@implements(aten.hardswish_backward.default, scale=of_session)
def hardswish_backward(gradient: Any, x: Any) -> Any:
    """Returns gradient·(x / 3 + 1/2) where −3 < x < 3, zero below, the gradient above.

    Fourteen rounds.
    """
    with beside(session_of(gradient, x), 3.0):
        bits = torch.stack([x + 3.0, 3.0 - x]) > 0
    slope = torch.where(bits[1], x * (1.0 / 3.0) + 0.5, 1.0) * bits[0]
    return gradient * slope


@implements(aten.leaky_relu_backward.default, scale=of_session)
def leaky_relu_backward(gradient: Any, x: Any, slope: Number, _is_result: bool) -> Any:
    """Returns the gradient where x > 0, else slope times the gradient. Ten rounds."""
    return torch.where(x > 0, gradient, gradient * slope)


@implements(aten._prelu_kernel_backward.default, scale=of_session)
def prelu_backward(gradient: Any, x: Any, weight: Any) -> tuple[Any, Any]:
    """Returns the gradient of x, as in a leaky ReLU, and of the weight, gradient·min(x, 0).

    Ten rounds.
    """
    positive = x > 0
    of_x = torch.where(positive, gradient, gradient * weight)
    of_weight = (gradient * x) * ~positive
    return of_x, of_weight


@implements(aten.elu_backward.default, scale=of_session)
def elu_backward(
    gradient: Any, alpha: Number, scale: Number, input_scale: Number, is_result: bool, x: Any
) -> Any:
    """Returns the gradient times scale where x > 0, else times the exponential's slope.

    That slope is scale·α·input_scale·e^(input_scale·x).
    """
    positive = x > 0
    below = x * ~positive
    if is_result:
        slope = (below + alpha * scale) * float(input_scale)
    else:
        with in_full(session_of(gradient, x)):
            slope = torch.exp(below * float(input_scale)) * float(alpha * scale * input_scale)
    return gradient * torch.where(positive, float(scale), slope)
