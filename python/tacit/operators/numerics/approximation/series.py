"""Chebyshev series of secret numbers.

This file divides a series into blocks. crates/mpc/src/series.rs evaluates the blocks and combines
them."""

import math
from collections.abc import Sequence
from functools import cache

import torch

from tacit import fixed
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts

#: Fraction bits of the argument and of the Chebyshev polynomials, which lie in [−1, 1].
ARGUMENT = 20

#: Fraction bits of the result of :func:`evaluate`, whose magnitude is below 2^4.
RESULT = 57

#: Fraction bits of coefficients.
_COEFFICIENT = RESULT - 2 * ARGUMENT


def evaluate(
    session: Session, x: Parts, series: Sequence[float], *, zero_at_start: bool = False
) -> Parts:
    """Evaluates a series at x in [−1, 1] with ARGUMENT fraction bits.

    The result has RESULT fraction bits, and the caller truncates it. The error is a few units of
    2^−ARGUMENT, and the error of the series itself. Degree 4 takes five rounds, degree 6 seven,
    degrees 9 and 12 nine.

    Args:
        zero_at_start: make the result exactly 0 at x = −1, however coefficients are rounded.
    """
    remainders = _divided(tuple(series))
    if zero_at_start:
        (first, *others), *rest = remainders
        remainders = [[first - _at_start(remainders), *others], *rest]
    return shares.series(session, x, ARGUMENT, remainders)


def constant(session: Session, number: float, bits: int) -> Parts:
    """Returns a public number as components without dimensions."""
    return shares.trivial(session, torch.tensor(fixed.word(number, bits)))


def plus(session: Session, x: Parts, number: float, bits: int) -> Parts:
    """Adds a public number to x. No interaction."""
    return shares.add(x, constant(session, number, bits))


def work(degree: int) -> tuple[int, int]:
    """Returns the number of products that a series takes, and how many of them are sequential."""
    return _work(degree, _block(degree))


def _work(degree: int, block: int) -> tuple[int, int]:
    levels = math.ceil((degree - block) / block)
    return block - 1 + levels, math.ceil(math.log2(block)) + levels


def _block(degree: int) -> int:
    """Returns the k of the T_k that a series of a degree is divided by."""
    return min(range(1, degree + 1), key=lambda block: _work(degree, block))


def _at_start(remainders: Sequence[Sequence[int]]) -> int:
    """Evaluates a divided series at −1, as a word with the fraction bits of the first coefficient.

    T_n is (−1)^n there, so nothing is rounded."""
    total, turned = 0, (-1) ** (len(remainders[0]) - 1)
    for first, *others in reversed(remainders):
        alternating = sum((-1) ** n * word for n, word in enumerate(others, 1))
        total = turned * total + first + (alternating << ARGUMENT)
    return total


@cache
def _divided(series: tuple[float, ...]) -> list[list[int]]:
    """Divides a series repeatedly by the T_k that takes the least work.

    The coefficients of all remainders are returned as words."""
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
