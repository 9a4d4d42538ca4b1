"""Factors, determinants, inverses and solutions of small systems.

The algorithms are loops over the public size. They do not search for pivots, whose positions would
be secret. Inverses are iterated (``equilibration``). General matrices are factored by Householder's
reflections, and positive definite ones by Cholesky's method (``reflections``). Rows and columns are
normalised by powers of two that stay secret.

Domain: numbers of the matrix, of the right side and of the result in range, and condition numbers
up to 2^10. The condition number is that of the matrix as it is, or with rows and columns multiplied
by factors that minimise it (for Q and R columns only). A singular or nearly singular matrix gives
numbers without meaning and no error, since an error would reveal it. A run under
``protocol="plain"`` warns of it.

Error: two units of the result's scale, plus 2^−17 of the largest number of an inverse, of a factor,
or of a column of a solution (in each row times the norm of the matrix's column), or 2^−16 of a
determinant. This holds for the matrix as it is encoded, with 16 fraction bits by default. The
result for a nearly singular matrix depends on these bits.
"""

import math
from functools import partial
from typing import Any

import torch

from tacit import checks, fixed
from tacit.fixed import WHOLE, Scale
from tacit.modes import outside_trace
from tacit.operators.dispatch.operands import (
    compared,
    fraction,
    lifted,
    public,
    session_of,
    shifted,
)
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics import approximation, reflections
from tacit.operators.numerics.approximation.exponents import leading, limited, moved
from tacit.operators.numerics.approximation.quotients import flipped, magnitude
from tacit.operators.numerics.equilibration import Equilibrated, Inverse, inverted
from tacit.operators.numerics.reflections import FINE
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Offset that makes exponents of either sign positive.
_RAISED = fixed.WORD

#: Most fraction bits of public matrices.
_MOST_PUBLIC = 30


def _given(x: Any, session: Session) -> SecretTensor:
    """Returns a matrix or a right side as a secret tensor.

    Public ones get as many fraction bits as there is room for.
    """
    if isinstance(x, SecretTensor):
        return fraction(x)
    scale = _scale_of_public(public(x), session.scale)
    return SecretTensor(lifted(session, x, scale), scale, session, x.dtype)


@outside_trace
def _scale_of_public(values: torch.Tensor, session: Scale) -> Scale:
    greatest = float(values.abs().max()) if values.numel() else 0.0
    if not 0.0 < greatest < math.inf:
        return session
    room = fixed.ENCODED - 1 - math.ceil(math.log2(greatest))
    return Scale(max(session.bits, min(room, _MOST_PUBLIC)))


class _Factors:
    """Stand-in for factors with pivots, which are not computed. It solves the same systems."""

    def __init__(self, matrix: SecretTensor) -> None:
        self._matrix = matrix
        self._inverse: Inverse | None = None

    def parts(self) -> Parts:
        """Refuses to give the values of the factors."""
        unsupported(
            "an LU factorisation with pivots, as in the gradient of a determinant,",
            "use linalg.qr, linalg.solve or linalg.inv",
        )

    @property
    def inverse(self) -> Inverse:
        """Inverse of the matrix, computed once."""
        if self._inverse is None:
            x = self._matrix
            self._inverse = inverted(Equilibrated.of(x._session, x._parts, x._scale.bits))
        return self._inverse

    def solve(self, right: SecretTensor, *, left: bool, transposed: bool = False) -> SecretTensor:
        """Solves M·X = right, or X·M = right, which is Mᵀ·Xᵀ = rightᵀ.

        M is the matrix, or its transpose if ``transposed``.
        """
        if not left:
            found: SecretTensor = self.solve(right.mT, left=True, transposed=not transposed).mT
            return found
        by, scale = self.inverse.transposed if transposed else self.inverse, right._session.scale
        return right.like(by.solution(right._parts, right._scale.bits, scale.bits), scale)


