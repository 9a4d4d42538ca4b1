"""Exponentials by 2^(n + f) = 2^n·2^f.

The integer n comes from the bits of the exponent, and 2^f from a Chebyshev series (as in Catrina
and Saxena 2010; Kelkar and others 2022)."""

import math

from tacit import fixed
from tacit.fixed import ENCODED, Scale
from tacit.operators.dispatch.operands import beside, compared, fraction, rescaled
from tacit.operators.numerics.approximation.fits import fit_of
from tacit.operators.numerics.approximation.normal import number, power_of_two
from tacit.operators.numerics.approximation.quotients import as_result
from tacit.operators.numerics.approximation.series import ARGUMENT, RESULT, constant, evaluate, plus
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Fraction bits that the exponent gains: for its integer part, and for its fraction.
_COARSE, _FINE = 10, 20

#: Least and most fraction bits of the argument. The least leaves room for the constants that are
#: added to it.
_LEAST, _MOST = 16, 24

#: Below −16 exponentials are set to 0: they are less than 2^−23. 16 = 2·2^_EIGHTH.
_DEEPEST, _EIGHTH = 16.0, 3

#: Fraction bits of the root of an exponential that is at most 1.
_ROOT = 28


def exp(x: SecretTensor, *, base: float = math.e) -> SecretTensor:
    """Computes base^x at the session's scale, for base > 1.

    Method: 2^(n + f) = 2^n·2^f, where n comes from the bits of the exponent and 2^f from a series
    of degree 4 (Catrina and Saxena 2010; Kelkar and others 2022).
    Domain: all encodable numbers. Results above the encodable numbers, 2^30 by default, become the
    largest one; below half a unit they are exactly 0.
    Error: 2^−12 relative, or 2^−13 absolute where that is more.
    Cost: 29 rounds, 4880 bits.
    """
    x = fraction(x)
    x = rescaled(x, Scale(min(max(x._scale.bits, _LEAST), _MOST)))
    session, scale = x._session, x._session.scale
    slope = math.log2(base)
    # Results have the exponents −lowest to −lowest + ENCODED. The lowest one gives 0.
    lowest = scale.bits + 1
    greatest = (ENCODED - lowest + 1) / slope
    ranges.check_argument(
        session, x._parts[0], x._scale, greatest, "an exponent", "results saturate"
    )
    raised = _clamped(session, x, lowest / slope, (ENCODED + 0.98) / slope)
    digits, rest = _split(session, raised, x._scale.bits, slope, ENCODED.bit_length())
    power = power_of_two(session, digits)
    power = plus(session, power, -1.0, 0)
    mantissa_bits = 61 - 1 - ENCODED
    total = evaluate(session, rest, fit_of(session, "exp").series)
    mantissa = shares.truncate(session, total, RESULT - mantissa_bits)
    return as_result(x, bilinear.multiply(session, mantissa, power, mantissa_bits + 1), scale)


def exp_below_zero(x: SecretTensor) -> SecretTensor:
    """Computes e^x of numbers that are not positive, at the session's scale.

    Method: from −16 on, the square of a series for e^(x/2) of degree 9; the result is exactly 0 at
    −16 and below (series as Paterson and Stockmeyer 1973; e^x by squaring as in CrypTen, Knott and
    others 2021).
    Domain: numbers that are not positive.
    Error: 2^−13 absolute.
    Cost: 19 rounds, 2034 bits.
    """
    x = rescaled(fraction(x), Scale(ARGUMENT - _EIGHTH))
    session = x._session
    with beside(session, _DEEPEST):
        width = compared(session, x._scale)
    above = shares.relu(session, plus(session, x._parts, _DEEPEST, x._scale.bits), width)
    # (x + 16)/8 − 1 is in [−1, 1]. The division only moves the binary point.
    series = fit_of(session, "exp_below_zero").series
    total = evaluate(session, plus(session, above, -1.0, ARGUMENT), series, zero_at_start=True)
    root = shares.truncate(session, total, RESULT - _ROOT)
    return as_result(
        x, bilinear.multiply(session, root, root, 2 * _ROOT - session.scale.bits), session.scale
    )


def _clamped(session: Session, x: SecretTensor, below: float, span: float) -> Parts:
    """Computes x + below, clamped to [0, span]."""
    bits = x._scale.bits
    with beside(session, max(below, span)):
        width = compared(session, x._scale)
    x_parts = plus(session, x._parts, below, bits)
    limit = constant(session, span, bits)
    both = shares.stacked(x_parts, shares.subtract(x_parts, limit))
    return shares.subtract(*shares.unstacked(shares.relu(session, both, width)))


def _split(
    session: Session, x: Parts, bits: int, slope: float, whole: int
) -> tuple[list[Parts], Parts]:
    """Splits x·slope, for x ≥ 0, into its integer part and its fraction.

    The integer part has ``whole`` binary places, each a ring element. The fraction is mapped from
    [−1/32, 33/32] to [−1, 1], with ARGUMENT fraction bits."""
    coarse = tuple(part * fixed.word(slope, _COARSE) for part in x)
    planes = shares.binary(session, coarse, bits + _COARSE + whole)
    top = tuple(part[bits + _COARSE :] for part in planes)
    ring = shares.bit_to_ring(session, top)
    places = shares.unstacked(ring)
    fine = bits + _FINE
    left = tuple(
        part * fixed.word(slope, _FINE) - (n << fine)
        for part, n in zip(x, number(places), strict=True)
    )
    # [−1/32, 33/32] has the middle 1/2 and the radius 17/32.
    widened = tuple(part * fixed.word(32 / 17, 14) for part in left)
    argument = shares.truncate(session, widened, fine + 14 - ARGUMENT)
    return places, plus(session, argument, -16 / 17, ARGUMENT)
