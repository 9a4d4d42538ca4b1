"""Indexing: ``gather``, ``index_select``, ``take``, ``masked_select``, ``embedding``, ``one_hot``.

Indices are public or secret. Public indices use PyTorch's own operator on each component. Secret
indices become one-hot vectors (``selection``). If a secret index is out of range, zeros are read
and nothing is written.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tacit import checks
from tacit.operators import addressing
from tacit.operators.arithmetic import scaled
from tacit.operators.composed import composes
from tacit.operators.dispatch.hints import LIKE_A_SECRET
from tacit.operators.dispatch.operands import (
    Number,
    as_kind_of,
    is_secret,
    may_be_unreduced,
    moved,
    session_of,
)
from tacit.operators.dispatch.scales import of_target
from tacit.operators.dispatch.table import assign, implements, unsupported, writable
from tacit.operators.selection import added, target, written
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor, refuse

aten = torch.ops.aten


@implements(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(x: Any, indices: Sequence[torch.Tensor | None]) -> SecretTensor:
    """Reads elements at public or secret indices.

    A secret index −1 is the last element. A secret index out of range reads zeros.
    """
    if is_secret(*indices):
        return addressing.index(x, indices)
    return moved(x, lambda part: aten.index.Tensor(part, indices))


@implements(aten.index_select.default)
def index_select(x: Any, dim: int, index: torch.Tensor) -> SecretTensor:
    """Reads slices at indices along a dimension."""
    if isinstance(index, SecretTensor):
        return addressing.read_rows(x, dim, index.reshape(-1))
    return moved(x, lambda part: part.index_select(dim, index))


@implements(aten.gather.default)
def gather(x: Any, dim: int, index: torch.Tensor, *, sparse_grad: bool = False) -> SecretTensor:  # noqa: ARG001
    """Reads elements at indices along a dimension."""
    if isinstance(index, SecretTensor):
        return addressing.gather(x, dim, index)
    return moved(x, lambda part: part.gather(dim, index))


@composes(aten.tensor_split.tensor_indices_or_sections)
def tensor_split(_x: Any, places: Any, _dim: int = 0) -> Any:
    """Refuses secret positions, which the shapes of the results would reveal.

    All others are left to PyTorch's own composition, which reads the positions.
    """
    if isinstance(places, SecretTensor):
        refuse(
            "tensor_split at secret places",
            "shapes are known to all: places.reveal() gives public ones",
        )
    return NotImplemented


@implements(aten.take.default)
def take(x: Any, index: torch.Tensor) -> SecretTensor:
    """Reads elements at indices into the flattened tensor. Index −1 is the last element."""
    if isinstance(index, SecretTensor):
        return addressing.read_rows(_flat(x), 0, index, wraps=True)
    return moved(x, lambda part: part.reshape(-1)[index])


def _flat(x: Any) -> Any:
    if not isinstance(x, SecretTensor):
        return x.reshape(-1)
    return moved(x, lambda part: part.reshape(-1))


@implements(aten.put.default, scale=of_target)
def put(x: Any, index: torch.Tensor, values: Any, accumulate: bool = False) -> SecretTensor:
    """Returns a copy with values written or added at indices into the flattened tensor.

    Index −1 is the last element.
    """
    shape, index = x.shape, _flat(index)
    if not isinstance(values, SecretTensor):
        values = torch.as_tensor(values)
    changed = index_put(_flat(x), [index], _flat(values), accumulate)
    return moved(changed, lambda part: part.reshape(shape))


@implements(aten.masked_select.default)
def masked_select(x: Any, mask: torch.Tensor) -> SecretTensor:
    """Returns the elements where a public mask is true.

    A secret mask is refused: the number of elements would reveal part of it.
    """
    if isinstance(mask, SecretTensor):
        unsupported(
            "selecting by a secret mask",
            "keep the shape: torch.where chooses by a secret condition",
        )
    return moved(x, lambda part: part.masked_select(mask))


@implements(aten.one_hot.default)
def one_hot(index: SecretTensor, classes: int = -1) -> SecretTensor:
    """Returns one-hot vectors, as PyTorch composes them outside of inference mode.

    The vector of a number that is not a class is zero. Takes the rounds of ``==`` and of converting
    bits to integers.
    """
    if classes < 0:
        classes = int(index.max().item()) + 1  # Secret tensors refuse item().
    found: SecretTensor = (index.unsqueeze(-1) == torch.arange(classes)).to(torch.int64)
    return found


@implements(aten.embedding.default)
def embedding(weight: Any, index: torch.Tensor, *_: Any) -> SecretTensor:
    """Reads rows of a table at indices. The table or the indices may be public."""
    if isinstance(index, SecretTensor):
        return addressing.read_rows(weight, 0, index)
    return moved(weight, lambda part: part[index])


@implements(aten.embedding_dense_backward.default)
def embedding_dense_backward(
    grad: Any, index: torch.Tensor, size: int, padding: int, by_frequency: bool
) -> SecretTensor:
    """Returns the gradient of a table: each row gets the sum of the gradients of its readings."""
    if by_frequency:
        unsupported("an embedding with scale_grad_by_freq", "scale the gradients yourself")
    grad = target(grad, session_of(grad, index))
    zeros = torch.zeros(size, grad.shape[-1], dtype=torch.int64)
    table = grad.like(shares.trivial(grad._session, zeros))
    rows = grad.like(tuple(part.reshape(-1, grad.shape[-1]) for part in grad._parts))
    summed = index_put(table, [_flat(index)], rows, True)
    if padding >= 0:
        for part in summed._parts:
            part[padding] = 0
    return summed


@implements(aten.index_put_.default, scale=of_target)
def index_put_(
    x: Any, indices: Sequence[torch.Tensor | None], values: Any, accumulate: bool = False
) -> SecretTensor:
    """Writes or adds values at indices in place. Secret indices work as in ``index_put``."""
    _check_target(x, accumulate)
    if is_secret(*indices) or (accumulate and may_be_unreduced(x.dtype)):
        return assign(x, index_put(x, indices, values, accumulate))
    values = as_kind_of(values, x)
    if accumulate:
        _hold(x, values, _most(indices))
    _put(writable(x), indices, values._parts, accumulate)
    return x


def _hold(x: SecretTensor, values: SecretTensor, most: int) -> None:
    """Claims that ``most`` values and the element they are added to have room in one word."""
    for operand in (x, values):
        checks.hold_summands(x._session, operand._parts, most + 1)


def _most(indices: Sequence[torch.Tensor | None]) -> int:
    """Returns how often one element occurs among public indices at most."""
    known = [index for index in indices if index is not None]
    if any(index.dtype == torch.bool for index in known) or not known:
        return 1
    shape = torch.broadcast_shapes(*(index.shape for index in known))  # type: ignore[no-untyped-call]
    places = torch.stack([index.expand(shape).reshape(-1) for index in known], 1)
    return int(places.unique(dim=0, return_counts=True)[1].max()) if len(places) else 1  # type: ignore[no-untyped-call]


def _check_target(x: Any, accumulate: bool) -> None:
    if not isinstance(x, SecretTensor):
        unsupported("writing a secret into a plain tensor", LIKE_A_SECRET)
    if accumulate and x.dtype == torch.bool:
        unsupported("adding booleans", "convert them to integers first")


def _put(
    parts: Parts, indices: Sequence[torch.Tensor | None], values: Parts, accumulate: bool
) -> None:
    if accumulate or not _repeat(indices, parts[0].shape):
        for part, new in zip(parts, values, strict=True):
            # The operator, unlike the method, accepts ``None``, which means all of a dimension.
            aten.index_put_.default(part, list(indices), new, accumulate)
        return
    # If an index repeats, PyTorch's threads may write one value in one component and another value
    # in the next. So only the last value is written.
    shape = parts[0].shape
    places = torch.arange(shape.numel()).reshape(shape)[tuple(indices)]
    last = _last(places.reshape(-1), shape.numel()).reshape(shape)
    for part, new in zip(parts, values, strict=True):
        part.copy_(torch.where(last < 0, part, new.expand(places.shape).reshape(-1)[last]))


def _repeat(indices: Sequence[torch.Tensor | None], shape: Sequence[int]) -> bool:
    """Returns whether any element occurs among indices more than once."""
    number, dim = torch.zeros((), dtype=torch.int64), 0
    for index in indices:
        if index is None:
            dim += 1
            continue
        is_mask = index.dtype in (torch.bool, torch.uint8)
        for column in index.nonzero(as_tuple=True) if is_mask else (index,):
            number = number * shape[dim] + column % max(shape[dim], 1)
            dim += 1
    distinct: torch.Tensor = number.unique()  # type: ignore[no-untyped-call]
    return distinct.numel() < number.numel()


def _last(places: torch.Tensor, size: int) -> torch.Tensor:
    """Returns for each element the last position in ``places`` that writes it, or −1."""
    numbers = torch.arange(places.numel())
    return torch.full((size,), -1).scatter_reduce(0, places, numbers, "amax")


def index_copy(
    x: torch.Tensor, dim: int, index: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Copies values as PyTorch's ``index_copy``. If an index repeats, the last value counts."""
    if x.dim() and _repeat([index], [x.shape[dim]]):
        last = _last(index.reshape(-1) % x.shape[dim], x.shape[dim])
        index = (last >= 0).nonzero().reshape(-1)
        values = values.index_select(dim, last[index])
    return x.index_copy(dim, index, values)


