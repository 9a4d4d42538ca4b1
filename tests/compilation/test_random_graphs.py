"""Models drawn at random: a program gives the plain model's results, and never costs more than
sharing the model without compilation."""

import random
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from models import normalised, spent
from tacit.compilation.try_model import tried

#: Layers per model.
DEPTH = 9

CHANNELS = 4


class Drawn(nn.Module):
    """Layers in an order given by a seed. Each takes the results of one or two earlier layers."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._drawn = drawn = random.Random(seed)
        self.layers = nn.ModuleList()
        self._sources: list[list[int]] = []
        for at in range(DEPTH):
            layer = drawn.choice(LAYERS)()
            self.layers.append(layer)
            wanted = 2 if isinstance(layer, Sum) else 1
            # The latest result is the most likely source, so that layers form chains.
            self._sources.append(
                [max(0, at - drawn.choice([0, 0, 0, 1, 2, 3])) for _ in range(wanted)]
            )
        self.classify = nn.Linear(CHANNELS, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = [x]
        for layer, sources in zip(self.layers, self._sources, strict=True):
            values.append(layer(*(values[at] for at in sources)))
        return self.classify(values[-1].mean((2, 3), keepdim=True).flatten(1))


class Sum(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0.5


def convolution(size: int, groups: int = 1) -> nn.Module:
    return nn.Conv2d(CHANNELS, CHANNELS, size, padding=size // 2, groups=groups)


LAYERS: list[Any] = [
    lambda: convolution(1), lambda: convolution(3), lambda: convolution(3, 2),
    nn.ReLU, nn.ReLU, nn.ReLU, Sum, Sum, Scaled, nn.LeakyReLU, nn.Hardtanh,
    lambda: nn.BatchNorm2d(CHANNELS), lambda: nn.BatchNorm2d(CHANNELS), lambda: nn.MaxPool2d(3, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 16))]
)
@pytest.mark.parametrize("is_calibrated", [False, True])
def test_a_program_is_right_and_no_dearer(seed: int, is_calibrated: bool) -> None:
    module = normalised(Drawn(seed), seed)
    images = torch.randn(4, CHANNELS, 5, 5, generator=torch.Generator().manual_seed(seed))
    calibrate = images if is_calibrated else None
    # Guards are used everywhere, as in large models.
    margin = 4.0 if is_calibrated else None
    program, weights = tacit.compile(module, images[:2], calibrate=calibrate, margin=margin)
    setting = (3, "replicated", None) if seed % 4 else (2, "additive", "dealer")
    parties, protocol, source = setting
    found = tried(
        program,
        weights,
        [images[:2]],
        parties=parties,
        protocol=protocol,
        source=source,
        transport="memory",
    )
    # With calibration, the limit to which scales are held; without it, the usual scales.
    assert found.compiled.normalised_squared_error < (2e-3 if is_calibrated else 1e-5), program
    assert found.compiled.rounds <= found.eager.rounds + ROUNDS_OF_GUARDS * is_calibrated
    if max(found.compiled.bytes_sent_per_party) > max(found.eager.bytes_sent_per_party):
        # Frames carry the name of their operation, which is longer if a layer and its ReLU are
        # merged. So everything else is compared: the payload and the rest of the headers.
        before = weights.as_it_was()
        setup = {"protocol": protocol, "parties": parties, "source": source}
        assert max(spent(program, weights, images[:2], **setup)) <= max(
            spent(weights.model, before, images[:2], **setup)
        )


#: Additional rounds of a result behind guards, once.
ROUNDS_OF_GUARDS = 10
