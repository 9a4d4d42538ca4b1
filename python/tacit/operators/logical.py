"""Booleans: AND, OR, XOR, NOT. XOR and NOT need no interaction, AND and OR one round."""

from typing import Any

import torch

from tacit import shares
from tacit.operators.operands import bits_of, lifted_bits, session_of, together
from tacit.operators.table import implements, unsupported
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _bits(x: Any, y: Any) -> tuple[Parts, Parts]:
    for operand in (x, y):
        if not isinstance(operand, bool) and (
            not isinstance(operand, torch.Tensor) or operand.dtype != torch.bool
        ):
            unsupported("bitwise logic on numbers", "compare first: it is for booleans")
    session = session_of(x, y)
    left, right = together(lifted_bits(session, x), lifted_bits(session, y))
    return left, right


def _result(x: Any, y: Any, parts: Parts) -> SecretTensor:
    return bits_of(session_of(x, y), parts)


@implements(aten.bitwise_and.Tensor, aten.bitwise_and.Scalar, aten.logical_and.default)
def logical_and(x: Any, y: Any) -> SecretTensor:
    """x AND y; one round between secrets."""
    left, right = _bits(x, y)
    if isinstance(x, SecretTensor) and isinstance(y, SecretTensor):
        return _result(x, y, shares.and_bits(session_of(x, y), left, right))
    secret, plain = (left, y) if isinstance(x, SecretTensor) else (right, x)
    keep = torch.as_tensor(plain).to(torch.uint8)
    return _result(x, y, tuple(part & keep for part in secret))


@implements(aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar, aten.logical_xor.default)
def logical_xor(x: Any, y: Any) -> SecretTensor:
    """x XOR y; no interaction."""
    left, right = _bits(x, y)
    return _result(x, y, tuple(a ^ b for a, b in zip(left, right, strict=True)))


@implements(aten.bitwise_or.Tensor, aten.bitwise_or.Scalar, aten.logical_or.default)
def logical_or(x: Any, y: Any) -> SecretTensor:
    """x OR y = x XOR y XOR (x AND y); one round between secrets."""
    return logical_xor(logical_xor(x, y), logical_and(x, y))


@implements(aten.bitwise_not.default, aten.logical_not.default)
def logical_not(x: SecretTensor) -> SecretTensor:
    """NOT x; no interaction."""
    if x.dtype != torch.bool:
        unsupported("bitwise logic on numbers", "compare first: it is for booleans")
    return x.like(shares.complement(x._session, x._parts))
