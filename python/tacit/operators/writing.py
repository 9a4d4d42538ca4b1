"""Writes into secret tensors in place. Their views see the new values."""

from typing import Any

import torch

from tacit.operators.dispatch.hints import LIKE_A_SECRET
from tacit.operators.dispatch.operands import as_kind_of, session_of
from tacit.operators.dispatch.scales import of_target
from tacit.operators.dispatch.table import assign, implements, unsupported, writable
from tacit.operators.selection import target
from tacit.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.copy_.default, scale=of_target)
def copy_(target: torch.Tensor, value: Any, non_blocking: bool = False) -> torch.Tensor:  # noqa: ARG001
    """Copies a value into a secret tensor in place."""
    if not isinstance(target, SecretTensor):
        unsupported("copying a secret into a plain tensor", LIKE_A_SECRET)
    return assign(target, value)


@implements(aten.fill_.Scalar, aten.fill_.Tensor, scale=of_target)
def fill_(target: torch.Tensor, value: Any) -> SecretTensor:
    """Fills a secret tensor with one value in place."""
    if not isinstance(target, SecretTensor):
        unsupported("filling a plain tensor with a secret", LIKE_A_SECRET)
    return assign(target, value)


@implements(aten.fill.Scalar, aten.fill.Tensor, scale=of_target)
def fill(x: Any, value: Any) -> SecretTensor:
    """Returns a tensor like x, filled with one value."""
    x = target(x, session_of(x, value))
    value = as_kind_of(value, x)
    return x.like(tuple(part.expand(x.shape).clone() for part in value._parts))


@implements(aten.zero_.default, scale=of_target)
def zero_(target: SecretTensor) -> SecretTensor:
    """Fills a secret tensor with zeros in place."""
    for part in writable(target):
        part.zero_()
    target._session.dependencies.overwritten(target._parts)
    return target
