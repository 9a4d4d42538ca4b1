"""Small models for the tests of the compiler."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import tacit
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights


class Whole(nn.Module):
    """A module that calls a function."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._function(x)


def normalised(module: nn.Module, seed: int = 0) -> nn.Module:
    """Puts the module into evaluation mode with non-trivial statistics of batch normalisation."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
        for part in module.modules():
            if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
                part.running_mean.copy_(
                    torch.randn(part.running_mean.shape, generator=generator) * 0.2
                )
                part.running_var.copy_(
                    torch.rand(part.running_var.shape, generator=generator) + 0.5
                )
    return module.eval()


class Residual(nn.Module):
    """Two blocks of a residual network: one with a layer on the skip path, one without."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4))
        self.second = nn.Sequential(
            nn.Conv2d(4, 4, 3, padding=1, stride=2),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Conv2d(4, 6, 1),
        )
        self.normalise = nn.BatchNorm2d(6)
        self.skip = nn.Sequential(nn.Conv2d(4, 6, 1, stride=2, bias=False), nn.BatchNorm2d(6))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.max_pool2d(torch.relu(self.first(x)), 3, 2, 1)
        x = torch.relu(self.normalise(self.second(x)) + self.skip(x))
        return self.classify(self.pool(x).flatten(1))


class Attention(nn.Module):
    """Attention whose query, key and value come from one input, with a public factor."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(6, 8) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = (self.query(x) / 8**0.5) @ self.key(x).transpose(-1, -2)
        return torch.softmax(scores, -1) @ self.value(x)


#: Bytes before each message's name.
HEADER = 32


def spent(program: Program, weights: Weights, x: torch.Tensor, **setting: Any) -> list[int]:
    """Returns the bytes that each party sends in a run, except the names of operations in the
    headers of messages."""

    def run() -> int:
        current = tacit.session()
        bound = program.share(weights if current.party == 0 else None, owner=0)
        before = current.meter.total
        bound(bound.given(x if current.party == 1 else None, owner=1)).reveal(to=1)
        spent = current.meter.total - before
        return spent.payload_bytes + HEADER * spent.frames

    return tacit.launch(run, **setting)
