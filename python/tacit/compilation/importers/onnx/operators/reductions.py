"""Sums, extrema and counts along axes."""

from collections.abc import Callable
from typing import Any

import torch

from tacit.compilation.importers.onnx.operators.shapes import as_list
from tacit.compilation.importers.onnx.table import Node, implements

Reduction = Callable[[torch.Tensor, list[int], bool], torch.Tensor]


def _product(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = torch.prod(x, axis, keepdim=keep)
    return x


def _extremum(function: Any, sign: int) -> Reduction:
    """Makes a reduction to the maximum or the minimum; that of an empty tensor is the neutral
    element."""

    def reduce(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        if x.numel():
            return function(x, axes, keep)
        shape = torch.sum(x, axes, keep).shape
        if x.dtype == torch.bool:
            return torch.full(shape, sign < 0)
        limits = torch.iinfo(x.dtype) if not x.is_floating_point() else None
        least = -torch.inf if limits is None else limits.min
        most = torch.inf if limits is None else limits.max
        return torch.full(shape, least if sign > 0 else most, dtype=x.dtype)

    return reduce


REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes, keep: torch.sum(torch.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: torch.sqrt(torch.sum(x * x, axes, keep)),
    "ReduceLogSum": lambda x, axes, keep: torch.log(torch.sum(x, axes, keep)),
    "ReduceLogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keep),
    "ReduceMax": _extremum(torch.amax, 1),
    "ReduceMean": lambda x, axes, keep: torch.mean(x, axes, keep),
    "ReduceMin": _extremum(torch.amin, -1),
    "ReduceProd": _product,
    "ReduceSum": lambda x, axes, keep: torch.sum(x, axes, keep),
    "ReduceSumSquare": lambda x, axes, keep: torch.sum(x * x, axes, keep),
}


def _enter(name: str, reduction: Reduction) -> None:
    @implements(name, known=(1,))
    def reduce(node: Node, x: torch.Tensor, axes: Any = None) -> torch.Tensor:
        axes = node.integers("axes") if axes is None else as_list(axes)
        if not axes and node.flag("noop_with_empty_axes"):
            # There are no axes: each element is reduced on its own.
            return reduction(x.unsqueeze(-1), [-1], False).to(x.dtype)
        axes = axes or list(range(x.ndim))
        if x.ndim == 0:
            return reduction(x.reshape(1), [0], False).to(x.dtype)
        return reduction(x, axes, node.flag("keepdims", True)).to(x.dtype)


for _name, _reduction in REDUCTIONS.items():
    _enter(_name, _reduction)


def _place(node: Node, x: torch.Tensor, find: Any) -> torch.Tensor:
    axis, keep = node.integer("axis", 0), node.flag("keepdims", True)
    if not node.flag("select_last_index"):
        return find(x, axis, keep)
    return x.shape[axis] - 1 - find(x.flip(axis), axis, keep)


@implements("ArgMax")
def place_of_greatest(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Position of the maximum: the first of equal elements, or the last."""
    return _place(node, x, torch.argmax)


@implements("ArgMin")
def place_of_least(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Position of the minimum: the first of equal elements, or the last."""
    return _place(node, x, torch.argmin)


def _running(node: Node, x: torch.Tensor, axis: Any, function: Any, neutral: int) -> torch.Tensor:
    """Running reduction along an axis, from either end, with or without the element itself."""
    axis = as_list(axis)[0]
    x = x.flip(axis) if node.flag("reverse") else x
    if node.flag("exclusive"):
        first = torch.full_like(x.narrow(axis, 0, 1), neutral)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    found = function(x, axis).to(x.dtype)
    return found.flip(axis) if node.flag("reverse") else found


@implements("CumSum", known=(1,))
def running_sum(node: Node, x: torch.Tensor, axis: Any) -> torch.Tensor:
    """Running sum along an axis."""
    return _running(node, x, axis, torch.cumsum, 0)


@implements("CumProd", known=(1,))
def running_product(node: Node, x: torch.Tensor, axis: Any) -> torch.Tensor:
    """Running product along an axis."""
    return _running(node, x, axis, torch.cumprod, 1)


@implements("TopK", known=(1,))
def greatest(node: Node, x: torch.Tensor, count: Any) -> Any:
    """Returns the k greatest elements, or the least, in order, and their positions."""
    return tuple(
        torch.topk(
            x,
            as_list(count)[0],
            node.integer("axis", -1),
            node.flag("largest", True),
            node.flag("sorted", True),
        )
    )
