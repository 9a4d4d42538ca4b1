"""Gradients of normalisations, each from the deviations x̂ = (x − mean)·rstd and two sums along what was
normalised: rstd·(g − mean(g) − x̂·mean(g·x̂)) with g = gradient·weight."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.operators.backward.results import dots
from tacit.operators.scales import of_session
from tacit.operators.table import implements

aten = torch.ops.aten

Gradients = tuple[Any, Any, Any]


def _of_input(g: Any, normal: Any, rstd: Any, dims: Sequence[int]) -> Any:
    """rstd·(g − mean(g) − x̂·mean(g·x̂)) along dimensions: at most ten rounds."""
    count = math.prod(normal.shape[dim] for dim in dims)
    along = dots(g, normal, dims) * (1.0 / count)
    return (g - g.mean(list(dims), keepdim=True) - normal * along) * rstd


def _of_parameters(
    gradient: Any, normal: Any, dims: Sequence[int], shape: Sequence[int], wanted: Sequence[bool]
) -> tuple[Any, Any]:
    """Of weight and bias: sums of gradient·x̂, two rounds, and of the gradient, along the dimensions in which
    they are the same; there may be none of these."""
    of_weight = of_bias = None
    if wanted[1]:
        of_weight = dots(gradient, normal, dims).reshape(list(shape))
    if wanted[2]:
        sums = gradient.sum(list(dims)) if dims else gradient
        of_bias = sums.reshape(list(shape))
    return of_weight, of_bias


@implements(aten.native_layer_norm_backward.default, scale=of_session)
def layer_norm_backward(
    gradient: Any,
    x: Any,
    normalized_shape: Sequence[int],
    mean: Any,
    rstd: Any,
    weight: Any,
    bias: Any,  # noqa: ARG001
    wanted: Sequence[bool],
) -> Gradients:
    """Of x, weight and bias: at most fourteen rounds."""
    first = x.dim() - len(normalized_shape)
    batch, dims = list(range(first)), list(range(first, x.dim()))
    normal = (x - mean) * rstd
    g = gradient if weight is None else gradient * weight
    of_x = _of_input(g, normal, rstd, dims) if wanted[0] else None
    return of_x, *_of_parameters(gradient, normal, batch, normalized_shape, wanted)


@implements(aten.native_group_norm_backward.default, scale=of_session)
def group_norm_backward(
    gradient: Any,
    x: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    batch: int,
    channels: int,
    size: int,
    groups: int,
    wanted: Sequence[bool],
) -> Gradients:
    """Of x, weight and bias: at most fourteen rounds."""
    shape = (batch, groups, channels // groups, size)
    rows = gradient.reshape(shape)
    rstd = rstd.reshape(batch, groups, 1, 1)
    normal = (x.reshape(shape) - mean.reshape(batch, groups, 1, 1)) * rstd
    g = rows if weight is None else rows * weight.reshape(1, groups, channels // groups, 1)
    of_x = _of_input(g, normal, rstd, [2, 3]).reshape(x.shape) if wanted[0] else None
    return of_x, *_of_parameters(rows, normal, [0, 3], [channels], wanted)


@implements(aten.native_batch_norm_backward.default, scale=of_session)
def batch_norm_backward(
    gradient: Any,
    x: Any,
    weight: Any,
    running_mean: Any,
    running_variance: Any,
    mean: Any,
    rstd: Any,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> Gradients:
    """Of x, weight and bias. In training at most fourteen rounds; by running statistics, which are constants,
    those of an inverse square root besides."""
    dims = [dim for dim in range(x.dim()) if dim != 1]
    shape = (1, -1) + (1,) * (x.dim() - 2)
    if not training:
        mean, rstd = running_mean, torch.rsqrt(running_variance + eps)
    rstd = rstd.reshape(shape)
    normal = (x - mean.reshape(shape)) * rstd if training or wanted[1] else None
    of_x = None
    if wanted[0]:
        g = gradient if weight is None else gradient * weight.reshape(shape)
        of_x = _of_input(g, normal, rstd, dims) if training else g * rstd
    return of_x, *_of_parameters(gradient, normal, dims, [-1], wanted)


@implements(aten._weight_norm_interface_backward.default, scale=of_session)
def weight_norm_backward(gradient: Any, v: Any, g: Any, norms: Any, dim: int) -> tuple[Any, Any]:
    """Of v·(g / |v|), by the direction u = v / |v|: of g it is Σ gradient·u, and of v what is left of the
    gradient beside u, times g / |v|. The rounds of two divisions and six."""
    direction = v / norms
    dims = [at for at in range(v.dim()) if at != dim % v.dim()]
    along = dots(gradient, direction, dims)
    return (gradient - direction * along) * (g / norms), along
