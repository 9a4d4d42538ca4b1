"""Piecewise linear activations, absolute value and clamping, by sign bits and selections."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tacit import checks
from tacit.fixed import WORD
from tacit.operators.arithmetic import add, mul, multiply_public
from tacit.operators.comparison import gt
from tacit.operators.dispatch import custom_ops
from tacit.operators.dispatch.operands import (
    Number,
    as_words,
    beside,
    bits_of,
    common_scale,
    compared,
    lifted,
    may_be_unreduced,
    rectified_to_zero,
    rescaled,
    result_dtype,
    session_of,
    times_public,
    together,
)
from tacit.operators.dispatch.scales import of_interpolation, of_session, of_target
from tacit.operators.dispatch.table import assign, implements, unsupported
from tacit.operators.numerics import remembered_softmax, remembered_squares
from tacit.operators.numerics.bounds import Limit, limit_of
from tacit.operators.numerics.compare_words import greater, lesser, of_difference
from tacit.operators.where import where
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Comparison, Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


#: Key under which the bits of a ReLU, whether its results are positive, are kept.
_POSITIVE = "positive"


@implements(aten.relu.default)
def relu(x: SecretTensor) -> SecretTensor:
    """Returns max(x, 0). If x requires a gradient, the comparison's bits are kept for it."""
    if not x.requires_grad:
        return _maximum_with_zero(x)
    result, positive = _with_bits(x)
    x._session.storages.derive(_POSITIVE, [result._parts[0]], positive)
    return result


@implements(aten.relu_.default, scale=of_target)
def relu_(x: SecretTensor) -> SecretTensor:
    """Writes max(x, 0) into x in place.

    If x requires a gradient, the comparison's bits are kept for it.
    """
    if not x.requires_grad:
        return assign(x, _maximum_with_zero(x))
    result, positive = _with_bits(x)
    assign(x, result)
    x._session.storages.derive(_POSITIVE, [x._parts[0]], positive)
    return x


@implements(torch.ops.tacit.one_sided.default)
def one_sided(x: Any, below: Any) -> Any:
    """Returns max(x, 0), and min(x, 0) where ``below`` is true, with the messages of ``relu``.

    In both cases x is multiplied by a bit, which each party flips locally.
    """
    if not (isinstance(x, SecretTensor) and isinstance(below, SecretTensor)):
        return custom_ops.one_sided(x, below)
    x = as_words(x)
    sides = tuple(part.expand(x.shape).contiguous() for part in below._parts)
    return x.like(
        shares.one_sided(x._session, x._parts, sides, rectified_to_zero(x._session, x._scale))
    )


def positive_of(result: Any) -> SecretTensor | None:
    """Returns whether numbers are positive, if they are the unchanged result of a ReLU.

    Otherwise it returns ``None``.
    """
    if not isinstance(result, SecretTensor):
        return None
    session = result._session
    kept = session.storages.derived(_POSITIVE, [result._parts[0]])
    return None if kept is None else bits_of(session, kept)


def _maximum_with_zero(x: SecretTensor) -> SecretTensor:
    x = as_words(x)
    return x.like(shares.relu(x._session, x._parts, rectified_to_zero(x._session, x._scale)))


def _with_bits(x: SecretTensor) -> tuple[SecretTensor, Parts]:
    """Returns max(x, 0) and whether it is positive, with the messages of the maximum alone."""
    session, width = x._session, compared(x._session, x._scale)
    positive = shares.sign(session, shares.negate(x._parts), width)
    return x.like(shares.bit_multiply(session, positive, x._parts)), positive


@implements(aten.leaky_relu.default, scale=of_session)
def leaky_relu(x: SecretTensor, negative_slope: Number = 0.01) -> SecretTensor:
    """Returns slope·x + (1 − slope)·max(x, 0), truncated once."""
    both = torch.tensor([negative_slope, 1 - negative_slope], dtype=torch.float64)
    pair = x.like(
        tuple(
            torch.stack(halves, -1)
            for halves in zip(x._parts, _maximum_with_zero(x)._parts, strict=True)
        )
    )
    # The two summands have one sign, so neither is greater than the result, or than x.
    return times_public(
        pair, both, x.dtype, apply=_mixed, gain=float(both.abs().sum() / both.abs().max())
    )


