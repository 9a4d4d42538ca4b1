"""Values written into secret tensors, which their views see."""

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
    """Writes a value into a secret tensor."""
    if not isinstance(target, SecretTensor):
        unsupported("copying a secret into a plain tensor", LIKE_A_SECRET)
    return assign(target, value)


@implements(aten.fill_.Scalar, aten.fill_.Tensor, scale=of_target)
def fill_(target: torch.Tensor, value: Any) -> SecretTensor:
    """Writes one value everywhere."""
    if not isinstance(target, SecretTensor):
        unsupported("filling a plain tensor with a secret", LIKE_A_SECRET)
    return assign(target, value)


@implements(aten.fill.Scalar, aten.fill.Tensor, scale=of_target)
def fill(x: Any, value: Any) -> SecretTensor:
    """A tensor like x that has one value everywhere."""
    x = target(x, session_of(x, value))
    value = as_kind_of(value, x)
    return x.like(tuple(part.expand(x.shape).clone() for part in value._parts))


@implements(aten.zero_.default, scale=of_target)
def zero_(target: SecretTensor) -> SecretTensor:
    """Writes zeros everywhere."""
    for part in writable(target):
        part.zero_()
    target._session.dependencies.overwritten(target._parts)
    return target
