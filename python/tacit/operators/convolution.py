"""Convolutions in one, two and three dimensions, and transposed convolutions.

Each is computed as one convolution of images, in one round, or two with truncation. Messages have
the size of the result with replicated sharing. With additive sharing they have the size of the
images and, once, of the weights.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from tacit import fixed
from tacit.operators.arithmetic import add
from tacit.operators.dispatch.operands import (
    as_factors,
    as_words,
    each,
    may_be_unreduced,
    moved,
    public,
    result_dtype,
    stays_in_range,
    times_public,
)
from tacit.operators.dispatch.scales import of_convolution
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.linear import gain
from tacit.sharings import bilinear
from tacit.sharings.bilinear_shapes import Geometry
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Stride, padding and dilation, each with one value for every dimension.
Steps = Sequence[Sequence[int]]


@implements(aten.convolution.default, scale=of_convolution)
def convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> SecretTensor:
    """Convolves (N, C, ...) with (O, C / groups, ...), or transposed with (C, O / groups, ...)."""
    dims = x.dim() - 2
    if dims not in (1, 2, 3):
        unsupported(f"a convolution in {dims} dimensions", "use Conv1d, Conv2d or Conv3d")
    steps: Steps = [each(values, dims) for values in (stride, padding, dilation)]
    if transposed:
        x, weight, steps = _untransposed(x, weight, steps, each(output_padding, dims), groups)
    result = _forward(x, weight, steps, groups)
    if bias is None:
        return result
    return add(result, moved(bias, lambda part: part.reshape((1, -1) + (1,) * dims)))


# Transposed
# ----------------------------------------------------------------------------------------


def _untransposed(
    x: Any, weight: Any, steps: Steps, more: Sequence[int], groups: int
) -> tuple[Any, Any, Steps]:
    """Returns images, filters and steps of the plain convolution that equals a transposed one."""
    stride, padding, dilation = steps
    margins = [step * (size - 1) for step, size in zip(dilation, weight.shape[2:], strict=True)]
    x = moved(x, partial(_spread, stride=stride, margins=margins, padding=padding, more=more))
    dims = len(stride)
    return x, _turned(weight, groups), [[1] * dims, [0] * dims, dilation]


def _spread(
    part: torch.Tensor,
    stride: Sequence[int],
    margins: Sequence[int],
    padding: Sequence[int],
    more: Sequence[int],
) -> torch.Tensor:
    """Places elements a stride apart, with zeros between and around them.

    A transposed convolution is a plain convolution of these images.
    """
    if max(stride) > 1:
        sizes = [
            max(0, (size - 1) * step + 1) for size, step in zip(part.shape[2:], stride, strict=True)
        ]
        spread = part.new_zeros((*part.shape[:2], *sizes))
        places = spread
        for dim, step in enumerate(stride, 2):
            places = aten.slice(places, dim, None, None, step)
        places.copy_(part)
        part = spread
    pads: list[int] = []
    for margin, less, end in reversed(list(zip(margins, padding, more, strict=True))):
        pads += [margin - less, margin - less + end]
    padded: torch.Tensor = aten.constant_pad_nd(part, pads)
    return padded


def _turned(weight: Any, groups: int) -> Any:
    """Returns transposed filters (C, O / groups, ...) as (O, C / groups, ...), flipped end to end.

    The result is cached for weights that last.
    """

    def turn(part: torch.Tensor) -> torch.Tensor:
        turned = aten.unflatten.int(part, 0, [groups, -1]).transpose(1, 2).flatten(0, 1)
        return turned.flip(list(range(2, part.dim()))).contiguous()

    if not isinstance(weight, SecretTensor):
        return turn(weight)
    storages, kind = weight._session.storages, ("turned", groups)
    kept = storages.derived(kind, [weight._parts[0]])
    if kept is None:
        kept = tuple(map(turn, weight._parts))
        if storages.name(weight._parts[0]) is not None:
            storages.add(kept[0])
            # The result depends on the filters alone, not on the images that they meet now.
            with weight._session.dependencies.running(weight.flags):
                storages.derive(kind, [weight._parts[0]], kept)
    return weight.like(kept, unreduced=weight._unreduced)


# Any number of dimensions as images
# ----------------------------------------------------------------------


def _forward(x: Any, weight: Any, steps: Steps, groups: int) -> SecretTensor:
    dims = x.dim() - 2
    if dims == 1:
        x, weight = (moved(operand, lambda part: part.unsqueeze(2)) for operand in (x, weight))
        steps = [[none, *values] for none, values in zip((1, 0, 1), steps, strict=True)]
        return moved(_images(x, weight, steps, groups), lambda part: part.squeeze(2))
    if dims == 2:
        return _images(x, weight, steps, groups)
    batch = x.shape[0]
    stride, padding, dilation = (values[0] for values in steps)
    slices = partial(_depth_as_channels, stride=stride, padding=padding, dilation=dilation)
    x = moved(x, partial(slices, kernel=weight.shape[2]))
    weight = moved(weight, lambda part: part.flatten(1, 2))
    result = _images(x, weight, [values[1:] for values in steps], groups)
    return moved(result, lambda part: aten.unflatten.int(part, 0, [batch, -1]).transpose(1, 2))


def _depth_as_channels(
    part: torch.Tensor, kernel: int, stride: int, padding: int, dilation: int
) -> torch.Tensor:
    """Reshapes (N, C, D, H, W) to (N·windows, C·kernel, H, W).

    The channels of these images are the slices of a window.
    """
    padded = aten.constant_pad_nd(part, [0, 0, 0, 0, padding, padding])
    windows = padded.unfold(2, dilation * (kernel - 1) + 1, stride)[..., ::dilation]
    slices: torch.Tensor = windows.permute(0, 2, 1, 5, 3, 4).flatten(2, 3).flatten(0, 1)
    return slices


def _images(x: Any, weight: Any, steps: Steps, groups: int) -> SecretTensor:
    """Convolves (N, C, H, W) with (O, C / groups, h, w)."""
    geometry, shape = geometry_of(tuple(x.shape), tuple(weight.shape), steps, groups)
    dtype = result_dtype(x, weight)
    if isinstance(x, SecretTensor) and isinstance(weight, SecretTensor):
        session, (x, weight) = x._session, as_factors(as_words(x), as_words(weight))
        drop, scale = fixed.of_product(x._scale, weight._scale, session.scale)
        shift, in_range = session.numerics.shift(drop), stays_in_range(session, dtype)
        parts = bilinear.convolution(
            session, x._parts, weight._parts, geometry, shape, shift, in_range=in_range
        )
        return x.like(parts, scale, dtype, unreduced=may_be_unreduced(dtype))
    secret, plain = (x, weight) if isinstance(x, SecretTensor) else (weight, x)
    values = public(plain)
    if plain is weight:
        growth = gain(values, *range(1, values.dim()))
    else:
        growth = float(weight[0].numel()) if weight.numel() else None
    apply = partial(_applied, geometry=geometry, shape=shape, by_weights=plain is weight)
    return times_public(secret, values, dtype, apply=apply, gain=growth)


def geometry_of(
    image: tuple[int, ...], weight: tuple[int, ...], steps: Steps, groups: int
) -> tuple[Geometry, tuple[int, ...]]:
    """Returns the geometry of a convolution of images, and the shape of its result."""
    stride, padding, dilation = ((values[0], values[1]) for values in steps)
    size = [
        (image[2 + i] + 2 * padding[i] - dilation[i] * (weight[2 + i] - 1) - 1) // stride[i] + 1
        for i in (0, 1)
    ]
    geometry = Geometry(
        batch=image[0],
        groups=groups,
        in_channels=image[1],
        out_channels=weight[0],
        input=(image[2], image[3]),
        kernel=(weight[2], weight[3]),
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    return geometry, (image[0], weight[0], *size)


def _applied(
    part: torch.Tensor,
    words: torch.Tensor,
    geometry: Geometry,
    shape: tuple[int, ...],
    by_weights: bool,
) -> torch.Tensor:
    images, weights = (part, words) if by_weights else (words, part)
    if part.is_floating_point():
        # The reference protocol passes floats to check how large the results are.
        return bilinear.convolved(images, weights, geometry)
    return bilinear.ring_convolution(images, weights, geometry, shape)
