"""The logarithm of the gamma function, and its derivative.

From 8 on both follow from Stirling's series. Below, a Chebyshev series gives the function at x + 1,
from where the recurrence leads to x. Negative numbers are reflected: their distance from the
nearest whole number is exact, since it is made of the low bits of their words."""

import math
from functools import cache
from typing import NamedTuple

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.operands import beside, compared, fraction, rescaled
from tacit.operators.numerics.approximation import coefficients
from tacit.operators.numerics.approximation.normal import rescaled_by
from tacit.operators.numerics.approximation.quotients import (
    as_result,
    log,
    magnitude,
    reciprocal,
)
from tacit.operators.numerics.approximation.series import ARGUMENT, RESULT, constant, evaluate, plus
from tacit.operators.numerics.approximation.trigonometric import odd_series
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Where Stirling's series begins.
_FAR = 8.0

#: Fraction bits of a logarithm that is multiplied by a number as large as itself.
_FACTOR = 14

#: Fraction bits of sines and of cotangents times their argument.
_SINE, _COTANGENT = 28, 20

#: Least fraction bits of the distance from a whole number.
_LEAST = 16

_LN_2 = math.log(2.0)


class _Sides(NamedTuple):
    """A number's magnitude, and where it is."""

    size: Parts
    #: Whether the number is negative; empty if none is.
    negative: Parts
    #: Whether the magnitude is below 8.
    near: Parts


def _sides(session: Session, x: Parts, scale: Scale, positive: bool) -> _Sides:
    with beside(session, _FAR):
        width = compared(session, scale)
    negative: Parts = ()
    if not positive:
        negative, x = magnitude(session, x, width)
    limit = constant(session, _FAR, scale.bits)
    return _Sides(x, negative, shares.sign(session, shares.subtract(x, limit), width))


def _series(session: Session, sides: _Sides, bits: int, of: tuple[float, ...]) -> Parts:
    """Evaluates a series on [0, 8], at 0 for numbers beyond."""
    near = shares.bit_multiply(session, sides.near, sides.size)
    # x/4 − 1. The division only moves the binary point.
    near = rescaled_by(session, near, bits + 2 - ARGUMENT)
    return evaluate(session, plus(session, near, -1.0, ARGUMENT), of)


def _from_whole(session: Session, size: Parts, bits: int) -> tuple[Parts, int]:
    """Returns the distance from the nearest whole number, from −1/2 to 1/2, with its sign.

    Also returns its fraction bits."""
    low = shares.low_bits(session, plus(session, size, 0.5, bits), bits)
    more = max(0, _LEAST - bits)
    return tuple(part << more for part in plus(session, low, -0.5, bits)), bits + more


@cache
def _greatest(result: int) -> float:
    """Returns a number whose ln Γ is slightly less than 2^result, to five significant bits."""
    low, high = _FAR, 2.0**result
    while high - low > 2.0**-8 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if math.lgamma(middle) < 2.0**result else (low, middle)
    unit = 2.0 ** (math.floor(math.log2(low)) - 4)
    return math.floor(low / unit) * unit


def lgamma(x: SecretTensor, *, positive: bool = False) -> SecretTensor:
    """Computes ln |Γ(x)| at the session's scale.

    Method: from 8 on Stirling's series, below it a series of degree 14 for ln Γ(1 + x), and the
    reflection formula for negative numbers (Lanczos 1964, sections 1 and 2; series as Paterson and
    Stockmeyer 1973).
    Domain: all encodable numbers. Results above the encodable numbers, 2^30 by default, become
    about the largest one. At 0 the result is 11.09, and at −n it is 19.41 + ln π − ln n!, where
    PyTorch has infinity.
    Error: 2^−13 relative, or 2^−13 absolute where that is more.
    Cost: 129 rounds, 23472 bits; 93 rounds, 13005 bits with ``positive``.

    Args:
        positive: no x is negative.
    """
    x = fraction(x)
    session, scale = x._session, x._session.scale
    x = rescaled(x, Scale(min(x._scale.bits, scale.bits)))
    bits = x._scale.bits
    greatest = _greatest(fixed.ENCODED - scale.bits)
    ranges.check_argument(
        session, x._parts[0], x._scale, greatest, "an argument of lgamma", "results saturate"
    )
    sides = _sides(session, x._parts, x._scale, positive)
    beyond = shares.subtract(sides.size, constant(session, greatest, bits))
    size = shares.subtract(sides.size, shares.relu(session, beyond, fixed.WORD))
    logarithm, of_sine = _logarithms(session, x, size, positive)
    near = shares.truncate(
        session,
        _series(session, sides._replace(size=size), bits, coefficients.LOG_GAMMA),
        RESULT - 1 - scale.bits,
    )
    found = shares.select(
        session,
        sides.near,
        shares.subtract(near, logarithm),
        _stirling(session, x.like(size), logarithm),
    )
    if not positive:
        # ln |Γ(−y)| = ln π − ln y − ln |sin πy| − ln Γ(y)
        change = shares.negate(
            tuple(
                a + b + 2 * c - d
                for a, b, c, d in zip(
                    logarithm,
                    of_sine,
                    found,
                    constant(session, math.log(math.pi), scale.bits),
                    strict=True,
                )
            )
        )
        found = shares.add(found, shares.bit_multiply(session, sides.negative, change))
    return as_result(x, found, scale)


