"""Elements at public indices, read and written: PyTorch's own operator on each component."""

from collections.abc import Sequence
from typing import Any

import torch

from tacit.operators.operands import Number, as_kind_of, is_loose
from tacit.operators.scales import of_target
from tacit.operators.table import assign, implements, unsupported, writable
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _public_index(index: Any) -> Any:
    if isinstance(index, SecretTensor):
        unsupported("indexing by a secret", "index by public values, or choose by torch.where")
    return index


@implements(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(x: Any, indices: Sequence[torch.Tensor | None]) -> SecretTensor:
    """Elements at public indices."""
    indices = [_public_index(i) for i in indices]
    return x.like(tuple(aten.index.Tensor(part, indices) for part in x._parts), loose=x._loose)


@implements(aten.index_select.default)
def index_select(x: Any, dim: int, positions: torch.Tensor) -> SecretTensor:
    """Slices at public indices."""
    positions = _public_index(positions)
    return x.like(tuple(part.index_select(dim, positions) for part in x._parts), loose=x._loose)


@implements(aten.gather.default)
def gather(x: Any, dim: int, positions: torch.Tensor, *, sparse_grad: bool = False) -> SecretTensor:  # noqa: ARG001
    """Elements at public indices along a dimension."""
    positions = _public_index(positions)
    return x.like(tuple(part.gather(dim, positions) for part in x._parts), loose=x._loose)


@implements(aten.take.default)
def take(x: Any, positions: torch.Tensor) -> SecretTensor:
    """Elements at public indices of the flattened tensor."""
    positions = _public_index(positions)
    return x.like(tuple(part.reshape(-1)[positions] for part in x._parts), loose=x._loose)


@implements(aten.masked_select.default)
def masked_select(x: Any, mask: torch.Tensor) -> SecretTensor:
    """Elements where a public mask holds; how many there are would tell of a secret one."""
    if isinstance(mask, SecretTensor):
        unsupported("selecting by a secret mask", "keep the shape: torch.where chooses by a secret condition")
    return x.like(tuple(part.masked_select(mask) for part in x._parts), loose=x._loose)


@implements(aten.embedding.default)
def embedding(weight: Any, positions: torch.Tensor, *_: Any) -> SecretTensor:
    """Rows of a secret table at public indices."""
    positions = _public_index(positions)
    return weight.like(tuple(part[positions] for part in weight._parts), loose=weight._loose)


@implements(aten.index_put_.default, scale=of_target)
def index_put_(
    x: Any, indices: Sequence[torch.Tensor | None], values: Any, accumulate: bool = False
) -> SecretTensor:
    """Writes (or adds) values at public indices."""
    _check_target(x, accumulate)
    if accumulate and is_loose(x.dtype):
        return assign(x, index_put(x, indices, values, True))
    _put(writable(x), indices, as_kind_of(values, x)._parts, accumulate)
    return x


def _check_target(x: Any, accumulate: bool) -> None:
    if not isinstance(x, SecretTensor):
        unsupported("writing a secret into a plain tensor", "share the target first")
    if accumulate and x.dtype == torch.bool:
        unsupported("adding booleans", "convert them to integers first")


def _put(parts: Parts, indices: Sequence[torch.Tensor | None], values: Parts, accumulate: bool) -> None:
    indices = tuple(_public_index(index) for index in indices)
    for part, new in zip(parts, values, strict=True):
        part.index_put_(indices, new, accumulate)


@implements(aten.index_put.default, scale=of_target)
def index_put(
    x: Any, indices: Sequence[torch.Tensor | None], values: Any, accumulate: bool = False
) -> SecretTensor:
    """A copy with values at public indices."""
    _check_target(x, accumulate)
    written = x.like(_copied(x), loose=x._loose or (accumulate and is_loose(x.dtype)))
    _put(written._parts, indices, as_kind_of(values, x)._parts, accumulate)
    return written


def _copied(x: SecretTensor) -> Parts:
    return tuple(part.clone() for part in x._parts)


def _scatters_view(overload: Any, view_of: Any) -> None:
    @implements(overload, scale=of_target)
    def scatter_view(x: Any, source: Any, *args: Any, **kwargs: Any) -> SecretTensor:
        """A copy, with that view of it replaced."""
        if not isinstance(x, SecretTensor):
            unsupported("writing a secret into a plain tensor", "share the target first")
        result = x.like(_copied(x), loose=x._loose)
        assign(view_of(result, *args, **kwargs), source)
        return result


for _overload, _view in (
    (aten.diagonal_scatter.default, aten.diagonal.default),
    (aten.select_scatter.default, aten.select.int),
    (aten.slice_scatter.default, aten.slice.Tensor),
):
    _scatters_view(_overload, _view)


def _writes_at_indices(overload: Any, in_words: Any, adds: bool = False) -> None:
    """Operators (x, dim, public indices, values) that write or add along a dimension."""

    @implements(overload, scale=of_target)
    def write(x: Any, dim: int, positions: torch.Tensor, values: Any, *, alpha: Number = 1) -> SecretTensor:
        """A copy of x, written at public indices."""
        if alpha != 1:
            unsupported(f"{overload} with alpha", "multiply the values first")
        if not isinstance(x, SecretTensor):
            unsupported("writing a secret into a plain tensor", "share the target first")
        positions, values = _public_index(positions), as_kind_of(values, x)
        written = zip(x._parts, values._parts, strict=True)
        parts = tuple(in_words(part, dim, positions, new) for part, new in written)
        return x.like(parts, loose=x._loose or (adds and is_loose(x.dtype)))


for _overload, _in_words in (
    (aten.index_copy.default, aten.index_copy.default),
    (aten.index_fill.int_Scalar, aten.index_fill.int_Tensor),
    (aten.index_fill.int_Tensor, aten.index_fill.int_Tensor),
    (aten.scatter.src, aten.scatter.src),
):
    _writes_at_indices(_overload, _in_words)
for _overload in (aten.index_add.default, aten.scatter_add.default):
    _writes_at_indices(_overload, _overload, adds=True)
