"""Chebyshev series of secret numbers.

p(x) = r0(x) + T_k(x)·(r1(x) + T_k(x)·(...)), where each r is a combination of T_0..T_k (Paterson and
Stockmeyer 1973, in Chebyshev's basis, in which coefficients stay small). Combinations are local; T_2..T_k and
each T_k·(...) take a product.
"""

import math
from collections.abc import Sequence
from functools import cache

import torch

from tacit import fixed, shares
from tacit.session import Session
from tacit.shares import Parts

#: Fraction bits of the argument and of Chebyshev's polynomials, which lie in [−1, 1].
ARGUMENT = 20

#: Fraction bits of what comes out of :func:`evaluate`; its magnitude is below 2^4.
RESULT = 57

#: Fraction bits of coefficients.
_COEFFICIENT = RESULT - 2 * ARGUMENT


def evaluate(session: Session, x: Parts, series: Sequence[float]) -> Parts:
    """The series at x in [−1, 1] of ARGUMENT fraction bits; RESULT fraction bits, to be truncated.

    The error is a few units of 2^−ARGUMENT, and what is left out of the series. Degree 4: five rounds; 6 and
    9: seven and nine; 12: nine.
    """
    block, remainders = _divided(tuple(series))
    basis = _polynomials(session, x, block)
    total = _combination(session, basis, remainders[-1])
    for place in range(len(remainders) - 2, -1, -1):
        rest = _combination(session, basis, remainders[place])
        if place:
            total = shares.add(shares.multiply(session, basis[-1], total, ARGUMENT), rest)
        else:
            # Truncated by the caller, with whatever he adds.
            product = shares.multiply(session, basis[-1], total, 0)
            total = tuple(a + (b << ARGUMENT) for a, b in zip(product, rest, strict=True))
    return total


def constant(session: Session, number: float, bits: int) -> Parts:
    """A public number as components of no dimensions."""
    return shares.trivial(session, torch.tensor(round(number * 2.0**bits)))


def plus(session: Session, x: Parts, number: float, bits: int) -> Parts:
    """x + a public number; no interaction."""
    return shares.add(x, constant(session, number, bits))


def _polynomials(session: Session, x: Parts, block: int) -> list[Parts]:
    """T_1 to T_block at x: T_2n = 2·T_n² − 1 and T_2n+1 = 2·T_n·T_n+1 − x."""
    basis = [x]
    while len(basis) < block:
        known = len(basis)
        wanted = range(known + 1, min(2 * known, block) + 1)
        left = shares.stacked(*(basis[n // 2 - 1] for n in wanted))
        right = shares.stacked(*(basis[(n + 1) // 2 - 1] for n in wanted))
        # One bit less is dropped: the double.
        products = shares.multiply(session, left, right, ARGUMENT - 1)
        for n, product in zip(wanted, shares.unstacked(products), strict=True):
            basis.append(shares.subtract(product, x) if n % 2 else plus(session, product, -1.0, ARGUMENT))
    return basis


def _combination(session: Session, basis: Sequence[Parts], coefficients: Sequence[float]) -> Parts:
    """Σ c_n·T_n at ARGUMENT + _COEFFICIENT fraction bits; local."""
    first, *others = coefficients
    words = [round(c * 2.0**_COEFFICIENT) for c in others]
    total: Parts | None = None
    for polynomial, word in zip(basis, words, strict=False):
        term = tuple(part * word for part in polynomial)
        total = term if total is None else shares.add(total, term)
    assert total is not None
    return plus(session, total, first, ARGUMENT + _COEFFICIENT)


@cache
def _divided(series: tuple[float, ...]) -> tuple[int, list[list[float]]]:
    """How many polynomials are wanted, and the series divided by the last of them again and again."""
    degree = len(series) - 1

    def work(block: int) -> tuple[int, int]:
        levels = math.ceil((degree - block) / block)
        return block - 1 + levels, math.ceil(math.log2(block)) + levels

    block = min(range(1, degree + 1), key=work)
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
    assert all(sum(map(abs, r)) < 2.0 ** (fixed.RANGE - 1 - RESULT) for r in remainders), "out of range"
    return block, remainders
