"""Layers that act differently in training: batch normalisation with secret statistics, dropout."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tacit

torch.manual_seed(3)

NORMS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "1d": (lambda: nn.BatchNorm1d(5), torch.randn(8, 5) * 3 + 2),
    "2d": (lambda: nn.BatchNorm2d(3, momentum=0.3), torch.randn(4, 3, 5, 5)),
    "3d": (lambda: nn.BatchNorm3d(2, eps=1e-2), torch.randn(2, 2, 3, 3, 3) * 20),
    "average of all": (lambda: nn.BatchNorm1d(5, momentum=None), torch.randn(8, 5)),
    "without parameters": (lambda: nn.BatchNorm1d(5, affine=False), torch.randn(8, 5)),
    "without statistics": (
        lambda: nn.BatchNorm2d(3, track_running_stats=False),
        torch.randn(4, 3, 5, 5),
    ),
    "instance": (
        lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        torch.randn(4, 3, 5, 5),
    ),
}


def trained(norm: nn.Module, x: torch.Tensor, weights: torch.Tensor) -> dict[str, Any]:
    """Returns results of two training batches and an evaluation, gradients, and statistics."""
    x = x.detach().requires_grad_()
    found: dict[str, Any] = {}
    for batch in (x, x * 0.5 + 1.0):
        found[f"batch {len(found)}"] = result = norm(batch)
        (result * weights).sum().backward()
    found["gradient"] = x.grad
    found |= {name: parameter.grad for name, parameter in norm.named_parameters()}
    found |= dict(norm.named_buffers())
    found["evaluated"] = norm.eval()(x)
    return {name: value.detach() for name, value in found.items()}


def made(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    norm, x = NORMS[name][0](), NORMS[name][1]
    for parameter in norm.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
    return norm, x, torch.randn(x.shape, generator=generator)


def secretly_trained(name: str) -> dict[str, Any]:
    """Runs in a party. Trains a shared layer on secret data and reveals the results."""
    norm, x, weights = made(name)
    found = trained(
        tacit.share_module(norm, owner=0, trainable=True), tacit.share(x, owner=1), weights
    )
    return {
        n: each.reveal() if isinstance(each, tacit.SecretTensor) else each
        for n, each in found.items()
    }


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("protocol", ["plain", "replicated"])
def test_batch_normalisation(name: str, protocol: str) -> None:
    expected = trained(*made(name))
    found = tacit.launch(secretly_trained, name, protocol=protocol)[0]
    assert found.keys() == expected.keys()
    for what, value in found.items():
        assert value.shape == expected[what].shape
        assert torch.allclose(value.double(), expected[what].double(), rtol=2e-3, atol=4e-3), what


def test_what_is_the_same_everywhere_is_normalised_to_its_bias() -> None:
    def program() -> torch.Tensor:
        norm = tacit.share_module(nn.BatchNorm1d(3), owner=0, trainable=True)
        return norm(tacit.share(torch.full((4, 3), 7.25), owner=1)).detach().reveal()

    assert torch.equal(tacit.launch(program)[0], torch.zeros(4, 3))


def test_statistics_of_secrets_are_not_written_into_plain_ones() -> None:
    with pytest.raises(tacit.UnsupportedOperatorError, match="plain running statistics"):
        tacit.launch(lambda: nn.BatchNorm1d(3)(tacit.share(torch.ones(4, 3), owner=1)))


def test_dropout_by_a_mask_that_nobody_knows_or_all() -> None:
    x = torch.ones(40, 50)

    def program(publicly: bool) -> tuple[torch.Tensor, torch.Tensor, int]:
        secret, layer = tacit.share(x, owner=0).requires_grad_(), nn.Dropout(0.25)
        before = tacit.session().meter.total
        if publicly:
            with tacit.public_random():
                result = layer(secret)
        else:
            result = layer(secret)
        result.sum().backward()
        spent = (tacit.session().meter.total - before).payload_bytes
        assert layer.eval()(secret) is secret
        gradient = (
            secret.grad.reveal() if isinstance(secret.grad, tacit.SecretTensor) else secret.grad
        )
        return result.detach().reveal(), gradient, spent

    costs = []
    for publicly in (False, True):
        outcomes = tacit.launch(program, publicly)
        costs.append(sum(spent for _, _, spent in outcomes))
        for result, gradient, _ in outcomes:
            assert torch.equal(result, outcomes[0][0])
            kept = result > 0.5
            assert torch.allclose(result, kept * (4 / 3), atol=1e-3)
            assert torch.allclose(gradient, kept * (4 / 3), atol=1e-3)
            # Of 2,000 elements, 1,500 are expected to stay. The bound is six standard deviations.
            assert abs(int(kept.sum()) - 1500) < 120
    assert costs[1] < costs[0]


def test_a_model_that_is_copied_trains_on() -> None:
    def program() -> bool:
        model = tacit.share_module(nn.Linear(2, 2), owner=0, trainable=True)
        other = copy.deepcopy(model)
        other(tacit.share(torch.ones(1, 2), owner=0)).sum().backward()
        torch.optim.SGD(other.parameters(), lr=1.0).step()
        return bool(
            (model.weight.detach().reveal() - other.weight.detach().reveal() - 1).abs().max() < 1e-3
        )

    assert all(tacit.launch(program))


@pytest.mark.parametrize(
    "setting", [{}, {"parties": 2, "protocol": "additive", "source": "dealer"}]
)
def test_the_gradient_of_relu_compares_nothing_again(setting: dict[str, Any]) -> None:
    x = torch.tensor([[-1.5, 0.0, 2.0**-16, 3.25] * 100])
    weights = torch.arange(400.0).reshape(1, 400) + 1

    def program(inplace: bool, written: bool) -> tuple[torch.Tensor, torch.Tensor, int]:
        secret = tacit.share(x, owner=0).requires_grad_()
        result = nn.ReLU(inplace)(secret * 1)
        if written:
            # Record a write, as an operator that writes does.
            tacit.session().storages.written(result._parts[0])
        before = tacit.session().meter.total
        result.backward(weights)
        spent = (tacit.session().meter.total - before).payload_bytes
        return result.detach().reveal(), secret.grad.reveal(), spent

    spent = {}
    for inplace, written in ((False, False), (True, False), (False, True)):
        outcomes = tacit.launch(program, inplace, written, **setting)
        spent[inplace, written] = sum(each for _, _, each in outcomes)
        assert torch.equal(outcomes[0][0], x.relu())
        assert torch.equal(outcomes[0][1], weights * (x > 0))
    assert spent[False, False] == spent[True, False]
    # After a write, the comparison must be computed again.
    assert 2 * spent[False, False] < spent[False, True]


def test_what_a_relu_keeps_goes_with_its_result() -> None:
    def program() -> list[int]:
        layer, counts = nn.Linear(3, 3), []
        tacit.share_module(layer, owner=0, trainable=True)
        kept = tacit.session().storages._derived
        for _ in range(3):
            torch.relu(
                layer(torch.relu(layer(tacit.share(torch.ones(2, 3), owner=1))))
            ).sum().backward()
            counts.append(len(kept))
        with torch.no_grad():
            torch.relu(layer(tacit.share(torch.ones(2, 3), owner=1)))
        counts.append(len(kept))
        return counts

    counts = tacit.launch(program)[0]
    assert max(counts) <= 4, counts


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    ("protocol", "parties", "source"), [("plain", 2, None), ("replicated", 3, None)]
)
def test_weights_that_are_normalised_are_trained(
    protocol: str, parties: int, source: str | None, dim: int
) -> None:
    torch.manual_seed(6)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    for layer in (model[0], model[2]):
        torch.nn.utils.parametrizations.weight_norm(layer, dim=dim)
    x = torch.randn(7, 5)

    def program() -> list[torch.Tensor]:
        secret = tacit.share_module(model, owner=0, trainable=True)
        secret(tacit.share(x, owner=1)).square().sum().backward()
        return [each.grad.reveal() for each in secret.parameters()]

    found = tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]
    model(x).square().sum().backward()
    for mine, parameter in zip(found, model.parameters(), strict=True):
        assert parameter.grad is not None
        assert torch.allclose(mine, parameter.grad, rtol=5e-3, atol=5e-3), (mine, parameter.grad)
