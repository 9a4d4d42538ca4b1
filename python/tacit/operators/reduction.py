"""Sums and means along dimensions: local, and one truncated product for a mean."""

import math
from collections.abc import Sequence

import torch

from tacit.operators.arithmetic import mul, multiply_public, sub
from tacit.operators.comparison import gt
from tacit.operators.conversion import to_copy
from tacit.operators.logical import logical_not
from tacit.operators.operands import Number, as_words
from tacit.operators.table import implements, unsupported
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _dims(x: torch.Tensor, dim: Sequence[int] | int | None) -> list[int]:
    if isinstance(dim, int):
        return [dim]
    return list(dim) if dim else list(range(x.dim()))


@implements(aten.sum.default)
def sum_all(x: SecretTensor, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """The sum of all elements; no interaction (at most two rounds for booleans)."""
    return sum_dims(x, None, dtype=dtype)


@implements(aten.sum.dim_IntList)
def sum_dims(
    x: SecretTensor, dim: Sequence[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> SecretTensor:
    """Sums along dimensions; no interaction (at most two rounds for booleans)."""
    own = x.dtype if x.dtype.is_floating_point else torch.int64
    x = as_words(x)
    parts = tuple(part.sum(_dims(x, dim), keepdim=keepdim) if x.dim() else part.clone() for part in x._parts)
    result = x.like(parts, dtype=own)
    return result if dtype is None else to_copy(result, dtype=dtype)


@implements(aten.mean.default)
def mean_all(x: SecretTensor, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """The mean of all elements; at most two rounds."""
    return mean_dims(x, None, dtype=dtype)


@implements(aten.mean.dim)
def mean_dims(
    x: SecretTensor,
    dim: Sequence[int] | int | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SecretTensor:
    """Means along dimensions; at most two rounds."""
    if not x.dtype.is_floating_point and dtype is None:
        unsupported("the mean of integers", "give a floating-point dtype, as PyTorch demands")
    count = math.prod(x.shape[d] for d in _dims(x, dim)) if x.dim() else 1
    sums = sum_dims(x, _dims(x, dim), keepdim, dtype=dtype)
    product = multiply_public(sums, 1.0 / count)
    return product.like(product._parts, dtype=sums.dtype)


@implements(aten.var.correction)
def variance(
    x: SecretTensor,
    dim: Sequence[int] | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
) -> SecretTensor:
    """Variances along dimensions; at most six rounds."""
    dims = _dims(x, dim)
    count = (math.prod(x.shape[d] for d in dims) if x.dim() else 1) - (
        1 if correction is None else correction
    )
    if count <= 0:
        unsupported("the variance of so few elements", "give it more elements than the correction")
    deviation = sub(x, mean_dims(x, dims, True))
    product = multiply_public(sum_dims(mul(deviation, deviation), dims, keepdim), 1.0 / count)
    return product.like(product._parts, dtype=x.dtype)


@implements(aten.cumsum.default)
def cumsum(x: SecretTensor, dim: int, *, dtype: torch.dtype | None = None) -> SecretTensor:
    """Prefix sums; no interaction (at most two rounds for booleans)."""
    own = x.dtype if x.dtype.is_floating_point else torch.int64
    x = as_words(x)
    result = x.like(tuple(part.cumsum(dim) for part in x._parts), dtype=own)
    return result if dtype is None else to_copy(result, dtype=dtype)


@implements(aten.trace.default)
def trace(x: SecretTensor) -> SecretTensor:
    """The sum of the diagonal; no interaction."""
    return sum_all(x.like(tuple(part.diagonal() for part in x._parts)))


@implements(aten.any.default, aten.any.dim, aten.any.dims)
def any_of(x: SecretTensor, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> SecretTensor:
    """Whether any element is true, or not zero: a sum is not zero."""
    x = to_copy(x, dtype=torch.bool)
    return gt(sum_dims(x, _dims(x, dim), keepdim), 0)


@implements(aten.all.default, aten.all.dim, aten.all.dims)
def all_of(x: SecretTensor, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> SecretTensor:
    """Whether all elements are true, or not zero: none of their opposites is."""
    return logical_not(any_of(logical_not(to_copy(x, dtype=torch.bool)), dim, keepdim))
