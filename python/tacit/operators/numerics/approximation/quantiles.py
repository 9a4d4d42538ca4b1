"""Inverses of the error function and of the normal distribution.

Both are x times a smooth function of w = −ln(1 − x²), which needs no cases: w grows slowly towards
±1, and 1 − x² = (1 − x)·(1 + x) loses no digits there."""

import math

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.operands import beside, compared, fraction, rescaled
from tacit.operators.numerics.approximation.coefficients import QUANTILE
from tacit.operators.numerics.approximation.normal import product
from tacit.operators.numerics.approximation.quotients import as_result, log
from tacit.operators.numerics.approximation.series import ARGUMENT, RESULT, constant, evaluate, plus
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Greatest w of the series. Numbers of 24 fraction bits have smaller ones.
_GREATEST = 17.0

#: Most fraction bits of the argument, and of 1 − x².
_MOST, _REST = 24, 40

#: Fraction bits of w, of the factor that maps it to [−1, 1], and of the series.
_LOGARITHM, _SLOPE, _FACTOR = 18, 20, 20


def erfinv(x: SecretTensor) -> SecretTensor:
    """Computes the inverse of the error function at the session's scale.

    Method: x times a series of degree 12 in −ln(1 − x²) (Giles 2010, with two series).
    Domain: |x| < 1. ±1 and numbers beyond give ±3.964, where PyTorch has infinity and NaN.
    Error: 2^−14 absolute.
    Cost: 72 rounds, 9175 bits.
    """
    x = _clamped(x, -1.0, "erfinv of a number that is not between −1 and 1")
    session, bits = x._session, x._scale.bits
    up = plus(session, x._parts, 1.0, bits)
    down = plus(session, shares.negate(x._parts), 1.0, bits)
    return _odd(x, x._parts, up, down, 2 * bits, 1.0)


def ndtri(x: SecretTensor) -> SecretTensor:
    """Computes the inverse of the normal distribution function at the session's scale.

    Method: √2·erfinv(2x − 1), where 1 − (2x − 1)² is computed as 4x·(1 − x) (Giles 2010).
    Domain: 0 < x < 1. 0, 1 and numbers beyond give ±5.606, where PyTorch has infinity and NaN.
    Error: 2^−14 absolute.
    Cost: 74 rounds, 9299 bits.
    """
    x = _clamped(x, 0.0, "ndtri of a number that is not between 0 and 1")
    session, bits = x._session, x._scale.bits
    rest = plus(session, shares.negate(x._parts), 1.0, bits)
    middle = plus(session, tuple(2 * part for part in x._parts), -1.0, bits)
    # Two fraction bits less make 4x·(1 − x) of the product.
    return _odd(x, middle, x._parts, rest, 2 * bits - 2, math.sqrt(2.0))


def _clamped(x: SecretTensor, low: float, what: str) -> SecretTensor:
    """Clamps x to [low, 1], in the rounds of one comparison."""
    x = fraction(x)
    x = rescaled(x, Scale(_MOST)) if x._scale.bits > _MOST else x
    session, bits = x._session, x._scale.bits
    if session.is_plain:
        outside = (x._parts[0] <= low * 2.0**bits) | (x._parts[0] >= 2.0**bits)
        ranges.check_domain(session, outside, what, "clamp it to within the interval first")
    with beside(session, 1.0):
        width = compared(session, x._scale)
    both = shares.stacked(*(plus(session, x._parts, -limit, bits) for limit in (low, 1.0)))
    above_low, above = shares.unstacked(shares.relu(session, both, width))
    return x.like(plus(session, shares.subtract(above_low, above), low, bits))


def _odd(
    x: SecretTensor, odd: Parts, up: Parts, down: Parts, bits: int, factor: float
) -> SecretTensor:
    """Computes factor·odd·r(w), where up·down with ``bits`` fraction bits is 1 − odd²."""
    session, scale = x._session, x._session.scale
    rest = bilinear.multiply(session, up, down, max(0, bits - _REST))
    with session.using(scale=Scale(_LOGARITHM)):
        logarithm = log(x.like(rest, Scale(min(bits, _REST))))._parts
    w = shares.negate(logarithm)
    limit = constant(session, _GREATEST, _LOGARITHM)
    beyond = shares.relu(session, shares.subtract(w, limit), _LOGARITHM + 7)
    w = shares.relu(session, shares.subtract(w, beyond), _LOGARITHM + 7)
    slope = fixed.word(2.0 / _GREATEST, _SLOPE)
    argument = shares.truncate(
        session, tuple(part * slope for part in w), _LOGARITHM + _SLOPE - ARGUMENT
    )
    total = evaluate(session, plus(session, argument, -1.0, ARGUMENT), QUANTILE)
    found = shares.truncate(session, total, RESULT - _FACTOR)
    if factor != 1.0:
        found = shares.truncate(
            session, tuple(part * fixed.word(factor, _SLOPE) for part in found), _SLOPE
        )
    return as_result(x, product(session, odd, found, x._scale.bits + _FACTOR - scale.bits), scale)
