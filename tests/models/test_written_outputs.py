"""Models that write results into tensors of their own run unmodified.

Several libraries and tutorials write step by step, by index, or as running sums.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import tacit

EDGES = torch.tensor([[0, 1, 2, 3, 4, 1, 0, 3], [1, 2, 3, 4, 0, 0, 2, 1]])


class Graph(nn.Module):
    """A layer that sends messages along edges, as graph libraries do."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.linear, self.how = nn.Linear(4, 2), how
        self.attention = nn.Parameter(torch.tensor([0.5, -0.25]))

    def forward(self, x: Any) -> Any:
        source, target = EDGES
        x, size = self.linear(x), x.shape[0]
        if self.how == "attention":
            score = functional.leaky_relu((x * self.attention).sum(-1)[source], 0.2)
            most = score.new_full((size,), -8.0).scatter_reduce_(0, target, score.detach(), "amax")
            score = (score - most[target]).exp()
            total = score.new_zeros(size).scatter_add_(0, target, score)
            messages = x[source] * (score / total[target]).unsqueeze(-1)
        else:
            messages = x[source] + 0 * self.attention
        gathered = x.new_zeros(size, 2)
        if self.how == "mean":
            count = x.new_zeros(size).scatter_add_(0, target, x.new_ones(target.shape[0]))
            gathered.index_add_(0, target, messages)
            return gathered / count.clamp(min=1).unsqueeze(-1)
        return gathered.scatter_add_(0, target.unsqueeze(-1).expand_as(messages), messages)


class Translator(nn.Module):
    """An encoder and a decoder with attention and teacher forcing, which fill tensors of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder, self.out = nn.GRUCell(3, 4), nn.GRUCell(3, 4), nn.Linear(8, 3)

    def forward(self, x: Any, targets: Any) -> Any:
        hidden = torch.zeros(x.shape[1], 4)
        kept = torch.zeros(len(x), x.shape[1], 4)
        for step, each in enumerate(x):
            hidden = self.encoder(each, hidden)
            kept[step] = hidden
        outputs, given = torch.zeros(len(targets), x.shape[1], 3), x[-1]
        for step in range(len(targets)):
            hidden = self.decoder(given, hidden)
            weights = functional.softmax((kept * hidden).sum(-1), 0)
            context = (weights.unsqueeze(-1) * kept).sum(0)
            outputs[step] = found = self.out(torch.cat([hidden, context], 1))
            given = targets[step] if step % 2 else found
        return outputs


class Meter:
    """A running mean, as metrics keep it."""

    def __init__(self) -> None:
        self.total, self.count = torch.tensor(0.0), torch.tensor(0.0)

    def update(self, value: Any) -> None:
        """Adds a value to the mean."""
        self.total += value.detach()
        self.count += 1

    def compute(self) -> Any:
        """Returns the mean."""
        return self.total / self.count


def gradients(model: nn.Module, loss: Any) -> list[Any]:
    loss.backward()
    return [parameter.grad for parameter in model.parameters()]


def check(
    model: nn.Module, loss_of: Callable[[nn.Module, Callable[[torch.Tensor], Any]], Any]
) -> None:
    """Checks a secret model's gradients of a loss against the plain model's."""
    plain = deepcopy(model)
    expected = gradients(plain, loss_of(plain, lambda data: data))

    def program() -> list[torch.Tensor]:
        secret = tacit.share_module(deepcopy(model), owner=0, trainable=True)
        found = gradients(secret, loss_of(secret, lambda data: tacit.share(data, owner=1)))
        return [each.reveal() for each in found]

    for found, wanted in zip(tacit.launch(program)[0], expected, strict=True):
        assert (found - wanted).abs().max() < 1e-2


@pytest.mark.parametrize("how", ["sum", "mean", "attention"])
def test_graphs(how: str) -> None:
    torch.manual_seed(1)
    nodes = torch.randn(5, 4)
    check(Graph(how), lambda model, share: model(share(nodes)).square().mean())


def test_encoder_and_decoder() -> None:
    torch.manual_seed(2)
    x, targets = torch.randn(3, 2, 3), torch.randn(2, 2, 3)
    check(
        Translator(),
        lambda model, share: functional.mse_loss(
            model(share(x), share(targets)), torch.ones(2, 2, 3)
        ),
    )


def test_a_loop_that_keeps_its_losses() -> None:
    torch.manual_seed(3)
    x, y = torch.randn(8, 3), torch.randn(8, 1)

    def losses(model: nn.Module, share: Callable[[torch.Tensor], Any]) -> tuple[Any, Any]:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        meter, history = Meter(), torch.zeros(4)
        for step in range(4):
            rows = slice(2 * step, 2 * step + 2)
            optimizer.zero_grad()
            loss = functional.mse_loss(model(share(x[rows])), share(y[rows]))
            loss.backward()
            optimizer.step()
            meter.update(loss)
            history[step] = loss.detach()
        return meter.compute(), history

    model = nn.Linear(3, 1)
    mean, history = losses(deepcopy(model), lambda data: data)

    def program() -> tuple[torch.Tensor, torch.Tensor]:
        secret = tacit.share_module(deepcopy(model), owner=0, trainable=True)
        found = losses(secret, lambda data: tacit.share(data, owner=1))
        return found[0].reveal(), found[1].reveal()

    found = tacit.launch(program)[0]
    assert abs(found[0] - mean) < 1e-2
    assert (found[1] - history).abs().max() < 1e-2
