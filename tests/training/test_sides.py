"""Public parts of training need no communication: weights, data, and frozen layers."""

from typing import Any

import pytest
import torch
from torch import nn

import tacit

torch.manual_seed(2)
INPUTS, TARGETS = torch.randn(6, 5), torch.randn(6, 2)

Traffic = dict[str, int]


class Net(nn.Module):
    """A model of two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(5, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns two outputs."""
        return self.second(self.first(x))


def traffic(step: Any) -> tuple[int, int]:
    """Runs in a party. Returns the rounds and bytes of a program."""
    before = tacit.session().meter.total
    step()
    spent = tacit.session().meter.total - before
    return spent.rounds, spent.payload_bytes


def gradient_error(model: nn.Module, plain: nn.Module, names: list[str]) -> float:
    """Returns the greatest error of the named gradients."""
    mine, theirs = dict(model.named_parameters()), dict(plain.named_parameters())
    revealed = [
        grad.reveal() if isinstance(grad := mine[name].grad, tacit.SecretTensor) else grad
        for name in names
    ]
    return max(
        float((found - theirs[name].grad).abs().max())
        for found, name in zip(revealed, names, strict=True)
    )


def step(model: nn.Module, x: Any, y: Any) -> None:
    """Computes the gradients of a loss."""
    (model(x) - y).square().mean().backward()


def plain_net() -> Net:
    """Returns a plain model with the gradients of a step."""
    plain = Net()
    step(plain, INPUTS, TARGETS)
    return plain


@pytest.mark.parametrize(("protocol", "parties"), [("replicated", 3), ("additive", 2)])
def test_public_sides_cost_no_communication(protocol: str, parties: int) -> None:
    def program() -> dict[str, Any]:
        found: dict[str, Any] = {}
        x, y = tacit.share(INPUTS, owner=1), tacit.share(TARGETS, owner=1)

        # The weights of the last layer are private. The data and the first layer are public, so the
        # first layer is computed in the clear.
        model = Net()
        model.first.requires_grad_(False)
        tacit.share_module(model.second, owner=0, trainable=True)
        found["public first layer of public data"] = traffic(lambda: model.first(INPUTS))
        step(model, INPUTS, y)
        found["error of the last layer"] = gradient_error(
            model, plain_net(), ["second.weight", "second.bias"]
        )
        assert model.first.weight.grad is None

        # Products with public whole numbers send no message, and the gradient is public.
        whole = torch.arange(12).reshape(3, 4) - 5
        weight = tacit.share(torch.ones(4), owner=0).requires_grad_()
        found["whole public data"] = traffic(lambda: (weight * whole).sum().backward())
        found["whole gradient"] = weight.grad

        # Fine-tuning: no gradient is computed for a frozen secret part, and nothing flows back into
        # it.
        tuned = tacit.share_module(Net(), owner=0)
        tuned.second.requires_grad_(True)
        features = tuned.first(x)
        assert not features.requires_grad
        loss = (tuned.second(features) - y).square().mean()
        found["back through the last layer"] = traffic(loss.backward)
        found["error of tuning"] = gradient_error(
            tuned, plain_net(), ["second.weight", "second.bias"]
        )
        assert tuned.first.weight.grad is None

        everything = tacit.share_module(Net(), owner=0, trainable=True)
        loss = (everything(x) - y).square().mean()
        found["back through all layers"] = traffic(loss.backward)
        found["error of all"] = gradient_error(
            everything, plain_net(), ["first.weight", "first.bias", "second.weight", "second.bias"]
        )

        # Public whole weights on private data: the product is local.
        public = nn.Linear(5, 4)
        with torch.no_grad():
            public.weight.copy_(torch.randint(-3, 4, (4, 5)).float())
            public.bias.zero_()
        found["public whole weights"] = traffic(lambda: public(x))

        # Products with public fractions are truncated. Only the truncation of the results sends
        # messages, however many weights there are.
        for inputs in (5, 500):
            layer, wide = nn.Linear(inputs, 4), x.repeat(1, inputs // 5)
            with torch.no_grad():
                layer.weight.copy_(torch.arange(4 * inputs).reshape(4, inputs) % 7 / 8 - 0.375)
            found[f"public fractions, {inputs}"] = traffic(
                lambda layer=layer, wide=wide: layer(wide)
            )
        results = x[:, :4].clone()
        found["a truncation of as many"] = traffic(lambda: results * 0.375)
        return found

    source = "dealer" if protocol == "additive" else None
    results = tacit.launch(program, parties=parties, protocol=protocol, source=source)
    rounds = [
        max(each[name][0] for each in results)
        for name in ("back through the last layer", "back through all layers")
    ]
    assert rounds[0] < rounds[1]
    for found in results:
        assert found["public first layer of public data"] == (0, 0)
        assert found["whole public data"] == (0, 0)
        assert not isinstance(found["whole gradient"], tacit.SecretTensor)
        assert torch.equal(
            found["whole gradient"], (torch.arange(12).reshape(3, 4) - 5).sum(0).float()
        )
        assert found["public whole weights"] == (0, 0)
        truncated = found["a truncation of as many"][1]
        assert truncated > 0
        assert found["public fractions, 5"][1] == found["public fractions, 500"][1] == truncated
        assert found["back through the last layer"][1] < found["back through all layers"][1]
        for name in ("error of the last layer", "error of tuning", "error of all"):
            assert found[name] < 1e-3
