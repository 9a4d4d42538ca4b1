"""Objects that refer to a module's parameters keep working after ``share_module``.

Optimisers, hooks and attributes then apply to the secret parameters.
"""

import copy
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
Y = X @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]])

Make = Callable[[nn.Module], list[torch.optim.Optimizer]]


class Tied(nn.Module):
    """Two layers that share one weight, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))


def model() -> Tied:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return Tied()


MAKES: dict[str, Make] = {
    "one": lambda m: [torch.optim.SGD(m.parameters(), lr=0.02, momentum=0.9)],
    "groups": lambda m: [
        torch.optim.Adam(
            [{"params": m.first.parameters()}, {"params": m.head.parameters(), "lr": 0.1}], lr=0.02
        )
    ],
    "several": lambda m: [
        torch.optim.Adagrad(m.first.parameters(), lr=0.1),
        torch.optim.RMSprop([m.second.bias, *m.head.parameters()], lr=0.02),
    ],
    "some parameters": lambda m: [torch.optim.AdamW(m.head.parameters(), lr=0.1)],
}


def trained(make: Make, when: str, protocol: str | None = None) -> list[torch.Tensor]:
    """Returns the parameters after some optimiser steps.

    The optimisers are created before sharing, after sharing, or for plain parameters.
    """

    def program() -> list[torch.Tensor]:
        module = model()
        optimizers = make(module) if when == "before" else []
        schedulers = [torch.optim.lr_scheduler.ExponentialLR(each, 0.5) for each in optimizers]
        x, y = X, Y
        if when != "plain":
            tacit.share_module(module, owner=1, trainable=True)
            x, y = tacit.share(X, owner=0), tacit.share(Y, owner=1)
        if not optimizers:
            optimizers = make(module)
            schedulers = [torch.optim.lr_scheduler.ExponentialLR(each, 0.5) for each in optimizers]
        for _ in range(3):
            for optimizer in optimizers:
                optimizer.zero_grad()
            nn.functional.mse_loss(module(x), y).backward()
            for optimizer, scheduler in zip(optimizers, schedulers, strict=True):
                optimizer.step()
                scheduler.step()
        found = [each.detach() for each in module.parameters()]
        return found if when == "plain" else [each.reveal() for each in found]

    if when == "plain":
        return program()
    chosen = {} if protocol is None else {"protocol": protocol, "parties": 2}
    result: list[torch.Tensor] = tacit.launch(program, **chosen)[2 if protocol is None else 1]
    return result


@pytest.mark.parametrize("name", MAKES)
def test_optimizers(name: str) -> None:
    make = MAKES[name]
    before = trained(make, "before", "plain")
    for mine, same, plain in zip(
        before, trained(make, "after", "plain"), trained(make, "plain"), strict=True
    ):
        assert torch.equal(mine, same)
        assert torch.allclose(mine, plain, atol=2e-3, rtol=2e-2)
    assert not torch.allclose(before[-1], model().head.bias, atol=0.02)


def test_an_optimizer_in_a_secret_run() -> None:
    make = MAKES["one"]
    for mine, plain in zip(trained(make, "before"), trained(make, "plain"), strict=True):
        assert torch.allclose(mine, plain, atol=2e-3, rtol=2e-2)


def test_objects_hooks_and_attributes_stay() -> None:
    def program() -> list[str]:
        module, seen = model(), []
        weight = module.first.weight
        reference, ids = weakref.ref(weight), [id(each) for each in module.parameters()]
        weight.mine = "an attribute"
        handle = weight.register_hook(
            lambda gradient: seen.append(f"hook {type(gradient).__name__}")
        )
        weight.register_hook(lambda gradient: gradient * 0)
        weight.register_post_accumulate_grad_hook(
            lambda parameter: seen.append(
                f"accumulated {type(parameter.grad).__name__} {parameter is weight}"
            )
        )
        module.register_forward_hook(lambda *_: seen.append("forward"))
        module.head.register_full_backward_hook(lambda *_: seen.append("backward"))
        view, alive = weight.view(-1), module(X).sum()
        alive.backward(retain_graph=True)
        seen.clear()
        tacit.share_module(module, owner=0, trainable=True)
        assert [id(each) for each in module.parameters()] == ids
        assert reference() is weight is module.first.weight is module.second.weight
        assert isinstance(weight, tacit.SecretTensor)
        assert isinstance(weight, nn.Parameter)
        assert weight.mine == "an attribute"
        assert weight.grad is None
        assert weight.requires_grad
        assert not isinstance(view, tacit.SecretTensor)
        module(tacit.share(X, owner=1)).sum().backward()
        assert not weight.grad.reveal().any()
        handle.remove()
        module(tacit.share(X, owner=1)).sum().backward()
        with pytest.raises(tacit.MisuseError, match="before share_module"):
            alive.backward()
        return seen

    passes = ["forward", "backward", "hook SecretTensor", "accumulated SecretTensor True"]
    for seen in tacit.launch(program, protocol="plain", parties=2):
        assert seen == [*passes, *(each for each in passes if not each.startswith("hook"))]


def test_hooks_of_what_is_not_trained_wait() -> None:
    def program() -> list[int]:
        module, seen = nn.Linear(4, 1), []
        module.weight.register_hook(lambda _: seen.append(1))
        tacit.share_module(module, owner=0)
        assert not module.weight.requires_grad
        x = tacit.share(X, owner=1)
        module(x)
        module.requires_grad_()
        module(x).sum().backward()
        return seen

    assert tacit.launch(program, protocol="plain", parties=2) == [[1], [1]]


def _weight_norm(module: nn.Module) -> nn.Module:
    return nn.utils.parametrizations.weight_norm(module)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "build",
    [
        lambda: _weight_norm(nn.Linear(4, 3)),
        lambda: nn.utils.weight_norm(nn.Linear(4, 3)),
        lambda: nn.LSTM(4, 3),
        lambda: nn.MultiheadAttention(4, 2),
    ],
    ids=["parametrisation", "weight_norm", "LSTM", "attention"],
)
def test_modules_that_keep_their_parameters_elsewhere(build: Callable[[], nn.Module]) -> None:
    """Some modules keep parameters in live graphs, in lists, or by weak references."""

    def program() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        def loss(module: nn.Module, x: torch.Tensor) -> Any:
            found = module(x, x, x) if isinstance(module, nn.MultiheadAttention) else module(x)
            return (found[0] if isinstance(found, tuple) else found).square().mean()

        with torch.random.fork_rng():
            torch.manual_seed(2)
            module, plain = build(), build()
        plain.load_state_dict(module.state_dict())
        optimizer, other = (torch.optim.SGD(each.parameters(), lr=0.5) for each in (module, plain))
        tacit.share_module(module, owner=0, trainable=True)
        secret = tacit.share(X, owner=1)
        for _ in range(2):
            for each, x, step in ((module, secret, optimizer), (plain, X, other)):
                step.zero_grad()
                loss(each, x).backward()
                step.step()
        return [each.detach().reveal() for each in module.parameters()], list(plain.parameters())

    for mine, plain in zip(*tacit.launch(program, protocol="plain", parties=2)[0], strict=True):
        assert torch.allclose(mine, plain, atol=1e-3)


def test_parts_that_share_a_weight() -> None:
    def program() -> torch.Tensor:
        module = model()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
        tacit.share_module(module.first, owner=0, trainable=True)
        tacit.share_module(module.second, owner=0, trainable=True)
        tacit.share_module(module, owner=1, trainable=True)
        with pytest.raises(tacit.MisuseError, match="shared already"):
            tacit.share_module(module, owner=1, trainable=True)
        average = copy.deepcopy(module)
        nn.functional.mse_loss(module(tacit.share(X, owner=0)), tacit.share(Y, owner=1)).backward()
        optimizer.step()
        assert average.second.weight is average.first.weight is not module.first.weight
        assert torch.allclose(average.first.weight.reveal(), model().first.weight, atol=1e-4)
        return module.first.weight.reveal()

    found = tacit.launch(program, protocol="plain", parties=2)[0]
    assert not torch.allclose(found, model().first.weight, atol=1e-3)


def _continued(ratio: float) -> list[list[torch.Tensor]]:
    """Runs momentum steps on public data and one step on secret data.

    Party 1 scales its public data by the ratio. Returns the differences from plain steps.
    """

    def program() -> list[torch.Tensor]:
        module, x = model(), X * (ratio if tacit.session().party else 1.0)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            nn.functional.mse_loss(module(x), Y).backward()
            optimizer.step()
        plain = copy.deepcopy(module), copy.deepcopy(optimizer.state_dict())
        tacit.share_module(module, owner=0, trainable=True)
        optimizer.zero_grad()
        nn.functional.mse_loss(module(tacit.share(X, owner=0)), tacit.share(Y, owner=1)).backward()
        optimizer.step()
        other = torch.optim.SGD(plain[0].parameters(), lr=0.01, momentum=0.9)
        other.load_state_dict(plain[1])
        other.zero_grad()
        nn.functional.mse_loss(plain[0](X), Y).backward()
        other.step()
        return [
            (mine.reveal() - each).detach()
            for mine, each in zip(module.parameters(), plain[0].parameters(), strict=True)
        ]

    result: list[list[torch.Tensor]] = tacit.launch(program)
    return result


def test_momentum_of_steps_before_sharing_is_public() -> None:
    assert all(each.abs().max() < 1e-3 for each in _continued(1.0)[2])
    with pytest.raises(tacit.PeerError, match="public values of this party"):
        _continued(1.5)
