"""Gradients of normalisations.

Each is computed from the normalised deviations x̂ = (x − mean)·rstd and two sums over the
normalised dimensions: rstd·(g − mean(g) − x̂·mean(g·x̂)) with g = gradient·weight.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.operators.backward.results import dots
from tacit.operators.dispatch import custom_ops
from tacit.operators.dispatch.operands import rescaled
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements
from tacit.operators.layer_norm import DEVIATIONS, FromRows
from tacit.tensor import SecretTensor

aten = torch.ops.aten

Gradients = tuple[Any, Any, Any]


def _of_input(g: Any, normal: Any, rstd: Any, dims: Sequence[int]) -> Any:
    """Returns rstd·(g − mean(g) − x̂·mean(g·x̂)) over ``dims``. At most ten rounds."""
    return (g - g.mean(list(dims), keepdim=True) - _along(g, normal, dims)) * rstd


def _along(g: Any, normal: Any, dims: Sequence[int]) -> Any:
    """Returns the component of a gradient along x̂: x̂·mean(g·x̂)."""
    count = math.prod(normal.shape[dim] for dim in dims)
    return normal * (dots(g, normal, dims) * (1.0 / count))


def _kept(rstd: Any) -> tuple[Any, Any] | None:
    """Returns x̂ and inverse roots, if the forward pass computed them from secrets.

    Otherwise it returns ``None``. The inverse roots have as many bits as leave gradients room.
    """
    later = rstd._later if isinstance(rstd, SecretTensor) else None
    if not isinstance(later, FromRows):
        return None
    return later.normal(), rescaled(later.inverse, DEVIATIONS)


def _of_parameters(
    gradient: Any, normal: Any, dims: Sequence[int], shape: Sequence[int], wanted: Sequence[bool]
) -> tuple[Any, Any]:
    """Returns the gradients of weight and bias, or ``None`` for one that is not wanted.

    They are sums of gradient·x̂ (two rounds) and of the gradient over the dimensions along which
    the parameters are broadcast. There may be no such dimension.
    """
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
    """Returns the gradients of x, weight and bias. At most fourteen rounds."""
    first = x.dim() - len(normalized_shape)
    batch, dims = list(range(first)), list(range(first, x.dim()))
    if (kept := _kept(rstd)) is None:
        normal = (x - mean) * rstd
    else:
        normal, rstd = kept[0].reshape(x.shape), kept[1].reshape(rstd.shape)
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
    """Returns the gradients of x, weight and bias. At most fourteen rounds."""
    shape = (batch, groups, channels // groups, size)
    rows = gradient.reshape(shape)
    of_groups = (batch, groups, 1, 1)
    if (kept := _kept(rstd)) is None:
        rstd = rstd.reshape(of_groups)
        normal = (x.reshape(shape) - mean.reshape(of_groups)) * rstd
    else:
        normal, rstd = kept[0].reshape(shape), kept[1].reshape(of_groups)
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
    """Returns the gradients of x, weight and bias.

    At most fourteen rounds in training. Running statistics are constants; with them the rounds of
    an inverse square root are added.
    """
    dims = [dim for dim in range(x.dim()) if dim != 1]
    shape = (1, -1) + (1,) * (x.dim() - 2)
    if not training:
        mean, rstd = running_mean, torch.rsqrt(running_variance + eps)
    normal = None
    if training and (kept := _kept(rstd)) is not None:
        normal, rstd = kept
    rstd = rstd.reshape(shape)
    if normal is None and (training or wanted[1]):
        normal = (x - mean.reshape(shape)) * rstd
    of_x = None
    if wanted[0]:
        g = gradient if weight is None else gradient * weight.reshape(shape)
        of_x = _of_input(g, normal, rstd, dims) if training else g * rstd
    return of_x, *_of_parameters(gradient, normal, dims, [-1], wanted)


@implements(torch.ops.tacit.rms_norm_backward.default, scale=of_session)
def rms_norm_backward(gradient: Any, x: Any, rstd: Any, dims: int, weight: Any) -> Any:
    """Returns the gradient of x: rstd·(g − x̂·mean(g·x̂)). At most ten rounds."""
    normal, rstd = _rooted(x, rstd)
    g = gradient if weight is None else gradient * weight
    return (g - _along(g, normal, custom_ops.last_of(x, dims))) * rstd


@implements(torch.ops.tacit.rms_norm_weight_backward.default, scale=of_session)
def rms_norm_weight_backward(gradient: Any, x: Any, rstd: Any, dims: int) -> Any:
    """Returns the gradient of the weight. Two rounds."""
    normal, _ = _rooted(x, rstd)
    of_rows = list(range(x.dim() - dims))
    return _of_parameters(gradient, normal, of_rows, x.shape[len(of_rows) :], [False, True, False])[
        0
    ]


def _rooted(x: Any, rstd: Any) -> tuple[Any, Any]:
    kept = _kept(rstd)
    return (
        (x * rstd, rstd)
        if kept is None
        else (kept[0].reshape(x.shape), kept[1].reshape(rstd.shape))
    )


@implements(aten._weight_norm_interface_backward.default, scale=of_session)
def weight_norm_backward(gradient: Any, v: Any, g: Any, norms: Any, dim: int) -> tuple[Any, Any]:
    """Returns the gradients of v and g in v·(g / |v|).

    Let u = v / |v| be the direction. The gradient of g is Σ gradient·u. The gradient of v is the
    part of the gradient orthogonal to u, times g / |v|. Takes the rounds of two divisions and six.
    """
    direction = v / norms
    dims = [at for at in range(v.dim()) if at != dim % v.dim()]
    along = dots(gradient, direction, dims)
    return (gradient - direction * along) * (g / norms), along
