"""Convolutions in one and two dimensions. Messages have the size of the result (replicated sharing) or of
the images, the weights once (additive)."""

from collections.abc import Sequence
from typing import Any

import torch

from tacit import _core, encoding, shares
from tacit._core import Convolution
from tacit.operators.arithmetic import add
from tacit.operators.operands import as_words, public, result_dtype, secret_scale, session_of
from tacit.operators.table import implements, unsupported
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.convolution.default)
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
        result = result.like(tuple(part.squeeze(2) for part in result._parts))
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
) -> tuple[Convolution, tuple[int, ...]]:
    stride, padding, dilation = steps
    size = [
        (image[2 + i] + 2 * padding[i] - dilation[i] * (weight[2 + i] - 1) - 1) // stride[i] + 1
        for i in (0, 1)
    ]
    geometry = Convolution(
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


def _convolve(x: Any, weight: Any, geometry: Convolution, shape: tuple[int, ...]) -> SecretTensor:
    session, dtype = session_of(x, weight), result_dtype(x, weight)
    if isinstance(x, SecretTensor) and isinstance(weight, SecretTensor):
        x, weight = as_words(x), as_words(weight)
        drop = min(x._scale, weight._scale)
        parts = shares.convolution(session, x._parts, weight._parts, geometry, shape, drop)
        return x.like(parts, x._scale + weight._scale - drop, dtype)
    secret, plain = (x, weight) if isinstance(x, SecretTensor) else (weight, x)
    words, scale = encoding.factor(public(plain))
    operands: list[tuple[torch.Tensor, torch.Tensor]] = [
        (part, words) if isinstance(x, SecretTensor) else (words, part) for part in as_words(secret)._parts
    ]
    product: Parts = tuple(_ring_convolution(a, b, geometry, shape) for a, b in operands)
    drop = scale if secret._scale else max(0, scale - secret_scale(session, dtype))
    return secret.like(shares.truncate(session, product, drop), secret._scale + scale - drop, dtype)


def _ring_convolution(
    a: torch.Tensor, b: torch.Tensor, geometry: Convolution, shape: tuple[int, ...]
) -> torch.Tensor:
    out = torch.zeros(shape, dtype=torch.int64)
    if out.numel():
        _core.ring_convolution(
            a.contiguous().view(-1).numpy(), b.contiguous().view(-1).numpy(), out.view(-1).numpy(), geometry
        )
    return out
