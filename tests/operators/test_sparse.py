"""Products of public sparse matrices with secret tensors, and their gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit

SETTINGS = [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")]

GRAPH = torch.tensor([[0.0, 0.5, 0.0, -2.25], [1.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
NUMBERS = torch.tensor([[1.5, -20.0], [300.0, 0.25], [-1.0, 2.0], [1e4, 7.0]])

PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "sparse.mm": torch.sparse.mm,
    "mm": torch.mm,
    "@": lambda a, x: a @ x,
    "a vector": lambda a, x: a @ x[:, 0],
    "from the right": lambda a, x: x.t() @ a.t(),
    "sparse.addmm": lambda a, x: torch.sparse.addmm(torch.ones(3, 2), a, x, beta=2.0, alpha=0.5),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_products(name: str, setting: tuple[str, int, str | None], layout: torch.layout) -> None:
    protocol, parties, source = setting
    product = PRODUCTS[name]

    def program() -> torch.Tensor:
        graph = GRAPH.to_sparse(layout=layout)
        return product(graph, tacit.share(NUMBERS, owner=0)).reveal()

    found = tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]
    assert torch.allclose(found, product(GRAPH, NUMBERS), atol=2**-14, rtol=1e-5)


def test_integers_are_exact() -> None:
    graph, numbers = GRAPH.round().long(), NUMBERS.round().long()

    def program() -> torch.Tensor:
        return torch.sparse.mm(graph.to_sparse(), tacit.share(numbers, owner=0)).reveal()

    assert torch.equal(tacit.launch(program)[0], graph @ numbers)


def test_gradients() -> None:
    weights = torch.randn(3, 2)

    def program(secretly: bool) -> torch.Tensor:
        x: Any = (tacit.share(NUMBERS, owner=0) if secretly else NUMBERS.clone()).requires_grad_()
        (torch.sparse.mm(GRAPH.to_sparse(), x) * weights).sum().backward()
        return x.grad.reveal() if secretly else x.grad

    found = tacit.launch(program, True, protocol="plain", parties=2)[0]
    assert torch.allclose(found, program(False), atol=2**-12)


def test_only_what_is_there_takes_memory() -> None:
    """A dense matrix of this size would take eight terabytes."""
    size = 1_000_000
    places = torch.tensor([[0, size - 1], [size - 1, 0]])

    def program() -> torch.Tensor:
        graph = torch.sparse_coo_tensor(places, torch.tensor([2.0, 3.0]), (size, size))
        numbers = torch.zeros(size, 1)
        numbers[0], numbers[-1] = 5.0, 7.0
        found = torch.sparse.mm(graph, tacit.share(numbers, owner=0))
        return found[[0, -1]].reveal()

    found = tacit.launch(program, protocol="plain", parties=2)[0]
    assert found.flatten().tolist() == [14.0, 15.0]


def test_secret_values_are_refused_and_the_remedy_works() -> None:
    row, column = torch.tensor([0, 1, 1]), torch.tensor([1, 0, 2])
    values, x = torch.tensor([2.0, 1.0, 3.0]), torch.randn(3, 2)

    def program() -> torch.Tensor:
        secret = tacit.share(values, owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError, match=r"index_add\(0, row"):
            torch.sparse_coo_tensor(torch.stack([row, column]), secret, (2, 3))
        zeros = torch.zeros(2, 2)
        return zeros.index_add(0, row, secret.unsqueeze(1) * x[column]).reveal()

    found = tacit.launch(program, protocol="plain", parties=2)[0]
    plain = torch.sparse_coo_tensor(torch.stack([row, column]), values, (2, 3)) @ x
    assert torch.allclose(found, plain, atol=1e-3)
