"""Functions that approach one line far to the left and another far to the right.

Two comparisons find the side, and a Chebyshev series of the squared argument gives the values in
between. So the odd or even part of a function is exactly odd or even, and there is no jump at 0.
mish is neither odd nor even, so its series is in the argument itself.

The series is evaluated at 0 for numbers outside the interval, so that it cannot overflow. A program
that was compiled for numbers that are proved to be inside makes no comparisons (``fits``)."""

import math
from typing import NamedTuple

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.operands import beside, compared, fraction, rescaled, shifted
from tacit.operators.numerics.approximation.coefficients import MISH
from tacit.operators.numerics.approximation.fits import fit_of
from tacit.operators.numerics.approximation.normal import product
from tacit.operators.numerics.approximation.quotients import as_result
from tacit.operators.numerics.approximation.series import ARGUMENT, RESULT, constant, evaluate, plus
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Most fraction bits of the argument, so that its square times 2^_SQUARE is in range. Numbers with
#: more are rounded to these.
_MOST = 20

#: Fraction bits of the factor 1/cutoff², which maps squares of numbers up to the cutoff to [0, 1].
_SQUARE = 20

#: Fraction bits of the series before it is multiplied by the argument.
_FACTOR = 18


class _Sides(NamedTuple):
    """Bits that say on which side of a cutoff numbers are."""

    inside: Parts
    above: Parts
    below: Parts


def _sides(
    session: Session, x: Parts, scale: Scale, cutoff: float, low: float | None = None
) -> _Sides:
    """Returns whether low ≤ x < cutoff, x ≥ cutoff, and x < low, in the rounds of one comparison.

    ``low`` defaults to −cutoff."""
    low = -cutoff if low is None else low
    with beside(session, max(cutoff, -low)):
        width = compared(session, scale)
    limits = (constant(session, each, scale.bits) for each in (cutoff, low))
    differences = shares.stacked(*(shares.subtract(x, limit) for limit in limits))
    under, below = shares.unstacked(shares.sign(session, differences, width))
    return _Sides(shares.xor(under, below), shares.complement(session, under), below)


def _chosen(session: Session, *choices: tuple[Parts, Parts]) -> list[Parts]:
    """Returns, for each pair of bits and numbers, the number where the bit is set and 0 elsewhere.

    A number may be broadcast. All pairs are computed in one batch, in two rounds."""
    bits, numbers = zip(*choices, strict=True)
    shape = bits[0][0].shape
    spread = (tuple(part.expand(shape) for part in each) for each in numbers)
    return shares.unstacked(
        shares.bit_multiply(session, shares.stacked(*bits), shares.stacked(*spread))
    )


def _squared(session: Session, x: Parts, bits: int, cutoff: float) -> Parts:
    """Computes (x/cutoff)², mapped from [0, 1] to [−1, 1]; two rounds."""
    # The square times 2/cutoff² is below 2^61. One factor of the square includes 2/cutoff², so that
    # nothing is rounded twice.
    raised = tuple(part * fixed.word(1.0 / cutoff**2, _SQUARE) for part in x)
    argument = bilinear.multiply(session, x, raised, 2 * bits + _SQUARE - 1 - ARGUMENT)
    return plus(session, argument, -1.0, ARGUMENT)


def _argument(x: SecretTensor) -> SecretTensor:
    x = fraction(x)
    return rescaled(x, Scale(_MOST)) if x._scale.bits > _MOST else x


def _odd(x: SecretTensor, function: str, limit: float) -> SecretTensor:
    """Computes x·q((x/cutoff)²), and ±limit outside the cutoff."""
    x = _argument(x)
    session, bits, scale, fit = (
        x._session,
        x._scale.bits,
        x._session.scale,
        fit_of(x._session, function),
    )
    near, beyond = x._parts, None
    if fit.is_everywhere:
        sides, end = (
            _sides(session, near, x._scale, fit.cutoff),
            constant(session, limit, scale.bits),
        )
        near, high, low = _chosen(
            session, (sides.inside, near), (sides.above, end), (sides.below, end)
        )
        beyond = shares.subtract(high, low)
    total = evaluate(session, _squared(session, near, bits, fit.cutoff), fit.series)
    factor = shares.truncate(session, total, RESULT - _FACTOR)
    result = product(session, near, factor, bits + _FACTOR - scale.bits)
    return as_result(x, result if beyond is None else shares.add(result, beyond), scale)


def _even(x: SecretTensor, function: str, middle: float = 0.0) -> SecretTensor:
    """Computes x/2 + a series whose value at 0 is ``middle``, and max(x, 0) outside the cutoff."""
    x = _argument(x)
    session, bits, scale, fit = (
        x._session,
        x._scale.bits,
        x._session.scale,
        fit_of(x._session, function),
    )
    near, high, excess = x._parts, None, []
    if fit.is_everywhere:
        sides = _sides(session, near, x._scale, fit.cutoff)
        choices = [(sides.inside, near), (sides.above, near)]
        if middle:
            choices.append(
                (shares.xor(sides.above, sides.below), constant(session, middle, scale.bits))
            )
        near, high, *excess = _chosen(session, *choices)
    total = evaluate(session, _squared(session, near, bits, fit.cutoff), fit.series)
    # Half of the argument has one fraction bit more.
    total = tuple(a + (b << (RESULT - bits - 1)) for a, b in zip(total, near, strict=True))
    parts = shares.truncate(session, total, RESULT - scale.bits)
    if high is not None:
        parts = shares.add(parts, shifted(session, high, bits, scale.bits))
    # Outside the cutoff the series is evaluated at 0, where its value is ``middle``.
    return as_result(x, shares.subtract(parts, *excess) if excess else parts, scale)


