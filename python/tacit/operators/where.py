"""Selection by a secret or a public condition."""

from typing import Any

import torch

from tacit import fixed
from tacit.operators.dispatch.operands import (
    bits_of,
    common_scale,
    compared,
    is_secret,
    lifted_bits,
    number,
    placed,
    result_dtype,
    session_of,
    together,
    within,
)
from tacit.operators.dispatch.table import implements
from tacit.operators.numerics import deferred_powers, remembered_softmax
from tacit.sharings import ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Bits of a byte.
BYTE = 8


@implements(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def where(condition: torch.Tensor, x: Any, y: Any) -> SecretTensor:
    """Returns x where the condition is true, else y.

    A secret condition takes at most two rounds, a public one none. A condition of dtype uint8 is
    compared with zero first.
    """
    condition = _truth(condition)
    if number(y) == 0.0 and (later := remembered_softmax.chosen(condition, x, where)) is not None:
        return later
    session, dtype = session_of(condition, x, y), result_dtype(x, y)
    if dtype == torch.bool:
        chosen, other = lifted_bits(session, x), lifted_bits(session, y)
        if not isinstance(condition, SecretTensor):
            return bits_of(session, _by_component(condition, chosen, other))
        condition_parts, chosen, other = together(condition._parts, chosen, other)
        flips = shares.and_bits(session, condition_parts, shares.xor(chosen, other))
        return bits_of(session, shares.xor(flips, other))
    scale = common_scale(condition, x, y)
    own = next((each._scale for each in (x, y) if isinstance(each, SecretTensor)), scale)
    chosen, other = (placed(session, each, scale, own) for each in (x, y))
    if session.is_plain and is_secret(x) != is_secret(y):
        secret, plain = (chosen, other) if is_secret(x) else (other, chosen)
        ranges.check_infinite(
            session, secret[0], plain[0], fixed.unbounded(compared(session, scale))
        )
    if not isinstance(condition, SecretTensor):
        return SecretTensor(_by_component(condition, chosen, other), scale, session, dtype)
    condition_parts, chosen, other = together(condition._parts, chosen, other)
    return SecretTensor(
        shares.select(session, condition_parts, chosen, other), scale, session, dtype
    )


def _truth(condition: torch.Tensor) -> torch.Tensor:
    """Returns a condition as booleans."""
    if condition.dtype != torch.uint8:
        return condition
    if not isinstance(condition, SecretTensor):
        return condition.to(torch.bool)
    session, words = condition._session, within(condition)._parts
    return bits_of(session, shares.complement(session, shares.equal_zero(session, words, BYTE)))


def _by_component(condition: torch.Tensor, chosen: Parts, other: Parts) -> Parts:
    """Selects by a public condition, in each component."""
    return tuple(torch.where(condition, a, b) for a, b in zip(chosen, other, strict=True))


@implements(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(x: Any, mask: torch.Tensor, value: Any) -> SecretTensor:
    """Returns the value where the mask is true, else x, with the dtype of x."""
    if (later := deferred_powers.masked(x, mask, value)) is not None:
        return later
    if not x.dtype.is_floating_point and isinstance(value, float):
        value = int(value)
    if x.dtype == torch.bool:
        # Every number except zero is true.
        value = value != 0 if isinstance(value, torch.Tensor) else bool(value)
    filled = where(mask, value, x)
    return filled.like(filled._parts, dtype=x.dtype)
