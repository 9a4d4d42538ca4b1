"""Booleans: AND, OR, XOR, NOT. XOR and NOT need no interaction, AND and OR one round. Numbers count as
whether they are not zero, which is a comparison."""

from typing import Any

import torch

from tacit import shares
from tacit.operators.comparison import eq, ne
from tacit.operators.operands import bits_of, lifted_bits, public, session_of, together
from tacit.operators.table import implements
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _truth(x: Any) -> Any:
    """Any operand as a boolean."""
    if isinstance(x, SecretTensor):
        return x if x.dtype == torch.bool else ne(x, 0)
    return public(x) != 0


def _result(x: Any, y: Any, parts: Parts) -> SecretTensor:
    return bits_of(session_of(x, y), parts)


@implements(aten.logical_and.default)
def logical_and(x: Any, y: Any) -> SecretTensor:
    """x AND y; one round between secrets."""
    x, y = _truth(x), _truth(y)
    if isinstance(x, SecretTensor) and isinstance(y, SecretTensor):
        return _result(x, y, shares.and_bits(x._session, *together(x._parts, y._parts)))
    secret, plain = (x, y) if isinstance(x, SecretTensor) else (y, x)
    return _result(x, y, tuple(part & plain.to(torch.uint8) for part in secret._parts))


@implements(aten.logical_xor.default)
def logical_xor(x: Any, y: Any) -> SecretTensor:
    """x XOR y; no interaction."""
    session, x, y = session_of(x, y), _truth(x), _truth(y)
    left, right = together(lifted_bits(session, x), lifted_bits(session, y))
    return _result(x, y, tuple(a ^ b for a, b in zip(left, right, strict=True)))


@implements(aten.logical_or.default)
def logical_or(x: Any, y: Any) -> SecretTensor:
    """x OR y = x XOR y XOR (x AND y); one round between secrets."""
    x, y = _truth(x), _truth(y)
    return logical_xor(logical_xor(x, y), logical_and(x, y))


@implements(aten.logical_not.default)
def logical_not(x: SecretTensor) -> SecretTensor:
    """NOT x; no interaction for booleans."""
    if x.dtype != torch.bool:
        return eq(x, 0)
    return x.like(shares.complement(x._session, x._parts))
