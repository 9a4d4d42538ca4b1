"""Exact quotients of words: an estimate of the quotient, made better by the quotient of what it leaves, and
in the end three comparisons of that with multiples of the divisor."""

import math

import torch

from tacit import fixed, shares
from tacit.fixed import WHOLE
from tacit.operators.approximation.normal import rescaled_by
from tacit.operators.approximation.quotients import DIVISOR, flipped, inverted, magnitude, raised
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

#: Significant bits of a public reciprocal.
_SIGNIFICANT = 15

#: Times that the quotient by a secret is made better: from 2^30 by 2^13 each.
_STEPS = 3


def by_public(session: Session, x: Parts, divisor: int) -> Parts:
    """⌊x / divisor⌋ for a public divisor that is positive.

    Domain: |x| < 2^62, divisor < 2^61; then it is exact. A truncation or two for each 14 bits of the
    quotient, and a comparison: about 15 rounds.
    """
    quotient, rest = tuple(torch.zeros_like(part) for part in x), x
    ratio = 2.0**fixed.RANGE / divisor
    while ratio >= 1.5:
        part, ratio = _estimate(session, rest, divisor, ratio)
        quotient = shares.add(quotient, part)
        rest = tuple(left - divisor * found for left, found in zip(rest, part, strict=True))
    return shares.add(quotient, _missing(session, rest, shares.trivial(session, torch.tensor(divisor))))


def _estimate(session: Session, x: Parts, divisor: int, ratio: float) -> tuple[Parts, float]:
    """About x / divisor for |x| up to ratio·divisor, and how much may be missing."""
    places = divisor.bit_length() - 1 + _SIGNIFICANT
    factor = round((1 << places) / divisor)
    # As many bits less as the product needs to stay in range.
    drop = max(0, math.ceil(math.log2(ratio * divisor)) + _SIGNIFICANT + 1 - fixed.RANGE)
    product = tuple(part * factor for part in shares.truncate(session, x, drop))
    # What is not dropped is not missing: a divisor of a few units would never come to an end.
    dropped = 2.0 ** (drop + 1) / divisor if drop else 0.0
    missing = ratio * 2.0**-_SIGNIFICANT + dropped + 1.0
    return rescaled_by(session, product, places - drop), missing


def by_secret(session: Session, x: Parts, y: Parts, *, to_zero: bool = False) -> Parts:
    """⌊x / y⌋, or x / y towards zero, for secret y of the same shape.

    Domain: |x|, |y| < 2^46 and quotients below 2^30; then it is exact. A divisor of 0 counts as 1, the
    smallest of its scale. About 105 rounds.
    """
    zero = shares.bit_to_ring(session, shares.equal_zero(session, y, 64))
    y = shares.add(y, zero)
    if not to_zero:
        negative, size = magnitude(session, y, 64)
        return _by_positive(session, flipped(session, negative, x), size)
    signs, sizes = magnitude(session, shares.stacked(x, y), 64)
    quotient = _by_positive(session, *shares.unstacked(sizes))
    return flipped(session, tuple(part[0] ^ part[1] for part in signs), quotient)


def _by_positive(session: Session, x: Parts, y: Parts) -> Parts:
    filled, inverse = inverted(session, SecretTensor(y, WHOLE, session, torch.int64), DIVISOR, True)
    quotient = tuple(torch.zeros_like(part) for part in x)
    for _ in range(_STEPS):
        product = shares.multiply(session, x, inverse, 0)
        # With fraction bits, which are dropped.
        part = raised(session, product, filled, fixed.DEFAULT, False)
        part = shares.truncate(session, part, fixed.DEFAULT.bits)
        quotient = shares.add(quotient, part)
        x = shares.subtract(x, shares.multiply(session, part, y, 0))
    return shares.add(quotient, _missing(session, x, y))


def _missing(session: Session, rest: Parts, divisor: Parts) -> Parts:
    """⌊rest / divisor⌋ where it is −2 to 1."""
    multiples = [tuple(x - n * of for x, of in zip(rest, divisor, strict=True)) for n in (-1, 0, 1)]
    below = shares.bit_to_ring(session, shares.sign(session, shares.stacked(*multiples), 64))
    one = shares.trivial(session, torch.tensor(1))
    return tuple(unit - part.sum(0) for unit, part in zip(one, below, strict=True))