@implements(aten.index_put.default, aten._unsafe_index_put.default, scale=of_target)
def index_put(
    x: Any, indices: Sequence[torch.Tensor | None], values: Any, accumulate: bool = False
) -> SecretTensor:
    """Returns a copy with values written or added at indices.

    If an index repeats, the last value counts. Index −1 is the last place.
    """
    if is_secret(*indices):
        return addressing.index_put(x, indices, values, accumulate)
    x = target(x, session_of(x, values))
    _check_target(x, accumulate)
    copy = x.like(_copied(x), unreduced=x._unreduced or (accumulate and may_be_unreduced(x.dtype)))
    values = as_kind_of(values, x)
    if accumulate:
        _hold(x, values, _most(indices))
    _put(copy._parts, indices, values._parts, accumulate)
    return copy


@implements(aten.masked_scatter.default, scale=of_target)
def masked_scatter(x: Any, mask: torch.Tensor, source: Any) -> SecretTensor:
    """Returns a copy with the first values of the source where a public mask is true."""
    if isinstance(mask, SecretTensor):
        unsupported("masked_scatter by a secret mask", "choose by torch.where")
    shape = torch.broadcast_shapes(x.shape, mask.shape)  # type: ignore[no-untyped-call]
    (places,) = mask.expand(shape).reshape(-1).nonzero(as_tuple=True)
    written = index_put(x.expand(shape).reshape(-1), [places], source.reshape(-1)[: len(places)])
    return written.like(
        tuple(part.reshape(shape) for part in written._parts), unreduced=written._unreduced
    )


