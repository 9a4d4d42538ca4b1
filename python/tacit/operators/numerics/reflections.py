"""Triangular factors of small matrices, by Householder reflections or Cholesky's method.

General matrices take Householder reflections, which need no pivots. Positive definite matrices take
Cholesky factors (Golub and Van Loan, Matrix Computations, 4.2 and 5.2).

Secret powers of two scale columns to a norm between 1/2 and 1, and diagonals to between 1/4 and 1.
The rest of each column is scaled in the same way before it is reflected. All intermediate numbers
are below 4.

Domain: condition numbers up to 2^10. For general matrices, this is the condition number after the
columns are scaled to one norm; for positive definite ones, after rows and columns are scaled alike.
"""

from dataclasses import dataclass

import torch

from tacit import fixed
from tacit.modes import is_tracing
from tacit.operators.numerics.approximation.exponents import leading, reciprocal
from tacit.operators.numerics.approximation.fits import FITS, USUAL
from tacit.operators.numerics.approximation.normal import argument
from tacit.operators.numerics.approximation.quotients import flipped, magnitude
from tacit.operators.numerics.approximation.series import RESULT, evaluate
from tacit.operators.numerics.equilibration import REMEDY, logarithm, matrix_product, transposed
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts

#: Fraction bits of intermediate results.
FINE = 28

#: Fraction bits of the first estimate of a root or a reciprocal.
_ROUGH = 22

#: Bits to which words are scaled before columns are squared.
_WORD = 46

#: Least squared norm of the rest of a column, and least pivot of a diagonal, in the domain.
_LEAST, _LEAST_PIVOT = 2.0**-24, 2.0**-14

SINGULAR = "a matrix whose columns depend on each other, or nearly: a condition number beyond 2^10"
INDEFINITE = "a matrix that is not positive definite, or nearly not: a condition number beyond 2^10"


def _check(session: Session, words: Parts, bits: int, least: float, what: str) -> None:
    """Reports numbers that are too small, under the plain reference protocol."""
    if session.is_plain and not is_tracing():
        ranges.check_domain(session, words[0] < least * 2.0**bits, what, REMEDY)


def elementwise(session: Session, x: Parts, y: Parts, drop: int) -> Parts:
    """Multiplies elementwise, for shapes that broadcast."""
    shape = torch.broadcast_shapes(x[0].shape, y[0].shape)  # type: ignore[no-untyped-call]
    left, right = (tuple(part.expand(shape) for part in factor) for factor in (x, y))
    return bilinear.multiply(session, left, right, drop)


def _constant(session: Session, number: float, bits: int, like: Parts) -> Parts:
    whole = shares.trivial(session, torch.tensor(fixed.word(number, bits)))
    return tuple(part.expand(like[0].shape) for part in whole)


def _inverse_root(session: Session, x: Parts, bits: int) -> tuple[Parts, Parts]:
    """Returns 2^e and 2 / √v, where 2^e brings v = x·4^e to between 1 and 4.

    x has the given fraction bits, and is at most 1 and a little more. 2 / √v has FINE fraction bits
    and an error of a few units. About 30 rounds."""
    width = bits + 2
    _, power = leading(session, x, width, even=True)
    filled = elementwise(session, x, bilinear.multiply(session, power, power, 0), width - FINE)
    total = evaluate(session, argument(session, filled, FINE, 0.25), FITS["rsqrt"][USUAL].series)
    rough = shares.truncate(session, total, RESULT - _ROUGH)
    # A step of Newton's method: y + y·(1 − v·y²) / 2.
    square = bilinear.multiply(session, rough, rough, 2 * _ROUGH - FINE)
    error = shares.subtract(
        _constant(session, 1.0, FINE, filled), bilinear.multiply(session, filled, square, FINE)
    )
    change = bilinear.multiply(session, rough, error, _ROUGH + 1)
    return power, tuple(
        (y << (FINE - _ROUGH)) + more for y, more in zip(rough, change, strict=True)
    )


def by_root(session: Session, x: Parts, square: Parts, bits: int) -> Parts:
    """Returns x / √square, for x at most the root. ``square`` may be much less than 1."""
    power, inverse = _inverse_root(session, square, bits)
    return elementwise(session, elementwise(session, x, power, 0), inverse, FINE + 1)


# General matrices
# ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """Columns of a matrix A, scaled by powers of two to norms from 1/2 to 1; FINE fraction bits."""

    parts: Parts
    #: The exponents, (…, 1, columns).
    exponents: Parts
    #: A word of A is the fraction in its column times 2^(fill − exponent).
    fill: int


def normalised(session: Session, x: Parts, width: int) -> Columns:
    """Normalises the columns of a matrix, (…, rows, columns) words below 2^46. About 60 rounds.

    Args:
        width: the width at which words are compared.
    """
    more = logarithm(x[0].shape[-2])
    _, sizes = magnitude(session, x, width)
    sums = tuple(part.sum(-2, keepdim=True) for part in sizes)
    first, power = leading(session, sums, fixed.ENCODED + more)
    x = shares.truncate(session, elementwise(session, x, power, 0), fixed.ENCODED + more - _WORD)
    # The norm may be smaller than the sum of magnitudes by a factor of √rows. It is brought to
    # between 1 and 2 first.
    shorter = shares.truncate(session, x, _WORD - FINE)
    second, power = leading(session, squares_of(session, shorter), 2 * FINE + 2, even=True)
    x = shares.truncate(session, elementwise(session, x, power, 0), _WORD + 1 - FINE)
    return Columns(x, shares.add(first, second), fixed.ENCODED + more + 1)


