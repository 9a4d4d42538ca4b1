"""Losses that PyTorch has in one operator, and whose own composition would leave the range."""

from typing import Any

import torch

from tacit.operators import approximation
from tacit.operators.arithmetic import mul, neg
from tacit.operators.operands import rescaled
from tacit.operators.scales import of_session
from tacit.operators.table import implements
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: PyTorch's numbers for what becomes of many losses.
MEAN, SUM = 1, 2


@implements(aten.soft_margin_loss.default, scale=of_session)
def soft_margin_loss(x: Any, target: Any, reduction: int = MEAN) -> SecretTensor:
    """ln(1 + exp(−x·target)), by a softplus: PyTorch takes an exponential of any size."""
    losses: Any = approximation.softplus(neg(mul(x, target)))
    if reduction == MEAN:
        losses = losses.mean()
    elif reduction == SUM:
        losses = losses.sum()
    return rescaled(losses, losses._session.scale)
