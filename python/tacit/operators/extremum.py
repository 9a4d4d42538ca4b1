"""Maxima and minima, and their indices.

They are tournaments of log2(n) levels, each a comparison and a selection. int64 takes one more
round for each level. Among equals the first wins, as in PyTorch.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tacit import checks
from tacit.fixed import WHOLE
from tacit.operators.dispatch.operands import (
    alike,
    as_words,
    common_scale,
    conjunction,
    disjunction,
    lifted,
    result_dtype,
    session_of,
    together,
)
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics.bounds import limit_of
from tacit.operators.numerics.compare_words import (
    difference_width,
    greater,
    less,
    lesser,
    of_difference,
    opposite,
)
from tacit.operators.ordering import restored
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Comparison, Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def greatest(session: Session, x: Parts, comparison: Comparison) -> Parts:
    """Returns the maximum along the last dimension, which must not be empty.

    Differences are compared as ``comparison`` says.
    """
    while (size := x[0].shape[-1]) > 1:
        half = size // 2
        left, right = (
            tuple(part[..., :half] for part in x),
            tuple(part[..., half : 2 * half] for part in x),
        )
        winners = greater(session, left, right, comparison)
        remaining = tuple(
            torch.cat([won, part[..., 2 * half :]], -1)
            for won, part in zip(winners, x, strict=True)
        )
        checks.inherit(session, remaining, x)
        x = remaining
    return tuple(part[..., 0] for part in x)


def tournament(session: Session, x: Parts, width: int) -> tuple[Parts, Parts]:
    """Returns the maximum along the last dimension, and the index of its first occurrence.

    ``width`` is the width of differences.
    """
    size = x[0].shape[-1]
    indices = shares.trivial(session, torch.arange(size))
    indices = tuple(part.expand(x[0].shape) for part in indices)
    while (size := x[0].shape[-1]) > 1:
        even = 2 * (size // 2)
        # Neighbours are compared, so that the left one has the smaller index. It loses only if it
        # is less.
        left, right = (tuple(part[..., side:even:2] for part in x) for side in (0, 1))
        left_index, right_index = (
            tuple(part[..., side:even:2] for part in indices) for side in (0, 1)
        )
        gain = shares.subtract(right, left)
        lost = less(session, left, right, width)
        change = tuple(
            torch.stack([a, b])
            for a, b in zip(gain, shares.subtract(right_index, left_index), strict=True)
        )
        change = shares.bit_multiply(
            session, tuple(bit.expand(2, *bit.shape) for bit in lost), change
        )
        won = shares.add(left, tuple(part[0] for part in change))
        won_index = shares.add(left_index, tuple(part[1] for part in change))
        remaining = tuple(
            torch.cat([a, part[..., even:]], -1) for a, part in zip(won, x, strict=True)
        )
        checks.inherit(session, remaining, x)
        x = remaining
        indices = tuple(
            torch.cat([a, part[..., even:]], -1) for a, part in zip(won_index, indices, strict=True)
        )
    return tuple(part[..., 0] for part in x), tuple(part[..., 0] for part in indices)


def _along(x: SecretTensor, dim: int | None) -> Parts:
    """Returns the components with dimension ``dim`` last, or flattened if ``dim`` is ``None``."""
    parts = as_words(x)._parts
    if dim is None or not x.dim():
        parts = tuple(part.reshape(-1) for part in parts)
    else:
        parts = tuple(part.movedim(dim, -1) for part in parts)
    if not parts[0].shape[-1]:
        unsupported("an extremum of no elements", "give it at least one")
    return parts


def _restored(x: SecretTensor, parts: Parts, dim: int | None, keepdim: bool) -> Parts:
    if not keepdim:
        return parts
    if dim is None:
        return tuple(part.reshape((1,) * x.dim()) for part in parts)
    return tuple(part.unsqueeze(dim) if x.dim() else part for part in parts)


def _opposite(x: SecretTensor) -> SecretTensor:
    """Returns x in the opposite order, for comparisons only.

    Integers become words that may leave their dtype, booleans NOT x.
    """
    if x.dtype == torch.bool:
        return x.like(shares.complement(x._session, x._parts))
    return x.like(opposite(x._session, as_words(x)._parts))


@implements(aten.max.dim)
def max_dim(x: SecretTensor, dim: int, keepdim: bool = False) -> tuple[SecretTensor, SecretTensor]:
    """Returns the maxima along a dimension and their indices."""
    values, indices = tournament(
        x._session, _along(x, dim), difference_width(x._session, x._scale, x)
    )
    values, indices = _restored(x, values, dim, keepdim), _restored(x, indices, dim, keepdim)
    return restored(x, values), x.like(indices, WHOLE, torch.int64)


@implements(aten.min.dim)
def min_dim(x: SecretTensor, dim: int, keepdim: bool = False) -> tuple[SecretTensor, SecretTensor]:
    """Returns the minima along a dimension and their indices."""
    values, indices = max_dim(_opposite(x), dim, keepdim)
    return _opposite(values), indices


@implements(aten.argmax.default)
def argmax(x: SecretTensor, dim: int | None = None, keepdim: bool = False) -> SecretTensor:
    """Returns the indices of the maxima."""
    _, indices = tournament(x._session, _along(x, dim), difference_width(x._session, x._scale, x))
    return x.like(_restored(x, indices, dim, keepdim), WHOLE, torch.int64)


@implements(aten.argmin.default)
def argmin(x: SecretTensor, dim: int | None = None, keepdim: bool = False) -> SecretTensor:
    """Returns the indices of the minima."""
    return argmax(_opposite(x), dim, keepdim)


@implements(aten.amax.default)
def amax(x: SecretTensor, dim: Sequence[int] = (), keepdim: bool = False) -> SecretTensor:
    """Returns the maxima along dimensions, without indices."""
    if not x.dim():
        return x
    words, comparison = as_words(x), of_difference(x._session, x._scale, x)
    for d in sorted({d % x.dim() for d in dim} if dim else range(x.dim()), reverse=True):
        parts = greatest(x._session, _along(words, d), comparison)
        words = words.like(tuple(part.unsqueeze(d) for part in parts) if keepdim else parts)
    return restored(x, words._parts)


@implements(aten.amin.default)
def amin(x: SecretTensor, dim: Sequence[int] = (), keepdim: bool = False) -> SecretTensor:
    """Returns the minima along dimensions, without indices."""
    return _opposite(amax(_opposite(x), dim, keepdim))


@implements(aten.max.default)
def max_all(x: SecretTensor) -> SecretTensor:
    """Returns the maximum of all elements."""
    comparison = of_difference(x._session, x._scale, x)
    return restored(x, greatest(x._session, _along(x, None), comparison))


@implements(aten.min.default)
def min_all(x: SecretTensor) -> SecretTensor:
    """Returns the minimum of all elements."""
    return _opposite(max_all(_opposite(x)))


@implements(aten.maximum.default, aten.fmax.default)
def maximum(x: Any, y: Any) -> SecretTensor:
    """Returns the elementwise maximum. There is no NaN."""
    return _extremum(x, y, least=False)


@implements(aten.minimum.default, aten.fmin.default)
def minimum(x: Any, y: Any) -> SecretTensor:
    """Returns the elementwise minimum."""
    return _extremum(x, y, least=True)


def _extremum(x: Any, y: Any, *, least: bool) -> SecretTensor:
    session, dtype = session_of(x, y), result_dtype(x, y)
    if dtype == torch.bool:
        return conjunction(x, y) if least else disjunction(x, y)
    x, y = alike(x, y)
    secret, other = (x, y) if isinstance(x, SecretTensor) else (y, x)
    scale = common_scale(x, y)
    words, limit = (
        lifted(session, secret, scale),
        limit_of(session, other, secret, scale, upper=least),
    )
    words, bound = together(words, limit.parts)
    if not limit.is_free:
        comparison = of_difference(session, scale, x, y)
        bounded = (lesser if least else greater)(session, words, bound, comparison)
        words = limit.applied(words, bounded)
    return SecretTensor(tuple(part.contiguous() for part in words), scale, session, dtype)
