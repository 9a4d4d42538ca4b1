"""Reductions of values that have the same index: sum, mean, product, maximum, minimum.

For secret indices see ``scatter_reduce_kernels``.
"""

from typing import Any

import torch

from tacit import checks
from tacit.operators import addressing
from tacit.operators.arithmetic import multiply_public
from tacit.operators.comparison import ne
from tacit.operators.conversion import to_copy
from tacit.operators.dispatch.operands import (
    as_kind_of,
    at_session_scale,
    may_be_unreduced,
    moved,
    public,
    rescaled,
    session_of,
    within,
)
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.extremum import amax, amin
from tacit.operators.prod import product
from tacit.operators.scatter_reduce_kernels import reducer
from tacit.operators.selection import target
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.scatter_reduce.two, scale=of_session)
def scatter_reduce(
    x: Any, dim: int, index: torch.Tensor, values: Any, reduce: str, *, include_self: bool = True
) -> SecretTensor:
    """Returns a copy of x in which values with the same index along a dimension are reduced.

    At public indices sums take no interaction, and means that of products by public numbers.
    Maxima, minima and products are trees over the largest number of values that share an index. For
    secret indices see ``scatter_reduce_kernels``; values with an index out of range are left out.
    Booleans are reduced as integers, and the result says whether these are not zero.
    """
    session = session_of(x, index, values)
    x = within(target(x, session, bounds=reduce in ("amax", "amin")))
    if x.dtype == torch.bool:
        numbers = (to_copy(target(one, session), dtype=torch.int64) for one in (x, values))
        return ne(
            scatter_reduce(
                next(numbers), dim, index, next(numbers), reduce, include_self=include_self
            ),
            0,
        )
    values = as_kind_of(values, x)
    if not x.dim():
        x, values, index = (
            moved(operand, lambda part: part.reshape(1)) for operand in (x, values, index)
        )
        whole = scatter_reduce(x, 0, index, values, reduce, include_self=include_self)
        return moved(whole, lambda part: part.reshape(()))
    if isinstance(index, SecretTensor):
        x = at_session_scale(x) if reduce == "prod" else x
        return _as_unreduced(
            addressing.scatter(x, dim, index, values, reducer(x, reduce, include_self))
        )
    places = torch.arange(x.numel()).reshape(x.shape).gather(dim, index).reshape(-1)
    inside = tuple(slice(size) for size in index.shape)
    flat = values.like(tuple(part[inside].reshape(-1) for part in values._parts))
    own = moved(x, lambda part: part.reshape(-1))
    if reduce in ("sum", "mean"):
        result = _added(own, places, flat, reduce == "mean", include_self)
    else:
        result = _reduced(own, places, flat, reduce, include_self)
    return moved(result, lambda part: part.reshape(x.shape))


def _as_unreduced(x: SecretTensor) -> SecretTensor:
    return x.like(x._parts, unreduced=may_be_unreduced(x.dtype))


def _added(
    x: SecretTensor, places: torch.Tensor, values: SecretTensor, is_mean: bool, include_self: bool
) -> SecretTensor:
    counts = torch.bincount(places, minlength=x.numel())
    for operand in (x, values):
        checks.hold_summands(x._session, operand._parts, int(counts.max()) + 1 if x.numel() else 1)
    own = x._parts if include_self else tuple(part.masked_fill(counts > 0, 0) for part in x._parts)
    pairs = zip(own, values._parts, strict=True)
    result = x.like(
        tuple(part.index_add(0, places, more) for part, more in pairs),
        unreduced=may_be_unreduced(x.dtype),
    )
    if not is_mean:
        return result
    if not x.dtype.is_floating_point:
        unsupported("means of integers at indices", "convert them to floats")
    return multiply_public(result, 1.0 / (counts + include_self).clamp(min=1).to(torch.float64))


def _reduced(
    x: SecretTensor, places: torch.Tensor, values: SecretTensor, reduce: str, include_self: bool
) -> SecretTensor:
    """Reduces by a table with one row for each place that is written to.

    A row holds the elements that are reduced there.
    """
    x = at_session_scale(x) if reduce == "prod" else x
    values = rescaled(values, x._scale)
    counts = torch.bincount(places, minlength=x.numel())
    hit = counts.nonzero().reshape(-1)
    if not len(hit):
        return x
    table = _table(x.numel(), places, counts, hit, include_self)
    one = shares.trivial(x._session, torch.tensor([1 << x._scale.bits]))
    pool = [torch.cat(parts) for parts in zip(x._parts, values._parts, one, strict=True)]
    # Shorter rows are filled up: for products with the one at the end of the pool, else with the
    # row's own first element.
    missing = (
        torch.full_like(table, x.numel() + values.numel()) if reduce == "prod" else table[:, :1]
    )
    table = torch.where(table < 0, missing, table)
    met = x.like(tuple(part[table] for part in pool))
    if reduce == "prod":
        made = product(moved(met, lambda part: part.t()))
    elif reduce in ("amax", "amin"):
        made = (amax if reduce == "amax" else amin)(met, [1])
    else:
        unsupported(f"the reduction {reduce!r}", "use sum, mean, prod, amax or amin")
    return x.like(_written(x._parts, hit, made._parts), unreduced=made._unreduced)


def _table(
    size: int, places: torch.Tensor, counts: torch.Tensor, hit: torch.Tensor, include_self: bool
) -> torch.Tensor:
    """Returns rows of element indices, first of x and then of the values.

    Where a row is shorter it has −1.
    """
    order = places.argsort(stable=True)
    ordered = places[order]
    starts = counts.cumsum(0) - counts
    rank = torch.arange(len(places)) - starts[ordered] + include_self
    row = torch.zeros(size, dtype=torch.int64).index_put((hit,), torch.arange(len(hit)))
    table = torch.full((len(hit), int(counts.max()) + include_self), -1)
    table[row[ordered], rank] = size + order
    if include_self:
        table[:, 0] = hit
    return table


def _written(parts: Parts, places: torch.Tensor, values: Parts) -> Parts:
    return tuple(part.index_copy(0, places, new) for part, new in zip(parts, values, strict=True))


@implements(aten.index_reduce.default, scale=of_session)
def index_reduce(
    x: Any, dim: int, index: torch.Tensor, values: Any, reduce: str, *, include_self: bool = True
) -> SecretTensor:
    """Reduces whole slices that have the same index, as ``scatter_reduce``."""
    if isinstance(index, SecretTensor):
        x = within(target(x, session_of(x, index, values)))
        x = at_session_scale(x) if reduce == "prod" else x
        change = reducer(x, reduce, include_self)
        return _as_unreduced(addressing.write_rows(x, dim, index.reshape(-1), values, change))
    if values.dim():
        shape = [-1 if at == dim % values.dim() else 1 for at in range(values.dim())]
        index = index.reshape(shape).expand(values.shape)
    else:
        index = index.reshape(())
    if reduce == "mean" and not x.dtype.is_floating_point:
        unsupported("means of integers at indices", "convert them to floats")
    return scatter_reduce(x, dim, index, values, reduce, include_self=include_self)


@implements(aten.scatter.reduce, aten.scatter.value_reduce, scale=of_session)
def scatter_with(
    x: Any, dim: int, index: torch.Tensor, values: Any, *, reduce: str
) -> SecretTensor:
    """Reduces as ``scatter_reduce``, by the older names of sum and product."""
    if not isinstance(values, torch.Tensor):
        values = public(values).to(x.dtype).expand(index.shape)
    return scatter_reduce(x, dim, index, values, {"add": "sum", "multiply": "prod"}[reduce])