def _copied(x: SecretTensor) -> Parts:
    return tuple(part.clone() for part in x._parts)


def _scatters_view(overload: Any, view_of: Any) -> None:
    @implements(overload, scale=of_target)
    def scatter_view(x: Any, source: Any, *args: Any, **kwargs: Any) -> SecretTensor:
        """Returns a copy in which one view is replaced by ``source``."""
        if not isinstance(x, SecretTensor):
            unsupported("writing a secret into a plain tensor", LIKE_A_SECRET)
        result = x.like(_copied(x), unreduced=x._unreduced)
        assign(view_of(result, *args, **kwargs), source)
        return result


for _overload, _view in (
    (aten.as_strided_scatter.default, aten.as_strided.default),
    (aten.diagonal_scatter.default, aten.diagonal.default),
    (aten.select_scatter.default, aten.select.int),
    (aten.slice_scatter.default, aten.slice.Tensor),
):
    _scatters_view(_overload, _view)


def _writes_at_indices(overload: Any, in_words: Any, secretly: Any, adds: bool = False) -> None:
    """Enters an operator (x, dim, indices, values) that writes or adds along a dimension."""

    @implements(overload, scale=of_target)
    def write(
        x: Any, dim: int, index: torch.Tensor, values: Any, *, alpha: Number = 1
    ) -> SecretTensor:
        """Returns a copy of x, written at indices. If an index repeats, the last value counts."""
        values = scaled(values, alpha)
        if isinstance(index, SecretTensor):
            return secretly(x, dim, index, values, added if adds else written)
        x = target(x, session_of(x, values))
        _check_target(x, adds)
        values = as_kind_of(values, x)
        if adds:
            # Indices have one dimension, or there is one for each value.
            each = index.shape[dim] if index.dim() == x.dim() > 0 else index.numel()
            _hold(x, values, each)
        pairs = zip(x._parts, values._parts, strict=True)
        parts = tuple(in_words(part, dim, index, new) for part, new in pairs)
        return x.like(parts, unreduced=x._unreduced or (adds and may_be_unreduced(x.dtype)))


for _overload, _in_words in (
    (aten.index_copy.default, index_copy),
    (aten.index_fill.int_Scalar, aten.index_fill.int_Tensor),
    (aten.index_fill.int_Tensor, aten.index_fill.int_Tensor),
):
    _writes_at_indices(_overload, _in_words, addressing.write_rows)
_writes_at_indices(aten.index_add.default, aten.index_add.default, addressing.write_rows, adds=True)
_writes_at_indices(aten.scatter.src, aten.scatter.src, addressing.scatter)
_writes_at_indices(
    aten.scatter.value,
    lambda part, dim, index, value: part.scatter(dim, index, value.expand(index.shape)),
    addressing.scatter,
)
_writes_at_indices(
    aten.scatter_add.default, aten.scatter_add.default, addressing.scatter, adds=True
)
