"""Models in training mode are neither compiled nor loaded: a program draws no random numbers, and
gives the same result twice."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit
from models import Whole
from tacit.compilation.format import canonical
from tacit.compilation.importers.exported import of_file, of_module
from tacit.compilation.program import Program
from tacit.errors import MisuseError

X = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(1))


def attention(x: torch.Tensor, probability: float) -> torch.Tensor:
    return functional.scaled_dot_product_attention(x, x, x, dropout_p=probability)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: attention(x, 0.5),
        lambda x: functional.dropout(x, 0.5, training=True),
        lambda x: functional.dropout2d(x.unsqueeze(0), 0.5, training=True),
        lambda x: functional.alpha_dropout(x, 0.5, training=True),
        lambda x: functional.rrelu(x, training=True),
    ],
)
def test_a_module_that_draws_in_evaluation_is_refused(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    with pytest.raises(MisuseError, match=r"the model itself calls aten\..* in training mode"):
        of_module(Whole(function).eval(), (X,), {})


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.BatchNorm1d(4), nn.RReLU()])
def test_a_file_that_was_exported_in_training_is_refused(layer: nn.Module, tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(8, 8), layer).train()
    torch.export.save(torch.export.export(module, (X,)), tmp_path / "model.pt2")
    with pytest.raises(MisuseError, match=r"1 calls aten\..* in training mode.*model\.eval\(\)"):
        of_file(tmp_path / "model.pt2")


def test_what_has_no_statistics_of_its_own_is_not_in_training() -> None:
    module = nn.BatchNorm1d(4, track_running_stats=False).eval()
    draft = of_module(module, (torch.randn(3, 4, 8),), {})
    assert any("batch_norm" in str(node.target) for node in draft.graph.nodes)


class Recurrent(nn.Module):
    def __init__(self, layer: type[nn.Module]) -> None:
        super().__init__()
        self.layer = layer(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x)[0]
        return result


@pytest.mark.parametrize(
    ("module", "operator", "at", "value"),
    [
        (Whole(lambda x: attention(x, 0.0)), "scaled_dot_product_attention", 4, 0.5),
        (Whole(lambda x: attention(x, 0.0)), "scaled_dot_product_attention", 4, {"number": "inf"}),
        (Recurrent(nn.LSTM), "lstm", 6, True),
        (Recurrent(nn.LSTM), "lstm", 6, 1),
        (Recurrent(nn.GRU), "gru", 6, True),
    ],
)
def test_a_program_that_says_so_is_refused(
    module: nn.Module, operator: str, at: int, value: Any
) -> None:
    program, _ = tacit.compile(module.eval(), X)
    content = copy.deepcopy(json.loads(program.text))
    (node,) = [each for each in content["nodes"] if f"aten.{operator}." in each["operator"]]
    padding = [None][: max(0, at - len(node["arguments"]))]
    node["arguments"] = [*node["arguments"], *padding][:at] + [value] + node["arguments"][at + 1 :]
    with pytest.raises(MisuseError, match="in training mode, in which no program runs"):
        Program.parsed(canonical(content), "the file")
