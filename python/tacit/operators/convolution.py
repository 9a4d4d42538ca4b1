"""Convolutions in one and two dimensions. Messages have the size of the result (replicated sharing) or of
the images, the weights once (additive)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from tacit import fixed, shares
from tacit.operators.arithmetic import add
from tacit.operators.linear import gain
from tacit.operators.operands import as_words, is_loose, public, result_dtype, times_public
from tacit.operators.scales import of_convolution
from tacit.operators.table import implements, unsupported
from tacit.shares import Geometry
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.convolution.default, scale=of_convolution)
def convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],  # noqa: ARG001
    groups: int,
) -> SecretTensor:
    """(N, C, H, W) with (O, C / groups, h, w); (N, C, L) with (O, C / groups, l)."""
    if transposed or x.dim() not in (3, 4):
        unsupported("a transposed or three-dimensional convolution", "use Conv1d or Conv2d")
    flat = x.dim() == 3
    steps = [_pair(values, flat, missing) for values, missing in ((stride, 1), (padding, 0), (dilation, 1))]
    geometry, shape = _geometry(_image(x.shape, flat), _image(weight.shape, flat), steps, groups)
    result = _convolve(x, weight, geometry, shape)
    if flat:
        result = result.like(tuple(part.squeeze(2) for part in result._parts), loose=result._loose)
    if bias is None:
        return result
    return add(result, bias.reshape((1, -1) + (1,) * (x.dim() - 2)))


def _pair(values: Sequence[int], flat: bool, missing: int) -> tuple[int, int]:
    first, last = values[0], values[-1]
    return (missing, last) if flat else (first, last)


def _image(shape: torch.Size, flat: bool) -> tuple[int, ...]:
    return (shape[0], shape[1], 1, shape[2]) if flat else tuple(shape)


def _geometry(
    image: tuple[int, ...], weight: tuple[int, ...], steps: Sequence[tuple[int, int]], groups: int
) -> tuple[Geometry, tuple[int, ...]]:
    stride, padding, dilation = steps
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


def _convolve(x: Any, weight: Any, geometry: Geometry, shape: tuple[int, ...]) -> SecretTensor:
    dtype = result_dtype(x, weight)
    if isinstance(x, SecretTensor) and isinstance(weight, SecretTensor):
        session, x, weight = x._session, as_words(x), as_words(weight)
        drop, scale = fixed.of_product(x._scale, weight._scale, session.scale)
        parts = shares.convolution(session, x._parts, weight._parts, geometry, shape, drop)
        return x.like(parts, scale, dtype, loose=is_loose(dtype))
    secret, plain = (x, weight) if isinstance(x, SecretTensor) else (weight, x)
    values = public(plain)
    if plain is weight:
        growth = gain(values, *range(1, values.dim()))
    else:
        growth = float(weight[0].numel()) if weight.numel() else None
    apply = partial(_applied, geometry=geometry, shape=shape, by_weights=plain is weight)
    return times_public(secret, values, dtype, apply=apply, gain=growth)


def _applied(
    part: torch.Tensor,
    words: torch.Tensor,
    geometry: Geometry,
    shape: tuple[int, ...],
    by_weights: bool,
) -> torch.Tensor:
    images, weights = (part, words) if by_weights else (words, part)
    if part.is_floating_point():
        # The reference looks how large the results are.
        return shares.convolved(images, weights, geometry)
    return shares.ring_convolution(images, weights, geometry, shape)
