"""Functions that are not piecewise linear, by iterations on secrets."""

import math

import torch

from tacit import fixed, shares
from tacit.fixed import Scale
from tacit.operators.operands import shifted
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

#: Fraction bits of the result: of numbers up to 2^30 the inverse square root is small.
INVERSE_SCALE = Scale(24)

#: Steps of Newton's method: each squares the relative error, of which the start has at most 0.172.
STEPS = 4


def inverse_square_root(x: SecretTensor) -> SecretTensor:
    """1 / √x for fractions x at the scale of 16, 2^−16 ≤ x < 2^30, with 24 fraction bits.

    The start is chosen by the highest bit of x, which comparisons with all powers of two find side by side;
    then y ← y·(3 − x·y²) / 2 (Newton). The error is at most 2^−20 of the result and four units of 2^−24. Some
    35 rounds; meant for few numbers, such as the variances of a normalisation.
    """
    session = x._session
    parts = shifted(session, x._parts, x._scale.bits, fixed.DEFAULT.bits)
    y = _start(session, parts)
    bits = INVERSE_SCALE.bits
    for _ in range(STEPS):
        # x·y has the magnitude of √x, so that all products are in range; then x·y·y is near 1.
        root = shares.multiply(session, parts, y, bits)
        near_one = shares.multiply(session, root, y, fixed.DEFAULT.bits)
        three = shares.trivial(session, torch.tensor(3 << bits))
        rest = tuple(a - b for a, b in zip(three, near_one, strict=True))
        y = shares.multiply(session, y, rest, bits + 1)
    return x.like(y, INVERSE_SCALE)


def _start(session: Session, x: Parts) -> Parts:
    """A first guess for words from 1: for those from 2^k to 2^(k+1) the one that is off by the same ratio at
    both ends."""
    powers = torch.tensor([1 << k for k in range(1, fixed.ENCODED)])
    limits = shares.trivial(session, powers)
    below = tuple(part.unsqueeze(-1) - limit for part, limit in zip(x, limits, strict=True))
    below = shares.bit_to_ring(session, shares.sign(session, below, 64))
    guesses = [
        2.0 ** (-(k - fixed.DEFAULT.bits) / 2) * 2.0 / (1.0 + math.sqrt(2.0)) for k in range(fixed.ENCODED)
    ]
    words = fixed.encode(torch.tensor(guesses, dtype=torch.float64), INVERSE_SCALE)
    # The guess of the highest power, and what each power that x is below adds to it.
    steps = words[:-1] - words[1:]
    last = shares.trivial(session, words[-1])
    return tuple((part * steps).sum(-1) + rest for part, rest in zip(below, last, strict=True))
