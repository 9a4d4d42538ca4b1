"""Rounded quotients and remainders, exact for integers and for fractions as they are encoded.

A public divisor of 0 is refused. For a secret divisor of 0 the quotient is that by the smallest
number of its scale, and the remainder is x.
"""

from typing import Any

import torch

from tacit import checks, fixed
from tacit.fixed import Scale
from tacit.operators.arithmetic import div
from tacit.operators.dispatch.operands import (
    aligned,
    alike,
    common_scale,
    may_be_unreduced,
    public,
    result_dtype,
    session_of,
    shifted,
    together,
)
from tacit.operators.dispatch.scales import of_session
from tacit.operators.dispatch.table import implements, unsupported
from tacit.operators.numerics.approximation import division
from tacit.operators.numerics.compare_words import reach
from tacit.sessions import Session
from tacit.sharings import bilinear, ranges, shares
from tacit.sharings.shares import Parts
from tacit.tensor import SecretTensor

aten = torch.ops.aten

#: Most bits of fractions, as words, that are divided by one public number.
FRACTIONS = fixed.RANGE - 2


def _bits(scale: Scale, most: int, *operands: Any) -> int:
    """Returns the bits of magnitudes: for fractions ``most``, for integers by their dtypes."""
    return most if scale != fixed.WHOLE else max(1, *(reach(operand) - 1 for operand in operands))


def _quotient(x: Any, y: Any, to_zero: bool) -> tuple[Parts, Parts, Parts]:
    """Returns both operands as words of their common scale, and their whole quotient."""
    session, scale = session_of(x, y), common_scale(x, y)
    left, right = together(*aligned(x, y)[:2])
    if not isinstance(y, SecretTensor):
        words = fixed.encode(public(y), scale)
        if bool((words == 0).any()):
            unsupported("division by zero", "divide by other numbers")
        divisors = words.reshape(-1)
        if divisors.numel() and bool((divisors == divisors[0]).all()):
            bits = _bits(scale, FRACTIONS, x)
            if scale != fixed.WHOLE:
                checks.hold(session, left, checks.WORD)
            if session.is_plain and scale != fixed.WHOLE:
                ranges.check_quotient(session, left[0], torch.tensor(1), bits)
            with checks.proved(session):
                return left, right, _by_number(session, left, int(divisors[0]), bits, to_zero)
    # Each of several public divisors would need its own truncation, so they count as secret ones.
    bits = _bits(scale, fixed.ENCODED, x, y)
    if scale != fixed.WHOLE:
        for operand in (left, right):
            checks.hold(session, operand, fixed.ENCODED - 2)
    if session.is_plain and scale != fixed.WHOLE:
        ranges.check_quotient(session, left[0], right[0], bits)
    with checks.proved(session):
        return left, right, division.by_secret(session, left, right, bits, to_zero=to_zero)


def _by_number(session: Session, x: Parts, divisor: int, bits: int, to_zero: bool) -> Parts:
    size, more = abs(divisor), 0
    if to_zero:
        # To round towards zero, negative numbers are raised by almost the divisor before the floor.
        negative = shares.bit_to_ring(session, shares.sign(session, x, 64))
        x = tuple(part + (size - 1) * less for part, less in zip(x, negative, strict=True))
    elif divisor < 0:
        # For negative y the quotient is −⌈x / |y|⌉, so x / |y| is rounded up.
        more = size - 1
    quotient = division.by_public(session, x, size, bits, more)
    return quotient if divisor > 0 else shares.negate(quotient)


def _whole(x: Any, y: Any, to_zero: bool) -> SecretTensor:
    session, scale, dtype = session_of(x, y), common_scale(x, y), result_dtype(x, y)
    x, y = alike(x, y)
    _, _, quotient = _quotient(x, y, to_zero)
    parts = shifted(session, quotient, 0, scale.bits)
    return SecretTensor(parts, scale, session, dtype, unreduced=may_be_unreduced(dtype))


def _remainder(x: Any, y: Any, to_zero: bool) -> SecretTensor:
    session, scale, dtype = session_of(x, y), common_scale(x, y), result_dtype(x, y)
    x, y = alike(x, y)
    left, right, quotient = _quotient(x, y, to_zero)
    if isinstance(y, SecretTensor):
        multiple = bilinear.multiply(session, quotient, right, 0)
    else:
        words = fixed.encode(public(y), scale)
        multiple = tuple(part * words for part in quotient)
    return SecretTensor(shares.subtract(left, multiple), scale, session, dtype)


@implements(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(x: Any, y: Any) -> SecretTensor:
    """Returns ⌊x / y⌋, exact for all integers.

    One public divisor takes 10 to 16 rounds, 26 to 30 for int64; fractions as words must be below
    2^60. Secret divisors, and several public ones, are computed as
    ``approximation.division.by_secret``.
    """
    return _whole(x, y, to_zero=False)


@implements(
    aten.div.Tensor_mode,
    aten.div.Scalar_mode,
    scale=of_session,
)
def div_mode(x: Any, y: Any, *, rounding_mode: str | None) -> SecretTensor:
    """Returns x / y, rounded down or towards zero. Rounds and domain as ``floor_divide``."""
    if rounding_mode is None:
        return div(x, y)
    return _whole(x, y, to_zero=rounding_mode == "trunc")


@implements(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(x: Any, y: Any) -> SecretTensor:
    """Returns x − y·⌊x / y⌋, which has the sign of y.

    Rounds and domain as ``floor_divide``, and one more round for secret divisors.
    """
    return _remainder(x, y, to_zero=False)


@implements(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(x: Any, y: Any) -> SecretTensor:
    """Returns x minus y times the quotient rounded towards zero, which has the sign of x.

    Rounds and domain as ``floor_divide``, and one more round for secret divisors.
    """
    return _remainder(x, y, to_zero=True)
