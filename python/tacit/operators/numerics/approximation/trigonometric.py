"""Sine, cosine and arc tangent."""

import math

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.operands import beside, compared, fraction, rescaled
from tacit.operators.numerics.approximation import coefficients
from tacit.operators.numerics.approximation.normal import product
from tacit.operators.numerics.approximation.quotients import as_result, divide, flipped, magnitude
from tacit.operators.numerics.approximation.series import ARGUMENT, RESULT, constant, evaluate, plus
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Fraction bits of a number of turns. The fraction is the position within the turn.
_TURN = 18

#: Fraction bits of the factor that converts radians to turns.
_FACTOR = 24

#: Most fraction bits of the argument.
_MOST = 16

#: Bound of angles: from here on, the position within the turn is lost.
_GREATEST = 2.0**20

#: Fraction bits of a series that is multiplied by its argument.
_SERIES = 20


def sin(x: SecretTensor) -> SecretTensor:
    """Computes sin x.

    Method: the low bits of x/2π give the position within the turn, for which x·q(x²) is evaluated
    with a series q of degree 6 (range reduction by whole turns as in Aly and Smart 2019).
    Domain: |x| < 2^20, where x itself is known to 2^−16.
    Error: 2^−13 absolute for |x| ≤ 64, and |x|·2^−22 more beyond.
    Cost: 22 rounds, 5168 bits.
    """
    return _of_turns(x, 0.0)


def cos(x: SecretTensor) -> SecretTensor:
    """Computes cos x.

    Method: as ``sin``, a quarter of a turn ahead (Aly and Smart 2019).
    Domain: as ``sin``.
    Error: 2^−13 absolute for |x| ≤ 64, and |x|·2^−22 more beyond.
    Cost: 22 rounds, 5168 bits.
    """
    return _of_turns(x, 0.25)


def _of_turns(x: SecretTensor, ahead: float) -> SecretTensor:
    """Computes sin(x + 2π·ahead).

    The low bits of x/2π are the position within the turn. They are shifted to v in [−1/2, 1/2), for
    which sin(2π(v + 1/2)) = −sin(2πv)."""
    x = fraction(x)
    x = rescaled(x, Scale(_MOST)) if x._scale.bits > _MOST else x
    session, bits, scale = x._session, x._scale.bits, x._session.scale
    ranges.check_argument(
        session, x._parts[0].abs(), x._scale, _GREATEST, "an angle", "nothing is known of it"
    )
    turns = tuple(part * fixed.word(1.0 / (2.0 * math.pi), _FACTOR) for part in x._parts)
    turns = shares.truncate(session, turns, bits + _FACTOR - _TURN)
    where = shares.low_bits(session, plus(session, turns, ahead, _TURN), _TURN)
    # Half turns, from −1 to 1.
    half = plus(session, tuple(part * 2 for part in where), -1.0, _TURN)
    result = odd_series(session, shares.negate(half), _TURN, coefficients.SINE, scale)
    return as_result(x, result, scale)


def odd_series(
    session: Session, x: Parts, bits: int, series: tuple[float, ...], scale: Scale
) -> Parts:
    """Computes x·q(x²) for |x| ≤ 1 of at most ARGUMENT fraction bits."""
    # One bit less is dropped, which doubles the square.
    square = bilinear.multiply(session, x, x, 2 * bits - ARGUMENT - 1)
    square = plus(session, square, -1.0, ARGUMENT)
    factor = shares.truncate(session, evaluate(session, square, series), RESULT - _SERIES)
    return product(session, x, factor, bits + _SERIES - scale.bits)


def arctan(x: SecretTensor) -> SecretTensor:
    """Computes arctan x.

    Method: the smaller of |x| and 1 is divided by the greater, and a series of degree 6 is
    evaluated at the quotient; if |x| > 1, the result is π/2 less that angle (range reduction as in
    Aly and Smart 2019).
    Domain: all encodable numbers.
    Error: 2^−13 absolute.
    Cost: 76 rounds, 10208 bits.
    """
    x = fraction(x)
    session, scale = x._session, x._session.scale
    with beside(session, 1.0):
        width = compared(session, x._scale)
    negative, size = magnitude(session, x._parts, width)
    beyond = shares.relu(session, plus(session, size, -1.0, x._scale.bits), width)
    smaller = shares.subtract(size, beyond)
    greater = plus(session, beyond, 1.0, x._scale.bits)
    with session.using(scale=Scale(_TURN)):
        ratio = divide(x.like(smaller), x.like(greater), bounded=True)
    angle = odd_series(session, ratio._parts, _TURN, coefficients.ARC_TANGENT, scale)
    # Set where |x| > 1.
    turned = shares.sign(session, shares.negate(beyond), width)
    right = constant(session, math.pi / 2, scale.bits)
    change = shares.bit_multiply(
        session, turned, tuple(r - 2 * a for r, a in zip(right, angle, strict=True))
    )
    return as_result(x, flipped(session, negative, shares.add(angle, change)), scale)
