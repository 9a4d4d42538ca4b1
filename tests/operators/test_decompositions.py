"""Factors, inverses and solutions of small systems, and their gradients."""

from typing import Any

import pytest
import torch

import tacit


def matrices(count: int, size: int, condition: float) -> torch.Tensor:
    """With singular values from 3 down to 3 / condition."""
    generator = torch.Generator().manual_seed(size)
    turned, other = (torch.linalg.qr(torch.randn(count, size, size, generator=generator))[0] for _ in "ab")
    return turned * torch.linspace(3.0, 3.0 / condition, size) @ other


#: A zero where a pivot would be taken, were none searched for.
WITHOUT_PIVOT = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [3.0, 0.0, 1.0]])
A, TALL = matrices(2, 4, 30.0), matrices(1, 5, 4.0)[0, :, :3]
POSITIVE = A @ A.mT / 3 + torch.eye(4) * 0.25
RIGHT = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(9))


def solved(a: Any, positive: Any, right: Any) -> list[Any]:
    return [
        torch.linalg.inv(a),
        torch.linalg.solve(a, right),
        torch.linalg.solve(a, right.mT, left=False),
        torch.linalg.solve(a, right[..., 0]),
        torch.linalg.det(a),
        *torch.linalg.slogdet(a),
        torch.linalg.cholesky(positive, upper=True),
        torch.linalg.solve_triangular(a.tril() + torch.eye(4) * 2, right, upper=False),
        torch.cholesky_solve(right, torch.linalg.cholesky(positive)),
        torch.linalg.matrix_power(a, -2),
    ]


def others(tall: Any, without_pivot: Any) -> list[Any]:
    return [
        *torch.linalg.qr(tall),
        *torch.linalg.qr(tall, mode="complete"),
        *torch.linalg.qr(tall.mT),
        torch.linalg.inv(without_pivot),
        torch.linalg.det(without_pivot),
    ]


def differentiated(a: Any, positive: Any, right: Any) -> list[Any]:
    """Gradients of sums of inverse, solution and factor."""
    inputs = [x.detach().clone().requires_grad_() for x in (a, positive, right)]
    x, definite, y = inputs
    total = torch.linalg.inv(x).sum() + torch.linalg.solve(x, y).sum() + torch.linalg.cholesky(definite).sum()
    return list(torch.autograd.grad(total, inputs))


@pytest.mark.parametrize("protocol", ["plain", "replicated", "additive"])
def test_as_on_plain_matrices(protocol: str) -> None:
    def program() -> list[torch.Tensor]:
        a, positive, right = (tacit.share(x, owner=0) for x in (A, POSITIVE, RIGHT))
        found = [*solved(a, positive, right), torch.linalg.solve(a, RIGHT), torch.linalg.solve(A, right)]
        found += [*others(tacit.share(TALL, owner=0), tacit.share(WITHOUT_PIVOT, owner=1))]
        return [value.reveal() for value in (*found, *differentiated(a, positive, right))]

    plain = [*solved(A, POSITIVE, RIGHT), *[torch.linalg.solve(A, RIGHT)] * 2, *others(TALL, WITHOUT_PIVOT)]
    plain += differentiated(A, POSITIVE, RIGHT)
    more = {"parties": 2, "source": "dealer"} if protocol == "additive" else {}
    results = tacit.launch(program, protocol=protocol, **more)[0]
    for at, (mine, theirs) in enumerate(zip(results, plain, strict=True)):
        assert mine.shape == theirs.shape
        # Two in a thousand of the condition number 30, and of the greatest element.
        assert (mine - theirs).abs().max() < 2e-3 * max(1.0, float(theirs.abs().max())), (at, mine, theirs)


def test_factors_with_pivots_are_refused() -> None:
    def program() -> None:
        with pytest.raises(tacit.UnsupportedOperatorError, match="LU factorisation with pivots"):
            torch._linalg_det(tacit.share(A, owner=0))[1].reveal()

    tacit.launch(program, protocol="plain")
