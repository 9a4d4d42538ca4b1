"""Rounding of fractions to whole numbers.

The part after the point is the low bits of a word, so the results are exact. Integers are whole
already and stay as they are.
"""

from typing import Any

import torch

from tacit.operators.dispatch.operands import compared, times_public
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.sessions import Session
from tacit.sharings import shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten


def _fraction(session: Session, x: Parts, bits: int) -> Parts:
    """Returns the part after the point, which is never negative: x modulo 2^bits."""
    return shares.low_bits(session, x, bits)


@implements(aten.floor.default)
def floor(x: SecretTensor) -> SecretTensor:
    """Returns the largest whole number up to x. At most ten rounds."""
    if not x._scale.bits:
        return x
    return x.like(shares.subtract(x._parts, _fraction(x._session, x._parts, x._scale.bits)))


@implements(aten.ceil.default)
def ceil(x: SecretTensor) -> SecretTensor:
    """Returns the smallest whole number from x on. At most ten rounds."""
    down = floor(x.like(shares.negate(x._parts), unreduced=x._unreduced))
    return down.like(shares.negate(down._parts), unreduced=x._unreduced)


@implements(aten.trunc.default)
def trunc(x: SecretTensor) -> SecretTensor:
    """Rounds x towards zero. A comparison and at most twelve rounds.

    Negative numbers are raised by almost one before the floor.
    """
    bits = x._scale.bits
    if not bits:
        return x
    negative = shares.sign(x._session, x._parts, compared(x._session, x._scale))
    almost = tuple(part * ((1 << bits) - 1) for part in shares.bit_to_ring(x._session, negative))
    return floor(x.like(shares.add(x._parts, almost)))


@implements(aten.frac.default)
def frac(x: SecretTensor) -> SecretTensor:
    """Returns x minus its whole part, with the sign of x. Rounds as ``trunc``."""
    return x.like(shares.subtract(x._parts, trunc(x)._parts))


@implements(aten.round.default)
def round_(x: SecretTensor) -> SecretTensor:
    """Returns the nearest whole number, of two the even one. About twenty rounds."""
    bits, session = x._scale.bits, x._session
    if not bits:
        return x
    half = shares.trivial(session, torch.tensor(1 << (bits - 1)))
    raised = tuple(part + more for part, more in zip(x._parts, half, strict=True))
    binary = shares.binary(session, raised, bits + 1)
    weights = torch.tensor([1 << place for place in range(bits)])
    after = shares.from_binary(session, tuple(part[:bits] for part in binary), weights)
    # Numbers halfway between two were rounded up. If the result is odd, it is one too large.
    halfway = shares.equal_zero(session, after, bits + 1)
    excess = shares.and_bits(session, halfway, tuple(part[bits] for part in binary))
    excess = tuple(part << bits for part in shares.bit_to_ring(session, excess))
    return x.like(shares.subtract(shares.subtract(raised, after), excess))


@implements(aten.round.decimals, scale=of_session)
def round_decimals(x: SecretTensor, *, decimals: int) -> SecretTensor:
    """Returns the nearest multiple of 10^−decimals.

    x is multiplied by 10^decimals, rounded, and divided again. The product must stay in range. A
    number that is a unit of x's scale from halfway may be rounded either way.
    """
    if not x.dtype.is_floating_point:
        unsupported("rounding integers to decimals", "convert them to floats")
    power = 10.0 ** abs(decimals)
    factors: list[Any] = [
        torch.tensor(factor, dtype=torch.float64) for factor in (power, 1.0 / power)
    ]
    up, down = factors if decimals >= 0 else reversed(factors)
    return times_public(round_(times_public(x, up, x.dtype)), down, x.dtype)
