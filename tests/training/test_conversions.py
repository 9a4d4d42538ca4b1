"""A secret module's to(), cpu() and double() work while a graph or gradients exist."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit

X = torch.tensor([[1.0, -2.0, 0.5], [0.25, 1.5, -1.0]])


def before_backward(model: nn.Module, x: Any) -> None:
    loss = model(x).square().sum()
    model.cpu()
    loss.backward()


def after_backward(model: nn.Module, x: Any) -> None:
    loss = model(x).square().sum()
    loss.backward()
    model.double()
    model(x.double()).sum().backward()


def between_steps(model: nn.Module, x: Any) -> None:
    steps = torch.optim.SGD(model.parameters(), 0.1, momentum=0.5)
    for to in (torch.float64, torch.float32):
        steps.zero_grad()
        model(x).square().sum().backward()
        steps.step()
        model.to("cpu", to)
        x = x.to(to)


@pytest.mark.parametrize("converted", [before_backward, after_backward, between_steps])
def test_a_module_is_converted_while_gradients_are_there(converted: Callable[..., None]) -> None:
    torch.manual_seed(1)
    plain = nn.Linear(3, 2)
    weights = {name: each.clone() for name, each in plain.state_dict().items()}

    def trained(model: nn.Module, x: Any) -> list[Any]:
        same = [*model.parameters()]
        converted(model, x)
        assert all(one is other for one, other in zip(model.parameters(), same, strict=True))
        return [*(each.detach() for each in same), *(each.grad for each in same)]

    def program() -> list[torch.Tensor]:
        model = nn.Linear(3, 2)
        model.load_state_dict(weights)
        secret = tacit.share_module(model, owner=0, trainable=True)
        return [each.reveal() for each in trained(secret, tacit.share(X, owner=1))]

    for found, wanted in zip(tacit.launch(program)[0], trained(plain, X), strict=True):
        assert found.dtype == wanted.dtype
        assert (found - wanted).abs().max() < 1e-3
