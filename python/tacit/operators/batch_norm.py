"""Batch normalisation by running statistics or, in training, by the statistics of the batch.

Training also updates the running statistics. All statistics may be secret.
"""

import math
from typing import Any

import torch

from tacit.operators.arithmetic import add, mul
from tacit.operators.dispatch.operands import at_session_scale, fraction, rescaled
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import assign, implements, unsupported
from tacit.operators.layer_norm import centred, deferred_inverse
from tacit.operators.normalization import FACTOR_SCALE, by_channel, normalise
from tacit.operators.numerics.inverse_roots import inverse_roots
from tacit.tensor import SecretTensor

aten = torch.ops.aten

Normalised = tuple[SecretTensor, torch.Tensor, torch.Tensor]


@implements(aten.native_batch_norm.default, aten._native_batch_norm_legit.default, scale=of_session)
def native_batch_norm(
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Normalised:
    """Returns the normalised batch and, for the gradient, two statistics.

    In training these are the batch's means and 1 / √(variance + ε), otherwise empty tensors.
    """
    if training or mean is None or variance is None:
        return _by_own_statistics(x, weight, bias, mean, variance, momentum, eps)
    empty = torch.empty(0)
    return normalise(x, weight, bias, mean, variance, eps), empty, empty


@implements(aten._native_batch_norm_legit.no_stats, scale=of_session)
def legit_no_stats(
    x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Normalised:
    """Normalises a batch without running statistics."""
    return native_batch_norm(x, weight, bias, None, None, training, momentum, eps)


@implements(aten._native_batch_norm_legit_no_training.default, scale=of_session)
def legit_no_training(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Normalised:
    """Normalises a batch by running statistics."""
    return native_batch_norm(x, weight, bias, mean, variance, False, momentum, eps)


@implements(aten._batch_norm_with_update.default, scale=of_session)
def with_update(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    """Normalises a batch in training.

    The fourth result, PyTorch's reserve for the gradient, is empty.
    """
    normalised = native_batch_norm(x, weight, bias, mean, variance, True, momentum, eps)
    return *normalised, torch.empty(0, dtype=torch.uint8)


def _by_own_statistics(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_variance: Any,
    momentum: float,
    eps: float,
) -> Normalised:
    """Returns (x − mean)·weight / √(variance + ε) + bias by the batch's own mean and variance.

    A channel's factor has 24 fraction bits. So the error exceeds that of ``layer_norm`` by 2^−24 of
    the deviation.
    """
    if not isinstance(x, SecretTensor):
        unsupported(
            "batch normalisation in training of public data by secret weights", "share the data"
        )
    dims = [dim for dim in range(x.dim()) if dim != 1]
    count = math.prod(x.shape[dim] for dim in dims)
    if not count:
        unsupported("batch normalisation of no elements", "give it at least one")
    session = x._session
    deviations, mean = centred(at_session_scale(fraction(x)), dims)
    rows = deviations.transpose(0, 1).reshape(x.shape[1], count)
    roots = inverse_roots(rows, eps)
    mean = mean.reshape(-1)
    _track(running_mean, mean, momentum)
    if running_variance is not None:
        _track(running_variance, roots.mean_of_squares(), momentum, count / max(count - 1, 1))
    factor = inverse = rescaled(roots.found.reshape(-1), FACTOR_SCALE)
    if weight is not None:
        # Products keep as many fraction bits as the factors have.
        with session.using(scale=FACTOR_SCALE):
            factor = mul(inverse, weight)
    result = by_channel(factor, deviations)
    if bias is not None:
        result = add(result, bias.reshape((1, -1) + (1,) * (x.dim() - 2)))
    later = deferred_inverse(roots.found, lambda: by_channel(inverse, deviations), mean.shape)
    return rescaled(result, session.scale), mean, later


def _track(running: Any, present: SecretTensor, momentum: float, correction: float = 1.0) -> None:
    """Writes running + momentum·(correction·present − running) into ``running`` in place."""
    if running is None:
        return
    if not isinstance(running, SecretTensor):
        unsupported(
            "writing the statistics of secret data into plain running statistics",
            "share the module, or set track_running_stats=False",
        )
    assign(running, add(mul(running, 1.0 - momentum), mul(present, momentum * correction)))
