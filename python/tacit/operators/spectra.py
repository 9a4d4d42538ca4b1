"""Eigenvalues and singular values of small matrices, their pseudo-inverses and least squares.

Eigenvalues and singular values come from Jacobi's rotations (``numerics.rotations``), with a number
of sweeps that follows from the size alone. Least squares take Householder's reflections of
normalised columns (``numerics.reflections``).

Domain: elements and results in range. Error: 2^−18 of the norm of the matrix, and two units, for
the matrix as it is encoded. Vectors are off by that divided by the distance of their value from the
others; those of equal values are some basis. Signs of vectors are not those of LAPACK, which differ
between releases too.
"""

from typing import Any

import torch

from tacit import fixed
from tacit.operators.composed import composes
from tacit.operators.dispatch.operands import Number, compared, fraction, in_full, session_of
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics import reflections, rotations
from tacit.operators.numerics.approximation.exponents import leading, limited, moved
from tacit.operators.numerics.approximation.quotients import magnitude, reciprocal
from tacit.operators.numerics.equilibration import (
    Equilibrated,
    inverted,
    logarithm,
    matrix_product,
    transposed,
)
from tacit.operators.numerics.reflections import FINE, elementwise
from tacit.operators.selection import target
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Singular values below this part of the greatest count as zero in a pseudo-inverse.
LEAST_RATIO = 2.0**-11

#: What a singular value must be more than its limit, as a part of the norm.
_MARGIN = 2.0**-14

#: Offset that makes exponents of either sign positive, and bits of sums of exponents.
_RAISED, _EXPONENTS = fixed.WORD, 16

#: Fraction bits of a reciprocal before a step of Newton's method.
_ROUGH = 20


class _Filled:
    """Matrices that are scaled by powers of two to Frobenius norms up to 1/2, FINE fraction bits.

    A word of the matrix is the fraction times 2^(fill − exponent)."""

    def __init__(self, x: SecretTensor) -> None:
        self.session, self.bits = x._session, x._scale.bits
        more = logarithm(x.shape[-1] * x.shape[-2])
        _, sizes = magnitude(self.session, x._parts, compared(self.session, x._scale))
        sums = tuple(part.sum((-2, -1), keepdim=True) for part in sizes)
        self.exponent, power = leading(self.session, sums, fixed.ENCODED + more)
        product = elementwise(self.session, x._parts, power, 0)
        self.parts = shares.truncate(self.session, product, fixed.ENCODED + more + 1 - FINE)
        self.fill = fixed.ENCODED + more + 1

    def back(self, x: Parts, bits: int, power: int = 1) -> Parts:
        """Returns fractions times the scaling factor, or its inverse, with ``bits`` fraction bits.

        ``power`` is 1 or −1. About 20 rounds."""
        session, places = self.session, power * (self.fill - self.bits)
        raised = shares.trivial(session, torch.tensor(_RAISED))
        up = tuple(whole - power * part for whole, part in zip(raised, self.exponent, strict=True))
        up = limited(session, up, _EXPONENTS)
        return moved(session, x, up, _RAISED + FINE - bits - places)


def _sorted(x: SecretTensor, *vectors: SecretTensor, descending: bool) -> list[Any]:
    """Sorts numbers along the last dimension, and columns of matrices with them."""
    values, order = x.sort(-1, descending=descending)
    found: list[Any] = [values]
    for each in vectors:
        index = order.unsqueeze(-2).expand(each.shape)
        found.append(each.gather(-1, index))
    return found


