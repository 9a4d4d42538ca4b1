"""Reciprocals, quotients, roots and logarithms.

The argument is normalised to one interval (``normal``). There a Chebyshev series is evaluated, and
the result is scaled back by the power of two.

Zero counts as the smallest number of its scale: 1/0 is 65536 at the default scale, 1/√0 is 256, and
log 0 is −11.09. Negative numbers count as zero if the function is not defined for them.
"""

import math

import torch

from tacit import fixed
from tacit.fixed import Scale
from tacit.operators.dispatch.operands import compared, fraction, rescaled
from tacit.operators.numerics.approximation.fits import FITS, USUAL, Fit, fit_of
from tacit.operators.numerics.approximation.normal import (
    WIDTH,
    Normal,
    normal,
    number,
    power_of_two,
    product,
    rescaled_by,
)
from tacit.operators.numerics.approximation.series import RESULT, evaluate
from tacit.sessions import Session
from tacit.sharings import bilinear, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

#: Fraction bits of a normalised number's reciprocal, which lies in [1, 2].
_RECIPROCAL = 14

#: Fraction bits of a normalised number's inverse root, which lies in [1, 2].
_ROOT = 22

#: Width from which leading zeros of divisors are counted. Quotients by divisors with 32 or more
#: leading zeros may be too large.
DIVISOR = WIDTH + 2


def as_result(x: SecretTensor, parts: Parts, scale: Scale) -> SecretTensor:
    """Returns components that were computed from x as a secret fraction."""
    dtype = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
    return x.like(parts, scale, dtype)


def magnitude(session: Session, x: Parts, width: int) -> tuple[Parts, Parts]:
    """Returns whether x is negative, as bits, and |x|."""
    negative = shares.sign(session, x, width)
    return negative, flipped(session, negative, x)


def flipped(session: Session, bit: Parts, x: Parts) -> Parts:
    """Returns −x where the bit is set, else x; two rounds."""
    bit = tuple(part.expand(x[0].shape) for part in bit)
    return tuple(a - 2 * b for a, b in zip(x, shares.bit_multiply(session, bit, x), strict=True))


def reciprocal(
    x: SecretTensor, *, positive: bool = False, scale: Scale | None = None
) -> SecretTensor:
    """Computes 1 / x at the given scale, or else the session's.

    Method: |x| is brought to [1/2, 1] by its leading zeros (Catrina and Saxena 2010), where a
    series of degree 6 is evaluated.
    Domain: all encodable numbers; 1/0 is 2^(fraction bits of x), 65536 by default.
    Error: 2^−13 relative, or 2^−13 absolute where that is more.
    Cost: 40 rounds, 5753 bits; 30 rounds, 4868 bits with ``positive``.

    Args:
        positive: no x is negative.
    """
    x = fraction(x)
    session, scale = x._session, scale or x._session.scale
    filled, inverse = inverted(session, x, WIDTH, positive, fit_of(session, "reciprocal"))
    # 1/x = inverse·2^(zeros + fraction bits − WIDTH)
    drop = _RECIPROCAL + WIDTH - x._scale.bits - scale.bits
    return as_result(x, product(session, inverse, filled.power, drop), scale)


def inverted(
    session: Session, x: SecretTensor, width: int, positive: bool, fit: Fit
) -> tuple[Normal, Parts]:
    """Normalises |x| to fill a width; returns it, and 2^width / it with the sign of x."""
    negative, parts = None, x._parts
    if not (positive or fit.low >= 0):
        negative, parts = magnitude(session, parts, compared(session, x._scale))
    filled = normal(session, parts, width=width)
    total = evaluate(session, filled.argument(session, 0.5), fit.series)
    inverse = shares.truncate(session, total, RESULT - _RECIPROCAL)
    return filled, inverse if negative is None else flipped(session, negative, inverse)