def squares_of(session: Session, x: Parts) -> Parts:
    """Returns the sums of squares of columns, (…, 1, columns), with twice the fraction bits."""
    rows = tuple(part.mT.unsqueeze(-2) for part in x)
    sums = matrix_product(session, rows, transposed(rows), 0)
    return tuple(part.squeeze(-1).mT for part in sums)


@dataclass(frozen=True)
class Reflection:
    """A reflection I − v·wᵀ of all rows from ``first`` on, where w is a multiple of v."""

    first: int
    v: Parts
    w: Parts

    def of(self, session: Session, x: Parts) -> Parts:
        """Reflects a matrix."""
        lower = tuple(part[..., self.first :, :] for part in x)
        product = matrix_product(session, transposed(self.w), lower, FINE)
        lower = shares.subtract(lower, matrix_product(session, self.v, product, FINE))
        return tuple(
            torch.cat([part[..., : self.first, :], new], -2)
            for part, new in zip(x, lower, strict=True)
        )


def reflected(session: Session, x: Parts, steps: int) -> tuple[Parts, list[Reflection]]:
    """Brings the first ``steps`` columns to zeros below the diagonal, by reflections.

    Each reflection takes about 60 rounds. It is I − v·vᵀ / (1 + |u₁|) with v = u ± e₁, where u is
    the column from the diagonal down, divided by its norm.

    Returns:
        The reflected matrix, and the reflections.
    """
    reflections = []
    for at in range(steps):
        column = tuple(part[..., at:, at : at + 1] for part in x)
        squares = squares_of(session, column)
        _check(session, squares, 2 * FINE, _LEAST, SINGULAR)
        unit = by_root(session, column, squares, 2 * FINE)
        first = tuple(part[..., :1, :] for part in unit)
        negative = shares.sign(session, first, FINE + 3)
        one = _constant(session, 1.0, FINE, first)
        half = shares.truncate(session, shares.add(one, flipped(session, negative, first)), 1)
        side = flipped(session, negative, one)
        v = tuple(
            torch.cat([part + one_side, rest], -2)
            for part, one_side, rest in zip(
                first, side, (part[..., 1:, :] for part in unit), strict=True
            )
        )
        # 1 / (1 + |u₁|), which is half of the reciprocal of (1 + |u₁|) / 2.
        w = elementwise(session, v, reciprocal(session, half, FINE), FINE + 1)
        reflection = Reflection(at, v, w)
        x = reflection.of(session, x)
        reflections.append(reflection)
    return x, reflections


def orthogonal(
    session: Session, reflections: list[Reflection], rows: int, kept: int, like: Parts
) -> Parts:
    """Returns the first ``kept`` columns of the product of all reflections, FINE fraction bits."""
    eye = shares.trivial(session, torch.eye(rows, kept, dtype=torch.int64) << FINE)
    found = tuple(part.expand(*like[0].shape[:-2], rows, kept) for part in eye)
    for reflection in reversed(reflections):
        found = reflection.of(session, found)
    return found


# Positive definite matrices
# ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Definite:
    """A scaled matrix C = S·A·S, whose diagonal is between 1/4 and 1; FINE fraction bits."""

    parts: Parts
    #: The exponents of S, (…, n, 1).
    exponents: Parts
    #: A word of A is the fraction in C times 2^(2·half − both exponents). A has 2·``half_bits``
    #: fraction bits.
    half: int
    half_bits: int


def balanced(session: Session, x: Parts, bits: int) -> Definite:
    """Scales a positive definite matrix of words below 2^46 with ``bits`` fraction bits.

    About 25 rounds."""
    odd = bits % 2
    x, width = tuple(part << odd for part in x), fixed.ENCODED + 2 * odd
    diagonal = tuple(part.diagonal(dim1=-2, dim2=-1).unsqueeze(-1) for part in x)
    exponents, power = leading(session, diagonal, width, even=True)
    # No element of a positive definite matrix is greater than the roots of its two diagonal
    # elements, multiplied.
    x = elementwise(session, elementwise(session, x, power, 0), transposed(power), width - FINE)
    return Definite(x, exponents, width // 2, (bits + odd) // 2)


def cholesky(session: Session, x: Parts) -> Parts:
    """Computes L with L·Lᵀ = C, FINE fraction bits. About 35 rounds for each column."""
    columns, rest = [tuple(part[..., :0] for part in x)], x
    for at in range(x[0].shape[-1]):
        pivot = tuple(part[..., :1, :1] for part in rest)
        _check(session, pivot, FINE, _LEAST_PIVOT, INDEFINITE)
        column = by_root(session, tuple(part[..., :1] for part in rest), pivot, FINE)
        columns.append(tuple(torch.nn.functional.pad(part, (0, 0, at, 0)) for part in column))
        below = tuple(part[..., 1:, :] for part in column)
        product = matrix_product(session, below, transposed(below), FINE)
        rest = shares.subtract(tuple(part[..., 1:, 1:] for part in rest), product)
    return tuple(torch.cat(parts, -1) for parts in zip(*columns, strict=True))
