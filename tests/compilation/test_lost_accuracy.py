"""Networks that classify digits lose no accuracy by compilation, on images that were not used to
choose scales.

Their programs never send more than their models.
"""

import functools
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit
from models import spent
from tacit.compilation.program import Program
from tacit.compilation.try_model import tried
from tacit.compilation.weights import Weights
from tacit.demo.digits import DigitNet, for_training, held_out

SETTINGS: list[dict[str, Any]] = [
    {"protocol": "replicated", "parties": 3},
    {"protocol": "additive", "parties": 2, "source": "dealer"},
]


class Averaging(nn.Module):
    """Convolutions with normalisation before and after, a skip connection, and an average over the
    image."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
        self.third = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
        self.classify = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = self.third(x + self.second(x))
        classes: torch.Tensor = self.classify(functional.adaptive_avg_pool2d(x, 1).flatten(1))
        return classes


@functools.cache
def trained(make: type[nn.Module]) -> nn.Module:
    """Trains the network for a few passes through the images."""
    torch.manual_seed(5)
    module = make()
    images, labels = for_training()
    optimizer = torch.optim.Adam(module.parameters(), 5e-3)
    for _ in range(8):
        for rows in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            functional.cross_entropy(module(images[rows]), labels[rows]).backward()
            optimizer.step()
    return module.eval()


@pytest.mark.parametrize("make", [DigitNet, Averaging])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("is_calibrated", [True, False])
def test_digits_lose_no_accuracy(
    make: type[nn.Module], setting: dict[str, Any], is_calibrated: bool
) -> None:
    module = trained(make)
    images, labels = for_training()
    tested, right = held_out()
    # The program takes all tested images at once, so the calibration batch has the same size.
    count = len(tested)
    named: dict[str, Any] = {"calibrate": images[:count], "labels": labels[:count]}
    program, weights = tacit.compile(module, tested, **(named if is_calibrated else {}))
    with torch.no_grad():
        plain = int((module(tested).argmax(1) == right).sum())
    assert plain > 0.9 * len(right)
    found = classes(program, weights, tested, setting)
    assert int((found == right).sum()) >= plain


@pytest.mark.parametrize("make", [DigitNet, Averaging])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("is_calibrated", [True, False])
def test_digits_take_fewer_bytes(
    make: type[nn.Module], setting: dict[str, Any], is_calibrated: bool
) -> None:
    images, labels = (each[:16] for each in for_training())
    named: dict[str, Any] = {"calibrate": images, "labels": labels} if is_calibrated else {}
    program, weights = tacit.compile(trained(make), images, **named)
    before = weights.as_it_was()
    compiled, eager = (
        spent(*each, images, **setting) for each in ((program, weights), (weights.model, before))
    )
    assert all(mine < its for mine, its in zip(compiled, eager, strict=True))


def classes(
    program: Program, weights: Weights, x: torch.Tensor, setting: dict[str, Any]
) -> torch.Tensor:
    """Returns the classes that a program gives to images."""

    def run() -> torch.Tensor | None:
        party = tacit.session().party
        bound = program.share(weights if party == 0 else None, owner=0)
        return bound(bound.given(x if party == 1 else None, owner=1)).reveal(to=1)

    told: torch.Tensor = tacit.launch(run, **setting)[1].argmax(1)
    return told


@pytest.mark.parametrize("is_calibrated", [True, False])
def test_a_layer_with_its_relu_sends_no_more_payload(is_calibrated: bool) -> None:
    # This holds even for so small a layer, where message overhead dominates. Frames carry the name
    # of their operation, which is not counted.
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()).eval()
    x = torch.rand(1, 1, 8, 8)
    program, weights = tacit.compile(module, x, calibrate=x if is_calibrated else None)
    before = weights.as_it_was()
    compiled, eager = (
        spent(*each, x, protocol="replicated", parties=3)
        for each in ((program, weights), (weights.model, before))
    )
    assert all(mine <= its for mine, its in zip(compiled, eager, strict=True))
    found = tried(program, weights, [x], protocol="replicated", parties=3, transport="memory")
    assert found.compiled.rounds < found.eager.rounds
