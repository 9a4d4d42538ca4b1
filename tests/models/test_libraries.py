"""Libraries that are unaware of secret tensors run unmodified.

The tests cover graph layers, metrics, and per-sample gradients.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
import torchmetrics
from opacus import GradSampleModule
from torch import nn
from torch.nn import functional

import tacit
from replaced import put_back, replaced

# torch_geometric replaces torch.index_select and torch.select by versions that refuse single
# numbers.
with put_back():
    import torch_geometric.nn as graphs

EDGES = torch.tensor([[0, 1, 2, 3, 4, 1, 0, 3], [1, 2, 3, 4, 0, 0, 2, 1]])
GRAPHS = torch.tensor([0, 0, 1, 1, 1])


class Pooled(nn.Module):
    """A graph convolution followed by a pooling over each graph."""

    def __init__(self, pool: Callable[..., Any]) -> None:
        super().__init__()
        self.layer, self.pool = graphs.GCNConv(4, 2), pool

    def forward(self, x: Any, edges: torch.Tensor) -> Any:
        return self.pool(self.layer(x, edges), GRAPHS)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: graphs.GCNConv(4, 2),
    "SAGE": lambda: graphs.SAGEConv(4, 2),
    "SAGE by maxima": lambda: graphs.SAGEConv(4, 2, aggr="max"),
    "GIN": lambda: graphs.GINConv(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))),
    "GAT": lambda: graphs.GATConv(4, 2),
    "sums of graphs": lambda: Pooled(graphs.global_add_pool),
    "means of graphs": lambda: Pooled(graphs.global_mean_pool),
    "maxima of graphs": lambda: Pooled(graphs.global_max_pool),
}


def test_other_tests_have_functions_of_pytorch() -> None:
    assert replaced() == []


@pytest.mark.parametrize("name", [*LAYERS])
def test_layers_of_graphs_have_outputs_and_gradients(name: str) -> None:
    torch.manual_seed(1)
    nodes, model = torch.randn(5, 4), LAYERS[name]()

    def trained(own: nn.Module, x: Any) -> list[Any]:
        found = own(x, EDGES)
        functional.mse_loss(found, torch.ones(found.shape)).backward()
        return [found, *(parameter.grad for parameter in own.parameters())]

    def program() -> list[torch.Tensor]:
        secret = tacit.share_module(deepcopy(model), owner=0, trainable=True)
        return [each.reveal() for each in trained(secret, tacit.share(nodes, owner=1))]

    for found, wanted in zip(
        tacit.launch(program)[0], trained(deepcopy(model), nodes), strict=True
    ):
        assert (found - wanted).abs().max() < 1e-3


CHANCES = torch.tensor([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
CLASSES = torch.tensor([1, 0, 1, 1])
CLASSIFIED = {"task": "multiclass", "num_classes": 3, "validate_args": False}

METRICS: dict[str, tuple[Callable[[], Any], list[torch.Tensor]]] = {
    "accuracy": (lambda: torchmetrics.Accuracy(**CLASSIFIED), [CHANCES, CLASSES]),
    "F1": (lambda: torchmetrics.F1Score(average="macro", **CLASSIFIED), [CHANCES, CLASSES]),
    "confusion": (lambda: torchmetrics.ConfusionMatrix(**CLASSIFIED), [CHANCES, CLASSES]),
    "mean square": (torchmetrics.MeanSquaredError, [CHANCES[:, 0], CHANCES[:, 1]]),
    "mean distance": (torchmetrics.MeanAbsoluteError, [CHANCES[:, 0], CHANCES[:, 1]]),
    "mean": (lambda: torchmetrics.MeanMetric(nan_strategy="disable"), [CHANCES[:, 0]]),
}


@pytest.mark.parametrize("name", [*METRICS])
def test_metrics(name: str) -> None:
    make, data = METRICS[name]

    def computed(share: Callable[[torch.Tensor], Any]) -> Any:
        metric = make()
        for _ in range(2):
            metric.update(*map(share, data))
        return metric.compute()

    found = tacit.launch(lambda: computed(lambda each: tacit.share(each, owner=0)).reveal())[0]
    assert (found - computed(lambda each: each)).abs().max() < 1e-3


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_gradients_of_each_sample() -> None:
    torch.manual_seed(2)
    x, model = torch.randn(5, 4), nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))

    def of_samples(own: nn.Module, data: Any) -> list[Any]:
        wrapped = GradSampleModule(own)
        wrapped(data).square().sum().backward()
        return [parameter.grad_sample for parameter in wrapped.parameters()]

    def program() -> list[torch.Tensor]:
        secret = tacit.share_module(deepcopy(model), owner=0, trainable=True)
        return [each.reveal() for each in of_samples(secret, tacit.share(x, owner=1))]

    for found, wanted in zip(tacit.launch(program)[0], of_samples(deepcopy(model), x), strict=True):
        assert found.shape == wanted.shape
        assert (found - wanted).abs().max() < 5e-3
