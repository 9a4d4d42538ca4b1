"""Services of every family: protocols, sources of correlations, and programs with guards."""

from pathlib import Path
from typing import Any

import pytest
import torch
from load import TOLERANCE, expected, given
from services import Parties, model, wait_for, write
from torch import nn

import tacit
from tacit.client import Client
from tacit.errors import RangeError

#: Inputs of a sum whose comparison has a guard: a proved bound on it would be far greater than what
#: it is in calibration.
MANY = 1024


@pytest.mark.parametrize(
    "settings",
    [
        {"parties": 2, "protocol": "additive", "source": "ot"},
        {"parties": 2, "protocol": "additive", "source": "he"},
        {"protocol": "replicated-malicious"},
    ],
    ids=lambda settings: settings.get("source", settings["protocol"]),
)
def test_a_service_of_each_kind(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = write(tmp_path, **settings)
    with Parties(config, settings.get("parties", 3)), Client(config, timeout=120) as client:
        wait_for(client)
        x = given(1, 3)
        assert (client.infer("net", x) - expected(x)).abs().max() < TOLERANCE


class Sums(nn.Module):
    """Two sums of all inputs, if they are positive, and half of them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(MANY, 2)
        with torch.no_grad():
            self.linear.weight.fill_(1.0)
            self.linear.bias.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * 0.5


def with_sum(total: int) -> torch.Tensor:
    """Returns an input of numbers within 1 of 0."""
    x = torch.ones(1, MANY)
    x[0, MANY // 2 :] = -1.0
    x[0, MANY // 2 : MANY // 2 + total] = 0.0
    return x


def test_numbers_out_of_range_have_no_result_and_harm_nobody_later(tmp_path: Path) -> None:
    """Two parties with a dealer serve a module, and a compiled program that has a guard."""
    calibrate = torch.cat([with_sum(total) for total in (2, 4, 7)])
    program, weights = tacit.compile(Sums().eval(), with_sum(0), calibrate=calibrate, margin=4.0)
    program.save(tmp_path / "sums.tacit")
    weights.save(tmp_path / "sums.safetensors")
    compiled = {"name": "sums", "program": "sums.tacit", "owner": 1, "weights": "sums.safetensors"}
    config = write(tmp_path, [model(), compiled], parties=2, protocol="additive", source="dealer")
    with Parties(config, 2, dealer=True), Client(config) as client:
        wait_for(client)
        for total in (3, 7):
            found = client.infer("sums", with_sum(total))
            assert (found - total / 2).abs().max() < 0.01
            with pytest.raises(RangeError, match="left the range that the model computes in"):
                client.infer("sums", torch.ones(1, MANY))
        x = given(1, 3)
        assert (client.infer("net", x) - expected(x)).abs().max() < TOLERANCE
