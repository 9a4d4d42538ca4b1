"""Norms of vectors."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit import fixed, shares
from tacit.fixed import Scale
from tacit.operators import approximation
from tacit.operators.averages import as_fractions, last, reduced
from tacit.operators.operands import Number, in_full, rescaled
from tacit.operators.scales import of_session
from tacit.operators.table import implements, unsupported
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Fraction bits of numbers that are squared at most: their squares have twice as many.
MOST_SQUARED = Scale(16)

#: The least order that is computed by logarithms, whose errors its inverse magnifies; that is the greatest.
LEAST_ORDER = 1 / 16

#: Its exponential is nothing, whatever it meets.
FAR = 2.0**12

#: Bits that numbers drop before they are squared where the sum of their squares could be beyond a word, and
#: from which norm on they do: half of where it is, since what is dropped adds to the norm too.
COARSE = 15
LARGE = 23_170

#: Bits that a sum of squares drops where it is too large to have its root taken as it is.
DROPPED = 16


@implements(aten.linalg_vector_norm.default, scale=of_session)
def vector_norm(
    x: SecretTensor,
    ord: Number = 2,  # noqa: A002
    dim: Sequence[int] | int | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SecretTensor:
    """(Σ |x|^ord)^(1/ord). Of order 2: see ``euclidean``. Of order 1 the rounds of a comparison, of ±infinity
    those of an extremum besides, of 0 those of a test for zero; all others, which have no gradient, see
    ``_by_logarithms``."""
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
    """Slices along a dimension, those of a greater norm brought to it: divided by their norm first, which
    leaves small factors all their digits."""
    dims = [other for other in range(x.dim()) if other != dim % x.dim()]
    norms = vector_norm(x, p, dims, True)
    return torch.where(norms > maxnorm, x / norms * maxnorm, x)  # type: ignore[return-value]


def check_order(order: Number, *operands: Any) -> None:
    """Refuses an order that there is no norm of, or none of operands that want a gradient."""
    if order in (0, 1, 2) or math.isinf(order):
        return
    if not LEAST_ORDER <= abs(order) <= 1 / LEAST_ORDER:
        unsupported(f"the norm of order {order}", "use plus or minus 1/16 to 16, infinity, or 0")
    if any(isinstance(operand, torch.Tensor) and operand.requires_grad for operand in operands):
        # PyTorch's own formula divides by powers that are lost among units, or out of range.
        unsupported(
            f"the gradient of the norm of order {order}",
            "train by order 1, 2 or infinity; where no gradient is wanted, take it of x.detach()",
        )


def _by_logarithms(x: SecretTensor, order: Number, dims: Sequence[int], keepdim: bool) -> SecretTensor:
    """The norm of an order p that is no power of x that would stay in range: e^(s/p) with s the logarithm of
    Σ e^(p·ln |x|). Zeros count as e^−FAR.

    Domain: norms below 2^29. Error: (2 + 1/|p|)·2^−13 relative and two units of 2^−16. The rounds of two
    logarithms, two exponentials, a greatest, and some ten.
    """
    if not x.numel():
        return x.sum(dims, keepdim)
    with in_full(x._session):
        magnitudes = x.abs()
        # Negative powers of zeros are as large as positive ones are small.
        nothing = -math.copysign(FAR * max(1.0, abs(order)), order)
        logarithms = approximation.log(magnitudes, positive=True) * float(order)
        powers = torch.where(magnitudes == 0, nothing, logarithms)
        total: Any = torch.logsumexp(powers, list(dims), keepdim)
        return approximation.exp(total * (1.0 / order))


def euclidean(x: SecretTensor, dims: Sequence[int], keepdim: bool) -> SecretTensor:
    """√Σ x². Small norms are as exact as others, since their sum keeps all its bits; norms from ``LARGE`` on
    are those of numbers that drop ``COARSE`` bits, whose sum a word holds. Either sum drops ``DROPPED`` bits
    more where it is too large to have its root taken as it is. What it is, comparisons say, of which nothing
    is shown.

    Domain: norms below 2^30. Error: 2^−13 relative (and from ``LARGE`` on n/2^34, of n numbers) and two units
    of 2^−16. The rounds of a square root and some 20.
    """
    session = x._session
    if x._scale.bits > MOST_SQUARED.bits:
        x = rescaled(x, MOST_SQUARED)
    count = math.prod(x.shape[d] for d in dims)
    others = math.prod(reduced(x.shape, dims, False))
    rows = tuple(last(part, dims).reshape(others, 1, count) for part in x._parts)
    # The first are wrong where they are not taken.
    fine = _squared(session, rows, in_range=False)
    coarse = _squared(session, shares.truncate(session, rows, COARSE), in_range=True)
    fine_less, coarse_less = shares.unstacked(shares.truncate(session, shares.stacked(fine, coarse), DROPPED))
    least = (LARGE << x._scale.bits) >> COARSE
    limits = ((fine_less, 1 << fixed.ENCODED), (coarse_less, 1 << fixed.ENCODED), (coarse_less, least**2))
    below = [
        shares.subtract(sums, shares.trivial(session, torch.tensor(limit >> DROPPED)))
        for sums, limit in limits
    ]
    # A sum that is wrong has a bit more than others.
    bits = shares.sign(session, shares.stacked(*below), fixed.RANGE + 3 - DROPPED)
    fine_fits, coarse_fits, is_small = shares.unstacked(bits)
    changes = shares.and_bits(session, is_small, shares.xor(fine_fits, coarse_fits))
    fits = shares.xor(coarse_fits, changes)
    either = shares.stacked(fine, fine_less), shares.stacked(coarse, coarse_less)
    whole, less = shares.unstacked(shares.select(session, shares.stacked(is_small, is_small), *either))
    chosen = x.like(shares.select(session, fits, whole, less), Scale(2 * x._scale.bits))
    root = approximation.sqrt(chosen, positive=True)
    # The root of what has dropped bits is small by half as many.
    found = shares.select(session, fits, root._parts, _shifted(root._parts, DROPPED // 2))
    found = shares.select(session, is_small, found, _shifted(found, COARSE))
    shape = reduced(x.shape, dims, keepdim)
    return root.like(tuple(part.reshape(shape) for part in found))


def _squared(session: Session, rows: Parts, *, in_range: bool) -> Parts:
    """Of each row the sum of squares."""
    sums = shares.matmul(session, rows, tuple(part.mT for part in rows), 0, in_range=in_range)
    return tuple(part.reshape(-1) for part in sums)


def _shifted(x: Parts, bits: int) -> Parts:
    return tuple(part << bits for part in x)
