"""Gradients of convolutions, which are convolutions themselves.

The gradient of the input is a transposed convolution, or a plain one if the convolution was
transposed. The gradient of the weights is a convolution of the images with the incoming gradient as
filters.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tacit.operators.convolution import Steps, convolution
from tacit.operators.dispatch.operands import (
    each,
    is_secret,
    moved,
    operand_scale,
    rescaled,
    session_of,
    summed,
)
from tacit.operators.dispatch.scales import of_convolution_gradient
from tacit.operators.dispatch.table import implements

aten = torch.ops.aten


@implements(aten.convolution_backward.default, scale=of_convolution_gradient)
def convolution_backward(
    gradient: Any,
    x: Any,
    weight: Any,
    bias_sizes: Sequence[int] | None,  # noqa: ARG001
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],  # noqa: ARG001
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Returns those gradients of input, weights and bias that ``output_mask`` asks for.

    The first two take one convolution each, in at most two rounds. The last takes sums.
    """
    dims = x.dim() - 2
    steps = [each(values, dims) for values in (stride, padding, dilation)]
    session = session_of(gradient, x, weight)
    scale = of_convolution_gradient(
        session.scale, *(operand_scale(operand, session.scale) for operand in (gradient, x, weight))
    )
    of_input, of_weight, of_bias = None, None, None
    if output_mask[0]:
        of_input = _of_input(gradient, weight, x.shape[2:], steps, transposed, groups)
    if output_mask[1]:
        images, filters = (gradient, x) if transposed else (x, gradient)
        of_weight = _of_weight(images, filters, weight.shape[2:], steps, groups)
    if output_mask[2]:
        rest = [0, *range(2, gradient.dim())]
        count = gradient.numel() // max(1, gradient.shape[1])
        of_bias = summed(gradient, count, lambda part: part.sum(rest))
    return tuple(rescaled(result, scale) for result in (of_input, of_weight, of_bias))


def _any_convolution(x: Any, weight: Any, *settings: Any) -> Any:
    """Convolves two operands, both of which may be public."""
    if is_secret(x, weight):
        return convolution(x, weight, None, *settings)
    return aten.convolution(x, weight, None, *settings)


def _of_input(
    gradient: Any,
    weight: Any,
    sizes: Sequence[int],
    steps: Steps,
    transposed: bool,
    groups: int,
) -> Any:
    stride, padding, dilation = steps
    if transposed:
        result = _any_convolution(gradient, weight, *steps, False, [0] * len(sizes), groups)
        return moved(result, lambda part: _cropped(part, sizes).contiguous())
    # Elements at the end that the strides of the convolution left over.
    more = [
        size - ((out - 1) * step - 2 * pad + far * (kernel - 1) + 1)
        for size, out, step, pad, far, kernel in zip(
            sizes, gradient.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True
        )
    ]
    return _any_convolution(gradient, weight, *steps, True, more, groups)


def _of_weight(images: Any, filters: Any, sizes: Sequence[int], steps: Steps, groups: int) -> Any:
    """Returns the gradient of filters, by a convolution of images with filters.

    The filters (B, A / groups, ...) took images (N, A, ...) to (N, B, ...). Channels become the
    batch, and the batch, which is summed over, becomes channels. Strides and dilations are
    exchanged.
    """
    stride, padding, dilation = steps

    def turn(part: torch.Tensor) -> torch.Tensor:
        # (N, groups·a, ...) to (a, groups·N, ...)
        return aten.unflatten.int(part, 1, [groups, -1]).transpose(0, 2).flatten(1, 2)

    images, filters = moved(images, turn), moved(filters, lambda part: part.transpose(0, 1))
    none = [0] * len(sizes)
    result = _any_convolution(images, filters, dilation, padding, stride, False, none, groups)
    return moved(result, lambda part: _cropped(part, sizes).transpose(0, 1).contiguous())


def _cropped(part: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    for dim, size in enumerate(sizes, 2):
        part = part.narrow(dim, 0, size)
    return part
