"""Gradients of what only moves data: everything is added up where it came from. No interaction."""

from collections.abc import Sequence
from typing import Any

import torch

from tacit.operators.table import implements
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def spread(gradient: SecretTensor, shape: Sequence[int], came_from: torch.Tensor) -> SecretTensor:
    """A tensor of that shape into which each element of the gradient is added at the place that it came
    from, by its number in the flattened tensor."""
    size, flat = torch.Size(shape).numel(), came_from.reshape(-1)

    def added(part: torch.Tensor) -> torch.Tensor:
        zeros = torch.zeros(size, dtype=part.dtype)
        return zeros.index_add(0, flat, part.reshape(-1)).reshape(list(shape))

    return gradient.like(tuple(added(part) for part in gradient._parts))


def numbered(shape: Sequence[int]) -> torch.Tensor:
    """The number of each element."""
    return torch.arange(torch.Size(shape).numel()).reshape(list(shape))


def _of_view(overload: Any, forward: Any) -> None:
    """Gradients (gradient, shape, arguments of the view)."""

    @implements(overload)
    def backward(gradient: SecretTensor, shape: Sequence[int], *args: Any) -> SecretTensor:
        """Zeros, with the gradient where the view was."""
        return spread(gradient, shape, forward(numbered(shape), *args))


for _overload, _forward in (
    (aten.slice_backward.default, aten.slice.Tensor),
    (aten.select_backward.default, aten.select.int),
    (aten.diagonal_backward.default, aten.diagonal.default),
    (aten.unfold_backward.default, aten.unfold.default),
):
    _of_view(_overload, _forward)


def _of_padding(overload: Any, forward: Any) -> None:
    """Gradients (gradient, padded tensor, sizes of the padding)."""

    @implements(overload)
    def backward(gradient: Any, x: Any, *args: Any) -> Any:
        """Each element with all its copies."""
        came_from = forward(numbered(x.shape).to(torch.float64), *args).to(torch.int64)
        return (
            spread(gradient, x.shape, came_from)
            if isinstance(gradient, SecretTensor)
            else overload(gradient, torch.empty(x.shape, dtype=x.dtype), *args)
        )


for _name in ("reflection_pad", "replication_pad"):
    for _form in ("1d", "2d", "3d"):
        _of_padding(
            getattr(aten, f"{_name}{_form}_backward").default, getattr(aten, f"{_name}{_form}").default
        )
