"""Circular and hyperbolic functions, their inverses, and the logit.

The logit is an inverse hyperbolic function under another name.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from tacit.operators.arithmetic import add, mul, multiply_public, neg, sub
from tacit.operators.comparison import gt, lt
from tacit.operators.dispatch.operands import beside, common_scale, fraction, in_full, rescaled
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.extremum import minimum
from tacit.operators.numerics import approximation
from tacit.operators.piecewise import absolute
from tacit.operators.where import where
from tacit.sharings import shares
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _both(
    function: Callable[[SecretTensor], SecretTensor], x: SecretTensor, y: SecretTensor
) -> list[SecretTensor]:
    """Applies a function to two tensors of one shape in one batch."""
    scale = common_scale(x, y)
    x, y = rescaled(x, scale), rescaled(y, scale)
    result = function(x.like(shares.stacked(x._parts, y._parts)))
    return [result.like(parts) for parts in shares.unstacked(result._parts)]


@implements(aten.sin.default, scale=of_session)
def sin(x: SecretTensor) -> SecretTensor:
    """Returns sin x: see ``approximation.sin``."""
    return approximation.sin(x)


@implements(aten.cos.default, scale=of_session)
def cos(x: SecretTensor) -> SecretTensor:
    """Returns cos x: see ``approximation.cos``."""
    return approximation.cos(x)


@implements(aten.tan.default, scale=of_session)
def tan(x: SecretTensor) -> SecretTensor:
    """Returns sin x / cos x.

    Near a pole the error is 2^−15·tan² x. Relative to the result it is 2^−10 at 2^5, and all of it
    at 2^15.
    """
    return approximation.divide(approximation.sin(x), approximation.cos(x))


@implements(aten.sinc.default, scale=of_session)
def sinc(x: SecretTensor) -> SecretTensor:
    """Returns sin(πx) / πx, and 1 at 0."""
    angle = multiply_public(x, math.pi)
    with in_full(x._session):
        quotient = approximation.divide(approximation.sin(angle), angle)
        return where(gt(absolute(angle), 2.0**-7), quotient, 1.0)


@implements(aten.atan.default, scale=of_session)
def atan(x: SecretTensor) -> SecretTensor:
    """Returns arctan x: see ``approximation.arctan``."""
    return approximation.arctan(x)


@implements(aten.angle.default, scale=of_session)
def angle(x: SecretTensor) -> SecretTensor:
    """Returns π for negative numbers, else 0."""
    return where(lt(x, 0), math.pi, torch.zeros((), dtype=torch.float64))


@implements(aten.atan2.default, scale=of_session)
def atan2(y: Any, x: Any) -> SecretTensor:
    """Returns the angle of (x, y).

    It is arctan(y/x), plus half a turn towards the side of y where x < 0.
    """
    y, x = y + (x * 0), x + (y * 0)
    quotient = approximation.divide(y, x)
    with in_full(quotient._session):
        angle = approximation.arctan(quotient)
    behind = where(gt(0.0, y), -math.pi, math.pi)
    return add(angle, mul(gt(0.0, x), behind))


@implements(aten.asin.default, scale=of_session)
def asin(x: SecretTensor) -> SecretTensor:
    """Returns arcsin x = arctan(x / √(1 − x²)).

    Domain: |x| ≤ 1; numbers beyond count as ±1. Error: 2^−7 at ±1, where the slope is infinite,
    2^−11 up to ±0.99.
    """
    with in_full(x._session):
        root = approximation.sqrt(sub(1.0, mul(x, x)))
        return approximation.arctan(approximation.divide(x, root))


@implements(aten.acos.default, scale=of_session)
def acos(x: SecretTensor) -> SecretTensor:
    """Returns π/2 − arcsin x."""
    return sub(math.pi / 2, asin(x))


@implements(aten.sinh.default, scale=of_session)
def sinh(x: SecretTensor) -> SecretTensor:
    """Returns (e^x − e^−x) / 2."""
    x = fraction(x)
    up, down = _both(approximation.exp, x, neg(x))
    return multiply_public(sub(up, down), 0.5)


@implements(aten.cosh.default, scale=of_session)
def cosh(x: SecretTensor) -> SecretTensor:
    """Returns (e^x + e^−x) / 2."""
    x = fraction(x)
    up, down = _both(approximation.exp, x, neg(x))
    return multiply_public(add(up, down), 0.5)


@implements(aten.asinh.default, scale=of_session)
def asinh(x: SecretTensor) -> SecretTensor:
    """Returns ±ln(|x| + √(x² + 1)). Domain: |x| < 2^14."""
    size = absolute(fraction(x))
    root = approximation.sqrt(add(mul(size, size), 1.0), positive=True)
    result = approximation.log(add(size, root), positive=True)
    return where(gt(0.0, x), neg(result), result)


@implements(aten.acosh.default, scale=of_session)
def acosh(x: SecretTensor) -> SecretTensor:
    """Returns ln(x + √(x² − 1)). Domain: 1 ≤ x < 2^14."""
    x = fraction(x)
    with in_full(x._session):
        return approximation.log(add(x, approximation.sqrt(sub(mul(x, x), 1.0))))


@implements(aten.atanh.default, scale=of_session)
def atanh(x: SecretTensor) -> SecretTensor:
    """Returns (ln(1 + x) − ln(1 − x)) / 2. Domain: |x| < 1."""
    x = fraction(x)
    with beside(x._session, 1.0):
        up, down = _both(approximation.log, add(x, 1.0), sub(1.0, x))
    return multiply_public(sub(up, down), 0.5)


@implements(aten.logit.default, scale=of_session)
def logit(x: SecretTensor, eps: float | None = None) -> SecretTensor:
    """Returns ln(x / (1 − x)). With ``eps`` x is clamped to [eps, 1 − eps] first."""
    x = fraction(x)
    with beside(x._session, 1.0):
        if eps is not None:
            x = where(lt(x, eps), eps, minimum(x, 1.0 - eps))
        up, down = _both(approximation.log, x, sub(1.0, x))
    return sub(up, down)
