"""Columns that their owner scales: what is left as it is, and what models must not notice."""

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import tacit
from tacit.providers import REFERENCE

#: Salaries, rates, and a number near one.
MAGNITUDES = torch.tensor([1e5, 1e-6, 1.0])
X = (torch.rand(40, 3, generator=torch.Generator().manual_seed(2)) + 0.5) * MAGNITUDES


def compiled(module: nn.Module, x: torch.Tensor = X) -> tuple[tuple[int, ...], torch.Tensor]:
    """Returns the exponents of the input, and the result in secret."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.PrecisionWarning)
        program, weights = tacit.compile(module.eval(), x, calibrate=x)
    (given,) = program.inputs.values()

    def run() -> torch.Tensor:
        bound = program.share(weights, owner=0)
        return bound(bound.given(x, owner=1, count=1)).reveal()

    return given.exponents, tacit.launch(run, parties=2, protocol=REFERENCE)[0]


class Applied(nn.Module):
    """A linear layer behind an operation on its input."""

    def __init__(self, before: Any, size: int) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer, self._before = nn.Linear(size, 2), before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self._before(x))


def test_columns_of_linear_layers_are_scaled() -> None:
    module = Applied(lambda x: x, 3)
    with torch.no_grad():
        module.layer.weight.div_(MAGNITUDES)
    exponents, found = compiled(module)
    assert exponents[0] < 0 < exponents[1]
    assert exponents[2] == 0
    torch.testing.assert_close(found, module(X), atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize(
    ("before", "size"),
    [
        (lambda x: x.amax(1, keepdim=True), 1),
        (lambda x: torch.maximum(x[:, :1], x[:, 1:2]), 1),
        (lambda x: x.split([1, 2], 1)[1], 2),
        (lambda x: x.chunk(3, 1)[0], 1),
        (lambda x: x.relu(), 3),
        (lambda x: x[:, :2] * x[:, 1:], 2),
    ],
)
def test_inputs_of_anything_else_stay_as_they_are(before: Any, size: int) -> None:
    module = Applied(before, size)
    x = X / MAGNITUDES * torch.tensor([2000.0, 0.5, 1.0])
    exponents, found = compiled(module, x)
    assert not any(exponents)
    wanted = module(x)
    # What calibration promises: the squared error, relative to the squares.
    assert (found - wanted).square().sum() < 1e-3 * wanted.square().sum()


class Product(nn.Module):
    """Rows times a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 1.0, 3.0]) / MAGNITUDES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def test_vectors_of_weights_are_scaled() -> None:
    exponents, found = compiled(Product())
    assert exponents[0] < 0 < exponents[1]
    assert found.shape == (40,)
    torch.testing.assert_close(found, Product()(X), atol=1e-2, rtol=1e-3)


def test_an_input_of_another_shape_is_refused_everywhere() -> None:
    program, weights = tacit.compile(Product().eval(), X, calibrate=X)

    def run() -> str:
        bound = program.share(weights, owner=0)
        with pytest.raises(tacit.MisuseError) as refused:
            bound.given(X[:, :2], owner=1, count=1)
        return str(refused.value)

    assert all(tacit.launch(run, parties=2, protocol=REFERENCE))


@pytest.mark.parametrize("edge", [0.9995, 0.0005])
def test_chances_near_an_end_are_decided_as_in_the_clear(edge: float) -> None:
    """They are compared by their arguments, which take more bits than the chances."""

    class Decided(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (torch.sigmoid(x) > edge).to(torch.float32)

    x = torch.linspace(-12, 12, 49).reshape(7, 7)
    _, found = compiled(Decided(), x)
    torch.testing.assert_close(found, Decided()(x))
