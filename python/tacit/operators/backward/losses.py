"""Gradients of losses.

If the gradient of the loss is public, as it is when ``backward()`` starts, multiplying by it costs
truncations only. Targets may be secret or public.
"""

from typing import Any

import torch

from tacit.fixed import Scale
from tacit.operators.backward.results import weighted
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.losses import MEAN, NONE, classes_of, kept_classes, times_weights
from tacit.operators.numerics.approximation import divide, reciprocal
from tacit.operators.numerics.remembered_softmax import argument_of, left_for_later
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Scale of the reciprocal of the number of targets.
FINE = Scale(24)

#: Least divisor in the gradient of a binary cross entropy: one unit of fixed point.
LEAST_DIVISOR = 2.0**-16


def _share(reduction: int, x: Any) -> float:
    """Returns the weight of one element in the loss."""
    return 1.0 / max(x.numel(), 1) if reduction == MEAN else 1.0


@implements(aten.mse_loss_backward.default, scale=of_session)
def mse_loss_backward(gradient: Any, x: Any, target: Any, reduction: int) -> Any:
    """Returns 2·(x − target)·gradient / n. At most four rounds."""
    return weighted(x - target, gradient, 2.0 * _share(reduction, x))


@implements(aten.smooth_l1_loss_backward.default, scale=of_session)
def smooth_l1_loss_backward(gradient: Any, x: Any, target: Any, reduction: int, beta: float) -> Any:
    """Returns the gradient times x − target, clamped to [−beta, beta] and divided by beta.

    For beta = 0 the sign of the difference takes the place of the quotient.
    """
    difference, share = x - target, _share(reduction, x)
    if beta == 0:
        return weighted(torch.sign(difference), gradient, share)
    return weighted(torch.clamp(difference, -beta, beta), gradient, share / beta)


@implements(aten.huber_loss_backward.default, scale=of_session)
def huber_loss_backward(gradient: Any, x: Any, target: Any, reduction: int, delta: float) -> Any:
    """Returns the gradient times x − target, clamped to [−delta, delta]."""
    return weighted(torch.clamp(x - target, -delta, delta), gradient, _share(reduction, x))


@implements(aten.binary_cross_entropy_backward.default, scale=of_session)
def binary_cross_entropy_backward(
    gradient: Any, x: Any, target: Any, weight: Any = None, reduction: int = MEAN
) -> Any:
    """Returns gradient·weight·(x − target) / (x·(1 − x)).

    The divisor is at least 2^−16, one unit, where PyTorch has 1e-12. If x is the result of a
    sigmoid, nothing is divided unless the quotients themselves are used: see
    ``remembered_softmax``.
    """

    def slope(x: Any, divisor: Any) -> Any:
        found = x - target if divisor is None else (x - target) / divisor
        found = found if weight is None else found * weight
        return weighted(found, gradient, _share(reduction, x))

    def quotient(x: Any) -> Any:
        return slope(x, torch.clamp(x * (1.0 - x), min=LEAST_DIVISOR))

    known = argument_of(x)
    of_sigmoid = known is not None and known.dim is None
    later = (
        left_for_later(x, lambda x: slope(x, None), quotient, by_both=True) if of_sigmoid else None
    )
    return quotient(x) if later is None else later


@implements(aten.soft_margin_loss_backward.default, scale=of_session)
def soft_margin_loss_backward(gradient: Any, x: Any, target: Any, reduction: int) -> Any:
    """Returns −target·sigmoid(−target·x)·gradient."""
    slope = target * torch.sigmoid(-(target * x))
    return weighted(slope, gradient, -_share(reduction, x))


@implements(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default, scale=of_session)
def nll_loss_backward(
    gradient: Any,
    x: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total_weight: Any,
) -> Any:
    """Returns −weight·gradient at the class of each target that counts, and zero elsewhere.

    The result is public if gradient, weights and targets are. Secret targets use the comparisons
    that the loss kept. For a mean that takes the rounds of a reciprocal and four more, or of a
    division if the gradient of the loss is secret.
    """
    chosen = kept_classes(total_weight)
    if chosen is None:
        chosen = classes_of(target, x, ignore_index)
    chosen = times_weights(chosen, weight, x)
    if reduction == NONE:
        return chosen * -gradient.unsqueeze(0 if x.dim() == 1 else 1)
    if reduction == MEAN and isinstance(total_weight, SecretTensor):
        return chosen * -_divided(gradient, total_weight, weight is None)
    found = weighted(chosen, gradient, -1.0 / float(total_weight) if reduction == MEAN else -1.0)
    return found if isinstance(found, SecretTensor) else found.to(x.dtype)


def _divided(gradient: Any, total: SecretTensor, is_count: bool) -> Any:
    """Divides the gradient of a mean by the total weight.

    The quotient is small if there are many targets, so it has a fine scale.
    """
    if isinstance(gradient, SecretTensor):
        return divide(gradient, total, bounded=is_count)
    return gradient * reciprocal(total, positive=is_count, scale=FINE)
