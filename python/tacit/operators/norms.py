"""Norms of vectors."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.fixed import Scale
from tacit.operators.dispatch.operands import Number, in_full, rescaled
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics import approximation, remembered_squares
from tacit.operators.numerics.averages import as_fractions
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Most fraction bits of numbers that are squared. With more, norms would have a smaller domain.
MOST_SQUARED = Scale(16)

#: Smallest order that is computed by logarithms, whose errors one over the order magnifies. One
#: over this is the largest.
LEAST_ORDER = 1 / 16

#: Magnitude of the logarithm that stands for zero. Its exponential vanishes next to any other.
FAR = 2.0**12


@implements(aten.linalg_vector_norm.default, scale=of_session)
def vector_norm(
    x: SecretTensor,
    ord: Number = 2,  # noqa: A002
    dim: Sequence[int] | int | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SecretTensor:
    """Returns (Σ |x|^ord)^(1/ord).

    For order 2 see ``euclidean``. Order 1 takes the rounds of a comparison, order ±infinity also
    those of an extremum, and order 0 those of a test for zero. All other orders have no gradient:
    see ``_by_logarithms``.
    """
    check_order(ord, x)
    x = as_fractions(x if dtype is None else x.to(dtype))
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    dims = sorted({d % x.dim() for d in dims}) if x.dim() else []
    if not math.prod(x.shape[d] for d in dims) and (ord < 0 or ord == math.inf):
        unsupported(f"the norm of order {ord} of no elements", "give it at least one")
    if ord == 2:
        return euclidean(x, dims, keepdim)
    result: Any
    if ord == 0:
        counts = (x != 0).to(x.dtype)
        return counts.sum(dims, keepdim) if dims else counts
    if math.isinf(ord):
        extremum = torch.amax if ord > 0 else torch.amin
        result = extremum(x.abs(), dims, keepdim)
    elif ord == 1:
        result = x.abs().sum(dims, keepdim) if dims else x.abs()
    else:
        result = _by_logarithms(x, ord, dims, keepdim)
    return result


@implements(aten.renorm.default, scale=of_session)
def renorm(x: SecretTensor, p: Number, dim: int, maxnorm: Number) -> SecretTensor:
    """Scales slices along a dimension down to ``maxnorm`` if their norm is greater.

    They are divided by their norm first, so that small factors keep all their digits.
    """
    dims = [other for other in range(x.dim()) if other != dim % x.dim()]
    norms = vector_norm(x, p, dims, True)
    return torch.where(norms > maxnorm, x / norms * maxnorm, x)  # type: ignore[return-value]


def check_order(order: Number, *operands: Any) -> None:
    """Refuses an order whose norm, or whose gradient if one is required, is not supported."""
    if order in (0, 1, 2) or math.isinf(order):
        return
    if not LEAST_ORDER <= abs(order) <= 1 / LEAST_ORDER:
        unsupported(f"the norm of order {order}", "use plus or minus 1/16 to 16, infinity, or 0")
    if any(isinstance(operand, torch.Tensor) and operand.requires_grad for operand in operands):
        # PyTorch's formula divides by powers that are lost below a unit, or out of range.
        unsupported(
            f"the gradient of the norm of order {order}",
            "train by order 1, 2 or infinity; without a gradient, take the norm of x.detach()",
        )


def _by_logarithms(
    x: SecretTensor, order: Number, dims: Sequence[int], keepdim: bool
) -> SecretTensor:
    """Returns the norm of an order p whose powers of x might leave the range.

    The norm is e^(s/p), where s is the logarithm of Σ e^(p·ln |x|). Zeros count as e^−FAR.

    Domain: norms below 2^29. Error: (2 + 1/|p|)·2^−13 relative and two units of 2^−16. Takes the
    rounds of two logarithms, two exponentials, a maximum, and about ten.
    """
    if not x.numel():
        return x.sum(dims, keepdim)
    with in_full(x._session):
        magnitudes = x.abs()
        # A negative power of zero is as large as a positive one is small.
        nothing = -math.copysign(FAR * max(1.0, abs(order)), order)
        logarithms = approximation.log(magnitudes, positive=True) * float(order)
        powers = torch.where(magnitudes == 0, nothing, logarithms)
        total: Any = torch.logsumexp(powers, list(dims), keepdim)
        return approximation.exp(total * (1.0 / order))


def euclidean(
    x: SecretTensor, dims: Sequence[int], keepdim: bool, count: float = 1.0
) -> SecretTensor:
    """Returns √(Σ x² / count), which remembers what it was computed from.

    So quotients by it are as exact for small rows as for large ones: see ``inverse_roots`` and
    ``remembered_squares``.

    Domain: norms below 2^30. Error: 2^−13 relative (for n numbers with norms from 2^14 on n/2^32
    more) and two units of 2^−16. Takes the rounds of an inverse square root and about 20.
    """
    if x._scale.bits > MOST_SQUARED.bits:
        x = rescaled(x, MOST_SQUARED)
    return remembered_squares.norm(x, dims, keepdim, count)
