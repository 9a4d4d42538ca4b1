"""Comparisons. A comparison is a sign bit, of as many bits as the session's comparison width
gives numbers of that scale; of whole words three (``order``)."""

from typing import Any

import torch

from tacit import shares
from tacit.fixed import WORD
from tacit.operators.operands import (
    aligned,
    as_words,
    bits_of,
    compared,
    is_secret,
    public,
    session_of,
)
from tacit.operators.order import difference_width, less, opposite
from tacit.operators.table import implements
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _compared(x: Any, y: Any) -> tuple[Session, Parts, Parts, int]:
    """Session, x, y, and the width at which they are compared."""
    session = session_of(x, y)
    left, right, scale = aligned(x, y)
    return session, left, right, difference_width(session, scale, x, y)


@implements(aten.lt.Tensor, aten.lt.Scalar)
def lt(x: Any, y: Any) -> SecretTensor:
    """x < y. The rounds of a sign; one more of int64, but not where y is a public 0."""
    session, left, right, width = _compared(x, y)
    if width <= WORD or (is_secret(x) and is_secret(y)):
        return bits_of(session, less(session, left, right, width))
    if is_secret(x):
        return bits_of(session, less(session, left, public(y).to(torch.int64), width))
    return bits_of(session, less(session, opposite(session, right), ~public(x).to(torch.int64), width))


@implements(aten.gt.Tensor, aten.gt.Scalar)
def gt(x: Any, y: Any) -> SecretTensor:
    """x > y."""
    return lt(y, x)


@implements(aten.ge.Tensor, aten.ge.Scalar)
def ge(x: Any, y: Any) -> SecretTensor:
    """x ≥ y."""
    less = lt(x, y)
    return less.like(shares.complement(less._session, less._parts))


@implements(aten.le.Tensor, aten.le.Scalar)
def le(x: Any, y: Any) -> SecretTensor:
    """x ≤ y."""
    return ge(y, x)


@implements(aten.eq.Tensor, aten.eq.Scalar)
def eq(x: Any, y: Any) -> SecretTensor:
    """x = y, exactly as they are encoded."""
    # Modulo 2^width only zero is none, if there is no sign.
    session, left, right, width = _compared(x, y)
    return bits_of(session, shares.equal_zero(session, shares.subtract(left, right), min(width, WORD)))


@implements(aten.ne.Tensor, aten.ne.Scalar)
def ne(x: Any, y: Any) -> SecretTensor:
    """x ≠ y, exactly as they are encoded."""
    equal = eq(x, y)
    return equal.like(shares.complement(equal._session, equal._parts))


@implements(aten.sign.default, aten.sgn.default)
def sign(x: SecretTensor) -> SecretTensor:
    """−1, 0 or 1: both comparisons side by side, and a round of int64; booleans as they are."""
    if x.dtype == torch.bool:
        return x
    session, x = x._session, as_words(x)
    stacked = tuple(torch.stack([part, -part]) for part in x._parts)
    signs = shares.sign(session, stacked, compared(session, x._scale))
    if x.dtype == torch.int64:
        # The least of all is its own negative: it is less than 0, and not greater too.
        negative, positive = shares.unstacked(signs)
        positive = shares.and_bits(session, positive, shares.complement(session, negative))
        signs = shares.stacked(negative, positive)
    ones = shares.bit_to_ring(session, signs)
    return x.like(tuple((one[1] - one[0]) << x._scale.bits for one in ones))


@implements(aten.signbit.default)
def signbit(x: SecretTensor) -> SecretTensor:
    """x < 0; there is no negative zero."""
    return lt(x, 0)


@implements(aten.isnan.default, aten.isinf.default, aten.isposinf.default, aten.isneginf.default)
def never(x: SecretTensor) -> torch.Tensor:
    """Fixed-point numbers are finite."""
    return torch.zeros(x.shape, dtype=torch.bool)
