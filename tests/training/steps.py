"""Compares a training step on secrets with the same step on plain tensors."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import tacit

Loss = Callable[[torch.Tensor, Any], torch.Tensor]


def relative_errors(
    model: nn.Module, x: torch.Tensor, y: Any, loss: Loss, **setting: Any
) -> dict[str, float]:
    """Returns the relative errors of the loss and of each parameter's gradient, by norm.

    The model, the data and the targets are secret.
    """

    def program() -> dict[str, torch.Tensor]:
        secret = tacit.share_module(copy.deepcopy(model), owner=0, trainable=True)
        value = loss(secret(tacit.share(x, owner=1)), tacit.share(y, owner=1))
        value.backward()
        found = {name: parameter.grad for name, parameter in secret.named_parameters()}
        return {name: each.reveal() for name, each in [("loss", value.detach()), *found.items()]}

    plain = copy.deepcopy(model)
    value = loss(plain(x), y)
    value.backward()
    expected = {name: parameter.grad for name, parameter in plain.named_parameters()} | {
        "loss": value.detach()
    }
    found = tacit.launch(program, **setting)[0]
    assert found.keys() == expected.keys()
    norm = torch.stack([each.norm() for name, each in expected.items() if name != "loss"]).norm()
    total = (
        torch.stack([(found[n] - expected[n]).norm() for n in expected if n != "loss"]).norm()
        / norm
    )
    errors = {
        n: float((found[n] - expected[n]).norm() / expected[n].norm().clamp(min=1e-6))
        for n in expected
    }
    return errors | {"all gradients": float(total)}


def classes(count: int, size: int) -> torch.Tensor:
    """Returns class numbers below count."""
    return torch.arange(size) * 7 % count
