"""Operators that take elements by index, and write them."""

from typing import Any

import torch
from torch.nn import functional

from tacit.compilation.importers.onnx.problems import NotImportedError
from tacit.compilation.importers.onnx.table import Node, implements


def from_the_end(index: torch.Tensor, size: int) -> torch.Tensor:
    """Replaces negative indices, which count from the end."""
    return torch.where(index < 0, index + size, index)


@implements("Gather", prefers=(1,))
def gather(node: Node, x: torch.Tensor, index: Any) -> torch.Tensor:
    """Takes slices along an axis.

    A known index is a selection; one that is computed picks rows of a table."""
    axis = node.integer("axis", 0) % max(x.ndim, 1)
    if isinstance(index, int):
        return torch.select(x, axis, index)
    if isinstance(index, list):
        index = torch.tensor(index, dtype=torch.int64)
    index = index.to(torch.int64)
    index = from_the_end(index, x.shape[axis])
    if axis == 0 and x.ndim == 2 and x.is_floating_point():
        return functional.embedding(index, x)
    found = torch.index_select(x, axis, index.reshape(-1))
    return found.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


@implements("GatherElements")
def gather_elements(node: Node, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Takes each element by its own index along an axis."""
    axis = node.integer("axis", 0)
    return torch.gather(x, axis, from_the_end(index.to(torch.int64), x.shape[axis]))


def _columns(x: torch.Tensor, index: torch.Tensor, batch: int) -> tuple[torch.Tensor, ...]:
    """Returns indices for the dimensions of x that the last dimension of the index lists, after
    those of the batch."""
    index = index.to(torch.int64)
    rank = index.ndim - 1
    if batch + index.shape[-1] > x.ndim:
        raise ValueError(f"coordinates of {index.shape[-1]} dimensions do not fit {tuple(x.shape)}")
    before = [
        torch.arange(x.shape[axis]).reshape([-1 if at == axis else 1 for at in range(rank)])
        for axis in range(batch)
    ]
    parts = [from_the_end(part, x.shape[batch + at]) for at, part in enumerate(index.unbind(-1))]
    return (*before, *parts)


@implements("GatherND")
def gather_by_coordinates(node: Node, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Takes slices, each by its own coordinates."""
    return x[_columns(x, index, node.integer("batch_dims", 0))]


REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@implements("ScatterElements", "Scatter")
def scatter_elements(
    node: Node, x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor
) -> torch.Tensor:
    """Writes each update to its own index along an axis."""
    axis, how = node.integer("axis", 0), node.text("reduction", "none")
    index = from_the_end(index.to(torch.int64), x.shape[axis])
    if how == "none":
        return torch.scatter(x, axis, index, updates)
    return torch.scatter_reduce(x, axis, index, updates, _reduction(how))


@implements("ScatterND")
def scatter_by_coordinates(
    node: Node, x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor
) -> torch.Tensor:
    """Writes slices, each to its own coordinates."""
    how = node.text("reduction", "none")
    if how in ("none", "add"):
        return torch.index_put(x, _columns(x, index, 0), updates, accumulate=how == "add")
    depth = index.shape[-1]
    places = torch.zeros(index.shape[:-1], dtype=torch.int64)
    for size, part in zip(x.shape[:depth], _columns(x, index, 0), strict=True):
        places = places * size + part
    rows = x.reshape(-1, *x.shape[depth:])
    updates = updates.reshape(-1, *x.shape[depth:])
    places = places.reshape([-1] + [1] * (rows.ndim - 1)).expand_as(updates)
    return torch.scatter_reduce(rows, 0, places, updates, _reduction(how)).reshape(x.shape)


def _reduction(name: str) -> str:
    if name not in REDUCTIONS:
        raise NotImportedError(
            f"its reduction {name[:20]} is not known", f"use one of {', '.join(REDUCTIONS)}"
        )
    return REDUCTIONS[name]


@implements("TensorScatter")
def write_cache(
    node: Node, past: torch.Tensor, update: torch.Tensor, places: torch.Tensor | None = None
) -> torch.Tensor:
    """Writes rows of a cache from a position on; they may wrap around at its end."""
    axis = node.integer("axis", -2) % past.ndim
    batch, size, count = past.shape[0], past.shape[axis], update.shape[axis]
    starts = torch.zeros(batch, dtype=torch.int64) if places is None else places.to(torch.int64)
    index = starts.unsqueeze(1) + torch.arange(count)
    if node.text("mode", "linear") == "circular":
        index = torch.remainder(index, size)
    shape = [1] * past.ndim
    shape[0], shape[axis] = batch, count
    return torch.scatter(past, axis, index.reshape(shape).expand_as(update), update)


@implements("NonZero")
def places_of_nonzero(_: Node, x: torch.Tensor) -> torch.Tensor:
    """Returns the coordinates of nonzero elements by columns, of known tensors only, because their
    number depends on the values."""
    return torch.nonzero(x).t()


@implements("Compress", known=(1,))
def compress(node: Node, x: torch.Tensor, condition: list[bool]) -> torch.Tensor:
    """Takes the elements at which a known condition holds, along an axis or of the whole tensor."""
    kept = torch.tensor([at for at, keep in enumerate(condition) if keep], dtype=torch.int64)
    if "axis" not in node.attributes:
        return x.reshape(-1).index_select(0, kept)
    return x.index_select(node.integer("axis"), kept)
