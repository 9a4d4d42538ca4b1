"""Reductions along dimensions: ``sum``, ``mean``, ``var``, ``std``, ``any`` and ``all``.

Sums are local. A mean takes one truncated product in addition.
"""

import math
from collections.abc import Sequence

import torch

from tacit import checks, fixed
from tacit.operators.arithmetic import sub
from tacit.operators.conversion import to_copy
from tacit.operators.dispatch.operands import Number, as_words, moved, times_public
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.linear import bmm
from tacit.operators.logical import logical_not
from tacit.operators.norms import euclidean
from tacit.operators.numerics import remembered_squares
from tacit.operators.numerics.averages import last, mean, reduced
from tacit.sharings import ranges, shares
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _dims(x: torch.Tensor, dim: Sequence[int] | int | None) -> list[int]:
    if not x.dim():
        return []
    if isinstance(dim, int):
        return [dim % x.dim()]
    return sorted({d % x.dim() for d in dim}) if dim else list(range(x.dim()))


@implements(aten.sum.default)
def sum_all(x: SecretTensor, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """Returns the sum of all elements. No interaction; at most two rounds for booleans."""
    return sum_dims(x, None, dtype=dtype)


@implements(aten.sum.dim_IntList)
def sum_dims(
    x: SecretTensor,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SecretTensor:
    """Returns sums along dimensions. No interaction; at most two rounds for booleans."""
    own = x.dtype if x.dtype.is_floating_point else torch.int64
    x = as_words(x)
    dims = _dims(x, dim)
    if dims and x._session.is_plain and own.is_floating_point:
        ranges.check_sum(x._session, x._parts[0], lambda words: words.sum(dims))
    checks.hold_summands(x._session, x._parts, math.prod(x.shape[each] for each in dims))
    result = x.like(
        tuple(part.sum(dims, keepdim=keepdim) if dims else part for part in x._parts), dtype=own
    )
    checks.summed(x._session, result._parts, x._parts, math.prod(x.shape[each] for each in dims))
    result = remembered_squares.remember_sums(result, x, dims)
    return result if dtype is None else to_copy(result, dtype=dtype)


@implements(aten.mean.default, scale=of_session)
def mean_all(x: SecretTensor, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """Returns the mean of all elements. At most six rounds."""
    return mean_dims(x, None, dtype=dtype)


@implements(aten.mean.dim, scale=of_session)
def mean_dims(
    x: SecretTensor,
    dim: Sequence[int] | int | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SecretTensor:
    """Returns means along dimensions. At most six rounds."""
    if not x.dtype.is_floating_point and dtype is None:
        unsupported("the mean of integers", "give a floating-point dtype, as PyTorch demands")
    dims = _dims(x, dim)
    if not math.prod(x.shape[d] for d in dims):
        unsupported("the mean of no elements", "give it at least one")
    result = mean(x if dtype is None else to_copy(x, dtype=dtype), dims, keepdim)
    return remembered_squares.remember_sums(result, x, dims, math.prod(x.shape[d] for d in dims))


@implements(aten.var.correction, scale=of_session)
def variance(
    x: SecretTensor,
    dim: Sequence[int] | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> SecretTensor:
    """Returns variances along dimensions. At most twelve rounds.

    They are sums of squares of deviations / √count. So they are right whenever the variance is in
    range, and are truncated once.
    """
    deviations, dims, count = _deviations(x, dim, correction)
    result = mean_of_squares(deviations, dims, count, keepdim)
    return remembered_squares.remember_sums_of_squares(result, deviations, dims, count)


@implements(aten.std.correction, scale=of_session)
def deviation(
    x: SecretTensor,
    dim: Sequence[int] | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> SecretTensor:
    """Returns standard deviations along dimensions. Domain: below 2^30.

    They are roots of Σ deviation² / count by ``euclidean``, so that small ones are as exact as
    others.
    """
    deviations, dims, count = _deviations(x, dim, correction)
    return euclidean(deviations, dims, keepdim, count)


@implements(aten.std_mean.correction, scale=of_session)
def deviation_and_mean(
    x: SecretTensor,
    dim: Sequence[int] | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> tuple[SecretTensor, SecretTensor]:
    """Returns standard deviations and means along dimensions, computed one after the other."""
    return deviation(x, dim, correction=correction, keepdim=keepdim), mean_dims(x, dim, keepdim)


def _deviations(
    x: SecretTensor, dim: Sequence[int] | None, correction: Number | None
) -> tuple[SecretTensor, list[int], Number]:
    """Returns deviations from the mean, the dimensions, and the number of elements that count."""
    dims = _dims(x, dim)
    elements = math.prod(x.shape[d] for d in dims)
    count = elements - (1 if correction is None else correction)
    if count <= 0:
        unsupported("the variance of so few elements", "give it more elements than the correction")
    return sub(x, mean(x, dims, True)), dims, count


def mean_of_squares(
    deviations: SecretTensor, dims: Sequence[int], count: Number, keepdim: bool
) -> SecretTensor:
    """Returns Σ (deviation / √count)² along dimensions. At most six rounds.

    It is right whenever it is in range at the session's scale.
    """
    session = deviations._session
    elements = math.prod(deviations.shape[d] for d in dims)
    # A deviation may have one bit more than a value.
    root = torch.tensor(1.0 / math.sqrt(count), dtype=torch.float64)
    whole = deviations.shape
    with session.using(scale=fixed.before_square(session.scale)):
        deviations = times_public(deviations, root, deviations.dtype, gain=2.0)
    rows = tuple(last(part, dims).reshape(-1, 1, elements) for part in deviations._parts)
    squares = bmm(deviations.like(rows), deviations.like(tuple(part.mT for part in rows)))
    shape = reduced(whole, dims, keepdim)
    return squares.like(tuple(part.reshape(shape) for part in squares._parts))


@implements(aten.trace.default)
def trace(x: SecretTensor) -> SecretTensor:
    """Returns the sum of the diagonal. No interaction."""
    return sum_all(moved(x, torch.diagonal))


@implements(aten.any.default, aten.any.dim, aten.any.dims)
def any_of(
    x: SecretTensor, dim: Sequence[int] | int | None = None, keepdim: bool = False
) -> SecretTensor:
    """Returns whether any element is true, or not zero.

    The number of such elements is compared with zero, at the width that the number needs.
    """
    truths = to_copy(x, dtype=torch.bool)
    dims = _dims(x, dim)
    most = math.prod(x.shape[d] for d in dims)
    counts = sum_dims(truths, dims, keepdim)
    none = shares.equal_zero(x._session, counts._parts, max(2, most.bit_length()))
    found = logical_not(truths.like(none))
    # PyTorch returns uint8 for uint8.
    return to_copy(found, dtype=torch.uint8) if x.dtype == torch.uint8 else found


@implements(aten.all.default, aten.all.dim, aten.all.dims)
def all_of(
    x: SecretTensor, dim: Sequence[int] | int | None = None, keepdim: bool = False
) -> SecretTensor:
    """Returns whether all elements are true, or not zero: whether no element is false."""
    found = logical_not(any_of(logical_not(to_copy(x, dtype=torch.bool)), dim, keepdim))
    return to_copy(found, dtype=torch.uint8) if x.dtype == torch.uint8 else found