def _logarithms(
    session: Session, x: SecretTensor, size: Parts, positive: bool
) -> tuple[Parts, Parts]:
    """Returns ln y, and ln |sin πy| unless all numbers are positive."""
    if positive:
        return log(x.like(size), positive=True)._parts, ()
    bits, scale = x._scale.bits, session.scale
    away, fine = _from_whole(session, size, bits)
    sine = odd_series(session, away, fine, coefficients.SINE, Scale(_SINE))
    _, sine = magnitude(session, sine, _SINE + 3)
    both = log(x.like(shares.stacked(size, sine)), positive=True)
    of_size, of_sine = shares.unstacked(both._parts)
    # The sine has other fraction bits than the number.
    return of_size, plus(session, of_sine, (bits - _SINE) * _LN_2, scale.bits)


def _stirling(session: Session, y: SecretTensor, logarithm: Parts) -> Parts:
    """Computes (y − 1/2)·ln y − y + ln(2π)/2 + 1/(12y), at the session's scale."""
    bits, scale = y._scale.bits, session.scale
    inverse = reciprocal(y, positive=True)._parts
    twelfth = shares.truncate(
        session, tuple(part * fixed.word(1 / 12, _FACTOR) for part in inverse), _FACTOR
    )
    factor = rescaled_by(session, logarithm, scale.bits - _FACTOR)
    product = bilinear.multiply(
        session, plus(session, y._parts, -0.5, bits), factor, bits + _FACTOR - scale.bits
    )
    rest = rescaled_by(session, y._parts, bits - scale.bits)
    found = shares.add(shares.subtract(product, rest), twelfth)
    return plus(session, found, math.log(2 * math.pi) / 2, scale.bits)


def digamma(x: SecretTensor, *, positive: bool = False) -> SecretTensor:
    """Computes ψ(x), the derivative of ln Γ(x), at the session's scale.

    Method: from 8 on the asymptotic series, below it a series of degree 16 for ψ(1 + x), and the
    reflection formula for negative numbers (Bernardo 1976; series as Paterson and Stockmeyer 1973).
    Domain: all encodable numbers. At 0 the result is −2^(fraction bits), −65536 by default, and at
    −n about as much, where PyTorch has −∞ and NaN.
    Error: 2^−13 relative, or 2^−13 absolute where that is more, for positive numbers. For negative
    numbers 2^−12 relative or absolute.
    Cost: 127 rounds, 25012 bits; 85 rounds, 12571 bits with ``positive``.

    Args:
        positive: no x is negative.
    """
    x = fraction(x)
    session, scale, bits = x._session, x._session.scale, x._scale.bits
    sides = _sides(session, x._parts, x._scale, positive)
    turned: Parts = ()
    if positive:
        inverse = reciprocal(x, positive=True)._parts
    else:
        inverse, turned = _inverses(session, x, sides)
    near = shares.truncate(
        session, _series(session, sides, bits, coefficients.DIGAMMA), RESULT - scale.bits
    )
    far = _asymptotic(session, x.like(sides.size), sides.near, inverse)
    found = shares.select(session, sides.near, shares.subtract(near, inverse), far)
    if not positive:
        # ψ(−y) = ψ(y) + 1/y + π·cot πy
        found = shares.add(
            found,
            shares.bit_multiply(session, sides.negative, shares.add(inverse, turned)),
        )
    return as_result(x, found, scale)


def _inverses(session: Session, x: SecretTensor, sides: _Sides) -> tuple[Parts, Parts]:
    """Returns 1/y, and π·cot πy of negative numbers, 0 of others."""
    bits = x._scale.bits
    away, fine = _from_whole(session, sides.size, bits)
    # Whole numbers that are not negative are no poles.
    half = constant(session, 0.5, fine)
    away = shares.add(
        shares.bit_multiply(session, sides.negative, shares.subtract(away, half)), half
    )
    raised = tuple(part << (fine - bits) for part in sides.size)
    both = reciprocal(x.like(shares.stacked(raised, away), Scale(fine)))
    inverse, of_away = shares.unstacked(both._parts)
    return inverse, _cotangent(session, away, fine, of_away)


def cotangent(x: SecretTensor) -> SecretTensor:
    """Computes π·cot πx, with the errors and at whole numbers the results of ``digamma``."""
    x = fraction(x)
    away, fine = _from_whole(x._session, x._parts, x._scale.bits)
    inverse = reciprocal(x.like(away, Scale(fine)))
    return as_result(x, _cotangent(x._session, away, fine, inverse._parts), x._session.scale)


def _cotangent(session: Session, away: Parts, fine: int, inverse: Parts) -> Parts:
    """Computes π·cot πd of distances d from a whole number, given 1/d."""
    # d² from 0 to 1/4 is mapped to [−1, 1].
    square = rescaled_by(
        session, bilinear.multiply(session, away, away, 0), 2 * fine - 3 - ARGUMENT
    )
    total = evaluate(session, plus(session, square, -1.0, ARGUMENT), coefficients.COTANGENT)
    factor = shares.truncate(session, total, RESULT - _COTANGENT)
    return bilinear.multiply(session, inverse, factor, _COTANGENT)


def _asymptotic(session: Session, y: SecretTensor, near: Parts, inverse: Parts) -> Parts:
    """Computes ln y − 1/(2y) − 1/(12y²) of numbers that are not near."""
    scale = session.scale
    logarithm = log(y, positive=True)._parts
    inverse = shares.bit_multiply(session, shares.complement(session, near), inverse)
    square = bilinear.multiply(session, inverse, inverse, scale.bits)
    rest = tuple(6 * part + more for part, more in zip(inverse, square, strict=True))
    twelfth = shares.truncate(
        session, tuple(part * fixed.word(1 / 12, _FACTOR) for part in rest), _FACTOR
    )
    return shares.subtract(logarithm, twelfth)
