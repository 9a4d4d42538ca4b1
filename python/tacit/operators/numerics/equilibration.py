"""Inverses and solutions of small linear systems, with rows and columns of any magnitude.

A matrix A is *equilibrated*: B = R·A·C, where R and C are diagonal matrices of secret powers of
two. First each row is scaled so that its magnitudes sum to between 1/2 and 1, then each column
(Golub and Van Loan, Matrix Computations, 3.5.2). B⁻¹ comes from the Newton-Schulz iteration
X ← c·X·(2 − B·X), which needs neither pivots nor divisions and corrects its own errors. With an
upper bound of the condition number, the factors c halve the number of steps (Pan and Schreiber
1991). A solution is refined once by its residual.

Domain: condition numbers up to 2^10; elements of the matrix, of the right side and of the result in
range. All steps are the protocol's own operations on shares, in an order and a number that follow
from shapes alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import torch

from tacit import fixed
from tacit.modes import is_tracing
from tacit.operators.numerics.approximation.exponents import leading, moved
from tacit.operators.numerics.approximation.quotients import magnitude
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts

#: Largest condition number in the domain.
CONDITION = 2.0**10

#: Fraction bits: of equilibrated matrices and right sides; of inverses, whose elements may be 2^11;
#: of the factor 2 − B·X of a step; and of the residual of a solution, which is small.
_MATRIX, _INVERSE, _STEP, _LEFT = 30, 23, 25, 38

#: Fraction bits of right sides when they are multiplied by an inverse, and of the first solution.
_RIGHT, _FIRST = 26, 24

#: Exponent of the largest magnitude of numbers in range.
_NUMBERS = fixed.ENCODED - fixed.DEFAULT.bits

#: Largest 1 − B·X after the last step.
_DONE = 2.0**-20

#: Factors c are multiples of 1/_FACTORS, at most 15/8. Near 2, too much of a step's rounding error
#: would be left.
_FACTORS = 16
_GREATEST = 30

#: Bound of the row sums of |1 − B·X| if the iteration has converged.
_CONVERGED = 2.0**-8

BEYOND = "a matrix that is singular, or has a condition number beyond 2^10, where less is right"
REMEDY = (
    "leave out columns that depend on others, or add a multiple of the "
    "identity, as ridge regression does"
)


def matrix_product(session: Session, x: Parts, y: Parts, drop: int) -> Parts:
    """Multiplies matrices of words and divides by 2^drop, for batches that broadcast.

    If ``drop`` is 0, the products are modulo 2^64."""
    batch = torch.broadcast_shapes(x[0].shape[:-2], y[0].shape[:-2])  # type: ignore[no-untyped-call]
    count = math.prod(batch)
    left, right = (
        tuple(
            part.expand(*batch, *part.shape[-2:]).reshape(count, *part.shape[-2:])
            for part in factor
        )
        for factor in (x, y)
    )
    shape = (*batch, x[0].shape[-2], y[0].shape[-1])
    return tuple(part.reshape(shape) for part in bilinear.matmul(session, left, right, drop))


def transposed(x: Parts) -> Parts:
    """Transposes a matrix."""
    return tuple(part.mT for part in x)


def logarithm(size: int) -> int:
    """Returns by how many bits a sum of ``size`` numbers can exceed the greatest of them."""
    return max(0, size - 1).bit_length()


@dataclass(frozen=True)
class Equilibrated:
    """An equilibrated matrix: A·2^bits = R⁻¹·B·C⁻¹·2^fill."""

    session: Session
    #: B, below 1 in magnitude.
    matrix: Parts
    #: The exponents of R and C, (…, n, 1) and (…, 1, n), at least 0.
    rows: Parts
    columns: Parts
    fill: int
    bits: int

    @classmethod
    def of(cls, session: Session, x: Parts, bits: int) -> "Equilibrated":
        """Equilibrates a matrix of words below 2^46 with ``bits`` fraction bits.

        About 50 rounds."""
        more = logarithm(x[0].shape[-1])
        _, sizes = magnitude(session, x, fixed.width(session.numerics.width, fixed.Scale(bits)))
        both = shares.stacked(x, sizes)
        # In large systems, bits must be dropped so that the sums of rows and columns fit.
        dropped = max(0, fixed.ENCODED + 2 * more - fixed.RANGE)
        both, first = shares.truncate(session, both, dropped), fixed.ENCODED - dropped + more
        exponents: list[Parts] = []
        for dim, width in ((-1, first), (-2, first + more)):
            sums = tuple(part[1].sum(dim, keepdim=True) for part in both)
            exponent, power = leading(session, _positive(session, sums, dropped), width)
            exponents.append(exponent)
            both = bilinear.multiply(
                session, both, tuple(part.expand_as(both[0]) for part in power), 0
            )
        fill = first + more
        matrix = shares.truncate(session, tuple(part[0] for part in both), fill - _MATRIX)
        rows, columns = exponents
        return cls(session, matrix, rows, columns, fill + dropped, bits)

    @property
    def size(self) -> int:
        """Number of rows of the matrix."""
        return self.matrix[0].shape[-1]

    @property
    def sides(self) -> tuple[Parts, Parts]:
        """The exponents of R and C."""
        return self.rows, self.columns

    def fine(self, bits: int) -> Parts:
        """Returns B with ``bits`` fraction bits, or fewer."""
        return shares.truncate(self.session, self.matrix, _MATRIX - bits)

    @property
    def transposed(self) -> "Equilibrated":
        """The equilibrated transpose."""
        rows, columns = transposed(self.columns), transposed(self.rows)
        return Equilibrated(
            self.session, transposed(self.matrix), rows, columns, self.fill, self.bits
        )


def _positive(session: Session, sums: Parts, dropped: int) -> Parts:
    """Clamps sums of magnitudes at 0, since truncation may have brought them below."""
    return shares.relu(session, sums, fixed.WORD) if dropped else sums


@dataclass(frozen=True)
class Inverse:
    """The inverse of an equilibrated matrix, which solves systems with that matrix."""

    of: Equilibrated
    #: B⁻¹.
    parts: Parts

    @property
    def transposed(self) -> "Inverse":
        """The inverse of the transpose."""
        return Inverse(self.of.transposed, transposed(self.parts))

    def found(self, bits: int) -> Parts:
        """Returns A⁻¹ with ``bits`` fraction bits. About 25 rounds."""
        of = self.of
        exponents = shares.add(transposed(of.columns), transposed(of.rows))
        return moved(of.session, self.parts, exponents, of.fill - of.bits + _INVERSE - bits)

    def solution(self, right: Parts, right_bits: int, bits: int) -> Parts:
        """Solves A·X = right, for (…, n, k) words below 2^46 with ``right_bits`` fraction bits.

        X has ``bits`` fraction bits. About 100 rounds."""
        of, session = self.of, self.of.session
        # Elements of R·right are at most as large as those of the solution. Each column of R·right
        # is scaled to 1.
        first = fixed.RANGE - 1 - _NUMBERS - logarithm(of.size)
        down = of.fill - of.bits + right_bits
        _, sizes = magnitude(session, moved(session, right, of.rows, down - first), fixed.WORD)
        exponent, _ = leading(
            session, tuple(part.sum(-2, keepdim=True) for part in sizes), fixed.RANGE
        )
        # A right side that is all zero gets the largest exponent.
        down += fixed.RANGE - first - _MATRIX
        scaled = moved(session, right, shares.add(of.rows, exponent), down)
        found = self._times(shares.truncate(session, scaled, _MATRIX - _RIGHT), _RIGHT, _FIRST)
        # The residual is small, so it is right even if the products wrap around.
        product = matrix_product(session, of.matrix, found, 0)
        left = tuple((a << _FIRST) - b for a, b in zip(scaled, product, strict=True))
        left = shares.truncate(session, left, _MATRIX + _FIRST - _LEFT)
        found = shares.add(
            tuple(part << (_MATRIX - _FIRST) for part in found), self._times(left, _LEFT, _MATRIX)
        )
        # The solution is C·found / 2^exponent. WORD is added so that no exponent is negative.
        raised = shares.trivial(session, torch.tensor(fixed.WORD))
        columns = tuple(
            part + whole for part, whole in zip(transposed(of.columns), raised, strict=True)
        )
        by = tuple(part - less for part, less in zip(columns, exponent, strict=True))
        return moved(session, found, by, fixed.WORD + _MATRIX - (fixed.RANGE - first) - bits)

    def _times(self, right: Parts, bits: int, wanted: int) -> Parts:
        return matrix_product(self.of.session, self.parts, right, _INVERSE + bits - wanted)


def inverted(of: Equilibrated) -> Inverse:
    """Inverts an equilibrated matrix, in 16 to 22 steps of four rounds each."""
    session, size = of.session, of.size
    more = logarithm(size)
    # The iteration starts at Bᵀ / n, since B·Bᵀ / n has eigenvalues up to 1.
    x = shares.truncate(session, transposed(of.matrix), _MATRIX + more - _INVERSE)
    identity = torch.eye(size, dtype=torch.int64)
    for by in _factors(more):
        twice = shares.trivial(session, identity * (2 * by << _STEP) // _FACTORS)
        product = matrix_product(session, of.matrix, x, 0)
        drop = _MATRIX + _INVERSE + _FACTORS.bit_length() - 1 - _STEP
        product = shares.truncate(session, tuple(part * by for part in product), drop)
        step = tuple(whole - part for whole, part in zip(twice, product, strict=True))
        x = matrix_product(session, x, step, _STEP)
    if session.is_plain and not is_tracing() and size:
        _check(session, of.matrix[0], x[0], size)
    return Inverse(of, x)


@cache
def _factors(more: int) -> tuple[int, ...]:
    """Returns the factors c of all steps, times _FACTORS, for 2^more rows."""
    return tuple(_each_factor(2.0 ** -(2 * more + 2) / (2.0 * CONDITION) ** 2))


def _each_factor(least: float) -> Iterator[int]:
    # A step maps eigenvalues from ``least`` to 2 − ``least`` to between c·low and c.
    greatest = 1.0
    while 1.0 - least > _DONE or greatest - 1.0 > _DONE:
        low = least * (2.0 - least)
        by = min(_GREATEST, math.floor(_FACTORS * 2.0 / (1.0 + low)))
        greatest = by / _FACTORS
        least = min(greatest * low, 2.0 - greatest)
        yield by


def _check(session: Session, matrix: torch.Tensor, inverse: torch.Tensor, size: int) -> None:
    """Reports matrices for which the iteration did not converge, under the plain reference."""
    product = torch.matmul(*(words.to(torch.float64) for words in (matrix, inverse)))
    left = torch.eye(size, dtype=torch.float64) - product * 2.0 ** -(_MATRIX + _INVERSE)
    ranges.check_domain(session, left.abs().sum(-1) > _CONVERGED, BEYOND, REMEDY)
