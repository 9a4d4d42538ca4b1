"""Factors, determinants, inverses and solutions of small systems: loops over the public size, as many steps
as there are columns. Pivots are not searched for, since where they are would be secret: general matrices go
through Householder reflections, which need none (Golub and Van Loan, Matrix Computations, 5.2), positive
definite ones through Cholesky's factors.

Domain: columns that are independent, with a condition number up to about 100; numbers of the matrix and of
its inverse below 2^8. What is singular gives numbers without meaning and no error, which would tell of it.
Numbers have 20 fraction bits on the way; the error is about 2^−14 times the condition number.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tacit import fixed, shares
from tacit.fixed import WHOLE, Scale
from tacit.operators import approximation
from tacit.operators.operands import lifted, rescaled, session_of
from tacit.operators.scales import of_session
from tacit.operators.table import implements, unsupported
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Of all that is computed on the way.
FINE = Scale(20)


def _fine(x: Any, session: Session) -> SecretTensor:
    return SecretTensor(lifted(session, x, FINE), FINE, session, x.dtype)


def _finely(compute: Callable[..., Any], *operands: Any) -> Any:
    """A function of operands that are secret and have many fraction bits; results at the session's scale."""
    session = session_of(*operands)
    fine = [_fine(x, session) for x in operands]
    with session.at_scale(FINE):
        results = compute(*fine)
    if isinstance(results, SecretTensor):
        return rescaled(results, session.scale)
    return tuple(rescaled(result, session.scale) for result in results)


class _Factors:
    """In the place of factors with pivots, which are not computed: what solves the same systems."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self._inverse: Any = None

    def parts(self) -> Parts:
        """Refused."""
        unsupported(
            "an LU factorisation with pivots, as in the gradient of a determinant,",
            "use linalg.qr, linalg.solve or linalg.inv",
        )

    def solve(self, right: Any, turned: bool) -> Any:
        """X of matrix·X = right, or of its transpose: by the inverse, which is worked out once, and once
        more of what is left."""
        if self._inverse is None:
            self._inverse = _inverted(self._matrix)
        matrix, inverse = (x.mT if turned else x for x in (self._matrix, self._inverse))
        found = inverse @ right
        return found + inverse @ (right - matrix @ found)


def _unfactored(x: Any, factors: _Factors) -> tuple[SecretTensor, SecretTensor]:
    """LU and pivots that a matrix would have."""
    lu, pivots = (
        SecretTensor((), WHOLE, session_of(x), dtype, shape=shape, later=factors)
        for dtype, shape in ((x.dtype, x.shape), (torch.int32, x.shape[:-1]))
    )
    return lu, pivots


def _errors(x: torch.Tensor) -> torch.Tensor:
    """None, whatever the matrix."""
    return torch.zeros(x.shape[:-2], dtype=torch.int32)


def _identity(size: int, like: SecretTensor) -> SecretTensor:
    eye = shares.trivial(like._session, fixed.encode(torch.eye(size), like._scale))
    return like.like(tuple(part.expand(*like.shape[:-2], size, size) for part in eye))


# Steps ------------------------------------------------------------------------------------------------


def _inverse_root(x: Any) -> Any:
    """1 / √x with one step of Newton's method more."""
    y = approximation.rsqrt(x, positive=True)
    return y + 0.5 * (y * (1.0 - (x * y) * y))


def _reciprocal(x: Any, positive: bool = False) -> Any:
    """1 / x with one step of Newton's method more."""
    y = approximation.reciprocal(x, positive=positive)
    return y + y * (1.0 - x * y)


def _reflected(x: Any, steps: int) -> Any:
    """(…, rows, columns) with zeros below the diagonal of the first columns: for each of them a reflection
    I − τ·v·vᵀ of all rows from its own on, with v = x/‖x‖ ± e₁ and τ = 1/(1 + |x₁|/‖x‖)."""
    for at in range(steps):
        lower = x[..., at:, at:]
        column = lower[..., :1]
        unit = column * _inverse_root((column * column).sum(-2, keepdim=True))
        first = unit[..., :1, :]
        side = 1.0 - 2.0 * (first < 0).to(x.dtype)
        factor = _reciprocal(1.0 + side * first, positive=True)
        direction = torch.cat([first + side, unit[..., 1:, :]], -2)
        lower = lower - (factor * direction) @ (direction.mT @ lower)
        below = torch.cat([x[..., at:, :at], lower], -1)
        x = torch.cat([x[..., :at, :], below], -2)
    return x


