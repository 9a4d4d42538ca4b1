"""Factors, inverses and solutions of small systems of every magnitude, and their gradients."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit


def matrices(count: int, size: int, condition: float) -> torch.Tensor:
    """Returns matrices with evenly spaced singular values from 3 down to 3 / condition."""
    generator = torch.Generator().manual_seed(size)
    turned, other = (
        torch.linalg.qr(torch.randn(count, size, size, generator=generator))[0] for _ in "ab"
    )
    return turned * torch.linspace(3.0, 3.0 / condition, size) @ other


#: A matrix with a zero on the diagonal, at which elimination without pivoting would fail.
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
    """Returns the gradients of the sum of an inverse, a solution and a factor."""
    inputs = [x.detach().clone().requires_grad_() for x in (a, positive, right)]
    x, definite, y = inputs
    total = (
        torch.linalg.inv(x).sum()
        + torch.linalg.solve(x, y).sum()
        + torch.linalg.cholesky(definite).sum()
    )
    return list(torch.autograd.grad(total, inputs))


@pytest.mark.parametrize("protocol", ["plain", "replicated", "additive"])
def test_as_on_plain_matrices(protocol: str) -> None:
    def program() -> list[torch.Tensor]:
        a, positive, right = (tacit.share(x, owner=0) for x in (A, POSITIVE, RIGHT))
        found = [
            *solved(a, positive, right),
            torch.linalg.solve(a, RIGHT),
            torch.linalg.solve(A, right),
        ]
        found += [*others(tacit.share(TALL, owner=0), tacit.share(WITHOUT_PIVOT, owner=1))]
        return [value.reveal() for value in (*found, *differentiated(a, positive, right))]

    plain = [
        *solved(A, POSITIVE, RIGHT),
        *[torch.linalg.solve(A, RIGHT)] * 2,
        *others(TALL, WITHOUT_PIVOT),
    ]
    plain += differentiated(A, POSITIVE, RIGHT)
    more = {"parties": 2, "source": "dealer"} if protocol == "additive" else {}
    results = tacit.launch(program, protocol=protocol, **more)[0]
    for at, (mine, theirs) in enumerate(zip(results, plain, strict=True)):
        assert mine.shape == theirs.shape
        # The effect of half a unit in each element of a matrix with the condition number 30.
        assert (mine - theirs).abs().max() < 1e-3 * max(1.0, float(theirs.abs().max())), (
            at,
            mine,
            theirs,
        )


def encoded(x: torch.Tensor) -> torch.Tensor:
    """Rounds numbers to 16 fraction bits, in double precision."""
    return (x.to(torch.float64) * 2**16).round() / 2**16


def conditioned(size: int, condition: float, seed: int = 0) -> torch.Tensor:
    """Returns a matrix whose singular values are spaced evenly in logarithms.

    The greatest is 1 and the condition number is the given one.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = (torch.randn(size, size, generator=generator, dtype=torch.float64) for _ in "ab")
    turned, other = (torch.linalg.qr(x)[0] for x in drawn)
    return turned * torch.logspace(0, -1, size, base=condition, dtype=torch.float64) @ other


def off(mine: torch.Tensor, theirs: torch.Tensor, relative: float, dims: Any = None) -> float:
    """Returns the largest error in proportion to the declared error, so that 1 is the limit.

    The declared error is the relative error times the greatest number, and two units.
    """
    greatest = theirs.abs().amax(dims, keepdim=True) if dims else theirs.abs().max()
    return float(((mine.double() - theirs).abs() / (greatest * relative + 2.0**-15)).max())


def systems(a: Any, positive: Any, right: Any, *, det: bool) -> list[Any]:
    """Returns all factors and solutions of a matrix and a positive definite matrix."""
    triangle = positive.triu()
    found = [
        torch.linalg.inv(a),
        *torch.linalg.qr(a),
        torch.linalg.cholesky(positive),
        torch.linalg.solve(a, right),
        torch.linalg.solve(a, right.mT, left=False).mT,
        torch.linalg.solve_triangular(triangle, right, upper=True),
    ]
    return [*found, torch.linalg.slogdet(a)[1], *([torch.linalg.det(a)] if det else [])]


