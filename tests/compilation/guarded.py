"""A small model whose compiled form is guarded."""

from typing import Any

import torch
from torch import nn

import tacit
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights

#: Inputs of the layers below: sums of so many cannot be proved to be as small as those of
#: calibration are.
MANY = 1024


def layers() -> nn.Module:
    """Two layers with ReLUs, of which each sums up all of its inputs."""
    module = nn.Sequential(
        nn.Linear(MANY, 2), nn.ReLU(), nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_() if parameter.dim() == 1 else parameter.fill_(1.0)
        module[2].weight[:, 1] = -0.5
        module[4].weight[1] = 0.5
    return module.eval()


def with_sum(total: float) -> torch.Tensor:
    """An input within ±1 of which that is the sum."""
    x = torch.ones(1, MANY)
    x[0, MANY // 2 :] = -1.0
    changed = int(total)
    x[0, MANY // 2 : MANY // 2 + changed] = 0.0
    return x


def compiled(**settings: Any) -> tuple[Program, Weights]:
    """Of sums up to 7 in calibration: four times that passes."""
    calibrate = torch.cat([with_sum(total) for total in (2, 4, 7)])
    return tacit.compile(layers(), with_sum(0), calibrate=calibrate, **{"margin": 4.0, **settings})


COMPILED = compiled()
