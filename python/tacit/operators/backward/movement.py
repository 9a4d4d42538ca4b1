"""Gradients of operators that only move data: each gradient is added where its element came from.

No interaction.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from tacit.operators.dispatch.operands import summed
from tacit.operators.dispatch.table import implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def spread(gradient: SecretTensor, shape: Sequence[int], came_from: torch.Tensor) -> SecretTensor:
    """Adds each element of the gradient into zeros of ``shape``, at the element it came from.

    ``came_from`` holds, for each element of the gradient, an index into the flattened result.
    """
    size, flat = torch.Size(shape).numel(), came_from.reshape(-1)

    def added(part: torch.Tensor) -> torch.Tensor:
        zeros = torch.zeros(size, dtype=part.dtype)
        return zeros.index_add(0, flat, part.reshape(-1)).reshape(list(shape))

    most = int(torch.bincount(flat).max()) if flat.numel() else 1
    spread_out: SecretTensor = summed(gradient, most, added)
    return spread_out


def numbered(shape: Sequence[int]) -> torch.Tensor:
    """Returns a tensor of ``shape`` that holds each element's index in the flattened tensor."""
    return torch.arange(torch.Size(shape).numel()).reshape(list(shape))


def _of_view(overload: Any, forward: Any) -> None:
    """Enters the gradient of a view, which takes (gradient, shape, arguments of the view)."""

    @implements(overload)
    def backward(gradient: SecretTensor, shape: Sequence[int], *args: Any) -> SecretTensor:
        """Returns zeros, with the gradient at the elements of the view."""
        return spread(gradient, shape, forward(numbered(shape), *args))


for _overload, _forward in (
    (aten.slice_backward.default, aten.slice.Tensor),
    (aten.select_backward.default, aten.select.int),
    (aten.diagonal_backward.default, aten.diagonal.default),
    (aten.unfold_backward.default, aten.unfold.default),
):
    _of_view(_overload, _forward)


@implements(aten.masked_scatter_backward.default)
def masked_scatter_backward(gradient: Any, mask: torch.Tensor, sizes: Sequence[int]) -> Any:
    """Returns the gradient of the values: one for each element that was written, then zeros.

    The zeros belong to values that were left over.
    """
    if not isinstance(gradient, SecretTensor) or isinstance(mask, SecretTensor):
        unsupported("the gradient of values scattered by a secret mask", "select by torch.where")
    wanted = torch.Size(sizes).numel()
    rows = (part.masked_select(mask.expand(part.shape)) for part in gradient._parts)
    padded = (functional.pad(row, (0, wanted - row.numel())).reshape(list(sizes)) for row in rows)
    return gradient.like(tuple(padded))


@implements(aten.col2im.default)
def col2im(
    x: SecretTensor,
    size: Sequence[int],
    kernel: Sequence[int],
    *geometry: Sequence[int],
) -> SecretTensor:
    """Adds up windows where they overlap: ``nn.Fold``, and the gradient of ``im2col``."""
    shape = [*x.shape[:-2], x.shape[-2] // (kernel[0] * kernel[1]), *size]
    # Indices begin at 1, since zeros are padding.
    numbers = (numbered(shape) + 1).to(torch.float64)
    came_from = aten.im2col(numbers, kernel, *geometry).to(torch.int64)
    summed = spread(x, [numbers.numel() + 1], came_from)
    return summed.like(tuple(part[1:].reshape(shape) for part in summed._parts))


def _of_padding(overload: Any, forward: Any) -> None:
    """Enters the gradient of a padding.

    It takes (gradient, tensor that was padded, padding sizes).
    """

    @implements(overload)
    def backward(gradient: Any, x: Any, *args: Any) -> Any:
        """Adds up the gradients of each element and all its copies."""
        came_from = forward(numbered(x.shape).to(torch.float64), *args).to(torch.int64)
        return (
            spread(gradient, x.shape, came_from)
            if isinstance(gradient, SecretTensor)
            else overload(gradient, torch.empty(x.shape, dtype=x.dtype), *args)
        )


for _name in ("reflection_pad", "replication_pad"):
    for _form in ("1d", "2d", "3d"):
        _of_padding(
            getattr(aten, f"{_name}{_form}_backward").default,
            getattr(aten, f"{_name}{_form}").default,
        )
