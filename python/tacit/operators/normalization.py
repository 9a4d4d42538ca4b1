"""Batch normalisation in evaluation: x·a + b for each channel, with a = weight / √(variance + ε).

With a secret variance, a is not computed here: ``share_module`` has the owner compute it in float64 and
share it, with more fraction bits than other numbers, beside the variance (:class:`Folded`). So a secret
normalisation costs one product and loses nothing to the inverse square root.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from tacit.operators.arithmetic import add, mul
from tacit.operators.convolution import convolution
from tacit.operators.operands import public
from tacit.operators.table import implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Fraction bits of folded factors. Chosen once: a scale that followed the data would tell of them.
FACTOR_SCALE = 24


@dataclass(frozen=True)
class Folded:
    """What the owner knows of a normalisation: y = factor·x + offset, for that ε."""

    factor: SecretTensor
    offset: SecretTensor
    eps: float


def fold(
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Factor and offset of plain statistics, in float64."""
    factor = 1.0 / torch.sqrt(variance.detach().to(torch.float64) + eps)
    if weight is not None:
        factor = factor * weight.detach().to(torch.float64)
    offset = -mean.detach().to(torch.float64) * factor
    if bias is not None:
        offset = offset + bias.detach().to(torch.float64)
    return factor, offset


@implements(aten.native_batch_norm.default)
def native_batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, _momentum: float, eps: float
) -> tuple[SecretTensor, torch.Tensor, torch.Tensor]:
    """The normalised batch; what training would save is empty."""
    if training or mean is None or variance is None:
        unsupported("batch normalisation by the batch's own statistics", "call model.eval()")
    empty = torch.empty(0)
    result = _normalise(x, weight, bias, mean, variance, eps)
    return result.like(result._parts, dtype=x.dtype), empty, empty


@implements(aten._native_batch_norm_legit_no_training.default)
def legit_no_training(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> tuple[SecretTensor, torch.Tensor, torch.Tensor]:
    """The same by another name."""
    return native_batch_norm(x, weight, bias, mean, variance, False, momentum, eps)


def _normalise(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> SecretTensor:
    shape = (1, -1) + (1,) * (x.dim() - 2)
    if isinstance(variance, SecretTensor):
        folded = getattr(variance, "_folded", None)
        if folded is None or folded.eps != eps:
            unsupported(
                "batch normalisation by a secret variance alone",
                "share the whole module by tacit.share_module",
            )
        return add(_by_channel(folded.factor, x), folded.offset.reshape(shape))
    if any(isinstance(secret, SecretTensor) for secret in (weight, bias, mean)):
        inverse = 1.0 / torch.sqrt(public(variance).to(torch.float64) + eps)
        factor = inverse if weight is None else weight * inverse
        result = (x - mean.reshape(shape)) * factor.reshape(shape)
        return result if bias is None else add(result, bias.reshape(shape))
    factor, offset = fold(weight, bias, public(mean), public(variance), eps)
    return add(mul(x, factor.reshape(shape)), offset.reshape(shape))


def _by_channel(factor: SecretTensor, x: Any) -> SecretTensor:
    """factor·x for each channel, as a convolution with one weight a channel: a protocol that masks its
    operands then masks each factor once, where a product of equal shapes would mask all their copies."""
    batch, channels, *rest = x.shape
    image = x.reshape(batch, channels, 1, math.prod(rest))
    weight = factor.reshape(channels, 1, 1, 1)
    result = convolution(image, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), channels)
    return result.like(tuple(part.reshape(x.shape) for part in result._parts))