def divide(x: SecretTensor, y: SecretTensor, *, bounded: bool = False) -> SecretTensor:
    """Computes x / y at the session's scale.

    Method: the reciprocal of the divisor, normalised by its leading zeros (Catrina and Saxena
    2010), is multiplied by x, and the product is scaled back by the power of two.
    Domain: all encodable numbers. 0 counts as the smallest number of its scale, so that 0/0 is 0.
    Quotients beyond ±2^30 become ±2^30.
    Error: 2^−12 relative, or 2^−13 absolute where that is more. Quotients are computed at the
    session's scale with ``bounded``. Otherwise they are computed with 16 fraction bits and then
    brought to the session's scale.
    Cost: 59 rounds, 9433 bits; 39 rounds, 6714 bits with ``bounded``.

    Args:
        bounded: the quotient is known to be encodable, and y to be positive.
    """
    session = x._session
    x, y = fraction(x), fraction(y)
    common = fixed.of_sum([x._scale, y._scale])
    x, y = rescaled(x, common), rescaled(y, common)
    scale = session.scale if bounded else fixed.DEFAULT
    filled, inverse = inverted(session, y, DIVISOR, bounded, FITS["reciprocal"][USUAL])
    shape = torch.broadcast_shapes(x.shape, y.shape)  # type: ignore[no-untyped-call]
    raw = bilinear.multiply(session, _spread(x._parts, shape), _spread(inverse, shape), 0)
    quotient = raised(session, raw, filled, scale, bounded)
    return rescaled(as_result(x, quotient, scale), session.scale)


def raised(session: Session, x: Parts, filled: Normal, scale: Scale, bounded: bool) -> Parts:
    """Computes x·2^zeros / 2^(_RECIPROCAL + width − scale) in two steps that each stay in range.

    The places of 32 and 16 in the number of zeros select a shift of x. The other places give a
    factor."""
    drop = _RECIPROCAL + DIVISOR - scale.bits - 15
    shape = x[0].shape
    fine, thirty_two, sixteen = filled.places[:4], filled.digits[5], filled.digits[4]
    neither = shares.complement(
        session, tuple(a ^ b for a, b in zip(thirty_two, sixteen, strict=True))
    )
    choices = [_spread(bits, shape) for bits in (thirty_two, sixteen, neither)]
    shifted = [x, *(rescaled_by(session, x, drop - places) for places in (16, 0))]
    chosen = shares.bit_multiply(session, shares.stacked(*choices), shares.stacked(*shifted))
    large, *others = shares.unstacked(chosen)
    if not bounded:
        large = _limited(session, large, _limits(session, fine, shape))
    large = rescaled_by(session, large, drop - 32)
    total = shares.add(large, shares.add(*others))
    return bilinear.multiply(session, total, _spread(power_of_two(session, fine), shape), 15)


def _limits(session: Session, fine: list[Parts], shape: torch.Size) -> Parts:
    """Returns the limits 2^60 / 2^fine, for divisors with 32 or more leading zeros.

    These limits give quotients of 2^30."""
    one = shares.trivial(session, torch.tensor(1))
    opposite = [tuple(unit - part for unit, part in zip(one, place, strict=True)) for place in fine]
    power = power_of_two(session, opposite)
    return _spread(tuple((part << 45) - unit for part, unit in zip(power, one, strict=True)), shape)


def _limited(session: Session, x: Parts, limit: Parts) -> Parts:
    """Clamps x to between −limit and limit."""
    beyond = shares.stacked(shares.subtract(x, limit), shares.subtract(shares.negate(x), limit))
    beyond = shares.relu(session, beyond, 64)
    return tuple(part - over[0] + over[1] for part, over in zip(x, beyond, strict=True))


def _spread(parts: Parts, shape: torch.Size) -> Parts:
    return tuple(part.expand(shape) for part in parts)


def rsqrt(x: SecretTensor, *, positive: bool = False, scale: Scale | None = None) -> SecretTensor:
    """Computes 1 / √x at the given scale, or else the session's.

    Method: x is brought to [1/4, 1] by an even number of leading zeros (Catrina and Saxena 2010;
    even numbers as in Liedel 2012), where a series of degree 9 is evaluated.
    Domain: all encodable numbers from 0. For 0 and negative numbers, the result is 2^(half the
    fraction bits of x), 256 by default.
    Error: 2^−13 relative, or 2^−13 absolute where that is more.
    Cost: 41 rounds, 5701 bits; 33 rounds, 5072 bits with ``positive``.

    Args:
        positive: no x is negative.
    """
    fit = fit_of(x._session, "rsqrt")
    x = _not_negative(fraction(x), positive, fit)
    session, scale = x._session, scale or x._session.scale
    return as_result(x, _inverse_root(session, x._parts, x._scale, scale.bits, fit), scale)