def _factored(x: Any) -> tuple[Any, Any]:
    """R and Qᵀ, of all rows."""
    rows, columns = x.shape[-2:]
    both = _reflected(torch.cat([x, _identity(rows, x)], -1), min(rows - 1, columns))
    return both[..., :columns].triu(), both[..., columns:]


def _substituted(x: Any, right: Any) -> Any:
    """X of T·X = right for upper triangular T: from the last row on, two rounds each."""
    size = x.shape[-1]
    inverse = _reciprocal(x.diagonal(dim1=-2, dim2=-1)).unsqueeze(-1)
    found = right[..., :0, :]
    for at in reversed(range(size)):
        row = right[..., at : at + 1, :]
        if at < size - 1:
            row = row - x[..., at : at + 1, at + 1 :] @ found
        found = torch.cat([inverse[..., at : at + 1, :] * row, found], -2)
    return found


def _inverted(x: Any) -> Any:
    """The inverse, with a step of Schulz's method that squares what is missing."""
    triangular, turned = _factored(x)
    inverse = _substituted(triangular, turned)
    return inverse + inverse @ (_identity(x.shape[-1], x) - x @ inverse)


# General matrices --------------------------------------------------------------------------------------


@implements(aten.linalg_qr.default, scale=of_session)
def qr(x: SecretTensor, mode: str = "reduced") -> tuple[Any, Any]:
    """Q and R, whose diagonal has the signs of LAPACK. About 90 rounds for each column."""
    rows, columns = x.shape[-2:]
    least = min(rows, columns)

    def factors(x: Any) -> tuple[Any, Any]:
        triangular, turned = _factored(x)
        kept = rows if mode == "complete" else least
        return turned.mT[..., :kept].clone(), triangular[..., :kept, :].clone()

    found: tuple[Any, Any] = _finely(factors, x)
    return (torch.empty(0, dtype=x.dtype), found[1]) if mode == "r" else found


def _diagonal(x: Any) -> tuple[Any, int]:
    """R's diagonal, and the sign that the reflections together have."""
    steps = max(0, x.shape[-1] - 1)
    return _reflected(x, steps).diagonal(dim1=-2, dim2=-1), (-1) ** steps


@implements(aten._linalg_det.default, scale=of_session)
def det(x: SecretTensor) -> tuple[SecretTensor, SecretTensor, SecretTensor]:
    """The determinant: the product of R's diagonal, and a sign for each reflection. Its gradient is
    not supported."""

    def determinant(x: Any) -> Any:
        diagonal, sign = _diagonal(x)
        return diagonal.prod(-1) * sign

    return _finely(determinant, x), *_unfactored(x, _Factors(_fine(x, x._session)))


@implements(aten._linalg_slogdet.default, scale=of_session)
def slogdet(x: SecretTensor) -> tuple[SecretTensor, SecretTensor, SecretTensor, SecretTensor]:
    """The determinant's sign, and the logarithm of its magnitude as a sum of those of R's diagonal."""

    def parts(x: Any) -> tuple[Any, Any]:
        diagonal, sign = _diagonal(x)
        signs = 1.0 - 2.0 * (diagonal < 0).to(x.dtype)
        return signs.prod(-1) * sign, diagonal.abs().log().sum(-1)

    # PyTorch factors the transpose of what is contiguous, and its gradient counts on that.
    factored = x.mT if x.is_contiguous() else x
    return *_finely(parts, x), *_unfactored(x, _Factors(_fine(factored, x._session)))


@implements(aten.linalg_inv_ex.default, scale=of_session)
def inv(x: SecretTensor, *, check_errors: bool = False) -> tuple[SecretTensor, torch.Tensor]:  # noqa: ARG001
    """The inverse. About 90 rounds for each column, and 50."""
    return _finely(_inverted, x), _errors(x)


@implements(aten._linalg_solve_ex.default, scale=of_session)
def solve(
    x: Any,
    right: Any,
    *,
    left: bool = True,
    check_errors: bool = False,  # noqa: ARG001
) -> tuple[SecretTensor, SecretTensor, SecretTensor, torch.Tensor]:
    """X of x·X = right, or of X·x = right, by the inverse."""
    session = session_of(x, right)
    x = _fine(x, session)
    factors = _Factors(x)
    is_vector = right.dim() == 1 or (right.dim() == x.dim() - 1 and right.shape == x.shape[:-1])

    def solution(right: Any) -> Any:
        return _by_factors(factors, right.unsqueeze(-1), left).squeeze(-1)

    found = _finely(
        solution if is_vector else partial(_by_factors, factors, left=left), _fine(right, session)
    )
    return found, *_unfactored(x, factors), _errors(x)


