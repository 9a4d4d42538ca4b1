"""Gradients of smooth activations.

They are computed from the function's own value where PyTorch gives it.
"""

import math
from typing import Any

import torch

from tacit.operators.backward.results import dots
from tacit.operators.dispatch.operands import Number, beside, in_full, session_of
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics.remembered_softmax import quotient_of

aten = torch.ops.aten

#: Beyond this magnitude the derivative of GELU is 0 or 1, as closely as fixed point can represent
#: it.
FLAT = 6.0

#: From this argument on 1 − sigmoid(x) is below a unit of 2^−16.
SATURATED = 12.0


@implements(aten.sigmoid_backward.default, scale=of_session)
def sigmoid_backward(gradient: Any, y: Any) -> Any:
    """Returns gradient·y·(1 − y).

    Four rounds, or fewer if the gradient is a deferred quotient by these factors: see
    ``remembered_softmax``.
    """
    later = quotient_of(gradient, y)
    if later is not None:
        numerator = later.numerator.reshape(y.shape)
        return numerator if later.by_both else numerator * (1.0 - y)
    return gradient * (y * (1.0 - y))


@implements(aten.tanh_backward.default, scale=of_session)
def tanh_backward(gradient: Any, y: Any) -> Any:
    """Returns gradient·(1 − y²). Four rounds."""
    return gradient * (1.0 - y * y)


@implements(aten.silu_backward.default, scale=of_session)
def silu_backward(gradient: Any, x: Any) -> Any:
    """Returns gradient·s·(1 + x·(1 − s)) with s = sigmoid(x).

    Takes the rounds of the sigmoid and six.
    """
    s = torch.sigmoid(x)
    return gradient * (s * (x * (1.0 - s) + 1.0))


@implements(aten.gelu_backward.default, scale=of_session)
def gelu_backward(gradient: Any, x: Any, *, approximate: str = "none") -> Any:
    """Returns gradient·(Φ(x) + x·φ(x)), or the gradient of the form with tanh.

    x is clamped to [−6, 6], beyond which the derivative does not change. Takes the rounds of exp
    and erf, or of tanh, and eighteen.
    """
    session = session_of(gradient, x)
    with beside(session, FLAT):
        x = torch.clamp(x, -FLAT, FLAT)
    with in_full(session):
        return gradient * (_slope(x) if approximate == "none" else _slope_by_tanh(x))


def _slope(x: Any) -> Any:
    density = torch.exp((x * x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
    return (torch.erf(x * (1.0 / math.sqrt(2.0))) + 1.0) * 0.5 + x * density


def _slope_by_tanh(x: Any) -> Any:
    factor, cubic = math.sqrt(2.0 / math.pi), 0.044715
    square = x * x
    t = torch.tanh((x * (square * cubic + 1.0)) * factor)
    inner = (square * (3.0 * cubic) + 1.0) * factor
    return (t + 1.0 + (x * inner) * (1.0 - t * t)) * 0.5


@implements(aten.softplus_backward.default, scale=of_session)
def softplus_backward(gradient: Any, x: Any, beta: Number, threshold: Number) -> Any:
    """Returns gradient·sigmoid(beta·x), or the gradient where beta·x is above the threshold."""
    scaled = x * float(beta)
    with (
        in_full(session_of(gradient, x))
        if beta != 1
        else beside(session_of(gradient, x), SATURATED)
    ):
        slope = torch.sigmoid(scaled)
        if threshold < SATURATED:
            slope = torch.where(scaled > threshold, 1.0, slope)
    return gradient * slope


@implements(aten.mish_backward.default, scale=of_session)
def mish_backward(gradient: Any, x: Any) -> Any:
    """Returns gradient·(t + x·s·(1 − t²)) with t = tanh(softplus(x)) and s = sigmoid(x)."""
    t, s = torch.tanh(torch.nn.functional.softplus(x)), torch.sigmoid(x)
    return gradient * (t + (x * (1.0 - t * t)) * s)


@implements(aten.log_sigmoid_backward.default, scale=of_session)
def log_sigmoid_backward(gradient: Any, x: Any, _buffer: Any) -> Any:
    """Returns gradient·sigmoid(−x)."""
    return gradient * torch.sigmoid(-x)


@implements(aten.glu_backward.default, scale=of_session)
def glu_backward(gradient: Any, x: Any, dim: int) -> Any:
    """Returns the gradient of a·s with s = sigmoid(b): gradient·s and gradient·a·s·(1 − s)."""
    a, b = x.chunk(2, dim)
    s = torch.sigmoid(b)
    both = torch.stack([s, a * (s * (1.0 - s))]) * gradient
    return torch.cat([both[0], both[1]], dim)


@implements(aten._softmax_backward_data.default, scale=of_session)
def softmax_backward(gradient: Any, y: Any, dim: int, _dtype: torch.dtype) -> Any:
    """Returns y·(gradient − Σ y·gradient). Four rounds.

    If the gradient is a deferred quotient n/y, as a logarithm gives it, the result is n − y·Σ n.
    """
    later = quotient_of(gradient, y)
    if later is not None and y.dim():
        numerator = later.numerator.reshape(y.shape)
        return numerator - y * numerator.sum(dim, keepdim=True)
    if not y.dim():
        return gradient * (y - 1.0)
    return y * (gradient - dots(gradient, y, [dim % y.dim()]))


@implements(aten._log_softmax_backward_data.default, scale=of_session)
def log_softmax_backward(gradient: Any, y: Any, dim: int, _dtype: torch.dtype) -> Any:
    """Returns gradient − e^y·Σ gradient, in the rounds of exp and two."""
    return gradient - torch.exp(y) * gradient.sum(dim, keepdim=True)


@implements(aten.logit_backward.default, scale=of_session)
def logit_backward(gradient: Any, x: Any, eps: float | None = None) -> Any:
    """Returns gradient / (x·(1 − x)), and zero where x was clamped to eps or 1 − eps."""
    if eps is not None and not eps > 0:
        unsupported("the gradient of logit with eps = 0", "give an eps above zero, or none")
    with in_full(session_of(gradient, x)):
        if eps is None:
            return gradient / (x * (1.0 - x))
        outside = torch.stack([x - eps, (1.0 - eps) - x]) < 0
        inside = ~(outside[0] | outside[1])
        x = torch.where(inside, x, 0.5)
        return (gradient / (x * (1.0 - x))) * inside
