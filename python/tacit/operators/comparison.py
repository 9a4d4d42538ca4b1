"""Comparisons and choices. A comparison is a sign bit, of as many bits as the session's comparison width
gives numbers of that scale."""

from typing import Any

import torch

from tacit import shares
from tacit.fixed import WHOLE
from tacit.operators.operands import (
    aligned,
    as_words,
    common_scale,
    compared,
    lifted,
    lifted_bits,
    result_dtype,
    session_of,
    together,
)
from tacit.operators.scales import of_target
from tacit.operators.table import assign, implements, unsupported, writable
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _difference(x: Any, y: Any) -> tuple[Session, Parts, int]:
    """Session, x − y, and the width at which it is compared."""
    session = session_of(x, y)
    left, right, scale = aligned(x, y)
    return session, shares.subtract(left, right), compared(session, scale)


def _bits(session: Session, parts: Parts) -> SecretTensor:
    return SecretTensor(parts, WHOLE, session, torch.bool)


@implements(aten.lt.Tensor, aten.lt.Scalar)
def lt(x: Any, y: Any) -> SecretTensor:
    """x < y."""
    session, difference, width = _difference(x, y)
    return _bits(session, shares.sign(session, difference, width))


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
    session, difference, width = _difference(x, y)
    return _bits(session, shares.equal_zero(session, difference, width))


@implements(aten.ne.Tensor, aten.ne.Scalar)
def ne(x: Any, y: Any) -> SecretTensor:
    """x ≠ y, exactly as they are encoded."""
    equal = eq(x, y)
    return equal.like(shares.complement(equal._session, equal._parts))


@implements(aten.sign.default, aten.sgn.default)
def sign(x: SecretTensor) -> SecretTensor:
    """−1, 0 or 1: both comparisons side by side."""
    session, x = x._session, as_words(x)
    stacked = tuple(torch.stack([part, -part]) for part in x._parts)
    ones = shares.bit_to_ring(session, shares.sign(session, stacked, compared(session, x._scale)))
    return x.like(tuple((one[1] - one[0]) << x._scale.bits for one in ones))


@implements(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def where(condition: torch.Tensor, x: Any, y: Any) -> SecretTensor:
    """x where the condition holds, else y. At most two rounds for a secret condition, else none."""
    session, dtype = session_of(condition, x, y), result_dtype(x, y)
    if dtype == torch.bool:
        chosen, other = lifted_bits(session, x), lifted_bits(session, y)
        if not isinstance(condition, SecretTensor):
            return _bits(session, _by_component(condition, chosen, other))
        condition_parts, chosen, other = together(condition._parts, chosen, other)
        flips = tuple(a ^ b for a, b in zip(chosen, other, strict=True))
        flips = shares.and_bits(session, condition_parts, flips)
        return _bits(session, tuple(a ^ b for a, b in zip(flips, other, strict=True)))
    scale = common_scale(condition, x, y)
    chosen, other = lifted(session, x, scale), lifted(session, y, scale)
    if not isinstance(condition, SecretTensor):
        return SecretTensor(_by_component(condition, chosen, other), scale, session, dtype)
    condition_parts, chosen, other = together(condition._parts, chosen, other)
    change = shares.bit_multiply(session, condition_parts, shares.subtract(chosen, other))
    return SecretTensor(shares.add(other, change), scale, session, dtype)


def _by_component(condition: torch.Tensor, chosen: Parts, other: Parts) -> Parts:
    """A public choice, component by component."""
    return tuple(torch.where(condition, a, b) for a, b in zip(chosen, other, strict=True))


@implements(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(x: Any, mask: torch.Tensor, value: Any) -> SecretTensor:
    """The value where the mask holds, else x, with the dtype of x."""
    if not x.dtype.is_floating_point and isinstance(value, float):
        value = int(value)
    filled = where(mask, value, x)
    return filled.like(filled._parts, dtype=x.dtype)


@implements(aten.isnan.default, aten.isinf.default)
def never(x: SecretTensor) -> torch.Tensor:
    """Fixed-point numbers are finite."""
    return torch.zeros(x.shape, dtype=torch.bool)


@implements(aten.copy_.default, scale=of_target)
def copy_(target: torch.Tensor, value: Any, non_blocking: bool = False) -> torch.Tensor:  # noqa: ARG001
    """Writes a value into a secret tensor."""
    if not isinstance(target, SecretTensor):
        unsupported("copying a secret into a plain tensor", "share the target first")
    return assign(target, value)


@implements(aten.fill_.Scalar, aten.fill_.Tensor, scale=of_target)
def fill_(target: SecretTensor, value: Any) -> SecretTensor:
    """Writes one value everywhere."""
    return assign(target, value)


@implements(aten.zero_.default, scale=of_target)
def zero_(target: SecretTensor) -> SecretTensor:
    """Writes zeros everywhere."""
    for part in writable(target):
        part.zero_()
    return target
