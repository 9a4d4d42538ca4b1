"""Exponentials: 2^(n + f) = 2^n·2^f with n from the bits of the exponent, f in a Chebyshev series (as in
Catrina and Saxena 2010; Kelkar and others 2022)."""

import math

from tacit import ranges, shares
from tacit.fixed import ENCODED, Scale
from tacit.operators.approximation.fits import fit_of
from tacit.operators.approximation.normal import number, power_of_two
from tacit.operators.approximation.quotients import as_result
from tacit.operators.approximation.series import ARGUMENT, RESULT, constant, evaluate, plus
from tacit.operators.operands import beside, compared, fraction, rescaled
from tacit.session import Session
from tacit.shares import Parts
from tacit.tensor import SecretTensor

#: Fraction bits that the exponent gets for its whole part to be found, and for what is left of it.
_COARSE, _FINE = 10, 20

#: Fraction bits of the argument: of more, the most are kept; those of fewer get the least, with which numbers
#: are added to them.
_LEAST, _MOST = 16, 24


def exp(x: SecretTensor, *, base: float = math.e, nonpositive: bool = False) -> SecretTensor:
    """base^x with the session's scale, base > 1.

    Domain: all encodable numbers. Results beyond the encodable ones, 2^30 by default, become the largest;
    below half a unit they are exactly 0.
    Error: 2^−13 relative and a unit. 29 rounds.

    Args:
        nonpositive: no x is positive; fewer bits are worked out.
    """
    x = fraction(x)
    x = rescaled(x, Scale(min(max(x._scale.bits, _LEAST), _MOST)))
    session, scale = x._session, x._session.scale
    slope = math.log2(base)
    # Results have the exponents −lowest to −lowest + span, and the lowest counts as nothing.
    lowest = scale.bits + 1
    span = lowest if nonpositive else ENCODED
    raised = _clamped(session, x, lowest / slope, None if nonpositive else (span + 0.98) / slope)
    if not nonpositive:
        greatest = (span - lowest + 1) / slope
        ranges.check_argument(session, x._parts[0], x._scale, greatest, "an exponent", "results saturate")
    digits, rest = _split(session, raised, x._scale.bits, slope, span.bit_length())
    power = power_of_two(session, digits)
    power = plus(session, power, -1.0, 0)
    mantissa_bits = 61 - 1 - span
    total = evaluate(session, rest, fit_of(session, "exp").series)
    mantissa = shares.truncate(session, total, RESULT - mantissa_bits)
    return as_result(x, shares.multiply(session, mantissa, power, mantissa_bits + 1), scale)


def _clamped(session: Session, x: SecretTensor, below: float, span: float | None) -> Parts:
    """x + below, at least 0, at most span."""
    bits = x._scale.bits
    with beside(session, max(below, span or 0.0)):
        width = compared(session, x._scale)
    x_parts = plus(session, x._parts, below, bits)
    if span is None:
        return shares.relu(session, x_parts, width)
    limit = constant(session, span, bits)
    both = shares.stacked(x_parts, shares.subtract(x_parts, limit))
    return shares.subtract(*shares.unstacked(shares.relu(session, both, width)))


def _split(session: Session, x: Parts, bits: int, slope: float, whole: int) -> tuple[list[Parts], Parts]:
    """x·slope for x from 0 as a whole number of so many binary places, as ring elements, and what is left,
    which is mapped from [−1/32, 33/32] to [−1, 1] with ARGUMENT fraction bits."""
    coarse = tuple(part * round(slope * 2.0**_COARSE) for part in x)
    planes = shares.binary(session, coarse, bits + _COARSE + whole)
    top = tuple(part[bits + _COARSE :] for part in planes)
    ring = shares.bit_to_ring(session, top)
    places = shares.unstacked(ring)
    fine = bits + _FINE
    left = tuple(
        part * round(slope * 2.0**_FINE) - (n << fine) for part, n in zip(x, number(places), strict=True)
    )
    # [−1/32, 33/32] has the middle 1/2 and the radius 17/32.
    widened = tuple(part * round(2.0**14 * 32 / 17) for part in left)
    argument = shares.truncate(session, widened, fine + 14 - ARGUMENT)
    return places, plus(session, argument, -16 / 17, ARGUMENT)
