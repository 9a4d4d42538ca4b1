"""Functions that are one line far to the left and another far to the right: two comparisons, and in between a
Chebyshev series of the square. What they have of an odd or even function is exactly so; there is no jump
at 0.

Numbers outside the interval count as 0 in the series, so that nothing of it leaves its range.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tacit import shares
from tacit.fixed import Scale
from tacit.operators.approximation import coefficients
from tacit.operators.approximation.normal import product
from tacit.operators.approximation.quotients import as_result
from tacit.operators.approximation.series import ARGUMENT, RESULT, constant, evaluate, plus
from tacit.operators.operands import beside, compared, fraction, rescaled, shifted
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

#: Fraction bits of the argument at most: numbers of more are rounded to these.
_MOST = 24

#: Fraction bits of the series before it is multiplied by the argument.
_FACTOR = 18


class _Inside(NamedTuple):
    """What a series needs of numbers and a cutoff."""

    #: x where |x| < cutoff, else 0.
    x: Parts
    #: x where x ≥ cutoff, else 0.
    beyond: Parts
    #: Bits: whether x ≥ cutoff, and whether x < −cutoff.
    above: Parts
    below: Parts
    #: (x/cutoff)² mapped from [0, 1] to [−1, 1].
    argument: Parts


def _inside(session: Session, x: Parts, scale: Scale, cutoff: float) -> _Inside:
    """Nine rounds and a comparison's."""
    bits = scale.bits
    with beside(session, cutoff):
        width = compared(session, scale)
    limit = constant(session, cutoff, bits)
    differences = shares.stacked(shares.subtract(x, limit), shares.add(x, limit))
    under, below = shares.unstacked(shares.sign(session, differences, width))
    above = shares.complement(session, under)
    inside = tuple(a ^ b for a, b in zip(under, below, strict=True))
    both = shares.bit_multiply(session, shares.stacked(inside, above), shares.stacked(x, x))
    kept, beyond = shares.unstacked(both)
    # The square drops what it has more than 32 fraction bits; times 2/cutoff² it is below 2^53.
    square_bits = min(2 * bits, 32)
    square = shares.multiply(session, kept, kept, 2 * bits - square_bits)
    raised = tuple(part * round(2.0**20 / cutoff**2) for part in square)
    argument = shares.truncate(session, raised, square_bits + 19 - ARGUMENT)
    return _Inside(kept, beyond, above, below, plus(session, argument, -1.0, ARGUMENT))


def _argument(x: SecretTensor) -> SecretTensor:
    x = fraction(x)
    return rescaled(x, Scale(_MOST)) if x._scale.bits > _MOST else x


def _odd(x: SecretTensor, series: Sequence[float], cutoff: float, limit: float) -> SecretTensor:
    """x·q((x/cutoff)²), and ±limit outside the cutoff."""
    x = _argument(x)
    session, bits, scale = x._session, x._scale.bits, x._session.scale
    near = _inside(session, x._parts, x._scale, cutoff)
    factor = shares.truncate(session, evaluate(session, near.argument, series), RESULT - _FACTOR)
    result = product(session, near.x, factor, bits + _FACTOR - scale.bits)
    ring = shares.bit_to_ring(session, shares.stacked(near.above, near.below))
    step = round(limit * 2.0**scale.bits)
    parts = tuple(part + (side[0] - side[1]) * step for part, side in zip(result, ring, strict=True))
    return as_result(x, parts, scale)


def _even(x: SecretTensor, series: Sequence[float], cutoff: float, middle: float = 0.0) -> SecretTensor:
    """x/2 + the series, whose value at 0 is ``middle``; max(x, 0) outside the cutoff."""
    x = _argument(x)
    session, bits, scale = x._session, x._scale.bits, x._session.scale
    near = _inside(session, x._parts, x._scale, cutoff)
    total = evaluate(session, near.argument, series)
    # Half of the argument has a bit more.
    total = tuple(a + (b << (RESULT - bits - 1)) for a, b in zip(total, near.x, strict=True))
    parts = shares.truncate(session, total, RESULT - scale.bits)
    parts = shares.add(parts, shifted(session, near.beyond, bits, scale.bits))
    if middle:
        outside = tuple(a ^ b for a, b in zip(near.above, near.below, strict=True))
        step = round(middle * 2.0**scale.bits)
        ring = shares.bit_to_ring(session, outside)
        parts = tuple(part - step * bit for part, bit in zip(parts, ring, strict=True))
    return as_result(x, parts, scale)


def sigmoid(x: SecretTensor) -> SecretTensor:
    """1 / (1 + e^−x). Domain: all encodable numbers. Error: 2^−10.7; exactly 0 and 1 from ±7.5. About 30
    rounds."""
    x = _odd(x, coefficients.SIGMOID, 7.5, 0.5)
    return x.like(plus(x._session, x._parts, 0.5, x._scale.bits))


def tanh(x: SecretTensor) -> SecretTensor:
    """tanh x. Domain: all encodable numbers. Error: 2^−10.5; exactly ±1 from ±4. About 30 rounds."""
    return _odd(x, coefficients.TANH, 4.0, 1.0)


def erf(x: SecretTensor) -> SecretTensor:
    """The error function. Domain: all encodable numbers. Error: 2^−12; exactly ±1 from ±2.75. About 28
    rounds."""
    return _odd(x, coefficients.ERF, 2.75, 1.0)


def gelu(x: SecretTensor, *, by_tanh: bool = False) -> SecretTensor:
    """x·Φ(x), or PyTorch's approximation of it by tanh. Domain: all encodable numbers. Error: 2^−11; exactly
    max(x, 0) from ±3.75. About 25 rounds."""
    return _even(x, coefficients.GELU_TANH if by_tanh else coefficients.GELU, 3.75)


def silu(x: SecretTensor) -> SecretTensor:
    """x / (1 + e^−x). Domain: all encodable numbers. Error: 2^−10.2; exactly max(x, 0) from ±9.25. About 27
    rounds."""
    return _even(x, coefficients.SILU, 9.25)


def softplus(x: SecretTensor) -> SecretTensor:
    """ln(1 + e^x). Domain: all encodable numbers. Error: 2^−10.8; exactly max(x, 0) from ±7.5. About 27
    rounds."""
    return _even(x, coefficients.SOFTPLUS, 7.5, math.log(2.0))
