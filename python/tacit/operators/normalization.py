"""Batch normalisation in evaluation.

It is x·a + b for each channel, with a = weight / √(variance + ε) and b = bias − mean·a.

With secret statistics a and b are computed once, and cached until a tensor that they depend on is
written to (``storage_cache``). ``share_module`` has the owner compute them in float64 and share
them with the parameters, so that the inverse square root loses nothing. After a write, or for
another ε, the parties compute them on shares.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.fixed import Scale
from tacit.flags import union
from tacit.operators.arithmetic import add, any_product, mul, neg
from tacit.operators.convolution import convolution
from tacit.operators.dispatch.operands import is_secret, lifted, public
from tacit.operators.numerics.approximation import rsqrt
from tacit.tensor import SecretTensor

#: Fraction bits of factors, which products with x drop: results are right below 2^22. The scale is
#: fixed, since a scale that followed the data would reveal something about them.
FACTOR_SCALE = Scale(24)

Optional = torch.Tensor | None


def fold(
    weight: Optional, bias: Optional, mean: torch.Tensor, variance: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns factor and offset of plain statistics, in float64."""
    factor = 1.0 / torch.sqrt(variance.detach().to(torch.float64) + eps)
    if weight is not None:
        factor = factor * weight.detach().to(torch.float64)
    offset = -mean.detach().to(torch.float64) * factor
    if bias is not None:
        offset = offset + bias.detach().to(torch.float64)
    return factor, offset


def keep(
    statistics: Sequence[SecretTensor | None],
    eps: float,
    factor: SecretTensor,
    offset: SecretTensor,
) -> None:
    """Caches factor and offset of secret weight, bias, mean and variance in their present state."""
    storages = factor._session.storages
    storages.add(factor._parts[0])
    present = [tensor._parts[0] for tensor in statistics if tensor is not None]
    storages.derive(_kind(statistics, eps), present, (factor, offset))


def _kind(statistics: Sequence[torch.Tensor | None], eps: float) -> tuple[Any, ...]:
    return ("normalisation", eps, *(tensor is None for tensor in statistics))


def normalise(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> SecretTensor:
    """Normalises x by given statistics."""
    shape = (1, -1) + (1,) * (x.dim() - 2)
    statistics = (weight, bias, mean, variance)
    if not is_secret(*statistics):
        factor, offset = fold(weight, bias, public(mean), public(variance), eps)
        return add(mul(x, factor.reshape(shape)), offset.reshape(shape))
    factor, offset = _folded(statistics, eps)
    return add(by_channel(factor, x), offset.reshape(shape))


def _folded(statistics: Sequence[Any], eps: float) -> tuple[SecretTensor, SecretTensor]:
    """Returns factor and offset if at least one of weight, bias, mean and variance is secret."""
    if any(tensor is not None and not isinstance(tensor, SecretTensor) for tensor in statistics):
        return _computed(statistics, eps)
    secrets: list[SecretTensor] = [tensor for tensor in statistics if tensor is not None]
    session = secrets[0]._session
    key = _kind(statistics, eps), [secret._parts[0] for secret in secrets]
    kept = session.storages.derived(*key)
    if kept is None:
        # The result depends on the statistics alone, not on the data that it normalises now.
        dependencies = session.dependencies
        with dependencies.running(union(each.flags for each in secrets)) as own:
            made = _computed(statistics, eps)
            # A concurrent computation may have cached them first.
            kept = session.storages.derived(*key)
            if kept is None:
                keep(statistics, eps, *made)
                kept = made
        dependencies.use_within(dependencies.finish(own))
    factor, offset = kept
    return factor.beside(session), offset.beside(session)


def _computed(statistics: Sequence[Any], eps: float) -> tuple[SecretTensor, SecretTensor]:
    """Computes factor and offset on shares."""
    weight, bias, mean, variance = statistics
    secret = next(tensor for tensor in statistics if isinstance(tensor, SecretTensor))
    session = secret._session
    inverse: Any
    if isinstance(variance, SecretTensor):
        inverse = rsqrt(add(variance, eps), positive=True, scale=FACTOR_SCALE)
    else:
        inverse = 1.0 / torch.sqrt(public(variance).to(torch.float64) + eps)
    # Products keep as many fraction bits as factors have.
    with session.using(scale=FACTOR_SCALE):
        factor = inverse if weight is None else any_product(weight, inverse)
        if not isinstance(factor, SecretTensor):
            parts = lifted(session, factor, FACTOR_SCALE)
            factor = SecretTensor(parts, FACTOR_SCALE, session, torch.get_default_dtype())
    offset = neg(mul(mean, factor))
    return factor, offset if bias is None else add(offset, bias)


def by_channel(factor: SecretTensor, x: Any) -> SecretTensor:
    """Returns factor·x for each channel, as a convolution with one weight per channel.

    A protocol that masks its operands then masks each factor once. In a product of equal shapes it
    would mask every copy.
    """
    batch, channels, *rest = x.shape
    image = x.reshape(batch, channels, 1, math.prod(rest))
    weight = factor.reshape(channels, 1, 1, 1)
    result = convolution(image, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), channels)
    return result.like(tuple(part.reshape(x.shape) for part in result._parts))