def check_systems(protocol: str, size: int, condition: float, scale: float, **more: Any) -> None:
    a = encoded(conditioned(size, condition) * scale)
    root = conditioned(size, condition**0.5, seed=1)
    positive = encoded((root @ root.mT) * scale)
    right = encoded(a @ torch.tensor([[1.0, -min(1e3, 1e8 / scale)]]).double().expand(size, 2))
    # Rounding may make a positive definite matrix indefinite, so the diagonal is increased.
    positive = positive + encoded(torch.eye(size) * scale / condition + 2.0**-14)
    det = float(torch.linalg.det(a).abs()) < 2**29

    def program() -> list[torch.Tensor]:
        shared = (tacit.share(x, owner=0) for x in (a, positive, right))
        return [value.reveal() for value in systems(*shared, det=det)]

    with warnings.catch_warnings():
        warnings.simplefilter("error", tacit.RangeWarning)
        results = tacit.launch(program, protocol=protocol, **more)[0]
    expected = systems(a, positive, right, det=det)
    declared = [(2**-17, None)] * 4 + [(2**-17, (-2,))] * 3 + [(2**-16, None)] * (1 + det)
    for at, (mine, theirs, (relative, dims)) in enumerate(
        zip(results, expected, declared, strict=True)
    ):
        assert off(mine, theirs, relative, dims) < (4 if theirs.dim() == 0 else 1), (
            at,
            mine,
            theirs,
        )


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4, 1e8])
@pytest.mark.parametrize(("size", "condition"), [(1, 1.0), (3, 1.5), (4, 1000.0), (9, 30.0)])
def test_every_magnitude(size: int, condition: float, scale: float) -> None:
    check_systems("plain", size, condition, scale)


@pytest.mark.parametrize("scale", [1e-2, 1e5])
@pytest.mark.parametrize("protocol", ["replicated", "additive"])
def test_every_magnitude_in_both_families(protocol: str, scale: float) -> None:
    more = {"parties": 2, "source": "dealer"} if protocol == "additive" else {}
    check_systems(protocol, 3, 1000.0, scale, **more)


#: Factors of rows or columns: from thousandths to millions, a salary next to an age, and equal
#: ones.
WIDE, PEOPLE, EVEN = (1e-3, 1.0, 1e3, 1e6), (2e4, 40.0, 1.0, 1.0), (1.0,) * 4


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (WIDE, EVEN),
        (EVEN, WIDE),
        (PEOPLE, EVEN),
        (EVEN, PEOPLE),
        (PEOPLE, PEOPLE),
        (PEOPLE, WIDE[1:] + (1.0,)),
    ],
)
def test_rows_and_columns_of_unlike_magnitudes(
    rows: tuple[float, ...], columns: tuple[float, ...]
) -> None:
    base = torch.eye(4) + 0.3 * torch.rand(4, 4, generator=torch.Generator().manual_seed(3))
    a = torch.tensor(rows)[:, None] * base * torch.tensor(columns)
    a = encoded(a * min(1.0, 5e8 / float(a.max())))
    solution = (
        torch.tensor([[1.0, -2.0, 3.0, 0.5]]).mT / torch.tensor(columns)[:, None] * min(columns)
    )
    right = encoded(a @ solution.double())

    def program() -> list[torch.Tensor]:
        shared = [tacit.share(x, owner=0) for x in (a, right)]
        return [
            value.reveal() for value in (torch.linalg.solve(*shared), torch.linalg.inv(shared[0]))
        ]

    solved, inverse = tacit.launch(program, protocol="plain")[0]
    sizes = a.norm(dim=0)[:, None]
    expected = torch.linalg.solve(a, right)
    bound = 2.0**-15 + 2.0**-17 * (expected * sizes).abs().max() / sizes
    assert bool(((solved - expected).abs() < bound).all())
    assert off(inverse, torch.linalg.inv(a), 2**-17) < 1


def ridge(x: Any, y: Any) -> Any:
    product = x.T @ x
    return torch.linalg.solve(product + torch.eye(x.shape[1]), x.T @ y)