def _mixed(pair: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (pair * weights).sum(-1)


@implements(aten.threshold.default)
def threshold(x: SecretTensor, bound: Number, value: Number) -> SecretTensor:
    """Returns x where x > bound, else the value."""
    x = rescaled(x, common_scale(x, bound, value))
    if bound == 0 and value == 0:
        return _maximum_with_zero(x)
    return where(gt(x, bound), x, value)


@implements(aten.abs.default)
def absolute(x: SecretTensor) -> SecretTensor:
    """Returns |x| = 2·max(x, 0) − x."""
    x = as_words(x)
    if x.dtype == torch.int64:
        # The minimum of int64 has no opposite.
        checks.hold(x._session, x._parts, checks.WORD)
    parts = tuple((2 * a) - b for a, b in zip(_maximum_with_zero(x)._parts, x._parts, strict=True))
    # The minimum of a smaller integer dtype has no opposite in it.
    return x.like(parts, unreduced=may_be_unreduced(x.dtype) and torch.iinfo(x.dtype).min < 0)


@implements(aten.clamp.default, aten.clamp.Tensor)
def clamp(x: Any, low: Any = None, high: Any = None) -> SecretTensor:
    """Clamps x as ``_clamped``.

    A clamped probability remembers its bounds (``remembered_softmax``).
    """
    return remembered_softmax.remember_clamped(_clamped(x, low, high), x, low, high)


def _clamped(x: Any, low: Any, high: Any) -> SecretTensor:
    """Clamps x to bounds: low + max(x − low, 0) − max(x − high, 0).

    Both maxima are computed in parallel, for int64 one after the other. If low > high, the result
    is high, as in PyTorch.
    """
    bounds = [bound for bound in (low, high) if bound is not None]
    if not bounds:
        unsupported("clamp without a bound", "give min or max")
    session = session_of(x, *bounds)
    scale = common_scale(x, *bounds)
    dtype = x.dtype
    for bound in bounds:
        dtype = result_dtype(torch.empty((1,) * x.dim(), dtype=dtype), bound)
    made = partial(SecretTensor, scale=scale, session=session, dtype=dtype)
    parts = lifted(session, x, scale)
    least = None if low is None else limit_of(session, low, x, scale, upper=False)
    most = None if high is None else limit_of(session, high, x, scale, upper=True)
    least, most = (None if limit is None or limit.is_free else limit for limit in (least, most))
    kept = [bound for bound, limit in ((low, least), (high, most)) if limit is not None]
    if not kept:
        shape = torch.broadcast_shapes(*(getattr(each, "shape", ()) for each in (x, *bounds)))  # type: ignore[no-untyped-call]
        return made(tuple(part.expand(shape) for part in parts))
    comparison = of_difference(session, scale, x, *kept)
    if most is None and least is not None:
        found = made(_bounded(session, comparison, parts, least, greater))
        return remembered_squares.remember_clamped(found, x, low)
    if least is None and most is not None:
        return made(_bounded(session, comparison, parts, most, lesser))
    assert least is not None
    assert most is not None
    numbers = isinstance(low, int | float) and isinstance(high, int | float)
    if numbers and low <= high and comparison.width <= WORD:
        parts, lowest, highest = together(parts, least.parts, most.parts)
        above = tuple(
            torch.stack([x - lo, x - hi]) for x, lo, hi in zip(parts, lowest, highest, strict=True)
        )
        above = shares.relu(session, above, comparison)
        return made(tuple(lo + a[0] - a[1] for lo, a in zip(lowest, above, strict=True)))
    at_least = _bounded(session, comparison, parts, least, greater)
    return made(_bounded(session, comparison, at_least, most, lesser))


def _bounded(
    session: Session,
    comparison: Comparison,
    x: Parts,
    limit: Limit,
    extremum: Callable[[Session, Parts, Parts, Comparison], Parts],
) -> Parts:
    x, bound = together(x, limit.parts)
    return limit.applied(x, extremum(session, x, bound, comparison))


@implements(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(x: Any, low: Any) -> SecretTensor:
    """Returns the larger of x and a bound."""
    return clamp(x, low, None)


@implements(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(x: Any, high: Any) -> SecretTensor:
    """Returns the smaller of x and a bound."""
    return clamp(x, None, high)


@implements(aten.hardtanh.default)
def hardtanh(x: SecretTensor, low: Number = -1, high: Number = 1) -> SecretTensor:
    """Clamps x to [low, high] (ReLU6: 0 and 6). Integers stay integers."""
    if not x.dtype.is_floating_point:
        low, high = int(low), int(high)
    return clamp(x, low, high)


@implements(aten.hardsigmoid.default, scale=of_session)
def hardsigmoid(x: SecretTensor) -> SecretTensor:
    """Returns min(max(x + 3, 0), 6) / 6."""
    with beside(x._session, 6.0):
        return multiply_public(hardtanh(add(x, 3), 0, 6), 1.0 / 6.0)


@implements(aten.hardswish.default, scale=of_session)
def hardswish(x: SecretTensor) -> SecretTensor:
    """Returns x·min(max(x + 3, 0), 6) / 6."""
    return mul(x, hardsigmoid(x))


@implements(aten.prelu.default, aten._prelu_kernel.default, scale=of_interpolation)
def prelu(x: Any, weight: Any) -> SecretTensor:
    """Returns max(x, 0) + weight·min(x, 0)."""
    if not isinstance(x, SecretTensor):
        return add(mul(torch.clamp(x, max=0), weight), torch.clamp(x, min=0))
    positive = _maximum_with_zero(x)
    negative = x.like(shares.subtract(x._parts, positive._parts))
    return add(positive, mul(negative, weight))


@implements(aten.rrelu_with_noise.default, scale=of_session)
def rrelu(
    x: SecretTensor,
    noise: torch.Tensor,  # noqa: ARG001
    lower: Number = 1.0 / 8,
    upper: Number = 1.0 / 3,
    training: bool = False,
    generator: torch.Generator | None = None,  # noqa: ARG001
) -> SecretTensor:
    """Applies ``leaky_relu`` with the mean slope, as PyTorch does in evaluation."""
    if training:
        unsupported("a random slope for each element", "call model.eval(), or use leaky_relu")
    return leaky_relu(x, (lower + upper) / 2)
