"""Losses that PyTorch has as one operator each, such as cross entropy.

Their composition in PyTorch would leave the range, or select elements by secret values.
"""

import math
from typing import Any

import torch

from tacit.operators.arithmetic import mul, neg
from tacit.operators.composed import as_composed, composes
from tacit.operators.dispatch.operands import as_words, fraction, in_full, lifted
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.numerics import approximation
from tacit.operators.numerics.remembered_softmax import argument_of, seen_as
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: PyTorch's numbers for the reductions.
NONE, MEAN, SUM = 0, 1, 2

#: Key under which the classes of targets are kept for the gradient.
_CLASSES = "classes"


@implements(aten.soft_margin_loss.default, scale=of_session)
def soft_margin_loss(x: Any, target: Any, reduction: int = MEAN) -> SecretTensor:
    """Returns ln(1 + exp(−x·target)), by a softplus.

    PyTorch takes an exponential, which may have any size.
    """
    product = neg(mul(x, target))
    with in_full(product._session):
        losses: Any = approximation.softplus(product)
    if reduction == MEAN:
        losses = losses.mean()
    elif reduction == SUM:
        losses = losses.sum()
    return losses


_of_any_chances = as_composed(aten.binary_cross_entropy.default)


@implements(aten.binary_cross_entropy.default, scale=of_session)
def binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: int = MEAN) -> Any:
    """Returns −target·ln x − (1 − target)·ln(1 − x).

    If x is the result of a sigmoid, the loss is computed from the sigmoid's argument, as PyTorch
    does with logits. Otherwise it takes logarithms, which are at least ln 2^−16.
    """
    known = argument_of(x)
    if known is None or known.dim is not None:
        return _of_any_chances(x, target, weight, reduction)
    logits: Any = fraction(seen_as(known.x, x))
    low = math.log(known.low / (1.0 - known.low)) if known.low > 0.0 else None
    high = math.log(known.high / (1.0 - known.high)) if known.high < 1.0 else None
    if low is not None or high is not None:
        logits = torch.clamp(logits, low, high)
    return aten.binary_cross_entropy_with_logits.default(logits, target, weight, None, reduction)


def classes_of(target: Any, x: Any, ignored: int) -> Any:
    """Returns booleans in the shape of x that say whether a class is the class of the target.

    All are false if the target is to be ignored or is not a class.
    """
    dim = _dimension(x)
    numbers = torch.arange(x.shape[dim]).reshape(_along(x, -1))
    ones = target.unsqueeze(dim) == numbers
    return ones & (numbers != ignored) if 0 <= ignored < x.shape[dim] else ones


def kept_classes(total: Any) -> Any:
    """Returns the booleans of ``classes_of`` that the loss with this total of weights kept.

    Returns ``None`` if there are none.
    """
    if not isinstance(total, SecretTensor):
        return None
    return total._session.storages.derived(_CLASSES, [total._parts[0]])


def times_weights(ones: Any, weight: Any, x: Any) -> Any:
    """Multiplies booleans in the shape of x by the weight of their class, if there are weights."""
    return ones if weight is None else ones * weight.reshape(_along(x, -1))


def _dimension(x: Any) -> int:
    """Returns the dimension of x that holds classes: the first for one example, else the second."""
    return 0 if x.dim() == 1 else 1


def _along(x: Any, size: int) -> list[int]:
    shape = [1] * x.dim()
    shape[_dimension(x)] = size
    return shape


def _nll_loss(overload: Any) -> None:
    of_public_targets = as_composed(overload)

    @implements(overload, scale=of_session)
    def nll_loss_forward(
        x: Any, target: Any, weight: Any, reduction: int, ignore_index: int
    ) -> tuple[Any, Any]:
        """Returns −weight·x of each target's class, and the sum of the weights.

        A secret target is compared with all classes in one batch: nine rounds. A mean takes 35 more
        for a division, or 55 for a division by weights. A target that is not a class counts as
        ignored. The mean of no targets is zero.
        """
        if not isinstance(target, SecretTensor):
            return of_public_targets(x, target, weight, reduction, ignore_index)
        ones = classes_of(target, x, ignore_index)
        weights = as_words(ones) if weight is None else times_weights(ones, weight, x)
        losses = -(weights * x).sum(_dimension(x))
        if reduction == NONE:
            return losses, torch.zeros((), dtype=x.dtype)
        session, scale = losses._session, losses._session.scale
        total = SecretTensor(lifted(session, weights.sum(), scale), scale, session, x.dtype)
        if x.requires_grad:
            session.storages.derive(_CLASSES, [total._parts[0]], ones)
        loss = losses.sum()
        if reduction == MEAN:
            with in_full(session):
                loss = approximation.divide(loss, total, bounded=weight is None)
        return loss, total


for _overload in (aten.nll_loss_forward.default, aten.nll_loss2d_forward.default):
    _nll_loss(_overload)


# Cross entropy, smoothed and weighted
# ------------------------------------------------------------------


@composes(aten.cross_entropy_loss.default)
def cross_entropy_loss(
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    """Computes the mean cross entropy with weights and smoothing for secret targets.

    PyTorch composes the loss above autograd. For a mean with weights and smoothing it selects the
    targets that count, which secret targets do not allow. Here ignored targets get weight zero
    instead. All other cases are left to PyTorch.
    """
    is_selecting = weight is not None and reduction == MEAN and label_smoothing > 0
    if not (isinstance(target, SecretTensor) and is_selecting) or target.dtype.is_floating_point:
        return NotImplemented
    dim = _dimension(x)
    ones = classes_of(target, x, ignore_index)
    weights = times_weights(ones, weight, x)
    smoothed = times_weights(ones.sum(dim, keepdim=True), weight, x) * (
        label_smoothing / x.shape[dim]
    )
    likely = weights * (1.0 - label_smoothing) + smoothed
    return -(torch.log_softmax(x, dim) * likely).sum() / weights.sum()
