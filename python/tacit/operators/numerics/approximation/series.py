"""Chebyshev series of secret numbers: how one is divided, to be put together by
crates/mpc/src/series.rs."""

import math
from collections.abc import Sequence
from functools import cache

import torch

from tacit import fixed
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts

#: Fraction bits of the argument and of Chebyshev's polynomials, which lie in [−1, 1].
ARGUMENT = 20

#: Fraction bits of what comes out of :func:`evaluate`; its magnitude is below 2^4.
RESULT = 57

#: Fraction bits of coefficients.
_COEFFICIENT = RESULT - 2 * ARGUMENT


def evaluate(
    session: Session, x: Parts, series: Sequence[float], *, zero_at_start: bool = False
) -> Parts:
    """The series at x in [−1, 1] of ARGUMENT fraction bits; RESULT fraction bits, to be truncated.

    The error is a few units of 2^−ARGUMENT, and what is left out of the series. Degree 4: five
    rounds; 6 and
    9: seven and nine; 12: nine.

    Args:
        zero_at_start: of x = −1 it is 0, however coefficients are rounded.
    """
    remainders = _divided(tuple(series))
    if zero_at_start:
        (first, *others), *rest = remainders
        remainders = [[first - _at_start(remainders), *others], *rest]
    return shares.series(session, x, ARGUMENT, remainders)


def constant(session: Session, number: float, bits: int) -> Parts:
    """A public number as components of no dimensions."""
    return shares.trivial(session, torch.tensor(fixed.word(number, bits)))


def plus(session: Session, x: Parts, number: float, bits: int) -> Parts:
    """x + a public number; no interaction."""
    return shares.add(x, constant(session, number, bits))


def work(degree: int) -> tuple[int, int]:
    """Products that a series of that degree takes, and how many of them after one another."""
    return _work(degree, _block(degree))


def _work(degree: int, block: int) -> tuple[int, int]:
    levels = math.ceil((degree - block) / block)
    return block - 1 + levels, math.ceil(math.log2(block)) + levels


def _block(degree: int) -> int:
    """The k of the T_k that a series is divided by."""
    return min(range(1, degree + 1), key=lambda block: _work(degree, block))


def _at_start(remainders: Sequence[Sequence[int]]) -> int:
    """What a divided series is at −1, as a word like the first coefficient: T_n is (−1)^n there,
    and nothing is rounded."""
    total, turned = 0, (-1) ** (len(remainders[0]) - 1)
    for first, *others in reversed(remainders):
        alternating = sum((-1) ** n * word for n, word in enumerate(others, 1))
        total = turned * total + first + (alternating << ARGUMENT)
    return total


@cache
def _divided(series: tuple[float, ...]) -> list[list[int]]:
    """The series divided by one T_k again and again, the one that takes least work; coefficients as
    words."""
    block = _block(len(series) - 1)
    remainders = []
    rest = list(series)
    while len(rest) > block + 1:
        quotient = [0.0] * (len(rest) - block)
        for n in range(len(rest) - 1, block, -1):
            # T_n = 2·T_k·T_(n−k) − T_|n−2k|
            quotient[n - block] = 2.0 * rest[n]
            rest[abs(n - 2 * block)] -= rest[n]
        remainders.append(rest[: block + 1])
        rest = quotient
    remainders.append(rest)
    assert len(remainders) > 1, "a series is longer than its basis"
    assert all(sum(map(abs, r)) < 2.0 ** (fixed.RANGE - 1 - RESULT) for r in remainders), (
        "out of range"
    )
    return [
        [fixed.word(first, ARGUMENT + _COEFFICIENT), *(fixed.word(c, _COEFFICIENT) for c in others)]
        for first, *others in remainders
    ]