def _unfactored(x: Any, factors: _Factors) -> tuple[SecretTensor, SecretTensor]:
    """Returns the LU factors and pivots of a matrix as lazy tensors."""
    lu, pivots = (
        SecretTensor((), WHOLE, session_of(x), dtype, shape=shape, later=factors)
        for dtype, shape in ((x.dtype, x.shape), (torch.int32, x.shape[:-1]))
    )
    return lu, pivots


def _errors(x: torch.Tensor) -> torch.Tensor:
    """Returns error codes: zero for every matrix."""
    return torch.zeros(x.shape[:-2], dtype=torch.int32)


def _raised(session: Session, exponent: Parts) -> Parts:
    """Returns an exponent plus ``_RAISED``."""
    raised = shares.trivial(session, torch.tensor(_RAISED))
    return tuple(part + more for part, more in zip(exponent, raised, strict=True))


# General matrices
# --------------------------------------------------------------------------------------


@implements(aten.linalg_qr.default, scale=of_session)
def qr(x: SecretTensor, mode: str = "reduced") -> tuple[Any, Any]:
    """Returns Q and R. The diagonal of R has the signs that LAPACK gives it.

    About 60 rounds for each column, and 80 more.
    """
    session, scale = x._session, x._session.scale
    rows, columns = x.shape[-2:]
    least = min(rows, columns)
    x = fraction(x)
    given = reflections.normalised(session, x._parts, compared(session, x._scale))
    steps = min(max(0, rows - 1), columns)
    triangular, found = reflections.reflected(session, given.parts, steps)
    kept = rows if mode == "complete" else least
    triangular = tuple(part[..., :kept, :].triu() for part in triangular)
    # A column of R has the magnitude of the matrix's column.
    exponents = _raised(session, shares.negate(given.exponents))
    down = _RAISED + FINE - given.fill + x._scale.bits - scale.bits
    upper = x.like(moved(session, triangular, exponents, down), scale)
    if mode == "r":
        return torch.empty(0, dtype=x.dtype), upper
    result = reflections.orthogonal(session, found, rows, kept, given.parts)
    return x.like(shifted(session, result, FINE, scale.bits), scale), upper


def _determinant(x: SecretTensor) -> tuple[Parts, Parts, Parts]:
    """Returns the determinant's sign as a bit, and its magnitude f·2^e as ring elements f and e.

    f is from 1/2 to 1 and has FINE + 1 fraction bits.
    """
    session, size, width = x._session, x.shape[-1], FINE + 1
    x = fraction(x)
    given = Equilibrated.of(session, x._parts, x._scale.bits)
    triangular, _ = reflections.reflected(session, given.fine(FINE), max(0, size - 1))
    diagonal = tuple(part.diagonal(dim1=-2, dim2=-1).movedim(-1, 0) for part in triangular)
    negative, sizes = magnitude(session, diagonal, width + 3)
    exponent, power = leading(session, sizes, width)
    factors = bilinear.multiply(session, sizes, power, 0)
    exponents = [
        exponent,
        *(tuple(part.flatten(-2).movedim(-1, 0) for part in side) for side in given.sides),
    ]
    while (count := len(factors[0])) > 1:
        half = count // 2
        first, second = (
            tuple(part[start : start + half] for part in factors) for start in (0, half)
        )
        both = bilinear.multiply(session, first, second, width)
        exponent, power = leading(session, both, width)
        exponents.append(exponent)
        rest = tuple(part[2 * half :] for part in factors)
        factors = shares.joined(bilinear.multiply(session, both, power, 0), rest)
    whole = shares.trivial(session, torch.tensor(size * (1 + given.fill - given.bits)))
    total = tuple(
        -torch.cat(parts).sum(0) + more for *parts, more in zip(*exponents, whole, strict=True)
    )
    # Each reflection changes the sign.
    turns = torch.full(diagonal[0].shape[1:], (size - 1) % 2, dtype=torch.uint8)
    odd = shares.xor(
        tuple((part.sum(0) % 2).to(torch.uint8) for part in negative),
        shares.trivial_bits(session, turns),
    )
    return odd, tuple(part[0] for part in factors), total


