"""Layers that a model uses several times.

No pass gives one of the uses a copy of the weights that would cost more than it saves, since
additive sharing opens each masked weight only once.
"""

from typing import Any

import pytest
import torch
from torch import nn

import tacit
from models import normalised
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights


class Twice(nn.Module):
    """A layer with more weights than results, used on two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(4, 48, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(48) for _ in range(2))
        self.before = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(2))
        self.other, self.linear = nn.Conv2d(4, 8, 3, padding=1), nn.Linear(4, 200)
        self.added = nn.Parameter(torch.rand(48, 1, 1))
        self.shift, self.factor = nn.Parameter(torch.rand(200)), nn.Parameter(torch.rand(200))


class Normalised(Twice):
    def forward(self, x: torch.Tensor) -> Any:
        return self.norms[0](self.layer(x)), self.norms[1](self.layer(x * x))


class Rectified(Twice):
    def forward(self, x: torch.Tensor) -> Any:
        return [
            self.layer(torch.relu(norm(y))) for norm, y in zip(self.before, (x, x * x), strict=True)
        ]


class Multiplied(Twice):
    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x) * 0.5, self.layer(x * x)


class Added(Twice):
    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x) + self.added, self.layer(x * x)


class Joined(Twice):
    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x), self.other(x), self.layer(x * x)


class Averaged(Twice):
    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x.mean((2, 3), keepdim=True).flatten(1)), self.linear(x[:, :, 0, 0])


def payload(program: Program, weights: Weights, x: torch.Tensor) -> list[int]:
    """Returns the payload of a first run between two parties with a dealer."""

    def run() -> int:
        bound = program.share(weights, owner=0)
        current = tacit.session()
        before = current.meter.total
        for each in bound(bound.given(x, owner=1)):
            each.reveal(to=1)
        return (current.meter.total - before).payload_bytes

    return tacit.launch(run, parties=2, protocol="additive", source="dealer")


@pytest.mark.parametrize("kind", [Normalised, Rectified, Multiplied, Added, Joined, Averaged])
@pytest.mark.parametrize("is_calibrated", [False, True])
def test_a_layer_that_is_used_twice_is_no_dearer(kind: type[Twice], is_calibrated: bool) -> None:
    torch.manual_seed(1)
    images = torch.randn(4, 4, 3, 3)
    module = normalised(kind())
    with torch.no_grad():
        for norm in module.before:  # type: ignore[union-attr]
            norm.weight.copy_(torch.tensor([2.5, -3.0, 2.2, -2.1]))
    program, weights = tacit.compile(
        module, images[:1], calibrate=images if is_calibrated else None
    )
    before = weights.as_it_was()
    assert max(payload(program, weights, images[:1])) <= max(
        payload(weights.model, before, images[:1])
    )


@pytest.mark.parametrize("kind", [Normalised, Rectified])
def test_a_layer_of_large_images_is_folded_although_it_is_used_twice(kind: type[Twice]) -> None:
    images = torch.randn(1, 4, 24, 24)
    # Factors so large that no weights need more digits.
    module = normalised(kind())
    with torch.no_grad():
        for norm in module.before:  # type: ignore[union-attr]
            norm.weight.copy_(torch.tensor([2.5, -3.0, 2.2, -2.1]))
    program, weights = tacit.compile(module, images)
    before = weights.as_it_was()
    assert not [name for name in program.weights if name.endswith("_factor")]
    assert max(payload(program, weights, images)) < max(payload(weights.model, before, images))


def test_what_follows_a_layer_is_all_in_its_weights() -> None:
    class Written(Twice):
        """A layer as TensorFlow writes it, with more weights than results."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.linear(x) + self.shift) * self.factor

    program, _ = tacit.compile(normalised(Written()), torch.randn(1, 4))
    assert len(program.weights) == 2