@implements(aten._linalg_eigh.default, scale=of_session)
def eigh(
    x: SecretTensor, uplo: str = "L", compute_v: bool = True
) -> tuple[SecretTensor, SecretTensor | torch.Tensor]:
    """Returns ascending eigenvalues, and eigenvectors, of symmetric matrices.

    One triangle is read. About 115 rounds for each of log2(n) + 3 sweeps times n, and 100 more.
    """
    x = fraction(x)
    session, scale = x._session, x._session.scale
    below = x.tril() if uplo.upper() == "L" else x.triu().mT
    whole = below + below.tril(-1).mT
    if not x.numel():
        return x.like(tuple(part.diagonal(dim1=-2, dim2=-1) for part in x._parts), scale), x.like(
            x._parts, scale
        )
    with in_full(session):
        filled = _Filled(whole)
        values, vectors = rotations.eigen(session, filled.parts)
        row = tuple(part.unsqueeze(-2) for part in values)
        found = x.like(tuple(part.squeeze(-2) for part in filled.back(row, scale.bits)), scale)
        if not compute_v:
            return _sorted(found, descending=False)[0], torch.empty(0, dtype=x.dtype)
        of_vectors = shares.truncate(session, vectors, FINE - scale.bits)
        values_in_order, columns = _sorted(found, x.like(of_vectors, scale), descending=False)
    return values_in_order, columns


@implements(aten._linalg_svd.default, scale=of_session)
def svd(
    x: SecretTensor,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,  # noqa: ARG001
) -> tuple[Any, Any, Any]:
    """Returns U, descending singular values, and Vᵀ.

    Columns of U whose singular value is below 2^−20 of the norm have no meaning. Full matrices are
    completed by reflections. About 120 rounds for each of log2(n) + 3 sweeps times n, where n is
    the smaller size, and 100 more.
    """
    x = fraction(x)
    session, scale = x._session, x._session.scale
    if not x.numel():
        return _of_nothing(x, full_matrices, compute_uv)
    wide = x.shape[-2] < x.shape[-1]
    tall: SecretTensor = x.mT if wide else x
    with in_full(session):
        filled = _Filled(tall)
        units, values, vectors = rotations.singular(session, filled.parts)
        row = tuple(part.unsqueeze(-2) for part in values)
        found = x.like(tuple(part.squeeze(-2) for part in filled.back(row, scale.bits)), scale)
        empty = torch.empty(0, dtype=x.dtype)
        if not compute_uv:
            return empty, _sorted(found, descending=True)[0], empty
        left, right = (
            x.like(shares.truncate(session, parts, FINE - scale.bits), scale)
            for parts in (units, vectors)
        )
        found, left, right = _sorted(found, left, right, descending=True)
        if full_matrices and tall.shape[-2] > tall.shape[-1]:
            both: Any = torch.cat([left, _complement(left)], -1)
            left = both
    return (right, found, left.mT) if wide else (left, found, right.mT)


def _of_nothing(x: SecretTensor, full_matrices: bool, compute_uv: bool) -> tuple[Any, Any, Any]:
    """Returns what ``svd`` does of no matrices, or of matrices without elements."""
    rows, columns = x.shape[-2:]
    least = min(rows, columns)

    def known(*shape: int, one: int = 0) -> SecretTensor:
        words = torch.eye(*shape, dtype=torch.int64) * one if one else torch.zeros(shape).long()
        words = words.expand(*x.shape[:-2], *shape)
        return x.like(shares.trivial(x._session, words), x._session.scale)

    values = known(least)
    if not compute_uv:
        empty = torch.empty(0, dtype=x.dtype)
        return empty, values, empty
    unit = 1 << x._session.scale.bits
    left = known(rows, rows if full_matrices else least, one=unit)
    return left, values, known(columns if full_matrices else least, columns, one=unit)


def _complement(x: SecretTensor) -> SecretTensor:
    """Returns orthonormal columns that are orthogonal to those of a tall matrix."""
    session, scale, (rows, columns) = x._session, x._session.scale, x.shape[-2:]
    fine = tuple(part << (FINE - scale.bits) for part in x._parts)
    _, found = reflections.reflected(session, fine, columns)
    whole = reflections.orthogonal(session, found, rows, rows, fine)
    rest = tuple(part[..., columns:] for part in whole)
    return x.like(shares.truncate(session, rest, FINE - scale.bits), scale)