@implements(aten._linalg_det.default, scale=of_session)
def det(x: SecretTensor) -> tuple[SecretTensor, SecretTensor, SecretTensor]:
    """Returns the determinant.

    It is the product of R's diagonal, with a change of sign for each reflection. Its gradient is
    not supported. About 60 rounds for each column, 30 for each doubling of their number,
    and 100 more.
    """
    session, scale, lu = x._session, x._session.scale, _unfactored(x, _Factors(fraction(x)))
    if not x.numel():
        return _full(x, 1.0), *lu
    odd, factor, exponent = _determinant(x)
    # A determinant that is too small becomes 0. 32 bits hold the sum of all of a matrix's
    # exponents.
    exponent = limited(session, _raised(session, exponent), 32)
    size = moved(session, factor, exponent, _RAISED + FINE + 1 - scale.bits)
    # A determinant that is too large becomes as large as possible. Checked mode refuses it.
    checks.hold(session, size, fixed.ENCODED - 2 + scale.bits - fixed.DEFAULT.bits)
    return x.like(flipped(session, odd, size), scale), *lu


@implements(aten._linalg_slogdet.default, scale=of_session)
def slogdet(x: SecretTensor) -> tuple[SecretTensor, SecretTensor, SecretTensor, SecretTensor]:
    """Returns the determinant's sign and the logarithm of its magnitude.

    The logarithm is off by 2^−14 and by the relative error of the determinant. Takes the rounds of
    a determinant and a logarithm.
    """
    session, scale = x._session, x._session.scale
    # PyTorch factors the transpose of a contiguous tensor, and its gradient relies on that.
    lu = _unfactored(x, _Factors(fraction(x.mT if x.is_contiguous() else x)))
    if not x.numel():
        return _full(x, 1.0), _full(x, 0.0), *lu
    odd, factor, exponent = _determinant(x)
    sign = _full(x, 1.0)
    logarithm: Any = approximation.log(x.like(factor, Scale(FINE + 1)), positive=True)
    unit = fixed.word(math.log(2.0), _MOST_PUBLIC)
    more = shares.truncate(
        session, tuple(part * unit for part in exponent), _MOST_PUBLIC - scale.bits
    )
    signs = x.like(flipped(session, odd, sign._parts), scale)
    return signs, x.like(shares.add(logarithm._parts, more), scale), *lu


def _full(x: SecretTensor, value: float) -> SecretTensor:
    """Returns one number for each matrix."""
    scale = x._session.scale
    words = fixed.encode(torch.full(x.shape[:-2], value), scale)
    return x.like(shares.trivial(x._session, words), scale)


@implements(aten.linalg_inv_ex.default, scale=of_session)
def inv(x: SecretTensor, *, check_errors: bool = False) -> tuple[SecretTensor, torch.Tensor]:  # noqa: ARG001
    """Returns the inverse. About 140 rounds, whatever the size."""
    scale = x._session.scale
    found = _Factors(fraction(x)).inverse.found(scale.bits)
    return x.like(found, scale), _errors(x)


@implements(aten._linalg_solve_ex.default, scale=of_session)
def solve(
    x: Any,
    right: Any,
    *,
    left: bool = True,
    check_errors: bool = False,  # noqa: ARG001
) -> tuple[SecretTensor, SecretTensor, SecretTensor, torch.Tensor]:
    """Solves x·X = right, or X·x = right.

    The inverse gives a first solution, which is improved by its residual. About 200 rounds,
    whatever the size.
    """
    session = session_of(x, right)
    is_vector = right.dim() == 1 or (right.dim() == x.dim() - 1 and right.shape == x.shape[:-1])
    x, right = _given(x, session), _given(right, session)
    factors = _Factors(x)
    if is_vector:
        found: Any = factors.solve(right.unsqueeze(-1), left=left).squeeze(-1)
    else:
        found = factors.solve(right, left=left)
    return found, *_unfactored(x, factors), _errors(x)