def sigmoid(x: SecretTensor) -> SecretTensor:
    """Computes the logistic function 1 / (1 + e^−x).

    Method: constants outside a cutoff, found by two comparisons, and inside it 1/2 + x·q(x²) with a
    series q of degree 9 (PUMA, Dong and others 2023, uses piecewise polynomials; series as Paterson
    and Stockmeyer 1973).
    Domain: all encodable numbers; exactly 0 and 1 from ±7.5.
    Error: 2^−10.7 absolute.
    Cost: 21 rounds, 3168 bits.
    """
    x = _odd(x, "sigmoid", 0.5)
    return x.like(plus(x._session, x._parts, 0.5, x._scale.bits))


def tanh(x: SecretTensor) -> SecretTensor:
    """Computes tanh x.

    Method: as ``sigmoid``, x·q(x²) with a series of degree 12 (Dong and others 2023; Paterson and
    Stockmeyer 1973).
    Domain: all encodable numbers; exactly ±1 from ±4.
    Error: 2^−10.4 absolute.
    Cost: 21 rounds, 3417 bits.
    """
    return _odd(x, "tanh", 1.0)


def erf(x: SecretTensor) -> SecretTensor:
    """Computes the error function.

    Method: as ``sigmoid``, x·q(x²) with a series of degree 6 (Dong and others 2023; Paterson and
    Stockmeyer 1973).
    Domain: all encodable numbers; exactly ±1 from ±2.75.
    Error: 2^−12 absolute.
    Cost: 19 rounds, 2919 bits.
    """
    return _odd(x, "erf", 1.0)


def gelu(x: SecretTensor, *, by_tanh: bool = False) -> SecretTensor:
    """Computes GELU, x·Φ(x), or PyTorch's approximation of it by tanh.

    Method: 0 and x outside a cutoff, found by two comparisons, and inside it x/2 + a series in x²
    of degree 6 (PUMA, Dong and others 2023, uses piecewise polynomials; series as Paterson and
    Stockmeyer 1973).
    Domain: all encodable numbers; exactly max(x, 0) from ±3.75.
    Error: 2^−10.7 absolute.
    Cost: 17 rounds, 2423 bits.
    """
    return _even(x, "gelu_tanh" if by_tanh else "gelu")


def silu(x: SecretTensor) -> SecretTensor:
    """Computes SiLU, x / (1 + e^−x).

    Method: as ``gelu``, with a series of degree 12 (Dong and others 2023; Paterson and Stockmeyer
    1973).
    Domain: all encodable numbers; exactly max(x, 0) from ±9.25.
    Error: 2^−10 absolute.
    Cost: 19 rounds, 2921 bits.
    """
    return _even(x, "silu")


def softplus(x: SecretTensor) -> SecretTensor:
    """Computes softplus, ln(1 + e^x).

    Method: as ``gelu``, with a series of degree 14 (Dong and others 2023; Paterson and Stockmeyer
    1973).
    Domain: all encodable numbers; max(x, 0) from ±10.
    Error: 2^−13 absolute.
    Cost: 21 rounds, 3429 bits.
    """
    return _even(x, "softplus", math.log(2.0))


#: Interval of the series of mish: below it mish is 0, and above it x.
_MISH = (-12.5, 6.25)

#: Fraction bits of the factor that maps this interval to [−1, 1].
_SLOPE = 26


def mish(x: SecretTensor) -> SecretTensor:
    """Computes mish, x·tanh(ln(1 + e^x)).

    Method: 0 and x outside an interval, found by two comparisons, and inside it a series in x
    itself of degree 36 (Dong and others 2023; Paterson and Stockmeyer 1973).
    Domain: all encodable numbers; max(x, 0) below −12.5 and from 6.25 on.
    Error: 2^−13 absolute.
    Cost: 27 rounds, 4020 bits.
    """
    x = _argument(x)
    session, bits, scale, (low, high) = x._session, x._scale.bits, x._session.scale, _MISH
    sides = _sides(session, x._parts, x._scale, high, low)
    near, above = _chosen(session, (sides.inside, x._parts), (sides.above, x._parts))
    steep = tuple(part * fixed.word(2.0 / (high - low), _SLOPE) for part in near)
    argument = shares.truncate(session, steep, bits + _SLOPE - ARGUMENT)
    argument = plus(session, argument, -(low + high) / (high - low), ARGUMENT)
    total = evaluate(session, argument, MISH)
    # Outside the interval the series is evaluated at 0, where its value is 0.
    parts = shares.truncate(session, total, RESULT - scale.bits)
    return as_result(x, shares.add(parts, shifted(session, above, bits, scale.bits)), scale)