@implements(aten.linalg_pinv.atol_rtol_tensor, scale=of_session)
def pinv(
    x: SecretTensor,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> SecretTensor:
    """Returns the pseudo-inverse by singular values.

    Singular values up to the greater of ``atol`` and ``rtol`` times the greatest count as zero, and
    so do those up to 2^−11 of the greatest. Error: 2^−18 of the greatest number of the result times
    the condition number of what is left. Rounds as ``svd``, and 100 more.
    """
    session = session_of(x, atol, rtol)
    x = fraction(target(x, session))
    scale = session.scale
    if not x.numel():
        zeros = torch.zeros(*x.shape[:-2], x.shape[-1], x.shape[-2], dtype=torch.int64)
        return x.like(shares.trivial(session, zeros), scale)
    if hermitian:
        below = x.tril()
        x = below + below.tril(-1).mT
    wide = x.shape[-2] < x.shape[-1]
    with in_full(session):
        filled = _Filled(x.mT if wide else x)
        units, values, vectors = rotations.singular(session, filled.parts)
        kept = _kept(x, filled, values, atol, rtol)
        inverse = _inverted(session, x, values, kept)
        scaled = elementwise(session, vectors, tuple(part.unsqueeze(-2) for part in inverse), FINE)
        product = matrix_product(session, scaled, transposed(units), FINE)
        found = filled.back(product, scale.bits, -1)
    return x.like(transposed(found) if wide else found, scale)


def _kept(x: SecretTensor, filled: _Filled, values: Parts, atol: Any, rtol: Any) -> Parts:
    """Returns bits: which singular values count."""
    scale = x._session.scale
    fractions = x.like(values, fixed.Scale(FINE))
    greatest = fractions.amax(-1, keepdim=True)
    ratio: Any = LEAST_RATIO
    if isinstance(rtol, SecretTensor):
        ratio = rtol.clamp(min=LEAST_RATIO).unsqueeze(-1)
    elif rtol is not None:
        ratio = torch.as_tensor(rtol).double().clamp(min=LEAST_RATIO).unsqueeze(-1)
    # The greatest may be off by a few units, and is not greater than itself.
    kept: Any = fractions > greatest * ratio + _MARGIN
    if atol is not None:
        row = tuple(part.unsqueeze(-2) for part in values)
        true = x.like(tuple(part.squeeze(-2) for part in filled.back(row, scale.bits)), scale)
        limit = atol if isinstance(atol, SecretTensor) else torch.as_tensor(atol)
        kept = kept & (true > limit.unsqueeze(-1))
    bits: Parts = kept._parts
    return bits


def _inverted(session: Session, x: SecretTensor, values: Parts, kept: Parts) -> Parts:
    """Returns 1 / values of those that are kept, else 0, with FINE fraction bits."""
    one = shares.trivial(session, torch.tensor(1 << FINE))
    chosen = shares.bit_multiply(
        session, kept, tuple(part - whole for part, whole in zip(values, one, strict=True))
    )
    chosen = tuple(part + whole for part, whole in zip(chosen, one, strict=True))
    rough = reciprocal(
        x.like(chosen, fixed.Scale(FINE)), positive=True, scale=fixed.Scale(_ROUGH)
    )._parts
    product = bilinear.multiply(session, chosen, rough, _ROUGH)
    error = tuple(whole - part for whole, part in zip(one, product, strict=True))
    change = bilinear.multiply(session, rough, error, _ROUGH)
    fine = tuple((part << (FINE - _ROUGH)) + more for part, more in zip(rough, change, strict=True))
    return shares.bit_multiply(session, kept, fine)


@composes(aten.linalg_matrix_rank.atol_rtol_tensor)
def matrix_rank(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Returns the number of singular values beyond the limits of ``pinv``, which stays secret.

    PyTorch's own limit, a unit of float32, is below the noise of fixed point.
    """
    values = torch.linalg.eigvalsh(x).abs() if hermitian else torch.linalg.svdvals(x)
    if not values.shape[-1]:
        return NotImplemented
    ratio: Any = LEAST_RATIO
    if rtol is not None:
        ratio = torch.as_tensor(rtol).clamp(min=LEAST_RATIO).unsqueeze(-1)
    least = values.amax(-1, keepdim=True) * ratio
    kept = values > least + 4 * 2.0**-x._session.scale.bits
    if atol is not None:
        kept = kept & (values > torch.as_tensor(atol).unsqueeze(-1))
    return kept.sum(-1)


@composes(aten.linalg_matrix_rank.atol_rtol_float)
def matrix_rank_by_floats(
    x: Any, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Any:
    """Returns what ``matrix_rank`` does, for limits that are numbers."""
    return matrix_rank(x, atol=atol, rtol=rtol, hermitian=hermitian)


# Least squares
# ------------------------------------------------------------------------------------------------


@implements(aten.linalg_lstsq.default, scale=of_session)
def lstsq(
    x: Any,
    right: Any,
    rcond: Number | None = None,  # noqa: ARG001
    *,
    driver: str | None = None,
) -> tuple[Any, Any, Any, torch.Tensor]:
    """Returns the least squares solution of x·X = right, or that of least norm if x is wide.

    Method: QR by reflections, with columns of both operands normalised by powers of two that stay
    secret (Golub and Van Loan, Matrix Computations, 5.3 and 5.6).
    Domain: full rank, and condition numbers up to 2^10 after columns (rows, if x is wide) are
    scaled; the given rank is the full one. Error: as ``linalg.solve``, times the condition number.
    About 60 rounds for each column, and 300 more.
    """
    if driver in ("gelsd", "gelss"):
        unsupported(f"linalg.lstsq by {driver}", 'take driver="gels", or linalg.svd')
    session = session_of(x, right)
    x, right = fraction(target(x, session)), fraction(target(right, session))
    is_vector = right.dim() == x.dim() - 1
    right = right.unsqueeze(-1) if is_vector else right
    rows, columns = x.shape[-2:]
    with in_full(session):
        found = _tall(x, right) if rows >= columns else _wide(x, right)
        rank = torch.full(x.shape[:-2], min(rows, columns), dtype=torch.int64)
        residuals: Any = torch.empty(0, dtype=x.dtype)
        if rows > columns and driver != "gelsy" and driver is not None:
            left = right - x @ found
            residuals = (left * left).sum(-2)
    found = found.squeeze(-1) if is_vector else found
    no_rank = torch.empty(0, dtype=torch.int64)
    return found, residuals, no_rank if driver == "gels" else rank, torch.empty(0, dtype=x.dtype)


def _tall(x: SecretTensor, right: SecretTensor) -> SecretTensor:
    session, scale, columns = x._session, x._session.scale, x.shape[-1]
    given, by = (
        reflections.normalised(session, each._parts, compared(session, each._scale))
        for each in (x, right)
    )
    steps = min(x.shape[-2] - 1, columns)
    triangular, found = reflections.reflected(session, given.parts, steps)
    side = by.parts
    for reflection in found:
        side = reflection.of(session, side)
    upper, side = (tuple(part[..., :columns, :] for part in each) for each in (triangular, side))
    upper = tuple(part.triu() for part in upper)
    solution = inverted(Equilibrated.of(session, upper, FINE)).solution(side, FINE, FINE)
    # Columns of both are scaled: the solution is that of the scaled ones times 2^(their exponents).
    places = by.fill - right._scale.bits - given.fill + x._scale.bits
    raised = shares.trivial(session, torch.tensor(_RAISED))
    up = tuple(
        whole + a.mT - b for whole, a, b in zip(raised, given.exponents, by.exponents, strict=True)
    )
    parts = moved(
        session,
        solution,
        limited(session, up, _EXPONENTS),
        _RAISED + FINE - scale.bits - places,
    )
    return right.like(parts, scale)


def _wide(x: SecretTensor, right: SecretTensor) -> SecretTensor:
    q, r = torch.linalg.qr(x.mT)
    found: SecretTensor = q @ torch.linalg.solve_triangular(r.mT, right, upper=False)
    return found