@implements(aten.linalg_lu_solve.default, scale=of_session)
def lu_solve(
    lu: SecretTensor,
    pivots: Any,  # noqa: ARG001
    right: Any,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> SecretTensor:
    """Solves a system by the factors of a determinant or of a solution, for PyTorch's gradients."""
    if not isinstance(lu, SecretTensor) or not isinstance(lu._later, _Factors):
        unsupported("a solution by LU factors", "use linalg.solve")
    return lu._later.solve(_given(right, lu._session), left=left, transposed=adjoint)


# Triangular and positive definite matrices
# ---------------------------------------------------------------------


@implements(aten.linalg_solve_triangular.default, scale=of_session)
def solve_triangular(
    x: Any, right: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> SecretTensor:
    """Solves x·X = right, or X·x = right, for the triangular part of x. Rounds as ``solve``."""
    session = session_of(x, right)
    return _triangular(_given(x, session), upper, unitriangular).solve(
        _given(right, session), left=left
    )


def _triangular(x: SecretTensor, upper: bool, unitriangular: bool = False) -> _Factors:
    """Returns the factors that solve systems by the triangular part of a matrix."""
    cut = partial(
        torch.triu if upper else torch.tril, diagonal=int(unitriangular) * (1 if upper else -1)
    )
    parts = tuple(map(cut, x._parts))
    if unitriangular:
        words = torch.eye(x.shape[-1], dtype=torch.int64) << x._scale.bits
        eye = shares.trivial(x._session, words)
        parts = tuple(part + one for part, one in zip(parts, eye, strict=True))
    return _Factors(x.like(parts))


@implements(aten.triangular_solve.default, scale=of_session)
def triangular_solve(
    right: Any, x: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[SecretTensor, Any]:
    """Solves as ``solve_triangular``, with the operands in the other order.

    Also returns the matrix.
    """
    transposed = x.mT if transpose else x
    result = solve_triangular(
        transposed, right, upper=upper != transpose, unitriangular=unitriangular
    )
    return result, x.clone() if isinstance(x, SecretTensor) else x


@implements(aten.linalg_cholesky_ex.default, scale=of_session)
def cholesky(
    x: SecretTensor,
    *,
    upper: bool = False,
    check_errors: bool = False,  # noqa: ARG001
) -> tuple[SecretTensor, torch.Tensor]:
    """Returns the triangular L with L·Lᵀ = x for positive definite x, or its transpose.

    About 35 rounds for each column, and 50 more.
    """
    session, scale = x._session, x._session.scale
    x = fraction(x)
    given = reflections.balanced(session, x._parts, x._scale.bits)
    lower = reflections.cholesky(session, given.parts)
    exponents = _raised(session, shares.negate(given.exponents))
    down = _RAISED + FINE - (given.half - given.half_bits) - scale.bits
    found = moved(session, lower, exponents, down)
    return x.like(
        tuple(part.mT.contiguous() for part in found) if upper else found, scale
    ), _errors(x)


@implements(aten.cholesky_solve.default, scale=of_session)
def cholesky_solve(right: Any, factor: Any, upper: bool = False) -> SecretTensor:
    """Solves L·Lᵀ·X = right: two solutions by one inverse. About 280 rounds, whatever the size.

    The result is for L as it is: one that was computed here was rounded, which moves the result.
    ``torch.linalg.solve`` rounds no factor.
    """
    session = session_of(right, factor)
    factors = _triangular(_given(factor, session), upper)
    between = factors.solve(_given(right, session), left=True, transposed=upper)
    return factors.solve(between, left=True, transposed=not upper)


@implements(aten.cholesky_inverse.default, scale=of_session)
def cholesky_inverse(factor: SecretTensor, upper: bool = False) -> SecretTensor:
    """Returns the inverse of L·Lᵀ. Rounds as ``cholesky_solve``."""
    eye = torch.eye(factor.shape[-1], dtype=factor.dtype).expand(factor.shape)
    return cholesky_solve(eye, factor, upper)
