"""Max pooling combined with the layers before it: moved behind the pooling, or one more
candidate."""

from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.compilation.graph import is_call
from tacit.compilation.importers.exported import of_module
from tacit.compilation.passes import improve
from tacit.compilation.try_model import Run, tried

X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))

SETTINGS: list[dict[str, Any]] = [
    {"protocol": "replicated", "parties": 3},
    {"protocol": "additive", "parties": 2, "source": "dealer"},
]


def took(*layers: nn.Module, x: torch.Tensor = X, **setting: Any) -> tuple[Run, Run]:
    """Measures a model compiled and uncompiled, and checks that its results are right."""
    program, weights = tacit.compile(nn.Sequential(*layers).eval(), x)
    found = tried(program, weights, [x], transport="memory", **setting)
    assert found.compiled.normalised_squared_error < 1e-8
    assert max(found.compiled.bytes_sent_per_party) <= max(found.eager.bytes_sent_per_party)
    assert found.compiled.rounds <= found.eager.rounds
    return found.compiled, found.eager


@pytest.mark.parametrize("kernel", [2, 3, 4])
def test_zero_is_a_candidate_at_no_round(kernel: int) -> None:
    pool = nn.MaxPool2d(kernel)
    bare, _ = took(pool, **SETTINGS[0])
    rectified, eager = took(nn.ReLU(), pool, **SETTINGS[0])
    assert rectified.rounds == bare.rounds < eager.rounds


def test_of_additive_sharing_it_is_two_rounds_more() -> None:
    bare, _ = took(nn.MaxPool2d(2), **SETTINGS[1])
    rectified, eager = took(nn.ReLU(), nn.MaxPool2d(2), **SETTINGS[1])
    assert rectified.rounds <= bare.rounds + 2 < eager.rounds


@pytest.mark.parametrize("setting", SETTINGS)
def test_windows_that_are_as_many_as_elements_take_no_more_bits(setting: dict[str, Any]) -> None:
    took(nn.ReLU(), nn.MaxPool2d(2, 1), **setting)


@pytest.mark.parametrize(
    "values", [[-1.0, -2.0, -3.0, -4.0], [0.0, 0.0, -1.0, 0.0], [3.0, -4.0, 3.0, 5.0]]
)
def test_signs_and_ties(values: list[float]) -> None:
    x = torch.tensor(values).reshape(1, 1, 2, 2).repeat(1, 1, 1, 4)
    took(nn.ReLU(), nn.MaxPool2d(2), x=x, **SETTINGS[0])


SEQUENCES = torch.randn(1, 3, 12, generator=torch.Generator().manual_seed(2))
VOLUMES = torch.randn(1, 2, 4, 4, 4, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    ("pool", "x"),
    [
        (nn.MaxPool1d(2), SEQUENCES),
        (nn.MaxPool1d(3, 2, padding=1, dilation=2, ceil_mode=True), SEQUENCES),
        (nn.MaxPool1d(2), SEQUENCES[0]),
        (nn.MaxPool3d(2), VOLUMES),
        (nn.AdaptiveMaxPool2d(3), X),
        (nn.AdaptiveMaxPool3d(2), VOLUMES),
    ],
)
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Hardtanh])
def test_poolings_of_all_dimensions_come_first(
    activation: type[nn.Module], pool: nn.Module, x: torch.Tensor
) -> None:
    compiled, eager = took(activation(), pool, x=x, **SETTINGS[0])
    assert max(compiled.bytes_sent_per_party) < max(eager.bytes_sent_per_party)


def test_a_pooling_whose_indices_count_stays_behind_its_activation() -> None:
    class Where(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return nn.functional.adaptive_max_pool2d(torch.relu(x), 3, return_indices=True)

    draft = of_module(Where().eval(), (X,), {})
    improve(draft)
    order = [str(node.target) for node in draft.graph.nodes if is_call(node)]
    assert order[:2] == ["aten.relu.default", "aten.adaptive_max_pool2d.default"]