def sqrt(x: SecretTensor, *, positive: bool = False, scale: Scale | None = None) -> SecretTensor:
    """Computes √x at the given scale, or else the session's.

    Method: x times 1 / √x, computed as in ``rsqrt`` (Catrina and Saxena 2010).
    Domain: all encodable numbers; the result is 0 for negative numbers.
    Error: 2^−13 relative, or 2^−13 absolute where that is more.
    Cost: 43 rounds, 5941 bits; 35 rounds, 5312 bits with ``positive``.
    """
    fit = fit_of(x._session, "sqrt")
    x = _not_negative(fraction(x), positive, fit)
    session, scale = x._session, scale or x._session.scale
    bits = fixed.beside_root(x._scale)
    root = _inverse_root(session, x._parts, x._scale, bits, fit)
    parts = bilinear.multiply(session, x._parts, root, x._scale.bits + bits - scale.bits)
    return as_result(x, parts, scale)


def _not_negative(x: SecretTensor, known: bool, fit: Fit) -> SecretTensor:
    if known or fit.low >= 0:
        return x
    return x.like(shares.relu(x._session, x._parts, compared(x._session, x._scale)))


def _inverse_root(session: Session, x: Parts, scale: Scale, bits: int, fit: Fit) -> Parts:
    """Computes 1 / √x with ``bits`` fraction bits."""
    if odd := scale.bits % 2:
        x = tuple(part << 1 for part in x)
    filled = normal(session, x, width=WIDTH + 2 * odd, even=True)
    total = evaluate(session, filled.argument(session, 0.25), fit.series)
    root = shares.truncate(session, total, RESULT - _ROOT)
    # 1/√x = root·2^((zeros + fraction bits − width) / 2)
    drop = _ROOT + (filled.width - scale.bits - odd) // 2 - bits
    return product(session, root, filled.power, drop)


def log(x: SecretTensor, *, base: float = math.e, positive: bool = False) -> SecretTensor:
    """Computes the logarithm of x at the session's scale.

    Method: x is brought to [1/2, 1] by its leading zeros (Catrina and Saxena 2010; Aly and Smart
    2019), where a series of degree 6 is evaluated; then the multiple of ln 2 that the zeros give is
    added.
    Domain: all encodable numbers above 0. 0 counts as the smallest number of its scale, and
    negative numbers count as 0.
    Error: 2^−14 absolute, for bases from 2.
    Cost: 36 rounds, 5215 bits; 28 rounds, 4586 bits with ``positive``; 38 rounds, 5339 bits for
    other bases."""
    fit = fit_of(x._session, "log")
    x = _not_negative(fraction(x), positive, fit)
    session = x._session
    filled = normal(session, x._parts)
    total = evaluate(session, filled.argument(session, 0.5), fit.series)
    # ln x = ln(word / 2^width) + (width − fraction bits − zeros)·ln 2, with RESULT fraction bits.
    zeros = number(filled.places)
    unit = fixed.word(math.log(2.0), RESULT)
    known = shares.trivial(session, torch.tensor((WIDTH - x._scale.bits) * unit))
    total = tuple(a - b * unit + c for a, b, c in zip(total, zeros, known, strict=True))
    scale = session.scale
    if base == math.e:
        return as_result(x, shares.truncate(session, total, RESULT - scale.bits), scale)
    # The factor has 20 fraction bits, the logarithm keeps 36, and has 5 bits before the point.
    parts = shares.truncate(session, total, RESULT - 36)
    factor = fixed.word(1.0 / math.log(base), 20)
    return as_result(
        x, shares.truncate(session, tuple(part * factor for part in parts), 56 - scale.bits), scale
    )
