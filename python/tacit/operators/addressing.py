"""Reading and writing at secret indices.

Operands are reshaped to the tables of rows that ``selection`` takes.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tacit.operators.dispatch.operands import as_kind_of, may_be_unreduced
from tacit.operators.dispatch.table import unsupported
from tacit.operators.ordering import restored
from tacit.operators.selection import (
    added,
    found,
    positions,
    read,
    session_of_all,
    table_of,
    target,
    written,
)
from tacit.randomness import one_hot_bits
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

Move = Callable[[torch.Tensor], torch.Tensor]


def _apply(move: Move, x: Any) -> Any:
    return move(x) if isinstance(x, torch.Tensor) else tuple(map(move, x))


def read_rows(x: Any, dim: int, index: SecretTensor, *, wraps: bool = False) -> SecretTensor:
    """Reads slices of x along a dimension at secret indices.

    The dimensions of the index replace ``dim`` in the result. With ``wraps`` index −1 is the last
    slice.
    """
    session = index._session
    if not x.dim():
        return read_rows(x.reshape(1), 0, index.reshape(()), wraps=wraps)
    size, rest = x.shape[dim], _without(x.shape, dim)
    table = _apply(
        lambda part: part.movedim(dim, 0).reshape(1, size, math.prod(rest)), table_of(x, session)
    )
    hot = tuple(
        part.reshape(1, index.numel(), size) for part in positions(index, size, wraps=wraps)
    )
    words = read(session, hot, table)
    at = dim % x.dim()
    return found(x, session, _apply(lambda part: _spread(part, index.shape, rest, at), words))


def _without(shape: Sequence[int], dim: int) -> list[int]:
    sizes = list(shape)
    del sizes[dim]
    return sizes


def _spread(part: torch.Tensor, front: Sequence[int], rest: Sequence[int], at: int) -> torch.Tensor:
    """Reshapes rows of columns to dimensions ``front``, which begin at ``at``, and ``rest``."""
    part = part.reshape([*front, *rest])
    return part.movedim(list(range(len(front))), list(range(at, at + len(front))))


def write_rows(
    x: Any,
    dim: int,
    index: SecretTensor,
    values: Any,
    change: Callable[..., Parts],
    *,
    wraps: bool = False,
) -> SecretTensor:
    """Returns a copy of x with values added to or written into its slices at secret indices.

    ``change`` adds or writes: a function such as ``added`` or ``written`` of ``selection``.
    """
    session = session_of_all(x, index, values)
    x = target(x, session)
    if not x.dim():
        one = write_rows(x.reshape(1), 0, index.reshape(1), values, change, wraps=wraps)
        return one.reshape(())
    size, rest = x.shape[dim], _without(x.shape, dim)
    at = dim % x.dim()
    shape = [*x.shape[:at], *index.shape, *x.shape[at + 1 :]]
    values = table_of(as_kind_of(values, x), session)
    moved = list(range(at, at + index.dim())), list(range(index.dim()))
    values = _apply(
        lambda part: part.expand(shape).movedim(*moved).reshape(1, index.numel(), math.prod(rest)),
        values,
    )
    table = _apply(
        lambda part: part.movedim(dim, 0).reshape(1, size, math.prod(rest)), table_of(x, session)
    )
    hot = tuple(
        part.reshape(1, index.numel(), size) for part in positions(index, size, wraps=wraps)
    )
    words = change(session, table, hot, values)
    return _changed(
        x, _apply(lambda part: part.reshape(size, *rest).movedim(0, dim), words), change
    )


def _changed(x: SecretTensor, words: Parts, change: Callable[..., Parts]) -> SecretTensor:
    if x.dtype == torch.bool:
        if change is added:
            unsupported("adding booleans", "convert them to integers first")
        return restored(x, words)
    return x.like(words, unreduced=x._unreduced or (change is added and may_be_unreduced(x.dtype)))


# Along a dimension, each row by its own indices
# ----------------------------------------------------------


def _rows(x: Any, dim: int, shape: Sequence[int]) -> Any:
    """Returns the part of x that indices of ``shape`` can reach, as tables [batch, size, 1]."""

    def move(part: torch.Tensor) -> torch.Tensor:
        part = part.reshape(part.shape or (1,))
        at = dim % part.dim()
        reached = tuple(slice(None) if d == at else slice(size) for d, size in enumerate(shape))
        part = part[reached].movedim(dim, -1)
        return part.reshape(math.prod(part.shape[:-1]), part.shape[-1], 1)

    return _apply(move, x)


def _hot(index: SecretTensor, dim: int, size: int) -> Parts:
    """Returns the one-hot vectors of indices along a dimension, [batch, n, size]."""
    hot = positions(index, size)
    shape = index.shape or (1,)
    batch = math.prod(_without(shape, dim))
    moved = (part.reshape(*shape, size).movedim(dim % len(shape), -2) for part in hot)
    return tuple(part.reshape(batch, shape[dim], size) for part in moved)


def gather(x: Any, dim: int, index: SecretTensor) -> SecretTensor:
    """Gathers elements at secret indices along a dimension, as ``torch.gather``."""
    session, shape = index._session, index.shape or (1,)
    if not index.numel():
        # PyTorch allows an empty index to have other dimensions than x.
        return found(x, session, index._parts)
    size = x.shape[dim] if x.dim() else 1
    words = read(session, _hot(index, dim, size), _rows(table_of(x, session), dim, shape))
    back = _without(shape, dim)
    parts = tuple(
        part.reshape(*back, shape[dim]).movedim(-1, dim % len(shape)).reshape(index.shape)
        for part in words
    )
    return found(x, session, parts)


def scatter(
    x: Any, dim: int, index: SecretTensor, values: Any, change: Callable[..., Parts]
) -> SecretTensor:
    """Returns a copy of x with values added to or written into elements at secret indices.

    Each element has its own index along ``dim``, as in ``torch.scatter``.
    """
    session, shape = session_of_all(x, index, values), index.shape or (1,)
    x = target(x, session)
    size = x.shape[dim] if x.dim() else 1
    values = as_kind_of(values, x)
    values = _apply(
        lambda part: part.expand(index.shape) if not part.dim() else part, table_of(values, session)
    )
    along = [size if d == dim % len(shape) else each for d, each in enumerate(shape)]
    inner = [slice(each) for each in shape]
    values = _apply(lambda part: part.reshape(part.shape or (1,))[tuple(inner)], values)
    table = table_of(x, session)
    hot = _hot(index, dim, size)
    words = change(session, _rows(table, dim, shape), hot, _rows(values, dim, shape))
    back = _without(shape, dim)

    def put(whole: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        whole = whole.reshape(whole.shape or (1,)).clone()
        whole[tuple(slice(each) for each in along)] = part.reshape(*back, size).movedim(
            -1, dim % len(shape)
        )
        return whole.reshape(x.shape)

    return _changed(x, tuple(put(*pair) for pair in zip(table, words, strict=True)), change)


# Several dimensions at once
# ------------------------------------------------------------------------------


def _joint(
    x: Any, indices: Sequence[Any], session: Session
) -> tuple[Parts, list[int], list[int], torch.Size]:
    """Returns joint one-hot vectors over all indexed dimensions, [1, n, size].

    Also returns the indexed dimensions, the other dimensions, and the broadcast shape of the
    indices.
    """
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    chosen = [indices[dim] for dim in dims]
    masks = [index for index in chosen if index.dtype in (torch.bool, torch.uint8)]
    if any(isinstance(mask, SecretTensor) for mask in masks):
        unsupported(
            "a secret mask as an index, which would show how many elements it has",
            "keep the shape: torch.where(mask, x, 0) chooses, and mask.sum() counts",
        )
    if masks:
        unsupported("a mask together with secret indices", "index by integers alone")
    shape = torch.broadcast_shapes(*(index.shape for index in chosen))  # type: ignore[no-untyped-call]
    joint: Parts = ()
    for dim, index in reversed(list(zip(dims, chosen, strict=True))):
        hot = _one(index, x.shape[dim], session)
        hot = tuple(
            part.expand(*shape, -1).reshape(1, shape.numel(), part.shape[-1]) for part in hot
        )
        joint = one_hot_bits.product(session, joint, hot) if joint else hot
    rest = [dim for dim in range(x.dim()) if dim not in dims]
    return joint, dims, rest, shape


def _one(index: Any, size: int, session: Session) -> Parts:
    if isinstance(index, SecretTensor):
        return positions(index, size, wraps=True)
    known = torch.nn.functional.one_hot(index.long() % size, size).to(torch.uint8)
    return shares.trivial_bits(session, known)


def _place(dims: Sequence[int]) -> int:
    """Returns the dimension of the result at which the indices' dimensions begin.

    It is the first indexed dimension if the indexed dimensions are adjacent, else 0, as in PyTorch.
    """
    return dims[0] if list(dims) == list(range(dims[0], dims[0] + len(dims))) else 0


def index(x: Any, indices: Sequence[Any]) -> SecretTensor:
    """Reads elements at indices, at least one of which is secret."""
    session = session_of_all(x, indices)
    hot, dims, rest, shape = _joint(x, indices, session)
    size, sizes, at = (
        math.prod(x.shape[dim] for dim in dims),
        [x.shape[dim] for dim in rest],
        _place(dims),
    )
    table = _apply(
        lambda part: part.permute(*dims, *rest).reshape(1, size, math.prod(sizes)),
        table_of(x, session),
    )
    words = read(session, hot, table)
    return found(x, session, _apply(lambda part: _spread(part, shape, sizes, at), words))


def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> SecretTensor:
    """Returns a copy of x with values added to or written into elements at indices.

    At least one of the indices is secret.
    """
    session = session_of_all(x, indices, values)
    x, change = target(x, session), added if accumulate else written
    hot, dims, rest, shape = _joint(x, indices, session)
    order, sizes, at = [*dims, *rest], [x.shape[dim] for dim in rest], _place(dims)
    full = [*sizes[:at], *shape, *sizes[at:]]
    front = list(range(at, at + len(shape))), list(range(len(shape)))
    size = math.prod(x.shape[dim] for dim in dims)
    values = _apply(
        lambda part: part.expand(full).movedim(*front).reshape(1, shape.numel(), math.prod(sizes)),
        table_of(as_kind_of(values, x), session),
    )
    table = _apply(
        lambda part: part.permute(order).reshape(1, size, math.prod(sizes)), table_of(x, session)
    )
    words = change(session, table, hot, values)
    back = [order.index(dim) for dim in range(x.dim())]
    moved = [x.shape[dim] for dim in order]
    return _changed(x, _apply(lambda part: part.reshape(moved).permute(back), words), change)
