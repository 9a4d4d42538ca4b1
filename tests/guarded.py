"""A small model whose compiled form has guarded comparisons."""

from typing import Any

import torch
from torch import nn

import tacit
from tacit.compilation.program import Program
from tacit.compilation.weights import Weights

#: Inputs of the layers below. The proved bound on a sum of this many inputs is far larger than the
#: sums in calibration.
MANY = 1024


def layers() -> nn.Module:
    """Two layers with ReLUs; each layer sums all of its inputs."""
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
    """Returns an input with elements within ±1 that add up to the given total."""
    x = torch.ones(1, MANY)
    x[0, MANY // 2 :] = -1.0
    changed = int(total)
    x[0, MANY // 2 : MANY // 2 + changed] = 0.0
    return x


def compiled(**settings: Any) -> tuple[Program, Weights]:
    """Compiles the layers with calibration sums up to 7. Sums up to about four times that pass the
    guard."""
    calibrate = torch.cat([with_sum(total) for total in (2, 4, 7)])
    return tacit.compile(layers(), with_sum(0), calibrate=calibrate, **{"margin": 4.0, **settings})


COMPILED = compiled()