def _by_factors(factors: _Factors, right: Any, left: bool, turned: bool = False) -> Any:
    """X of M·X = right, or of X·M = right, which is Mᵀ·Xᵀ = rightᵀ."""
    return factors.solve(right, turned) if left else factors.solve(right.mT, not turned).mT


@implements(aten.linalg_lu_solve.default, scale=of_session)
def lu_solve(
    lu: SecretTensor,
    pivots: Any,  # noqa: ARG001
    right: Any,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> SecretTensor:
    """What PyTorch's gradients solve by the factors of a determinant or of a solution."""
    if not isinstance(lu, SecretTensor) or not isinstance(lu._later, _Factors):
        unsupported("a solution by LU factors", "use linalg.solve")
    solve_by = partial(_by_factors, lu._later, left=left, turned=adjoint)
    result: SecretTensor = _finely(solve_by, _fine(right, lu._session))
    return result


# Triangular and positive definite ones ---------------------------------------------------------------------


def _triangular(x: Any, right: Any, upper: bool) -> Any:
    """T·X = right."""
    if upper:
        return _substituted(x, right)
    return _substituted(x.flip(-2, -1), right.flip(-2)).flip(-2)


@implements(aten.linalg_solve_triangular.default, scale=of_session)
def solve_triangular(
    x: Any, right: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> SecretTensor:
    """By substitution, and once more of what is left: each about 45 rounds for the diagonal's reciprocals and
    two for each row."""

    def solution(x: Any, right: Any) -> Any:
        x = x.triu() if upper else x.tril()
        if unitriangular:
            x = x - torch.diag_embed(x.diagonal(dim1=-2, dim2=-1)) + _identity(x.shape[-1], x)
        if not left:
            return turned(x.mT, right.mT, not upper).mT
        return turned(x, right, upper)

    def turned(x: Any, right: Any, upper: bool) -> Any:
        found = _triangular(x, right, upper)
        return found + _triangular(x, right - x @ found, upper)

    result: SecretTensor = _finely(solution, x, right)
    return result


@implements(aten.triangular_solve.default, scale=of_session)
def triangular_solve(
    right: Any, x: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[SecretTensor, Any]:
    """The same with its arguments the other way about; and the matrix."""
    turned = x.mT if transpose else x
    result = solve_triangular(turned, right, upper=upper != transpose, unitriangular=unitriangular)
    return result, _finely(lambda x: x.clone(), x) if isinstance(x, SecretTensor) else x


@implements(aten.linalg_cholesky_ex.default, scale=of_session)
def cholesky(
    x: SecretTensor,
    *,
    upper: bool = False,
    check_errors: bool = False,  # noqa: ARG001
) -> tuple[SecretTensor, torch.Tensor]:
    """The triangular L with L·Lᵀ = x for positive definite x, or its transpose. For each column about 45
    rounds."""

    def factor(x: Any) -> Any:
        columns, rest = [x[..., :0]], x
        for at in range(x.shape[-1]):
            column = rest[..., :, :1] * _inverse_root(rest[..., :1, :1])
            zeros = torch.zeros(*x.shape[:-2], at, 1, dtype=x.dtype)
            columns.append(torch.cat([zeros, column], -2))
            below = column[..., 1:, :]
            rest = rest[..., 1:, 1:] - below @ below.mT
        found = torch.cat(columns, -1)
        return found.mT.clone() if upper else found

    return _finely(factor, x), _errors(x)


@implements(aten.cholesky_solve.default, scale=of_session)
def cholesky_solve(right: Any, factor: Any, upper: bool = False) -> SecretTensor:
    """X of L·Lᵀ·X = right: two substitutions."""
    lower = factor.mT if upper else factor
    between = solve_triangular(lower, right, upper=False)
    return solve_triangular(lower.mT, between, upper=True)


@implements(aten.cholesky_inverse.default, scale=of_session)
def cholesky_inverse(factor: SecretTensor, upper: bool = False) -> SecretTensor:
    """The inverse of L·Lᵀ: two substitutions."""
    eye = torch.eye(factor.shape[-1], dtype=factor.dtype).expand(factor.shape)
    return cholesky_solve(eye, factor, upper)
