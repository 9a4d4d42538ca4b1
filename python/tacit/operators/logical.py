"""Boolean operators: AND, OR, XOR, NOT.

XOR and NOT need no interaction, AND and OR one round. A number counts as true if it is not zero,
which takes a comparison.
"""

from typing import Any

import torch

from tacit.operators.comparison import eq, ne
from tacit.operators.composed import composes
from tacit.operators.dispatch.operands import (
    bits_of,
    conjunction,
    disjunction,
    lifted_bits,
    public,
    session_of,
    together,
)
from tacit.operators.dispatch.table import implements
from tacit.sharings import shares
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _truth(x: Any) -> Any:
    """Returns any operand as a boolean."""
    if isinstance(x, SecretTensor):
        return x if x.dtype == torch.bool else ne(x, 0)
    return public(x) != 0


@implements(aten.logical_and.default)
def logical_and(x: Any, y: Any) -> SecretTensor:
    """Returns x AND y. One round between secrets."""
    return conjunction(_truth(x), _truth(y))


@implements(aten.logical_xor.default)
def logical_xor(x: Any, y: Any) -> SecretTensor:
    """Returns x XOR y. No interaction."""
    session, x, y = session_of(x, y), _truth(x), _truth(y)
    left, right = together(lifted_bits(session, x), lifted_bits(session, y))
    return bits_of(session, shares.xor(left, right))


@implements(aten.logical_or.default)
def logical_or(x: Any, y: Any) -> SecretTensor:
    """Returns x OR y. One round between secrets."""
    return disjunction(_truth(x), _truth(y))


@implements(aten.logical_not.default)
def logical_not(x: SecretTensor) -> SecretTensor:
    """Returns NOT x. No interaction for booleans."""
    if x.dtype != torch.bool:
        return eq(x, 0)
    return x.like(shares.complement(x._session, x._parts))


@composes(aten.isfinite.default)
def isfinite(x: torch.Tensor) -> torch.Tensor:
    """Returns true everywhere, since all fixed-point numbers are finite.

    PyTorch composes it of comparisons.
    """
    return torch.ones_like(x, dtype=torch.bool)
