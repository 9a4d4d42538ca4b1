"""Eigenvalues, singular values, pseudo-inverses, least squares and exponentials of matrices.

They are compared with double precision, for matrices of very different magnitudes.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tacit

SETTINGS = [("plain", 2, None), ("replicated", 3, None), ("additive", 2, "dealer")]

#: The error of the domain's docstring, relative to the norm, and two units.
RELATIVE, UNITS = 2.0**-18, 2 * 2.0**-16


def run(program: Callable[[], Any], setting: tuple[str, int, str | None]) -> Any:
    protocol, parties, source = setting
    return tacit.launch(program, protocol=protocol, parties=parties, source=source)[0]


def encoded(x: torch.Tensor) -> torch.Tensor:
    return (x * 2.0**16).round() * 2.0**-16


def symmetric(size: int, magnitude: float) -> torch.Tensor:
    x = torch.randn(size, size, dtype=torch.float64)
    return encoded((x + x.mT) * magnitude)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("magnitude", [1e-2, 1.0, 1e6])
def test_eigenvalues_and_vectors(setting: tuple[str, int, str | None], magnitude: float) -> None:
    x = symmetric(4, magnitude)

    def program() -> list[torch.Tensor]:
        values, vectors = torch.linalg.eigh(tacit.share(x, owner=0))
        return [values.reveal(), vectors.reveal()]

    values, vectors = run(program, setting)
    plain = torch.linalg.eigh(x)
    most = RELATIVE * float(x.norm()) + UNITS
    assert float((values - plain.eigenvalues).abs().max()) <= most
    gaps = plain.eigenvalues.diff().min()
    assert float((vectors.abs() - plain.eigenvectors.abs()).abs().max()) <= UNITS + most / gaps


@pytest.mark.parametrize(
    "x",
    [
        torch.eye(3, dtype=torch.float64),
        torch.zeros(2, 2, dtype=torch.float64),
        torch.diag(torch.tensor([2.0, -1.0, 2.0, 1e-3], dtype=torch.float64)),
        torch.ones(4, 4, dtype=torch.float64),
    ],
    ids=["identity", "zeros", "equal values", "rank one"],
)
def test_eigenvectors_of_equal_values_are_orthonormal(x: torch.Tensor) -> None:
    def program() -> list[torch.Tensor]:
        values, vectors = torch.linalg.eigh(tacit.share(x, owner=0))
        return [values.reveal(), vectors.reveal()]

    values, vectors = run(program, SETTINGS[0])
    assert torch.allclose(values, torch.linalg.eigvalsh(encoded(x)), atol=UNITS)
    whole = (vectors * values.unsqueeze(-2)) @ vectors.mT
    assert torch.allclose(whole, encoded(x), atol=1e-3)
    assert torch.allclose(vectors.mT @ vectors, torch.eye(len(x), dtype=torch.float64), atol=1e-3)


def test_one_triangle_is_read() -> None:
    x = symmetric(3, 1.0)
    below, above = x.tril() + x.triu(1) * 5, x.triu() + x.tril(-1) * 5

    def program() -> list[torch.Tensor]:
        first = torch.linalg.eigvalsh(tacit.share(below, owner=0))
        second = torch.linalg.eigvalsh(tacit.share(above, owner=0), UPLO="U")
        return [first.reveal(), second.reveal()]

    for found in run(program, SETTINGS[0]):
        assert torch.allclose(found, torch.linalg.eigvalsh(x), atol=1e-3)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("magnitude", [1e-2, 1e4])
@pytest.mark.parametrize("shape", [(5, 3), (2, 4)])
def test_singular_values(
    setting: tuple[str, int, str | None], magnitude: float, shape: tuple[int, int]
) -> None:
    x = encoded(torch.randn(shape, dtype=torch.float64) * magnitude)

    def program() -> list[torch.Tensor]:
        return [one.reveal() for one in torch.linalg.svd(tacit.share(x, owner=0))]

    left, values, right = run(program, setting)
    most = RELATIVE * float(x.norm()) + UNITS
    assert float((values - torch.linalg.svdvals(x)).abs().max()) <= most
    count = min(shape)
    whole = (left[:, :count] * values) @ right[:count]
    assert float((whole - x).abs().max()) <= 1e-3 * float(x.abs().max())
    for vectors in (left, right):
        eye = torch.eye(len(vectors), dtype=torch.float64)
        assert torch.allclose(vectors.mT @ vectors, eye, atol=1e-3)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_ranks_and_pseudo_inverses_of_singular_matrices(
    setting: tuple[str, int, str | None],
) -> None:
    x = encoded(torch.randn(5, 2, dtype=torch.float64) @ torch.randn(2, 4, dtype=torch.float64))

    def program() -> list[torch.Tensor]:
        secret = tacit.share(x, owner=0)
        ranks = (
            torch.linalg.matrix_rank(secret),
            torch.linalg.matrix_rank(secret * 0),
            torch.linalg.matrix_rank(secret, atol=1e3),
            torch.linalg.matrix_rank(secret @ secret.mT, hermitian=True),
            # Two units of 2^−16 may be noise, and eight are not.
            torch.linalg.matrix_rank(tacit.share(torch.eye(2) * 2.0**-15, owner=0)),
            torch.linalg.matrix_rank(tacit.share(torch.eye(2) * 2.0**-13, owner=0)),
        )
        pinv = torch.linalg.pinv(secret)
        return [pinv.reveal(), *(rank.reveal() for rank in ranks)]

    pinv, *ranks = run(program, setting)
    assert [int(rank) for rank in ranks] == [2, 0, 0, 2, 0, 2]
    plain = torch.linalg.pinv(x, rtol=2.0**-11)
    assert torch.allclose(pinv, plain, atol=1e-3)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_least_squares_of_columns_of_many_magnitudes(
    setting: tuple[str, int, str | None],
) -> None:
    """Ages, incomes, rates and a constant, as joint data have them."""
    rows = 200
    x = torch.stack(
        [
            torch.randint(18, 90, (rows,)).double(),
            torch.rand(rows, dtype=torch.float64) * 2e5,
            torch.rand(rows, dtype=torch.float64) * 0.05,
            torch.ones(rows, dtype=torch.float64),
        ],
        1,
    )
    x = encoded(x)
    right = x @ torch.tensor([2.0, 1e-3, 700.0, -5.0], dtype=torch.float64)
    right = encoded(right + torch.randn(rows, dtype=torch.float64))

    def program() -> list[torch.Tensor]:
        secret = tacit.share(x, owner=0), tacit.share(right.unsqueeze(-1), owner=1)
        found = torch.linalg.lstsq(*secret).solution
        return [found.reveal(), (secret[0] @ found).reveal()]

    found, fitted = run(program, setting)
    plain = torch.linalg.lstsq(x, right.unsqueeze(-1), driver="gelsd").solution
    # Coefficients have units of 2^−16, so that the one of the incomes has few digits.
    off = (found - plain).abs().squeeze(-1)
    assert bool((off <= 2.0**-15 + 2.0**-12 * plain.abs().squeeze(-1)).all())
    assert float((fitted - x @ plain).abs().max()) <= 2e5 * 2.0**-15 + 1.0


def test_least_squares_of_few_rows_have_the_least_norm() -> None:
    x, right = encoded(torch.randn(2, 4).double()), encoded(torch.randn(2, 3).double())

    def program() -> torch.Tensor:
        return torch.linalg.lstsq(tacit.share(x, owner=0), tacit.share(right, owner=1))[0].reveal()

    assert torch.allclose(
        run(program, SETTINGS[1]), torch.linalg.lstsq(x, right, driver="gelsd").solution, atol=1e-3
    )


def turning(angle: float) -> torch.Tensor:
    return torch.tensor([[0.0, -angle], [angle, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_exponentials_of_matrices(setting: tuple[str, int, str | None]) -> None:
    matrices = [
        torch.zeros(2, 2, dtype=torch.float64),
        turning(1.0),
        turning(60.0),
        torch.diag(torch.tensor([-60.0, 0.5], dtype=torch.float64)),
        torch.diag(torch.tensor([20.0, -20.0], dtype=torch.float64)),
        torch.full((2, 2), 2.0**-16, dtype=torch.float64),
    ]

    def program() -> list[torch.Tensor]:
        return [torch.linalg.matrix_exp(tacit.share(x, owner=0)).reveal() for x in matrices]

    for x, found in zip(matrices, run(program, setting), strict=True):
        plain = torch.linalg.matrix_exp(x)
        # One turn more of ±60 rad is off by its encoding.
        most = 2.0**-18 * float(plain.abs().max()) * max(1.0, float(x.abs().max())) + UNITS
        assert float((found - plain).abs().max()) <= most


@pytest.mark.parametrize("x", [torch.eye(2) * 65.0, torch.eye(2) * 21.0])
def test_exponentials_that_are_too_large_are_told(x: torch.Tensor) -> None:
    with pytest.warns(tacit.RangeWarning):
        run(lambda: torch.linalg.matrix_exp(tacit.share(x, owner=0)).reveal(), SETTINGS[0])


def test_the_remedy_of_large_exponentials_works() -> None:
    x = torch.eye(2) * -65.0

    def program() -> torch.Tensor:
        half = torch.linalg.matrix_exp(tacit.share(x / 2, owner=0))
        return (half @ half).reveal()

    with warnings.catch_warnings():
        warnings.simplefilter("error", tacit.RangeWarning)
        assert float(run(program, SETTINGS[0]).abs().max()) <= UNITS


def test_a_driver_that_is_refused_is_named_and_its_remedy_works() -> None:
    x, right = torch.randn(4, 2), torch.randn(4, 1)

    def program() -> torch.Tensor:
        secret = tacit.share(x, owner=0), tacit.share(right, owner=0)
        with pytest.raises(tacit.UnsupportedOperatorError, match=r'take driver="gels"'):
            torch.linalg.lstsq(*secret, driver="gelsd")
        return torch.linalg.lstsq(*secret, driver="gels").solution.reveal()

    assert torch.allclose(
        run(program, SETTINGS[0]), torch.linalg.lstsq(x, right).solution, atol=1e-3
    )


def test_sweeps_follow_from_the_size_alone() -> None:
    """The rounds of a run are those of any other, however fast its rotations converge."""

    def program(x: torch.Tensor) -> int:
        secret = tacit.share(x, owner=0)
        before = tacit.session().core.totals()["rounds"]
        torch.linalg.svdvals(secret)
        return int(tacit.session().core.totals()["rounds"] - before)

    found = {tacit.launch(program, x)[0] for x in (torch.eye(3), torch.randn(3, 3))}
    assert len(found) == 1
    assert math.isfinite(found.pop())