def ordinary(x: Any, y: Any) -> Any:
    return torch.linalg.solve(x.T @ x, x.T @ y)


def by_cholesky(x: Any, y: Any) -> Any:
    return torch.cholesky_solve((x.T @ y).unsqueeze(1), torch.linalg.cholesky(x.T @ x)).squeeze(1)


def moved_by_rounding(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns by how much two units of each element of the Cholesky factor move the solution."""
    a = x.T @ x
    factor, solution = torch.linalg.cholesky(a), torch.linalg.solve(a, x.T @ y)
    total = torch.zeros_like(solution)
    for row, column in torch.tril_indices(*a.shape).T:
        change = torch.zeros_like(a)
        change[row, column] = 2**-15
        change = change @ factor.T + factor @ change.T
        total += torch.linalg.solve(a, change @ solution).abs()
    return total


@pytest.mark.parametrize("fit", [ordinary, ridge, by_cholesky])
@pytest.mark.parametrize("kind", ["standardised", "as people are"])
def test_least_squares_of_10_000_rows(fit: Callable[[Any, Any], Any], kind: str) -> None:
    """The normal equations have elements as large as the number of rows and larger."""
    drawn = torch.Generator().manual_seed(1)
    x = torch.randn(10_000, 4, generator=drawn)
    weights = torch.tensor([1.0, -2.0, 3.0, 0.5])
    if kind != "standardised":
        # An intercept, years of age, years at work, and an income in thousands.
        age = torch.randint(18, 70, (10_000,), generator=drawn).float()
        work = (age - 18) * torch.rand(10_000, generator=drawn)
        x = torch.stack([torch.ones(10_000), age, work, (20 + 8 * x[:, 0]).abs() * 5], 1)
        weights = torch.tensor([-12.5, 0.8, -0.35, 1.2])
    y = x @ weights + 3 * torch.randn(10_000, generator=drawn)

    def program() -> torch.Tensor:
        return fit(tacit.share(x, owner=0), tacit.share(y, owner=1)).reveal()

    expected = fit(encoded(x), encoded(y))
    bound = torch.full_like(expected, 2**-14)
    if fit is by_cholesky:
        # The factor's first element is 100, and a unit less moves the intercept by 3.5e-4.
        bound += moved_by_rounding(encoded(x), encoded(y))
    assert bool(((tacit.launch(program)[0] - expected).abs() < bound).all())


def test_a_rehearsal_tells_of_singular_matrices_and_its_remedy_works() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [0.0, 0.0, 1.0], [1.0, 2.0, 7.0]])

    def program(fit: Callable[[Any, Any], Any]) -> torch.Tensor:
        return fit(tacit.share(x, owner=0), tacit.share(x[:, 2], owner=0)).reveal()

    for fit, told in ((ordinary, "singular"), (by_cholesky, "not positive definite")):
        with pytest.warns(
            tacit.RangeWarning, match=f"{told}.*condition number beyond 2\\^10.*add a multiple"
        ):
            tacit.launch(program, fit, protocol="plain")
    with pytest.warns(tacit.RangeWarning, match="columns depend on each other"):
        tacit.launch(program, lambda x, _: torch.linalg.qr(x)[0], protocol="plain")
    with warnings.catch_warnings():
        warnings.simplefilter("error", tacit.RangeWarning)
        found = tacit.launch(program, ridge, protocol="plain")[0]
    assert (found - ridge(x, x[:, 2])).abs().max() < 2**-13


def test_a_rehearsal_tells_of_results_out_of_range() -> None:
    def program() -> torch.Tensor:
        return torch.linalg.det(tacit.share(torch.eye(3) * 1e4, owner=0)).reveal()

    with pytest.warns(tacit.RangeWarning, match="linalg_det"):
        tacit.launch(program, protocol="plain")


def test_factors_with_pivots_are_refused() -> None:
    def program() -> None:
        with pytest.raises(tacit.UnsupportedOperatorError, match="LU factorisation with pivots"):
            torch._linalg_det(tacit.share(A, owner=0))[1].reveal()

    tacit.launch(program, protocol="plain")
